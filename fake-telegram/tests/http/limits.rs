//! The limits of the default profile, to the microsecond: 30/s with a burst of 30 for a token, 1/s with a burst of 5 for
//! a private chat, 20 in any 60 s for a group.

use std::time::Duration;

use fake_telegram::http::options::Options;
use fake_telegram::profile::Profile;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::fake::{BOT, Fake};

const GROUP: i64 = -5001;

async fn limits_that_refused(fake: &Fake) -> Vec<String> {
    let journal = fake.look("journal?outcome=refused").await;
    let entries = journal["entries"].as_array().expect("a list");
    entries.iter().map(|entry| entry["limit"].as_str().expect("a limit").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_sends_thirty_and_then_thirty_a_second() {
    let fake = Fake::frozen();
    for chat in 1..=30 {
        fake.send(chat, "x").await;
    }
    // The next token is there in 1/30 s; whole seconds, at least 1.
    assert_eq!(fake.refused(31).await, 1);
    assert_eq!(limits_that_refused(&fake).await, ["token"]);
    fake.advance("1s").await;
    for chat in 31..=60 {
        fake.send(chat, "x").await;
    }
    assert_eq!(fake.refused(61).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_chat_takes_five_and_then_one_a_second() {
    let fake = Fake::frozen();
    for _ in 0..5 {
        fake.send(7001, "x").await;
    }
    assert_eq!(fake.refused(7001).await, 1);
    assert_eq!(limits_that_refused(&fake).await, ["chat"]);
    fake.send(7002, "another chat has its own").await;
    fake.advance("1s").await;
    fake.send(7001, "waiting exactly as long as told is enough").await;
    assert_eq!(fake.refused(7001).await, 1);
}

/// A bot that sends one a second is refused after 20 s for 40 s (telegram.md 5.1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_takes_twenty_in_any_minute() {
    let fake = Fake::frozen();
    for _ in 0..20 {
        fake.send(GROUP, "x").await;
        fake.advance("1s").await;
    }
    assert_eq!(fake.refused(GROUP).await, 40);
    assert_eq!(limits_that_refused(&fake).await, ["group"]);
    fake.advance("40s").await;
    fake.send(GROUP, "the first of them is a minute old").await;
}

/// The T3 rule: N = 1; a call within 500 ms was on the wire; a later one before the deadline doubles N and counts anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_retries_double_the_wait() {
    let fake = Fake::frozen();
    for _ in 0..5 {
        fake.send(7001, "x").await;
    }
    assert_eq!(fake.refused(7001).await, 1, "at 0 s: until 1 s");
    fake.advance("400ms").await;
    assert_eq!(fake.refused(7001).await, 1, "at 0.4 s it may have been on the wire: until 1 s");
    fake.advance("200ms").await;
    assert_eq!(fake.refused(7001).await, 2, "at 0.6 s: until 2.6 s");
    fake.advance("600ms").await;
    assert_eq!(fake.refused(7001).await, 4, "at 1.2 s: until 5.2 s");
    fake.advance("2s").await;
    assert_eq!(fake.refused(7001).await, 8, "at 3.2 s: until 11.2 s");
    fake.advance("8s").await;
    fake.send(7001, "x").await;
    let verdict = &fake.look("verdict").await["all"];
    // Refused from 0.6 to 2.6 s and from 1.2 to 5.2 s, known to all 1 s later: only the call at 3.2 s is early.
    assert_eq!(verdict["early_retries"], json!({ "chat": 1 }));
    assert_eq!(verdict["calls_in_penalty"], 4);
    assert_eq!(verdict["throttled"], json!({ "chat": 5 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_clock_asks_for_short_waits() {
    // It stands, so that nothing passes between the calls; waits are told as if it ran.
    let fake = Fake::with(Options { speed: 30, frozen: true, ..Options::default() });
    for _ in 0..20 {
        fake.send(GROUP, "x").await;
    }
    assert_eq!(fake.refused(GROUP).await, 2, "60 s of its own are 2 s");
    fake.advance("60s").await;
    fake.send(GROUP, "x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "that the wait is enough in real time is what it is about")]
async fn the_wait_that_a_fast_clock_asks_for_is_enough() {
    let fake = Fake::with(Options { speed: 20, ..Options::default() });
    for _ in 0..20 {
        fake.send(GROUP, "x").await;
    }
    let wait = fake.refused(GROUP).await;
    assert!((1..=3).contains(&wait), "a minute of its own is 3 s: {wait}");
    tokio::time::sleep(Duration::from_secs(wait)).await;
    fake.send(GROUP, "x").await;
}

/// An overrun of at most 8 s is a slow 200 (telegram.md 3.1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_observed_server_holds_a_call_and_answers_it_later() {
    let fake =
        Fake::with(Options { frozen: true, profile: Profile::telegram_observed(), ..Options::default() });
    for _ in 0..20 {
        fake.send(7001, "x").await;
    }
    let (id, ()) = tokio::join!(fake.send(7001, "held"), async {
        fake.until("a call is held", |state| state["held"] == 1).await;
        fake.advance("1s").await;
    });
    assert_eq!(id, 21);
    let verdict = &fake.look("verdict").await["all"];
    assert_eq!((&verdict["held_max_us"], &verdict["throttled"]), (&json!(1_000_000), &json!({})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_profiles_change_while_it_runs() {
    let fake = Fake::frozen();
    fake.tell("limits", json!({ "chat": { "burst": 1 } })).await;
    fake.send(7001, "x").await;
    assert_eq!(fake.refused(7001).await, 1);
    fake.tell("limits", json!({ "chat": { "off": true } })).await;
    for _ in 0..10 {
        fake.send(7001, "x").await;
    }
    fake.tell("profile", json!("unlimited")).await;
    for _ in 0..50 {
        fake.send(7001, "x").await;
    }
    assert_eq!(fake.look("profile").await["profile"], "unlimited");
    let wrong = fake.admin(reqwest::Method::PUT, "profile", Some(json!("telegrm"))).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("telegram"), "it says what there is: {}", wrong.text);
    fake.tell("reset", json!({})).await;
    assert_eq!(fake.look("state").await["bots"], json!([]));
}

/// More than 1,000 in flight, whether their clients wait or not: 60 s after 3 s (telegram.md 3.4), in the client's time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_hangs_up_is_in_flight_all_the_same() {
    let fake = Fake::with(Options {
        frozen: true,
        speed: 30,
        profile: Profile::telegram_observed(),
        ..Options::default()
    });
    for _ in 0..20 {
        fake.send(7001, "x").await;
    }
    let request = format!("GET /bot{BOT}/sendMessage?chat_id=7001&text=x HTTP/1.1\r\nHost: fake\r\n\r\n");
    // Not more sockets than a host may have.
    for _ in 0..10 {
        let mut streams = Vec::new();
        let before = fake.look("state").await["held"].as_u64().expect("a number");
        for _ in 0..100 {
            let mut stream = fake.connect().await;
            stream.write_all(request.as_bytes()).await.expect("written");
            streams.push(stream);
        }
        fake.until("all are held", |state| state["held"] == before + 100).await;
        drop(streams);
        fake.until("nobody waits", |state| state["connections"].as_u64() < Some(50)).await;
    }
    let state = fake.look("state").await;
    assert_eq!((&state["held"], &state["bots"][0]["in_flight"]), (&json!(1_000), &json!(1_000)));
    let (refused, ()) = tokio::join!(fake.refused(7002), async {
        fake.until("one more", |state| state["bots"][0]["in_flight"] == 1_001).await;
        // The first second lets none of those go that wait for their turn.
        fake.advance("3s").await;
    });
    assert_eq!(refused, 2, "60 s of its own");
}
