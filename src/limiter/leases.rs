//! Messages in flight: each is somebody's until its lease ends.

use std::collections::VecDeque;

use fake_telegram::time::{Duration, Time};

/// All leases of a queue. They are equally long, so they end in the order in which they began.
#[derive(Debug)]
pub(super) struct Leases {
    length: Duration,
    given: u32,
    /// Until when, of what, which.
    running: VecDeque<(Time, u32, u32)>,
}

impl Leases {
    pub(super) const fn new(length: Duration) -> Self {
        Self { length, given: 0, running: VecDeque::new() }
    }

    /// Begins a lease of what is kept at `slot`: until when, and its ticket, from 1.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, slot: u32) -> (Time, u32) {
        self.given += 1;
        let until = now.saturating_add(self.length);
        if until < Time::MAX {
            self.running.push_back((until, slot, self.given));
        }
        (until, self.given)
    }

    /// The next lease that has ended by `now`, whether it was given back or not: until when, slot, ticket.
    #[inline]
    pub(super) fn ended(&mut self, now: Time) -> Option<(Time, u32, u32)> {
        self.running.pop_front_if(|(until, ..)| *until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_end_in_order_and_once() {
        let mut leases = Leases::new(Duration::from_secs(10));
        let s = Time::from_secs;
        assert_eq!(leases.begin(s(0), 7), (s(10), 1));
        assert_eq!(leases.begin(s(3), 8), (s(13), 2));
        assert_eq!(leases.ended(s(9)), None);
        assert_eq!([leases.ended(s(13)), leases.ended(s(13))], [Some((s(10), 7, 1)), Some((s(13), 8, 2))]);
        assert_eq!(leases.ended(s(99)), None);
    }

    #[test]
    fn a_lease_without_end_is_not_kept() {
        let mut leases = Leases::new(Duration::MAX);
        assert_eq!(leases.begin(Time::from_secs(1), 7).0, Time::MAX);
        assert!(leases.running.is_empty());
    }
}
