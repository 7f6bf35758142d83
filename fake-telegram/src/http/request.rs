//! Reads requests: paths, and parameters from query, form, JSON and multipart (`telegram.md` 2.1).
//!
//! The open server reads JSON and forms leniently: what it cannot read is no parameter (td `HttpReader.cpp`).

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use percent_encoding::{percent_decode, percent_decode_str};
use serde_json::Value;

use super::failure::Failure;
use super::params::{Params, Upload};

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// A call of a method by a bot; an empty name stands in the parameters.
    Call {
        /// The bot's token.
        token: Cow<'a, str>,
        /// The method, as its client writes it.
        method: Cow<'a, str>,
    },
    /// A file of a bot.
    File {
        /// The bot's token.
        token: Cow<'a, str>,
        /// Its path.
        path: Cow<'a, str>,
    },
    /// The control of this server.
    Admin(&'a str),
    /// Nowhere.
    Nothing,
}

/// Where `path` leads.
pub fn route(path: &str) -> Route<'_> {
    if let Some(rest) = path.strip_prefix("/bot") {
        let Some((token, rest)) = rest.split_once('/') else { return Route::Nothing };
        let method = rest.strip_prefix("test/").unwrap_or(rest);
        return Route::Call { token: decoded(token), method: decoded(method) };
    }
    if let Some(rest) = path.strip_prefix("/file/bot") {
        return match rest.split_once('/') {
            Some((token, path)) => Route::File { token: decoded(token), path: decoded(path) },
            None => Route::Nothing,
        };
    }
    path.strip_prefix("/__admin").map_or(Route::Nothing, |rest| Route::Admin(rest.trim_matches('/')))
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// The parameters of a query.
///
/// # Errors
/// If it is no UTF-8.
pub fn of_query(query: Option<&str>) -> Result<Params, Failure> {
    let mut params = Params::default();
    if let Some(query) = query {
        form(query.as_bytes(), &mut params)?;
    }
    Ok(params)
}

/// Adds the parameters of a body of at most `limit` bytes.
///
/// # Errors
/// If it is too long, encoded, cut off, no UTF-8, or no multipart that can be read: the open server's own texts where it
/// has one.
pub async fn of_body(
    params: &mut Params,
    headers: &HeaderMap,
    body: Incoming,
    limit: usize,
) -> Result<(), Failure> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Failure::new(415, "Unsupported Media Type: unsupported content-encoding"));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let bytes = collect(body, limit).await?;
    read(params, content_type, bytes).await
}

/// Adds the parameters of a body; one of another `content_type` than form, JSON and multipart has none.
///
/// # Errors
/// As [`of_body`].
pub async fn read(params: &mut Params, content_type: &str, bytes: Bytes) -> Result<(), Failure> {
    let has = |name: &str| {
        content_type.as_bytes().windows(name.len()).any(|part| part.eq_ignore_ascii_case(name.as_bytes()))
    };
    if has("multipart/form-data") {
        // Large and rare: who has no files does not carry it along.
        Box::pin(multipart(params, content_type, bytes)).await
    } else if has("application/json") {
        json(&bytes, params)
    } else if has("application/x-www-form-urlencoded") {
        form(&bytes, params)
    } else {
        Ok(())
    }
}

/// A whole body of at most `limit` bytes.
///
/// # Errors
/// As [`of_body`].
pub async fn collect(body: Incoming, limit: usize) -> Result<Bytes, Failure> {
    let too_large = || Failure::new(413, "Request Entity Too Large");
    // What is announced to be too long is not waited for.
    if usize::try_from(body.size_hint().lower()).map_or(true, |announced| announced > limit) {
        return Err(too_large());
    }
    let mut whole = pin!(Limited::new(body, limit).collect());
    let collected = match soon(whole.as_mut()).await {
        Some(collected) => collected,
        None => tokio::time::timeout(BODY_TIMEOUT, whole)
            .await
            .map_err(|_| Failure::new(408, "Request Timeout"))?,
    };
    match collected {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Failure::new(400, "Bad Request: unexpected end of request content")),
    }
}

/// What is there when it is asked for the second time: hyper reads a body only once somebody wants it, and whoever has
/// sent all of it needs no timer.
async fn soon<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut is_asked = false;
    poll_fn(move |context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if is_asked => Poll::Ready(None),
        Poll::Pending => {
            is_asked = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// How long a body may take.
const BODY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// What the open server says of text that is none (td `misc.cpp`, clean_input_string; bots see it of broken shells and of
/// emoji cut in two).
const NOT_UTF_8: Failure = Failure::bad_request("Bad Request: strings must be encoded in UTF-8");

fn form(bytes: &[u8], params: &mut Params) -> Result<(), Failure> {
    // Names and values end at ASCII characters, so all of them together are UTF-8 if each is.
    percent_decode(bytes).decode_utf8().map_err(|_| NOT_UTF_8)?;
    for (name, value) in form_urlencoded::parse(bytes) {
        params.set(name, Value::String(value.into_owned()));
    }
    Ok(())
}

fn json(bytes: &[u8], params: &mut Params) -> Result<(), Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| NOT_UTF_8)?;
    match serde_json::from_str(text) {
        Ok(fields) => {
            params.merge(fields);
            Ok(())
        }
        // Half of a character beyond the 16 bits of `\uXXXX`.
        Err(error) if error.to_string().contains("hex escape") => Err(NOT_UTF_8),
        Err(_) => Ok(()),
    }
}

