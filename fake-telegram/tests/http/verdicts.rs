//! What the server writes down: journal, verdict, metrics. The sequence is counted by hand.

use fake_telegram::fault::{Fault, FaultKind, Phase};
use fake_telegram::http::options::Options;
use fake_telegram::time::Duration;
use fake_telegram::units::Share;
use serde_json::{Value, json};

use crate::fake::{BOT, Fake};

/// 14 calls: 1 that asks, 5 that are delivered to 7001 (one text of them twice), 3 that are refused at 0, 0.6 and 1.7 s,
/// 1 to a group, 1 without a text, 1 to a blocked user, 1 edit, 1 of an album of three to the group.
async fn sequence(fake: &Fake) {
    let send = |chat: i64, text: &str| fake.call("sendMessage", json!({ "chat_id": chat, "text": text }));
    fake.tell("chats", json!({ "chat": 7002, "action": "block" })).await;
    fake.call("getMe", json!({})).await.result();
    for text in ["a", "b", "c", "a", "d"] {
        send(7001, text).await.result();
    }
    // N = 1: until 1 s. At 0.6 s it doubles: until 2.6 s. At 1.7 s, after the second refusal is known to all: 4.
    for (wait, by) in [(1, "600ms"), (2, "1100ms"), (4, "4s")] {
        assert_eq!(send(7001, "e").await.retry_after(), wait);
        fake.advance(by).await;
    }
    let id = send(-5001, "a").await.result()["message_id"].clone();
    assert_eq!(send(7001, "").await.status, 400);
    assert_eq!(send(7002, "x").await.status, 403);
    fake.call("editMessageText", json!({ "chat_id": -5001, "message_id": id, "text": "b" })).await.result();
    let photo = json!({ "type": "photo", "media": "https://example.com/a.jpg" });
    fake.call("sendMediaGroup", json!({ "chat_id": -5001, "media": [photo, photo, photo] })).await.result();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_verdict_is_what_happened() {
    let fake = Fake::frozen();
    sequence(&fake).await;
    let verdict = fake.look("verdict").await;
    // Taken: 5 to 7001, 1 to the group, 1 for the 403 that only the data centre knows, 1 edit, 3 of the album, of 30 and
    // 30 a second for 5.7 s.
    let expected = json!({
        "requests": 14,
        "outcomes": { "ok": 9, "refused": 3, "forbidden": 1, "rejected": 1, "failed": 0, "garbage": 0, "lost": 0 },
        "throttled": { "chat": 3 },
        "early_retries": { "chat": 1 },
        "calls_in_penalty": 2,
        "delivered": 9,
        "duplicates": 1,
        "held_max_us": 0,
        "budget_utilisation_ppm": 11 * 1_000_000 / (30 + 171),
    });
    assert_eq!(verdict["all"], expected);
    let mut of_bot = expected;
    of_bot["bot"] = 110_000.into();
    assert_eq!(verdict["bots"], json!([of_bot]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_has_every_call() {
    let fake = Fake::frozen();
    sequence(&fake).await;
    let journal = fake.look("journal").await;
    let entries = journal["entries"].as_array().expect("a list");
    assert_eq!((entries.len(), &journal["last"]), (14, &json!(14)));
    let refused = &entries[7];
    let expected = json!({
        "n": 8, "arrived_us": 600_000, "at_us": 600_000, "bot": 110_000, "method": "sendMessage", "chat": 7001,
        "outcome": "refused", "truth": "refused", "limit": "chat", "wait_us": 2_000_000, "in_penalty": true,
        "taken": 0, "early": false,
    });
    assert_eq!(refused, &expected);
    let truths: Vec<&Value> = entries.iter().map(|entry| &entry["truth"]).collect();
    assert_eq!(truths[11..], ["dead", "delivered", "delivered"]);
    for (query, count) in [
        ("", 14),
        ("since=13", 1),
        ("method=SENDMESSAGE", 11),
        ("chat=-5001", 3),
        ("outcome=refused", 3),
        ("outcome=refused&since=8", 1),
        ("bot=5", 0),
    ] {
        assert_eq!(fake.look(&format!("journal/count?{query}")).await["count"], count, "{query}");
    }
    assert_eq!(fake.look("journal?limit=2&since=3").await["entries"][1]["n"], 5);
    for wrong in ["journal?nonsense=1", "journal?since=x", "journal/count?outcome=fine"] {
        assert_eq!(fake.admin(reqwest::Method::GET, wrong, None).await.status, 400, "{wrong}");
    }
}

/// A line of the text format: `name{label="value",...} number`.
fn sample(line: &str) -> Option<(String, f64)> {
    let (name, value) = line.rsplit_once(' ')?;
    let bare = name.split('{').next()?;
    let sound = bare.starts_with("floodlab_") && bare.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    (sound && name.contains('{') == name.ends_with('}')).then_some(())?;
    Some((name.to_owned(), value.parse().ok()?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_read_by_prometheus() {
    let fake = Fake::frozen();
    sequence(&fake).await;
    let metrics = fake.admin(reqwest::Method::GET, "metrics", None).await;
    assert!(
        metrics.headers["content-type"].to_str().expect("text").starts_with("application/openmetrics-text")
    );
    let (last, lines) =
        metrics.text.lines().collect::<Vec<_>>().split_last().map(|(a, b)| (*a, b.to_vec())).expect("lines");
    assert_eq!(last, "# EOF");
    let (comments, samples): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with('#'));
    for comment in comments {
        let kind = comment.split(' ').nth(1);
        assert!(matches!(kind, Some("HELP" | "TYPE" | "UNIT")), "{comment}");
    }
    let samples: Vec<(String, f64)> =
        samples.iter().map(|line| sample(line).unwrap_or_else(|| panic!("no sample: {line}"))).collect();
    let value = |name: &str| samples.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    for (name, expected) in [
        (r#"floodlab_requests_total{method="sendMessage",outcome="ok"}"#, 6.0),
        (r#"floodlab_requests_total{method="sendMessage",outcome="refused"}"#, 3.0),
        (r#"floodlab_throttled_total{limit="chat"}"#, 3.0),
        (r#"floodlab_early_retries_total{limit="chat"}"#, 1.0),
        ("floodlab_calls_in_penalty_total", 2.0),
        ("floodlab_delivered_total", 9.0),
        ("floodlab_duplicates_total", 1.0),
        ("floodlab_bots", 1.0),
    ] {
        assert_eq!(value(name), Some(expected), "{name} in {}", metrics.text);
    }
    let utilisation = value(r#"floodlab_budget_utilisation_ratio{limit="token"}"#).expect("a ratio");
    assert!((utilisation - 11.0 / 201.0).abs() < 1e-5, "{utilisation}");
    assert!(!metrics.text.contains("7001"), "no chat is a label");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_come_as_ordered_and_are_told_apart() {
    let all = Share::from_ppm(1_000_000);
    let fault = |kind, phase| Fault { kind, phase, rate: all, from: Duration::ZERO, r#for: None };
    let fake = Fake::with(Options {
        frozen: true,
        faults: vec![fault(FaultKind::Status502, Phase::After)],
        ..Options::default()
    });
    let send = || fake.call("sendMessage", json!({ "chat_id": 7001, "text": "x" }));
    assert_eq!(send().await.failure(), (502, "Bad Gateway"));
    let verdict = &fake.look("verdict").await["all"];
    assert_eq!(
        (&verdict["outcomes"]["failed"], &verdict["delivered"]),
        (&json!(1), &json!(1)),
        "it has arrived"
    );
    assert_eq!(fake.admin(reqwest::Method::DELETE, "faults", None).await.ok(), json!([]));
    send().await.result();
    fake.tell("faults", json!("lost:100%")).await;
    let url = format!("{}/bot{BOT}/sendMessage?chat_id=7001&text=x", fake.base());
    assert!(fake.client().get(url).send().await.is_err(), "there is no answer");
    fake.admin(reqwest::Method::DELETE, "faults", None).await.ok();
    fake.tell("faults", json!([{ "kind": "html", "rate": "100%", "for": "10s" }])).await;
    let page = send().await;
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (200, &reqwest::header::HeaderValue::from_static("text/html"))
    );
    assert!(page.text.starts_with('<'), "{}", page.text);
    fake.advance("10s").await;
    send().await.result();
    let outcomes = &fake.look("verdict").await["all"]["outcomes"];
    assert_eq!((&outcomes["lost"], &outcomes["garbage"]), (&json!(1), &json!(1)));
    let wrong = fake.admin(reqwest::Method::POST, "faults", Some(json!("999:10%"))).await;
    assert_eq!(wrong.status, 400);
}

/// A client of our own is told the truth, and brings its own draw.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_asks_is_told_what_happened() {
    let fake = Fake::frozen();
    fake.tell("faults", json!("504:50%:after")).await;
    let call = async |draw: u32| {
        let request = fake.client().get(format!("{}/bot{BOT}/sendMessage?chat_id=7001&text=x", fake.base()));
        let request = request.header("x-floodlab-call", "77").header("x-floodlab-draw", draw.to_string());
        let response = request.send().await.expect("an answer");
        let truth: Value = response
            .headers()
            .get("x-floodlab-truth")
            .and_then(|truth| serde_json::from_str(truth.to_str().ok()?).ok())
            .expect("the truth, as JSON");
        (response.status().as_u16(), truth["truth"].clone(), truth["taken"].clone())
    };
    assert_eq!(call(0).await, (504, json!("delivered"), json!(1)));
    assert_eq!(call(u32::MAX).await, (200, json!("delivered"), json!(1)));
    assert_eq!(fake.look("journal/count?call=77").await["count"], 2);
}
