//! Senders from end to end in the simulated world: those that stall are told by name, and incidents of slow answers
//! come out as they were reported.

use std::future::{pending, poll_fn};
use std::sync::atomic::AtomicBool;
use std::task::Poll;

use fake_telegram::api::Answer;
use fake_telegram::time::{Duration, Time};
use floodlab::executor::Stalled;
use floodlab::report;
use floodlab::run::{self, Failed, Options, RunError};
use floodlab::world::{Belief, GiveUp};
use floodlab::{Env, Registry, Strategy};

use crate::lab;
use crate::recount;

/// Never gets anywhere, in one of several ways.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stuck {
    how: How,
}

#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum How {
    /// Awaits what never happens.
    Pending,
    /// Takes the turn and keeps it.
    Hog,
    /// Waits for a nudge that nobody gives.
    Idle,
    /// Sleeps for no time, for ever.
    Spin,
    /// Wakes itself without end.
    Yield,
}

impl Strategy for Stuck {
    const KIND: &'static str = "stuck";
    const SUMMARY: &'static str = "never gets anywhere";

    async fn run(self, env: Env) {
        while let Some(message) = env.next().await {
            let _ = env.send(&message).await;
        }
        match self.how {
            How::Pending => pending().await,
            How::Hog => {
                let _turn = env.turn().await;
                pending().await
            }
            How::Idle => env.idle_until(Time::MAX).await,
            How::Spin => loop {
                env.sleep(Duration::ZERO).await;
            },
            How::Yield => {
                poll_fn(|context| {
                    context.waker().wake_by_ref();
                    Poll::<()>::Pending
                })
                .await;
            }
        }
    }
}

/// How a run with one process of stuck workers ends, its workload sent.
fn stalls(how: &str, workers: u32) -> (Stalled, String) {
    let scenario = lab::scenario_with::<Stuck>(&format!(
        r#"
        duration = "10s"
        workers = {workers}
        wire = {{ median = "100ms", p99 = "100ms" }}
        chats = {{ count = 5 }}
        [workload.all]
        kind = "broadcast"
        class = "all"
        at = "2s"
        [[design]]
        name = "mine"
        strategy = {{ kind = "stuck", how = "{how}" }}"#
    ));
    let error = lab::fail(&scenario, "mine");
    let text = error.to_string();
    let RunError::Stalled { design, source } = error else { panic!("{text}") };
    let text = format!("{text}: {source}");
    assert_eq!(design, "mine");
    (source, text)
}

#[test]
fn one_that_stalls_leaves_the_others_their_results() {
    let scenario = lab::scenario_with::<Stuck>(
        r#"
        duration = "10s"
        chats = { count = 5 }
        [workload.all]
        kind = "broadcast"
        class = "all"
        [[design]]
        name = "mine"
        strategy = { kind = "stuck", how = "pending" }
        [[design]]
        strategy = "naive-loop"
        [[expect]]
        metric = "delivered"
        expect = "== 5""#,
    );
    let options = Options {
        seeds: vec![1],
        baseline: None,
        designs: vec![0, 1],
        jobs: None,
        check_determinism: false,
        shuffle_ties: None,
        interrupted: &AtomicBool::new(false),
        wall_us: &|| 0,
    };
    let Failed { report, errors } = run::run(&scenario, &options, &|_| {}).expect_err("one stalls");
    assert_eq!(errors.len(), 1);
    assert_eq!(report.designs.iter().map(|design| design.name.as_str()).collect::<Vec<_>>(), ["naive-loop"]);
    assert!(report.expectations.len() == 1 && report.expectations[0].passed, "{:?}", report.expectations);
    let why = report.unfinished[0].error.clone().expect("it was not interrupted");
    assert!(why.starts_with("design `mine` stalls: nothing is left to happen at "), "{why}");
    assert_eq!(why.matches("nothing is left").count(), 1, "the cause once");
    let table = report::table(&report, false, 1_000);
    assert!(table.contains(&format!("\nfailed: {why}\n")), "{table}");
}

