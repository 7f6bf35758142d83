//! Lag, from the instant at which a message was due to its delivery.
//!
//! A message that was not delivered counts with its age at the end of the run, as a lower bound: no design improves
//! its lag by dropping. Chats that were dead when the message fell due are left out.

use fake_telegram::time::Time;
use hdrhistogram::Histogram;

use crate::ledger::Ledger;
use crate::outcome::{Distribution, Lag};

use super::Steps;

/// Three significant digits.
const DIGITS: u8 = 3;

/// The lags of a run, in order of due instants.
pub(super) struct Lags {
    lags: Vec<Sample>,
}

struct Sample {
    due: Time,
    class: usize,
    us: u64,
    /// Not delivered: `us` is an age.
    censored: bool,
}

/// Lags with their ages, and with infinity in the place of ages: a quantile on which both agree is exact.
struct Pair {
    ages: Histogram<u64>,
    delivered: Histogram<u64>,
    censored: u64,
    max: u64,
}

impl Lags {
    pub(super) fn new(ledger: &Ledger, horizon: Time) -> Self {
        let samples = ledger.lines().iter().filter(|line| line.alive).map(|line| {
            let censored = line.delivered == Time::MAX;
            let until = if censored { horizon } else { line.delivered };
            Sample { due: line.due, class: line.class.0.into(), us: (until - line.due).as_micros(), censored }
        });
        Self { lags: samples.collect() }
    }

    fn of(&self, class: Option<usize>) -> impl Iterator<Item = &Sample> {
        self.lags.iter().filter(move |sample| class.is_none_or(|class| sample.class == class))
    }

    fn pair(&self, class: Option<usize>) -> Pair {
        let new = || Histogram::new(DIGITS).expect("three digits are allowed");
        let mut pair = Pair { ages: new(), delivered: new(), censored: 0, max: 0 };
        for sample in self.of(class) {
            pair.ages.record(sample.us).expect("the histogram grows");
            pair.max = pair.max.max(sample.us);
            if sample.censored {
                pair.censored += 1;
            } else {
                pair.delivered.record(sample.us).expect("the histogram grows");
            }
        }
        pair
    }

    /// Quantiles of all lags, or of one class'.
    pub(super) fn summary(&self, class: Option<usize>) -> Lag {
        let pair = self.pair(class);
        let samples = pair.ages.len();
        if samples == 0 {
            return Lag::default();
        }
        let mut lower_bound = Vec::new();
        let mut quantile = |name: &str, ppm| {
            let (us, exact) = pair.quantile(ppm);
            if !exact {
                lower_bound.push(name.to_owned());
            }
            Some(us)
        };
        let (p50, p90) = (quantile("p50", 500_000), quantile("p90", 900_000));
        let (p99, p999) = (quantile("p99", 990_000), quantile("p999", 999_000));
        let max = quantile("max", 1_000_000);
        Lag { p50, p90, p99, p999, max, samples, censored: pair.censored, lower_bound }
    }

    /// The 99th percentile by the window in which messages fell due, exact to the microsecond; a point is the maximum
    /// of its samples.
    pub(super) fn p99_over_time(&self, class: Option<usize>, steps: Steps) -> Vec<Option<u64>> {
        let mut p99 = vec![None; steps.samples()];
        let mut window = Vec::new();
        let mut lags = self.of(class).peekable();
        while let Some(first) = lags.peek() {
            let index = steps.sample_of(first.due);
            window.clear();
            while let Some(sample) = lags.next_if(|sample| steps.sample_of(sample.due) == index) {
                window.push(sample.us);
            }
            let rank = rank(window.len() as u64, 990_000) as usize;
            p99[index] = Some(*window.select_nth_unstable(rank - 1).1);
        }
        steps.fold_option(&p99)
    }

    /// The whole distribution: per cent steps, then ever finer towards the maximum.
    pub(super) fn distribution(&self) -> Distribution {
        let pair = self.pair(None);
        if pair.ages.is_empty() {
            return Distribution::default();
        }
        let mut ppm: Vec<u32> = (0..90).map(|percent| percent * 10_000).collect();
        for tail in [100_000_u32, 10_000, 1_000, 100, 10] {
            ppm.extend((0..90).step_by(2).map(|i| 1_000_000 - tail + tail / 100 * i));
        }
        ppm.push(1_000_000);
        ppm.dedup();
        let quantiles: Vec<_> = ppm.iter().map(|ppm| pair.quantile(*ppm)).collect();
        let bound = quantiles.iter().position(|(_, exact)| !exact).map(|index| ppm[index]);
        let us = quantiles.into_iter().map(|(us, _)| us).collect();
        Distribution { ppm, us, lower_bound_from_ppm: bound }
    }
}

impl Pair {
    /// The value at a quantile, and whether it would be the same if all censored ages were infinite.
    fn quantile(&self, ppm: u32) -> (u64, bool) {
        let rank = rank(self.ages.len(), ppm);
        if ppm == 1_000_000 {
            return (self.max, self.censored == 0);
        }
        let value = at_rank(&self.ages, rank).min(self.max);
        let exact = rank <= self.delivered.len() && at_rank(&self.delivered, rank).min(self.max) == value;
        (value, exact)
    }
}

/// The smallest rank, from 1, at which at least `ppm` of `samples` are reached.
fn rank(samples: u64, ppm: u32) -> u64 {
    let rank = (u128::from(samples) * u128::from(ppm)).div_ceil(1_000_000) as u64;
    rank.clamp(1, samples.max(1))
}

/// The value of the sample at `rank`, from 1, as far as the histogram resolves it.
fn at_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    // Half a sample below the rank, so that rounding cannot reach the next.
    histogram.value_at_quantile((rank as f64 - 0.5) / histogram.len() as f64)
}

#[cfg(test)]
mod tests;
