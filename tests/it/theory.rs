//! Against results that are known without a simulator.

use std::cell::RefCell;
use std::rc::Rc;

use fake_telegram::api::Truth;
use fake_telegram::time::{Duration, Time};
use floodlab::event::{Event, Observer};
use floodlab::scenario::Scenario;
use floodlab::stats::{self, Clusters, Interval};

use crate::lab::{self, designs};

/// The constant call time, which is the service time: the worker waits for the answer.
const CALL: Duration = Duration::from_millis(100);
/// Runs with seeds 1, 2, ...
const REPLICATIONS: u64 = 20;
/// Messages at the start of a run that are left out: the queue starts empty.
const WARM_UP: usize = 2_000;
/// Student's t with 19 degrees of freedom, two-sided error probability 1e-4. There are 24 comparisons, so with other
/// seeds one would fail in 400 times. The seeds are fixed: it fails only if the code changes.
const T_19: f64 = 4.897;

/// How long each message waited for the worker, in seconds.
struct Waits(Rc<RefCell<Vec<f64>>>);

impl Observer for Waits {
    fn observe(&mut self, at: Time, event: &Event) {
        if let Event::Decided { message, decision, .. } = event {
            assert_eq!(decision.truth, Truth::Delivered);
            // Lag, less the way to the server.
            let lag = (at - message.due).as_micros();
            self.0.borrow_mut().push((lag - CALL.as_micros() / 2) as f64 / 1e6);
        }
    }
}

/// The mean over replications and half the width of its confidence interval.
fn interval(replications: &[f64]) -> (f64, f64) {
    let n = replications.len() as f64;
    assert_eq!(replications.len() as u64, REPLICATIONS);
    let mean = replications.iter().sum::<f64>() / n;
    let variance = replications.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, T_19 * (variance / n).sqrt())
}

/// P(W <= t) in M/D/1 with load `rho`, time in units of the service time (Erlang 1909; Tijms, *A First Course in
/// Stochastic Models*, 2003, section 9.2.2): (1 - rho) sum over k = 0..floor(t) of (rho (k - t))^k / k! e^(-rho (k - t)).
fn waits_at_most(rho: f64, t: f64) -> f64 {
    let mut sum = 0.0;
    let mut factorial = 1.0;
    for k in 0..=t.floor() as i32 {
        factorial *= f64::from(k.max(1));
        let x = rho * (f64::from(k) - t);
        sum += x.powi(k) / factorial * (-x).exp();
    }
    (1.0 - rho) * sum
}

/// The formula against its own moments: the mean of W is the integral of P(W > t).
#[test]
fn erlangs_distribution_has_pollaczek_and_khinchines_mean() {
    for rho in [0.3, 0.6, 0.8] {
        let step = 1e-3;
        let mean: f64 =
            (0..25_000).map(|i| (1.0 - waits_at_most(rho, (f64::from(i) + 0.5) * step)) * step).sum();
        assert!((mean - rho / (2.0 * (1.0 - rho))).abs() < 2e-3, "rho {rho}: {mean}");
    }
}

/// One worker, Poisson arrivals, a constant call time of [`CALL`]: so many messages a second, for so many seconds.
fn m_d_1(rate: u32, seconds: u32) -> Scenario {
    lab::scenario(&format!(
        r#"
        duration = "{seconds}s"
        workers = 1
        wire = {{ median = "100ms", p99 = "100ms" }}
        server = {{ profile = "unlimited" }}
        chats = {{ count = 100 }}
        [workload.all]
        kind = "poisson"
        class = "all"
        rate = "{rate}/s"
        {}"#,
        designs(["naive-loop"])
    ))
}

/// One worker, Poisson arrivals, a constant call time: M/D/1.
#[test]
fn one_worker_waits_as_in_m_d_1() {
    // Messages a second, load, and how narrow the interval of the mean must be for the test to say anything.
    for (rate, rho, width) in [(3, 0.3, 0.02), (6, 0.6, 0.03), (8, 0.8, 0.05)] {
        let scenario = m_d_1(rate, 40_000 / rate);
        let runs: Vec<Vec<f64>> = (1..=REPLICATIONS)
            .map(|seed| {
                let waits = Rc::new(RefCell::new(Vec::new()));
                lab::watch(&scenario, "naive-loop", seed, Waits(waits.clone()));
                waits.take().split_off(WARM_UP)
            })
            .collect();
        let of_runs = |f: &dyn Fn(f64) -> f64| {
            let means: Vec<f64> = runs
                .iter()
                .map(|run| run.iter().map(|wait| f(*wait)).sum::<f64>() / run.len() as f64)
                .collect();
            interval(&means)
        };
        let service = CALL.as_secs_f64();
        let expected = rho * service / (2.0 * (1.0 - rho));
        let (mean, half) = of_runs(&|wait| wait);
        assert!((mean - expected).abs() <= half, "rho {rho}: mean {mean} +- {half}, {expected} in theory");
        assert!(half < width * expected, "rho {rho}: +- {half} is too wide for {expected}");
        assert!((waits_at_most(rho, 0.0) - (1.0 - rho)).abs() < 1e-12);
        for t in [0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 4.0] {
            let expected = waits_at_most(rho, t);
            let (share, half) = of_runs(&|wait| f64::from(u8::from(wait <= t * service + 1e-9)));
            assert!(
                (share - expected).abs() <= half,
                "rho {rho}: P(W <= {t} D) is {share} +- {half}, {expected} in theory"
            );
            assert!(half < 0.012, "rho {rho}: +- {half}");
        }
    }
}

