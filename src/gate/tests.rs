use proptest::prelude::*;

use super::*;
use fake_telegram::time::Time;

use crate::outcome::{ClassOutcome, Lag, LagCounts, Metrics, Outcome, Run, Runs};

fn lag(p99: u64, lower_bound: bool) -> Lag {
    let lower_bound =
        if lower_bound { vec!["p99".to_owned(), "p999".to_owned(), "max".to_owned()] } else { vec![] };
    Lag {
        p50: Some(1),
        p90: Some(2),
        p99: Some(p99),
        p999: Some(p99),
        max: Some(p99),
        samples: 9,
        censored: 1,
        lower_bound,
    }
}

fn outcome(name: &str, metrics: Metrics) -> Outcome {
    Outcome { name: name.to_owned(), metrics, ..Outcome::default() }
}

/// `naive-loop` has a p99 of 60 s, `scheduler` of 5 s.
fn two() -> Vec<Outcome> {
    let naive =
        Metrics { lag_us: lag(60_000_000, false), requests: 1_000, due: 900, lost: 7, ..Metrics::default() };
    let scheduler = Metrics {
        lag_us: lag(5_000_000, false),
        requests: 1_000,
        due: 900,
        throttled: [("token".to_owned(), 14), ("chat".to_owned(), 1)].into_iter().collect(),
        amplification_ppm: 1_050_000,
        budget_utilisation_ppm: Some(700_000),
        ..Metrics::default()
    };
    vec![outcome("naive-loop", naive), outcome("scheduler", scheduler)]
}

/// One run of each.
fn judged(rules: &[Rule], outcomes: &[Outcome]) -> Vec<Verdict> {
    judge(rules, &runs(outcomes, 1), &[])
}

fn runs(outcomes: &[Outcome], seed: u64) -> Vec<Runs<'_>> {
    let run = |outcome| Run { seed, totals: Outcome::totals(outcome), lags: None };
    outcomes.iter().map(|outcome| Runs { design: &outcome.name, runs: vec![run(outcome)] }).collect()
}

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether `scheduler` passes.
fn passes(text: &str, outcomes: &[Outcome]) -> bool {
    let mut rule = rule(text);
    rule.designs = vec!["scheduler".to_owned()];
    let verdicts = judged(&[rule], outcomes);
    assert_eq!(verdicts.len(), 1, "{text}");
    verdicts[0].passed
}

#[test]
fn reads_what_k6_users_write() {
    let two = two();
    let check = |text, expected| assert_eq!(passes(text, &two), expected, "{text}");
    check("lag: p(99)<=5s", true);
    check("lag: p(99) < 5000ms", false);
    check("lag: p(99) > 4.999s", true);
    check("lag: max <= 1min", true);
    check("lag: med == 1us", true);
    check("lost: == 0", true);
    check("lost: count < 1", true);
    check("requests: == 1k", true);
    check("throttled: == 15", true);
    check("throttled: rate <= 1.5%", true);
    check("throttled: rate < 1.5%", false);
    check("throttled{limit:token}: == 14", true);
    check("throttled{limit:chat}: rate == 0.1%", true);
    check("amplification: <= 1.05", true);
    check("amplification: < 1.05", false);
    check("budget_utilisation: >= 70%", true);
    check("lag: p(99) <= 0.1 * naive-loop", true);
    check("lag: p(99) < 0.083333 * naive-loop + 20us", false);
    check("lag: p(99) < 0.083333 * naive-loop + 21us", true);
    check("lag: p(99) == naive-loop - 55s", true);
    check("lag: p(99) <= naive-loop * 0.05 + 2s", true);
    check("lag: p(99) >= naive-loop - 2h", true);
}

#[test]
fn a_name_keeps_its_dashes_and_digits() {
    let reference = |text: &str| rule(&format!("lag: p(99) <= {text}")).conditions[0].bound.clone();
    let bound = |name: &str, factor, offset| Bound::Relative {
        to: Reference::Design(name.to_owned()),
        factor,
        offset,
    };
    assert_eq!(reference("shared-bucket-2"), bound("shared-bucket-2", 1_000_000, None));
    assert_eq!(reference("1.10*w-5s"), bound("w-5s", 1_100_000, None));
    assert_eq!(reference("2 * 4-pods"), bound("4-pods", 2_000_000, None));
    assert!(
        matches!(reference("w - 5s"), Bound::Relative { to: Reference::Design(name), offset: Some((Sign::Minus, _)), .. } if name == "w")
    );
}

