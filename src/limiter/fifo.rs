//! One queue for everything, by date: what has fallen due goes first, and what was put off goes when its date comes.
//!
//! With a pace it keeps to each chat's limit by waiting at its head: whatever stands behind a limited chat waits too
//! (head-of-line blocking, incident S10).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fake_telegram::api::ChatIndex;
use fake_telegram::bucket::BucketState;
use fake_telegram::time::{Duration, Time};

use super::leases::Leases;
use super::offer::{Offer, Pace, Postponed};
use crate::world::Message;

/// One queue.
#[derive(Debug)]
pub struct Fifo {
    pace: Option<Pace>,
    /// By date, then as they came: the slot of each waiting message.
    waiting: BinaryHeap<Reverse<(Time, u32, u32)>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    pushed: u32,
    leases: Leases,
    /// By chat, where there is a pace.
    buckets: Vec<BucketState>,
    /// By chat: whether it cannot receive.
    dead: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    message: Message,
    /// Of its offer while it is in flight; 0 otherwise.
    ticket: u32,
    tries: u8,
    refusals: u8,
}

impl Fifo {
    /// An empty queue whose messages may be in flight for as long as `lease`.
    pub fn new(pace: Option<Pace>, lease: Duration) -> Self {
        Self {
            pace,
            waiting: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            pushed: 0,
            leases: Leases::new(lease),
            buckets: Vec::new(),
            dead: Vec::new(),
        }
    }

    /// As [`Lanes::push`](super::lanes::Lanes::push).
    pub fn push(&mut self, message: Message, now: Time, revives: bool) -> Option<Message> {
        if let Some(dead) = self.dead.get_mut(message.chat.0 as usize)
            && *dead
        {
            if !(revives && message.from_user) {
                return Some(message);
            }
            *dead = false;
        }
        let slot = Slot { message, ticket: 0, tries: 0, refusals: 0 };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.wait(index, now);
        None
    }

    /// As [`Lanes::pop`](super::lanes::Lanes::pop).
    pub fn pop(&mut self, now: Time, out: &mut Vec<Message>) -> Option<Offer> {
        while let Some(Reverse((at, _, index))) = self.waiting.peek().copied()
            && at <= now
        {
            let message = self.slots[index as usize].message;
            if message.deadline < now || self.is_dead(message.chat) {
                self.waiting.pop();
                self.free.push(index);
                out.push(message);
                continue;
            }
            if let Some(pace) = &self.pace {
                let chat = message.chat.0 as usize;
                if self.buckets.len() <= chat {
                    self.buckets.resize(chat + 1, BucketState::default());
                }
                let bucket = pace.of(message.kind);
                if !bucket.wait(self.buckets[chat], now).is_zero() {
                    return None;
                }
                bucket.take(&mut self.buckets[chat], now);
            }
            self.waiting.pop();
            let (leased_until, ticket) = self.leases.begin(now, index);
            let slot = &mut self.slots[index as usize];
            slot.ticket = ticket;
            let Slot { tries, refusals, .. } = *slot;
            return Some(Offer { message, tries, refusals, leased_until, slot: index, ticket });
        }
        None
    }

    /// As [`Lanes::finish`](super::lanes::Lanes::finish).
    pub fn finish(&mut self, offer: &Offer) {
        if let Some(slot) = self.in_flight(offer) {
            slot.ticket = 0;
            self.free.push(offer.slot);
        }
    }

    /// As [`Lanes::postpone`](super::lanes::Lanes::postpone), but it keeps no place: it joins those of its new date.
    pub fn postpone(&mut self, offer: &Offer, until: Time, why: Postponed) -> bool {
        let Some(slot) = self.in_flight(offer) else { return false };
        slot.ticket = 0;
        why.count(&mut slot.tries, &mut slot.refusals);
        if let (Postponed::HeldBack, Some(pace)) = (why, &self.pace) {
            pace.of(offer.message.kind).put_back(&mut self.buckets[offer.message.chat.0 as usize]);
        }
        self.wait(offer.slot, until);
        true
    }

    /// The chat of a message in flight cannot receive: that message is done with, and others of the chat leave when
    /// their turn comes.
    pub fn close(&mut self, offer: &Offer) {
        if self.in_flight(offer).is_none() {
            return;
        }
        let chat = offer.message.chat.0 as usize;
        if self.dead.len() <= chat {
            self.dead.resize(chat + 1, false);
        }
        self.dead[chat] = true;
        self.finish(offer);
    }

    /// As [`Lanes::overdue`](super::lanes::Lanes::overdue).
    pub fn overdue(&mut self, now: Time) -> Option<Offer> {
        while let Some((until, index, ticket)) = self.leases.ended(now) {
            let Slot { message, tries, refusals, ticket: current } = self.slots[index as usize];
            if current == ticket {
                return Some(Offer { message, tries, refusals, leased_until: until, slot: index, ticket });
            }
        }
        None
    }

    /// When the next message may go, or leaves unsent; [`Time::MAX`] if none waits.
    pub fn next_at(&self, now: Time) -> Time {
        let Some(Reverse((at, _, index))) = self.waiting.peek().copied() else { return Time::MAX };
        let Some(pace) = self.pace.as_ref().filter(|_| at <= now) else { return at };
        let message = &self.slots[index as usize].message;
        if message.deadline < now || self.is_dead(message.chat) {
            return at;
        }
        let state = self.buckets.get(message.chat.0 as usize).copied().unwrap_or_default();
        now + pace.of(message.kind).wait(state, now)
    }

