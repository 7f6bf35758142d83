//! A server in this process, and those who talk to it.

use std::time::Duration;

use fake_telegram::http::options::Options;
use fake_telegram::http::server::Server;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The bot of tests that need only one.
pub(crate) const BOT: &str = "110000:AAtest";

/// A server on a free port of its own.
pub(crate) struct Fake {
    server: Server,
    client: reqwest::Client,
}

/// An answer of the Bot API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

/// What was read from a raw connection until it ended.
#[derive(Debug)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Fake {
    /// As `fake-telegram` without flags is, but for its clock, which stands.
    pub(crate) fn frozen() -> Self {
        Self::with(Options { frozen: true, ..Options::default() })
    }

    /// On a clock that runs.
    pub(crate) fn running() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let server = Server::start(Options { addr: ([127, 0, 0, 1], 0).into(), ..options });
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build();
        Self { server: server.expect("a free port"), client: client.expect("a client") }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.server.addr())
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        tokio::task::spawn_blocking(move || self.server.stop()).await.expect("it ends well");
    }

    /// `method` by [`BOT`], with JSON.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Answer {
        self.call_by(BOT, method, params).await
    }

    pub(crate) async fn call_by(&self, token: &str, method: &str, params: Value) -> Answer {
        let request = self.client.post(format!("{}/bot{token}/{method}", self.base())).json(&params);
        Answer::of(request.send().await.expect("an answer")).await
    }

    /// Sends a text; it must arrive. Its `message_id`.
    pub(crate) async fn send(&self, chat: i64, text: &str) -> i64 {
        let answer = self.call("sendMessage", json!({ "chat_id": chat, "text": text })).await;
        answer.result()["message_id"].as_i64().expect("an id")
    }

    /// Sends a text; it must be refused. For how long.
    pub(crate) async fn refused(&self, chat: i64) -> u64 {
        self.call("sendMessage", json!({ "chat_id": chat, "text": "x" })).await.retry_after()
    }

    /// GET from the admin API.
    pub(crate) async fn look(&self, path: &str) -> Value {
        self.admin(Method::GET, path, None).await.ok()
    }

    /// POST to the admin API.
    pub(crate) async fn tell(&self, path: &str, body: Value) -> Value {
        self.admin(Method::POST, path, Some(body)).await.ok()
    }

    pub(crate) async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.client.request(method, format!("{}/__admin/{path}", self.base()));
        if let Some(body) = body {
            request = request.json(&body);
        }
        Answer::of(request.send().await.expect("an answer")).await
    }

    /// Moves the clock.
    pub(crate) async fn advance(&self, by: &str) {
        self.tell("clock", json!({ "advance": by })).await;
    }

    pub(crate) async fn health(&self) {
        assert_eq!(self.look("health").await["name"], "fake-telegram");
    }

    /// Waits until the admin state is as `is` wants it.
    #[expect(clippy::disallowed_methods, reason = "what others do takes real time")]
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2_000 {
            let state = self.look("state").await;
            if is(&state) {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("never: {what}");
    }

    /// A connection.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.addr()).await.expect("it listens")
    }

    /// Writes bytes, and hangs up; everything that comes back.
    pub(crate) async fn cut(&self, bytes: &[u8]) -> Raw {
        let mut stream = self.connect().await;
        // Whoever is refused may find the connection closed before all is written.
        drop(stream.write_all(bytes).await);
        drop(stream.shutdown().await);
        read(stream).await
    }

    /// Writes bytes after which the server closes the connection; everything that comes back.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Raw {
        let mut stream = self.connect().await;
        drop(stream.write_all(bytes).await);
        read(stream).await
    }
}

/// Reads to the end, for no longer than a test can take.
pub(crate) async fn read(mut stream: TcpStream) -> Raw {
    let mut all = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut all)).await;
    // A reset is an end, too.
    drop(read.expect("the server ends the connection"));
    Raw(all)
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.expect("a whole body");
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status, headers, text, body }
    }

    /// The result; the call must have succeeded.
    pub(crate) fn result(&self) -> &Value {
        assert_eq!((self.status, &self.body["ok"]), (200, &json!(true)), "{}", self.text);
        &self.body["result"]
    }

    /// The body of an admin answer, which must be good.
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.body
    }

    /// Status and description; the call must have failed, and in the API's way.
    pub(crate) fn failure(&self) -> (u16, &str) {
        assert_eq!((&self.body["ok"], &self.body["error_code"]), (&json!(false), &json!(self.status)));
        (self.status, self.body["description"].as_str().expect("a description"))
    }

    /// For how long it is refused, as text, parameter and header have it.
    pub(crate) fn retry_after(&self) -> u64 {
        let seconds = self.body["parameters"]["retry_after"].as_u64().expect("a whole number");
        let expected = format!(
            r#"{{"ok":false,"error_code":429,"description":"Too Many Requests: retry after {seconds}","parameters":{{"retry_after":{seconds}}}}}"#
        );
        assert_eq!((self.status, self.text.as_str()), (429, expected.as_str()));
        assert_eq!(self.headers["retry-after"], seconds.to_string().as_str());
        seconds
    }
}

impl Raw {
    /// The statuses of the responses in it.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        let text = String::from_utf8_lossy(&self.0);
        let after = text.split("HTTP/1.").skip(1);
        after.filter_map(|rest| rest.get(2..5)?.parse().ok()).collect()
    }

    /// The body of the last response.
    pub(crate) fn body(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        text.rsplit_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned())
    }
}
