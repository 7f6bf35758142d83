//! What several seeds say together, as text.

use indexmap::IndexMap;

use crate::gate;
use crate::outcome::{Difference, Estimate, Finding, Verdict};

use super::{human, verdicts};

/// An estimate in four cells: metric, value, interval, worst seed.
pub(super) fn estimate(estimate: &Estimate) -> [String; 4] {
    let Estimate { metric, unit, value, low, high, worst, .. } = estimate;
    let text = |value| verdicts::quantity(metric, unit, value);
    let bound = if estimate.lower_bound { "≥" } else { "" };
    [
        subject(metric, &estimate.r#where, &estimate.aggregate),
        format!("{bound}{}", text(*value)),
        format!("[{}, {bound}{}]", text(*low), text(*high)),
        format!("{}: {}", worst.seed, text(worst.value)),
    ]
}

/// A difference in five cells: metric, from, to, change with its interval, what that says.
pub(super) fn difference(difference: &Difference) -> [String; 5] {
    let Difference { metric, unit, from, to, change, .. } = difference;
    let text = |value| verdicts::quantity(metric, unit, value);
    let interval = difference.interval.map(|ends| format!(" {}", verdicts::interval(metric, unit, ends)));
    let sign = if *change > 0 { "+" } else { "" };
    [
        subject(metric, &difference.r#where, &difference.aggregate),
        text(*from),
        text(*to),
        format!("{sign}{}{}", verdicts::signed(metric, unit, *change), interval.unwrap_or_default()),
        finding(difference),
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

/// `improved, better in 20 of 20`
fn finding(difference: &Difference) -> String {
    let Difference { finding, won, lost, pairs, lower_bound, .. } = difference;
    let what = match finding {
        Finding::Improved => "improved",
        Finding::Regressed => "regressed",
        Finding::Changed => "changed",
        Finding::WithinNoise => "within noise",
        Finding::NoDifference => "no difference detected",
        Finding::Equal => "equal",
        Finding::TooFew => "too few pairs",
    };
    let score = match finding {
        Finding::Equal | Finding::Changed => String::new(),
        Finding::Regressed => format!(", worse in {lost} of {pairs}"),
        _ => format!(", better in {won} of {pairs}"),
    };
    format!("{what}{score}{}", if *lower_bound { ", with lower bounds" } else { "" })
}

/// `lag{class:reply} p(99)`
fn subject(metric: &str, r#where: &IndexMap<String, String>, aggregate: &str) -> String {
    let verdict = Verdict { metric: metric.to_owned(), r#where: r#where.clone(), ..Verdict::default() };
    format!("{} {aggregate}", gate::subject(&verdict)).trim_end().to_owned()
}
