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
    /// The open sample: when it began, and the level then.
    open: Option<(Time, Level)>,
    limit: Option<Level>,
    samples_ppm: Vec<Option<u64>>,
}

impl Budget {
    pub(super) const fn take(&mut self, tokens: u32) {
        self.taken_in_sample += tokens as u64;
    }

    /// A sample ends at `at` and the next begins, with `level`.
    pub(super) fn sample(&mut self, at: Time, level: Option<Level>) {
        self.samples_ppm.extend(self.open_ppm(at));
        self.taken += std::mem::take(&mut self.taken_in_sample);
        self.open = level.map(|level| (at, level));
        self.limit = self.limit.or(level);
    }

    /// By sample; the last ends with the run.
    pub(super) fn samples_ppm(&self, horizon: Time) -> Vec<Option<u64>> {
        let mut samples = self.samples_ppm.clone();
        samples
            .extend(self.open_ppm(horizon).filter(|_| self.open.is_some_and(|(start, _)| start < horizon)));
        samples
    }

    fn open_ppm(&self, end: Time) -> Option<Option<u64>> {
        let (start, level) = self.open?;
        Some(utilisation_ppm(Some(level), end - start, self.taken_in_sample))
    }

    /// Tokens taken so far.
    pub(super) const fn taken(&self) -> u64 {
        self.taken + self.taken_in_sample
    }

    /// What the token-wide limit allows at the start: all that it ever holds. `None` without such a limit.
    pub(super) fn full(&self) -> Option<Level> {
        self.limit.map(|level| Level { available: level.capacity, ..level })
    }
}

/// Of a stretch of time, at whose start there was `level`; `None` without a token-wide limit.
pub(super) fn utilisation_ppm(level: Option<Level>, time: Duration, taken: u64) -> Option<u64> {
    let level = level?;
    ppm(taken, u128::from(level.available) + micro_tokens(level.rate, time))
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
        budget.sample(Time::ZERO, level(30));
        budget.take(45);
        budget.sample(Time::from_secs(1), level(0));
        budget.take(30);
        budget.sample(Time::from_secs(2), level(0));
        let horizon = Time::from_secs(2);
        assert_eq!(budget.samples_ppm(horizon), [Some(750_000), Some(1_000_000)]);
        let total = utilisation_ppm(budget.full(), horizon - Time::ZERO, budget.taken());
        assert_eq!(total, Some(833_333), "75 of 90");
    }

    /// Half a second of 30/s offers 15 tokens.
    #[test]
    fn the_last_window_ends_with_the_run() {
        let level = Level { available: 0, capacity: 30_000_000, rate: Rate::per_second(30) };
        let mut budget = Budget::default();
        budget.sample(Time::ZERO, Some(level));
        budget.sample(Time::from_secs(1), Some(level));
        budget.take(3);
        let horizon = Time::from_micros(1_500_000);
        assert_eq!(budget.samples_ppm(horizon), [Some(0), Some(200_000)]);
    }

    #[test]
    fn without_a_token_wide_limit_there_is_no_utilisation() {
        let mut budget = Budget::default();
        budget.sample(Time::ZERO, None);
        budget.take(1);
        assert_eq!(utilisation_ppm(budget.full(), Duration::from_secs(1), budget.taken()), None);
    }
}
