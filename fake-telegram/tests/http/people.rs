//! What people do, and what bots learn of it.

use fake_telegram::http::options::Options;
use serde_json::{Value, json};

use crate::fake::{BOT, Fake};

async fn act(fake: &Fake, mut act: Value) -> Value {
    act["token"] = BOT.into();
    fake.tell("users", act).await["update_ids"].clone()
}

/// The updates from `offset` on.
async fn updates(fake: &Fake, offset: i64) -> Vec<Value> {
    let updates = fake.call("getUpdates", json!({ "offset": offset })).await;
    updates.result().as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_writes_and_the_bot_replies() {
    let fake = Fake::frozen();
    let ids =
        act(&fake, json!({ "chat": -5001, "user": 7001, "action": "write", "text": "/start now" })).await;
    assert_eq!(ids, json!([1]));
    let message = &updates(&fake, 0).await[0]["message"];
    assert_eq!((&message["chat"]["id"], &message["chat"]["type"]), (&json!(-5001), &json!("group")));
    assert_eq!(message["entities"], json!([{ "type": "bot_command", "offset": 0, "length": 6 }]));
    let reply = json!({ "chat_id": -5001, "text": "hi", "reply_parameters": { "message_id": message["message_id"] } });
    let sent = fake.call("sendMessage", reply).await;
    assert_eq!(sent.result()["reply_to_message"]["text"], "/start now");
    // A person and a chat look alike wherever they are met.
    assert_eq!(sent.result()["chat"], message["chat"]);
    assert_eq!(sent.result()["reply_to_message"]["from"], message["from"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_channel_it_is_a_post() {
    let fake = Fake::frozen();
    fake.tell("chats", json!({ "chat": -1_001_234_567_890_i64, "type": "channel" })).await;
    act(&fake, json!({ "chat": -1_001_234_567_890_i64, "user": 7001, "action": "write", "text": "news" }))
        .await;
    let update = &updates(&fake, 0).await[0];
    assert_eq!(update["channel_post"]["text"], "news");
    assert_eq!(update["channel_post"]["sender_chat"]["id"], -1_001_234_567_890_i64);
    assert_eq!(update["channel_post"].get("from"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tap_is_answered_while_it_is_known() {
    let fake = Fake::frozen();
    let markup = json!({ "inline_keyboard": [[{ "text": "Yes", "callback_data": "yes" }]] });
    let sent =
        fake.call("sendMessage", json!({ "chat_id": 7001, "text": "?", "reply_markup": markup })).await;
    let id = &sent.result()["message_id"];
    act(&fake, json!({ "chat": 7001, "action": "tap", "message_id": id, "data": "yes" })).await;
    let query = updates(&fake, 0).await[0]["callback_query"].clone();
    assert_eq!((&query["data"], &query["from"]["id"]), (&json!("yes"), &json!(7001)));
    assert_eq!(query["message"]["text"], "?");
    assert_eq!(query["message"]["reply_markup"], markup);
    let answer =
        fake.call("answerCallbackQuery", json!({ "callback_query_id": query["id"], "text": "ok" })).await;
    assert_eq!(answer.result(), true);
    let other = fake.call("answerCallbackQuery", json!({ "callback_query_id": "999" })).await;
    let (status, description) = other.failure();
    assert_eq!(status, 400);
    let known = "Bad Request: query is too old and response timeout expired or query ID is invalid";
    assert!(description.eq_ignore_ascii_case(known), "{description}");
    let strangers = fake
        .call_by("220000:AAother", "answerCallbackQuery", json!({ "callback_query_id": query["id"] }))
        .await;
    assert_eq!(strangers.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_blocks_the_bot_cannot_be_written_to_until_that_is_over() {
    let fake = Fake::frozen();
    let send = || fake.call("sendMessage", json!({ "chat_id": 7001, "text": "x" }));
    send().await.result();
    act(&fake, json!({ "chat": 7001, "action": "block" })).await;
    assert_eq!(send().await.failure(), (403, "Forbidden: bot was blocked by the user"));
    let change = &updates(&fake, 0).await[0]["my_chat_member"];
    assert_eq!(
        (&change["old_chat_member"]["status"], &change["new_chat_member"]["status"]),
        (&json!("member"), &json!("kicked"))
    );
    act(&fake, json!({ "chat": 7001, "action": "unblock" })).await;
    send().await.result();
    // Whoever writes has unblocked it.
    act(&fake, json!({ "chat": 7001, "action": "block" })).await;
    act(&fake, json!({ "chat": 7001, "action": "write", "text": "back" })).await;
    send().await.result();
    act(&fake, json!({ "chat": -5001, "user": 7001, "action": "remove-bot" })).await;
    let kicked = fake.call("sendMessage", json!({ "chat_id": -5001, "text": "x" })).await;
    assert_eq!(kicked.failure(), (403, "Forbidden: bot was kicked from the group chat"));
    act(&fake, json!({ "chat": -5001, "user": 7001, "action": "add-bot" })).await;
    fake.send(-5001, "x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_are_blocked_deleted_and_deactivated_for_every_bot() {
    let fake = Fake::frozen();
    for (action, status, description) in [
        ("block", 403, "Forbidden: bot was blocked by the user"),
        ("deactivate", 403, "Forbidden: user is deactivated"),
        ("delete", 400, "Bad Request: chat not found"),
    ] {
        fake.send(7001, "x").await;
        fake.tell("chats", json!({ "chat": 7001, "action": action })).await;
        for token in [BOT, "220000:AAother"] {
            let answer = fake.call_by(token, "sendMessage", json!({ "chat_id": 7001, "text": "x" })).await;
            assert_eq!(answer.failure(), (status, description), "{token}");
        }
        fake.tell("chats", json!({ "chat": 7001, "action": "unblock" })).await;
        fake.advance("1m").await;
    }
    fake.send(7001, "x").await;
}

/// The text and that it is local, which costs no budget: bot-api-errors.json, telegram.md 3.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_was_deleted_is_known_and_gone() {
    let fake = Fake::frozen();
    let known = async |chat: i64, action: &str| {
        fake.tell("chats", json!({ "chat": chat, "action": action })).await;
        fake.call("sendMessage", json!({ "chat_id": chat, "text": "x" })).await
    };
    // Whether the bot knew it or not.
    fake.send(-5001, "x").await;
    for chat in [-5001, -5002] {
        let deleted = known(chat, "delete").await;
        assert_eq!(deleted.failure(), (403, "Forbidden: the group chat was deleted"));
    }
    let entry = &fake.look("journal?outcome=forbidden").await["entries"][0];
    assert_eq!((&entry["truth"], &entry["taken"]), (&json!("dead"), &json!(0)));
    known(-5001, "unblock").await.result();
    let supergroup = known(-1_001_234_567_890, "delete").await;
    assert_eq!(supergroup.failure(), (400, "Bad Request: chat not found"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inline_query_is_answered_while_it_is_known() {
    let fake = Fake::frozen();
    act(&fake, json!({ "chat": 7001, "action": "inline-query", "query": "cats" })).await;
    let id = updates(&fake, 0).await[0]["inline_query"]["id"].clone();
    let answer = |id: Value| fake.call("answerInlineQuery", json!({ "inline_query_id": id, "results": [] }));
    assert_eq!(answer(id.clone()).await.result(), true);
    assert_eq!(answer(json!("999")).await.status, 400);
    fake.advance("10s").await;
    assert_eq!(answer(id.clone()).await.result(), true);
    fake.advance("10s").await;
    let known = "Bad Request: query is too old and response timeout expired or query ID is invalid";
    let late = answer(id).await;
    let (status, description) = late.failure();
    assert!(status == 400 && description.eq_ignore_ascii_case(known), "{}", late.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_of_a_chat_counts_for_bots_that_know_it() {
    let fake = Fake::frozen();
    let id = -1_001_234_567_890_i64;
    let sent = || fake.call("sendMessage", json!({ "chat_id": id, "text": "x" }));
    assert_eq!(sent().await.result()["chat"]["type"], "supergroup", "as its id has it");
    fake.tell("chats", json!({ "chat": id, "type": "channel" })).await;
    assert_eq!(sent().await.result()["chat"]["type"], "channel");
    let journal = fake.look("journal/count?outcome=ok").await;
    assert_eq!(journal["count"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_became_a_supergroup_says_where_it_is() {
    let fake = Fake::frozen();
    let new = -1_001_234_567_890_i64;
    fake.send(-5001, "x").await;
    act(&fake, json!({ "chat": -5001, "user": 7001, "action": "migrate", "to": new })).await;
    let answer = fake.call("sendMessage", json!({ "chat_id": -5001, "text": "x" })).await;
    assert_eq!(
        answer.text,
        r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}"#
    );
    let told = updates(&fake, 0).await;
    assert_eq!(told[0]["message"]["migrate_to_chat_id"], new);
    assert_eq!(told[1]["message"]["migrate_from_chat_id"], -5001);
    let sent = fake.call("sendMessage", json!({ "chat_id": new, "text": "x" })).await;
    assert_eq!(sent.result()["chat"]["type"], "supergroup");
    // By the operator's hand, for every bot.
    fake.tell("chats", json!({ "chat": -5002, "action": "migrate", "to": new })).await;
    let other = fake.call_by("220000:AAother", "sendMessage", json!({ "chat_id": -5002, "text": "x" })).await;
    assert_eq!(other.body["parameters"]["migrate_to_chat_id"], new);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_act_by_a_timeline_and_at_a_rate() {
    let people = serde_json::from_value(json!([
        { "chat": 7001, "action": "write", "text": "first", "at": "10s" },
        { "chat": 7002, "action": "write", "text": "again", "at": "20s", "every": "2/s" },
        { "chat": 7001, "action": "block", "at": "30s" },
    ]));
    let options = Options {
        frozen: true,
        tokens: vec![BOT.to_owned()],
        people: people.expect("acts"),
        ..Options::default()
    };
    let fake = Fake::with(options);
    let pending = |count: u64| move |state: &Value| state["bots"][0]["pending_updates"] == count;
    fake.advance("9s").await;
    fake.until("nobody has acted", pending(0)).await;
    fake.advance("1s").await;
    fake.until("one has written", pending(1)).await;
    // At 20, 20.5, 21, 21.5, 22 s.
    fake.advance("12s").await;
    fake.until("another has, five times", pending(6)).await;
    fake.advance("8s").await;
    fake.until("sixteen more times, and a block", pending(23)).await;
    let blocked = fake.call("sendMessage", json!({ "chat_id": 7001, "text": "x" })).await;
    assert_eq!(blocked.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_can_do_is_refused_with_the_way_out() {
    let fake = Fake::with(Options { frozen: true, declared_chats_only: true, ..Options::default() });
    for (act, status, word) in [
        (json!({ "chat": 7001, "action": "write", "text": "x" }), 400, "token"),
        (json!({ "token": BOT, "chat": 7001, "action": "write" }), 400, "text"),
        (json!({ "token": BOT, "chat": 7001, "action": "dance" }), 400, "write"),
        (json!({ "token": BOT, "chat": 7001, "action": "write", "text": "x" }), 404, "declare"),
        (json!({ "token": "nonsense", "chat": 7001, "action": "write", "text": "x" }), 400, "123456:SECRET"),
        (json!({ "token": BOT, "chat": 7001, "action": "write", "text": "x", "at": "1s" }), 400, "--people"),
        (json!("nonsense"), 400, ""),
    ] {
        let answer = fake.admin(reqwest::Method::POST, "users", Some(act.clone())).await;
        assert_eq!(answer.status, status, "{act}: {}", answer.text);
        assert!(answer.text.contains(word), "{act}: {}", answer.text);
    }
    assert_eq!(fake.admin(reqwest::Method::DELETE, "users", None).await.status, 405);
}

/// Time counts from the first bot on: what is due at once is done then, whoever called late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_happens_before_there_is_a_bot_and_fates_hold_for_later_ones() {
    let acts = json!([
        { "chat": 7001, "action": "write", "text": "first" },
        { "chat": 7002, "action": "block" },
        { "chat": 7001, "action": "write", "text": "later", "at": "10s" },
    ]);
    let people = serde_json::from_value(acts).expect("acts");
    let fake = Fake::with(Options { frozen: true, people, ..Options::default() });
    fake.advance("1h").await;
    assert!(fake.call("getMe", json!({})).await.result()["is_bot"] == true);
    let pending = |state: &Value, count: u64| state["bots"][0]["pending_updates"] == count;
    fake.until("what is due at once", |state| pending(state, 2)).await;
    fake.advance("9s").await;
    assert!(pending(&fake.look("state").await, 2));
    fake.advance("1s").await;
    fake.until("what is due 10 s later", |state| pending(state, 3)).await;
    for token in [BOT, "220000:AAother"] {
        let answer = fake.call_by(token, "sendMessage", json!({ "chat_id": 7002, "text": "x" })).await;
        assert_eq!(answer.failure(), (403, "Forbidden: bot was blocked by the user"), "{token}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_declare_a_chat_brings_it_back_and_unblocks_nobody() {
    let fake = Fake::frozen();
    let send = |chat: i64| fake.call("sendMessage", json!({ "chat_id": chat, "text": "x" }));
    send(7001).await.result();
    act(&fake, json!({ "chat": 7001, "action": "block" })).await;
    fake.tell("chats", json!({ "chat": 7001 })).await;
    assert_eq!(send(7001).await.status, 403);
    fake.tell("chats", json!({ "chat": 7001, "action": "unblock" })).await;
    send(7001).await.result();
    fake.tell("chats", json!({ "chat": 7001, "action": "delete" })).await;
    assert_eq!(send(7001).await.failure(), (400, "Bad Request: chat not found"));
    fake.tell("chats", json!({ "chat": 7001 })).await;
    send(7001).await.result();
    fake.tell("chats", json!({ "chat": -5001, "action": "migrate", "to": -1_000_000_005_001_i64 })).await;
    assert_eq!(send(-5001).await.body["parameters"]["migrate_to_chat_id"], -1_000_000_005_001_i64);
    fake.tell("chats", json!({ "chat": -5001 })).await;
    send(-5001).await.result();
    for wrong in [
        json!({ "chat": 7, "action": "migrate", "to": -5 }),
        json!({ "chat": -5, "action": "migrate", "to": -5 }),
    ] {
        assert_eq!(fake.admin(reqwest::Method::POST, "chats", Some(wrong)).await.status, 400);
    }
}

/// One of a list cannot be read: nothing is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_acts_is_done_as_a_whole() {
    let fake = Fake::frozen();
    let acts = json!([
        { "token": BOT, "chat": 7001, "action": "write", "text": "x" },
        { "token": BOT, "chat": 7001, "action": "nope" },
    ]);
    assert_eq!(fake.admin(reqwest::Method::POST, "users", Some(acts)).await.status, 400);
    assert_eq!(updates(&fake, 0).await.len(), 0);
}
