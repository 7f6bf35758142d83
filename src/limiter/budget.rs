//! A sender's budget: a token bucket, on one clock or on its callers', and a ramp for the time after a pause.

use fake_telegram::bucket::{BucketState, TokenBucket};
use fake_telegram::time::{Duration, Time};

use super::level_bucket::{Level, LevelBucket};
use super::ramp::{Ramp, RampState};

/// A bucket with all that limits it.
#[derive(Debug, Clone)]
pub struct Budget {
    bucket: Bucket,
    ramp: Option<(Ramp, RampState)>,
}

#[derive(Debug, Clone)]
enum Bucket {
    OneClock(TokenBucket, BucketState),
    CallersClocks(LevelBucket, Level),
}

impl Budget {
    /// A full bucket on one clock.
    pub const fn new(bucket: TokenBucket, ramp: Option<Ramp>) -> Self {
        let ramp = match ramp {
            Some(ramp) => Some((ramp, RampState::top())),
            None => None,
        };
        Self { bucket: Bucket::OneClock(bucket, BucketState::from_bits(0)), ramp }
    }

    /// A full bucket on the clocks of its callers (incident S17).
    pub fn on_callers_clocks(bucket: TokenBucket) -> Self {
        let level = LevelBucket::new(bucket.rate(), bucket.burst());
        Self { bucket: Bucket::CallersClocks(level, Level::default()), ramp: None }
    }

    /// How long until a message may go; zero means that a token was taken for it.
    #[inline]
    pub fn take(&mut self, now: Time) -> Duration {
        let wait = self.wait_of_ramp(now);
        if !wait.is_zero() {
            return wait;
        }
        match &mut self.bucket {
            Bucket::OneClock(bucket, state) => {
                let wait = bucket.wait(*state, now);
                if !wait.is_zero() {
                    return wait;
                }
                bucket.take(state, now);
            }
            Bucket::CallersClocks(bucket, level) => {
                if let Err(wait) = bucket.take(level, now) {
                    return wait;
                }
            }
        }
        if let Some((ramp, state)) = &mut self.ramp {
            ramp.take(state, now);
        }
        Duration::ZERO
    }

    /// Takes a token whether it is there or not; how long until the message that it is for may go.
    pub fn reserve(&mut self, now: Time) -> Duration {
        let wait = self.wait(now);
        match &mut self.bucket {
            Bucket::OneClock(bucket, state) => bucket.take(state, now),
            // Nothing to take on credit from; the caller asks again.
            Bucket::CallersClocks(..) => {}
        }
        if let Some((ramp, state)) = &mut self.ramp {
            ramp.take(state, now.saturating_add(wait));
        }
        wait
    }

    /// Puts a token back that was taken for a message that did not go.
    pub fn put_back(&mut self) {
        match &mut self.bucket {
            Bucket::OneClock(bucket, state) => bucket.put_back(state),
            Bucket::CallersClocks(bucket, level) => bucket.put_back(level),
        }
    }

    /// How long until a message may go; nothing is taken. On callers' clocks nobody can say, and it is zero.
    #[inline]
    pub fn wait(&self, now: Time) -> Duration {
        let of_bucket = match &self.bucket {
            Bucket::OneClock(bucket, state) => bucket.wait(*state, now),
            Bucket::CallersClocks(..) => Duration::ZERO,
        };
        of_bucket.max(self.wait_of_ramp(now))
    }

    /// A call was refused at `now`, until `until`.
    pub fn refuse(&mut self, now: Time, until: Time) {
        if let Some((ramp, state)) = &mut self.ramp {
            ramp.refuse(state, now, until);
        }
    }

    #[inline]
    fn wait_of_ramp(&self, now: Time) -> Duration {
        self.ramp.as_ref().map_or(Duration::ZERO, |(ramp, state)| ramp.wait(*state, now))
    }
}

#[cfg(test)]
mod tests {
    use fake_telegram::units::{Rate, Share};

    use super::*;

    const fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn a_ramp_holds_back_what_the_bucket_would_let_through() {
        let ramp = Ramp::new(Rate::per_second(10), Share::from_ppm(100_000), Rate::per_second(1));
        let mut budget = Budget::new(TokenBucket::new(Rate::per_second(10), 20), Some(ramp));
        assert_eq!(budget.take(s(0)), Duration::ZERO);
        budget.refuse(s(0), s(5));
        assert_eq!((budget.wait(s(0)), budget.take(s(0))), (Duration::from_secs(5), Duration::from_secs(5)));
        assert_eq!(budget.take(s(5)), Duration::ZERO);
        assert_eq!(budget.wait(s(5)), Duration::from_secs(1), "at a tenth of 10/s");
    }

    #[test]
    fn what_waits_takes_nothing() {
        let mut budget = Budget::new(TokenBucket::new(Rate::per_second(1), 1), None);
        assert_eq!(budget.take(s(0)), Duration::ZERO);
        for _ in 0..3 {
            assert_eq!(budget.take(s(0)), Duration::from_secs(1));
        }
        assert_eq!(budget.take(s(1)), Duration::ZERO);
    }
}
