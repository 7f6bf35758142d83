//! What several seeds say together, as text.

use crate::gate;
use crate::outcome::{Difference, Estimate, Finding};

use super::{compare, human, verdicts};

/// An estimate in four cells: metric, value, interval, worst seed.
pub(super) fn estimate(estimate: &Estimate) -> [String; 4] {
    let Estimate { metric, unit, value, low, high, worst, .. } = estimate;
    let text = |value| verdicts::quantity(metric, unit, value);
    let subject = format!("{} {}", gate::labelled(metric, &estimate.r#where), estimate.aggregate);
    let bound = if estimate.lower_bound { "≥" } else { "" };
    [
        format!("`{}`", subject.trim_end()),
        format!("{bound}{}", text(*value)),
        format!("[{}, {bound}{}]", text(*low), text(*high)),
        format!("{}: {}", worst.seed, text(worst.value)),
    ]
}

/// An estimate and its interval in one cell: `1.2s [1.1s 1.3s]`.
pub(super) fn in_a_cell(estimate: &Estimate) -> String {
    let Estimate { unit, value, low, high, lower_bound, .. } = estimate;
    let text = |value: u64| match unit.as_str() {
        "us" => human::lag(value),
        _ => human::share(value, 1_000_000),
    };
    if low == high {
        return format!("{}{}", if *lower_bound { "≥" } else { "" }, text(*value));
    }
    let bound = if *lower_bound { "≥" } else { "" };
    format!("{bound}{} [{} {bound}{}]", text(*value), text(*low), text(*high))
}

/// The differences that a reader wants to see first: of the few numbers that tell whether a sender is any good.
pub(super) fn news(differences: &[Difference]) -> Vec<&Difference> {
    differences
        .iter()
        .filter(|difference| is_news(difference) && compare::dial(difference).is_some())
        .collect()
}

/// What is to be said of all others: `No difference detected in 31 other metrics.`
pub(super) fn rest(differences: &[Difference]) -> Option<String> {
    let shown = news(differences).len();
    let count = |wanted: &[Finding]| {
        differences.iter().filter(|difference| wanted.contains(&difference.finding)).count()
    };
    let metrics = |number: usize| {
        let other = if shown > 0 { "other " } else { "" };
        format!("{} {other}{}", human::count(number as u64), if number == 1 { "metric" } else { "metrics" })
    };
    let none = count(&[Finding::NoDifference]);
    let equal = count(&[Finding::Equal]);
    let noise = count(&[Finding::WithinNoise]);
    let too_few = count(&[Finding::TooFew]);
    let more = differences.iter().filter(|difference| is_news(difference)).count() - shown;
    let parts = [
        (more > 0).then(|| format!("Different as well, see `report.md`: {}.", metrics(more))),
        (none > 0).then(|| format!("No difference detected in {}.", metrics(none))),
        (equal > 0).then(|| format!("Equal in {}.", metrics(equal))),
        (noise > 0).then(|| format!("Within the noise threshold: {}.", metrics(noise))),
        (too_few > 0).then(|| format!("Too few seeds to say anything of {}.", metrics(too_few))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn is_news(difference: &Difference) -> bool {
    matches!(difference.finding, Finding::Improved | Finding::Regressed | Finding::Changed)
}
