//! Verdicts as text.

use crate::gate::{Metric, Unit};
use crate::outcome::{Report, Verdict};

use super::human;

/// What was measured, in the metric's unit, to the digit that decides: `7.102s`, `≥3h12m (11520s)`, `0.1353%`.
pub(super) fn measured(verdict: &Verdict) -> String {
    let Some(value) = verdict.measured else { return "no samples".to_owned() };
    let ratio = Metric::named(&verdict.metric).is_ok_and(|metric| metric.unit == Unit::Ratio);
    let value = match verdict.unit.as_str() {
        "us" => human::precise_lag(value),
        "ppm" if ratio => human::decimal(value, 6),
        "ppm" => format!("{}%", human::decimal(value, 4)),
        _ => human::count(value),
    };
    format!("{}{value}", if verdict.lower_bound { "≥" } else { "" })
}

/// The two lists of verdicts with their names; empty ones are left out.
pub(super) fn lists(report: &Report) -> impl Iterator<Item = (&'static str, &[Verdict])> {
    [("gates", report.gates.as_slice()), ("expectations", report.expectations.as_slice())]
        .into_iter()
        .filter(|(_, verdicts)| !verdicts.is_empty())
}
