//! The same strategies in virtual and in real time: the same counts, and the same lags as far as timers and loopback can
//! tell.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::thread;

use fake_telegram::api::Truth;
use fake_telegram::time::{Duration, Time};
use floodlab::event::{Event, Observer};
use floodlab::outcome::{Live, Metrics, Outcome};
use floodlab::run::{Drive, drive};
use floodlab::scenario::Scenario;
use floodlab::store::url::StoreUrl;

use crate::{lab, redis};

/// 53 messages in 4 s: a steady trickle, seven at once into one chat, six into a group that takes five in 3 s, and 24
/// at once to as many chats. Limits are hit in every way, and nothing of it hangs on a race: what a limit frees, and when
/// senders come back, is tens of milliseconds away from every call.
fn scenario(design: &str, median: &str, p99: &str) -> Scenario {
    let mut rows: Vec<(u64, u64, &str)> = (0..16).map(|k| (30 + 250 * k, 10 + k % 8, "private")).collect();
    rows.extend((0..7).map(|_| (610, 1, "private")));
    rows.extend((0..6).map(|k| (90 + 210 * k, 2, "group")));
    rows.extend((0..24).map(|k| (2_110, 100 + k, "private")));
    rows.sort_by_key(|row| row.0);
    let rows: String = rows.iter().map(|(due, chat, kind)| format!("{due},{chat},{kind}\n")).collect();
    let text = format!(
        r#"
        duration = "4s"
        drain = "3s"
        workers = 40
        wire = {{ median = "{median}", p99 = "{p99}" }}
        [server]
        limit = {{ token = {{ rate = "5/s", burst = 20 }}, group = {{ limit = 5, window = "3s" }} }}
        [workload.all]
        kind = "trace"
        class = "all"
        file = "all.csv"
        [[design]]
        name = "it"
        strategy = {{ {design} }}"#
    );
    let trace = format!("due_ms,chat,kind\n{rows}");
    lab::load(&text, &[("all.csv", &trace)], &floodlab::Registry::builtin())
}

/// All counts but early retries: these hang on whether a second is over, and a back-off waits a second.
fn counts(metrics: &Metrics) -> BTreeMap<String, u64> {
    let Metrics { due, delivered, dead, expired, dropped, pending, lost, duplicated, .. } = *metrics;
    let Metrics {
        believed_delivered, believed_unknown, believed_falsely, requests, calls_in_penalty, ..
    } = *metrics;
    let named = [
        ("due", due),
        ("delivered", delivered),
        ("dead", dead),
        ("expired", expired),
        ("dropped", dropped),
        ("pending", pending),
        ("lost", lost),
        ("duplicated", duplicated),
        ("believed_delivered", believed_delivered),
        ("believed_unknown", believed_unknown),
        ("believed_falsely", believed_falsely),
        ("requests", requests),
        ("calls_in_penalty", calls_in_penalty),
    ];
    let limits = metrics.throttled.iter().map(|(limit, refused)| (format!("throttled {limit}"), *refused));
    named.into_iter().map(|(name, count)| (name.to_owned(), count)).chain(limits).collect()
}

/// What is seen of a run beside its result.
#[derive(Clone, Default)]
struct Seen {
    /// Lags of what was delivered, from the least to the largest: messages that fall due together may change places.
    lags: Vec<Duration>,
    /// When each message was last called for.
    sent: BTreeMap<u32, Time>,
    /// The longest call.
    longest: Duration,
}

/// Sees.
#[derive(Clone, Default)]
struct Eyes(Rc<RefCell<Seen>>);

impl Observer for Eyes {
    fn observe(&mut self, at: Time, event: &Event) {
        let seen = &mut *self.0.borrow_mut();
        match event {
            Event::Sent { message, .. } => drop(seen.sent.insert(message.number, at)),
            Event::Answered { message, .. } => {
                seen.longest = seen.longest.max(at - seen.sent[&message.number])
            }
            Event::Decided { message, decision, .. } if decision.truth == Truth::Delivered => {
                let lag = decision.at - message.due;
                let place = seen.lags.partition_point(|other| *other < lag);
                seen.lags.insert(place, lag);
            }
            _ => {}
        }
    }
}

fn simulated(scenario: &Scenario, seed: u64) -> (Outcome, Seen) {
    let eyes = Eyes::default();
    (lab::watch(scenario, "it", seed, eyes.clone()), eyes.0.take())
}

fn driven(scenario: &Scenario, seed: u64) -> (Outcome, Seen) {
    let eyes = Eyes::default();
    let interrupted = AtomicBool::new(false);
    let how = Drive { seed, designs: vec![0], target: None, judge: false, interrupted: &interrupted };
    let report = drive(scenario, &how, &|_| {}, |_| vec![Box::new(eyes.clone())]);
    let mut report = report.unwrap_or_else(|error| panic!("{error}"));
    (report.designs.remove(0), eyes.0.take())
}

