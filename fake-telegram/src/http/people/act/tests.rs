use serde_json::{Value, json};

use super::*;

fn read(value: &Value) -> Result<Act, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

fn act(chat: i64, action: Action) -> Act {
    Act { chat: ChatId(chat), action, at: None, every: None }
}

#[test]
fn reads_every_action_and_writes_it_back() {
    for (written, chat, action) in [
        (
            json!({ "chat": -5001, "user": 7001, "action": "write", "text": "hi" }),
            -5001,
            Action::Write { user: 7001, text: "hi".into() },
        ),
        (
            json!({ "chat": 7001, "action": "tap", "data": "yes", "message_id": 12 }),
            7001,
            Action::Tap { user: 7001, message_id: 12, data: "yes".into() },
        ),
        (
            json!({ "chat": 7001, "action": "inline-query", "query": "cats" }),
            7001,
            Action::InlineQuery { user: 7001, query: "cats".into() },
        ),
        (json!({ "chat": 7001, "action": "block" }), 7001, Action::Block),
        (json!({ "chat": 7001, "user": 7001, "action": "unblock" }), 7001, Action::Unblock),
        (json!({ "chat": -5001, "user": 7, "action": "add-bot" }), -5001, Action::AddBot { user: 7 }),
        (json!({ "chat": -5001, "user": 7, "action": "remove-bot" }), -5001, Action::RemoveBot { user: 7 }),
        (
            json!({ "chat": -5001, "action": "migrate", "to": -1_000_000_005_001_i64 }),
            -5001,
            Action::Migrate { to: ChatId(-1_000_000_005_001) },
        ),
    ] {
        let expected = act(chat, action);
        assert_eq!(read(&written).as_ref(), Ok(&expected));
        let back = serde_json::to_value(&expected).expect("JSON");
        assert_eq!(read(&back).as_ref(), Ok(&expected), "{back}");
    }
}

#[test]
fn a_timeline_says_when_and_how_often() {
    let written = json!({ "chat": 7, "action": "write", "text": "hi", "at": "90s", "every": "20/min" });
    let read = read(&written).expect("an act");
    assert_eq!((read.at, read.every), (Some(Duration::from_secs(90)), Some(Rate::per_minute(20))));
}

#[test]
fn what_is_wrong_names_the_way_out() {
    for (written, error) in [
        (json!({ "chat": -5, "action": "write", "text": "hi" }), "`write` needs `user`"),
        (json!({ "chat": -5, "user": -7, "action": "write", "text": "hi" }), "`write` needs `user`"),
        (json!({ "chat": 7, "action": "write" }), "`write` needs `text`"),
        (json!({ "chat": 7, "action": "tap", "data": "x" }), "`tap` needs `message_id`"),
        (json!({ "chat": 7, "action": "block", "text": "x" }), "`block` has no `text`"),
        (json!({ "chat": -5, "action": "migrate", "to": -6, "data": "x" }), "`migrate` has no `data`"),
        (
            json!({ "chat": -5, "action": "block" }),
            "`block` happens in private chats; -5 is none (users have positive ids, groups negative ones)",
        ),
        (
            json!({ "chat": -5, "action": "migrate", "to": 6 }),
            "`migrate` happens in groups; 6 is none (users have positive ids, groups negative ones)",
        ),
        (
            json!({ "chat": 0, "user": 7, "action": "write", "text": "hi" }),
            "`write` happens in a chat; 0 is none (users have positive ids, groups negative ones)",
        ),
        (
            json!({ "chat": 7, "user": 8, "action": "block" }),
            "in the private chat 7 nobody acts but its user; `user` is 8",
        ),
    ] {
        assert_eq!(read(&written), Err(error.to_owned()));
    }
    for (written, part) in [
        (json!({ "chat": 7, "action": "wrote", "text": "hi" }), "unknown variant `wrote`"),
        (json!({ "chat": 7, "action": "write", "txt": "hi" }), "unknown field `txt`"),
        (json!({ "chat": 7, "action": "write", "text": "hi", "at": 90 }), "`90` has no unit"),
    ] {
        assert!(read(&written).is_err_and(|error| error.contains(part)), "{written}");
    }
}
