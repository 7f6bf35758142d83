use std::collections::BTreeMap;

use fake_telegram::api::{ChatKind, Method};
use fake_telegram::bucket::TokenBucket;
use fake_telegram::units::Rate;
use proptest::prelude::*;

use super::*;
use crate::world::ClassIndex;

fn lanes() -> Lanes {
    let pace = |rate, burst| TokenBucket::new(rate, burst);
    let pace = Pace {
        private: pace(Rate::per_second(1), 2),
        group: pace(Rate::per_minute(15), 5),
        channel: pace(Rate::per_minute(15), 5),
    };
    Lanes::new(pace, Duration::from_secs(60))
}

/// The offer that is in flight in a chat.
fn flight(lanes: &Lanes, chat: u32) -> Offer {
    let Node { message, tries, refusals, ticket, .. } = lanes.nodes[lanes.lanes[chat as usize].head as usize];
    Offer { message, tries, refusals, leased_until: Time::MAX, ticket, slot: chat }
}

fn message(number: u32, chat: u32) -> Message {
    Message {
        number,
        chat: ChatIndex(chat),
        due: Time::ZERO,
        deadline: Time::MAX,
        class: ClassIndex(0),
        kind: ChatKind::Private,
        method: Method::SendMessage,
        from_user: false,
    }
}

fn next(lanes: &mut Lanes, now: Time) -> Option<u32> {
    lanes.promote(now);
    lanes.pop(now, &mut Vec::new()).map(|offer| offer.message.number)
}

#[test]
fn a_chat_has_one_message_in_flight_and_keeps_its_order() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    for number in 0..2 {
        lanes.push(message(number, 7), 0, now, false);
    }
    assert_eq!(next(&mut lanes, now), Some(0));
    assert_eq!(next(&mut lanes, now), None, "the lane is busy");
    lanes.postpone(&flight(&lanes, 7), now, Time::from_secs(30), Postponed::Refused);
    assert_eq!((next(&mut lanes, now), lanes.next_at(now)), (None, Time::from_secs(30)));
    assert_eq!(next(&mut lanes, Time::from_secs(30)), Some(0), "a refused message keeps its place");
    lanes.finish(&flight(&lanes, 7), Time::from_secs(30));
    assert_eq!(next(&mut lanes, Time::from_secs(31)), Some(1));
}

#[test]
fn a_blocked_chat_holds_up_nobody_else() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    lanes.push(message(0, 1), 0, now, false);
    lanes.push(message(1, 2), 0, now, false);
    assert_eq!(next(&mut lanes, now), Some(0));
    lanes.postpone(&flight(&lanes, 1), now, Time::from_secs(3_600), Postponed::Refused);
    assert_eq!(next(&mut lanes, now), Some(1));
}

#[test]
fn a_lane_ranks_by_the_highest_class_that_waits_in_it() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    lanes.push(message(0, 1), 2, now, false);
    lanes.push(message(1, 2), 1, now, false);
    lanes.push(message(2, 1), 0, now, false);
    assert_eq!(next(&mut lanes, now), Some(0), "the broadcast in front of a reply");
    assert_eq!(next(&mut lanes, now), Some(1));
    lanes.push(message(3, 3), 1, now, false);
    lanes.finish(&flight(&lanes, 1), now);
    assert_eq!(next(&mut lanes, now), Some(2), "then the reply");
    lanes.finish(&flight(&lanes, 1), now);
    lanes.push(message(4, 1), 2, now, false);
    lanes.push(message(5, 4), 1, now, false);
    assert_eq!(next(&mut lanes, now), Some(3));
    assert_eq!(next(&mut lanes, now), Some(5), "the reply is gone, the lane is a broadcast's again");
}

#[test]
fn what_is_too_late_is_not_sent() {
    let (mut lanes, now) = (lanes(), Time::from_secs(10));
    let mut late = message(0, 1);
    late.deadline = Time::from_secs(9);
    lanes.push(late, 0, now, false);
    lanes.push(message(1, 1), 0, now, false);
    let mut expired = Vec::new();
    assert_eq!(lanes.pop(now, &mut expired).map(|offer| offer.message.number), Some(1));
    assert_eq!(expired, [late]);
}

#[test]
fn a_dead_chat_gives_everything_back() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    for number in 0..3 {
        lanes.push(message(number, 1), 0, now, false);
    }
    assert_eq!(next(&mut lanes, now), Some(0));
    lanes.close(&flight(&lanes, 1), now, true);
    assert_eq!(lanes.next_at(now), now, "something is to leave");
    let mut out = Vec::new();
    assert_eq!(lanes.pop(now, &mut out), None);
    assert_eq!(out, [message(1, 1), message(2, 1)]);
    assert_eq!((lanes.held(), lanes.next_at(now)), (vec![], Time::MAX));
    assert_eq!(lanes.push(message(3, 1), 0, now, false), Some(message(3, 1)));
}

