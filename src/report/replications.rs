//! What several seeds say together, as text.

use crate::gate;
use crate::outcome::{Difference, Estimate, Finding};

use super::{human, verdicts};

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

/// Whether a reader wants to see it first.
pub(super) fn is_news(difference: &Difference) -> bool {
    matches!(difference.finding, Finding::Improved | Finding::Regressed | Finding::Changed)
}

/// What is to be said of the differences that are no news: `No difference detected in 31 other metrics.`
pub(super) fn rest(differences: &[Difference]) -> Option<String> {
    let count = |wanted: &[Finding]| {
        differences.iter().filter(|difference| wanted.contains(&difference.finding)).count()
    };
    let news = differences.iter().filter(|difference| is_news(difference)).count();
    let (none, noise, too_few) = (
        count(&[Finding::NoDifference, Finding::Equal]),
        count(&[Finding::WithinNoise]),
        count(&[Finding::TooFew]),
    );
    let metrics = |number| {
        let other = if news > 0 { "other " } else { "" };
        format!("{} {other}{}", human::count(number as u64), if number == 1 { "metric" } else { "metrics" })
    };
    let none = (none > 0).then(|| format!("No difference detected in {}.", metrics(none)));
    let noise = (noise > 0).then(|| format!("Within the noise threshold: {}.", metrics(noise)));
    let too_few =
        (too_few > 0).then(|| format!("Fewer than five pairs, so nothing is said of {}.", metrics(too_few)));
    let parts: Vec<String> = [none, noise, too_few].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
