use super::*;
use crate::outcome::{
    ClassOutcome, Difference, Estimate, Finding, Lag, LagCounts, Metrics, SeedValue, Totals,
};

type Seed = (u64, Metrics, IndexMap<String, ClassOutcome>);

/// A seed that lost so many of 1,000 messages and delivered the rest, with that many seconds as its largest lag.
fn run(seed: u64, lost: u64, lower_bound: bool) -> Seed {
    let bounds = if lower_bound { vec!["max".to_owned()] } else { Vec::new() };
    let lag_us = Lag { max: Some(lost * 1_000_000), lower_bound: bounds, ..Lag::default() };
    let delivered = 1_000 - lost;
    let class = ClassOutcome { due: 1_000, lost, delivered, ..ClassOutcome::default() };
    let metrics = Metrics { due: 1_000, lost, delivered, kills: lost, lag_us, ..Metrics::default() };
    (seed, metrics, IndexMap::from([("reply".to_owned(), class)]))
}

fn runs(lost: &[u64]) -> Vec<Seed> {
    (1..).zip(lost).map(|(seed, lost)| run(seed, *lost, false)).collect()
}

fn design<'a>(name: &'a str, runs: &'a [Seed]) -> Runs<'a> {
    let run = |(seed, metrics, classes): &'a Seed| {
        let totals = Totals { metrics, classes, windows: &[] };
        Run { seed: *seed, totals, lags: None }
    };
    Runs { design: name, runs: runs.iter().map(run).collect() }
}

fn estimate<'a>(
    estimates: &'a [Estimate],
    metric: &str,
    aggregate: &str,
    label: Option<&str>,
) -> &'a Estimate {
    let wanted = |estimate: &&Estimate| {
        estimate.metric == metric
            && estimate.aggregate == aggregate
            && estimate.r#where.values().next().map(String::as_str) == label
    };
    estimates.iter().find(wanted).unwrap_or_else(|| panic!("{metric} {aggregate} {label:?}"))
}

fn differences_of(to: &[Seed], from: &[Seed]) -> Vec<Difference> {
    differences(&design("new", to), &design("old", from))
}

fn difference(to: &[Seed], from: &[Seed], metric: &str) -> Difference {
    let mut all = differences_of(to, from).into_iter();
    let max = if metric == "lag" { "max" } else { "" };
    all.find(|difference| {
        difference.metric == metric && difference.aggregate == max && difference.r#where.is_empty()
    })
    .expect("it has samples")
}

