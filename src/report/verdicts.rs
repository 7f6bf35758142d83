//! Verdicts as text.

use crate::gate::{self, Metric, Unit};
use crate::outcome::{Report, Verdict};

use super::human;

/// What was measured, in the metric's unit: `7.1s`, `≥3h12m`, `1.50%`, `nothing`.
pub(super) fn measured(report: &Report, verdict: &Verdict) -> String {
    let Some(value) = verdict.measured else { return "no samples".to_owned() };
    let ratio = Metric::named(&verdict.metric).is_ok_and(|metric| metric.unit == Unit::Ratio);
    match verdict.unit.as_str() {
        "us" => {
            let design = report.designs.iter().find(|design| design.name == verdict.design);
            let lower_bound = design.is_some_and(|design| gate::is_lower_bound(verdict, design));
            human::bounded_lag(Some(value), lower_bound)
        }
        "ppm" if ratio => human::ratio(value),
        "ppm" => human::share(value, 1_000_000),
        _ => human::count(value),
    }
}

/// The two lists of verdicts with their names; empty ones are left out.
pub(super) fn lists(report: &Report) -> impl Iterator<Item = (&'static str, &[Verdict])> {
    [("gates", report.gates.as_slice()), ("expectations", report.expectations.as_slice())]
        .into_iter()
        .filter(|(_, verdicts)| !verdicts.is_empty())
}
