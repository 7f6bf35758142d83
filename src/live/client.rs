//! One call over HTTP, and where it failed if it did.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use fake_telegram::api::{Answer, Method};
use fake_telegram::time::Duration;
use hyper::body::{Body, Frame, SizeHint};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::answer::answer;
use super::clock::Clock;
use super::truth::{CALL, DRAW, Journal, TRUTH, Word};

/// More than any answer of the API to a send; of a longer one the rest is not read.
const BODY_MAX: usize = 1 << 20;

/// The HTTP client of one process: its connections are its own and are kept open.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    /// The base URL, without a slash at its end.
    base: String,
}

/// What is sent.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) token: &'a str,
    pub(super) method: Method,
    pub(super) body: Value,
    pub(super) idempotency: Option<u32>,
    /// The call's number in the run and the draw for its fault: for our own server.
    pub(super) told: Option<(u64, u32)>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) answer: Answer,
    pub(super) failure: Option<Failure>,
    /// What the server says really happened.
    pub(super) truth: Option<Word>,
}

/// Where a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection, or none in time.
    Unconnected,
    /// The connection ended before the request was sent.
    Unsent,
    /// The connection ended after it was sent.
    Lost,
    /// No whole answer in time, after it was sent.
    TimedOut,
}

impl Client {
    /// A client for the server at `base`, whose host is at `addresses`.
    ///
    /// # Errors
    /// If the system gives none.
    pub(super) fn new(
        base: &str,
        host: &str,
        addresses: &[SocketAddr],
        timeout: Duration,
    ) -> reqwest::Result<Self> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("floodlab/", env!("CARGO_PKG_VERSION")))
            .timeout(std::time::Duration::from_micros(timeout.as_micros()))
            .redirect(reqwest::redirect::Policy::none())
            // What was checked is what is called.
            .no_proxy()
            .resolve_to_addrs(host, addresses)
            .build()?;
        Ok(Self { http, base: base.to_owned() })
    }

    /// Makes a call.
    pub(super) async fn call(&self, call: Call<'_>, clock: &Clock) -> Heard {
        let left = Arc::new(AtomicBool::new(false));
        let url = format!("{}/bot{}/{}", self.base, call.token, name(call.method));
        let body = Sent { bytes: Some(call.body.to_string().into()), left: left.clone() };
        let mut request =
            self.http.post(url).header("content-type", "application/json").body(reqwest::Body::wrap(body));
        if let Some((number, draw)) = call.told {
            request = request.header(CALL, number).header(DRAW, draw);
        }
        if let Some(key) = call.idempotency {
            request = request.header("idempotency-key", key);
        }
        let failed = |error: &reqwest::Error, truth| {
            let failure = failure(error, left.load(Ordering::Relaxed));
            Heard { answer: failure.answer(), failure: Some(failure), truth }
        };
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => return failed(&error, None),
        };
        let truth = truth(response.headers());
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while body.len() < BODY_MAX {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return failed(&error, truth),
            }
        }
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Heard { answer: answer(call.method, status, retry_after, &body, clock), failure: None, truth }
    }

    /// What our own server's journal says of call `number`; `None` if it was not decided, did not arrive, or if the
    /// server does not answer.
    pub(super) async fn journal(&self, number: u64) -> Option<Word> {
        let url = format!("{}/__admin/journal?call={number}", self.base);
        let journal: Journal = self.http.get(url).send().await.ok()?.json().await.ok()?;
        journal.entries.into_iter().next()
    }

    /// The health of our own server; `None` if this is none.
    pub(super) async fn health(&self) -> reqwest::Result<Option<Value>> {
        let response = self.http.get(format!("{}/__admin/health", self.base)).send().await?;
        if response.status() != reqwest::StatusCode::OK {
            return Ok(None);
        }
        let health: Option<Value> = response.json().await.ok();
        Ok(health.filter(|health| health["name"] == "fake-telegram"))
    }

    /// Lets our own server forget what it counted.
    pub(super) async fn reset(&self) -> reqwest::Result<()> {
        self.http.post(format!("{}/__admin/reset", self.base)).send().await?.error_for_status().map(drop)
    }
}

impl Failure {
    const fn answer(self) -> Answer {
        match self {
            Self::Unconnected | Self::Unsent => Answer::Unreachable,
            Self::Lost => Answer::ConnectionLost,
            Self::TimedOut => Answer::TimedOut,
        }
    }
}

/// Where a call failed; `left`: the request was being sent.
fn failure(error: &reqwest::Error, left: bool) -> Failure {
    match (left, error.is_timeout()) {
        (true, true) => Failure::TimedOut,
        (true, false) => Failure::Lost,
        // A connection that is there takes the request at once, so this waited for one.
        (false, true) => Failure::Unconnected,
        (false, false) if error.is_connect() => Failure::Unconnected,
        (false, false) => Failure::Unsent,
    }
}

fn truth(headers: &HeaderMap) -> Option<Word> {
    serde_json::from_slice(headers.get(TRUTH)?.as_bytes()).ok()
}

/// Its name in the path.
const fn name(method: Method) -> &'static str {
    match method {
        Method::SendMessage => "sendMessage",
        Method::SendPhoto => "sendPhoto",
        Method::EditMessageText => "editMessageText",
        Method::ForwardMessage => "forwardMessage",
        Method::SendChatAction => "sendChatAction",
        Method::EditForumTopic => "editForumTopic",
        Method::GetMe => "getMe",
        Method::Search => "search",
        Method::GetPrice => "getPrice",
    }
}

/// A request's body, which notes that it is taken. hyper takes it in one go with the head of the request, and then writes
/// both: before, nothing has left.
struct Sent {
    bytes: Option<Bytes>,
    left: Arc<AtomicBool>,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.bytes.take();
        self.left.store(true, Ordering::Relaxed);
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use serde_json::json;
    use tokio::runtime::Builder;
    use tokio::task::yield_now;

    use super::*;

    /// The connection is made and ended before the client gets to write: nothing of the call has left.
    #[test]
    fn a_connection_that_ends_before_the_request_leaves_it_unsent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let base = format!("http://{address}");
        let client = Client::new(&base, "127.0.0.1", &[address], Duration::from_secs(5)).expect("a client");
        let server = thread::spawn(move || drop(listener.accept().expect("a connection")));
        let call = Call {
            token: "1:a",
            method: Method::SendMessage,
            body: json!({}),
            idempotency: None,
            told: None,
        };
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let heard = runtime.block_on(async {
            let clock = Clock::start();
            // The kernel connects while this thread does nothing else.
            let held_up = async {
                for _ in 0..3 {
                    #[expect(clippy::disallowed_methods, reason = "a machine that is busy")]
                    thread::sleep(std::time::Duration::from_millis(50));
                    yield_now().await;
                }
            };
            tokio::join!(client.call(call, &clock), held_up).0
        });
        server.join().expect("it accepts");
        assert_eq!((heard.failure, heard.answer), (Some(Failure::Unsent), Answer::Unreachable));
    }
}
