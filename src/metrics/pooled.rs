//! Quantiles of lag over several seeds.

use crate::outcome::{LagCounts, Runs};
use crate::stats::{Clusters, Quantile};

/// The lags of all seeds together: their histograms, merged.
///
/// A quantile is never made of quantiles. The seeds are the clusters: messages of one run share its rushes, so they say
/// less than as many independent ones would.
#[derive(Debug, Clone)]
pub struct Pooled {
    /// Ages of what was not delivered count as lags.
    ages: Clusters,
    /// They count as infinite.
    infinite: Clusters,
    max: u64,
}

/// A quantile of the lags of all seeds, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PooledQuantile {
    /// The quantile.
    pub value: u64,
    /// The lower end of its interval; `None` if only one seed has lags.
    pub low: Option<u64>,
    /// The upper end.
    pub high: Option<u64>,
    /// Whether value or upper end would change if all ages of undelivered messages were infinite.
    pub lower_bound: bool,
}

impl Pooled {
    /// The lags of all runs, of a class or of all; `None` if they were not kept.
    pub fn of(runs: &Runs<'_>, class: Option<&str>) -> Option<Self> {
        let lags = runs.runs.iter().map(|run| run.lags).collect::<Option<Vec<_>>>()?;
        let seeds = lags.into_iter().map(|lags| match class {
            Some(class) => lags.get(class).into_iter().collect(),
            None => lags.values().collect(),
        });
        Some(Self::new(&seeds.collect::<Vec<Vec<_>>>()))
    }

    /// Of each seed the counts that belong together: of one class, or of all.
    pub fn new(seeds: &[Vec<&LagCounts>]) -> Self {
        let clusters = |age: fn(u64) -> u64| {
            Clusters::new(seeds.iter().map(|counts| {
                let censored = |counts: &LagCounts| counts.censored.clone();
                let ages = counts.iter().flat_map(|counts| censored(counts)).map(|(us, n)| (age(us), n));
                counts.iter().flat_map(|counts| counts.delivered.iter().copied()).chain(ages).collect()
            }))
        };
        let max = seeds.iter().flatten().map(|counts| counts.max).max().unwrap_or(0);
        Self { ages: clusters(|us| us), infinite: clusters(|_| INFINITE), max }
    }

    /// The quantile at `ppm` parts per million, below a million; `None` without lags.
    pub fn quantile(&self, ppm: u32) -> Option<PooledQuantile> {
        let Quantile { value, interval } = self.ages.quantile(ppm)?;
        let infinite = self.infinite.quantile(ppm)?;
        let high = |quantile: Option<(u64, u64)>| quantile.map(|(_, high)| self.known(high));
        Some(PooledQuantile {
            value: self.known(value),
            low: interval.map(|(low, _)| self.known(low)),
            high: high(interval),
            lower_bound: self.known(value) != self.known(infinite.value)
                || high(interval) != high(infinite.interval),
        })
    }

    /// Counted values are the upper ends of their buckets; no lag is above the largest.
    fn known(&self, us: u64) -> u64 {
        if us == INFINITE { us } else { us.min(self.max) }
    }
}

/// No run is that long.
const INFINITE: u64 = u64::MAX;

#[cfg(test)]
mod tests;
