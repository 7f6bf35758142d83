//! What servers say when they refuse, end to end: every dialect of `Retry-After` (T8), and chats that do not exist.

use fake_telegram::api::ChatIndex;
use fake_telegram::fault::Faults;
use fake_telegram::model::Model;
use fake_telegram::time::Time;
use floodlab::Registry;
use floodlab::outcome::Metrics;

use crate::lab::{self, BUILTIN, designs};
use crate::recount;

/// Six messages into one chat by one worker, with calls of 100 ms: the sixth is refused at 0.55 s, for 10 s.
fn refused_once(hint: &str, strategy: &str) -> Metrics {
    let trace = format!("due_ms,chat,kind\n{}", "0,1,private\n".repeat(6));
    let scenario = lab::load(
        &format!(
            r#"
            duration = "1s"
            drain = "1min"
            workers = 1
            wire = {{ median = "100ms", p99 = "100ms" }}
            [server]
            retry_hint = {{ {hint} }}
            limit = {{ chat = {{ penalty = {{ minimum = "10s", cap = "10s" }} }} }}
            [workload.all]
            kind = "trace"
            class = "all"
            file = "six.csv"
            [[design]]
            name = "it"
            strategy = {{ {strategy} }}"#
        ),
        &[("six.csv", &trace)],
        &Registry::builtin(),
    );
    let run = lab::run(&scenario, "it", 1);
    recount::check(&scenario, &run);
    run.outcome.metrics
}

const DIALECTS: [&str; 5] = [
    r#"kind = "exact""#,
    r#"kind = "date""#,
    r#"kind = "absent""#,
    r#"kind = "constant", after = "3s""#,
    r#"kind = "short", share = "50%""#,
];

/// The refusals by hand, from the calls' arrivals until one comes at 10.55 s or later:
///
/// - exact: one; it is called again at 10.6 s. As a date, at second 11.
/// - absent: every 1.1 s from 1.65 s on, the fallback and the call: 1.65 to 10.45 s are nine more.
/// - constant 3 s: every 3.1 s from 3.65 s on: three more.
/// - half: 5.65, 7.75, 8.85, 9.95 s, and then, told 0 s, every 100 ms up to 10.45 s: nine more.
#[test]
fn whoever_reads_both_forms_needs_one_refusal_where_the_hint_is_true() {
    let lag_max = |metrics: &Metrics| metrics.lag_us.max.expect("six samples") / 10_000;
    let expected = [(1, 1_065), (1, 1_105), (10, 1_155), (4, 1_295), (10, 1_055)];
    for (hint, (refusals, lag_10ms)) in DIALECTS.into_iter().zip(expected) {
        let metrics = refused_once(
            hint,
            r#"kind = "process-bucket", hint = { margin = "0s", fallback = "1s", fallback_max = "1s", fallback_jitter = "0%" }"#,
        );
        assert_eq!((metrics.delivered, metrics.throttled["chat"]), (6, refusals), "{hint}");
        // A histogram of three digits.
        assert!(lag_max(&metrics).abs_diff(lag_10ms) <= 1, "{hint}: {} x 10 ms", lag_max(&metrics));
        assert_eq!(metrics.early_retries, 0, "{hint}: nobody called before what he was told");
    }
}

/// The scheduler adds its margin to what it reads, and its store; the fallback is a parameter.
#[test]
fn the_scheduler_takes_every_form_of_a_hint_as_a_date() {
    let scheduler = |fallback| {
        format!(
            r#"kind = "scheduler", queue = {{ kind = "lanes", pace = {{ chat_rate = "100/s", chat_burst = 20 }} }}, hint = {{ fallback = "{fallback}", fallback_max = "{fallback}", fallback_jitter = "0%" }}"#
        )
    };
    let refusals = DIALECTS.map(|hint| {
        let metrics = refused_once(hint, &scheduler("2s"));
        assert_eq!((metrics.delivered, metrics.early_retries), (6, 0), "{hint}");
        metrics.throttled["chat"]
    });
    assert_eq!(refusals[..2], [1, 1]);
    // Every 2.1 s and a bit from 0.6 s on: at 2.7, 4.8, 6.9 and 9.0 s.
    assert_eq!(refusals[2], 5);
    assert_eq!(refused_once(DIALECTS[2], &scheduler("20s")).throttled["chat"], 1);
    assert!(refusals[3] > 1 && refusals[4] > 1, "a hint that is too short is believed");
}

