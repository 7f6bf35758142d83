//! Comparisons are paired: what the world does to message m is the same under every design.

use std::collections::BTreeMap;

use fake_telegram::api::{Answer, Garbage, Truth};
use fake_telegram::time::{Duration, Time};
use floodlab::event::Event;
use floodlab::scenario::Scenario;
use floodlab::world::{Belief, Message};
use floodlab::{Env, Strategy};
use proptest::prelude::*;
use rand_chacha::rand_core::Rng;

use crate::lab::{self, BUILTIN, Run, designs};

/// Calls for every message three times, whatever the answer, and draws from its own generator in between: as unlike
/// the others as can be.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Thrice {}

impl Strategy for Thrice {
    const KIND: &'static str = "thrice";
    const SUMMARY: &'static str = "calls for every message three times, at odd intervals";

    async fn run(self, env: Env) {
        let mut rng = env.rng("pause");
        while let Some(message) = env.next().await {
            for _ in 0..3 {
                env.sleep(Duration::from_micros(rng.next_u64() % 50_000)).await;
                env.send(&message).await.read();
            }
            env.settle(&message, Belief::Unknown);
        }
    }
}

/// A call, by message and attempt.
type Calls<T> = BTreeMap<(u32, u16), T>;

/// When the pieces of a call happened. Nobody calls twice at a time for one message in these runs.
#[derive(Debug, Clone, Copy)]
struct Call {
    sent: Time,
    decided: Option<(Time, Answer, Truth)>,
    answered: Option<Time>,
}

fn arrivals(run: &Run) -> Vec<(Message, bool)> {
    run.tape
        .iter()
        .filter_map(|(_, event)| match *event {
            Event::Due { message, alive } => Some((message, alive)),
            _ => None,
        })
        .collect()
}

fn calls(run: &Run) -> Calls<Call> {
    let mut calls = Calls::new();
    let mut attempts = BTreeMap::new();
    for (at, event) in &run.tape {
        match *event {
            Event::Sent { message, attempt, .. } => {
                let before = attempts.insert(message.number, attempt).unwrap_or(0);
                assert_eq!(attempt, before + 1, "attempts are counted");
                calls.insert((message.number, attempt), Call { sent: *at, decided: None, answered: None });
            }
            Event::Decided { message, decision, .. } => {
                let call = calls.get_mut(&(message.number, attempts[&message.number])).expect("it was sent");
                call.decided = Some((*at, decision.answer, decision.truth));
            }
            Event::Answered { message, .. } => {
                let call = calls.get_mut(&(message.number, attempts[&message.number])).expect("it was sent");
                call.answered = Some(*at);
            }
            _ => {}
        }
    }
    calls
}

/// The way there and the way back.
fn legs(calls: &Calls<Call>) -> Calls<(Duration, Duration)> {
    let legs = calls.iter().filter_map(|(key, call)| {
        let (decided, ..) = call.decided?;
        Some((*key, (decided - call.sent, call.answered? - decided)))
    });
    legs.collect()
}

/// What struck each call at a server without limits and with living chats; `None` is an honest delivery.
fn faults(calls: &Calls<Call>) -> Calls<Option<(u32, bool)>> {
    let faults = calls.iter().filter_map(|(key, call)| {
        let (_, answer, truth) = call.decided?;
        let delivered = truth == Truth::Delivered;
        let kind = match answer {
            Answer::Message { .. } if delivered => return Some((*key, None)),
            Answer::Message { .. } => 1,
            Answer::ConnectionLost => 2,
            Answer::ServerError { status, .. } => status.into(),
            Answer::Garbage(Garbage::Html) => 3,
            Answer::Garbage(_) => 4,
            other => panic!("no such fault was asked for: {other:?}"),
        };
        Some((*key, Some((kind, delivered))))
    });
    faults.collect()
}

/// Calls that a fault ate before the server looked at them.
fn eaten(calls: &Calls<Call>) -> Calls<bool> {
    calls.iter().filter_map(|(key, call)| Some((*key, call.decided?.2 == Truth::Nothing))).collect()
}

