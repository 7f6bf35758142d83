//! Deliveries to a bot's webhook.

use std::error::Error;
use std::future::Future;
use std::io;
use std::sync::Arc;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::http::inbox::Inbox;
use crate::http::params::Params;
use crate::http::request;
use crate::http::updates::delivery::{Next, Post};
use crate::time::Duration;

/// A client for deliveries. It goes where it is told and nowhere else: no redirects, no proxies, and `localhost` is this
/// host. A certificate proves nothing on the loopback, so any will do, unless updates may go `anywhere`.
///
/// # Errors
/// If the host has no sound TLS set-up.
pub fn client(anywhere: bool) -> reqwest::Result<Client> {
    let loopback = [([127, 0, 0, 1], 0).into(), ([0, 0, 0, 0, 0, 0, 0, 1], 0).into()];
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .resolve_to_addrs("localhost", &loopback)
        .danger_accept_invalid_certs(!anywhere)
        .build()
}

/// Carries the updates of `inbox` to its webhook, until that is removed or another one is set. It is for the webhook that
/// is set when this is called, not when it is first polled; without one it is done at once.
///
/// An update is there when any 2xx comes back; otherwise it is sent again ([`Updates::failed`]). A call in the body of a 2xx
/// is made through `call`, by the name of its method as the bot wrote it; what comes of it nobody learns (`telegram.md` 2.4).
///
/// Unless they may go `anywhere`, deliveries go to loopback addresses only, and any other target is refused in the
/// bot's `getWebhookInfo`: this server never talks to the outside by itself.
///
/// [`Updates::failed`]: crate::http::updates::Updates::failed
pub fn deliver<C, F>(
    inbox: Arc<Inbox>,
    client: Client,
    anywhere: bool,
    call: C,
) -> impl Future<Output = ()> + Send + 'static
where
    C: Fn(String, Params) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let target = inbox.updates().hook_target().map(|(generation, url)| (generation, is_loopback(url)));
    async move {
        let Some((generation, loopback)) = target else { return };
        if !loopback && !anywhere {
            let now = inbox.clock().now();
            return inbox.updates().refuse(now, generation, NOT_LOOPBACK.to_owned());
        }
        let call = Arc::new(call);
        let mut changed = inbox.changes();
        let mut flights = JoinSet::new();
        loop {
            changed.mark_unchanged();
            let next = inbox.updates().next_post(inbox.clock().now(), generation);
            let wake_at = match next {
                Next::Over => return,
                Next::Post(post) => {
                    flights.spawn(fly(
                        Arc::clone(&inbox),
                        client.clone(),
                        generation,
                        post,
                        Arc::clone(&call),
                    ));
                    continue;
                }
                Next::Wait(wake_at) => wake_at,
            };
            let wake = async {
                match wake_at {
                    Some(at) => inbox.clock().sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wake => {}
                // The inbox, and with it the sender, lives as long as this.
                _ = changed.changed() => {}
                // Whatever has landed has told the inbox; `None` is never polled again.
                Some(_) = flights.join_next() => {}
            }
        }
    }
}

/// One delivery: there and back.
async fn fly<C, F>(inbox: Arc<Inbox>, client: Client, generation: u64, post: Post, call: Arc<C>)
where
    C: Fn(String, Params) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let id = post.id;
    match send(&client, post).await {
        Ok(reply) => {
            inbox.updates().delivered(generation, id);
            let made = match reply {
                Some(Reply { content_type, body }) => call_in(&content_type, body).await,
                None => None,
            };
            if let Some((method, params)) = made {
                // Once begun it goes on, whatever happens to the webhook.
                tokio::spawn(call(method, params));
            }
        }
        Err(Undelivered { error, pause }) => {
            let now = inbox.clock().now();
            inbox.updates().failed(now, generation, id, error, pause);
        }
    }
}

/// Why an update has not arrived, and the pause that the bot asks for.
struct Undelivered {
    error: String,
    pause: Option<Duration>,
}

/// What a bot answers to an update.
#[derive(Debug)]
struct Reply {
    content_type: String,
    body: Vec<u8>,
}

/// Sends an update. Gives back the answer, unless it is too long to be a call.
async fn send(client: &Client, post: Post) -> Result<Option<Reply>, Undelivered> {
    let request = client.post(post.target).timeout(ANSWERED_WITHIN);
    let mut request = request.header("content-type", "application/json").body(post.body);
    if let Some(secret) = post.secret_token {
        request = request.header("x-telegram-bot-api-secret-token", secret);
    }
    let broken = |error: reqwest::Error| Undelivered { error: why(&error), pause: None };
    let response = request.send().await.map_err(broken)?;
    let status = response.status();
    if !status.is_success() {
        return Err(Undelivered { error: wrong(status), pause: pause_asked(&response) });
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let body = body(response).await.map_err(broken)?;
    Ok(body.map(|body| Reply { content_type, body }))
}

async fn body(mut response: Response) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > REPLY_MAX {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The call in a body, which is read as that of a request is: JSON, a form or multipart with a `method` that may be called
/// in this way. These may not: what sets or removes the webhook, what ends the bot, and what only asks
/// (tdlib/telegram-bot-api `WebhookActor.cpp`, handle).
async fn call_in(content_type: &str, body: Vec<u8>) -> Option<(String, Params)> {
    let mut params = Params::default();
    request::read(&mut params, content_type, body.into()).await.ok()?;
    let Some(Value::String(method)) = params.take("method") else { return None };
    let name = method.to_ascii_lowercase();
    let barred = matches!(name.as_str(), "" | "setwebhook" | "deletewebhook" | "close" | "logout");
    if barred || name.starts_with("get") {
        return None;
    }
    Some((method, params))
}

/// Whether a URL leads nowhere but to this host. Names are not resolved: `localhost` is the loopback by definition
/// (RFC 6761, 6.3), and no other is.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or_else(|_| host == "localhost", |address| address.is_loopback())
}

/// In seconds; dates are not read.
fn pause_asked(response: &Response) -> Option<Duration> {
    let seconds: u32 = response.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

fn wrong(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    format!("Wrong response from the webhook: {} {reason}", status.as_u16())
}

/// The texts that bots find in `last_error_message`.
fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "Read timeout expired".to_owned();
    }
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let refused = causes.any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    });
    let text = match refused {
        true => "Connection refused",
        false if error.is_connect() => "Can't connect to the webhook",
        false => "Webhook connection closed",
    };
    text.to_owned()
}

/// telegram.md 1.11.
const ANSWERED_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
/// A longer answer is none that makes a call: 1 MiB, some hundred times the longest text.
const REPLY_MAX: usize = 1 << 20;
const NOT_LOOPBACK: &str = "refused: not a loopback address; allow it with --allow-webhooks-anywhere";

#[cfg(test)]
mod tests;
