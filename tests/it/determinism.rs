//! A run is a pure function of (scenario, design, seed): the same events and the same bytes on any thread, with any
//! number of them, whatever runs beside it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use floodlab::outcome::{DesignHost, Host, Report};
use floodlab::report::json;
use floodlab::run::{self, Options};
use floodlab::scenario::Scenario;

use crate::lab::{self, BUILTIN, designs, index};
use crate::recount;

/// A bit of everything: two workloads, all kinds of chats, chats that die and return, faults, two processes.
fn mixed() -> Scenario {
    let top = r#"
        duration = "3min"
        drain = "2min"
        processes = 2
        workers = 4
        chats = { count = 200, groups = "10%", channels = "5%", dead = "5%", mean_life = "10min", mean_absence = "1min" }

        [workload.replies]
        kind = "poisson"
        class = "reply"
        rate = "15/s"
        deadline = "1min"

        [workload.news]
        kind = "broadcast"
        class = "broadcast"
        at = "1min"
        spread = "20s"

        [[server.fault]]
        kind = "lost"
        phase = "after"
        rate = "2%"

        [[server.fault]]
        kind = "502"
        rate = "5%"
        from = "1min"
        for = "1min"
    "#;
    lab::scenario(&format!("{top}{}", designs(BUILTIN)))
}

#[test]
fn the_same_run_again_and_on_other_threads_is_the_same_to_the_last_event() {
    let scenario = mixed();
    for design in BUILTIN {
        let first = lab::run(&scenario, design, 7);
        assert!(first.tape.len() > 3_000, "{design}: {} events", first.tape.len());
        assert_eq!(first, lab::run(&scenario, design, 7));
        let elsewhere = || {
            thread::scope(|scope| {
                let runs: Vec<_> = (0..2).map(|_| scope.spawn(|| lab::run(&scenario, design, 7))).collect();
                runs.into_iter().map(|run| run.join().expect("it runs")).collect::<Vec<_>>()
            })
        };
        assert!(elsewhere().into_iter().all(|run| run == first), "{design}");
    }
}

/// Runs some designs with so many at a time and returns the report without its `host` blocks.
fn report(scenario: &Scenario, names: &[&str], jobs: usize, seed: u64, wall_us: u64) -> Report {
    let ticks = AtomicU64::new(0);
    let options = Options {
        seeds: vec![seed],
        baseline: None,
        designs: names.iter().map(|name| index(scenario, name)).collect(),
        jobs: Some(jobs),
        check_determinism: false,
        shuffle_ties: None,
        interrupted: &AtomicBool::new(false),
        wall_us: &|| ticks.fetch_add(wall_us, Ordering::Relaxed),
    };
    let mut report = run::run(scenario, &options, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_ne!(report.host, Host::default());
    report.host = Host::default();
    report.designs.iter_mut().for_each(|design| design.host = DesignHost::default());
    report
}

#[test]
fn reports_are_the_same_to_the_byte_with_any_number_of_threads() {
    let scenario = mixed();
    let first = report(&scenario, &BUILTIN, 1, 7, 1_000_000);
    for (jobs, wall_us) in [(1, 7_000), (2, 1_000_000), (5, 50_000)] {
        assert_eq!(json(&report(&scenario, &BUILTIN, jobs, 7, wall_us)), json(&first), "{jobs} jobs");
    }
}

#[test]
fn a_designs_result_does_not_depend_on_what_runs_beside_it() {
    let scenario = mixed();
    let all = report(&scenario, &BUILTIN, 2, 7, 1_000_000);
    for (names, jobs) in [(vec!["scheduler"], 1), (vec!["shared-bucket", "backoff"], 2)] {
        for design in report(&scenario, &names, jobs, 7, 1_000_000).designs {
            let beside = all.designs.iter().find(|other| other.name == design.name).expect("it ran");
            assert_eq!(design, *beside);
        }
    }
    // Nor on what else the file compares, its order included.
    let reversed = lab::scenario(&format!(
        "{}{}",
        scenario.to_toml().split("[[design]]").next().expect("designs come last"),
        designs(BUILTIN.into_iter().rev())
    ));
    for design in &all.designs {
        let name = design.name.as_str();
        assert_eq!(lab::run(&reversed, name, 7).outcome.event_hash, design.event_hash, "{name}");
    }
}

#[test]
fn another_seed_is_another_outcome() {
    let scenario = mixed();
    for design in BUILTIN {
        let runs: Vec<_> = (1..=4).map(|seed| lab::run(&scenario, design, seed).outcome).collect();
        let hashes: BTreeSet<&str> = runs.iter().map(|outcome| outcome.event_hash.as_str()).collect();
        assert_eq!(hashes.len(), runs.len(), "{design}");
        for (i, first) in runs.iter().enumerate() {
            assert!(runs[..i].iter().all(|other| other.metrics != first.metrics), "{design}");
        }
    }
}

/// Whatever the order of what happens at once, the books balance (`simulate` checks it, and so does the recount).
#[test]
fn shuffled_ties_change_the_order_and_never_the_balance() {
    // Ties need instants: constant call times and everything due on the second.
    let text = format!(
        r#"
        duration = "1min"
        drain = "1min"
        processes = 2
        wire = {{ median = "100ms", p99 = "100ms" }}
        chats = {{ count = 60, groups = "20%", dead = "10%" }}
        [workload.news]
        kind = "broadcast"
        class = "news"
        every = "2s"
        [[server.fault]]
        kind = "lost"
        phase = "after"
        rate = "5%"
        {}"#,
        designs(BUILTIN)
    );
    let scenario = lab::scenario(&text);
    for design in BUILTIN {
        let plain = lab::run(&scenario, design, 1);
        let mut hashes = BTreeSet::from([plain.outcome.event_hash]);
        for shuffle in 1..=4 {
            let run = lab::run_shuffled(&scenario, design, 1, Some(shuffle));
            recount::check(&scenario, &run);
            assert_eq!(run.outcome.metrics.due, plain.outcome.metrics.due);
            assert_eq!(run, lab::run_shuffled(&scenario, design, 1, Some(shuffle)));
            hashes.insert(run.outcome.event_hash);
        }
        assert_eq!(hashes.len(), 5, "{design}: every order is one of its own");
    }
}