#[test]
fn errors_name_the_way_out() {
    let check = |text: &str, expected: &str| {
        assert_eq!(text.parse::<Rule>().expect_err(text).to_string(), expected);
    };
    check("lagg: p(99) <= 5s", "unknown metric `lagg`; did you mean `lag`?");
    check("lag: p(95) <= 5s", "`lag` has no `p(95)`; it has p(50), p(90), p(99), p(99.9), max");
    check("lag: <= 5s", "`lag` has no `plain value`; it has p(50), p(90), p(99), p(99.9), max");
    check(
        "lag: p(99) <= 5",
        "cannot read the right-hand side: `5` has no unit; write `5s` for seconds, `5ms` for milliseconds",
    );
    check(
        "throttled: rate <= 0.01",
        "cannot read the right-hand side: `0.01` has no unit; write a share in per cent, as in `5%`",
    );
    check(
        "throttled: rate <= 0.00001%",
        "cannot read the right-hand side: `0.00001%` has too many decimals; a share is read to 0.0001%",
    );
    check(
        "amplification: <= 105%",
        "cannot read the right-hand side: `105%` is not a ratio; write a plain number, as in `1.05`",
    );
    check("lost: 0", "`0` is not a condition: it lacks one of <= < >= > == !=");
    check("lag: p(99) <=", "`p(99) <=` is not a condition: nothing follows the operator");
    check("lag: p(99) === 5s", "`p(99) === 5s` is not a condition: the operators are <= < >= > == !=");
    check("lag{limit:token}: p(99) <= 5s", "`lag` cannot be selected by `limit`; it can by `class`");
    check("requests{class:reply}: <= 5", "`requests` cannot be selected by `class`; leave `where` out");
    check(
        "lag p(99) <= 5s",
        "`lag p(99) <= 5s` is not a condition: a colon parts metric and condition, as in `lag: p(99) <= 5s`",
    );
    check(
        "lag{class:reply: p(99) <= 5s",
        "`lag{class:reply: p(99) <= 5s` is not a condition: `{` is not closed; write `lag{class:reply}: p(99) <= 5s`",
    );
    check("}{:", "`}{:` is not a condition: a colon parts metric and condition, as in `lag: p(99) <= 5s`");
}

#[test]
fn the_colon_may_be_left_out_before_an_operator() {
    let two = two();
    assert_eq!(rule("lost == 0"), rule("lost: == 0"));
    assert_eq!(rule("throttled{limit:token} <= 14"), rule("throttled{ limit : token }: <= 14"));
    assert!(passes("throttled{limit:token}: rate < 2%", &two));
    assert_eq!(rule("lag{class:reply,design:scheduler}: max <= 5s").designs, ["scheduler"]);
}

