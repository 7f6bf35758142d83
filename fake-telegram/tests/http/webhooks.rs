//! Deliveries to a webhook, with a bot behind it that is wiremock.

use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::fake::{BOT, Fake};

async fn write(fake: &Fake, chat: i64, text: &str) {
    fake.tell("users", json!({ "token": BOT, "chat": chat, "action": "write", "text": text })).await;
}

async fn set(fake: &Fake, bot: &MockServer, more: Value) {
    let mut params = json!({ "url": format!("{}/hook", bot.uri()) });
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fake.call("setWebhook", params).await.result();
}

fn nothing_pends(state: &Value) -> bool {
    state["bots"][0]["pending_updates"] == 0
}

fn bodies(requests: &[Request]) -> Vec<Value> {
    requests.iter().map(|request| request.body_json().expect("JSON")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_come_with_the_secret_in_order_and_once() {
    let (fake, bot) = (Fake::frozen(), MockServer::start().await);
    Mock::given(method("POST"))
        .and(path("/hook"))
        .and(header("x-telegram-bot-api-secret-token", "s3cr3t"))
        .respond_with(ResponseTemplate::new(200))
        .expect(3)
        .mount(&bot)
        .await;
    // Those that wait already come too.
    write(&fake, 7001, "one").await;
    set(&fake, &bot, json!({ "secret_token": "s3cr3t", "max_connections": 100 })).await;
    write(&fake, 7001, "two").await;
    write(&fake, 7001, "three").await;
    fake.until("all are delivered", nothing_pends).await;
    let requests = bot.received_requests().await.expect("recorded");
    let texts: Vec<Value> =
        bodies(&requests).iter().map(|update| update["message"]["text"].clone()).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    let info = fake.call("getWebhookInfo", json!({})).await;
    assert_eq!(
        (&info.result()["pending_update_count"], &info.result()["max_connections"]),
        (&json!(0), &json!(100))
    );
}

/// No more than `max_connections` at once; those of one chat one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_connections_than_allowed() {
    let (fake, bot) = (Fake::frozen(), MockServer::start().await);
    let slow = ResponseTemplate::new(200).set_delay(std::time::Duration::from_secs(1));
    Mock::given(method("POST")).respond_with(slow).mount(&bot).await;
    set(&fake, &bot, json!({ "max_connections": 2 })).await;
    for chat in 1..=5 {
        write(&fake, chat, "x").await;
    }
    let seen = async || bot.received_requests().await.expect("recorded").len();
    // While the first two are answered, no third comes.
    while seen().await < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(seen().await, 2);
    fake.until("all are delivered", nothing_pends).await;
    assert_eq!(seen().await, 5);
}

/// After a failure at once, then after 2 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_is_sent_again() {
    let (fake, bot) = (Fake::frozen(), MockServer::start().await);
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(502)).up_to_n_times(2).mount(&bot).await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(204)).mount(&bot).await;
    set(&fake, &bot, json!({})).await;
    write(&fake, 7001, "x").await;
    let mut seen = 0;
    while seen < 2 {
        tokio::task::yield_now().await;
        seen = bot.received_requests().await.expect("recorded").len();
    }
    let mut info = json!({});
    while info["last_error_message"].is_null() {
        info = fake.call("getWebhookInfo", json!({})).await.result().clone();
    }
    assert_eq!(info["last_error_message"], "Wrong response from the webhook: 502 Bad Gateway");
    assert_eq!(info["pending_update_count"], 1);
    // The clock stands: whenever the second failure is noted, two seconds are over at some time.
    while !nothing_pends(&fake.look("state").await) {
        fake.advance("1s").await;
    }
    let requests = bot.received_requests().await.expect("recorded");
    assert_eq!(requests.len(), 3);
    let all = bodies(&requests);
    assert_eq!((&all[0], &all[1]), (&all[1], &all[2]), "the same update each time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_the_answer_is_made_and_its_failure_is_nobodys() {
    let (fake, bot) = (Fake::frozen(), MockServer::start().await);
    let reply = |text: &str| {
        let call = json!({ "method": "sendMessage", "chat_id": 7001, "text": text });
        ResponseTemplate::new(200).set_body_json(call)
    };
    Mock::given(body_partial_json(json!({ "message": { "text": "speak" } })))
        .respond_with(reply("hello"))
        .mount(&bot)
        .await;
    Mock::given(body_partial_json(json!({ "message": { "text": "fail" } })))
        .respond_with(reply(""))
        .mount(&bot)
        .await;
    set(&fake, &bot, json!({})).await;
    // Five pass, the sixth is refused, and the seventh is not even one.
    for _ in 0..6 {
        write(&fake, 7001, "speak").await;
    }
    write(&fake, 7001, "fail").await;
    fake.until("all calls are made", |state| nothing_pends(state) && state["calls"] == 8).await;
    let verdict = &fake.look("verdict").await["all"];
    let outcomes = &verdict["outcomes"];
    assert_eq!(
        (&outcomes["ok"], &outcomes["refused"], &outcomes["rejected"]),
        (&json!(6), &json!(1), &json!(1))
    );
    assert_eq!((&verdict["delivered"], &verdict["duplicates"]), (&json!(5), &json!(4)));
    assert_eq!(
        bot.received_requests().await.map(|requests| requests.len()),
        Some(7),
        "nothing was sent again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_set_once_a_second_and_only_on_this_host() {
    let fake = Fake::frozen();
    let set = |url: &'static str| fake.call("setWebhook", json!({ "url": url }));
    set("https://bot.example/hook").await.result();
    assert_eq!(set("https://bot.example/hook").await.retry_after(), 1);
    fake.advance("1s").await;
    let again = set("https://bot.example/hook").await;
    assert_eq!(again.text, r#"{"ok":true,"result":true,"description":"Webhook is already set"}"#);
    write(&fake, 7001, "x").await;
    let info = fake.call("getWebhookInfo", json!({})).await;
    let error = info.result()["last_error_message"].as_str().expect("an error");
    assert!(error.contains("loopback"), "{error}");
    assert_eq!(info.result()["pending_update_count"], 1);
    let invalid = fake.call("setWebhook", json!({ "url": "ftp://x" })).await;
    assert_eq!(invalid.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_polls_is_ended_by_a_webhook() {
    let fake = Fake::frozen();
    let (poll, ()) = tokio::join!(fake.call("getUpdates", json!({ "timeout": 50 })), async {
        fake.until("it polls", |state| state["bots"][0]["in_flight"] == 1).await;
        fake.call("setWebhook", json!({ "url": "http://127.0.0.1:9/" })).await.result();
    });
    assert_eq!(poll.failure(), (409, "Conflict: terminated by setWebhook request"));
}
