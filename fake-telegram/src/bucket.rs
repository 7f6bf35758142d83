//! A token bucket in exact integers.
//!
//! Parameters ([`TokenBucket`]) and state ([`BucketState`], 8 bytes) are apart, so that a table of buckets is a table
//! of integers. Shared by the model and by limiters of the client's side.

use crate::time::{Duration, Time};
use crate::units::Rate;

/// A bucket that holds up to `burst` tokens and regains them evenly at `rate`.
///
/// ```
/// use fake_telegram::{bucket::{BucketState, TokenBucket}, time::{Duration, Time}, units::Rate};
///
/// let bucket = TokenBucket::new(Rate::per_second(1), 2);
/// let mut state = BucketState::default(); // full
/// bucket.take(&mut state, Time::ZERO);
/// bucket.take(&mut state, Time::ZERO);
/// assert_eq!(bucket.wait(state, Time::ZERO), Duration::from_secs(1));
/// ```
///
/// The generic cell rate algorithm (ITU-T I.371) on a clock that ticks `count` times a microsecond, where `rate` is
/// `count / period` in lowest terms: a token then costs `period` ticks, a whole number, and nothing is ever rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    ticks_per_micro: u64,
    ticks_per_token: u64,
    capacity_ticks: u64,
    burst: u64,
    rate: Rate,
}

/// How empty a bucket is: the tick at which it will be full again. The default is full, at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketState(u64);

/// Why there is no such bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BucketError {
    /// A bucket that never refills, or holds nothing.
    #[error("rate `{0}` with burst {1} lets nothing through; both must be above 0")]
    Nothing(Rate, u64),
    /// Ticks would not fit 64 bits for [`TokenBucket::HORIZON`].
    #[error(
        "rate `{0}` with burst {1} is too fine to be kept exactly for 20 years; round it, as in `30/s` or `100k/s`"
    )]
    TooFine(Rate, u64),
}

impl TokenBucket {
    /// Until when a bucket is exact: 20 years after the start. Later it refuses for ever, without a panic.
    pub const HORIZON: Time = Time::from_secs(20 * 366 * 86_400);

    /// A bucket of `burst` tokens that refills at `rate`.
    ///
    /// # Panics
    /// Where [`TokenBucket::checked`] gives an error.
    #[track_caller]
    pub fn new(rate: Rate, burst: u64) -> Self {
        match Self::checked(rate, burst) {
            Ok(bucket) => bucket,
            Err(error) => panic!("{error}"),
        }
    }

    /// A bucket of `burst` tokens that refills at `rate`.
    ///
    /// # Errors
    /// If either is 0, or if the rate is too fine (in lowest terms more than about 29,000 tokens a period).
    pub fn checked(rate: Rate, burst: u64) -> Result<Self, BucketError> {
        let period = rate.period.as_micros();
        if rate.count == 0 || period == 0 || burst == 0 {
            return Err(BucketError::Nothing(rate, burst));
        }
        let divisor = gcd(rate.count, period);
        let (ticks_per_micro, ticks_per_token) = (rate.count / divisor, period / divisor);
        let capacity_ticks = burst.checked_mul(ticks_per_token);
        let latest = Self::HORIZON.as_micros().checked_mul(ticks_per_micro);
        match (capacity_ticks, latest) {
            // Twice the capacity: a client's limiter may overdraw by a whole burst.
            (Some(capacity_ticks), Some(latest))
                if capacity_ticks.checked_mul(2).is_some_and(|c| latest.checked_add(c).is_some()) =>
            {
                Ok(Self { ticks_per_micro, ticks_per_token, capacity_ticks, burst, rate })
            }
            _ => Err(BucketError::TooFine(rate, burst)),
        }
    }

    /// How fast it refills.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// How many tokens it holds when full.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// How long until one token is there; zero means now.
    ///
    /// Exact: after just this wait, and nobody else taking, the token is there, and 1 us earlier it is not.
    #[inline]
    pub const fn wait(&self, state: BucketState, now: Time) -> Duration {
        self.wait_for(state, now, 1)
    }

    /// How long until `tokens` tokens are there; [`Duration::MAX`] if the bucket cannot hold so many.
    #[inline]
    pub const fn wait_for(&self, state: BucketState, now: Time, tokens: u64) -> Duration {
        let cost = tokens.saturating_mul(self.ticks_per_token);
        if cost > self.capacity_ticks {
            return Duration::MAX;
        }
        // Free from the tick on at which the bucket, full at `state.0`, has regained all but the spare room.
        let free = state.0.saturating_sub(self.capacity_ticks - cost);
        let ticks = free.saturating_sub(self.tick(now));
        if ticks == 0 { Duration::ZERO } else { Duration::from_micros(ticks.div_ceil(self.ticks_per_micro)) }
    }

    /// Whether `tokens` tokens are there: [`TokenBucket::wait_for`] is zero.
    #[inline]
    pub const fn has(&self, state: BucketState, now: Time, tokens: u64) -> bool {
        let missing = state.0.saturating_sub(self.tick(now));
        let cost = tokens.saturating_mul(self.ticks_per_token);
        missing <= self.capacity_ticks && cost <= self.capacity_ticks - missing
    }

