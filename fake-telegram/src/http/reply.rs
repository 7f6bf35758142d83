//! Writes answers (`telegram.md` 2.2).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::failure::Failure;
use super::written::Written;

/// An answer, before it is a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status, which is the error code.
    pub status: u16,
    /// What is in it.
    pub body: Bytes,
    /// What kind of thing that is.
    pub content_type: &'static str,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// What happened in truth, for a client that asked: the header `x-floodlab-truth`.
    pub truth: Option<String>,
    /// Whether there is no answer at all: the connection is cut.
    pub is_cut: bool,
}

/// Cuts the connection.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut on purpose")]
pub struct Cut;

/// The header with which a client asks for the truth about its call, and gives it a number.
pub const CALL: HeaderName = HeaderName::from_static("x-floodlab-call");
/// The header with which a client brings its own draw for faults.
pub const DRAW: HeaderName = HeaderName::from_static("x-floodlab-draw");
/// The header with which a client says that calls are the same call, where the profile knows of that.
pub const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header that says what happened in truth.
pub const TRUTH: HeaderName = HeaderName::from_static("x-floodlab-truth");

#[derive(Serialize)]
struct Envelope<'a, T> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Parameters>,
}

/// What an error says beside its text: exactly one of these (teloxide's type allows no more).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Parameters {
    RetryAfter(u32),
    MigrateToChatId(i64),
}

impl Reply {
    /// 200 with a result.
    pub fn ok(result: impl Serialize) -> Self {
        Self::ok_with(result, None)
    }

    /// 200 with a result that is written already.
    pub fn written(result: Written) -> Self {
        Self::raw(200, JSON, result.into_body())
    }

    /// 200 with a result and, as `setWebhook` has it, a description.
    pub fn ok_with(result: impl Serialize, description: Option<&str>) -> Self {
        let (ok, result) = (true, Some(result));
        Self::envelope(200, &Envelope { ok, result, error_code: None, description, parameters: None })
    }

    /// An error.
    pub fn failure(failure: &Failure) -> Self {
        let parameters = failure.retry_after.map(Parameters::RetryAfter);
        let retry_after = failure.retry_after.map(|seconds| seconds.to_string());
        Self { retry_after, ..Self::error(failure.code, &failure.description, parameters) }
    }

    /// 400: the group is a supergroup now.
    pub fn migrated(to: i64) -> Self {
        let text = "Bad Request: group chat was upgraded to a supergroup chat";
        Self::error(400, text, Some(Parameters::MigrateToChatId(to)))
    }

    /// No answer.
    pub fn cut() -> Self {
        Self { is_cut: true, ..Self::raw(500, "", Bytes::new()) }
    }

    /// Any body.
    pub fn raw(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), content_type, retry_after: None, truth: None, is_cut: false }
    }

    /// JSON that is no answer of the Bot API.
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).unwrap_or_default();
        Self::raw(status, JSON, body)
    }

    fn error(code: u16, description: &str, parameters: Option<Parameters>) -> Self {
        let (error_code, description) = (Some(code), Some(description));
        let result = None::<()>;
        Self::envelope(code, &Envelope { ok: false, result, error_code, description, parameters })
    }

    fn envelope(status: u16, envelope: &Envelope<'_, impl Serialize>) -> Self {
        Self::json(status, envelope)
    }

    /// The response.
    ///
    /// # Errors
    /// If there is to be none.
    pub fn into_response(self, closes: bool) -> Result<Response<Pieces>, Cut> {
        if self.is_cut {
            return Err(Cut);
        }
        let mut response = Response::new(Pieces(self.body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        let set = [(RETRY_AFTER, self.retry_after), (TRUTH, self.truth)];
        for (name, value) in set.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        if closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }
}

/// A body in pieces. hyper copies what it writes in one go with the head, and asks for a piece only when it has room: so
/// a download does not lie twice in memory, nor stay with its connection.
#[derive(Debug)]
pub struct Pieces(Bytes);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = PIECE.min(self.0.len());
        Poll::Ready((piece > 0).then(|| Ok(Frame::data(self.0.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// More than any answer but downloads, journals and full queues of updates.
const PIECE: usize = 64 << 10;

/// The media type of answers.
pub const JSON: &str = "application/json";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: &Reply) -> &str {
        std::str::from_utf8(&reply.body).expect("JSON")
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_whole() {
        use http_body_util::BodyExt;

        for length in [0, 1, PIECE, 3 * PIECE + 1] {
            let bytes: Bytes = (0..length).map(|index| index as u8).collect();
            let body = Pieces(bytes.clone());
            assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(length as u64), length == 0));
            assert_eq!(body.collect().await.expect("it is there").to_bytes(), bytes);
        }
    }

    /// The bodies of `telegram.md` 2.2, word for word.
    #[test]
    fn envelopes_are_those_of_the_api() {
        assert_eq!(text(&Reply::ok(true)), r#"{"ok":true,"result":true}"#);
        assert_eq!(Reply::written(Written::new(&[1, 2])), Reply::ok([1, 2]));
        let described = Reply::ok_with(true, Some("Webhook was set"));
        assert_eq!(text(&described), r#"{"ok":true,"result":true,"description":"Webhook was set"}"#);
        let refused = Reply::failure(&Failure::retry_after(35));
        assert_eq!(
            text(&refused),
            r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 35","parameters":{"retry_after":35}}"#
        );
        assert_eq!((refused.status, refused.retry_after.as_deref()), (429, Some("35")));
        assert_eq!(
            text(&Reply::migrated(-1_001_234_567_890)),
            r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}"#
        );
    }
}
