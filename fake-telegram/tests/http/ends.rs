//! How it ends.

use std::time::Duration;

use fake_telegram::http::options::Options;
use fake_telegram::profile::Profile;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::fake::{Fake, read};

/// A server that holds the 21st message into a chat.
async fn holding() -> Fake {
    let profile = Profile::telegram_observed();
    let fake = Fake::with(Options { frozen: true, profile, ..Options::default() });
    for _ in 0..20 {
        fake.send(7001, "x").await;
    }
    fake
}

/// telegram.md 3.4: whoever waits when the server ends is told to come back in 5 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_calls_are_told_to_come_back_and_polls_are_over() {
    let fake = holding().await;
    let (held, poll, ()) = tokio::join!(
        fake.call("sendMessage", json!({ "chat_id": 7001, "text": "held" })),
        fake.call("getUpdates", json!({ "timeout": 50 })),
        async {
            let state = fake.until("two wait", |state| state["bots"][0]["in_flight"] == 2).await;
            assert_eq!(state["held"], 1);
            fake.tell("shutdown", json!({})).await;
        }
    );
    assert_eq!(held.retry_after(), 5);
    assert_eq!(poll.result(), &json!([]));
    fake.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_rules_let_held_calls_go_too() {
    let fake = holding().await;
    let (held, ()) =
        tokio::join!(fake.call("sendMessage", json!({ "chat_id": 7001, "text": "held" })), async {
            fake.until("it is held", |state| state["held"] == 1).await;
            fake.tell("profile", json!("telegram")).await;
        });
    assert_eq!(held.retry_after(), 5);
    fake.send(7001, "full budgets").await;
}

/// A client that hangs up does not take its message back (telegram.md 3.1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_call_goes_on_without_its_client() {
    let fake = holding().await;
    let url = format!("{}/bot{}/sendMessage?chat_id=7001&text=held", fake.base(), crate::fake::BOT);
    let held = tokio::spawn(fake.client().get(url).send());
    fake.until("it is held", |state| state["held"] == 1).await;
    held.abort();
    assert!(held.await.is_err_and(|error| error.is_cancelled()));
    fake.advance("1s").await;
    fake.until("it was decided", |state| state["calls"] == 21).await;
    assert_eq!(fake.look("verdict").await["all"]["delivered"], 21);
}

/// Whoever is in the middle of nothing does not keep it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_whoever_is_connected() {
    let fake = Fake::running();
    let idle = fake.connect().await;
    let mut half = fake.connect().await;
    half.write_all(b"POST /bot1:a/sendMessage HTTP/1.1\r\nContent-Le").await.expect("written");
    let mut body = fake.connect().await;
    body.write_all(b"POST /bot1:a/sendMessage HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
        .await
        .expect("written");
    fake.until("they are connected", |state| state["connections"].as_u64() >= Some(4)).await;
    let stopped = tokio::time::timeout(Duration::from_secs(15), fake.stop()).await;
    stopped.expect("it ends by itself");
    for stream in [idle, half, body] {
        read(stream).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_is_no_panic() {
    let fake = Fake::running();
    let addr = fake.base().strip_prefix("http://").and_then(|addr| addr.parse().ok()).expect("an address");
    let second = fake_telegram::http::server::Server::start(Options { addr, ..Options::default() });
    let error = second.expect_err("it is taken").to_string();
    assert!(error.contains("--addr"), "{error}");
}
