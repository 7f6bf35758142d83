//! The pending events, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZero;

use fake_telegram::time::Time;

/// Bits of the target in a key.
const TARGET_BITS: u32 = 28;
/// Bits of the counter in a key: 6.9e10 events a run.
const SEQUENCE_BITS: u32 = 36;
/// Events kept sorted. Up to here an insertion that moves what is in the way beats a heap.
const NEAR_MAX: usize = 64;
/// Below this many cancelled events the heap is not swept.
const SWEEP_MIN: usize = 64;

/// Names one event; keys order as the events happen: `time << 64 | sequence << 28 | target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(NonZero<u128>);

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

/// The soonest events sorted, the rest in a heap. A popped key is never pushed back: it would get a new place among
/// its ties.
///
/// A cancelled event leaves the sorted part at once. In the heap it stays until it comes up or cancelled ones make up
/// half of it; so a cancelled event never happens, and dead keys never outnumber live ones by more than [`SWEEP_MIN`].
pub(super) struct Queue {
    /// Latest first, so that the soonest is taken off the end. All of it is before all of `far`.
    near: Vec<u128>,
    far: BinaryHeap<Reverse<u128>>,
    /// The soonest of `far`; `u128::MAX` if it is empty.
    far_from: u128,
    /// Keys in `far` that do not count.
    cancelled: BinaryHeap<Reverse<u128>>,
    sequence: u64,
    /// The last key that was taken out. Every key up to it has happened; under a shuffle also keys that are set for
    /// that very instant afterwards count as such, which makes their sleep end at its next poll, still at its instant.
    last: u128,
    shuffle: Option<u64>,
}

impl Queue {
    pub(super) fn new(shuffle: Option<u64>) -> Self {
        Self {
            near: Vec::with_capacity(NEAR_MAX),
            far: BinaryHeap::new(),
            far_from: u128::MAX,
            cancelled: BinaryHeap::new(),
            sequence: 0,
            last: 0,
            shuffle,
        }
    }

    #[inline]
    pub(super) fn set(&mut self, at: Time, target: Target) -> EventKey {
        self.sequence += 1;
        assert!(self.sequence < 1 << SEQUENCE_BITS, "fewer than 2^36 events a run");
        let place = match self.shuffle {
            None => self.sequence,
            Some(key) => (crate::rng::draw(key, self.sequence, 0) >> (64 - SEQUENCE_BITS)).max(1),
        };
        let low = (place << TARGET_BITS) | u64::from(target.0);
        let key = (u128::from(at.as_micros()) << 64) | u128::from(low);
        let name = EventKey(NonZero::new(key).expect("the counter begins at one"));
        if key > self.far_from {
            self.far.push(Reverse(key));
            return name;
        }
        if self.near.len() == NEAR_MAX {
            self.far.extend(self.near.drain(..NEAR_MAX / 2).map(Reverse));
            self.look_far();
            if key > self.far_from {
                self.far.push(Reverse(key));
                return name;
            }
        }
        // From the end: what is set is mostly among the soonest.
        self.near.push(key);
        let mut place = self.near.len() - 1;
        while place > 0 && self.near[place - 1] < key {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = key;
        name
    }

    pub(super) fn cancel(&mut self, key: EventKey) {
        if self.happened(key) {
            return;
        }
        let key = key.0.get();
        if key < self.far_from {
            if let Ok(place) = self.near.binary_search_by(|near| key.cmp(near)) {
                self.near.remove(place);
            }
            return;
        }
        self.cancelled.push(Reverse(key));
        if self.cancelled.len() > SWEEP_MIN && self.cancelled.len() * 2 > self.far.len() {
            let mut dead: Vec<u128> = self.cancelled.drain().map(|Reverse(key)| key).collect();
            dead.sort_unstable();
            self.far.retain(|Reverse(key)| dead.binary_search(key).is_err());
        }
        self.look_far();
    }

    #[inline]
    pub(super) const fn happened(&self, key: EventKey) -> bool {
        key.0.get() <= self.last
    }

    /// The instant of the earliest event; [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn next_at(&mut self) -> Time {
        if self.near.is_empty() && self.far_from < u128::MAX {
            self.refill();
        }
        self.near.last().map_or(Time::MAX, |key| Time::from_micros((key >> 64) as u64))
    }

    /// Takes the earliest event out, after [`Queue::next_at`] has shown that there is one.
    #[inline]
    pub(super) fn pop(&mut self) -> Target {
        let key = self.near.pop().expect("next_at saw an event");
        self.last = self.last.max(key);
        Target(key as u32 & ((1 << TARGET_BITS) - 1))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.near.len() + self.far.len() - self.cancelled.len()
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.near.len() + self.far.len() + self.cancelled.len()
    }

    #[cold]
    fn refill(&mut self) {
        while self.near.len() < NEAR_MAX / 2
            && let Some(Reverse(key)) = self.far.pop()
        {
            self.near.push(key);
            self.look_far();
        }
        self.near.reverse();
    }

    /// Drops cancelled keys off the front of the heap and says again where it begins.
    fn look_far(&mut self) {
        while self.cancelled.peek().is_some() && self.far.peek() == self.cancelled.peek() {
            self.far.pop();
            self.cancelled.pop();
        }
        self.far_from = self.far.peek().map_or(u128::MAX, |Reverse(key)| *key);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against an ordered set.
        #[test]
        fn agrees_with_an_ordered_set(steps in prop::collection::vec((0_u8..10, 1_u64..5_000, any::<prop::sample::Index>()), 1..2_000)) {
            let (mut queue, mut model) = (Queue::new(None), BTreeSet::new());
            let mut now = 0;
            for (step, delay, pick) in steps {
                match step {
                    0..=5 => { model.insert(queue.set(Time::from_micros(now + delay), Target(delay as u32))); }
                    6 if !model.is_empty() => {
                        let key = *model.iter().nth(pick.index(model.len())).expect("it is in range");
                        model.remove(&key);
                        queue.cancel(key);
                    }
                    _ => {
                        let at = queue.next_at();
                        let first = model.pop_first();
                        prop_assert_eq!(at, first.map_or(Time::MAX, |key| Time::from_micros((key.0.get() >> 64) as u64)));
                        if let Some(key) = first {
                            now = at.as_micros();
                            prop_assert_eq!(queue.pop(), Target(key.0.get() as u32 & ((1 << TARGET_BITS) - 1)));
                            prop_assert!(queue.happened(key));
                        }
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert!(queue.held() <= 3 * model.len() + 3 * SWEEP_MIN);
            }
        }
    }
}
