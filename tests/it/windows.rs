//! Windows and the warm-up, counted anew from a run's raw events.

use std::collections::BTreeMap;

use fake_telegram::api::Truth;
use fake_telegram::time::{Duration, Time};
use floodlab::event::Event;
use floodlab::outcome::WindowValue;
use floodlab::scenario::Scenario;

use crate::lab::{self, Run};

/// Bursts into a bucket that cannot take them, so that some windows are much worse than others.
fn scenario(extra: &str) -> Scenario {
    scenario_with(extra, "")
}

fn scenario_with(extra: &str, gates: &str) -> Scenario {
    lab::scenario(&format!(
        r#"
        duration = "2min"
        drain = "5min"
        workers = 4
        chats = {{ count = 300 }}
        {extra}
        [workload.alert]
        kind = "poisson"
        class = "alert"
        rate = "12/s"
        [workload.all]
        kind = "broadcast"
        class = "all"
        at = "40s"
        {}
        {gates}"#,
        lab::designs(["naive-loop", "shared-bucket"])
    ))
}

/// What a message went through: when it fell due, whether its chat was alive, when it was first delivered.
struct Line {
    due: Time,
    alive: bool,
    delivered: Option<Time>,
    class: u8,
}

fn lines(run: &Run) -> Vec<Line> {
    let mut lines = BTreeMap::new();
    for (at, event) in &run.tape {
        match event {
            Event::Due { message, alive } => {
                let line = Line { due: *at, alive: *alive, delivered: None, class: message.class.0 };
                lines.insert(message.number, line);
            }
            Event::Decided { message, decision, .. } if decision.truth == Truth::Delivered => {
                let line = lines.get_mut(&message.number).expect("it fell due");
                line.delivered = line.delivered.or(Some(*at));
            }
            _ => {}
        }
    }
    lines.into_values().collect()
}

/// The instants at which something happened that `counts`.
fn instants(run: &Run, counts: impl Fn(&Event) -> bool) -> Vec<Time> {
    run.tape.iter().filter(|(_, event)| counts(event)).map(|(at, _)| *at).collect()
}

fn is_refused_by_its_chat(event: &Event) -> bool {
    matches!(event, Event::Decided { decision, .. } if matches!(decision.truth, Truth::Refused { limit, .. } if limit.0 == 1))
}

/// By window: how many.
fn counted(instants: &[Time], width: Duration, horizon: Duration) -> Vec<u64> {
    let windows = horizon.as_micros().div_ceil(width.as_micros());
    let in_window = |index: u64| {
        let (from, to) = (Time::ZERO + width * index, Time::ZERO + width * (index + 1));
        instants.iter().filter(|at| (from..to).contains(at)).count() as u64
    };
    (0..windows).map(in_window).collect()
}

/// The window with the largest value, of equal ones the first.
fn largest(values: impl Iterator<Item = Option<(u64, u64)>>) -> Option<(usize, (u64, u64))> {
    let values = values.enumerate().filter_map(|(index, value)| Some((index, value?)));
    values.reduce(|best, next| {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let ((_, (a, b)), (_, (c, d))) = (best, next);
        if product(c, b) > product(a, d) { next } else { best }
    })
}

fn measured(run: &Run, metric: &str, aggregate: &str, label: Option<&str>) -> WindowValue {
    let is_it = |w: &&floodlab::outcome::Windows| {
        w.metric == metric
            && w.aggregate == aggregate
            && w.r#where.values().next().map(String::as_str) == label
    };
    let windows = run.outcome.windows.iter().find(is_it).expect("it was asked for");
    windows.largest.expect("there are samples")
}

