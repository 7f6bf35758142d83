//! Processes that start, leave and die, and a store that is away: what becomes of the messages, and who may call whom.

use fake_telegram::time::{Duration, Time};
use floodlab::event::Event;
use floodlab::run::RunError;
use floodlab::store::command::{Command, CommandError, Reply};
use floodlab::world::ProcessIndex;
use floodlab::{Env, Strategy};
use proptest::prelude::*;

use crate::lab::{self, Run};
use crate::recount;

/// A thousand private chats, calls of exactly 100 ms, no limits; `text` adds to it.
fn world(text: &str) -> String {
    format!(
        r#"
        duration = "1min"
        drain = "10min"
        workers = 1
        server = {{ profile = "unlimited" }}
        wire = {{ median = "100ms", p99 = "100ms" }}
        chats = {{ count = "1k" }}
        {text}"#
    )
}

/// Ten messages, due a second apart from second 1 on.
const TEN: &str = r#"
    [workload.news]
    kind = "broadcast"
    class = "news"
    at = "1s"
    chats = { count = 10 }
    spread = "10s"
"#;

fn run(text: &str) -> Run {
    let scenario = lab::scenario(&world(text));
    let name = scenario.designs[0].name.clone();
    let run = lab::run(&scenario, &name, 1);
    recount::check(&scenario, &run);
    run
}

/// When calls left, by process.
fn calls(run: &Run) -> Vec<(u64, u16)> {
    let sent = run.tape.iter().filter_map(|(at, event)| match event {
        Event::Sent { process, .. } => Some((at.as_micros() / 1_000, process.0)),
        _ => None,
    });
    sent.collect()
}

/// Messages at 1 s, 2 s, ...: the process is gone from 3.05 s, with the third in its hands and on the wire, to 6.5 s.
#[test]
fn a_death_loses_what_is_in_hand_and_the_rest_waits() {
    let run = run(&format!(
        r#"{TEN}
        [[design]]
        strategy = "bare"
        timeline = [{{ at = "3050ms", kill = 0, restart_after = "3450ms" }}]"#
    ));
    let metrics = &run.outcome.metrics;
    assert_eq!((metrics.kills, metrics.delivered, metrics.lost), (1, 10, 0), "its call was on the wire");
    assert_eq!(metrics.believed_delivered, 9, "nobody lives who knows of the third");
    let expected = [1_000, 2_000, 3_000, 6_500, 6_600, 6_700, 7_000, 8_000, 9_000, 10_000];
    assert_eq!(calls(&run), expected.map(|ms| (ms, 0)));
}

/// The same, 0.02 s after the answer of the second call: nothing is in hand.
#[test]
fn a_death_between_two_messages_loses_nothing() {
    let run = run(&format!(
        r#"{TEN}
        [[design]]
        strategy = "bare"
        timeline = [{{ at = "2120ms", kill = 0, restart_after = "10s" }}]"#
    ));
    assert_eq!((run.outcome.metrics.delivered, run.outcome.metrics.lost), (10, 0));
    assert_eq!(run.outcome.metrics.believed_delivered, 10);
}

