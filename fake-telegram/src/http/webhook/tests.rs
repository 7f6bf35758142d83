use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::http::clock::Clock;
use crate::http::kinds::Kind;
use crate::http::updates::Change;

/// An inbox with a webhook at `url`, on a clock that is fast: a pause of 2 s is 2 ms.
fn inbox(url: &str) -> Arc<Inbox> {
    let inbox = Arc::new(Inbox::new(Arc::new(Clock::new(1_000, false))));
    let mut params = Params::default();
    params.set("url", url.into());
    params.set("secret_token", "s3cr3t".into());
    assert_eq!(inbox.set_webhook(&params), Ok(Change::Set));
    inbox
}

type Calls = mpsc::UnboundedReceiver<(String, Params)>;

/// Starts the deliveries; tells the calls that come back.
fn start(inbox: &Arc<Inbox>) -> (JoinHandle<()>, Calls) {
    let (calls, made) = mpsc::unbounded_channel();
    let call = move |method, params| {
        // Whoever has seen enough has dropped the other end.
        let _ = calls.send((method, params));
        std::future::ready(())
    };
    let client = client(false).expect("a client");
    (tokio::spawn(deliver(Arc::clone(inbox), client, false, call)), made)
}

fn message(chat: i64, text: &str) -> Value {
    json!({ "chat": { "id": chat }, "text": text })
}

/// A 200 that makes a call, so that the test knows when it is read.
fn calls_back() -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!({ "method": "sendMessage", "chat_id": 7, "text": "pong" }))
}

#[tokio::test]
async fn updates_arrive_in_order_with_the_secret_and_are_gone() {
    let server = MockServer::start().await;
    let expected = Mock::given(method("POST"))
        .and(path("/hook"))
        .and(header("x-telegram-bot-api-secret-token", "s3cr3t"))
        .and(header("content-type", "application/json"));
    expected.respond_with(calls_back()).mount(&server).await;
    let inbox = inbox(&format!("{}/hook", server.uri()));
    let (task, mut calls) = start(&inbox);
    for text in ["one", "two", "three"] {
        inbox.push(Kind::Message, message(7, text));
    }
    for _ in 0..3 {
        let (name, params) = calls.recv().await.expect("a call");
        assert_eq!((name.as_str(), params.integer("chat_id")), ("sendMessage", Some(7)));
        assert_eq!((params.text("text").as_deref(), params.get("method")), (Some("pong"), None));
    }
    let requests = server.received_requests().await.expect("recorded");
    let bodies: Vec<Value> = requests.iter().map(|request| request.body_json().expect("JSON")).collect();
    let update = |id: u32, text| json!({ "update_id": id, "message": message(7, text) });
    assert_eq!(bodies, [update(1, "one"), update(2, "two"), update(3, "three")]);
    assert_eq!(inbox.pending_and_dropped(), (0, 0));
    assert_eq!(inbox.delete_webhook(&Params::default()), Change::Deleted);
    task.await.expect("it ends with the webhook");
}