/// Intervals from ten short runs of the simulator hold what theory says about 95 times in 100: the mean wait (Student), the share
/// of those who wait longer than one service (a ratio), and the wait that nine of ten do not exceed (Woodruff).
#[test]
fn intervals_of_replications_hold_the_theory_of_m_d_1() {
    const EXPERIMENTS: usize = 60;
    const SEEDS: usize = 10;
    const RHO: f64 = 0.6;
    let scenario = m_d_1(6, 600);
    let service = CALL.as_secs_f64();
    let (mean, longer) = (RHO * service / (2.0 * (1.0 - RHO)), 1.0 - waits_at_most(RHO, 1.0));
    let nine_of_ten = bisect(|t| waits_at_most(RHO, t) - 0.9) * service;
    let mut held = [0_usize; 3];
    for experiment in 0..EXPERIMENTS {
        let seeds = (experiment * SEEDS..(experiment + 1) * SEEDS).map(|seed| {
            let waits = Rc::new(RefCell::new(Vec::new()));
            lab::watch(&scenario, "naive-loop", 1_000 + seed as u64, Waits(waits.clone()));
            // The queue starts empty; after 600 messages that is forgotten.
            waits.take().split_off(600)
        });
        let seeds: Vec<Vec<f64>> = seeds.collect();
        let means: Vec<f64> = seeds.iter().map(|waits| stats::mean(waits)).collect();
        let shares: Vec<_> = seeds
            .iter()
            .map(|waits| {
                let long = waits.iter().filter(|wait| **wait > service + 1e-9).count();
                (long as u64, waits.len() as u64)
            })
            .collect();
        let counted = |waits: &Vec<f64>| waits.iter().map(|wait| ((wait * 1e6) as u64, 1)).collect();
        let clusters = Clusters::new(seeds.iter().map(counted));
        let (low, high) = clusters.quantile(900_000).and_then(|found| found.interval).expect("ten seeds");
        let holds = |interval: Option<Interval>, truth: f64| {
            interval.is_some_and(|interval| interval.low <= truth && truth <= interval.high)
        };
        let results = [
            holds(stats::student(&means), mean),
            holds(stats::ratio(&shares), longer),
            low as f64 <= nine_of_ten * 1e6 && nine_of_ten * 1e6 <= high as f64,
        ];
        held.iter_mut().zip(results).for_each(|(held, holds)| *held += usize::from(holds));
    }
    // Of 60, at 95 % each, fewer than 51 hold once in a thousand times. All 60 are no surprise.
    assert!(held.iter().all(|held| *held >= 51), "{held:?}");
}

/// Where a rising function is zero, between 0 and 100.
fn bisect(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    low
}

/// `n` messages at once to as many chats, at exactly the documented rate: message k leaves at (k - 30)/30 s.
#[test]
fn a_bucket_of_30_sends_n_messages_in_n_less_30_thirtieths_of_a_second() {
    for n in [1, 30, 31, 100, 1_000, 10_000] {
        let scenario = lab::scenario(&format!(
            r#"
            duration = "1s"
            wire = {{ median = "0s", p99 = "0s" }}
            store = {{ round_trip = "0s" }}
            chats = {{ count = {n} }}
            [workload.all]
            kind = "broadcast"
            class = "all"
            [[design]]
            name = "bucket"
            strategy = {{ kind = "shared-bucket", limiter = {{ kind = "token-bucket", rate = "30/s", burst = 30 }} }}
            "#
        ));
        let run = lab::run(&scenario, "bucket", 1);
        let metrics = &run.outcome.metrics;
        assert_eq!((metrics.due, metrics.delivered, metrics.requests), (n, n, n), "nothing is refused");
        let delivered: Vec<u64> = run
            .tape
            .iter()
            .filter(|(_, event)| matches!(event, Event::Decided { .. }))
            .map(|(at, _)| at.as_micros())
            .collect();
        // To the microsecond: a token is there at the first one after it is whole.
        let expected = (1..=n).map(|k| (k.saturating_sub(30) * 1_000_000).div_ceil(30));
        assert_eq!(delivered, expected.collect::<Vec<_>>(), "{n} messages");
    }
}

/// Senders that know nothing of each other offer 29/s each, the server allows 30/s: what is over is refused.
#[test]
fn three_saturated_buckets_are_refused_two_thirds_of_the_time() {
    const RATE: f64 = 29.0;
    for processes in [1_u32, 2, 3] {
        let scenario = lab::scenario(&format!(
            r#"
            duration = "1s"
            drain = "5min"
            processes = {processes}
            workers = 48
            server = {{ penalties = false }}
            chats = {{ count = "60k" }}
            [workload.all]
            kind = "broadcast"
            class = "all"
            {}"#,
            designs(["process-bucket"])
        ));
        let run = lab::run(&scenario, "process-bucket", 1);
        // After the bursts.
        let from = Time::from_secs(20);
        let (mut calls, mut refused) = (0_u32, 0_u32);
        for (at, event) in &run.tape {
            if let Event::Decided { decision, .. } = event
                && *at >= from
            {
                calls += 1;
                refused += u32::from(matches!(decision.truth, Truth::Refused { .. }));
            }
        }
        let offered = f64::from(calls) / (Time::ZERO + scenario.horizon() - from).as_secs_f64();
        let saturated = RATE * f64::from(processes);
        assert!((offered / saturated - 1.0).abs() < 0.01, "{processes} processes offer {offered}/s");
        let expected = (1.0 - 30.0 / saturated).max(0.0);
        let share = f64::from(refused) / f64::from(calls);
        let tolerance = if processes == 1 { 0.005 } else { 0.02 };
        assert!(
            (share - expected).abs() <= tolerance,
            "{processes} processes are refused {share}, {expected} in theory"
        );
    }
}