/// With one worker the five messages take 0.5 s from 2 s on; then everything stands still, hours before the horizon.
#[test]
fn a_deadlock_names_who_waits_and_for_what() {
    let (stalled, text) = stalls("pending", 1);
    let who = "stuck: worker 0 of process 0".to_owned();
    let tasks = vec![(who, "something outside of the run")];
    assert_eq!(stalled, Stalled::Deadlock { at: Time::from_micros(2_500_000), count: 1, tasks });
    insta::assert_snapshot!(text, @"design `mine` stalls: nothing is left to happen at 2.5s, and a task waits for ever: stuck: worker 0 of process 0 waits for something outside of the run");
}

#[test]
fn a_turn_that_nobody_passes_on_is_a_deadlock() {
    let (_, text) = stalls("hog", 2);
    insta::assert_snapshot!(text, @"design `mine` stalls: nothing is left to happen at 2.3s, and each of 2 tasks waits for ever: stuck: worker 0 of process 0 waits for its turn among the workers of its process; stuck: worker 1 of process 0 waits for something outside of the run");
}

#[test]
fn a_bell_that_nobody_rings_is_a_deadlock() {
    let (_, text) = stalls("idle", 1);
    insta::assert_snapshot!(text, @"design `mine` stalls: nothing is left to happen at 2.5s, and a task waits for ever: stuck: worker 0 of process 0 waits for a bell to ring");
}

#[test]
fn sleeping_for_no_time_is_a_livelock() {
    let (_, text) = stalls("spin", 1);
    insta::assert_snapshot!(text, @"design `mine` stalls: stuck: worker 0 of process 0 spins at 2.5s: polled more than 1000000 times without time passing, waiting for a sleep to end");
}

#[test]
fn waking_oneself_is_a_livelock() {
    let (stalled, text) = stalls("yield", 1);
    let Stalled::Livelock { at, task, .. } = stalled else { panic!("{text}") };
    assert_eq!((at, task.as_str()), (Time::from_micros(2_500_000), "stuck: worker 0 of process 0"));
}

/// Does not retry what may have arrived: it says that it does not know.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Once {}

impl Strategy for Once {
    const KIND: &'static str = "once";
    const SUMMARY: &'static str = "calls once; without an answer it does not know";

    async fn run(self, env: Env) {
        while let Some(message) = env.next().await {
            match env.send(&message).await.read() {
                Answer::Message { .. } => env.settle(&message, Belief::Delivered),
                Answer::TimedOut | Answer::ConnectionLost => env.settle(&message, Belief::Unknown),
                _ => env.give_up(&message, GiveUp::Attempts),
            }
        }
    }
}

/// Case C01 (python-telegram-bot#1045): thirty fast sends into one private chat, a client that gives up after 5 s. The
/// chat's burst is 20, then it is one a second, and the server holds a call for 8 s at most.
#[test]
fn a_client_that_gives_up_before_a_hold_ends_delivers_twice_if_it_tries_again() {
    let scenario = |timeout: &str| {
        lab::scenario_with::<Once>(&format!(
            r#"
            duration = "1s"
            drain = "1min"
            workers = 30
            wire = {{ median = "20ms", p99 = "20ms", timeout = "{timeout}" }}
            server = {{ profile = "telegram-observed" }}
            chats = {{ count = 1 }}
            [workload.all]
            kind = "broadcast"
            class = "all"
            at = {:?}
            [[design]]
            name = "again"
            strategy = {{ kind = "backoff", retry = {{ kind = "backoff", first = "10s" }} }}
            [[design]]
            strategy = "once""#,
            // A broadcast reaches a chat once, so there are thirty.
            (0..30).map(|i| format!("{i}ms")).collect::<Vec<_>>()
        ))
    };
    let run = |timeout, design| {
        let scenario = scenario(timeout);
        let run = lab::run(&scenario, design, 1);
        recount::check(&scenario, &run);
        run.outcome.metrics
    };
    // Held call k is delivered after k seconds. It came when the head slept already, so it meets the waits of those
    // between: k - 1 of them, at most 8. So nine are delivered and the tenth is refused.
    let patient = run("30s", "once");
    assert_eq!((patient.delivered, patient.dropped, patient.believed_unknown), (29, 1, 0));
    assert_eq!(patient.throttled["chat"], 1);
    let max = patient.lag_us.max.expect("there are samples");
    assert!(max > 60_000_000, "the one that was refused counts with its age: {max}");
    // Those that take longer than 5 s: 5 to 9 are delivered, 10 is not, and the client knows of none.
    let once = run("5s", "once");
    assert_eq!((once.delivered, once.believed_unknown, once.lost, once.duplicated), (29, 6, 1, 0));
    assert_eq!(once.requests, 30);
    // Ten seconds after giving up there are tokens for all six: five messages for the second time.
    let again = run("5s", "again");
    assert_eq!((again.delivered, again.duplicated, again.requests), (30, 5, 36));
    assert_eq!(again.believed_delivered, 30);
    // Nobody gives up: nothing is sent twice.
    assert_eq!(run("30s", "again").duplicated, 0);
}

