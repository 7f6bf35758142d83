//! The same strategies in virtual and in real time: the same counts, and the same lags as far as timers and loopback can
//! tell.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use fake_telegram::api::Truth;
use fake_telegram::time::{Duration, Time};
use floodlab::event::{Event, Observer};
use floodlab::outcome::{Live, Metrics, Outcome};
use floodlab::run::{Drive, drive};
use floodlab::scenario::Scenario;

use crate::lab;
use crate::stub::Stub;

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
    let Metrics { believed_delivered, believed_unknown, believed_falsely, requests, calls_in_penalty, .. } = *metrics;
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

/// The lags of what was delivered, from the least to the largest. Messages that fall due together may change places.
#[derive(Clone, Default)]
struct Lags(Rc<RefCell<Vec<Duration>>>);

impl Observer for Lags {
    fn observe(&mut self, _: Time, event: &Event) {
        if let Event::Decided { message, decision, .. } = event
            && decision.truth == Truth::Delivered
        {
            self.0.borrow_mut().push(decision.at - message.due);
        }
    }
}

impl Lags {
    fn sorted(&self) -> Vec<Duration> {
        let mut lags = self.0.borrow().clone();
        lags.sort_unstable();
        lags
    }
}

fn simulated(design: &str, median: &str, p99: &str, seed: u64) -> (Outcome, Vec<Duration>) {
    let lags = Lags::default();
    (lab::watch(&scenario(design, median, p99), "it", seed, lags.clone()), lags.sorted())
}

fn driven(design: &str) -> (Outcome, Vec<Duration>) {
    let (scenario, lags) = (scenario(design, "1ms", "1ms"), Lags::default());
    let stub = Stub::start(&scenario, 1);
    let interrupted = AtomicBool::new(false);
    let how = Drive { seed: 1, designs: vec![0], target: stub.target(), judge: false, interrupted: &interrupted };
    let report = drive(&scenario, &how, &|_| {}, |_| vec![Box::new(lags.clone())]);
    let mut report = report.unwrap_or_else(|error| panic!("{error}"));
    (report.designs.remove(0), lags.sorted())
}

/// A timer of 1 ms, rounded up, for each wait, and loopback: a message waits for its due instant, for the limiter, for the
/// store and for its answer a few times each.
const RESOLUTION: Duration = Duration::from_millis(40);
/// How late our own program may be before the machine, and not the world, is what is measured.
const STARVED: Duration = Duration::from_millis(12);

/// Drives it until the machine has time for it, and holds it against the simulation.
fn agrees(design: &str) {
    let (expected, lags) = simulated(design, "1ms", "1ms", 1);
    let expected = counts(&expected.metrics);
    // The scenario hangs on no race: calls of other lengths, with jitter, change nothing.
    for (median, p99, seed) in [("300us", "300us", 1), ("5ms", "5ms", 1), ("2ms", "12ms", 2), ("2ms", "12ms", 3)] {
        assert_eq!(counts(&simulated(design, median, p99, seed).0.metrics), expected, "{design}: {median}");
    }
    for attempt in 1.. {
        let (outcome, real) = driven(design);
        let Live { late_us, calls, told_truth, .. } = outcome.live.expect("it was live");
        let starved = Duration::from_micros(late_us.max) > STARVED;
        if starved && attempt < 5 {
            continue;
        }
        assert!(told_truth && calls.answered >= outcome.metrics.requests - 1, "{design}: {calls:?}");
        assert_eq!(counts(&outcome.metrics), expected, "{design}, late by up to {} us", late_us.max);
        let resolution = RESOLUTION + Duration::from_micros(late_us.max) * 4;
        for (lag, expected) in real.iter().zip(&lags) {
            let off = if lag > expected { *lag - *expected } else { *expected - *lag };
            assert!(off <= resolution, "{design}: {lag} and not {expected}, late by up to {} us", late_us.max);
        }
        return;
    }
}

#[test]
fn naive_loop_is_the_same_in_both_worlds() {
    agrees(r#"kind = "naive-loop""#);
}

#[test]
fn backoff_is_the_same_in_both_worlds() {
    agrees(r#"kind = "backoff""#);
}

#[test]
fn process_bucket_is_the_same_in_both_worlds() {
    agrees(r#"kind = "process-bucket", limiter = { kind = "token-bucket", rate = "4/s", burst = 12, keep = "process" }"#);
}

#[test]
fn shared_bucket_is_the_same_in_both_worlds() {
    agrees(r#"kind = "shared-bucket", limiter = { kind = "token-bucket", rate = "4/s", burst = 12 }"#);
}

#[test]
fn scheduler_is_the_same_in_both_worlds() {
    agrees(r#"kind = "scheduler", limiter = { kind = "token-bucket", rate = "4/s", burst = 12 }"#);
}

#[test]
fn bare_is_the_same_in_both_worlds() {
    agrees(r#"kind = "bare""#);
}
