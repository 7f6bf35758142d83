//! Thawing: after a pause a sender goes on at a share of its rate and grows (incident S5).
//!
//! Additive increase, multiplicative decrease: a refusal cuts the rate of that moment to a share, and from the end of
//! the pause on it grows by the same step every second until it is whole again.

use fake_telegram::time::{Duration, Time};
use fake_telegram::units::{Rate, Share};

/// Millionths of a message a second: rates in integers.
const MICRO: u128 = 1_000_000;

/// A ramp's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    /// The whole rate, in millionths of a message a second.
    full: u64,
    resume: Share,
    /// Growth a second, in millionths of a message a second.
    step: u64,
}

/// Where a ramp is; the default is at the top.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RampState {
    /// The rate at `from`, and when the pause ends or ended.
    climb: Option<(u64, Time)>,
    next_at: Time,
}

impl RampState {
    /// Nothing is held back.
    pub const fn top() -> Self {
        Self { climb: None, next_at: Time::ZERO }
    }
}

impl Ramp {
    /// Cuts `rate` to `resume` and grows by `step` every second.
    pub fn new(rate: Rate, resume: Share, step: Rate) -> Self {
        Self { full: micro(rate), resume, step: micro(step).max(1) }
    }

    /// The whole rate and the growth a second, both in millionths of a message a second, and the share that it resumes at.
    pub const fn parameters(&self) -> (u64, u64, Share) {
        (self.full, self.step, self.resume)
    }

    /// A refusal at `now`: not before `until`, and then slowly. One that comes before the pause of another is over
    /// belongs to the same trouble: it may lengthen the pause and cuts nothing again.
    pub fn refuse(&self, state: &mut RampState, now: Time, until: Time) {
        match &mut state.climb {
            Some((_, from)) if now < *from => *from = until.max(*from),
            _ => {
                let cut = self.resume.of(self.rate(*state, now));
                state.climb = Some((cut.max(MICRO as u64 / 60), until));
            }
        }
    }

    /// How long until the next message may go; zero at the top.
    pub fn wait(&self, state: RampState, now: Time) -> Duration {
        match state.climb {
            Some((_, from)) => state.next_at.max(from).saturating_since(now),
            None => Duration::ZERO,
        }
    }

    /// A message goes.
    pub fn take(&self, state: &mut RampState, now: Time) {
        let rate = self.rate(*state, now);
        if rate >= self.full {
            state.climb = None;
            return;
        }
        let gap = MICRO * MICRO / u128::from(rate);
        state.next_at = state.next_at.max(now).saturating_add(Duration::from_micros(gap as u64));
    }

    /// The rate at `now`, in millionths of a message a second.
    fn rate(&self, state: RampState, now: Time) -> u64 {
        let Some((start, from)) = state.climb else { return self.full };
        let grown = u128::from(self.step) * u128::from(now.saturating_since(from).as_micros()) / MICRO;
        (u128::from(start) + grown).min(u128::from(self.full)) as u64
    }
}

fn micro(rate: Rate) -> u64 {
    (u128::from(rate.count) * MICRO * MICRO / u128::from(rate.period.as_micros().max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn sent(ramp: &Ramp, state: &mut RampState, from: Time, until: Time) -> u64 {
        let (mut now, mut sent) = (from, 0);
        loop {
            now = now.saturating_add(ramp.wait(*state, now));
            // At the top nothing holds it back: the bucket beside it does, here one in 40 ms.
            if now >= until {
                return sent;
            }
            ramp.take(state, now);
            sent += 1;
            if ramp.rate(*state, now) >= 25_000_000 {
                now += Duration::from_millis(40);
            }
        }
    }

    /// 25/s cut to a fifth, 1/s more every second: 5/s at second 10, whole again 20 s later. In between the integral
    /// of the rate is (5 + 25) / 2 x 20 = 300 messages; each gap is that of the rate at its beginning, so a few less.
    #[test]
    fn resumes_at_a_share_and_grows_evenly() {
        let ramp = Ramp::new(Rate::per_second(25), Share::from_ppm(200_000), Rate::per_second(1));
        let mut state = RampState::default();
        ramp.refuse(&mut state, s(2), s(10));
        assert_eq!(ramp.wait(state, s(2)), Duration::from_secs(8));
        let climbing = sent(&ramp, &mut state, s(2), s(30));
        assert!((290..=301).contains(&climbing), "{climbing}");
        assert_eq!(sent(&ramp, &mut state, s(30), s(31)), 25);
    }

    #[test]
    fn refusals_of_one_pause_cut_once_and_the_next_cuts_again() {
        let ramp = Ramp::new(Rate::per_second(20), Share::from_ppm(500_000), Rate::per_second(1));
        let mut state = RampState::default();
        for (now, until) in [(1, 5), (1, 6), (2, 4)] {
            ramp.refuse(&mut state, s(now), s(until));
        }
        assert_eq!(state.climb, Some((10_000_000, s(6))));
        // 2 s later it is at 12/s.
        ramp.refuse(&mut state, s(8), s(20));
        assert_eq!(state.climb, Some((6_000_000, s(20))));
    }

    #[test]
    fn never_stops_altogether() {
        let ramp = Ramp::new(Rate::per_second(1), Share::default(), Rate::per_second(1));
        let mut state = RampState::default();
        ramp.refuse(&mut state, s(0), s(1));
        assert_eq!(ramp.wait(state, s(1)), Duration::ZERO);
        ramp.take(&mut state, s(1));
        // One a minute, in whole millionths a second.
        assert_eq!(ramp.wait(state, s(1)).as_micros() / 1_000_000, 60);
    }
}
