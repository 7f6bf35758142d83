use fake_telegram::api::{ChatIndex, ChatKind, Method};
use fake_telegram::bucket::TokenBucket;

use super::*;
use crate::strategy::composition::Named;
use crate::strategy::sender::doubt::{Doubt, RetryDoubt};
use crate::strategy::sender::queue::{Fifo, Lanes};
use crate::strategy::sender::retry::Postpone;
use crate::world::ClassIndex;

const BILL: u8 = 1;

fn message(number: u32, class: u8) -> Message {
    Message {
        number,
        chat: ChatIndex(number),
        due: Time::ZERO,
        deadline: Time::MAX,
        class: ClassIndex(class),
        kind: ChatKind::Private,
        method: Method::SendMessage,
        from_user: false,
    }
}

const fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// A sender with a queue, and what lies in the store.
struct Bench {
    sender: Sender,
    shared: Shared,
    budget: Option<Budget>,
    question: u32,
}

impl Bench {
    fn new(sender: Sender, budget: Option<Budget>) -> Self {
        let shared = Shared::new(&sender.queue.0);
        Self { sender, shared, budget, question: 0 }
    }

    /// What is offered at `now` after `due` has joined: its number and tries; and how others left, unsent.
    fn exchange(&mut self, now: Time, due: &[Message]) -> (Option<(u32, u8)>, Vec<Told>, Grant) {
        self.question += 1;
        self.ask(now, due)
    }

    /// The same once more, by somebody who has not heard the answer.
    fn ask(&mut self, now: Time, due: &[Message]) -> (Option<(u32, u8)>, Vec<Told>, Grant) {
        let policy = Policy::new(&self.sender, &["reply".to_owned(), "bill".to_owned()]);
        let asker = Asker { process: 0, life: 1, question: self.question, can_send: true, now };
        let mut beside = Beside { budget: self.budget.as_mut(), pause: None };
        let mut out = Vec::new();
        let mut tell = |told| {
            if matches!(told, Told::GivenUp(..) | Told::Unknown(_)) {
                out.push(told);
            }
        };
        let grant = policy.exchange(now, asker, &mut self.shared, &mut beside, due, &mut tell);
        let offered = grant.offer.map(|offer| (offer.message.number, offer.tries));
        (offered, out, grant)
    }
}

fn budget(rate: &str, burst: u64) -> Option<Budget> {
    Some(Budget::new(TokenBucket::new(rate.parse().expect("a rate"), burst), None))
}

fn with_queue(queue: sender::Queue, retry: Retry) -> Sender {
    let bills_once = RetryDoubt { at_most_once: vec!["bill".to_owned()], ..RetryDoubt::default() };
    Sender {
        queue: Named(queue),
        retry: Named(retry),
        doubt: Named(Doubt::Retry(bills_once)),
        ..Sender::bare()
    }
}

/// The lease is a minute, the wait before a second attempt a second.
#[test]
fn what_was_in_flight_with_the_dead_is_in_doubt_and_its_class_decides() {
    for queue in [sender::Queue::Fifo(Fifo::default()), sender::Queue::Lanes(Lanes::default())] {
        let mut bench = Bench::new(with_queue(queue, Retry::requeue()), None);
        assert_eq!(bench.exchange(s(0), &[message(0, 0)]).0, Some((0, 0)));
        assert_eq!(bench.exchange(s(0), &[message(1, BILL)]).0, Some((1, 0)));
        let (offered, out, _) = bench.exchange(s(59), &[]);
        assert!(offered.is_none() && out.is_empty());
        let (offered, out, _) = bench.exchange(s(60), &[]);
        assert!(offered.is_none() && matches!(out[..], [Told::Unknown(_)]), "a bill is never sent twice");
        assert_eq!(bench.exchange(s(61), &[]).0, Some((0, 1)), "a reply is");
    }
}

