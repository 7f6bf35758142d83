//! Windows of a run, for rules with `over`: which are asked for, and the worst of them.

use std::cmp::Ordering;

use fake_telegram::time::{Duration, Time};
use indexmap::IndexMap;

use crate::outcome::{ClassOutcome, Metrics, Totals, WindowValue, Windows};

use super::Rule;
use super::metric::Measured;

/// A window: when it begins, and its totals.
type Window = (Time, Metrics, IndexMap<String, ClassOutcome>);

/// The widths of the windows that these rules ask for, rising, each once.
pub fn widths<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Vec<Duration> {
    let mut widths: Vec<Duration> = rules.into_iter().filter_map(|rule| rule.over).collect();
    widths.sort_unstable();
    widths.dedup();
    widths
}

/// The worst of all `windows` of this `width`, for each condition that asks for them.
pub fn worst<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    width: Duration,
    windows: &[Window],
) -> Vec<Windows> {
    let mut worst: Vec<Windows> = Vec::new();
    for rule in rules.into_iter().filter(|rule| rule.over == Some(width)) {
        for condition in &rule.conditions {
            let aggregate = condition.aggregate.name();
            let is_known = |known: &Windows| known.is_of(rule, aggregate);
            if worst.iter().any(is_known) {
                continue;
            }
            let values = windows.iter().filter_map(|(from, metrics, classes)| {
                let measured = rule.measure(condition, Totals { metrics, classes, windows: &[] })?;
                Some((*from, measured))
            });
            let values: Vec<(Time, Measured)> = values.collect();
            let value = |found: Option<&(Time, Measured)>| {
                found.map(|(from, measured)| WindowValue {
                    from_us: from.as_micros(),
                    numerator: measured.numerator,
                    denominator: measured.denominator,
                    lower_bound: measured.lower_bound,
                })
            };
            // Of equal ones the first.
            let largest = values
                .iter()
                .rev()
                .max_by(|(_, a), (_, b)| a.lower_bound.cmp(&b.lower_bound).then_with(|| a.compare(*b)));
            let smallest = values.iter().min_by(|(_, a), (_, b)| a.compare(*b));
            worst.push(Windows {
                metric: rule.metric.name.to_owned(),
                r#where: rule.r#where.clone(),
                aggregate: aggregate.to_owned(),
                over_us: width.as_micros(),
                largest: value(largest),
                smallest: value(smallest),
            });
        }
    }
    worst
}

impl Windows {
    pub(super) fn is_of(&self, rule: &Rule, aggregate: &str) -> bool {
        self.metric == rule.metric.name
            && self.r#where == rule.r#where
            && self.aggregate == aggregate
            && rule.over.is_some_and(|over| over.as_micros() == self.over_us)
    }
}

impl From<WindowValue> for Measured {
    fn from(value: WindowValue) -> Self {
        let WindowValue { numerator, denominator, lower_bound, .. } = value;
        Self { numerator, denominator, lower_bound }
    }
}

impl Measured {
    /// By value alone.
    fn compare(self, other: Self) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.numerator, other.denominator).cmp(&product(other.numerator, self.denominator))
    }
}
