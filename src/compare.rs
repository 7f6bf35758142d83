//! Several seeds and several designs beside each other: what all seeds say of a metric, and how two designs differ.
//!
//! [`estimates`] and [`differences`] turn the totals of runs into what `report.json` holds; [`Comparison`] is two saved
//! reports side by side. What the intervals mean: `docs/statistics.md`.

mod difference;
mod estimate;
mod reports;

use indexmap::IndexMap;

use crate::gate::{Aggregate, METRICS, Metric, Unit};
use crate::outcome::{Run, Runs, Totals};

pub use difference::{PAIRS_MIN, differences};
pub use estimate::estimates;
pub use reports::{CompareError, Comparison, Side};

/// Something that has a value in every run: a summary of a metric, or of a part of it.
#[derive(Debug, Clone)]
struct Subject<'a> {
    metric: &'static Metric,
    /// The value of the metric's label.
    label: Option<&'a str>,
    aggregate: Aggregate,
}

/// The value of one seed.
#[derive(Debug, Clone, Copy)]
struct Sample {
    seed: u64,
    /// In [`Subject::unit`].
    value: f64,
    /// The same as a fraction, in microseconds or wholes.
    parts: (u64, u64),
    /// Whether the truth may be larger.
    lower_bound: bool,
}

impl<'a> Subject<'a> {
    /// Everything that some of the runs have a value of, in the order of metrics.
    fn all(runs: &[&Runs<'a>]) -> Vec<Self> {
        let totals: Vec<Totals<'a>> = runs.iter().flat_map(|runs| &runs.runs).map(|run| run.totals).collect();
        let mut subjects = Vec::new();
        for metric in METRICS {
            let mut labels = vec![None];
            for value in totals.iter().flat_map(|totals| metric.label_values(*totals)) {
                if !labels.contains(&Some(value)) {
                    labels.push(Some(value));
                }
            }
            for label in labels {
                subjects.extend(metric.summaries().map(|aggregate| Self { metric, label, aggregate }));
            }
        }
        subjects
    }

    /// The values of the seeds that have one, in their order.
    fn samples(&self, runs: &Runs<'_>) -> Vec<Sample> {
        let sample = |&Run { seed, totals, .. }: &Run<'_>| {
            let measured = self.metric.measure(totals, self.aggregate, self.label)?;
            let (numerator, denominator) = (measured.numerator, measured.denominator);
            let scale = match self.unit() {
                "us" => 1.0,
                "ppm" => 1e6,
                _ => 1e3,
            };
            let value = numerator as f64 * scale / denominator as f64;
            let lower_bound = measured.lower_bound;
            Some(Sample { seed, value, parts: (numerator, denominator), lower_bound })
        };
        runs.runs.iter().filter_map(sample).collect()
    }

    /// `us`, `ppm`, or `milli` for thousandths of a count.
    fn unit(&self) -> &'static str {
        match self.metric.unit {
            _ if self.aggregate == Aggregate::Rate => "ppm",
            Unit::Duration => "us",
            Unit::Share | Unit::Ratio => "ppm",
            Unit::Count => "milli",
        }
    }

    /// The labels as a report has them.
    fn labels(&self) -> IndexMap<String, String> {
        let name = self.metric.label.map(|label| label.name().to_owned());
        name.into_iter().zip(self.label.map(str::to_owned)).collect()
    }
}

fn values(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.value).collect()
}

/// The nearest whole number; what is more than nothing never becomes it.
fn whole(value: f64) -> u64 {
    (value.round() as u64).max(u64::from(value > 0.0))
}

#[cfg(test)]
mod tests;
