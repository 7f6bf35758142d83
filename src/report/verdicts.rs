//! Verdicts as text.

use fake_telegram::time::Duration;
use fake_telegram::units::{Count, Share};

use crate::gate::{self, Metric, Unit};
use crate::outcome::{Report, Verdict};

use super::human;

/// The two lists of verdicts with their names; empty ones are left out.
pub(super) fn lists(report: &Report) -> impl Iterator<Item = (&'static str, &[Verdict])> {
    [("gates", report.gates.as_slice()), ("expectations", report.expectations.as_slice())]
        .into_iter()
        .filter(|(_, verdicts)| !verdicts.is_empty())
}

/// How many of them hold.
pub(super) fn held(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| verdict.passed).count()
}

/// What was asked for, in full: `lag{class:reply} p(99) <= 5s over any 1min`.
pub(super) fn claim(verdict: &Verdict) -> String {
    format!("{} {}", gate::subject(verdict), expected(verdict))
}

/// What was asked of the metric: `p(99) <= 1.1 * baseline over any 1min`.
pub(super) fn expected(verdict: &Verdict) -> String {
    let over = verdict.over_us.map(|us| format!(" over any {}", Duration::from_micros(us)));
    format!("{}{}", verdict.expect, over.unwrap_or_default())
}

/// What the right-hand side was, if that is not what is written: `5.5s`.
pub(super) fn bound(verdict: &Verdict) -> Option<String> {
    verdict.bound.map(|bound| signed(&verdict.metric, &verdict.unit, bound))
}

/// What was measured, to the digit that decides, with its interval: `7.102s`, `≥3h12m (11520s)`, `0.1353%`,
/// `7.102s [6.8s, 7.102s]`. Against another result it is the excess over the bound that has one.
pub(super) fn measured(verdict: &Verdict) -> String {
    let Some(value) = verdict.measured else { return "no samples".to_owned() };
    let bound = if verdict.lower_bound { "≥" } else { "" };
    let value = quantity(&verdict.metric, &verdict.unit, value);
    let of = if verdict.bound.is_some() { "beyond the bound by " } else { "" };
    let interval =
        verdict.interval.map(|ends| format!(" {of}{}", interval(&verdict.metric, &verdict.unit, ends)));
    format!("{bound}{value}{}", interval.unwrap_or_default())
}

/// Where it was measured: `in the window from 1h12m, worst seed 7`; empty for the whole of a single run.
pub(super) fn place(verdict: &Verdict) -> String {
    let window = verdict.window_us.map(|us| format!("in the window from {}", human::lag(us)));
    let seed = verdict.seed.map(|seed| format!("worst seed {seed}"));
    window.into_iter().chain(seed).collect::<Vec<_>>().join(", ")
}