async fn multipart(params: &mut Params, content_type: &str, bytes: Bytes) -> Result<(), Failure> {
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| Failure::new(400, "Bad Request: boundary not found"))?;
    let whole = futures_like_once(bytes);
    let mut parts = multer::Multipart::new(whole, boundary);
    let broken = |_| Failure::new(400, "Bad Request: unexpected end of request content");
    while let Some(part) = parts.next_field().await.map_err(broken)? {
        let Some(name) = part.name().map(str::to_owned) else {
            return Err(Failure::new(400, "Bad Request: field name in multipart/form-data not found"));
        };
        let file_name = part.file_name().map(str::to_owned);
        let content_type = part.content_type().map(ToString::to_string);
        let bytes = part.bytes().await.map_err(broken)?;
        if file_name.is_some() {
            params.attach(name, Upload { file_name, content_type, bytes });
        } else {
            let text = std::str::from_utf8(&bytes).map_err(|_| NOT_UTF_8)?;
            params.set(name, text.into());
        }
    }
    Ok(())
}

/// A stream of one item that never fails.
fn futures_like_once(bytes: Bytes) -> http_body_util::BodyDataStream<http_body_util::Full<Bytes>> {
    http_body_util::BodyDataStream::new(http_body_util::Full::new(bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_where_they_should() {
        let call = |token: &'static str, method: &'static str| Route::Call {
            token: token.into(),
            method: method.into(),
        };
        assert_eq!(route("/bot1:a/sendMessage"), call("1:a", "sendMessage"));
        assert_eq!(route("/bot1:a/test/GetMe"), call("1:a", "GetMe"));
        assert_eq!(route("/bot1%3Aa/"), call("1:a", ""));
        let file = Route::File { token: "1:a".into(), path: "photos/file 1.png".into() };
        assert_eq!(route("/file/bot1:a/photos%2Ffile%201.png"), file);
        assert_eq!(route("/__admin/journal"), Route::Admin("journal"));
        for nowhere in ["/", "/bot", "/bots", "/file/bot1:a", "/favicon.ico"] {
            assert_eq!(route(nowhere), Route::Nothing, "{nowhere}");
        }
    }

    #[test]
    fn a_query_is_decoded_once() {
        let params = of_query(Some("chat_id=-5&text=a%2Bb+c%26%D1%8F&disable=True")).expect("it is UTF-8");
        assert_eq!(params.text("text").as_deref(), Some("a+b c&я"));
        assert_eq!((params.integer("chat_id"), params.is_true("disable")), (Some(-5), true));
    }

    #[test]
    fn what_is_no_json_object_is_no_parameter() {
        for text in ["", "[1]", "{\"text\":", "nonsense", "\u{feff}{}"] {
            let mut params = Params::default();
            json(text.as_bytes(), &mut params).expect("it is UTF-8");
            assert_eq!(params, Params::default(), "{text}");
        }
        let mut params = of_query(Some("text=query&other=1")).expect("it is UTF-8");
        json(b"{\"text\":\"body\"}", &mut params).expect("it is UTF-8");
        assert_eq!((params.get("text"), params.get("other")), (Some(&json!("body")), Some(&json!("1"))));
    }

    /// As grammY and telegraf write it: no blanks, no quotes, no line break at the end (requirements of real clients).
    #[tokio::test]
    async fn multipart_is_read_as_real_clients_write_it() {
        let body = "--X\r\ncontent-disposition:form-data;name=\"photo\";filename=photo.png\r\n\
             content-type:image/png\r\n\r\nPNG\r\n--X\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n--X--";
        let mut params = Params::default();
        multipart(&mut params, "multipart/form-data; boundary=X", Bytes::from(body))
            .await
            .expect("it is sound");
        let upload = params.file("photo").expect("a file");
        assert_eq!((upload.file_name.as_deref(), &upload.bytes[..]), (Some("photo.png"), &b"PNG"[..]));
        assert_eq!(params.integer("chat_id"), Some(7));
    }

    #[tokio::test]
    async fn broken_multipart_gets_an_answer() {
        let read = async |content_type: &str, body: &'static str| {
            let read = multipart(&mut Params::default(), content_type, Bytes::from(body)).await;
            read.map_err(|failure| failure.description.into_owned())
        };
        let cut = "--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1";
        let end = Err("Bad Request: unexpected end of request content".to_owned());
        assert_eq!(read("multipart/form-data; boundary=X", cut).await, end);
        assert_eq!(read("multipart/form-data", cut).await, Err("Bad Request: boundary not found".to_owned()));
        let nameless = "--X\r\nContent-Disposition: form-data\r\n\r\n1\r\n--X--\r\n";
        let without = Err("Bad Request: field name in multipart/form-data not found".to_owned());
        assert_eq!(read("multipart/form-data; boundary=X", nameless).await, without);
    }
}