/// Where both have a call, it went the same. Returns how many there are.
fn agree<T: PartialEq + std::fmt::Debug>(one: &Calls<T>, other: &Calls<T>) -> Result<usize, TestCaseError> {
    let common = one.iter().filter_map(|(key, value)| Some((key, value, other.get(key)?)));
    let mut count = 0;
    for (key, value, other) in common {
        prop_assert_eq!(value, other, "message and attempt {:?}", key);
        count += 1;
    }
    Ok(count)
}

fn all_designs() -> [&'static str; 6] {
    let [a, b, c, d, e] = BUILTIN;
    ["thrice", a, b, c, d, e]
}

/// A small world; every call is answered within the client's time-out and the run.
fn world(profile: &str, rate: u32, p99_ms: u32, faults: &[(&str, &str, u32)], mortal: bool) -> Scenario {
    let mortality = if mortal { r#", dead = "10%", mean_life = "1min", mean_absence = "20s""# } else { "" };
    let faults: String = faults
        .iter()
        .map(|(kind, phase, percent)| {
            format!("[[server.fault]]\nkind = \"{kind}\"\nphase = \"{phase}\"\nrate = \"{percent}%\"\n")
        })
        .collect();
    lab::scenario_with::<Thrice>(&format!(
        r#"
        duration = "30s"
        drain = "1min"
        processes = 2
        workers = 3
        wire = {{ median = "60ms", p99 = "{p99_ms}ms", timeout = "50s" }}
        chats = {{ count = 40, groups = "20%"{mortality} }}
        [server]
        profile = "{profile}"
        [workload.replies]
        kind = "poisson"
        class = "reply"
        rate = "{rate}/s"
        [workload.news]
        kind = "broadcast"
        class = "news"
        at = ["5s", "20s"]
        {faults}{}"#,
        designs(all_designs())
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Arrivals, the lives of chats and both legs of every call, at a server that refuses most of them.
    #[test]
    fn arrivals_and_call_times_are_the_same_under_every_design(
        seed in any::<u64>(), rate in 1_u32..20, p99_ms in 60_u32..2_000
    ) {
        let faults = [("lost", "before", 10), ("500", "after", 10)];
        let scenario = world("telegram", rate, p99_ms, &faults, true);
        let runs = all_designs().map(|design| lab::run(&scenario, design, seed));
        let reference = (arrivals(&runs[0]), calls(&runs[0]));
        let horizon = Time::ZERO + scenario.horizon();
        prop_assert!(reference.0.iter().all(|(message, _)| message.due < horizon));
        for (there, back) in legs(&reference.1).values() {
            prop_assert!(*there == *back || *there + Duration::from_micros(1) == *back, "half there, half back");
        }
        let mut common = 0;
        for run in &runs[1..] {
            let calls = calls(run);
            prop_assert_eq!(&arrivals(run), &reference.0);
            common += agree(&legs(&calls), &legs(&reference.1))?;
            // What strikes before the server looks at a call strikes whatever the limits say.
            common += agree(&eaten(&calls), &eaten(&reference.1))?;
        }
        prop_assert!(common >= 500, "{} calls can be compared", common);
    }

    /// Which fault hits which attempt.
    #[test]
    fn faults_are_the_same_under_every_design(seed in any::<u64>(), rate in 1_u32..20) {
        let kinds =
            [("lost", "after", 15), ("502", "before", 15), ("html", "after", 10), ("phantom", "before", 10), ("empty", "before", 5)];
        let scenario = world("unlimited", rate, 300, &kinds, false);
        let runs = all_designs().map(|design| lab::run(&scenario, design, seed));
        let reference = faults(&calls(&runs[0]));
        // 55 % are struck; five standard deviations of at least 300 draws.
        let struck = reference.values().filter(|fault| fault.is_some()).count() as f64;
        let share = struck / reference.len() as f64;
        prop_assert!((share - 0.55).abs() < 5.0 * (0.55 * 0.45 / reference.len() as f64).sqrt(), "{}", share);
        for run in &runs[1..] {
            let common = agree(&faults(&calls(run)), &reference)?;
            prop_assert!(common >= reference.len() / 6, "{} has {} calls", run.outcome.name, common);
        }
    }
}
