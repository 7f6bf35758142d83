//! Windows that count: sliding ([`SlidingWindow`]) and fixed ([`FixedWindow`]).
//!
//! As with buckets, parameters and state are apart. Shared by the model and by limiters of the client's side.

use std::collections::VecDeque;

use crate::time::{Duration, Time};

/// At most `limit` in *any* stretch of `window`: what was taken at `t` counts in `[t, t + window)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingWindow {
    /// How many, at least 1.
    pub limit: u32,
    /// The stretch.
    pub window: Duration,
}

/// The instants of the last `limit` takes, oldest first; allocated on use, 8 bytes a take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlidingLog(VecDeque<Time>);

/// At most `limit` in each window; windows are aligned to absolute time (the first begins at 0).
///
/// Lets up to twice `limit` through across a border: that is what a counter with an expiry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedWindow {
    /// How many, 1 to [`FixedWindow::LIMIT_MAX`].
    pub limit: u32,
    /// The length of each window, at least [`FixedWindow::WINDOW_MIN`].
    pub window: Duration,
}

/// Which window was counted last, and its count, in 8 bytes. The default has counted nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FixedState(u64);

impl SlidingWindow {
    /// How long until `count` more fit; zero means now, [`Duration::MAX`] if they never do. Exact to the microsecond.
    #[inline]
    pub fn wait(&self, log: &SlidingLog, now: Time, count: u32) -> Duration {
        let Some(room) = self.limit.checked_sub(count) else { return Duration::MAX };
        // With `room` left beside the newcomers, all but the newest `room` takes must be over.
        let Some(must_end) = log.0.len().checked_sub(room as usize + 1) else { return Duration::ZERO };
        log.0[must_end].saturating_add(self.window).saturating_since(now)
    }

    /// Counts `count` at `now`, whether they fit or not. `now` never runs backward.
    pub fn take(&self, log: &mut SlidingLog, now: Time, count: u32) {
        while log.0.front().is_some_and(|&t| t.saturating_add(self.window) <= now) {
            log.0.pop_front();
        }
        for _ in 0..count {
            if log.0.len() == self.limit as usize {
                log.0.pop_front();
            }
            log.0.push_back(now);
        }
    }

    /// How many still fit now.
    pub fn left(&self, log: &SlidingLog, now: Time) -> u32 {
        let counted = log.0.iter().rev().take_while(|t| t.saturating_add(self.window) > now).count();
        self.limit - counted as u32
    }
}

impl FixedWindow {
    /// The largest `limit`: 2^24 - 1.
    pub const LIMIT_MAX: u32 = (1 << COUNT_BITS) - 1;
    /// The shortest `window`: 1 ms (its 40-bit number then lasts for 34 years).
    pub const WINDOW_MIN: Duration = Duration::from_millis(1);

    /// How long until `count` more fit; zero means now, [`Duration::MAX`] if they never do. Exact to the microsecond.
    #[inline]
    pub fn wait(&self, state: FixedState, now: Time, count: u32) -> Duration {
        if count > self.limit {
            Duration::MAX
        } else if self.left(state, now) >= count {
            Duration::ZERO
        } else {
            Duration::from_micros(self.window.as_micros() - now.as_micros() % self.window.as_micros())
        }
    }

    /// Counts `count` at `now`, whether they fit or not.
    #[inline]
    pub fn take(&self, state: &mut FixedState, now: Time, count: u32) {
        let counted = (self.counted(*state, now) + u64::from(count)).min(u64::from(Self::LIMIT_MAX));
        state.0 = self.number(now) << COUNT_BITS | counted;
    }

    /// How many still fit now.
    pub fn left(&self, state: FixedState, now: Time) -> u32 {
        u64::from(self.limit).saturating_sub(self.counted(state, now)) as u32
    }

    fn counted(&self, state: FixedState, now: Time) -> u64 {
        if state.0 >> COUNT_BITS == self.number(now) { state.0 & u64::from(Self::LIMIT_MAX) } else { 0 }
    }

    /// The number of the window, modulo 2^40.
    fn number(&self, now: Time) -> u64 {
        (now.as_micros() / self.window.as_micros()) & (u64::MAX >> COUNT_BITS)
    }
}

impl FixedState {
    /// The state as an integer, to be kept elsewhere.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The state that [`FixedState::to_bits`] gave; 0 has counted nothing.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

const COUNT_BITS: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_sliding_window_frees_as_its_takes_age() {
        let window = SlidingWindow { limit: 2, window: MINUTE };
        let mut log = SlidingLog::default();
        window.take(&mut log, Time::from_secs(0), 1);
        window.take(&mut log, Time::from_secs(10), 1);
        assert_eq!(window.wait(&log, Time::from_secs(25), 1), Duration::from_secs(35));
        assert_eq!(window.wait(&log, Time::from_secs(25), 2), Duration::from_secs(45));
        assert_eq!(window.wait(&log, Time::from_secs(25), 3), Duration::MAX);
        // Half-open: at just 60 s the first is over.
        assert_eq!(window.wait(&log, Time::from_micros(59_999_999), 1), Duration::from_micros(1));
        assert_eq!(window.wait(&log, Time::from_secs(60), 1), Duration::ZERO);
        assert_eq!(window.left(&log, Time::from_secs(60)), 1);
    }

    #[test]
    fn a_fixed_window_lets_double_through_across_its_border() {
        let window = FixedWindow { limit: 20, window: MINUTE };
        let mut state = FixedState::default();
        window.take(&mut state, Time::from_secs(59), 20);
        assert_eq!(window.wait(state, Time::from_secs(59), 1), Duration::from_secs(1));
        assert_eq!(window.wait(state, Time::from_secs(60), 20), Duration::ZERO);
        window.take(&mut state, Time::from_secs(60), 20);
        assert_eq!(window.left(state, Time::from_secs(61)), 0);
        assert_eq!(window.wait(state, Time::from_secs(61), 1), Duration::from_secs(59));
    }
}
