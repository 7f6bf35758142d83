//! Budget utilisation: tokens taken per token available of the token-wide limit.

use fake_telegram::limits::Level;
use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Rate;

/// Micro-tokens in a token.
const MICRO: u128 = 1_000_000;

/// Counts tokens, by sample and over the run.
///
/// Available in a window: what is there at its start, plus rate x window. Over the run: burst + rate x horizon.
/// Penalties are not deducted.
#[derive(Debug, Default)]
pub(super) struct Budget {
    taken: u64,
    taken_in_sample: u64,
    /// The level at the start of the open sample, and its length.
    open: Option<(Level, Duration)>,
    limit: Option<Level>,
    pub(super) samples_ppm: Vec<Option<u64>>,
}

impl Budget {
    pub(super) const fn take(&mut self, tokens: u32) {
        self.taken_in_sample += tokens as u64;
    }

    /// A sample ends and the next, `length` long, begins with `level`.
    pub(super) fn sample(&mut self, level: Option<Level>, length: Duration) {
        if let Some((start, length)) = self.open {
            let available = u128::from(start.available) + micro_tokens(start.rate, length);
            self.samples_ppm.push(ppm(self.taken_in_sample, available));
        }
        self.taken += std::mem::take(&mut self.taken_in_sample);
        self.open = level.map(|level| (level, length));
        self.limit = self.limit.or(level);
    }

    /// Over the run; `None` without a token-wide limit.
    pub(super) fn total_ppm(&self, horizon: Time) -> Option<u64> {
        let limit = self.limit?;
        let run = micro_tokens(limit.rate, horizon - Time::ZERO);
        ppm(self.taken + self.taken_in_sample, u128::from(limit.capacity) + run)
    }
}

fn micro_tokens(rate: Rate, time: Duration) -> u128 {
    u128::from(rate.count) * MICRO * u128::from(time.as_micros()) / u128::from(rate.period.as_micros())
}

fn ppm(taken: u64, available: u128) -> Option<u64> {
    (u128::from(taken) * MICRO * MICRO).checked_div(available).map(|ppm| ppm as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bucket of 30/s with burst 30: a full first second offers 60 tokens, an empty one 30.
    #[test]
    fn a_window_offers_its_level_and_its_refill() {
        let level = |tokens: u64| {
            Some(Level { available: tokens * 1_000_000, capacity: 30_000_000, rate: Rate::per_second(30) })
        };
        let mut budget = Budget::default();
        budget.sample(level(30), Duration::from_secs(1));
        budget.take(45);
        budget.sample(level(0), Duration::from_secs(1));
        budget.take(30);
        budget.sample(level(0), Duration::from_secs(1));
        assert_eq!(budget.samples_ppm, [Some(750_000), Some(1_000_000)]);
        assert_eq!(budget.total_ppm(Time::from_secs(2)), Some(833_333), "75 of 90");
    }

    #[test]
    fn without_a_token_wide_limit_there_is_no_utilisation() {
        let mut budget = Budget::default();
        budget.sample(None, Duration::from_secs(1));
        budget.take(1);
        assert_eq!(budget.total_ppm(Time::from_secs(1)), None);
    }
}