#[test]
fn windows_are_asked_for_in_words() {
    let asked = rule("lag: p(99) <= 5s, max <= 60s over any 60s");
    assert_eq!((asked.over, asked.conditions.len()), (Some(Duration::from_mins(1)), 2));
    let toml = "metric = 'lag'\nexpect = ['p(99) <= 5s', 'max <= 60s']\nover = 'any 60s'";
    assert_eq!(toml::from_str::<Rule>(toml).expect("a rule"), asked);
    let check = |text: &str, expected: &str| {
        let error = text.parse::<Rule>().expect_err(text).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check("lag: p(99) <= 5s over 60s", "`over`: `60s` is no window; write it as in `any 60s`");
    check("lag: p(99) <= 5s over any 60", "`over`: `60` has no unit");
    check("lag: p(99) <= 5s over any 0s", "`over`: nothing is due in no time");
    check("lag: p(99) != 5s over any 60s", "`over`: no window is the worst of `p(99) != 5s`");
    check("store_keys == 0 over any 60s", "`over`: `store_keys` is known for the whole run only");
    let (designs, classes, limits) = ([], [], []);
    let horizon = Duration::from_hours(240);
    let known = Known { designs: &designs, classes: &classes, limits: &limits, horizon };
    let error = rule("lost == 0 over any 1s").check(known).expect_err("864,000 windows");
    let expected = "`over`: a run of 10d has more than 100000 windows of 1s; write at least 9s";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn names_are_checked_against_the_scenario() {
    let designs = ["naive-loop".to_owned(), "scheduler".to_owned()];
    let classes = ["reply".to_owned()];
    let limits = ["token".to_owned(), "chat".to_owned()];
    let known =
        Known { designs: &designs, classes: &classes, limits: &limits, horizon: Duration::from_hours(24) };
    let check = |text: &str, expected: &str| {
        let told = rule(text).check(known).map_err(|error| error.to_string());
        assert_eq!(told.err().unwrap_or_default(), expected, "{text}");
    };
    check("lag{class:reply}: p(99) <= 0.1 * naive-loop", "");
    check("lag{class:replies}: p(99) <= 5s", "unknown class `replies`; there is only `reply`");
    check("lag: p(99) <= 0.1 * naive-lop", "unknown design `naive-lop`; did you mean `naive-loop`?");
    check("throttled{limit:chta}: == 0", "unknown limit `chta`; did you mean `chat`?");
}

#[test]
fn toml_takes_one_or_many() {
    let rule: Rule = toml::from_str(
        "metric = 'lag'\nwhere = { class = 'reply' }\ndesign = 'scheduler'\nexpect = ['p(99) <= 5s', 'max <= 60s']",
    )
    .expect("a rule");
    assert_eq!(rule.designs, ["scheduler"]);
    assert_eq!(rule.conditions.len(), 2);
}

#[test]
fn without_a_design_all_are_judged_but_the_reference() {
    let judged = |text| judged(&[rule(text)], &two()).into_iter().map(|v| v.design).collect::<Vec<_>>();
    assert_eq!(judged("lost: == 0"), ["naive-loop", "scheduler"]);
    assert_eq!(judged("lag: p(99) <= 0.1 * naive-loop"), ["scheduler"]);
}

#[test]
fn a_design_that_was_not_selected_gives_no_verdict() {
    let two = two();
    assert_eq!(judged(&[rule("lag: p(99) <= 0.1 * naive-loop")], &two[1..]), []);
    assert_eq!(
        judged(&[Rule { designs: vec!["naive-loop".to_owned()], ..rule("lost: == 0") }], &two[1..]),
        []
    );
}

#[test]
fn nothing_passes_without_samples() {
    let mut two = two();
    two[0].metrics.lag_us = Lag::default();
    for text in ["lag: p(99) <= naive-loop", "lag{class:reply}: p(99) <= 1h", "lag: p(99) != naive-loop"] {
        let mut rule = rule(text);
        rule.designs = vec!["scheduler".to_owned()];
        let verdict = &judged(&[rule], &two)[0];
        assert_eq!((verdict.measured, verdict.passed), (None, false), "{text}");
    }
    two[1].metrics.requests = 0;
    assert!(!passes("throttled: rate <= 100%", &two));
    two[1].metrics = Metrics::default();
    let verdict = &judged(&[rule("amplification: <= 1.05")], &two)[1];
    assert_eq!((verdict.measured, verdict.passed), (None, false), "calls per message, of no message");
}

#[test]
fn a_lower_bound_proves_only_what_larger_values_prove_too() {
    let (exact, mut measured, mut reference) = (two(), two(), two());
    measured[1].metrics.lag_us = lag(5_000_000, true);
    reference[0].metrics.lag_us = lag(60_000_000, true);
    let check = |text, expected: [bool; 3]| {
        assert_eq!(
            [&exact, &measured, &reference].map(|outcomes| passes(text, outcomes)),
            expected,
            "{text}"
        );
    };
    check("lag: p(99) <= 1h", [true, false, true]);
    check("lag: p(99) >= 5s", [true, true, true]);
    check("lag: p(99) == 5s", [true, false, true]);
    check("lag: p(99) != 4s", [true, true, true]);
    check("lag: p(99) != 6s", [true, false, true]);
    check("lag: p(50) == 1us", [true, true, true]);
    check("lag: p(99) <= 0.1 * naive-loop", [true, false, true]);
    check("lag: p(99) >= 0.01 * naive-loop", [true, true, false]);
}

#[test]
fn a_verdict_reports_the_value_and_its_unit() {
    let verdict = &judged(&[rule("throttled{limit:chat}: rate <= 1%")], &two())[1];
    assert_eq!((verdict.measured, verdict.unit.as_str(), verdict.passed), (Some(1_000), "ppm", true));
    assert_eq!(verdict.expect, "rate <= 1%");
    assert_eq!(subject(verdict), "throttled{limit:chat}");
}

#[test]
fn a_verdict_says_whether_the_truth_may_be_larger() {
    let mut two = two();
    two[1].metrics.lag_us = lag(5_000_000, true);
    let lower_bounds =
        |text: &str| judged(&[rule(text)], &two).into_iter().map(|v| v.lower_bound).collect::<Vec<_>>();
    assert_eq!(lower_bounds("lag: p(99) <= 1h"), [false, true]);
    assert_eq!(lower_bounds("lag: p(50) <= 1h"), [false, false], "only the quantiles that would change");
    assert_eq!(lower_bounds("lag{class:reply}: max <= 1h"), [false, false], "nothing was measured");
}

/// Runs of `scheduler`, by seed from 1; their p99 in seconds, out of 1,000 lags each.
fn seeds(p99_s: &[u64]) -> Vec<Outcome> {
    let outcome = |p99: &u64| {
        let lags =
            LagCounts { delivered: vec![(1_000_000, 980), (p99 * 1_000_000, 20)], ..LagCounts::default() };
        let lag_counts = [("reply".to_owned(), LagCounts { max: p99 * 1_000_000, ..lags })];
        let metrics = Metrics { lag_us: lag(p99 * 1_000_000, false), requests: 1_000, ..Metrics::default() };
        Outcome { lag_counts: lag_counts.into_iter().collect(), ..outcome("scheduler", metrics) }
    };
    p99_s.iter().map(outcome).collect()
}

fn by_seed<'a>(outcomes: &'a [Outcome], first: u64) -> Vec<Runs<'a>> {
    let run = |(index, outcome): (usize, &'a Outcome)| Run {
        seed: first + index as u64,
        totals: outcome.totals(),
        lags: Some(&outcome.lag_counts),
    };
    vec![Runs { design: &outcomes[0].name, runs: outcomes.iter().enumerate().map(run).collect() }]
}

