//! What all seeds of a design say of a metric.

use crate::gate::{Aggregate, Better};
use crate::metrics::Pooled;
use crate::outcome::{Estimate, SeedValue};
use crate::stats::{self, Interval};

use super::{Runs, Sample, Subject, values, whole};

/// Every metric of every design, without label and by each value of its label, in each summary that has samples.
///
/// Quantiles of lag are pooled where the lags are known, with Woodruff's interval; where they are not, they are the mean of
/// the seeds' quantiles with Student's. Rates are ratios of totals, everything else means with Student's interval. Where only one
/// seed has a value, the ends are the value.
pub fn estimates(designs: &[Runs<'_>]) -> Vec<Estimate> {
    designs.iter().flat_map(estimates_of).collect()
}

fn estimates_of(runs: &Runs<'_>) -> Vec<Estimate> {
    let mut pools: Vec<(Option<&str>, Pooled)> = Vec::new();
    let mut estimates = Vec::new();
    for subject in Subject::all(&[runs]) {
        let samples = subject.samples(runs);
        let Some(worst) = worst(&subject, &samples) else { continue };
        let lower_bound = samples.iter().any(|sample| sample.lower_bound);
        let mut estimate = Estimate {
            design: runs.design.to_owned(),
            metric: subject.metric.name.to_owned(),
            r#where: subject.labels(),
            aggregate: subject.aggregate.name().to_owned(),
            unit: subject.unit().to_owned(),
            value: 0,
            low: 0,
            high: 0,
            seeds: samples.len() as u64,
            lower_bound,
            worst: SeedValue { seed: worst.seed, value: whole(worst.value) },
        };
        let pooled = subject.aggregate.ppm().and_then(|ppm| {
            if !pools.iter().any(|(label, _)| *label == subject.label) {
                pools.push((subject.label, Pooled::of(runs, subject.label)?));
            }
            pools.iter().find(|(label, _)| *label == subject.label)?.1.quantile(ppm)
        });
        match pooled {
            Some(quantile) => {
                estimate.value = quantile.value;
                estimate.low = quantile.low.unwrap_or(quantile.value);
                estimate.high = quantile.high.unwrap_or(quantile.value);
                estimate.lower_bound = quantile.lower_bound;
            }
            None => {
                let interval = interval(&subject, &samples);
                estimate.value = whole(interval.value);
                // No metric is below zero.
                estimate.low = interval.low.max(0.0).floor() as u64;
                estimate.high = interval.high.ceil() as u64;
            }
        }
        estimates.push(estimate);
    }
    estimates
}

/// Of a mean, or of a ratio of totals.
fn interval(subject: &Subject<'_>, samples: &[Sample]) -> Interval {
    if subject.aggregate == Aggregate::Rate {
        let clusters: Vec<_> = samples.iter().map(|sample| sample.parts).collect();
        if let Some(Interval { value, low, high }) = stats::ratio(&clusters) {
            return Interval { value: value * 1e6, low: low * 1e6, high: high * 1e6 };
        }
    }
    let values = values(samples);
    stats::student(&values).unwrap_or_else(|| {
        let value = stats::mean(&values);
        Interval { value, low: value, high: value }
    })
}

/// A lower bound counts as larger than everything else; of equal ones the first. `None` without samples.
fn worst(subject: &Subject<'_>, samples: &[Sample]) -> Option<Sample> {
    let more = subject.metric.better == Better::More;
    let worse = |a: &Sample, b: &Sample| {
        let larger = (a.lower_bound, a.value) > (b.lower_bound, b.value);
        let smaller = (a.lower_bound, a.value) < (b.lower_bound, b.value);
        if more { smaller } else { larger }
    };
    samples.iter().copied().reduce(|worst, sample| if worse(&sample, &worst) { sample } else { worst })
}