/// The commands that show those that do not hold, once each.
pub(super) fn commands(verdicts: &[Verdict]) -> Vec<&str> {
    let mut commands: Vec<&str> = Vec::new();
    for command in verdicts.iter().filter_map(|verdict| verdict.reproduce.as_deref()) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

/// By how much it does not hold: `2.102s, 42.0%`, `≥10s, 200.0%`, or `unknown (≥)` for a lower bound below what is allowed.
/// Nothing if it holds, or if there is no more or less to it (`==`).
pub(super) fn missed(verdict: &Verdict) -> Option<String> {
    let measured = i128::from(verdict.measured.filter(|_| !verdict.passed)?);
    let (operator, limit) = limit(verdict)?;
    // Against another result it is the end of the excess' interval that decides.
    let excess = verdict.interval.filter(|_| verdict.bound.is_some()).map(|ends| ends.map(i128::from));
    let (by, at_least) = match operator {
        '<' => (excess.map_or(measured - limit, |[_, high]| high), verdict.lower_bound),
        '>' => (excess.map_or(limit - measured, |[low, _]| -low), false),
        _ => return None,
    };
    if by <= 0 && verdict.lower_bound {
        return Some("unknown (≥)".to_owned());
    }
    let by = u64::try_from(by).ok().filter(|by| *by > 0)?;
    // Ten times what is allowed is not read as a share of it.
    let share = u64::try_from(limit).ok().filter(|limit| *limit > 0 && by / 10 < *limit);
    let share = share.map(|limit| format!(", {}", human::share(by, limit))).unwrap_or_default();
    let at_least = if at_least { "≥" } else { "" };
    Some(format!("{at_least}{}{share}", quantity(&verdict.metric, &verdict.unit, by)))
}

/// The operator's first character, and the right-hand side in the verdict's unit: the one that is there, or what is
/// written.
fn limit(verdict: &Verdict) -> Option<(char, i128)> {
    let at = verdict.expect.find(['<', '>', '=', '!'])?;
    let written = verdict.expect[at..].trim_start_matches(['<', '>', '=', '!']).trim();
    let limit = match (verdict.bound, verdict.unit.as_str()) {
        (Some(bound), _) => bound.into(),
        (None, "us") => written.parse::<Duration>().ok()?.as_micros().into(),
        (None, "ppm") if is_ratio(&verdict.metric) => (written.parse::<f64>().ok()? * 1e6).round() as i128,
        (None, "ppm") => written.parse::<Share>().ok()?.as_ppm().into(),
        (None, _) => written.parse::<Count>().ok()?.0.into(),
    };
    Some((verdict.expect[at..].chars().next()?, limit))
}

/// A value of a metric in one of the units of the report: `us`, `ppm`, `count`, or `milli` for thousandths of a count.
pub(super) fn quantity(metric: &str, unit: &str, value: u64) -> String {
    match unit {
        "us" => human::precise_lag(value),
        "ppm" if is_ratio(metric) => human::decimal(value, 6),
        "ppm" => format!("{}%", human::decimal(value, 4)),
        // Beyond a hundred nobody reads thousandths.
        "milli" if value >= 100_000 => human::count((value + 500) / 1_000),
        "milli" => human::decimal(value, 3),
        _ => human::count(value),
    }
}

/// The same with a sign, if it is below zero.
pub(super) fn signed(metric: &str, unit: &str, value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", quantity(metric, unit, value.unsigned_abs()))
}

/// `[6.8s, 7.102s]`
pub(super) fn interval(metric: &str, unit: &str, [low, high]: [i64; 2]) -> String {
    let end = |value: i64| match unit {
        // Seconds beside minutes and hours are for the value alone.
        "us" if value.unsigned_abs() >= 60_000_000 => {
            format!("{}{}", if value < 0 { "-" } else { "" }, human::lag(value.unsigned_abs()))
        }
        _ => signed(metric, unit, value),
    };
    format!("[{}, {}]", end(low), end(high))
}

pub(super) fn is_ratio(metric: &str) -> bool {
    Metric::named(metric).is_ok_and(|metric| metric.unit == Unit::Ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(expect: &str, measured: u64, unit: &str) -> Verdict {
        Verdict {
            metric: "lag".to_owned(),
            design: "scheduler".to_owned(),
            expect: expect.to_owned(),
            measured: Some(measured),
            unit: unit.to_owned(),
            ..Verdict::default()
        }
    }

    #[test]
    fn what_is_missed_is_the_distance_to_what_is_allowed() {
        let check = |verdict: Verdict, expected: Option<&str>| {
            assert_eq!(missed(&verdict).as_deref(), expected, "{}", verdict.expect);
        };
        let plain = || verdict("p(99) <= 5s", 7_102_000, "us");
        check(plain(), Some("2.102s, 42.0%"));
        check(Verdict { lower_bound: true, ..plain() }, Some("≥2.102s, 42.0%"));
        check(Verdict { passed: true, ..plain() }, None);
        check(Verdict { measured: None, ..plain() }, None);
        let below = verdict("p(99) <= 10s", 7_102_000, "us");
        check(Verdict { lower_bound: true, ..below }, Some("unknown (≥)"));
        check(verdict("p(99) < 5s", 5_000_000, "us"), None);
        check(verdict("p(99) <= 1s", 7_102_000_000, "us"), Some("1h58m (7101s)"));
        check(verdict("== 0", 3, "count"), None);
        check(verdict("<= 0", 3, "count"), Some("3"));
        check(verdict(">= 70%", 695_000, "ppm"), Some("0.5%, 0.71%"));
        let ratio = verdict("<= 1.05", 1_100_000, "ppm");
        check(Verdict { metric: "amplification".to_owned(), ..ratio }, Some("0.05, 4.76%"));
        let baseline = verdict("p(99) <= baseline * 1.10 + 0.5s", 3_000_000, "us");
        let baseline = Verdict { bound: Some(2_000_000), ..baseline };
        check(baseline.clone(), Some("1s, 50.0%"));
        check(Verdict { interval: Some([-500_000, 1_500_000]), ..baseline }, Some("1.5s, 75.0%"));
    }

    #[test]
    fn an_interval_has_the_unit_of_what_it_is_about() {
        let lag =
            Verdict { interval: Some([6_800_000, 7_102_000]), ..verdict("p(99) <= 5s", 7_102_000, "us") };
        assert_eq!(measured(&lag), "7.102s [6.8s, 7.102s]");
        let baseline = Verdict { bound: Some(7_000_000), interval: Some([-100_000, 200_000]), ..lag };
        assert_eq!(measured(&baseline), "7.102s beyond the bound by [-100ms, 200ms]");
        assert_eq!(interval("lag", "us", [-60_000_000, 600_000_000]), "[-1m00s, 10m00s]");
        assert_eq!(interval("throttled", "ppm", [-100, 1_353]), "[-0.01%, 0.1353%]");
        assert_eq!(quantity("lost", "milli", 2_350), "2.35");
        assert_eq!(quantity("lost", "milli", 1_234_567_890), "1,234,568");
    }
}
