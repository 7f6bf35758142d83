//! Lag, from the instant at which a message was due to its delivery.
//!
//! A message that was not delivered counts with its age at the end of the run, as a lower bound: no design improves
//! its lag by dropping. Chats that were dead when the message fell due are left out.

use std::ops::Range;

use fake_telegram::time::Time;
use hdrhistogram::Histogram;
use indexmap::IndexMap;

use crate::ledger::{Ledger, Line};
use crate::outcome::{Distribution, Lag, LagCounts};
use crate::stats::rank;

use super::Steps;

/// Three significant digits.
const DIGITS: u8 = 3;

/// The lags of a run, in order of due instants, and their histograms by class.
pub(super) struct Lags {
    lags: Vec<Sample>,
    classes: Vec<Pair>,
}

struct Sample {
    due: Time,
    class: usize,
    us: u64,
}

/// Lags and ages apart. Ages count as lags, and once more as infinite: a quantile on which both agree is exact.
struct Pair {
    delivered: Histogram<u64>,
    censored: Histogram<u64>,
    max: u64,
}

impl Lags {
    /// Of a run that ends at the end of `run`; what fell due before its start is in no total.
    pub(super) fn new(ledger: &Ledger, run: Range<Time>, classes: usize) -> Self {
        let mut lags = Self { lags: Vec::with_capacity(ledger.lines().len()), classes: Vec::new() };
        lags.classes.resize_with(classes, Pair::new);
        for line in ledger.lines().iter().filter(|line| line.alive) {
            let class = usize::from(line.class.0);
            let (us, is_delivered) = lag_or_age(line, run.end);
            lags.lags.push(Sample { due: line.due, class, us });
            if line.due >= run.start {
                let pair = &mut lags.classes[class];
                let histogram = if is_delivered { &mut pair.delivered } else { &mut pair.censored };
                histogram.record(us).expect("the histogram grows");
                pair.max = pair.max.max(us);
            }
        }
        lags
    }

    fn quantiles(&self, class: Option<usize>) -> Quantiles {
        let mut all = Pair::new();
        for pair in
            self.classes.iter().enumerate().filter(|(index, _)| class.is_none_or(|class| class == *index))
        {
            all.add(pair.1);
        }
        Quantiles::new(all)
    }

    /// Quantiles of all lags, or of one class'.
    pub(super) fn summary(&self, class: Option<usize>) -> Lag {
        let quantiles = self.quantiles(class);
        let samples = quantiles.ages.len();
        if samples == 0 {
            return Lag::default();
        }
        let mut lower_bound = Vec::new();
        let mut quantile = |name: &str, ppm| {
            let (us, exact) = quantiles.at(ppm);
            if !exact {
                lower_bound.push(name.to_owned());
            }
            Some(us)
        };
        let (p50, p90) = (quantile("p50", 500_000), quantile("p90", 900_000));
        let (p99, p999) = (quantile("p99", 990_000), quantile("p999", 999_000));
        let max = quantile("max", 1_000_000);
        Lag { p50, p90, p99, p999, max, samples, censored: samples - quantiles.delivered.len(), lower_bound }
    }

    /// The 99th percentile by the window in which messages fell due, exact to the microsecond: over all messages, then
    /// by class. A point is the maximum of its samples.
    pub(super) fn p99_over_time(&self, steps: Steps) -> (Vec<Option<u64>>, Vec<Vec<Option<u64>>>) {
        let mut series = vec![vec![None; steps.samples()]; 1 + self.classes.len()];
        let mut windows = vec![Vec::new(); series.len()];
        let (mut index, mut end) = (0, Time::ZERO);
        for sample in &self.lags {
            if sample.due >= end {
                close(&mut windows, &mut series, index);
                index = steps.sample_of(sample.due);
                end = Time::ZERO + steps.sample() * (index as u64 + 1);
            }
            windows[0].push(sample.us);
            windows[1 + sample.class].push(sample.us);
        }
        close(&mut windows, &mut series, index);
        let mut series = series.iter().map(|samples| steps.fold_option(samples));
        (series.next().expect("the first is over all"), series.collect())
    }

    /// How many messages of each class had which lag.
    pub(super) fn counts(&self, classes: &[String]) -> IndexMap<String, LagCounts> {
        let counted = |histogram: &Histogram<u64>| {
            histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
        };
        let counts = |pair: &Pair| LagCounts {
            delivered: counted(&pair.delivered),
            censored: counted(&pair.censored),
            max: pair.max,
        };
        classes.iter().cloned().zip(self.classes.iter().map(counts)).collect()
    }