/// Of 4,000 lags 20 of each seed are above 1 s: 40 of 2 s, 20 of 3 s, 20 of 4 s, so 99 % are at most 2 s. At or below that are 100, 98, 100
/// and 98 % of the seeds' lags: mean 99 %, standard error 0.577 %, times 3.182 (Student, three degrees of freedom) 1.84 %. So the ends are
/// the quantiles at 97.16 %, which is 1 s, and above 100 %, which is the largest.
#[test]
fn of_several_seeds_quantiles_are_judged_on_the_upper_end() {
    let outcomes = seeds(&[2, 3, 2, 4]);
    let verdict = |text: &str| judge(&[rule(text)], &by_seed(&outcomes, 1), &[]).remove(0);
    let judged = verdict("lag: p(99) <= 3s");
    assert_eq!((judged.interval, judged.measured), (Some([1_000_000, 4_000_000]), Some(4_000_000)));
    assert!(!judged.passed);
    assert_eq!(judged.seed, Some(4));
    assert!(verdict("lag: p(99) <= 4s").passed);
    let judged = verdict("lag: p(99) >= 2s");
    assert_eq!((judged.measured, judged.passed), (Some(1_000_000), false), "the other end");
}

#[test]
fn of_several_seeds_all_else_has_to_hold_under_each() {
    let mut outcomes = seeds(&[2, 3, 2, 4]);
    let verdict =
        |outcomes: &[Outcome], text: &str| judge(&[rule(text)], &by_seed(outcomes, 1), &[]).remove(0);
    let holds = verdict(&outcomes, "lost == 0");
    assert_eq!((holds.passed, holds.interval), (true, None));
    outcomes[2].metrics.lost = 1;
    let fails = verdict(&outcomes, "lost == 0");
    assert_eq!((fails.passed, fails.measured, fails.seed), (false, Some(1), Some(3)));
    let max = verdict(&outcomes, "lag: max <= 3s");
    assert_eq!((max.passed, max.measured, max.seed, max.interval), (false, Some(4_000_000), Some(4), None));
}

