//! The queues that a sender can have, behind one surface.

use fake_telegram::time::Time;

use super::fifo::Fifo;
use super::lanes::Lanes;
use super::offer::{Offer, Postponed};
use crate::world::Message;

/// A queue of messages, each of which waits for its date or is in flight.
#[derive(Debug)]
pub enum Queue {
    /// One for everything.
    Fifo(Fifo),
    /// One for each chat.
    Lanes(Lanes),
}

impl Queue {
    /// A message joins, to go at once. `rank` 0 goes first, where there are ranks. Returns it if its chat is known to
    /// be dead; if `revives`, one that answers its user tells that the chat is not.
    #[inline]
    pub fn push(&mut self, message: Message, rank: usize, now: Time, revives: bool) -> Option<Message> {
        match self {
            Self::Fifo(fifo) => fifo.push(message, now, revives),
            Self::Lanes(lanes) => lanes.push(message, rank, now, revives),
        }
    }

    /// The next message to send; it is in flight from now on. Messages whose deadline is over and those to dead chats
    /// that it meets on the way go to `out`.
    #[inline]
    pub fn pop(&mut self, now: Time, out: &mut Vec<Message>) -> Option<Offer> {
        match self {
            Self::Fifo(fifo) => fifo.pop(now, out),
            Self::Lanes(lanes) => {
                lanes.promote(now);
                lanes.pop(now, out)
            }
        }
    }

    /// The message in flight is done with. An offer whose lease has ended means nothing any more, here and below.
    #[inline]
    pub fn finish(&mut self, offer: &Offer, now: Time) {
        match self {
            Self::Fifo(fifo) => fifo.finish(offer),
            Self::Lanes(lanes) => lanes.finish(offer, now),
        }
    }

    /// The message in flight waits, and does not go before `until`.
    /// Whether it did.
    pub fn postpone(&mut self, offer: &Offer, now: Time, until: Time, why: Postponed) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.postpone(offer, until, why),
            Self::Lanes(lanes) => lanes.postpone(offer, now, until, why),
        }
    }

    /// The chat of the message in flight cannot receive: the message is done with. What waits behind it leaves with the
    /// next [`pop`](Queue::pop) or when its turn comes; whatever is pushed later comes back at once, until its user writes.
    pub fn close(&mut self, offer: &Offer, now: Time, revives: bool) {
        match self {
            Self::Fifo(fifo) => fifo.close(offer),
            Self::Lanes(lanes) => lanes.close(offer, now, revives),
        }
    }

    /// The numbers of all messages, waiting or in flight.
    pub fn held(&self) -> Vec<u32> {
        match self {
            Self::Fifo(fifo) => fifo.held(),
            Self::Lanes(lanes) => lanes.held(),
        }
    }

    /// A message whose lease has ended while it was in flight: it still is, and it is for the caller to
    /// [`finish`](Queue::finish) or [`postpone`](Queue::postpone) it.
    #[inline]
    pub fn overdue(&mut self, now: Time) -> Option<Offer> {
        match self {
            Self::Fifo(fifo) => fifo.overdue(now),
            Self::Lanes(lanes) => lanes.overdue(now),
        }
    }

    /// When the next message may go: at or before `now` if one may now, [`Time::MAX`] if none waits.
    #[inline]
    pub fn next_at(&self, now: Time) -> Time {
        match self {
            Self::Fifo(fifo) => fifo.next_at(now),
            Self::Lanes(lanes) => lanes.next_at(now),
        }
    }
}