/// A kill point is after an answer and before the next thing: the third message is delivered and nobody believes it;
/// the queue in the store finds it in flight when its lease is over, and whoever tries again makes a second copy.
#[test]
fn a_death_between_two_calls_leaves_a_message_in_doubt() {
    let with = |doubt: &str, queue: &str| {
        run(&format!(
            r#"{TEN}
            [[design]]
            strategy = {{ kind = "scheduler", doubt = {doubt}, queue = {{ kind = "lanes", mark = "{queue}" }} }}
            timeline = [{{ after = "send", count = 3, kill = 0, restart_after = "1s" }}]"#
        ))
        .outcome
        .metrics
    };
    let again = with(r#"{ kind = "retry" }"#, "after");
    assert_eq!((again.delivered, again.duplicated, again.believed_unknown, again.kills), (10, 1, 0, 1));
    let never = with(r#""never""#, "after");
    assert_eq!((never.delivered, never.duplicated, never.believed_unknown), (10, 0, 1));
    let gone = with(r#"{ kind = "retry" }"#, "before");
    assert_eq!((gone.delivered, gone.duplicated, gone.believed_delivered), (10, 0, 9));
}

/// Between the exchange and the send: the message never left. Marked before it is lost, marked after it is not.
#[test]
fn what_is_marked_before_it_is_sent_can_be_lost() {
    let with = |mark: &str| {
        run(&format!(
            r#"{TEN}
            [[design]]
            strategy = {{ kind = "scheduler", queue = {{ kind = "lanes", mark = "{mark}" }} }}
            timeline = [{{ after = "exchange", count = 4, kill = 0, restart_after = "1s" }}]"#
        ))
        .outcome
        .metrics
    };
    // The first exchange of a process finds nothing; from the second on each brings a message.
    let (before, after) = (with("before"), with("after"));
    assert_eq!((before.delivered, before.lost, before.duplicated), (9, 1, 0));
    assert_eq!((after.delivered, after.lost, after.duplicated), (10, 0, 0));
}

#[test]
fn a_queue_in_a_process_dies_with_it() {
    let with = |keep: &str| {
        run(&format!(
            r#"{TEN}
            [workload.flood]
            kind = "broadcast"
            class = "flood"
            at = "5s"
            chats = {{ count = 100 }}
            [[design]]
            strategy = {{ kind = "scheduler", queue = {{ kind = "fifo", keep = "{keep}" }} }}
            timeline = [{{ at = "7s", kill = 0, restart_after = "1s" }}]"#
        ))
        .outcome
        .metrics
    };
    // One worker at 100 ms a call: of a hundred that fall due at 5 s, twenty are through at 7 s.
    let (process, store) = (with("process"), with("store"));
    assert!((75..=85).contains(&process.lost), "{}", process.lost);
    assert_eq!((store.lost, store.delivered), (0, 110));
}

/// Two processes take turns; from 3.5 s on one takes nothing new, and finishes the call that it has made.
#[test]
fn who_leaves_takes_nothing_new_and_finishes() {
    let run = run(r#"
        [workload.flood]
        kind = "broadcast"
        class = "flood"
        at = "3s"
        chats = { count = 20 }
        [[design]]
        strategy = "bare"
        processes = 2
        timeline = [{ at = "3250ms", leave = 1 }, { at = "3600ms", add = 1 }]"#);
    let of = |process| {
        calls(&run).into_iter().filter(|call| call.1 == process).map(|call| call.0).collect::<Vec<_>>()
    };
    assert_eq!(of(1), [3_000, 3_100, 3_200]);
    assert_eq!(of(2).first(), Some(&3_600));
    assert_eq!((run.outcome.metrics.delivered, run.outcome.metrics.lost), (20, 0));
}

#[test]
fn a_foreign_process_joins_in_the_middle() {
    let run = run(&format!(
        r#"{TEN}
        [workload.backfill]
        kind = "broadcast"
        class = "backfill"
        at = "0s"
        chats = {{ count = 3 }}
        [[design]]
        name = "both"
        [[design.group]]
        strategy = "scheduler"
        workloads = ["news"]
        [[design.group]]
        strategy = "naive-loop"
        workloads = ["backfill"]
        start = "20s""#
    ));
    let laptop: Vec<_> = calls(&run).into_iter().filter(|call| call.1 == 1).collect();
    assert_eq!(laptop, [(20_000, 1), (20_100, 1), (20_200, 1)]);
}

/// The clock of a process is its own: what it is told as a date ends earlier for whoever is ahead.
#[test]
fn clocks_are_skewed_and_time_is_not() {
    let with = |skew: &str| {
        let run = run(&format!(
            r#"
            [workload.late]
            kind = "broadcast"
            class = "late"
            at = "5s"
            deadline = "1s"
            chats = {{ count = 1 }}
            [[design]]
            strategy = "scheduler"
            skew = "{skew}""#
        ));
        (calls(&run), run.outcome.metrics.expired)
    };
    assert_eq!(with("900ms"), (vec![(5_001, 0)], 0));
    assert_eq!(with("1100ms"), (vec![], 1), "by its clock the deadline is over");
}

/// Away from 5 s to 15 s: who fails open sends, who fails closed waits and asks every second.
#[test]
fn a_limiter_that_cannot_be_reached_fails_open_or_closed() {
    for action in ["fail", "hang"] {
        let with = |unreachable: &str| {
            let run = run(&format!(
                r#"{TEN}
                [[store.event]]
                at = "4500ms"
                action = "{action}"
                for = "10s"
                [[design]]
                strategy = {{ kind = "bare", limiter = {{ kind = "token-bucket", when_unreachable = "{unreachable}" }} }}"#
            ));
            calls(&run).iter().filter(|call| (4_500..14_500).contains(&call.0)).count()
        };
        assert_eq!((with("send"), with("wait")), (6, 0), "{action}");
    }
}

#[test]
fn a_flush_loses_the_queue_and_a_persistent_restart_does_not() {
    let with = |event: &str| {
        run(&format!(
            r#"
            store = {{ event = [{event}] }}
            [workload.flood]
            kind = "broadcast"
            class = "flood"
            at = "5s"
            chats = {{ count = 100 }}
            [[design]]
            strategy = "scheduler""#
        ))
        .outcome
        .metrics
    };
    // One worker: of a hundred at 5 s about nineteen are through at 7 s, one is in flight.
    let flushed = with(r#"{ at = "7s", action = "flush" }"#);
    assert!((78..=82).contains(&flushed.lost), "{}", flushed.lost);
    assert_eq!(with(r#"{ at = "7s", action = "restart", for = "1s" }"#).lost, flushed.lost);
    let kept = with(r#"{ at = "7s", action = "restart", for = "1s", persistent = true }"#);
    assert_eq!((kept.lost, kept.delivered, kept.duplicated), (0, 100, 0));
}

#[test]
fn a_kill_point_that_does_not_come_is_said() {
    let scenario = lab::scenario(&world(&format!(
        r#"{TEN}
        [[design]]
        strategy = "bare"
        timeline = [{{ after = "send", count = 11, kill = 0 }}]"#
    )));
    let error = lab::fail(&scenario, "bare");
    assert!(matches!(error, RunError::Missed { process: 0, left: 1, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "design `bare`: process 0 was to die after a call named `send` and made 1 too few; lower `count` in its timeline, or let the run last longer"
    );
}

/// Chance is the seed's: another design with such a process has the same deaths, another seed has others.
#[test]
fn deaths_by_chance_are_the_same_in_every_design() {
    let scenario = lab::scenario(&world(&format!(
        r#"{TEN}
        [[design]]
        strategy = "bare"
        processes = 3
        timeline = [{{ every = "30s", kill = [0, 2], restart_after = "1s" }}]
        [[design]]
        strategy = "scheduler"
        processes = 3
        timeline = [{{ every = "30s", kill = [0, 2], restart_after = "1s" }}]"#
    )));
    let deaths = |design: &str, seed| -> Vec<(Time, ProcessIndex)> {
        let run = lab::run(&scenario, design, seed);
        let killed = run.tape.iter().filter_map(|(at, event)| match event {
            Event::Killed { process } => Some((*at, *process)),
            _ => None,
        });
        killed.collect()
    };
    let first = deaths("bare", 1);
    assert_eq!(first, deaths("scheduler", 1));
    assert_ne!(first, deaths("bare", 2));
    // Two processes, 11 min each, a death every 31 s on average: 42.6 expected, standard deviation 6.5.
    assert!((20..=66).contains(&first.len()), "{}", first.len());
    assert!(first.iter().all(|(_, process)| process.0 != 1));
}

/// Six a minute for 32 workers: who waited for a token with a message in hand would wait for longer than its lease, and
/// somebody else would send the message too.
#[test]
fn nobody_waits_for_a_token_with_a_message_in_hand() {
    for limiter in [
        r#"{ kind = "token-bucket", rate = "6/min", burst = 1, keep = "process" }"#,
        r#"{ kind = "window-counter", limit = 6, window = "1min", form = "script" }"#,
    ] {
        let run = run(&format!(
            r#"{TEN}
            [[design]]
            strategy = {{ kind = "scheduler", limiter = {limiter} }}
            processes = 2
            workers = 16"#
        ));
        let metrics = &run.outcome.metrics;
        assert_eq!((metrics.delivered, metrics.duplicated, metrics.requests), (10, 0, 10), "{limiter}");
    }
}

/// The second process has put a message off by 30 s when it leaves, or hands over what it could not for an outage; the
/// first, idle, sends it.
#[test]
fn who_leaves_leaves_nothing_behind() {
    let text = world(
        r#"
        [workload.one]
        kind = "broadcast"
        class = "one"
        at = "10s"
        chats = { count = 1 }
        [[design]]
        strategy = { kind = "scheduler", doubt = { kind = "retry", pause = "30s" } }
        processes = 2
        timeline = [{ at = "1s", kill = 0, restart_after = "1s" }, { at = "11s", leave = 1 }]"#,
    );
    let fault = r#"fault = [{ kind = "lost", rate = "100%", from = "9s", for = "5s" }]"#;
    let scenario = lab::scenario(&text.replace(r#""unlimited""#, &format!(r#""unlimited", {fault}"#)));
    let postponed = lab::run(&scenario, "scheduler", 1);
    assert_eq!(postponed.outcome.metrics.delivered, 1);
    let lag = postponed.outcome.metrics.lag_us.max.expect("one was due");
    assert!((30_000_000..31_000_000).contains(&lag), "{lag}");
    let outage = run(r#"
        [[store.event]]
        at = "9s"
        action = "fail"
        for = "20s"
        [workload.news]
        kind = "poisson"
        class = "news"
        rate = "10/s"
        [[design]]
        strategy = "scheduler"
        processes = 2
        workers = 2
        timeline = [{ at = "15s", leave = 1 }]"#);
    assert_eq!(outage.outcome.metrics.pending, 0);
}

#[test]
fn killed_for_good_is_for_good() {
    let with = |kill: &str| {
        let run = run(&format!(
            r#"{TEN}
            [[design]]
            strategy = "bare"
            timeline = [{{ every = "2s", kill = 0, restart_after = "10ms" }}, {kill}]"#
        ));
        calls(&run).last().map(|call| call.0)
    };
    assert!(with(r#"{ at = "5s", kill = 0 }"#).is_some_and(|last| last < 5_000));
    assert!(with(r#"{ at = "5s", kill = 0, restart_after = "10ms" }"#).is_some_and(|last| last > 9_000));
}

/// A tenth of the answers come after the time-out: the call was executed all the same, and nothing is lost by it.
#[test]
fn a_store_that_answers_too_late_loses_nothing() {
    for strategy in [
        r#"{ kind = "scheduler", doubt = "never" }"#,
        r#"{ kind = "scheduler", queue = { kind = "lanes", mark = "before" } }"#,
        r#""shared-bucket""#,
    ] {
        let run = run(&format!(
            r#"
            store = {{ round_trip = "10ms", round_trip_p99 = "300ms", timeout = "60ms" }}
            [workload.news]
            kind = "poisson"
            class = "news"
            rate = "5/s"
            [[design]]
            name = "late"
            strategy = {strategy}
            workers = 4"#
        ));
        let metrics = &run.outcome.metrics;
        assert_eq!((metrics.delivered, metrics.duplicated), (metrics.due, 0), "{strategy}");
    }
}

/// Counts in the store, three commands in one round trip.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Pipelined {}

impl Strategy for Pipelined {
    const KIND: &'static str = "pipelined";
    const SUMMARY: &'static str = "counts in the store, three commands in one round trip";

    async fn run(self, env: Env) {
        let begun = env.now();
        let key = || "counter".to_owned();
        let commands = vec![
            Command::Incr { key: key() },
            Command::Expire { key: key(), ttl: Duration::from_secs(5) },
            Command::LLen { key: key() },
        ];
        let replies = env.pipeline(commands).await.expect("the store is there");
        assert_eq!(env.now() - begun, Duration::from_millis(1), "one round trip");
        assert_eq!(replies, [Ok(Reply::Integer(1)), Ok(Reply::Integer(1)), Err(CommandError::WrongType)]);
        env.sleep(Duration::from_secs(5)).await;
        assert_eq!(env.call(Command::Exists { key: key() }).await, Ok(Reply::Integer(0)));
        while let Some(message) = env.next().await {
            let _ = env.send(&message).await;
        }
    }
}

#[test]
fn a_pipeline_is_one_round_trip() {
    let text = world(&format!("{TEN}\n[[design]]\nstrategy = \"pipelined\""));
    let scenario = lab::scenario_with::<Pipelined>(&text);
    assert_eq!(lab::run(&scenario, "pipelined", 1).outcome.metrics.delivered, 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever is composed, whoever dies and whatever happens to the store: the books balance (the run itself checks
    /// that), they are what the raw events say, and the same run comes out again.
    #[test]
    fn the_books_balance_whoever_dies(
        seed in any::<u64>(),
        strategy in prop::sample::select(COMPOSITIONS.to_vec()),
        profile in prop::sample::select(vec!["telegram", "telegram-observed", "unlimited"]),
        event in prop::sample::select(EVENTS.to_vec()),
        (every, away) in (5_u64..60, 0_u64..20),
        (processes, workers) in (1_u32..4, 1_u32..6),
        p99_ms in 5_u64..200,
    ) {
        let scenario = lab::scenario(&format!(
            r#"
            duration = "1min"
            drain = "2min"
            wire = {{ median = "100ms", p99 = "3s", timeout = "2s" }}
            store = {{ round_trip = "5ms", round_trip_p99 = "{p99_ms}ms", timeout = "40ms", event = [{event}] }}
            chats = {{ count = 60, groups = "20%", dead = "10%" }}
            [server]
            profile = "{profile}"
            [[server.fault]]
            kind = "lost"
            phase = "after"
            rate = "5%"
            [workload.replies]
            kind = "poisson"
            class = "reply"
            rate = "6/s"
            deadline = "20s"
            from_user = true
            [workload.news]
            kind = "broadcast"
            class = "news"
            every = "20s"
            [[design]]
            name = "drawn"
            strategy = {strategy}
            processes = {processes}
            workers = {workers}
            timeline = [
                {{ every = "{every}s", kill = 0, restart_after = "{away}s" }},
                {{ at = "20s", add = 1 }},
                {{ at = "40s", leave = 1 }},
            ]"#
        ));
        let run = lab::run(&scenario, "drawn", seed);
        recount::check(&scenario, &run);
        prop_assert_eq!(&lab::run(&scenario, "drawn", seed), &run);
        // Nobody calls who is dead.
        let mut alive = [false; 5];
        for (at, event) in &run.tape {
            match event {
                Event::Started { process } => alive[usize::from(process.0)] = true,
                Event::Killed { process } => alive[usize::from(process.0)] = false,
                Event::Sent { process, .. } | Event::Taken { process, .. } | Event::Answered { process, .. } => {
                    prop_assert!(alive[usize::from(process.0)], "{} at {}", process.0, at);
                }
                _ => {}
            }
        }
        prop_assert!(run.tape.iter().all(|(at, _)| *at <= Time::ZERO + Duration::from_mins(3)));
    }
}

const COMPOSITIONS: [&str; 12] = [
    r#""naive-loop""#,
    r#""backoff""#,
    r#""process-bucket""#,
    r#""shared-bucket""#,
    r#""scheduler""#,
    r#"{ kind = "scheduler", queue = { kind = "lanes", mark = "before", lease = "5s" } }"#,
    r#"{ kind = "scheduler", queue = { kind = "fifo", pace = {}, lease = "5s" }, doubt = "never" }"#,
    r#"{ kind = "scheduler", queue = { kind = "lanes", keep = "process" }, dead_chats = "remember" }"#,
    r#"{ kind = "bare", retry = "wait", pause = { kind = "store", key = "token", jitter = "1s" }, doubt = "as-refused" }"#,
    r#"{ kind = "bare", limiter = { kind = "window-counter", form = "set-incr", keyed_by = "name" } }"#,
    r#"{ kind = "scheduler", limiter = { kind = "token-bucket", clock = "callers", keep = "store" }, retry = { kind = "postpone", most = 2 } }"#,
    r#"{ kind = "bare", queue = "fifo", retry = { kind = "release", delay = "5s" }, limiter = { kind = "token-bucket", rate = "20/s", ramp = {} }, doubt = { kind = "retry", at_most_once = ["news"] } }"#,
];

const EVENTS: [&str; 5] = [
    "",
    r#"{ at = "10s", action = "fail", for = "15s" }"#,
    r#"{ at = "10s", action = "hang", for = "15s" }"#,
    r#"{ at = "30s", action = "flush" }"#,
    r#"{ at = "30s", action = "restart", for = "3s", persistent = true }"#,
];