/// Case C02 (Lobster#630): every answer is lost after the effect.
#[test]
fn an_answer_that_is_lost_after_the_effect_is_a_copy_for_every_retry() {
    let scenario = lab::scenario_with::<Once>(
        r#"
        duration = "1s"
        drain = "5min"
        chats = { count = 1 }
        [workload.all]
        kind = "broadcast"
        class = "all"
        [[server.fault]]
        kind = "lost"
        phase = "after"
        rate = "100%"
        for = "100s"
        [[design]]
        strategy = { kind = "backoff", retry = { kind = "backoff", first = "5s", attempts = 5 } }
        [[design]]
        strategy = "once""#,
    );
    let metrics = |design| lab::run(&scenario, design, 1).outcome.metrics;
    let (again, once) = (metrics("backoff"), metrics("once"));
    assert_eq!((again.delivered, again.duplicated, again.requests), (1, 4, 5));
    assert_eq!((once.delivered, once.duplicated, once.believed_unknown), (1, 0, 1));
}

/// Case C15 (opencrabs#1064): one worker, two chats, one of them under a long pause.
#[test]
fn sleeping_in_line_starves_the_healthy_chat_and_a_lane_does_not() {
    // Chat 1 gets more than its burst at once; chat 2 one message later on.
    let trace = format!("due_ms,chat,kind\n{}30000,2,private\n", "0,1,private\n".repeat(6));
    let scenario = lab::load(
        r#"
        duration = "1min"
        drain = "1h"
        workers = 1
        wire = { median = "100ms", p99 = "100ms" }
        server = { limit = { chat = { penalty = { minimum = "1000s" } } } }
        [workload.all]
        kind = "trace"
        class = "all"
        file = "two.csv"
        [[design]]
        strategy = "process-bucket"
        [[design]]
        name = "lanes"
        strategy = { kind = "scheduler", queue = { kind = "lanes", pace = { chat_rate = "100/s", chat_burst = 20 } } }"#,
        &[("two.csv", &trace)],
        &Registry::builtin(),
    );
    let healthy = |design| {
        let run = lab::run(&scenario, design, 1);
        recount::check(&scenario, &run);
        assert_eq!(run.outcome.metrics.delivered, 7, "{design}");
        let last = run.tape.iter().find_map(|(at, event)| match event {
            floodlab::event::Event::Decided { message, .. } if message.due > Time::ZERO => Some(*at),
            _ => None,
        });
        (last.expect("it was sent") - Time::from_secs(30)).as_secs_f64()
    };
    // The refusal comes after six calls in a row, and its 1,000 s and one more call pass before the healthy chat's.
    let inline = healthy("process-bucket");
    assert!((970.0..972.0).contains(&inline), "{inline} s");
    let lanes = healthy("lanes");
    assert!(lanes < 0.2, "{lanes} s");
}
