//! The pending events, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fake_telegram::time::Time;

/// Bits of the target in a key.
const TARGET_BITS: u32 = 28;
/// Bits of the counter in a key: 6.9e10 events a run.
const SEQUENCE_BITS: u32 = 36;
/// Below this many cancelled events the queue is not swept.
const SWEEP_MIN: usize = 64;

/// Names one event; keys order as the events happen: `time << 64 | sequence << 28 | target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u128);

/// Whom an event concerns: two bits of kind, 26 bits of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target(u32);

const FOREIGN: u32 = 1 << 26;
const EXTERNAL: u32 = 1 << 27;

impl Target {
    pub(super) fn for_task(task: u32) -> Self {
        assert!(task < FOREIGN, "fewer than 2^26 tasks");
        Self(task)
    }

    pub(super) const fn foreign(slot: u32) -> Self {
        Self(FOREIGN | slot)
    }

    pub(super) fn external(number: u32) -> Self {
        assert!(number < FOREIGN, "external events are numbered below 2^26");
        Self(EXTERNAL | number)
    }

    pub(super) const fn task(self) -> Option<u32> {
        if self.0 < FOREIGN { Some(self.0) } else { None }
    }

    pub(super) const fn is_foreign(self) -> bool {
        self.0 & FOREIGN != 0
    }

    pub(super) const fn index(self) -> u32 {
        self.0 & (FOREIGN - 1)
    }
}

/// A heap of keys. A popped key is never pushed back: it would get a new place among its ties.
///
/// Cancelled keys stay until they come up or make up half of the heap, whichever is first; so a cancelled event never
/// happens, and dead keys never outnumber live ones by more than [`SWEEP_MIN`].
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<u128>>,
    cancelled: BinaryHeap<Reverse<u128>>,
    sequence: u64,
    /// The last key that was taken out; every key up to it has happened.
    last: u128,
    shuffle: Option<u64>,
}

impl Queue {
    pub(super) fn new(shuffle: Option<u64>) -> Self {
        Self { heap: BinaryHeap::new(), cancelled: BinaryHeap::new(), sequence: 0, last: 0, shuffle }
    }

    pub(super) fn set(&mut self, at: Time, target: Target) -> EventKey {
        self.sequence += 1;
        assert!(self.sequence < 1 << SEQUENCE_BITS, "fewer than 2^36 events a run");
        let place = match self.shuffle {
            None => self.sequence,
            Some(key) => crate::rng::draw(key, self.sequence, 0) >> (64 - SEQUENCE_BITS),
        };
        let low = (place << TARGET_BITS) | u64::from(target.0);
        let key = (u128::from(at.as_micros()) << 64) | u128::from(low);
        self.heap.push(Reverse(key));
        EventKey(key)
    }

    pub(super) fn cancel(&mut self, key: EventKey) {
        if self.happened(key) {
            return;
        }
        self.cancelled.push(Reverse(key.0));
        if self.cancelled.len() > SWEEP_MIN && self.cancelled.len() * 2 > self.heap.len() {
            let mut dead: Vec<u128> = self.cancelled.drain().map(|Reverse(key)| key).collect();
            dead.sort_unstable();
            self.heap.retain(|Reverse(key)| dead.binary_search(key).is_err());
        }
    }

    pub(super) const fn happened(&self, key: EventKey) -> bool {
        key.0 <= self.last
    }

    /// The instant of the earliest event; [`Time::MAX`] if there is none.
    pub(super) fn next_at(&mut self) -> Time {
        if !self.cancelled.is_empty() {
            while self.cancelled.peek().is_some() && self.heap.peek() == self.cancelled.peek() {
                self.heap.pop();
                self.cancelled.pop();
            }
        }
        self.heap.peek().map_or(Time::MAX, |Reverse(key)| Time::from_micros((key >> 64) as u64))
    }

    /// Takes the earliest event out, after [`Queue::next_at`] has shown that there is one.
    pub(super) fn pop(&mut self) -> Target {
        let Reverse(key) = self.heap.pop().expect("next_at saw an event");
        self.last = self.last.max(key);
        Target(key as u32 & ((1 << TARGET_BITS) - 1))
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len() - self.cancelled.len()
    }

    pub(super) fn held(&self) -> usize {
        self.heap.len() + self.cancelled.len()
    }
}
