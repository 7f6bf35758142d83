//! The books: they balance, they agree with a naive count of the raw events, and nobody looks better for dropping.

use std::collections::BTreeMap;

use fake_telegram::profile::Profile;
use fake_telegram::time::Time;
use floodlab::event::Event;
use floodlab::outcome::Outcome;
use floodlab::world::{Belief, GiveUp};
use floodlab::{Env, Strategy};
use proptest::prelude::*;

use crate::lab::{self, BUILTIN, Run, designs};
use crate::recount;

const FAULTS: &str = r#"
    [[server.fault]]
    kind = "lost"
    phase = "after"
    rate = "3%"
    [[server.fault]]
    kind = "502"
    rate = "3%"
    [[server.fault]]
    kind = "html"
    phase = "after"
    rate = "3%"
    [[server.fault]]
    kind = "phantom"
    rate = "1%"
    [[server.fault]]
    kind = "html"
    phase = "instead-of-429"
    rate = "10%"
"#;

/// Every strategy, under every profile, without and with faults.
#[test]
fn the_books_of_every_strategy_under_every_profile_balance_and_are_right() {
    for (profile, _) in Profile::ALL {
        for faults in ["", FAULTS] {
            let scenario = lab::scenario(&format!(
                r#"
                duration = "2min"
                drain = "30s"
                processes = 2
                workers = 3
                chats = {{ count = 100, groups = "20%", channels = "5%", dead = "10%", mean_life = "5min", mean_absence = "30s" }}
                [server]
                profile = "{profile}"
                [workload.replies]
                kind = "poisson"
                class = "reply"
                rate = "10/s"
                deadline = "20s"
                [workload.news]
                kind = "broadcast"
                class = "news"
                at = "30s"
                {faults}{}"#,
                designs(BUILTIN)
            ));
            for design in BUILTIN {
                recount::check(&scenario, &lab::run(&scenario, design, 1));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Requests, refusals, calls in a penalty, early retries, duplicates, reorderings, queues, lag: all of it, in worlds
    /// that are drawn.
    #[test]
    fn a_naive_recount_of_the_raw_events_agrees(
        (seed, strategy, profile) in (any::<u64>(), 0..BUILTIN.len(), 0..Profile::ALL.len()),
        (rate, chats, groups, dead) in (1_u32..60, 1_u32..60, 0_u32..50, 0_u32..30),
        (processes, workers, timeout_ms, p99_ms) in (1_u32..4, 1_u32..8, 200_u32..20_000, 80_u32..4_000),
        (faulty, tokens) in (any::<bool>(), 1_u32..3),
    ) {
        let (kind, (profile, _)) = (BUILTIN[strategy], Profile::ALL[profile]);
        let groups_of_processes: String = (0..tokens)
            .map(|token| format!("[[design.group]]\nname = \"g{token}\"\nstrategy = \"{kind}\"\ntoken = \"t{token}\"\n"))
            .collect();
        let scenario = lab::scenario(&format!(
            r#"
            duration = "40s"
            drain = "20s"
            processes = {processes}
            workers = {workers}
            wire = {{ median = "80ms", p99 = "{p99_ms}ms", timeout = "{timeout_ms}ms" }}
            chats = {{ count = {chats}, groups = "{groups}%", dead = "{dead}%", mean_life = "2min", mean_absence = "10s" }}
            [server]
            profile = "{profile}"
            [workload.replies]
            kind = "poisson"
            class = "reply"
            rate = "{rate}/s"
            deadline = "10s"
            [workload.news]
            kind = "broadcast"
            class = "news"
            every = "9s"
            {}
            [[design]]
            name = "drawn"
            {groups_of_processes}"#,
            if faulty { FAULTS } else { "" },
        ));
        recount::check(&scenario, &lab::run(&scenario, "drawn", seed));
    }
}

/// Delivers what it is not told to drop.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Dropper {
    /// The numbers of the messages that it drops.
    drop: Vec<u32>,
}

impl Strategy for Dropper {
    const KIND: &'static str = "dropper";
    const SUMMARY: &'static str = "drops chosen messages, in four ways";

    async fn run(self, env: Env) {
        while let Some(message) = env.next().await {
            if !self.drop.contains(&message.number) {
                let _ = env.send(&message).await;
                continue;
            }
            match message.number % 4 {
                0 => env.give_up(&message, GiveUp::Expired),
                1 => env.give_up(&message, GiveUp::Attempts),
                2 => env.settle(&message, Belief::Delivered),
                _ => {} // It forgets about it.
            }
        }
    }
}

/// Deliveries by message.
fn deliveries(run: &Run) -> BTreeMap<u32, Time> {
    let decided = run.tape.iter().filter_map(|(at, event)| match event {
        Event::Decided { message, .. } => Some((message.number, *at)),
        _ => None,
    });
    decided.collect()
}

/// Every quantile that a reader may see: the totals', the classes' and the whole distribution.
fn quantiles(outcome: &Outcome) -> Vec<u64> {
    let lags = outcome.classes.values().map(|class| &class.lag_us).chain([&outcome.metrics.lag_us]);
    let of_lags = lags.flat_map(|lag| [lag.p50, lag.p90, lag.p99, lag.p999, lag.max].map(|q| q.unwrap_or(0)));
    of_lags.chain(outcome.lag_distribution.us.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With the other deliveries fixed, dropping a message never lowers a quantile of lag, end to end; nor does
    /// dropping one more.
    #[test]
    fn dropping_never_lowers_a_quantile(
        seed in any::<u64>(),
        some in prop::collection::btree_set(0_u32..150, 0..40),
        more in prop::collection::btree_set(0_u32..150, 1..150),
    ) {
        let both: Vec<u32> = some.union(&more).copied().collect();
        let design = |name: &str, drop: &[u32]| {
            format!("[[design]]\nname = \"{name}\"\nstrategy = {{ kind = \"dropper\", drop = {drop:?} }}\n")
        };
        let some: Vec<u32> = some.into_iter().collect();
        // A worker for every message, so that nobody queues.
        let scenario = lab::scenario_with::<Dropper>(&format!(
            r#"
            duration = "20s"
            drain = "1min"
            workers = 400
            server = {{ profile = "unlimited" }}
            wire = {{ median = "100ms", p99 = "20s", timeout = "1h" }}
            chats = {{ count = 50, groups = "50%" }}
            [workload.replies]
            kind = "poisson"
            class = "reply"
            rate = "5/s"
            [workload.news]
            kind = "broadcast"
            class = "news"
            at = "10s"
            {}{}{}"#,
            design("none", &[]), design("some", &some), design("both", &both)
        ));
        let runs = ["none", "some", "both"].map(|design| lab::run(&scenario, design, seed));
        let all = deliveries(&runs[0]);
        for (run, dropped) in runs.iter().zip([&[][..], &some, &both]) {
            let mut expected = all.clone();
            expected.retain(|number, _| !dropped.contains(number));
            prop_assert_eq!(&deliveries(run), &expected, "the other deliveries are fixed");
        }
        for pair in runs.windows(2) {
            let (fewer, more) = (quantiles(&pair[0].outcome), quantiles(&pair[1].outcome));
            prop_assert_eq!(fewer.len(), more.len());
            prop_assert!(fewer.iter().zip(&more).all(|(fewer, more)| fewer <= more), "{:?}\n{:?}", fewer, more);
        }
    }
}

/// Two tokens are two budgets, two queues and two sets of processes; each gets its own messages through.
#[test]
fn groups_with_a_token_each_do_not_share() {
    for strategy in ["shared-bucket", "scheduler"] {
        let group = |name: &str, workload: &str| {
            format!(
                "[[design.group]]\nname = \"{name}\"\nstrategy = \"{strategy}\"\nprocesses = 1\nworkers = 32\ntoken = \"{name}\"\nworkloads = [\"{workload}\"]\n"
            )
        };
        let workload = |name: &str| {
            format!(
                "[workload.{name}]\nkind = \"broadcast\"\nclass = \"{name}\"\nat = \"0s\"\nchats = {{ count = 1500 }}\n"
            )
        };
        let text = format!(
            "summary = \"two tokens\"\nduration = \"60s\"\ndrain = \"0s\"\n[chats]\ncount = 1500\n{}{}[[design]]\nname = \"both\"\n{}{}",
            workload("a"),
            workload("b"),
            group("x", "a"),
            group("y", "b"),
        );
        let scenario = lab::scenario(&text);
        let run = lab::run(&scenario, "both", 1);
        // 28 or 29 a second for a minute, and a burst of 20, each.
        for class in ["a", "b"] {
            assert_eq!(run.outcome.classes[class].delivered, 1_500, "{strategy}: {class}");
        }
        let utilisation = run.outcome.metrics.budget_utilisation_ppm.expect("there is a token-wide limit");
        // 1,500 of 30 + 30 x 60 tokens, for each.
        assert_eq!(utilisation, 1_500 * 1_000_000 / 1_830, "{strategy}");
    }
}