#[test]
fn what_left_its_queue_before_it_was_sent_is_gone_with_the_dead() {
    let fifo = Fifo { mark: Mark::Before, ..Fifo::default() };
    let mut bench = Bench::new(with_queue(sender::Queue::Fifo(fifo), Retry::requeue()), None);
    assert_eq!(bench.exchange(s(0), &[message(0, 0)]).0, Some((0, 0)));
    let (offered, out, grant) = bench.exchange(s(60), &[]);
    assert!(offered.is_none() && out.is_empty() && matches!(grant.ask, AskIn::WhenDue));
}

#[test]
fn a_budget_beside_the_queue_is_spent_by_what_leaves_it() {
    let lanes = sender::Queue::Lanes(Lanes::default());
    let mut bench = Bench::new(with_queue(lanes, Retry::Postpone(Postpone::default())), budget("28/s", 2));
    let due = [message(0, 0), message(1, 0), message(2, 0)];
    assert!(bench.exchange(s(0), &due).0.is_some() && bench.exchange(s(0), &[]).0.is_some());
    let (offered, _, grant) = bench.exchange(s(0), &[]);
    // A token every 28th of a second.
    assert!(offered.is_none());
    assert!(matches!(grant.ask, AskIn::NotBefore(wait) if wait == Duration::from_micros(35_715)));
}

/// Two jobs and one token: the other is released, takes part again a minute later, and has failed at its third attempt
/// although nobody ever sent it (incident S19).
#[test]
fn a_framework_burns_attempts_by_waiting() {
    let release = Retry::Release(Release { delay: Duration::from_mins(1), attempts: 3 });
    let queue = sender::Queue::Fifo(Fifo::default());
    let mut bench = Bench::new(with_queue(queue, release), budget("1/1h", 1));
    assert_eq!(bench.exchange(s(0), &[message(0, 0), message(1, 0)]).0, Some((0, 0)));
    for minute in 0..2 {
        let (offered, out, _) = bench.exchange(s(60 * minute), &[]);
        assert!(offered.is_none() && out.is_empty(), "minute {minute}");
    }
    let (offered, out, _) = bench.exchange(s(120), &[]);
    assert!(offered.is_none() && matches!(out[..], [Told::GivenUp(_, GiveUp::Attempts)]));
}

/// Over a network an answer can be lost: the same question has the same answer, and gives nothing away twice.
#[test]
fn who_did_not_hear_the_answer_gets_it_again() {
    let fifo = Fifo { mark: Mark::Before, ..Fifo::default() };
    let mut bench = Bench::new(with_queue(sender::Queue::Fifo(fifo), Retry::requeue()), budget("1/s", 5));
    assert_eq!(bench.exchange(s(0), &[message(0, 0), message(1, 0)]).0, Some((0, 0)));
    let (offered, _, grant) = bench.ask(s(10), &[message(2, 0)]);
    assert_eq!((offered, grant.lease_left), (Some((0, 0)), Duration::from_secs(50)));
    assert_eq!(bench.exchange(s(10), &[]).0, Some((1, 0)));
}

/// A second postponement is one too many for a bill, and not for a reply.
#[test]
fn each_class_has_its_own_cap_on_postponements() {
    let postpone = Postpone { most: Some(5), by_class: [("bill".to_owned(), 1)].into() };
    let fifo = sender::Queue::Fifo(Fifo::default());
    let mut bench = Bench::new(with_queue(fifo, Retry::Postpone(postpone)), None);
    for (class, waits) in [(0, [true, true]), (BILL, [true, false])] {
        for (refusals, waits) in waits.into_iter().enumerate() {
            let (_, _, grant) = bench.exchange(s(0), &[message(0, class)]);
            let mut offer = grant.offer.expect("nothing holds it back");
            offer.refusals = refusals as u8;
            let policy = Policy::new(&bench.sender, &["reply".to_owned(), "bill".to_owned()]);
            assert_eq!(policy.after_refusal(&offer, Duration::from_secs(9)).is_some(), waits);
        }
    }
}
