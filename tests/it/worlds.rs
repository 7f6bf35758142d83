//! The same strategies in virtual and in real time: the same counts, and the same lags as far as timers and loopback can
//! tell.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

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

/// All counts. Early retries only of senders that never send again, and of one whose processes share their pause: all others
/// come back when a wait of whole seconds is over, and whether another's is over then, too, hangs on a millisecond.
fn counts(design: &str, metrics: &Metrics) -> BTreeMap<String, u64> {
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
    let exact = ["naive-loop", "bare", "scheduler"].iter().any(|kind| design.contains(kind));
    let early = exact.then_some(("early_retries", metrics.early_retries));
    let limits = metrics.throttled.iter().map(|(limit, refused)| (format!("throttled {limit}"), *refused));
    named.into_iter().chain(early).map(|(name, count)| (name.to_owned(), count)).chain(limits).collect()
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
    let how = Drive {
        seed,
        designs: vec![0],
        target: None,
        baseline: None,
        judge: false,
        interrupted: &interrupted,
    };
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
/// What a lag may be off on a machine where nothing is late: a timer of 1 ms, rounded up, for each wait, and loopback.
const RESOLUTION: Duration = Duration::from_millis(6);
/// As often as this a message waits for something that may be late: its due instant, the limiter and the store, its answer.
const WAITS: u64 = 3;
/// So often at most the machine may be too busy, and then it gets a while.
const ATTEMPTS: u32 = 30;
/// A busy machine may keep the server waiting and nobody else; it does not in so many runs that are calm otherwise.
const COINCIDENCES: u32 = 4;
const WHILE: std::time::Duration = std::time::Duration::from_secs(4);

/// Runs something, and says how busy the machine was meanwhile: the longest time that a byte took to an echo on loopback
/// and back, and a timer of 2 ms took too long. So a line that is slow by itself is no excuse for it.
#[expect(clippy::disallowed_methods, reason = "the machine is measured by the wall clock")]
fn busy<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    /// Tells when it is over, however it ends.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut stream = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    stream.set_nodelay(true).expect("it is open");
    let (mut echo, _) = listener.accept().expect("it has connected");
    echo.set_nodelay(true).expect("it is open");
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(move || {
            let mut byte = [0];
            while echo.read_exact(&mut byte).is_ok() && echo.write_all(&byte).is_ok() {}
        });
        let is_over = &is_over;
        let watch = threads.spawn(move || {
            let (mut longest, pause) = (std::time::Duration::ZERO, std::time::Duration::from_millis(2));
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                stream.write_all(&[0]).expect("the echo listens");
                stream.read_exact(&mut [0]).expect("it answers");
                thread::sleep(pause);
                longest = longest.max(begun.elapsed() - pause);
            }
            Duration::from_micros(longest.as_micros() as u64)
        });
        let over = Over(is_over);
        let result = run();
        drop(over);
        (result, watch.join().expect("the echo answers"))
    })
}

/// Drives it until the machine has time for it, and holds it against the simulation.
///
/// With a `store`, what processes share is there in real time, and simulated in virtual time.
fn agrees(design: &str, store: Option<&StoreUrl>) {
    let mut calm = scenario(design, "1ms", "1ms");
    let (expected, Seen { lags, .. }) = simulated(&calm, 1);
    for (median, p99, seed) in WIRES {
        let other = simulated(&scenario(design, median, p99), seed).0;
        assert_eq!(counts(design, &other.metrics), counts(design, &expected.metrics), "{design}: {median}");
    }
    calm.store.url = store.cloned();
    let (mut reasons, mut differed) = (Vec::new(), 0);
    for _ in 0..ATTEMPTS {
        let ((outcome, seen), busy) = busy(|| driven(&calm, 1));
        let Live { late_us, calls, told_truth, .. } = outcome.live.as_ref().expect("it was live");
        assert!(*told_truth && calls.answered >= outcome.metrics.requests - 1, "{design}: {calls:?}");
        assert_eq!(outcome.metrics.due, expected.metrics.due, "{design}");
        let late = Duration::from_micros(late_us.max);
        let how = format!("late by up to {late}, a byte by {busy}, calls took up to {}", seen.longest);
        let late = late.max(busy);
        match difference(design, (&outcome.metrics, &seen.lags), (&expected.metrics, &lags), late) {
            None if late <= MARGIN => return,
            Some(what) if late <= MARGIN => {
                differed += 1;
                reasons.push(format!("{how}: {what}"));
                assert!(differed < COINCIDENCES, "{design} differs:\n{}", reasons.join("\n"));
            }
            _ => reasons.push(how),
        }
        #[expect(clippy::disallowed_methods, reason = "a machine that is busy gets time")]
        thread::sleep(WHILE);
    }
    panic!("{design}: the machine was too busy each time:\n{}", reasons.join("\n"));
}

/// What differs between what was driven and what was simulated, counts and lags, if something was `late`.
fn difference(
    design: &str,
    (driven, driven_lags): (&Metrics, &[Duration]),
    (simulated, simulated_lags): (&Metrics, &[Duration]),
    late: Duration,
) -> Option<String> {
    let (ours, theirs) = (counts(design, driven), counts(design, simulated));
    if ours != theirs || driven.penalties != simulated.penalties {
        let penalties = (&driven.penalties, &simulated.penalties);
        return Some(format!("{ours:?} and not {theirs:?}, penalties {penalties:?}"));
    }
    assert_eq!(driven_lags.len(), simulated_lags.len(), "{design}: what is delivered has a lag");
    let off = |(one, other): &(&Duration, &Duration)| **one.max(other) - **one.min(other);
    let pairs = driven_lags.iter().zip(simulated_lags);
    let worst = pairs.max_by_key(off).filter(|pair| off(pair) > RESOLUTION + late.saturating_mul(WAITS));
    worst.map(|(lag, expected)| format!("a lag of {lag} and not {expected}"))
}

/// Two at a time: they mostly wait, and what all of them do at once would keep a small machine busy.
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
    let shares = |design: &&String| design.contains("shared-bucket") || design.contains("scheduler");
    let real = designs.iter().filter(shares).map(|design| (design, Some(redis::url())));
    let jobs = Mutex::new(designs.iter().map(|design| (design, None)).chain(real));
    let next = || jobs.lock().expect("nobody panics with it").next();
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while let Some((design, store)) = next() {
                    agrees(design, store.as_ref());
                }
            });
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
    assert_eq!(counts("bare", &driven.metrics), counts("bare", &simulated.metrics));
    let Live { calls, .. } = driven.live.expect("it was live");
    assert!(calls.lost > 0 && simulated.metrics.duplicated > 0 && simulated.metrics.dead > 0, "{calls:?}");
}