#[test]
fn the_worst_window_is_that_of_the_raw_events() {
    const GATES: &str = r#"
        [[gate]]
        metric = "lag"
        expect = ["p(99) <= 1s", "p(50) <= 1s"]
        over = "any 7s"
        [[gate]]
        metric = "lag"
        where = { class = "alert" }
        expect = "max <= 1s"
        over = "any 7s"
        [[gate]]
        metric = "requests"
        expect = "<= 100"
        over = "any 7s"
        [[gate]]
        metric = "throttled"
        where = { limit = "chat" }
        expect = ["rate <= 1%", "<= 5"]
        over = "any 7s"
        [[gate]]
        metric = "due"
        expect = "<= 10"
        over = "any 7s""#;
    let scenario = scenario_with("", GATES);
    let (width, horizon) = (Duration::from_secs(7), scenario.horizon());
    for design in ["naive-loop", "shared-bucket"] {
        let run = lab::run(&scenario, design, 3);
        let (lines, end) = (lines(&run), Time::ZERO + horizon);
        let windows = horizon.as_micros().div_ceil(width.as_micros());
        // Quantiles by sorting: the value at the smallest rank that reaches the share. It is a lower bound unless the delivered
        // alone have it there, and then worse than any other.
        let quantile = |percent: u64, class: Option<u8>| {
            let value = |index: u64| {
                let window = Time::ZERO + width * index..Time::ZERO + width * (index + 1);
                let of = lines.iter().filter(|line| window.contains(&line.due) && line.alive);
                let of = of.filter(|line| class.is_none_or(|class| class == line.class));
                let lag = |line: &Line| (line.delivered.unwrap_or(end) - line.due).as_micros();
                let (mut delivered, mut all) = (Vec::new(), Vec::new());
                for line in of {
                    all.push(lag(line));
                    delivered.extend(line.delivered.map(|_| lag(line)));
                }
                delivered.sort_unstable();
                all.sort_unstable();
                let rank = (all.len() as u64 * percent).div_ceil(100).max(1) as usize;
                all.get(rank - 1).map(|us| (delivered.get(rank - 1) != Some(us), *us, index))
            };
            let values = (0..windows).filter_map(value);
            let worst =
                values.reduce(|worst, next| if (next.0, next.1) > (worst.0, worst.1) { next } else { worst });
            worst.expect("something fell due")
        };
        let late = |aggregate, label, (lower_bound, us, index): (bool, u64, u64)| {
            let value = measured(&run, "lag", aggregate, label);
            let from_us = width.as_micros() * index;
            assert_eq!(
                value,
                WindowValue { from_us, numerator: us, denominator: 1, lower_bound },
                "{design}: {aggregate}"
            );
        };
        late("p(99)", None, quantile(99, None));
        late("p(50)", None, quantile(50, None));
        late("max", Some("alert"), quantile(100, Some(0)));
        let same = |metric, aggregate, label, (index, (top, below)): (usize, (u64, u64))| {
            let value = measured(&run, metric, aggregate, label);
            let at = width.as_micros() * index as u64;
            assert_eq!(
                (value.from_us, value.numerator, value.denominator),
                (at, top, below),
                "{design}: {metric} {aggregate}"
            );
        };
        let requests = counted(&instants(&run, |event| matches!(event, Event::Sent { .. })), width, horizon);
        let refused = counted(&instants(&run, is_refused_by_its_chat), width, horizon);
        let due = counted(&instants(&run, |event| matches!(event, Event::Due { .. })), width, horizon);
        let whole = |counts: &[u64]| largest(counts.iter().map(|count| Some((*count, 1)))).expect("windows");
        same("requests", "", None, whole(&requests));
        same("throttled", "", Some("chat"), whole(&refused));
        same("due", "", None, whole(&due));
        let rates =
            refused.iter().zip(&requests).map(|(refused, all)| (*all > 0).then_some((*refused, *all)));
        same("throttled", "rate", Some("chat"), largest(rates).expect("there were calls"));
    }
}

#[test]
fn what_falls_due_in_the_warm_up_is_in_no_total() {
    let (whole, cut) = (scenario(""), scenario("warm_up = \"45s\""));
    let warm_up = Time::from_secs(45);
    for design in ["naive-loop", "shared-bucket"] {
        let (whole, cut) = (lab::run(&whole, design, 3), lab::run(&cut, design, 3));
        assert_eq!(whole.outcome.event_hash, cut.outcome.event_hash, "the run is the same");
        assert_eq!(whole.outcome.series, cut.outcome.series, "and plots show all of it");
        let metrics = &cut.outcome.metrics;
        let after = |counts: fn(&Event) -> bool| {
            instants(&cut, counts).into_iter().filter(|at| *at >= warm_up).count() as u64
        };
        assert_eq!(metrics.due, after(|event| matches!(event, Event::Due { .. })));
        assert_eq!(metrics.requests, after(|event| matches!(event, Event::Sent { .. })));
        assert_eq!(metrics.throttled["chat"], after(is_refused_by_its_chat));
        let lines = lines(&cut);
        let late = || lines.iter().filter(|line| line.due >= warm_up);
        assert_eq!(metrics.delivered, late().filter(|line| line.delivered.is_some()).count() as u64);
        assert_eq!(metrics.lag_us.samples, late().filter(|line| line.alive).count() as u64);
        assert!(metrics.due < whole.outcome.metrics.due && metrics.requests < whole.outcome.metrics.requests);
        let max = late().map(|line| line.delivered.unwrap_or(Time::from_secs(420)) - line.due).max();
        assert_eq!(metrics.lag_us.max, max.map(|lag| lag.as_micros()));
    }
}

/// A bucket of 29/s against the token's 30/s, busy all the time: 29/30 of what flows in after the warm-up, if the token's
/// bucket was empty then; if it was full, with its burst of 30, of 541 s x 30/s + 30.
#[test]
fn a_saturated_bucket_is_used_up_after_the_warm_up() {
    let scenario = lab::scenario(
        r#"
        duration = "10min"
        drain = "1s"
        warm_up = "1min"
        workers = 64
        chats = { count = 30000 }
        [workload.all]
        kind = "broadcast"
        class = "all"
        [[design]]
        strategy = "process-bucket"
        "#,
    );
    let run = lab::run(&scenario, "process-bucket", 1);
    let used = run.outcome.metrics.budget_utilisation_ppm.expect("there is a limit");
    let (taken, flows_in) = (29.0 * 541.0, 30.0 * 541.0);
    let [least, most] = [taken / (flows_in + 30.0), taken / flows_in].map(|share| (share * 1e6) as u64);
    // A call more or less at either end.
    assert!((least - 100..=most + 100).contains(&used), "{used} of {least} to {most}");
}