/// By hand: mean 3, deviation sqrt(2.5), error sqrt(0.5), t with 4 degrees of freedom 2.776445.
#[test]
fn a_number_is_estimated_by_its_mean() {
    let runs = runs(&[1, 2, 3, 4, 5]);
    let estimates = estimates(&[design("a", &runs)]);
    let lost = estimate(&estimates, "lost", "", None);
    assert_eq!((lost.unit.as_str(), lost.value, lost.low, lost.high), ("milli", 3_000, 1_036, 4_964));
    assert_eq!((lost.seeds, lost.lower_bound), (5, false));
    assert_eq!(lost.worst, SeedValue { seed: 5, value: 5_000 });
    // Where more is better, the smallest is the worst.
    assert_eq!(estimate(&estimates, "delivered", "", None).worst, SeedValue { seed: 5, value: 995_000 });
    let by_class = estimate(&estimates, "lost", "", Some("reply"));
    assert_eq!((by_class.value, by_class.low, by_class.high), (3_000, 1_036, 4_964));
    assert_eq!(by_class.r#where, IndexMap::from([("class".to_owned(), "reply".to_owned())]));
    // 1,000 messages each: the rate's interval is the number's.
    let rate = estimate(&estimates, "lost", "rate", None);
    assert_eq!((rate.unit.as_str(), rate.value, rate.low, rate.high), ("ppm", 3_000, 1_036, 4_964));
    let max = estimate(&estimates, "lag", "max", None);
    assert_eq!((max.unit.as_str(), max.value, max.low), ("us", 3_000_000, 1_036_756));
    assert!(estimates.iter().all(|estimate| estimate.aggregate != "p(99)"), "no seed has one");
}

#[test]
fn estimates_come_by_design_then_in_the_order_of_metrics() {
    let runs = runs(&[1, 2]);
    let estimates = estimates(&[design("a", &runs), design("b", &runs)]);
    let place = |estimate: &Estimate| {
        let metric = METRICS.iter().position(|metric| metric.name == estimate.metric);
        (estimate.design.clone(), metric, estimate.r#where.len())
    };
    assert!(estimates.is_sorted_by_key(place));
    assert_eq!(estimates.iter().filter(|estimate| estimate.design == "b").count() * 2, estimates.len());
}

#[test]
fn nothing_is_estimated_to_be_below_zero_or_surer_than_one_seed_is() {
    let few = runs(&[0, 0, 0, 1]);
    let lost = estimates(&[design("a", &few)]);
    let lost = estimate(&lost, "lost", "", None);
    assert_eq!((lost.value, lost.low), (250, 0));
    let one = runs(&[7]);
    let one = estimates(&[design("a", &one)]);
    let one = estimate(&one, "lost", "rate", None);
    assert_eq!((one.value, one.low, one.high, one.seeds), (7_000, 7_000, 7_000, 1));
}

#[test]
fn a_lower_bound_is_the_worst_value() {
    let mut runs = runs(&[5, 9, 3]);
    runs[2] = run(3, 3, true);
    let estimates = estimates(&[design("a", &runs)]);
    let max = estimate(&estimates, "lag", "max", None);
    assert_eq!((max.worst, max.lower_bound), (SeedValue { seed: 3, value: 3_000_000 }, true));
}

/// Quantiles are of all lags together where these are known: 99 of 10 us and, in a larger seed, 900 of 20 us.
#[test]
fn quantiles_are_pooled_where_lags_are_known() {
    let lag = |p50| Lag { p50: Some(p50), samples: 1, ..Lag::default() };
    let of = |seed, p50| (seed, Metrics { lag_us: lag(p50), ..Metrics::default() }, IndexMap::new());
    let runs = [of(1, 10), of(2, 20)];
    let counts = |us, count| {
        let counts = LagCounts { delivered: vec![(us, count)], censored: Vec::new(), max: us };
        IndexMap::from([("reply".to_owned(), counts)])
    };
    let (one, two) = (counts(10, 99), counts(20, 900));
    let apart = design("a", &runs);
    let mut pooled = apart.clone();
    pooled.runs.iter_mut().zip([&one, &two]).for_each(|(run, lags)| run.lags = Some(lags));
    let median = |runs| estimate(&estimates(&[runs]), "lag", "p(50)", None).clone();
    assert_eq!((median(apart).value, median(pooled.clone()).value), (15, 20));
    let median = median(pooled);
    assert_eq!((median.low, median.high, median.worst), (10, 20, SeedValue { seed: 2, value: 20 }));
}

#[test]
fn a_difference_is_that_of_pairs_of_seeds() {
    // Every seed loses one message less, whatever else it does.
    let (from, to) = (runs(&[10, 200, 30, 400, 50]), runs(&[9, 199, 29, 399, 49]));
    let lost = difference(&to, &from, "lost");
    assert_eq!((lost.design.as_str(), lost.against.as_str()), ("new", "old"));
    assert_eq!((lost.from, lost.to, lost.change), (138_000, 137_000, -1_000));
    assert_eq!((lost.interval, lost.pairs, lost.won, lost.lost), (Some([-1_000, -1_000]), 5, 5, 0));
    let [low, high] = lost.unpaired.expect("five each");
    assert!(low < -200_000 && high > 200_000, "what all seeds share drowns it: {low} {high}");
    // That is 0.7 % of what it was.
    assert_eq!(lost.finding, Finding::WithinNoise);
    let delivered = difference(&to, &from, "delivered");
    assert_eq!((delivered.change, delivered.won, delivered.lost), (1_000, 5, 0));
}

#[test]
fn seeds_that_one_side_lacks_are_left_out_unless_all_are() {
    let from = runs(&[10, 20, 30]);
    let to = vec![run(3, 31, false), run(7, 999, false), run(2, 22, false)];
    let lost = difference(&to, &from, "lost");
    assert_eq!((lost.pairs, lost.from, lost.to, lost.lost), (2, 25_000, 26_500, 2));
    let others: Vec<Seed> = (11..).zip([1, 2, 3, 2, 1]).map(|(seed, lost)| run(seed, lost, false)).collect();
    let lost = difference(&others, &runs(&[101, 102, 103, 102, 101]), "lost");
    assert_eq!((lost.pairs, lost.won, lost.finding), (0, 0, Finding::Improved));
    assert_eq!((lost.change, lost.interval), (-100_000, lost.unpaired));
}

#[test]
fn findings_follow_the_rules() {
    let check = |from: &[u64], to: &[u64], metric, expected| {
        let difference = difference(&runs(to), &runs(from), metric);
        assert_eq!(difference.finding, expected, "{metric} {from:?} {to:?}: {difference:?}");
    };
    // Less is better, more is better, nobody knows.
    let (few, many) = ([10, 12, 11, 10, 13], [20, 21, 23, 22, 20]);
    check(&many, &few, "lost", Finding::Improved);
    check(&few, &many, "lost", Finding::Regressed);
    check(&few, &many, "kills", Finding::Changed);
    check(&[100, 120, 110, 100, 130], &[400, 420, 420, 430, 400], "delivered", Finding::Regressed);
    check(&[400, 420, 420, 430, 400], &[100, 120, 110, 100, 130], "delivered", Finding::Improved);
    check(&few, &[11, 10, 12, 10, 12], "lost", Finding::NoDifference);
    check(&few, &few, "lost", Finding::Equal);
    // Certain, and not worth a word; or not certainly worth one: from 0.5 % to 2.5 %.
    check(&[400; 5], &[398, 398, 398, 397, 398], "lost", Finding::WithinNoise);
    check(&[400; 5], &[403, 405, 407, 403, 408], "lost", Finding::WithinNoise);
    check(&[400; 5], &[409, 410, 411, 409, 410], "lost", Finding::Regressed);
    // Out of nothing there is no noise.
    check(&[0; 5], &[1, 2, 1, 1, 2], "lost", Finding::Regressed);
    // However large: four pairs say nothing. Equal is equal.
    check(&[1, 1, 1, 1], &[900, 901, 902, 900], "lost", Finding::TooFew);
    check(&[7], &[7], "lost", Finding::Equal);
    check(&[7], &[8], "lost", Finding::TooFew);
}

#[test]
fn nothing_is_claimed_that_a_lower_bound_may_hide() {
    let bounded = |lost: [u64; 5], bound: usize| {
        let mut runs = runs(&lost);
        if let Some(changed) = runs.get_mut(bound) {
            *changed = run(bound as u64 + 1, lost[bound], true);
        }
        runs
    };
    let (few, many, none) = ([10, 12, 11, 10, 13], [20, 21, 23, 22, 20], 5);
    let check = |from: &[Seed], to: &[Seed], expected, won_lost| {
        let lag = difference(to, from, "lag");
        assert_eq!((lag.finding, (lag.won, lag.lost)), (expected, won_lost), "{lag:?}");
        assert!(lag.lower_bound);
    };
    // What was longer than 20 s is now 10 s; what is now longer than 10 s may be longer than 20 s.
    check(&bounded(many, 0), &bounded(few, none), Finding::Improved, (5, 0));
    check(&bounded(many, none), &bounded(few, 0), Finding::NoDifference, (4, 0));
    // The same of what became worse.
    check(&bounded(few, none), &bounded(many, 3), Finding::Regressed, (0, 5));
    check(&bounded(few, 3), &bounded(many, none), Finding::NoDifference, (0, 4));
    // Recorded alike, and not.
    check(&bounded(few, 0), &bounded(few, 0), Finding::Equal, (0, 0));
    check(&bounded(few, 0), &bounded(few, none), Finding::NoDifference, (0, 0));
}

#[test]
fn what_only_one_side_has_is_no_difference() {
    let (with, mut without) = (runs(&[1, 2]), runs(&[1, 2]));
    without.iter_mut().for_each(|(_, metrics, _)| metrics.lag_us = Lag::default());
    assert!(differences_of(&with, &without).iter().all(|difference| difference.metric != "lag"));
    assert!(differences_of(&[], &with).is_empty());
    assert!(estimates(&[design("a", &[])]).is_empty());
}
