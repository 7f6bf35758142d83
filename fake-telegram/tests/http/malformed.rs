//! What is no request, or a strange one. The server says so in its own words, or closes without any, and goes on.

use fake_telegram::http::options::Options;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::fake::{Answer, BOT, Fake, Raw};

fn post(content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /bot{BOT}/sendMessage HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// One response, which is a failure of the API.
fn failure(raw: &Raw) -> (u16, String) {
    let statuses = raw.statuses();
    let body: Value = serde_json::from_str(&raw.body()).unwrap_or_else(|_| panic!("{raw:?}"));
    assert_eq!((&body["ok"], &body["error_code"]), (&json!(false), &json!(statuses[0])));
    (statuses[0], body["description"].as_str().expect("a description").to_owned())
}

/// As the open server has it: a status and no body, then it closes (telegram.md 2.3, 413).
fn bare(raw: &Raw, statuses: &[u16]) {
    let got = raw.statuses();
    assert!(
        got.len() == 1 && statuses.contains(&got[0]),
        "{statuses:?}: {}",
        String::from_utf8_lossy(&raw.0)
    );
    assert_eq!(raw.body(), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_http_gets_a_status_and_nothing_else() {
    let fake = Fake::frozen();
    let long = "a".repeat(70_000);
    let header = "a".repeat(1_000_000);
    let many = "X-Many: 1\r\n".repeat(300);
    for (what, bytes, statuses) in [
        ("words", "good morning, server\r\n\r\n".to_owned(), &[400][..]),
        ("a version of the future", "GET / HTTP/9.9\r\n\r\n".to_owned(), &[400]),
        ("a control character", "GET /\u{1} HTTP/1.1\r\n\r\n".to_owned(), &[400]),
        ("a header without a name", "GET / HTTP/1.1\r\n: x\r\n\r\n".to_owned(), &[400]),
        ("a negative length", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(), &[400]),
        ("a length in words", "POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n".to_owned(), &[400]),
        (
            "a length of 2^70",
            "POST / HTTP/1.1\r\nContent-Length: 1180591620717411303424\r\n\r\n".to_owned(),
            &[400],
        ),
        (
            "two lengths",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_owned(),
            &[400],
        ),
        ("an unknown coding", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(), &[400]),
        ("a long path", format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"), &[414]),
        ("a long header", format!("GET / HTTP/1.1\r\nX-Long: {header}\r\n\r\n"), &[431]),
        ("many headers", format!("GET / HTTP/1.1\r\n{many}\r\n"), &[431]),
    ] {
        let raw = fake.raw(bytes.as_bytes()).await;
        assert!(!raw.0.is_empty(), "{what}");
        bare(&raw, statuses);
        fake.health().await;
    }
    // TLS where there is none, and nothing at all.
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\xff\xfe\xfd";
    for bytes in [&hello[..], b"", b"\0\0\0\0", b"GET"] {
        let raw = fake.cut(bytes).await;
        assert!(raw.body().is_empty(), "{raw:?}");
        fake.health().await;
    }
}

/// telebot writes texts of 4,096 letters into the query: some 37 kB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_query_is_no_long_path() {
    let fake = Fake::frozen();
    let text = "%D1%8F".repeat(4_096);
    let get = fake.client().get(format!("{}/bot{BOT}/sendMessage?chat_id=7001&text={text}", fake.base()));
    let answer = Answer::of(get.send().await.expect("an answer")).await;
    assert_eq!(answer.result()["text"], "я".repeat(4_096));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_may_be_too_big_and_is_not_read_then() {
    let fake = Fake::with(Options { body_max: 1_000, ..Options::default() });
    let too_large = (413, "Request Entity Too Large".to_owned());
    let raw = fake.raw(&post("application/json", &[b' '; 1_001])).await;
    assert_eq!(failure(&raw), too_large);
    // Nobody waits for what was only announced.
    let announced =
        format!("POST /bot{BOT}/sendDocument HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
    assert_eq!(failure(&fake.raw(announced.as_bytes()).await), too_large);
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1_000));
    let chunked = format!(
        "POST /bot{BOT}/sendDocument HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    assert_eq!(failure(&fake.raw(chunked.as_bytes()).await), too_large);
    let admin = "POST /__admin/users HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n";
    assert_eq!(fake.raw(admin.as_bytes()).await.statuses(), [413]);
    fake.health().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_ends_too_early_is_an_unexpected_end() {
    let fake = Fake::frozen();
    let json = post("application/json", br#"{"chat_id":7001,"text":"hello"}"#);
    // A client that is gone gets nothing, and nothing is sent for it.
    fake.cut(&json[..json.len() - 5]).await;
    let cut = format!(
        "POST /bot{BOT}/sendMessage HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"
    );
    let raw = fake.raw(cut.as_bytes()).await;
    assert_eq!(failure(&raw), (400, "Bad Request: unexpected end of request content".to_owned()));
    assert_eq!(fake.look("state").await["calls"], 0);
    assert_eq!(fake.raw(&json).await.statuses(), [200]);
}

/// What cannot be read is no parameter (td `HttpReader.cpp` passes errors of JSON over).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_bodies_are_answered_as_if_nothing_was_said() {
    let fake = Fake::frozen();
    let empty = (400, "Bad Request: message text is empty".to_owned());
    let deep = "[".repeat(100_000);
    let deep_text = format!("{{\"chat_id\":7001,\"text\":{deep}");
    for body in ["", "{", "[1,2]", "\"text\"", "nonsense", "{\"chat_id\":7001,\"text\":", &deep, &deep_text] {
        let raw = fake.raw(&post("application/json", body.as_bytes())).await;
        assert_eq!(failure(&raw), empty, "{}", &body[..body.len().min(40)]);
    }
    for content_type in ["text/plain", "application/octet-stream", "nonsense", ""] {
        let raw = fake.raw(&post(content_type, b"chat_id=7001&text=x")).await;
        assert_eq!(failure(&raw), empty, "{content_type}");
    }
    fake.health().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_multipart_gets_an_answer() {
    let fake = Fake::frozen();
    let end = "Bad Request: unexpected end of request content";
    for (content_type, body, description) in [
        ("multipart/form-data", "", "Bad Request: boundary not found"),
        (
            "multipart/form-data; boundary=X",
            "--X\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhi",
            end,
        ),
        (
            "multipart/form-data; boundary=X",
            "--X\r\nContent-Disposition: form-data\r\n\r\nhi\r\n--X--\r\n",
            "Bad Request: field name in multipart/form-data not found",
        ),
    ] {
        let raw = fake.raw(&post(content_type, body.as_bytes())).await;
        assert_eq!(failure(&raw), (400, description.to_owned()), "{content_type} {body}");
    }
    for body in [&b"--X"[..], b"\xff\xfe\0", b"--Y\r\n\r\n--Y--", b"--X\r\n\r\n\r\n--X--"] {
        let (status, _) = failure(&fake.raw(&post("multipart/form-data; boundary=X", body)).await);
        assert_eq!(status, 400);
    }
    fake.health().await;
}

/// "curl -d" of broken text gets these words (many reports; td `clean_input_string`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_are_utf_8() {
    let fake = Fake::frozen();
    let expected = (400, "Bad Request: strings must be encoded in UTF-8".to_owned());
    let json = [br#"{"chat_id":7001,"text":""#, &b"\xff\xfe"[..], br#""}"#].concat();
    let part = "--X\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7001\r\n--X\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n";
    let multipart = [part.as_bytes(), b"a\xff\r\n--X--\r\n"].concat();
    for (content_type, body) in [
        ("application/json", &json[..]),
        ("application/json", br#"{"chat_id":7001,"text":"\ud83d"}"#),
        ("application/json", br#"{"chat_id":7001,"text":"\ude00 x"}"#),
        ("application/x-www-form-urlencoded", b"chat_id=7001&text=%ff%fe"),
        ("application/x-www-form-urlencoded", b"chat_id=7001&text=\xc3\x28"),
        ("multipart/form-data; boundary=X", &multipart),
    ] {
        let raw = fake.raw(&post(content_type, body)).await;
        assert_eq!(failure(&raw), expected, "{content_type} {}", String::from_utf8_lossy(body));
    }
    let query = format!("GET /bot{BOT}/sendMessage?chat_id=7001&text=%ff HTTP/1.0\r\n\r\n");
    assert_eq!(failure(&fake.raw(query.as_bytes()).await), expected);
    let emoji = br#"{"chat_id":7001,"text":"\ud83d\ude00"}"#;
    let raw = fake.raw(&post("application/json", emoji)).await;
    assert_eq!((raw.statuses(), raw.body().contains("😀")), (vec![200], true), "{raw:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_is_too_large() {
    let fake = Fake::frozen();
    // An id beyond 64 bits is nobody's.
    for chat in ["99999999999999999999", "-99999999999999999999", "9223372036854775808"] {
        let body = format!(r#"{{"chat_id":{chat},"text":"x"}}"#);
        let raw = fake.raw(&post("application/json", body.as_bytes())).await;
        assert_eq!(failure(&raw), (400, "Bad Request: chat not found".to_owned()), "{chat}");
        let form = format!("chat_id={chat}&text=x");
        let raw = fake.raw(&post("application/x-www-form-urlencoded", form.as_bytes())).await;
        assert_eq!(failure(&raw), (400, "Bad Request: chat not found".to_owned()), "{chat}");
    }
    for chat in [i64::MIN, i64::MAX, 0, -1, -1_000_000_000_000, -1_000_000_000_001] {
        let answer = fake.call("sendMessage", json!({ "chat_id": chat, "text": "x" })).await;
        assert!(matches!(answer.status, 200 | 400), "{chat}: {}", answer.text);
    }
    let huge = i64::MAX;
    for (method, params) in [
        ("getUpdates", json!({ "offset": huge, "limit": huge })),
        ("getUpdates", json!({ "offset": -huge, "limit": -huge, "timeout": -huge })),
        ("editMessageText", json!({ "chat_id": 7001, "message_id": huge, "text": "x" })),
        ("sendMessage", json!({ "chat_id": 7001, "text": "x", "message_thread_id": huge })),
        ("sendMessage", json!({ "chat_id": 7001, "text": "x", "reply_to_message_id": i64::MIN })),
        ("sendDice", json!({ "chat_id": 7001, "emoji": huge })),
        ("sendLocation", json!({ "chat_id": 7001, "latitude": 1e308, "longitude": -1e308 })),
        ("setWebhook", json!({ "url": "http://127.0.0.1:9/", "max_connections": huge })),
        ("getChatMember", json!({ "chat_id": 7001, "user_id": huge })),
        ("deleteMessages", json!({ "chat_id": 7001, "message_ids": [huge, i64::MIN] })),
    ] {
        let answer = fake.call(method, params.clone()).await;
        assert!(answer.body["ok"].is_boolean() && answer.status < 500, "{method} {params}: {}", answer.text);
    }
    let far = fake.admin(reqwest::Method::POST, "clock", Some(json!({ "advance": "5000000h" }))).await;
    assert_eq!(far.status, 200);
    for _ in 0..10 {
        fake.admin(reqwest::Method::POST, "clock", Some(json!({ "advance": "5000000000h" }))).await;
    }
    for _ in 0..7 {
        let answer = fake.call("sendMessage", json!({ "chat_id": 7002, "text": "x" })).await;
        assert!(matches!(answer.status, 200 | 429), "{}", answer.text);
    }
    fake.look("verdict").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_pipelined_and_chunked_requests_are_requests() {
    let fake = Fake::frozen();
    let old = fake.raw(format!("GET /bot{BOT}/getMe HTTP/1.0\r\n\r\n").as_bytes()).await;
    assert_eq!(old.statuses(), [200], "and the connection is closed");
    assert!(old.body().starts_with(r#"{"ok":true,"result":{"id":110000"#), "{}", old.body());
    // Three at once, answered in order.
    let send = |text: &str, end: &str| {
        format!("GET /bot{BOT}/sendMessage?chat_id=7001&text={text} HTTP/1.1\r\nHost: x\r\n{end}\r\n")
    };
    let all = send("one", "") + &send("two", "") + &send("three", "Connection: close\r\n");
    let raw = fake.raw(all.as_bytes()).await;
    assert_eq!(raw.statuses(), [200; 3]);
    let text = String::from_utf8_lossy(&raw.0).into_owned();
    let at = |word: &str| text.find(&format!("\"text\":\"{word}\"")).expect(word);
    assert!(at("one") < at("two") && at("two") < at("three"));
    // Byte by byte, in chunks.
    let chunked = format!(
        "POST /bot{BOT}/sendMessage HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut bytes = chunked.into_bytes();
    for byte in br#"{"chat_id":7001,"text":"chunks"}"# {
        bytes.extend_from_slice(&[b'1', b'\r', b'\n', *byte, b'\r', b'\n']);
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    let raw = fake.raw(&bytes).await;
    assert_eq!((raw.statuses(), raw.body().contains("chunks")), (vec![200], true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_told_to_go_on_with_its_body() {
    let fake = Fake::frozen();
    let body = br#"{"chat_id":7001,"text":"x"}"#;
    let head = format!(
        "POST /bot{BOT}/sendMessage HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = fake.connect().await;
    stream.write_all(head.as_bytes()).await.expect("written");
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.expect("an answer");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body).await.expect("written");
    assert_eq!(crate::fake::read(stream).await.statuses(), [200]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_verbs_are_not_allowed() {
    let fake = Fake::frozen();
    for verb in ["PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
        let request = format!("{verb} /bot{BOT}/getMe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_eq!(failure(&fake.raw(request.as_bytes()).await).0, 405, "{verb}");
    }
    let encoded = format!(
        "POST /bot{BOT}/getMe HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: br\r\nContent-Length: 0\r\n\r\n"
    );
    assert_eq!(failure(&fake.raw(encoded.as_bytes()).await).0, 415);
}

/// The text of the open server (`HttpConnection.cpp`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_it_for_a_proxy_is_told() {
    let fake = Fake::frozen();
    let request = format!("GET http://127.0.0.1/bot{BOT}/getMe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let raw = fake.raw(request.as_bytes()).await;
    assert_eq!(failure(&raw), (404, "Not Found: absolute URI is specified in the Request-Line".to_owned()));
    fake.health().await;
}
