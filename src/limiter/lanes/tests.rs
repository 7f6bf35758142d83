use std::collections::BTreeMap;

use fake_telegram::api::Method;
use fake_telegram::time::Duration;
use fake_telegram::units::Rate;
use proptest::prelude::*;

use super::*;
use crate::world::ClassIndex;

fn lanes() -> Lanes {
    let pace = |rate, burst| TokenBucket::new(rate, burst);
    Lanes::new(Pace {
        private: pace(Rate::per_second(1), 2),
        group: pace(Rate::per_minute(15), 5),
        channel: pace(Rate::per_minute(15), 5),
    })
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
        lanes.push(message(number, 7), 0, now);
    }
    assert_eq!(next(&mut lanes, now), Some(0));
    assert_eq!(next(&mut lanes, now), None, "the lane is busy");
    lanes.postpone(ChatIndex(7), now, Time::from_secs(30), false);
    assert_eq!((next(&mut lanes, now), lanes.next_at()), (None, Time::from_secs(30)));
    assert_eq!(next(&mut lanes, Time::from_secs(30)), Some(0), "a refused message keeps its place");
    lanes.finish(ChatIndex(7), Time::from_secs(30));
    assert_eq!(next(&mut lanes, Time::from_secs(31)), Some(1));
}

#[test]
fn a_blocked_chat_holds_up_nobody_else() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    lanes.push(message(0, 1), 0, now);
    lanes.push(message(1, 2), 0, now);
    assert_eq!(next(&mut lanes, now), Some(0));
    lanes.postpone(ChatIndex(1), now, Time::from_secs(3_600), false);
    assert_eq!(next(&mut lanes, now), Some(1));
}

#[test]
fn a_lane_ranks_by_the_highest_class_that_waits_in_it() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    lanes.push(message(0, 1), 2, now);
    lanes.push(message(1, 2), 1, now);
    lanes.push(message(2, 1), 0, now);
    assert_eq!(next(&mut lanes, now), Some(0), "the broadcast in front of a reply");
    assert_eq!(next(&mut lanes, now), Some(1));
    lanes.push(message(3, 3), 1, now);
    lanes.finish(ChatIndex(1), now);
    assert_eq!(next(&mut lanes, now), Some(2), "then the reply");
    lanes.finish(ChatIndex(1), now);
    lanes.push(message(4, 1), 2, now);
    lanes.push(message(5, 4), 1, now);
    assert_eq!(next(&mut lanes, now), Some(3));
    assert_eq!(next(&mut lanes, now), Some(5), "the reply is gone, the lane is a broadcast's again");
}

#[test]
fn what_is_too_late_is_not_sent() {
    let (mut lanes, now) = (lanes(), Time::from_secs(10));
    let mut late = message(0, 1);
    late.deadline = Time::from_secs(9);
    lanes.push(late, 0, now);
    lanes.push(message(1, 1), 0, now);
    let mut expired = Vec::new();
    assert_eq!(lanes.pop(now, &mut expired).map(|offer| offer.message.number), Some(1));
    assert_eq!(expired, [late]);
}

#[test]
fn a_dead_chat_gives_everything_back() {
    let (mut lanes, now) = (lanes(), Time::ZERO);
    for number in 0..3 {
        lanes.push(message(number, 1), 0, now);
    }
    assert_eq!(next(&mut lanes, now), Some(0));
    let waiting: Vec<_> = lanes.close(ChatIndex(1)).iter().map(|message| message.number).collect();
    assert_eq!(waiting, [1, 2]);
    assert_eq!(lanes.push(message(3, 1), 0, now), Some(message(3, 1)));
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
            if let Some(Offer { message, .. }) = offer {
                let expected = queues.get_mut(&message.chat.0).and_then(VecDeque::pop_front);
                assert_eq!(expected, Some(message.number));
                sent.entry(message.chat.0).or_default().push(now);
                lanes.finish(message.chat, now);
            }
            offer.is_some()
        };
        for (number, (chat, rank, gap)) in steps.into_iter().enumerate() {
            now += Duration::from_millis(gap);
            lanes.push(message(number as u32, chat), rank, now);
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
                prop_assert!(lanes.next_at() > now && lanes.next_at() < Time::MAX, "something waits for a date");
                now = lanes.next_at();
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
