use super::*;
use crate::http::peers::ChatId;

fn a_chat(id: i64) -> Chat {
    Chat { id: ChatId(id), r#type: ChatId(id).guess(), username: None }
}

/// What happens in the chat with that id.
fn within<T>(id: i64, happens: impl FnOnce(Scene<'_>) -> T) -> T {
    happens(Scene { bot: &Bot::new(42), chat: &a_chat(id), date: 1_700_000_000 })
}

/// Whether there is a `null` anywhere.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// requirements.md 5: the smallest objects that every client takes.
#[test]
fn a_private_text_has_all_that_clients_insist_on() {
    let Event { kind, payload } = within(7, |scene| scene.write(7, 3, "ping ☂"));
    assert_eq!(kind, Kind::Message);
    let expected = json!({
        "message_id": 3,
        "date": 1_700_000_000,
        "chat": { "id": 7, "type": "private", "first_name": "User 7" },
        "from": { "id": 7, "is_bot": false, "first_name": "User 7" },
        "text": "ping ☂",
    });
    assert_eq!(payload, expected);
}

#[test]
fn a_group_has_a_title_and_its_users_their_own_names() {
    let payload = within(-5001, |scene| scene.write(7001, 1, "hi")).payload;
    assert_eq!(payload["chat"], json!({ "id": -5001, "type": "group", "title": "Group -5001" }));
    assert_eq!(payload["from"]["id"], 7001);
}

/// Offsets and lengths in UTF-16 units (core.telegram.org/bots/api#messageentity): an emoji has two.
#[test]
fn commands_are_marked() {
    let marks = |text: &str| -> Vec<(u64, u64)> {
        let number = |entity: &Value, name| entity[name].as_u64().expect("a number");
        commands(text).iter().map(|entity| (number(entity, "offset"), number(entity, "length"))).collect()
    };
    assert_eq!(marks("/start payload"), [(0, 6)]);
    assert_eq!(marks("/start@fake_42_bot x"), [(0, 18)]);
    assert_eq!(marks("🎉 /a, then /b_2!"), [(3, 2), (12, 4)]);
    for none in
        ["hi", "/", "a/b", "//x", "http://example.com/x", "/команда", "/x/y", &format!("/{}", "x".repeat(65))]
    {
        assert_eq!(marks(none), [], "{none}");
    }
    assert_eq!(marks("/x@ab"), [(0, 2)], "too short for a name");
    let payload = within(7, |scene| scene.write(7, 1, "/help")).payload;
    assert_eq!(payload["entities"], json!([{ "type": "bot_command", "offset": 0, "length": 5 }]));
}

#[test]
fn a_tap_comes_with_its_message_or_one_that_cannot_be_accessed() {
    let Event { kind, payload } = within(-5001, |scene| scene.tap(7, 12, 5, None, "yes"));
    assert_eq!(kind, Kind::CallbackQuery);
    assert_eq!(
        (&payload["id"], &payload["data"], &payload["from"]["id"]),
        (&json!("12"), &json!("yes"), &json!(7))
    );
    assert!(payload["chat_instance"].is_string());
    assert_eq!((&payload["message"]["message_id"], &payload["message"]["date"]), (&json!(5), &json!(0)));
    let known = json!({ "message_id": 5, "text": "?" });
    let payload = within(-5001, |scene| scene.tap(7, 12, 5, Some(known.clone()), "yes")).payload;
    assert_eq!(payload["message"], known);
}

/// core.telegram.org/bots/api#chatmemberupdated.
#[test]
fn blocking_is_a_change_of_the_bots_membership() {
    let Event { kind, payload } =
        within(7, |scene| scene.membership(7, Membership::Member, Membership::Kicked));
    assert_eq!(kind, Kind::MyChatMember);
    assert_eq!(payload["old_chat_member"]["status"], "member");
    let new = &payload["new_chat_member"];
    assert_eq!((&new["status"], &new["until_date"]), (&json!("kicked"), &json!(0)));
    assert_eq!((&new["user"]["id"], &new["user"]["is_bot"]), (&json!(42), &json!(true)));
    assert_eq!((&payload["chat"]["id"], &payload["from"]["id"]), (&json!(7), &json!(7)));
}

#[test]
fn an_inline_query_tells_where_it_is_typed() {
    let Event { kind, payload } = within(7, |scene| scene.inline_query(7, 9, "cats"));
    assert_eq!(kind, Kind::InlineQuery);
    assert_eq!(
        (&payload["id"], &payload["query"], &payload["offset"]),
        (&json!("9"), &json!("cats"), &json!(""))
    );
    assert_eq!(payload["chat_type"], "sender");
    assert_eq!(within(-5, |scene| scene.inline_query(7, 9, "")).payload["chat_type"], "group");
}

#[test]
fn a_migration_is_told_in_both_chats() {
    let new = a_chat(-1_000_000_005_001);
    let [from, to] = within(-5001, |scene| scene.migrate(&new, 8, 1));
    assert_eq!((from.kind, to.kind), (Kind::Message, Kind::Message));
    assert_eq!(from.payload["chat"]["id"], -5001);
    assert_eq!(from.payload["migrate_to_chat_id"], -1_000_000_005_001_i64);
    assert_eq!(to.payload["chat"]["id"], -1_000_000_005_001_i64);
    assert_eq!(to.payload["chat"]["type"], "supergroup");
    assert_eq!(to.payload["migrate_from_chat_id"], -5001);
    assert_eq!((&from.payload["message_id"], &to.payload["message_id"]), (&json!(8), &json!(1)));
}

#[test]
fn nothing_is_null() {
    let new = a_chat(-1_000_000_000_005);
    let mut events = within(-5, |scene| scene.migrate(&new, 1, 1)).to_vec();
    for id in [7, -5] {
        events.extend(within(id, |scene| {
            let left = scene.membership(7, Membership::Left, Membership::Member);
            [scene.write(7, 1, "/x"), scene.tap(7, 1, 1, None, ""), left, scene.inline_query(7, 1, "")]
        }));
    }
    for event in events {
        assert!(event.payload.is_object() && !has_null(&event.payload), "{event:?}");
    }
}
