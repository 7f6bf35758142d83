//! A server with a scenario's chats: what its timeline does holds for all bots, what people do to one for that one alone.

use fake_telegram::api::{ChatIndex, ChatKind};
use fake_telegram::chat::{Action, Change, Chats, Lifecycle};
use fake_telegram::http::options::{Options, chat_id};
use fake_telegram::http::peers::ChatType;
use fake_telegram::time::Duration;
use serde_json::{Value, json};

use crate::fake::{BOT, Fake};

const OTHER: &str = "220000:AAother";

fn change(at: u64, action: Action, chats: &[u32]) -> Change {
    Change { at: Duration::from_secs(at), action, share: None, chats: chats.to_vec(), range: None }
}

/// Four private chats and a group, which is number 4.
fn options(lifecycle: Lifecycle) -> Options {
    let mut chats = Chats::new(1, lifecycle);
    chats.add(ChatKind::Private, 4);
    chats.add(ChatKind::Group, 1);
    Options { chats: Some(chats), frozen: true, ..Options::default() }
}

fn private(index: u32) -> i64 {
    chat_id(ChatIndex(index), ChatType::Private).0
}

async fn status(fake: &Fake, token: &str, chat: i64) -> u16 {
    fake.call_by(token, "sendMessage", json!({ "chat_id": chat, "text": "x" })).await.status
}

/// Of each `my_chat_member` of a bot: the chat, and what the bot is there.
async fn changes(fake: &Fake, token: &str) -> Vec<(i64, String)> {
    let updates = fake.call_by(token, "getUpdates", json!({})).await;
    let updates = updates.result().as_array().expect("a list").clone();
    let told = |update: &Value| {
        let change = &update["my_chat_member"];
        let status = change["new_chat_member"]["status"].as_str().expect("a status");
        (change["chat"]["id"].as_i64().expect("an id"), status.to_owned())
    };
    updates.iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bots_are_told_of_what_the_timeline_does_to_chats_that_they_know() {
    let schedule = vec![
        change(60, Action::Die, &[0, 1, 4]),
        change(60, Action::Deactivate, &[2]),
        change(90, Action::Die, &[0]),
        change(120, Action::Revive, &[0, 1, 4]),
    ];
    let fake = Fake::with(options(Lifecycle { schedule, ..Lifecycle::default() }));
    let group = chat_id(ChatIndex(4), ChatType::Group).0;
    for chat in [private(0), private(2), group] {
        assert_eq!(status(&fake, BOT, chat).await, 200);
    }
    assert_eq!(status(&fake, OTHER, private(1)).await, 200);
    fake.advance("59s").await;
    assert_eq!(changes(&fake, BOT).await, []);
    fake.advance("2s").await;
    let gone = [(group, "kicked".to_owned()), (private(0), "kicked".to_owned())];
    assert_eq!(changes(&fake, BOT).await, gone, "nobody tells of an account that is gone");
    assert_eq!(changes(&fake, OTHER).await, [(private(1), "kicked".to_owned())]);
    assert_eq!(status(&fake, BOT, private(0)).await, 403);
    assert_eq!(status(&fake, OTHER, private(0)).await, 403, "it is gone for whoever comes later, too");
    fake.advance("1m").await;
    let back = [(group, "member".to_owned()), (private(0), "member".to_owned())];
    assert_eq!(changes(&fake, BOT).await, [gone, back].concat(), "who is dead does not die again");
    assert_eq!(status(&fake, BOT, private(0)).await, 200);
}

/// On a clock that runs somebody has to look at the right instant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_polls_is_told_when_it_happens() {
    let schedule = vec![change(1, Action::Die, &[0])];
    let fake =
        Fake::with(Options { frozen: false, ..options(Lifecycle { schedule, ..Lifecycle::default() }) });
    assert_eq!(status(&fake, BOT, private(0)).await, 200);
    let updates = fake.call("getUpdates", json!({ "timeout": 30 })).await;
    assert_eq!(updates.result()[0]["my_chat_member"]["new_chat_member"]["status"], "kicked");
    // Its date is that of the change, whenever it is read.
    assert!(fake.look("clock").await["now_us"].as_u64() < Some(20_000_000));
}

/// Chats that die by themselves after some 10 s each: with a minute of life, all of a bot's are told of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bots_are_told_of_chats_that_die_by_themselves() {
    let lifecycle = Lifecycle { mean_life: Some(Duration::from_secs(10)), ..Lifecycle::default() };
    let fake = Fake::with(options(lifecycle));
    for token in [BOT, OTHER] {
        for chat in 0..4 {
            assert_eq!(status(&fake, token, private(chat)).await, 200);
        }
        assert_eq!(status(&fake, token, 7001).await, 200, "others live no longer");
    }
    fake.advance("1h").await;
    let (mut mine, others) = (changes(&fake, BOT).await, changes(&fake, OTHER).await);
    let of_scenario = |told: &[(i64, String)]| -> Vec<(i64, String)> {
        told.iter().filter(|(chat, _)| *chat != 7001).cloned().collect()
    };
    assert_eq!(of_scenario(&mine), of_scenario(&others), "in the same order for both");
    mine.sort();
    let all = [7001, private(0), private(1), private(2), private(3)].map(|chat| (chat, "kicked".to_owned()));
    assert_eq!(mine, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_blocks_one_bot_has_not_blocked_another() {
    let schedule = vec![change(60, Action::Revive, &[0]), change(120, Action::Die, &[0])];
    let fake = Fake::with(options(Lifecycle { schedule, ..Lifecycle::default() }));
    let statuses = async || (status(&fake, BOT, private(0)).await, status(&fake, OTHER, private(0)).await);
    assert_eq!(statuses().await, (200, 200));
    fake.tell("users", json!({ "token": BOT, "chat": private(0), "action": "block" })).await;
    assert_eq!(statuses().await, (403, 200));
    fake.tell("users", json!({ "token": BOT, "chat": private(0), "action": "unblock" })).await;
    fake.tell("users", json!({ "token": OTHER, "chat": private(0), "action": "block" })).await;
    assert_eq!(statuses().await, (200, 403));
    fake.advance("61s").await;
    assert_eq!(statuses().await, (200, 200), "the timeline is everybody's");
    fake.advance("1m").await;
    assert_eq!(statuses().await, (403, 403));
}
