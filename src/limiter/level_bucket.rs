//! A token bucket as it is mostly written: a level and a timestamp, with whatever clock its caller has (incident S17).
//!
//! On one clock it allows just what [`TokenBucket`](fake_telegram::bucket::TokenBucket) allows. On the clocks of its
//! callers it mints: after a caller whose clock is behind has set the timestamp back, one whose clock is ahead by `s`
//! finds `s x rate` tokens that nobody waited for.

use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Rate;

/// A bucket's parameters. Levels are counted in parts of a token, `rate.period` in microseconds to a token, so that a
/// microsecond is worth `rate.count` of them and nothing is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelBucket {
    rate: Rate,
    capacity: u64,
}

/// What is in the store: the level and the timestamp; `None` before the first use, when the bucket is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level(Option<(u64, Time)>);

impl LevelBucket {
    /// A bucket of `burst` tokens that refills at `rate`; [`TokenBucket::checked`] accepts them.
    ///
    /// [`TokenBucket::checked`]: fake_telegram::bucket::TokenBucket::checked
    pub const fn new(rate: Rate, burst: u64) -> Self {
        Self { rate, capacity: burst.saturating_mul(rate.period.as_micros()) }
    }

    /// Takes a token at the caller's `now` if there is one; else says how long until there is.
    pub fn take(&self, level: &mut Level, now: Time) -> Result<(), Duration> {
        let (mut units, stamp) = level.0.unwrap_or((self.capacity, now));
        let gained = now.saturating_since(stamp).as_micros().saturating_mul(self.rate.count);
        units = units.saturating_add(gained).min(self.capacity);
        let token = self.rate.period.as_micros();
        let missing = token.saturating_sub(units);
        if missing == 0 {
            units -= token;
        }
        // The caller's clock, also where it is behind: that is the defect.
        level.0 = Some((units, now));
        if missing == 0 { Ok(()) } else { Err(Duration::from_micros(missing.div_ceil(self.rate.count))) }
    }

    /// Puts a token back.
    pub fn put_back(&self, level: &mut Level) {
        if let Some((units, _)) = &mut level.0 {
            *units = units.saturating_add(self.rate.period.as_micros()).min(self.capacity);
        }
    }
}

#[cfg(test)]
mod tests {
    use fake_telegram::bucket::{BucketState, TokenBucket};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Another algorithm for the same bucket: the two agree call by call, waits included.
        #[test]
        fn on_one_clock_it_is_a_token_bucket(gaps in prop::collection::vec(0_u64..200_000, 1..200)) {
            let (rate, burst) = (Rate::per_second(28), 20);
            let (bucket, level) = (TokenBucket::new(rate, burst), LevelBucket::new(rate, burst));
            let (mut state, mut kept, mut now) = (BucketState::default(), Level::default(), Time::ZERO);
            for gap in gaps {
                now += Duration::from_micros(gap);
                let wait = bucket.wait(state, now);
                prop_assert_eq!(level.take(&mut kept, now).err().unwrap_or(Duration::ZERO), wait);
                if wait.is_zero() {
                    bucket.take(&mut state, now);
                }
            }
        }
    }

    /// Two callers in turn, `d` apart, one `s` ahead: each pair of calls gains `(s + d) x rate` where `2 d x rate` is
    /// right, so `(s - d) x rate` tokens are minted a pair.
    #[test]
    fn two_clocks_mint_their_skew_at_every_turn() {
        let bucket = LevelBucket::new(Rate::per_second(10), 1_000);
        let (mut level, mut granted) = (Level::default(), 0);
        let (s, d) = (Duration::from_secs(2), Duration::from_millis(25));
        for _ in 0..1_000 {
            bucket.take(&mut level, Time::from_secs(10)).expect("the bucket begins full");
        }
        for pair in 0..400_u64 {
            let now = Time::from_secs(10) + d * (2 * pair);
            granted += u64::from(bucket.take(&mut level, now + s).is_ok());
            granted += u64::from(bucket.take(&mut level, now + d).is_ok());
        }
        // 20 s at 10/s are 200 tokens; each of 400 pairs gains 20.25, far more than the two that it takes.
        assert_eq!(granted, 800);
    }
}
