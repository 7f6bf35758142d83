//! Several bots on one server: nothing of one is the other's.

use fake_telegram::api::{ChatIndex, ChatKind};
use fake_telegram::chat::{Chats, Lifecycle};
use fake_telegram::http::options::{Options, chat_id};
use fake_telegram::http::peers::ChatType;
use fake_telegram::units::Share;
use serde_json::json;

use crate::fake::{BOT, Fake};

const A: &str = "110000:AAone";
const B: &str = "220000:AAtwo";
/// The bot of `A` with another secret: another bot.
const A2: &str = "110000:AAtwo";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_has_its_own_budget_numbers_and_messages() {
    let fake = Fake::frozen();
    let send = |token, chat: i64| fake.call_by(token, "sendMessage", json!({ "chat_id": chat, "text": "x" }));
    for chat in 1..=30 {
        send(A, chat).await.result();
    }
    assert_eq!(send(A, 31).await.retry_after(), 1);
    for token in [B, A2] {
        assert_eq!(send(token, 1).await.result()["message_id"], 1);
        for _ in 0..4 {
            send(token, 1).await.result();
        }
        assert_eq!(send(token, 1).await.retry_after(), 1);
    }
    let edit = json!({ "chat_id": 30, "message_id": 30, "text": "y" });
    fake.advance("1m").await;
    fake.call_by(A, "editMessageText", edit.clone()).await.result();
    let others = fake.call_by(B, "editMessageText", edit).await;
    assert_eq!(others.failure(), (400, "Bad Request: message to edit not found"));
    let verdict = fake.look("verdict").await;
    let requests: Vec<_> =
        verdict["bots"].as_array().expect("a list").iter().map(|bot| &bot["requests"]).collect();
    assert_eq!(requests, [&json!(32), &json!(7), &json!(6)]);
    assert_eq!(verdict["all"]["requests"], 45);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_has_its_own_updates_webhook_and_settings() {
    let fake = Fake::frozen();
    fake.tell("users", json!({ "token": A, "chat": 7001, "action": "write", "text": "to A" })).await;
    fake.tell("users", json!({ "token": B, "chat": 7001, "action": "write", "text": "to B" })).await;
    fake.call_by(A, "setMyName", json!({ "name": "Ann" })).await.result();
    for (token, text) in [(A, "to A"), (B, "to B")] {
        let updates = fake.call_by(token, "getUpdates", json!({})).await;
        assert_eq!(updates.result()[0]["message"]["text"], text);
        assert_eq!(updates.result()[1], json!(null));
    }
    assert_eq!(fake.call_by(A, "getMyName", json!({})).await.result()["name"], "Ann");
    assert_ne!(fake.call_by(B, "getMyName", json!({})).await.result()["name"], "Ann");
    fake.call_by(A, "setWebhook", json!({ "url": "http://127.0.0.1:9/" })).await.result();
    assert_eq!(fake.call_by(B, "getWebhookInfo", json!({})).await.result()["url"], "");
    fake.call_by(B, "getUpdates", json!({ "offset": 2 })).await.result();
    // Blocked by an act is blocked for one bot.
    fake.tell("users", json!({ "token": A, "chat": 7001, "action": "block" })).await;
    assert_eq!(fake.call_by(A, "sendMessage", json!({ "chat_id": 7001, "text": "x" })).await.status, 403);
    fake.call_by(B, "sendMessage", json!({ "chat_id": 7001, "text": "x" })).await.result();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_forgotten_and_the_other_is_not() {
    let fake = Fake::frozen();
    for token in [A, B] {
        for _ in 0..5 {
            fake.call_by(token, "sendMessage", json!({ "chat_id": 7001, "text": "x" })).await.result();
        }
    }
    fake.tell("reset", json!({ "token": A })).await;
    let send = |token| fake.call_by(token, "sendMessage", json!({ "chat_id": 7001, "text": "x" }));
    assert_eq!(send(A).await.result()["message_id"], 1, "it begins again, with a full budget");
    assert_eq!(send(B).await.retry_after(), 1);
    let unknown = fake.admin(reqwest::Method::POST, "reset", Some(json!({ "token": 7 }))).await;
    assert_eq!(unknown.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_about_no_chat_are_no_chats_business() {
    // Nobody in this scenario can receive.
    let all = Share::from_ppm(1_000_000);
    let mut chats = Chats::new(1, Lifecycle { dead: all, ..Lifecycle::default() });
    chats.add(ChatKind::Private, 10);
    let fake = Fake::with(Options { chats: Some(chats), ..Options::default() });
    let dead = chat_id(ChatIndex(9), ChatType::Private).0;
    let answer = fake.call_by(A, "sendMessage", json!({ "chat_id": dead, "text": "x" })).await;
    assert_eq!(answer.failure(), (403, "Forbidden: bot was blocked by the user"));
    fake.call_by(A, "sendMessage", json!({ "chat_id": 7001, "text": "another chat" })).await;
    // All that people can do to chats leaves them alone.
    for chat in [0, 1, 2] {
        fake.tell("chats", json!({ "chat": chat, "action": "block" })).await;
    }
    for offset in 1..40 {
        fake.call_by(A, "getMe", json!({})).await.result();
        fake.call_by(A, "getUpdates", json!({ "offset": offset })).await.result();
    }
}

/// A reset forgets what they did, not that they are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bots_from_the_start_outlive_a_reset() {
    let tokens = vec![BOT.to_owned()];
    let fake = Fake::with(Options { frozen: true, strict: true, tokens, ..Options::default() });
    for body in [json!({}), json!({ "token": BOT })] {
        fake.tell("reset", body).await;
        assert_eq!(fake.look("state").await["bots"][0]["id"], 110_000);
        fake.tell("users", json!({ "chat": 7, "action": "write", "text": "x" })).await;
    }
}
