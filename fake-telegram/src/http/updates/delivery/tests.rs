use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::http::kinds::Kind;
use crate::http::params::Params;
use crate::http::updates::Change;
use crate::http::updates::hook::Hook;

/// Updates with a webhook, and its generation.
fn with_hook(connections: usize) -> (Updates, u64) {
    let mut params = Params::default();
    params.set("url", "http://127.0.0.1:1/".into());
    params.set("max_connections", connections.into());
    let hook = Hook::read(&params).expect("valid");
    let mut updates = Updates::default();
    assert_eq!(updates.set_hook(Time::ZERO, hook, None, false), Ok(Change::Set));
    let generation = updates.hook_target().expect("a hook").0;
    (updates, generation)
}

fn post(next: Next) -> u32 {
    match next {
        Next::Post(post) => post.id,
        other => panic!("{other:?} is nothing to deliver"),
    }
}

proptest! {
    /// Whatever fails and however they are mixed: every update arrives once, those of a chat in order and one at a time,
    /// and no more than so many are on the wire.
    #[test]
    fn every_update_arrives_once_and_in_its_chats_order(
        chats in prop::collection::vec(1..6i64, 1..40),
        outcomes in prop::collection::vec((any::<prop::sample::Index>(), prop::bool::weighted(0.7)), 400),
        connections in 1..5usize,
    ) {
        let (mut updates, generation) = with_hook(connections);
        for chat in &chats {
            updates.push(Time::ZERO, Kind::Message, json!({ "chat": { "id": chat } }));
        }
        let (mut now, mut wire, mut arrived) = (Time::ZERO, Vec::<u32>::new(), Vec::<u32>::new());
        let chat = |id: u32| chats[id as usize - 1];
        for (which, arrives) in outcomes {
            let wake_at = loop {
                match updates.next_post(now, generation) {
                    Next::Post(post) => {
                        prop_assert!(wire.iter().all(|other| chat(*other) != chat(post.id)), "one at a time");
                        wire.push(post.id);
                        prop_assert!(wire.len() <= connections);
                    }
                    Next::Wait(at) => break at,
                    Next::Over => unreachable!("the webhook stays"),
                }
            };
            if wire.is_empty() {
                let Some(at) = wake_at else { break };
                prop_assert!(at > now);
                now = at;
                continue;
            }
            let id = wire.swap_remove(which.index(wire.len()));
            if arrives {
                updates.delivered(generation, id);
                arrived.push(id);
            } else {
                updates.failed(now, generation, id, "no".into(), None);
            }
        }
        let mut of_chat = BTreeMap::<i64, Vec<u32>>::new();
        for id in &arrived {
            of_chat.entry(chat(*id)).or_default().push(*id);
        }
        prop_assert!(of_chat.values().all(|ids| ids.is_sorted_by(|one, next| one < next)), "{of_chat:?}");
        prop_assert_eq!(updates.pending(), chats.len() - arrived.len());
    }
}

#[test]
fn pauses_grow_from_none_to_a_minute() {
    let pauses = [1, 2, 3, 4, 5, 6, 7, 8, u32::MAX].map(|failures| growing(failures).as_secs_ceil());
    assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 60, 60, 60]);
    let (mut updates, generation) = with_hook(1);
    updates.push(Time::ZERO, Kind::Message, json!({}));
    for _ in 0..2 {
        assert_eq!(post(updates.next_post(Time::ZERO, generation)), 1, "the second time at once");
        updates.failed(Time::ZERO, generation, 1, "no".into(), None);
    }
    assert_eq!(updates.next_post(Time::ZERO, generation), Next::Wait(Some(Time::from_secs(2))));
}

#[test]
fn a_pause_that_is_asked_for_is_kept_up_to_an_hour() {
    for (asked, kept) in [(7, 7), (3_600, 3_600), (100_000, 3_600)] {
        let (mut updates, generation) = with_hook(1);
        updates.push(Time::ZERO, Kind::Message, json!({}));
        let id = post(updates.next_post(Time::ZERO, generation));
        updates.failed(Time::ZERO, generation, id, "no".into(), Some(Duration::from_secs(asked)));
        assert_eq!(updates.next_post(Time::ZERO, generation), Next::Wait(Some(Time::from_secs(kept))));
    }
}

#[test]
fn another_webhook_gets_what_the_old_one_had_on_the_wire() {
    let (mut updates, old) = with_hook(40);
    updates.push(Time::ZERO, Kind::Message, json!({ "chat": { "id": 1 } }));
    assert_eq!(post(updates.next_post(Time::ZERO, old)), 1);
    let mut params = Params::default();
    params.set("url", "http://127.0.0.1:2/".into());
    let hook = Hook::read(&params).expect("valid");
    assert_eq!(updates.set_hook(Time::from_secs(1), hook, None, false), Ok(Change::Set));
    assert_eq!(updates.next_post(Time::from_secs(1), old), Next::Over);
    updates.delivered(old, 1);
    updates.failed(Time::from_secs(1), old, 1, "no".into(), None);
    let new = updates.hook_target().expect("a hook").0;
    assert_eq!(post(updates.next_post(Time::from_secs(1), new)), 1);
    assert_eq!(updates.hook_info(|_| 0).get("last_error_message"), None);
}

#[test]
fn what_belongs_to_no_chat_is_in_nobodys_order() {
    let (mut updates, generation) = with_hook(40);
    for payload in [json!({}), json!({}), json!({ "from": { "id": 7 } }), json!({ "chat": { "id": 7 } })] {
        updates.push(Time::ZERO, Kind::Message, payload);
    }
    assert_eq!([(); 3].map(|()| post(updates.next_post(Time::ZERO, generation))), [1, 2, 3]);
    assert_eq!(updates.next_post(Time::ZERO, generation), Next::Wait(None), "7 is busy");
}