/// Call times under which the counts must be the same: median, 99th percentile, seed. So they hang on no race that is
/// decided by less than this.
const WIRES: [(&str, &str, u64); 4] =
    [("300us", "300us", 1), ("15ms", "15ms", 1), ("2ms", "12ms", 2), ("2ms", "12ms", 3)];
/// What may be late in real time before the counts hang on the machine.
const MARGIN: Duration = Duration::from_millis(12);
/// A timer of 1 ms, rounded up, for each wait, and loopback: a message waits for its due instant, for the limiter, for the
/// store and for its answer a few times each.
const RESOLUTION: Duration = Duration::from_millis(40);
/// So often at most the machine may be too busy.
const ATTEMPTS: u32 = 6;

/// Drives it until the machine has time for it, and holds it against the simulation. On a machine that never has, what
/// does not hang on time is held against it.
///
/// With a `store`, what processes share is there in real time, and simulated in virtual time.
fn agrees(design: &str, store: Option<&StoreUrl>) {
    let mut calm = scenario(design, "1ms", "1ms");
    let (expected, Seen { lags, .. }) = simulated(&calm, 1);
    for (median, p99, seed) in WIRES {
        let other = simulated(&scenario(design, median, p99), seed).0;
        assert_eq!(counts(&other.metrics), counts(&expected.metrics), "{design}: {median}");
    }
    calm.store.url = store.cloned();
    for _ in 0..ATTEMPTS {
        let (outcome, seen) = driven(&calm, 1);
        let Live { late_us, calls, told_truth, .. } = outcome.live.as_ref().expect("it was live");
        assert!(*told_truth && calls.answered >= outcome.metrics.requests - 1, "{design}: {calls:?}");
        assert_eq!(outcome.metrics.due, expected.metrics.due, "{design}");
        let late = Duration::from_micros(late_us.max).max(seen.longest);
        if late > MARGIN {
            continue;
        }
        assert_eq!(counts(&outcome.metrics), counts(&expected.metrics), "{design}, late by up to {late}");
        assert_eq!(outcome.metrics.penalties, expected.metrics.penalties, "{design}, late by up to {late}");
        for (lag, expected) in seen.lags.iter().zip(&lags) {
            let off = if lag > expected { *lag - *expected } else { *expected - *lag };
            assert!(off <= RESOLUTION, "{design}: {lag} and not {expected}, late by up to {late}");
        }
        return;
    }
}

/// At the same time, since they mostly wait.
#[test]
fn every_strategy_is_the_same_in_both_worlds() {
    let bucket = r#"limiter = { kind = "token-bucket", rate = "4/s", burst = 12"#;
    let designs = [
        r#"kind = "naive-loop""#.to_owned(),
        r#"kind = "backoff""#.to_owned(),
        format!(r#"kind = "process-bucket", {bucket}, keep = "process" }}"#),
        format!(r#"kind = "shared-bucket", {bucket} }}"#),
        format!(r#"kind = "scheduler", {bucket} }}"#),
        r#"kind = "bare""#.to_owned(),
    ];
    for builtin in floodlab::Registry::builtin().strategies() {
        let kind = format!(r#"kind = "{}""#, builtin.kind);
        assert!(designs.iter().any(|design| design.starts_with(&kind)), "{kind} is not driven");
    }
    thread::scope(|threads| {
        for design in &designs {
            threads.spawn(|| agrees(design, None));
            if design.contains("shared-bucket") || design.contains("scheduler") {
                threads.spawn(|| agrees(design, Some(&redis::url())));
            }
        }
    });
}

/// Faults and deaths are drawn by message and attempt, so no clock decides whom they hit. The truth about what was lost
/// comes from the server's journal.
#[test]
fn faults_hit_the_same_calls_in_both_worlds() {
    let faults = [
        "lost:before",
        "lost:after",
        "502:before",
        "502:after",
        "html:after",
        "no-message-id:after",
        "phantom:before",
    ];
    let faults = faults.map(|fault| {
        let (kind, phase) = fault.split_once(':').expect("a phase");
        format!("[[server.fault]]\nkind = \"{kind}\"\nphase = \"{phase}\"\nrate = \"6%\"\n")
    });
    let text = r#"
        duration = "1s"
        drain = "9s"
        workers = 4
        chats = { count = 200, dead = "10%" }
        wire = { median = "1ms", p99 = "1ms" }
        [workload.all]
        kind = "broadcast"
        class = "all"
        [[design]]
        name = "it"
        strategy = { kind = "bare", answers = "shape", doubt = { kind = "retry", attempts = 2, pause = "10ms" } }
    "#;
    let faults = faults.concat();
    let scenario = lab::scenario(&format!("{text}\n[server]\nprofile = \"unlimited\"\n{faults}"));
    let (simulated, _) = simulated(&scenario, 1);
    let (driven, _) = driven(&scenario, 1);
    assert_eq!(counts(&driven.metrics), counts(&simulated.metrics));
    let Live { calls, .. } = driven.live.expect("it was live");
    assert!(calls.lost > 0 && simulated.metrics.duplicated > 0 && simulated.metrics.dead > 0, "{calls:?}");
}