#[test]
fn a_lease_that_ends_gives_the_head_back_once_and_whoever_had_it_is_late() {
    let mut lanes = lanes();
    lanes.push(message(0, 1), 0, Time::ZERO, false);
    lanes.push(message(1, 1), 0, Time::ZERO, false);
    let offer = lanes.pop(Time::ZERO, &mut Vec::new()).expect("one is ready");
    assert_eq!(lanes.overdue(Time::from_secs(59)), None);
    let overdue = lanes.overdue(Time::from_secs(60)).expect("the lease is over");
    lanes.postpone(&overdue, Time::from_secs(60), Time::from_secs(60), Postponed::InVain);
    lanes.finish(&offer, Time::from_secs(60));
    let again = lanes.pop(Time::from_secs(60), &mut Vec::new()).expect("its chat is not stuck");
    assert_eq!((again.message.number, again.tries), (0, 1));
    lanes.finish(&again, Time::from_secs(60));
    assert_eq!(lanes.overdue(Time::from_secs(999)), None);
    assert_eq!(next(&mut lanes, Time::from_secs(61)), Some(1));
}

/// The 403 is on its way back while the user writes again.
#[test]
fn a_user_who_writes_while_the_call_is_out_keeps_the_lane_open() {
    for (revives, sent) in [(true, Some(1)), (false, None)] {
        let (mut lanes, now) = (lanes(), Time::ZERO);
        lanes.push(message(0, 1), 0, now, true);
        assert_eq!(next(&mut lanes, now), Some(0));
        lanes.push(Message { from_user: true, ..message(1, 1) }, 0, now, true);
        lanes.close(&flight(&lanes, 1), now, revives);
        assert_eq!(next(&mut lanes, now), sent);
    }
}

/// After a loss of data a ticket that somebody still has may be another message's.
#[test]
fn an_offer_of_lanes_that_are_gone_means_nothing_to_new_ones() {
    let mut before = lanes();
    before.push(message(0, 1), 0, Time::ZERO, false);
    let stale = before.pop(Time::ZERO, &mut Vec::new()).expect("one is ready");
    let mut after = lanes();
    after.push(message(1, 1), 0, Time::ZERO, false);
    let offer = after.pop(Time::ZERO, &mut Vec::new()).expect("one is ready");
    assert_eq!(offer.ticket, stale.ticket);
    after.finish(&stale, Time::ZERO);
    assert!(!after.postpone(&stale, Time::ZERO, Time::MAX, Postponed::Refused));
    assert_eq!(after.held(), [1]);
    assert!(after.postpone(&offer, Time::ZERO, Time::ZERO, Postponed::Refused));
}

/// The pace is one a second, two in a row: what was not sent does not count.
#[test]
fn what_is_held_back_keeps_its_chats_pace() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    lanes.push(message(0, 1), 0, now, false);
    for _ in 0..5 {
        lanes.promote(now);
        let offer = lanes.pop(now, &mut Vec::new()).expect("nothing was sent yet");
        lanes.postpone(&offer, now, now, Postponed::HeldBack);
    }
}

#[test]
fn a_user_who_writes_opens_the_lane_again() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    lanes.push(message(0, 1), 0, now, true);
    assert_eq!(next(&mut lanes, now), Some(0));
    lanes.close(&flight(&lanes, 1), now, true);
    let answer = Message { from_user: true, ..message(1, 1) };
    assert_eq!(lanes.push(answer, 0, now, false), Some(answer), "nobody keeps the book");
    assert_eq!(lanes.push(answer, 0, now, true), None);
    assert_eq!(next(&mut lanes, Time::from_secs(1)), Some(1));
}

proptest! {
    /// Against queues in a map: order inside a chat, the pace of each chat, and nothing is lost.
    #[test]
    fn keeps_order_and_pace_and_loses_nothing(steps in prop::collection::vec((0_u32..5, 0_usize..RANKS, 0_u64..700), 1..200)) {
        let mut lanes = lanes();
        let mut queues: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
        let mut sent: BTreeMap<u32, Vec<Time>> = BTreeMap::new();
        let (mut now, mut waiting) = (Time::ZERO, 0);
        let mut deliver = |lanes: &mut Lanes, queues: &mut BTreeMap<u32, VecDeque<u32>>, now: Time| {
            lanes.promote(now);
            let offer = lanes.pop(now, &mut Vec::new());
            if let Some(offer) = offer {
                let message = offer.message;
                let expected = queues.get_mut(&message.chat.0).and_then(VecDeque::pop_front);
                assert_eq!(expected, Some(message.number));
                sent.entry(message.chat.0).or_default().push(now);
                lanes.finish(&offer, now);
            }
            offer.is_some()
        };
        for (number, (chat, rank, gap)) in steps.into_iter().enumerate() {
            now += Duration::from_millis(gap);
            lanes.push(message(number as u32, chat), rank, now, false);
            queues.entry(chat).or_default().push_back(number as u32);
            waiting += 1;
            if number % 3 == 0 && deliver(&mut lanes, &mut queues, now) {
                waiting -= 1;
            }
        }
        while waiting > 0 {
            if deliver(&mut lanes, &mut queues, now) {
                waiting -= 1;
            } else {
                prop_assert!(lanes.next_at(now) > now && lanes.next_at(now) < Time::MAX, "something waits for a date");
                now = lanes.next_at(now);
            }
        }
        // A bucket of 2 and 1/s: never more than 2 + t messages within t seconds.
        for times in sent.values() {
            for (i, from) in times.iter().enumerate() {
                for (j, to) in times.iter().enumerate().skip(i) {
                    prop_assert!((j - i + 1) as f64 <= 2.0 + (*to - *from).as_secs_f64() + 1e-9);
                }
            }
        }
    }
}
