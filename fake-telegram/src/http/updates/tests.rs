use proptest::prelude::*;
use serde_json::json;

use super::*;

fn ask(offset: i64, timeout: u64) -> Ask {
    Ask { offset, limit: 100, timeout: Duration::from_secs(timeout), allowed: None }
}

fn hook(url: &str) -> Hook {
    let mut params = Params::default();
    params.set("url", url.into());
    Hook::read(&params).expect("valid").expect("a hook")
}

/// The ids of an answer.
fn ids(poll: &Poll) -> Vec<u64> {
    let Poll::Updates(updates) = poll else { panic!("{poll:?} is no answer") };
    updates.iter().map(|update| update["update_id"].as_u64().expect("an id")).collect()
}

fn ticket(poll: &Poll) -> Ticket {
    let Poll::Wait { ticket, .. } = poll else { panic!("{poll:?} does not wait") };
    *ticket
}

fn conflict(poll: &Poll) -> (Time, &str) {
    let Poll::Conflict(Conflict { at, failure }) = poll else { panic!("{poll:?} is no conflict") };
    assert_eq!((failure.code, failure.retry_after), (409, None));
    (*at, &failure.description)
}

#[derive(Debug, Clone)]
enum Step {
    Push(Kind),
    /// A poll that does not wait. The offset is counted from the next id.
    Poll {
        ahead: i64,
        limit: usize,
    },
    FromTheEnd(i64),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop_oneof![Just(Kind::Message), Just(Kind::Poll), Just(Kind::ChatMember)].prop_map(Step::Push),
        3 => (-8..25i64, 1..5usize).prop_map(|(ahead, limit)| Step::Poll { ahead, limit }),
        1 => (1..6i64).prop_map(Step::FromTheEnd),
        1 => (0..40_000u64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Beside a list that does what the documentation of getUpdates says, word for word.
    #[test]
    fn a_queue_is_a_list(steps in prop::collection::vec(step(), 1..60)) {
        let mut updates = Updates::default();
        let (mut list, mut next, mut now) = (Vec::<(u64, Time)>::new(), 1, Time::ZERO);
        for step in steps {
            let (offset, limit) = match step {
                Step::Push(kind) => {
                    let id = updates.push(now, kind, json!({}));
                    if kind == Kind::ChatMember {
                        prop_assert_eq!(id, None, "it has to be asked for");
                    } else {
                        prop_assert_eq!(id.map(u64::from), Some(next));
                        list.push((next, now));
                        next += 1;
                    }
                    continue;
                }
                Step::Pass(seconds) => {
                    now += Duration::from_secs(seconds);
                    continue;
                }
                Step::Poll { ahead, limit } => ((next as i64 + ahead).max(0), limit),
                Step::FromTheEnd(count) => (-count, 100),
            };
            list.retain(|(_, at)| now.saturating_since(*at) < Duration::from_hours(24));
            if offset < 0 {
                list.drain(..list.len().saturating_sub(-offset as usize));
            } else if offset <= next as i64 + 10 {
                list.retain(|(id, _)| *id as i64 >= offset);
            }
            let expected: Vec<u64> = list.iter().take(limit).map(|(id, _)| *id).collect();
            match updates.poll(now, &Ask { limit, ..ask(offset, 0) }) {
                Poll::Wait { ticket, at_least } => {
                    prop_assert!(expected.is_empty());
                    prop_assert_eq!(at_least, Duration::from_secs(3));
                    updates.leave(ticket);
                }
                poll => prop_assert_eq!(ids(&poll), expected),
            }
            prop_assert_eq!(updates.pending(), list.len());
        }
    }
}

#[test]
fn an_update_has_one_key_beside_its_id() {
    let mut updates = Updates::default();
    updates.push(Time::ZERO, Kind::EditedMessage, json!({ "text": "hi" }));
    let answer = updates.poll(Time::ZERO, &ask(0, 10));
    assert_eq!(answer, Poll::Updates(vec![json!({ "update_id": 1, "edited_message": { "text": "hi" } })]));
}

#[test]
fn a_poll_waits_for_what_it_asked_for() {
    let mut updates = Updates::default();
    let waits = ticket(&updates.poll(Time::ZERO, &Ask { limit: 1, ..ask(2, 10) }));
    updates.push(Time::from_secs(1), Kind::Message, json!({}));
    assert_eq!(ticket(&updates.resume(Time::from_secs(1), waits)), waits, "1 is confirmed");
    assert_eq!(updates.pending(), 0);
    updates.push(Time::from_secs(2), Kind::Message, json!({}));
    updates.push(Time::from_secs(2), Kind::Message, json!({}));
    assert_eq!(ids(&updates.resume(Time::from_secs(2), waits)), [2]);
    assert_eq!(updates.pending(), 2, "an answer confirms nothing");
}

#[test]
fn what_a_bot_wants_is_remembered() {
    let mut updates = Updates::default();
    let allowed = Allowed::read(&json!(["chat_member"]));
    updates.poll(Time::ZERO, &Ask { allowed, ..ask(0, 0) });
    updates.poll(Time::from_secs(9), &ask(0, 0));
    assert_eq!(updates.push(Time::from_secs(9), Kind::Message, json!({})), None);
    assert_eq!(updates.push(Time::from_secs(9), Kind::ChatMember, json!({})), Some(1));
    assert_eq!(updates.dropped(), 0, "nobody missed the message");
    let allowed = Allowed::read(&json!([]));
    updates.set_hook(Time::from_secs(9), None, allowed, false).expect("removed");
    assert_eq!(updates.push(Time::from_secs(9), Kind::ChatMember, json!({})), None);
}

/// Texts and holds: bot-api-errors.json; telegram.md 2.3.
#[test]
fn a_newer_poll_ends_the_older_and_further_conflicts_are_held() {
    let mut updates = Updates::default();
    let at = Time::from_secs;
    let tickets = [0, 1, 2, 8].map(|second| ticket(&updates.poll(at(second), &ask(0, 30))));
    let text =
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
    // The first ends at 1 s at once, the second at 2 s within the 3 s after that, the third at 8 s at once.
    for (waits, told) in tickets.into_iter().zip([1, 5, 8]) {
        assert_eq!(conflict(&updates.resume(at(9), waits)), (at(told), text));
    }
    updates.push(at(9), Kind::Message, json!({}));
    assert_eq!(ids(&updates.resume(at(9), tickets[3])), [1], "the newest is answered");
}

#[test]
fn a_poll_that_does_not_wait_ends_nobody() {
    let mut updates = Updates::default();
    let waits = ticket(&updates.poll(Time::ZERO, &ask(0, 30)));
    assert_eq!(ids(&updates.poll(Time::from_secs(5), &ask(0, 0))), [0; 0]);
    assert_eq!(ticket(&updates.resume(Time::from_secs(5), waits)), waits);
}

#[test]
fn a_poll_whose_client_is_gone_is_in_nobodys_way() {
    let mut updates = Updates::default();
    let gone = ticket(&updates.poll(Time::ZERO, &ask(0, 30)));
    updates.leave(gone);
    let waits = ticket(&updates.poll(Time::ZERO, &ask(0, 30)));
    updates.leave(gone);
    assert_eq!(updates.calm_at, Time::ZERO, "no conflict");
    assert_eq!(ticket(&updates.resume(Time::ZERO, waits)), waits);
}

/// telegram.md 5.5.
#[test]
fn the_same_offset_again_is_slowed_to_3_s_unless_something_is_there() {
    let mut updates = Updates::default();
    let at = Time::from_secs;
    assert_eq!(ids(&updates.poll(at(10), &ask(5, 0))), [0; 0]);
    assert_eq!(ids(&updates.poll(at(11), &ask(6, 0))), [0; 0], "another offset");
    let again = updates.poll(at(13), &ask(6, 2));
    assert_eq!(again, Poll::Wait { ticket: ticket(&again), at_least: Duration::from_secs(3) });
    let patient = updates.poll(at(15), &ask(6, 3));
    assert_eq!(patient, Poll::Wait { ticket: ticket(&patient), at_least: Duration::ZERO });
    assert_eq!(ids(&updates.poll(at(18), &ask(6, 0))), [0; 0], "3 s later");
    for _ in 0..6 {
        updates.push(at(18), Kind::Message, json!({}));
    }
    assert_eq!(ids(&updates.poll(at(18), &ask(6, 0))), [6]);
}

/// Texts: bot-api-errors.json.
#[test]
fn a_webhook_and_polls_exclude_each_other() {
    let mut updates = Updates::default();
    let at = Time::from_secs;
    let waits = ticket(&updates.poll(at(0), &ask(0, 30)));
    assert_eq!(updates.set_hook(at(1), Some(hook("https://a.b/")), None, false), Ok(Change::Set));
    assert_eq!(
        conflict(&updates.resume(at(1), waits)),
        (at(1), "Conflict: terminated by setWebhook request")
    );
    let text = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
    assert_eq!(conflict(&updates.poll(at(2), &ask(0, 0))), (at(5), text), "within 3 s of the one before");
    assert_eq!(conflict(&updates.poll(at(4), &ask(0, 0))), (at(4), text));
    assert_eq!(updates.set_hook(at(5), None, None, false), Ok(Change::Deleted));
    assert_eq!(ids(&updates.poll(at(5), &ask(0, 0))), [0; 0]);
}

#[test]
fn a_webhook_is_set_once_a_second_and_removed_at_any_time() {
    let mut updates = Updates::default();
    let (at, one) = (Time::from_micros, || Some(hook("https://a.b/one")));
    assert_eq!(updates.set_hook(at(0), None, None, false), Ok(Change::AlreadyDeleted));
    assert_eq!(updates.set_hook(at(0), one(), None, false), Ok(Change::Set));
    assert_eq!(updates.set_hook(at(999_999), one(), None, false), Err(Failure::retry_after(1)));
    assert_eq!(updates.set_hook(at(1_000_000), one(), None, false), Ok(Change::AlreadySet));
    assert_eq!(updates.set_hook(at(1_000_000), None, None, false), Ok(Change::Deleted));
    let other = Some(Hook { secret_token: Some("s".into()), ..hook("https://a.b/one") });
    assert_eq!(updates.set_hook(at(2_000_000), other, None, false), Ok(Change::Set));
    updates.push(at(2_000_000), Kind::Message, json!({}));
    assert_eq!(updates.set_hook(at(3_000_000), one(), None, false), Ok(Change::Set), "another secret");
    assert_eq!(updates.pending(), 1);
    assert_eq!(updates.set_hook(at(4_000_000), one(), None, true), Ok(Change::Set), "drops what waits");
    assert_eq!(updates.pending(), 0);
}

#[test]
fn webhook_info_says_what_there_is_and_no_more() {
    let mut updates = Updates::default();
    let unix = |at: Time| 1_700_000_000 + at.as_micros() as i64 / 1_000_000;
    let nothing = json!({ "url": "", "has_custom_certificate": false, "pending_update_count": 0 });
    assert_eq!(updates.hook_info(unix), nothing);
    let allowed = Allowed::read(&json!(["message"]));
    updates.set_hook(Time::ZERO, Some(hook("https://a.b/")), allowed, false).expect("set");
    updates.push(Time::ZERO, Kind::Message, json!({}));
    let generation = updates.generation;
    updates.failed(Time::from_secs(7), generation, 1, "it broke".into(), None);
    let everything = json!({
        "url": "https://a.b/",
        "has_custom_certificate": false,
        "pending_update_count": 1,
        "last_error_date": 1_700_000_007,
        "last_error_message": "it broke",
        "max_connections": 40,
        "allowed_updates": ["message"],
    });
    assert_eq!(updates.hook_info(unix), everything);
    updates.set_hook(Time::from_secs(7), None, Allowed::read(&json!([])), true).expect("removed");
    assert_eq!(updates.hook_info(unix), nothing);
}

#[test]
fn a_full_queue_takes_no_more_and_counts_what_is_lost() {
    let mut updates = Updates::default();
    for _ in 0..QUEUED_MAX {
        assert!(updates.push(Time::ZERO, Kind::Message, Value::Null).is_some());
    }
    assert_eq!(updates.push(Time::ZERO, Kind::Message, Value::Null), None);
    assert_eq!((updates.pending(), updates.dropped()), (QUEUED_MAX, 1));
    assert_eq!(ids(&updates.poll(Time::ZERO, &ask(-1, 0))), [QUEUED_MAX as u64]);
    assert_eq!(updates.push(Time::ZERO, Kind::Message, Value::Null), Some(QUEUED_MAX as u32 + 1));
}

#[test]
fn ids_end_where_clients_stop_counting_and_survive_a_reset() {
    let mut updates = Updates { next_id: ID_MAX, ..Updates::default() };
    updates.reset();
    assert_eq!(updates.push(Time::ZERO, Kind::Message, Value::Null), Some(2_147_483_647));
    assert_eq!(updates.push(Time::ZERO, Kind::Message, Value::Null), None);
    assert_eq!(ids(&updates.poll(Time::ZERO, &ask(2_147_483_647, 0))), [2_147_483_647]);
}

#[test]
fn reads_what_clients_ask_for() {
    let read = |fields: Value| {
        let mut params = Params::default();
        for (name, value) in fields.as_object().expect("an object") {
            params.set(name, value.clone());
        }
        Ask::read(&params)
    };
    assert_eq!(read(json!({})), ask(0, 0));
    assert_eq!(
        read(json!({ "offset": "-1", "limit": "0", "timeout": "100" })),
        Ask { limit: 1, ..ask(-1, 50) }
    );
    assert_eq!(read(json!({ "offset": i64::MIN, "limit": 1000, "timeout": -3 })), ask(i32::MIN.into(), 0));
    let allowed = Some(Allowed::default());
    assert_eq!(read(json!({ "allowed_updates": "[]" })), Ask { allowed, ..ask(0, 0) });
    assert_eq!(read(json!({ "allowed_updates": "[" })), ask(0, 0));
}