#[tokio::test]
async fn what_fails_is_sent_again_and_holds_up_its_chat_only() {
    let server = MockServer::start().await;
    let chat = |id: i64| body_partial_json(json!({ "message": { "chat": { "id": id } } }));
    Mock::given(chat(1)).respond_with(ResponseTemplate::new(500)).up_to_n_times(3).mount(&server).await;
    Mock::given(chat(1)).respond_with(calls_back()).mount(&server).await;
    Mock::given(chat(2)).respond_with(calls_back()).mount(&server).await;
    let inbox = inbox(&server.uri());
    let (_task, mut calls) = start(&inbox);
    inbox.push(Kind::Message, message(1, "first"));
    inbox.push(Kind::Message, message(1, "second"));
    inbox.push(Kind::Message, message(2, "other"));
    for _ in 0..3 {
        calls.recv().await.expect("a call");
    }
    let requests = server.received_requests().await.expect("recorded");
    let texts = |chat: i64| -> Vec<String> {
        let bodies = requests.iter().map(|request| request.body_json::<Value>().expect("JSON"));
        let of_chat = bodies.filter(|body| body["message"]["chat"]["id"] == chat);
        of_chat.map(|body| body["message"]["text"].as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(texts(1), ["first", "first", "first", "first", "second"]);
    assert_eq!(texts(2), ["other"]);
    let info = inbox.webhook_info();
    assert_eq!(info["pending_update_count"], 0);
    assert_eq!(info["last_error_message"], "Wrong response from the webhook: 500 Internal Server Error");
    assert!(info["last_error_date"].as_i64().is_some_and(|date| date > 1_500_000_000));
}

/// The time of tokio is paused: it is the next timer's whenever nothing else moves.
#[tokio::test(start_paused = true)]
async fn who_never_answers_is_waited_for_for_60_s() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("bound"));
    let client = client(false).expect("a client");
    let target = url.parse().expect("a URL");
    let post = Post { id: 1, target, secret_token: None, body: "{}".into() };
    let begun = tokio::time::Instant::now();
    let failure = send(&client, post).await.expect_err("nothing comes back");
    assert_eq!(failure.error, "Read timeout expired");
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn nobody_listens() {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = format!("http://localhost:{}/", free.local_addr().expect("bound").port());
    drop(free);
    let target = target.parse().expect("a URL");
    let post = Post { id: 1, target, secret_token: None, body: "{}".into() };
    let failure = send(&client(false).expect("a client"), post).await.expect_err("nobody is there");
    assert_eq!((failure.error.as_str(), failure.pause), ("Connection refused", None));
}

#[tokio::test]
async fn a_redirect_is_a_wrong_answer_and_a_pause_is_read() {
    let server = MockServer::start().await;
    let away = ResponseTemplate::new(302).insert_header("location", "http://192.0.2.1/");
    Mock::given(path("/away")).respond_with(away).mount(&server).await;
    let busy = ResponseTemplate::new(429).insert_header("retry-after", "7");
    Mock::given(path("/busy")).respond_with(busy).mount(&server).await;
    for (path, error, pause) in [
        ("away", "Wrong response from the webhook: 302 Found", None),
        ("busy", "Wrong response from the webhook: 429 Too Many Requests", Some(Duration::from_secs(7))),
    ] {
        let target = format!("{}/{path}", server.uri()).parse().expect("a URL");
        let post = Post { id: 1, target, secret_token: None, body: "{}".into() };
        let failure = send(&client(false).expect("a client"), post).await.expect_err("no 2xx");
        assert_eq!((failure.error.as_str(), failure.pause), (error, pause));
    }
}

#[tokio::test]
async fn the_outside_is_refused() {
    let inbox = inbox("https://example.com/hook");
    inbox.push(Kind::Message, message(1, "secret"));
    let (task, _calls) = start(&inbox);
    task.await.expect("it ends at once");
    let info = inbox.webhook_info();
    let text = "refused: not a loopback address; allow it with --allow-webhooks-anywhere";
    assert_eq!((&info["last_error_message"], &info["pending_update_count"]), (&json!(text), &json!(1)));
}

#[test]
fn loopback_is_this_host_under_any_name() {
    let loopback = |url: &str| is_loopback(&url.parse().expect("a URL"));
    for url in [
        "http://127.0.0.1/",
        "https://127.9.9.9:8443/",
        "http://[::1]:1/",
        "http://localhost/",
        "http://2130706433/",
    ] {
        assert!(loopback(url), "{url}");
    }
    for url in [
        "http://10.0.0.1/",
        "http://0.0.0.0/",
        "http://[::2]/",
        "http://localhost.example.com/",
        "http://127.0.0.1.nip.io/",
    ] {
        assert!(!loopback(url), "{url}");
    }
}

/// `WebhookActor.cpp`, handle.
#[tokio::test]
async fn an_answer_may_make_a_call_but_not_any() {
    let name = async |body: &str| call_in("application/json", body.into()).await.map(|(name, _)| name);
    assert_eq!(name(r#"{"method":"SendMessage","chat_id":1}"#).await.as_deref(), Some("SendMessage"));
    for body in [
        "",
        "ok",
        "[]",
        "{}",
        r#"{"method":7}"#,
        r#"{"method":""}"#,
        r#"{"method":"getMe"}"#,
        r#"{"method":"setWebhook"}"#,
        r#"{"method":"DELETEWEBHOOK"}"#,
        r#"{"method":"close"}"#,
        r#"{"method":"logOut"}"#,
    ] {
        assert_eq!(name(body).await, None, "{body}");
    }
}

/// As aiogram answers, and whoever writes forms; the open server reads answers as it reads requests.
#[tokio::test]
async fn a_call_may_be_multipart_or_a_form() {
    let multipart = "--X\r\nContent-Type: text/plain; charset=utf-8\r\n\
        Content-Disposition: form-data; name=\"method\"\r\n\r\nsendPhoto\r\n\
        --X\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n\
        --X\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\n\r\nPNG\r\n--X--\r\n";
    let read = async |content_type: &str, body: &str| call_in(content_type, body.into()).await;
    let (name, params) = read("multipart/form-data; boundary=X", multipart).await.expect("a call");
    assert_eq!((name.as_str(), params.integer("chat_id")), ("sendPhoto", Some(7)));
    assert_eq!(params.file("photo").map(|upload| &upload.bytes[..]), Some(&b"PNG"[..]));
    let form = "method=sendMessage&chat_id=7&text=a+b";
    let (name, params) = read("application/x-www-form-urlencoded", form).await.expect("a call");
    assert_eq!((name.as_str(), params.text("text").as_deref()), ("sendMessage", Some("a b")));
    assert_eq!(params.get("method"), None, "it is no parameter of its own");
    assert!(read("text/plain", form).await.is_none());
    assert!(read("multipart/form-data; boundary=Y", multipart).await.is_none());
}