    /// The whole distribution: per cent steps, then ever finer towards the maximum.
    pub(super) fn distribution(&self) -> Distribution {
        let quantiles = self.quantiles(None);
        if quantiles.ages.is_empty() {
            return Distribution::default();
        }
        let mut ppm: Vec<u32> = (0..90).map(|percent| percent * 10_000).collect();
        for tail in [100_000_u32, 10_000, 1_000, 100, 10] {
            ppm.extend((0..90).step_by(2).map(|i| 1_000_000 - tail + tail / 100 * i));
        }
        ppm.push(1_000_000);
        ppm.dedup();
        let values: Vec<_> = ppm.iter().map(|ppm| quantiles.at(*ppm)).collect();
        let bound = values.iter().position(|(_, exact)| !exact).map(|index| ppm[index]);
        let us = values.into_iter().map(|(us, _)| us).collect();
        Distribution { ppm, us, lower_bound_from_ppm: bound }
    }
}

/// The lag of a message that was delivered, or the age at the end of the run of one that was not; and which it is.
fn lag_or_age(line: &Line, horizon: Time) -> (u64, bool) {
    if line.delivered < Time::MAX {
        ((line.delivered - line.due).as_micros(), true)
    } else {
        ((horizon - line.due).as_micros(), false)
    }
}

/// Quantiles of these messages' lags, of all classes or of one, exact to the microsecond.
pub(super) fn exact(lines: &[Line], horizon: Time, class: Option<usize>) -> Lag {
    let of_class = |line: &&Line| line.alive && class.is_none_or(|class| class == usize::from(line.class.0));
    let lags = || lines.iter().filter(of_class).map(|line| lag_or_age(line, horizon));
    let mut ages: Vec<u64> = lags().map(|(us, _)| us).collect();
    if ages.is_empty() {
        return Lag::default();
    }
    let mut delivered: Vec<u64> =
        lags().filter(|(_, is_delivered)| *is_delivered).map(|(us, _)| us).collect();
    ages.sort_unstable();
    delivered.sort_unstable();
    let samples = ages.len() as u64;
    let mut lower_bound = Vec::new();
    let mut quantile = |name: &str, ppm| {
        let rank = rank(samples, ppm) as usize;
        let value = ages[rank - 1];
        if delivered.get(rank - 1) != Some(&value) {
            lower_bound.push(name.to_owned());
        }
        Some(value)
    };
    Lag {
        p50: quantile("p50", 500_000),
        p90: quantile("p90", 900_000),
        p99: quantile("p99", 990_000),
        p999: quantile("p999", 999_000),
        max: quantile("max", 1_000_000),
        samples,
        censored: samples - delivered.len() as u64,
        lower_bound,
    }
}

impl Pair {
    fn new() -> Self {
        let new = || Histogram::new(DIGITS).expect("three digits are allowed");
        Self { delivered: new(), censored: new(), max: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.delivered.add(&other.delivered).expect("the histogram grows");
        self.censored.add(&other.censored).expect("the histogram grows");
        self.max = self.max.max(other.max);
    }
}

/// Where quantiles are read.
struct Quantiles {
    delivered: Histogram<u64>,
    /// Lags and ages together.
    ages: Histogram<u64>,
    max: u64,
}

impl Quantiles {
    fn new(Pair { delivered, censored, max }: Pair) -> Self {
        let mut ages = censored;
        ages.add(&delivered).expect("the histogram grows");
        Self { delivered, ages, max }
    }

    /// The value at a quantile, and whether it would be the same if all censored ages were infinite.
    fn at(&self, ppm: u32) -> (u64, bool) {
        let rank = rank(self.ages.len(), ppm);
        if ppm == 1_000_000 {
            return (self.max, self.ages.len() == self.delivered.len());
        }
        let value = at_rank(&self.ages, rank).min(self.max);
        let exact = rank <= self.delivered.len() && at_rank(&self.delivered, rank).min(self.max) == value;
        (value, exact)
    }
}

/// A window ends: its 99th percentiles go into the series.
fn close(windows: &mut [Vec<u64>], series: &mut [Vec<Option<u64>>], index: usize) {
    for (window, series) in windows.iter_mut().zip(series) {
        if !window.is_empty() {
            let rank = rank(window.len() as u64, 990_000) as usize;
            series[index] = Some(*window.select_nth_unstable(rank - 1).1);
            window.clear();
        }
    }
}

/// The value of the sample at `rank`, from 1, as far as the histogram resolves it.
fn at_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    // Half a sample below the rank, so that rounding cannot reach the next.
    histogram.value_at_quantile((rank as f64 - 0.5) / histogram.len() as f64)
}

#[cfg(test)]
mod tests;