    /// The numbers of all messages, waiting or in flight.
    pub fn held(&self) -> Vec<u32> {
        let waiting = self.waiting.iter().map(|Reverse((_, _, index))| *index as usize);
        let in_flight = (0..self.slots.len()).filter(|index| self.slots[*index].ticket != 0);
        waiting.chain(in_flight).map(|index| self.slots[index].message.number).collect()
    }

    fn is_dead(&self, chat: ChatIndex) -> bool {
        self.dead.get(chat.0 as usize).is_some_and(|dead| *dead)
    }

    fn wait(&mut self, slot: u32, at: Time) {
        self.pushed += 1;
        self.waiting.push(Reverse((at, self.pushed, slot)));
    }

    fn in_flight(&mut self, offer: &Offer) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(offer.slot as usize)?;
        // After a loss of data the tickets begin again.
        (slot.ticket == offer.ticket && slot.message.number == offer.message.number).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use fake_telegram::api::{ChatKind, Method};
    use fake_telegram::bucket::TokenBucket;
    use fake_telegram::units::Rate;

    use super::*;
    use crate::world::ClassIndex;

    const LEASE: Duration = Duration::from_secs(60);

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

    fn pop(fifo: &mut Fifo, second: u64) -> Option<u32> {
        fifo.pop(Time::from_secs(second), &mut Vec::new()).map(|offer| offer.message.number)
    }

    #[test]
    fn what_is_put_off_goes_by_its_date() {
        let mut fifo = Fifo::new(None, LEASE);
        for number in 0..3 {
            fifo.push(message(number, number), Time::ZERO, false);
        }
        let first = fifo.pop(Time::ZERO, &mut Vec::new()).expect("three wait");
        fifo.postpone(&first, Time::from_secs(5), Postponed::Refused);
        assert_eq!([pop(&mut fifo, 0), pop(&mut fifo, 0), pop(&mut fifo, 4)], [Some(1), Some(2), None]);
        assert_eq!(fifo.next_at(Time::from_secs(4)), Time::from_secs(5));
        fifo.push(message(3, 3), Time::from_secs(6), false);
        assert_eq!([pop(&mut fifo, 6), pop(&mut fifo, 6)], [Some(0), Some(3)], "its date is the older");
    }

    #[test]
    fn the_head_waits_for_its_chat_and_everybody_behind_it_too() {
        let bucket = TokenBucket::new(Rate::per_second(1), 1);
        let mut fifo = Fifo::new(Some(Pace { private: bucket, group: bucket, channel: bucket }), LEASE);
        for (number, chat) in [(0, 1), (1, 1), (2, 2)] {
            fifo.push(message(number, chat), Time::ZERO, false);
        }
        assert_eq!([pop(&mut fifo, 0), pop(&mut fifo, 0)], [Some(0), None]);
        assert_eq!(fifo.next_at(Time::ZERO), Time::from_secs(1));
        assert_eq!([pop(&mut fifo, 1), pop(&mut fifo, 1)], [Some(1), Some(2)]);
    }

    /// Whose time is over does not wait for its chat: who stands behind it is free to go.
    #[test]
    fn a_head_that_leaves_unsent_keeps_nobody_waiting() {
        let bucket = TokenBucket::new(Rate::per_second(1), 1);
        let mut fifo = Fifo::new(Some(Pace { private: bucket, group: bucket, channel: bucket }), LEASE);
        fifo.push(message(0, 1), Time::ZERO, false);
        assert_eq!(pop(&mut fifo, 0), Some(0));
        fifo.push(Message { deadline: Time::ZERO, ..message(1, 1) }, Time::ZERO, false);
        fifo.push(message(2, 2), Time::ZERO, false);
        let now = Time::from_micros(1);
        assert_eq!(fifo.next_at(now), Time::ZERO);
        let mut left = Vec::new();
        assert_eq!(fifo.pop(now, &mut left).map(|offer| offer.message.number), Some(2));
        assert_eq!(left.iter().map(|message| message.number).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_lease_that_ends_gives_the_message_back_once_and_whoever_had_it_is_late() {
        let mut fifo = Fifo::new(None, LEASE);
        fifo.push(message(0, 1), Time::ZERO, false);
        let offer = fifo.pop(Time::ZERO, &mut Vec::new()).expect("one waits");
        assert_eq!(fifo.overdue(Time::from_secs(59)), None);
        let overdue = fifo.overdue(Time::from_secs(60)).expect("the lease is over");
        fifo.postpone(&overdue, Time::from_secs(60), Postponed::InVain);
        fifo.finish(&offer);
        let again = fifo.pop(Time::from_secs(60), &mut Vec::new()).expect("it waits again");
        assert_eq!((again.message.number, again.tries), (0, 1));
        fifo.finish(&again);
        assert_eq!(fifo.overdue(Time::from_secs(999)), None);
    }

    #[test]
    fn a_dead_chat_is_not_written_to_until_its_user_writes() {
        let mut fifo = Fifo::new(None, LEASE);
        fifo.push(message(0, 1), Time::ZERO, true);
        fifo.push(message(1, 1), Time::ZERO, true);
        let offer = fifo.pop(Time::ZERO, &mut Vec::new()).expect("two wait");
        fifo.close(&offer);
        let mut out = Vec::new();
        assert_eq!(fifo.pop(Time::ZERO, &mut out), None);
        assert_eq!(out, [message(1, 1)]);
        assert_eq!(fifo.push(message(2, 1), Time::ZERO, true), Some(message(2, 1)));
        let answer = Message { from_user: true, ..message(3, 1) };
        assert_eq!(fifo.push(answer, Time::ZERO, false), Some(answer), "nobody keeps the book");
        assert_eq!(fifo.push(answer, Time::ZERO, true), None);
        assert_eq!(pop(&mut fifo, 0), Some(3));
    }
}