/// Every value is 1 s above the baseline's: seen by pairs there is no doubt, seen apart there is.
#[test]
fn a_baseline_with_the_same_seeds_is_compared_by_pairs() {
    let (old, new) = (seeds(&[2, 30, 2, 4, 9]), seeds(&[3, 31, 3, 5, 10]));
    let verdict =
        |text: &str, first| judge(&[rule(text)], &by_seed(&new, 1), &by_seed(&old, first)).remove(0);
    let paired = verdict("lag: p(99) <= baseline + 1s", 1);
    assert_eq!((paired.passed, paired.interval), (true, Some([0, 0])));
    assert!(!verdict("lag: p(99) <= baseline + 999ms", 1).passed);
    assert!(!verdict("lag: p(99) <= baseline + 1s", 100).passed, "other seeds");
    assert!(verdict("lag: p(99) <= baseline + 60s", 100).passed);
}

#[test]
fn a_design_is_compared_with_itself_in_the_baseline() {
    let (two, mut old) = (two(), two());
    old.reverse();
    old[1].metrics.lag_us = lag(50_000_000, false);
    let verdicts = judge(&[rule("lag: p(99) <= 1.1 * baseline")], &runs(&two, 1), &runs(&old, 1));
    let expected = [
        ("naive-loop", Some(60_000_000), Some(55_000_000), false),
        ("scheduler", Some(5_000_000), Some(5_500_000), true),
    ];
    let told = |v: &Verdict| (v.measured, v.bound, v.passed);
    for (verdict, (design, measured, bound, passed)) in verdicts.iter().zip(expected) {
        assert_eq!((verdict.design.as_str(), told(verdict)), (design, (measured, bound, passed)));
    }
    assert_eq!(judge(&[rule("lag: p(99) <= baseline")], &runs(&two, 1), &runs(&old[1..], 1)).len(), 1);
    assert_eq!(judge(&[rule("lag: p(99) <= baseline")], &runs(&two, 1), &[]), []);
}

/// Three windows: 4 s, 9 s, and one in which 2 s may in truth be more.
#[test]
fn the_worst_window_is_judged() {
    let window = |index: u64, p99, lower_bound, throttled| {
        let metrics = Metrics {
            lag_us: lag(p99, lower_bound),
            requests: 100,
            throttled: [("token".to_owned(), throttled)].into_iter().collect(),
            ..Metrics::default()
        };
        (Time::from_secs(60 * index), metrics, IndexMap::new())
    };
    let judged = |text: &str, windows: &[(Time, Metrics, IndexMap<String, ClassOutcome>)]| {
        let rules = [rule(text)];
        let mut outcome = outcome("scheduler", Metrics::default());
        outcome.windows = worst(&rules, Duration::from_mins(1), windows);
        let verdict = judge(&rules, &runs(&[outcome], 1), &[]).remove(0);
        (verdict.measured, verdict.window_us, verdict.passed)
    };
    let windows =
        [window(0, 4_000_000, false, 3), window(1, 9_000_000, false, 9), window(2, 2_000_000, false, 0)];
    assert_eq!(judged("lag: p(99) <= 9s over any 1min", &windows), (Some(9_000_000), Some(60_000_000), true));
    assert_eq!(judged("lag: p(99) < 9s over any 1min", &windows), (Some(9_000_000), Some(60_000_000), false));
    assert_eq!(
        judged("lag: p(99) >= 2s over any 1min", &windows),
        (Some(2_000_000), Some(120_000_000), true)
    );
    assert!(!judged("lag: p(99) == 9s over any 1min", &windows).2);
    assert_eq!(
        judged("throttled{limit:token}: rate < 9% over any 1min", &windows),
        (Some(90_000), Some(60_000_000), false)
    );
    let mut windows = windows;
    windows[2] = window(2, 2_000_000, true, 0);
    assert_eq!(
        judged("lag: p(99) <= 9s over any 1min", &windows),
        (Some(2_000_000), Some(120_000_000), false)
    );
    assert_eq!(judged("lag: p(99) <= 9s over any 1min", &[]), (None, None, false));
}

#[test]
fn every_number_of_the_report_is_a_metric() {
    let strip = |key: &String| key.trim_end_matches("_us").trim_end_matches("_ppm").to_owned();
    let json = serde_json::to_value(Metrics::default()).expect("plain data");
    let keys: Vec<_> = json.as_object().expect("an object").keys().map(strip).collect();
    assert_eq!(METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>(), keys);
    // By class there are the ledger and lag.
    let json = serde_json::to_value(ClassOutcome::default()).expect("plain data");
    let keys: Vec<_> =
        json.as_object().expect("an object").keys().map(strip).filter(|k| k != "lag_p99").collect();
    let labelled = METRICS.iter().filter(|metric| metric.label == Some(Label::Class));
    assert_eq!(labelled.map(|metric| metric.name).collect::<Vec<_>>(), keys);
}