    /// Takes one token, whether it is there or not: below zero the bucket is in debt and waits grow.
    #[inline]
    pub const fn take(&self, state: &mut BucketState, now: Time) {
        self.take_many(state, now, 1);
    }

    /// Takes `tokens` tokens, whether they are there or not.
    #[inline]
    pub const fn take_many(&self, state: &mut BucketState, now: Time, tokens: u64) {
        let tick = self.tick(now);
        let full = if state.0 > tick { state.0 } else { tick };
        state.0 = full.saturating_add(tokens.saturating_mul(self.ticks_per_token));
    }

    /// Puts a token back that was taken and not used: exact, also if other tokens were taken since.
    #[inline]
    pub const fn put_back(&self, state: &mut BucketState) {
        state.0 = state.0.saturating_sub(self.ticks_per_token);
    }

    /// What is there, in millionths of a token, rounded down; 0 in debt.
    pub const fn level_micro(&self, state: BucketState, now: Time) -> u64 {
        let missing = state.0.saturating_sub(self.tick(now));
        let ticks = self.capacity_ticks.saturating_sub(missing);
        let micro = ticks as u128 * 1_000_000 / self.ticks_per_token as u128;
        if micro > u64::MAX as u128 { u64::MAX } else { micro as u64 }
    }

    const fn tick(&self, now: Time) -> u64 {
        now.as_micros().saturating_mul(self.ticks_per_micro)
    }
}

impl BucketState {
    /// The state as an integer, to be kept elsewhere.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The state that [`BucketState::to_bits`] gave; 0 is full.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn a_token_that_is_put_back_was_never_taken() {
        let bucket = TokenBucket::new(Rate::per_second(1), 3);
        let (mut state, mut other) = (BucketState::default(), BucketState::default());
        bucket.take(&mut state, us(5));
        bucket.take(&mut state, us(400_000));
        bucket.put_back(&mut state);
        bucket.take(&mut other, us(5));
        for at in [400_000, 900_000, 2_000_000] {
            assert_eq!(bucket.level_micro(state, us(at)), bucket.level_micro(other, us(at)));
        }
    }

    #[test]
    fn allows_the_burst_then_one_a_refill() {
        let bucket = TokenBucket::new(Rate::per_second(30), 30);
        let mut state = BucketState::default();
        for _ in 0..30 {
            assert_eq!(bucket.wait(state, us(5)), Duration::ZERO);
            bucket.take(&mut state, us(5));
        }
        // A third of a tenth of a second, rounded up to where the token is really there.
        assert_eq!(bucket.wait(state, us(5)), Duration::from_micros(33_334));
        assert_eq!(bucket.wait(state, us(5 + 33_333)), Duration::from_micros(1));
        assert_eq!(bucket.wait(state, us(5 + 33_334)), Duration::ZERO);
    }

    #[test]
    fn does_not_drift_over_ten_years() {
        let bucket = TokenBucket::new(Rate::per_second(30), 2);
        let mut state = BucketState::default();
        let start = us(10 * 366 * 86_400 * 1_000_000);
        bucket.take_many(&mut state, start, 2);
        let mut now = start;
        for k in 1..=30_000u64 {
            now += bucket.wait(state, now);
            bucket.take(&mut state, now);
            // The k-th token after the burst is there k / 30 s after the start, in whole us.
            assert_eq!(now - start, Duration::from_micros((k * 1_000_000).div_ceil(30)));
        }
    }

    #[test]
    fn shows_its_level_in_micro_tokens() {
        let bucket = TokenBucket::new(Rate::per_second(4), 2);
        let mut state = BucketState::default();
        assert_eq!(bucket.level_micro(state, Time::ZERO), 2_000_000);
        bucket.take_many(&mut state, Time::ZERO, 2);
        assert_eq!(bucket.level_micro(state, Time::ZERO), 0);
        assert_eq!(bucket.level_micro(state, us(125_000)), 500_000);
        assert_eq!(bucket.level_micro(state, us(9_000_000)), 2_000_000);
    }

    #[test]
    fn debt_is_paid_before_anything_is_free() {
        let bucket = TokenBucket::new(Rate::per_second(1), 1);
        let mut state = BucketState::default();
        bucket.take_many(&mut state, Time::ZERO, 3);
        assert_eq!(bucket.wait(state, Time::ZERO), Duration::from_secs(3));
        assert_eq!(bucket.wait_for(state, Time::ZERO, 2), Duration::MAX);
    }

    #[test]
    fn impossible_buckets_are_told_what_to_do() {
        assert!(TokenBucket::checked(Rate::per_second(0), 1).is_err());
        assert!(TokenBucket::checked(Rate::per_second(1), 0).is_err());
        let error = TokenBucket::checked(Rate::per_second(999_983), 1).expect_err("a prime rate");
        assert!(error.to_string().contains("round it"), "{error}");
        assert!(TokenBucket::checked(Rate::per_second(1_000_000), 1_000_000).is_ok());
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        let bucket = TokenBucket::new(Rate::per_second(30), 30);
        let mut state = BucketState::default();
        bucket.take(&mut state, Time::MAX);
        let _ = bucket.wait(state, Time::MAX);
    }
}