/// Whoever does not look is told in vain: all is the same but the early retries, which are calls before a *known* time.
#[test]
fn who_does_not_look_does_the_same_whatever_is_said() {
    for strategy in [r#"kind = "naive-loop""#, r#"kind = "backoff""#] {
        let runs = DIALECTS.map(|hint| refused_once(hint, strategy));
        assert!(runs[0].throttled["chat"] > 0);
        for run in &runs {
            assert_eq!(
                Metrics { early_retries: runs[0].early_retries, ..run.clone() },
                runs[0],
                "{strategy}"
            );
        }
        assert_eq!(runs[2].early_retries, 0, "{strategy}: nobody was told to wait");
    }
    let backoff = DIALECTS.map(|hint| refused_once(hint, r#"kind = "backoff""#).early_retries);
    // Calls at 0.5, 1.6, 3.7 and 7.8 s, and the last, at 15.9 s, is heard: three before 10.55 and 11 s. Told 3 s, the
    // refusals last until 3.55, 4.65 and 6.75 s, and told half, until 5.55, 5.65 and 6.75 s: 7.8 s is not early.
    assert_eq!(backoff, [3, 3, 0, 2, 2]);
}

/// Incident T6's neighbour: ids of chats that the server has never heard of. All five senders end with a 400.
#[test]
fn messages_to_unknown_chats_are_dead_and_cost_nothing() {
    let scenario = lab::scenario(&format!(
        r#"
        duration = "10min"
        drain = "1min"
        workers = 4
        chats = {{ count = 1000, groups = "20%", unknown = "10%" }}
        [workload.all]
        kind = "broadcast"
        class = "news"
        spread = "5min"{}"#,
        designs(BUILTIN)
    ));
    let seed = 1;
    let mut chats = scenario.chats(seed);
    let start = Time::ZERO;
    let mut model = Model::new(&scenario.server, Faults::default(), scenario.chats(seed), 1);
    let unknown = (0..1_000).filter(|&chat| !model.can_receive(ChatIndex(chat), start)).count() as u64;
    // 100 expected, standard deviation 9.5; none of them is dead.
    assert!((50..=150).contains(&unknown));
    assert!((0..1_000).all(|chat| chats.dead(ChatIndex(chat), start).is_none()));
    for design in BUILTIN {
        let run = lab::run(&scenario, design, seed);
        recount::check(&scenario, &run);
        let metrics = &run.outcome.metrics;
        assert_eq!((metrics.due, metrics.delivered), (1_000, 1_000 - unknown), "{design}");
        // The chat could not receive when the message fell due: dead, and no sample of lag.
        assert_eq!((metrics.dead, metrics.dropped, metrics.pending), (unknown, 0, 0), "{design}");
        assert_eq!(metrics.lag_us.samples, 1_000 - unknown, "{design}");
        assert_eq!(metrics.spent_on_dead, 0, "{design}: a 400 is not a call upstream");
        // One call each: a 400 is final, and 3.3 a second are refused by nobody.
        assert_eq!((metrics.requests, metrics.amplification_ppm), (1_000, 1_000_000), "{design}");
        // The naive loop looks at nothing and believes in all of them.
        let believed = if design == "naive-loop" { 1_000 } else { 1_000 - unknown };
        assert_eq!(metrics.believed_delivered, believed, "{design}");
    }
}