fn written_condition() -> impl Strategy<Value = (usize, String)> {
    let metric = 0..METRICS.len();
    let operator = prop::sample::select(vec!["<=", "<", ">=", ">", "==", "!="]);
    let name = "[a-z][a-z0-9]{0,4}(-[a-z0-9]{1,4}){0,2}".prop_filter("a design", |name| name != BASELINE);
    (metric, any::<prop::sample::Index>(), operator, name, 0u64..2_000_000_000, 0u64..1_000_000, 0..5)
        .prop_map(|(metric, aggregate, operator, name, factor, amount, form)| {
            let aggregates = METRICS[metric].aggregates();
            let aggregate = aggregates[aggregate.index(aggregates.len())];
            let unit = if aggregate == "rate" { Unit::Share } else { METRICS[metric].unit };
            let quantity = match unit {
                Unit::Duration => format!("{amount}us"),
                Unit::Share => format!("{}.{:04}%", amount / 10_000, amount % 10_000),
                Unit::Ratio => format!("{}.{:06}", amount, factor % 1_000_000),
                Unit::Count => amount.to_string(),
            };
            let factor = format!("{}.{:06}", factor / 1_000_000, factor % 1_000_000);
            let bound = match form {
                0 => quantity,
                1 => name,
                2 => format!("{factor} * {name}"),
                3 => format!("{name} * {factor} + {quantity}"),
                _ => format!("{name} - {quantity}"),
            };
            (metric, format!("{aggregate} {operator} {bound}"))
        })
}

proptest! {
    #[test]
    fn what_is_shown_reads_back((metric, text) in written_condition()) {
        let condition = Condition::parse(&text, &METRICS[metric]).expect("in the grammar");
        let again = Condition::parse(&condition.to_string(), &METRICS[metric]).expect("what is shown is in the grammar");
        prop_assert_eq!(Condition { written: condition.written.clone(), ..again }, condition);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,40}", metric in 0..METRICS.len()) {
        let _ = Condition::parse(&text, &METRICS[metric]);
        let _ = text.parse::<Rule>();
    }

    /// Small numbers make ties likely; the floats of this model are exact for them.
    #[test]
    fn agrees_with_a_naive_evaluation(
        measured in 0u64..50, reference in 0u64..50, requests in 1u64..=8, quarters in 0u64..16,
        offset in 0u64..20, minus: bool, operator in 0usize..6,
    ) {
        let symbol = ["<=", "<", ">=", ">", "==", "!="][operator];
        let sign = if minus { "-" } else { "+" };
        let factor = quarters as f64 / 4.0;
        let holds = |left: f64, right: f64| {
            [left <= right, left < right, left >= right, left > right, left == right, left != right][operator]
        };
        let outcomes = |read: fn(u64) -> Metrics| [outcome("other", read(reference)), outcome("scheduler", read(measured))];

        let lags = outcomes(|us| Metrics { lag_us: lag(us, false), ..Metrics::default() });
        let shifted = reference as f64 * factor + if minus { -(offset as f64) } else { offset as f64 };
        let text = format!("lag: p(99) {symbol} {factor} * other {sign} {offset}us");
        prop_assert_eq!(passes(&text, &lags), holds(measured as f64, shifted), "{}", text);

        // Rates: eighths, quarters and shares of 1/8 are exact too.
        let requests = requests.next_power_of_two();
        let mut rates = outcomes(|calls| Metrics { early_retries: calls, ..Metrics::default() });
        rates.iter_mut().for_each(|outcome| outcome.metrics.requests = requests);
        let (left, right) = (measured as f64 / requests as f64, reference as f64 / requests as f64 * factor);
        let text = format!("early_retries: rate {symbol} {factor} * other");
        prop_assert_eq!(passes(&text, &rates), holds(left, right), "{}", text);
        let text = format!("early_retries: rate {symbol} {}%", offset as f64 / 8.0 * 25.0);
        prop_assert_eq!(passes(&text, &rates), holds(left, offset as f64 / 32.0), "{}", text);
    }
}
