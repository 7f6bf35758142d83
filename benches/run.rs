//! Whole runs: one hour of `day.toml` with every strategy, set-up included, and the same hour without the set-up for a
//! growing number of chats. An element is a message.

#[path = "support/size.rs"]
mod size;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use floodlab::Registry;
use floodlab::run::{Simulation, simulate};
use floodlab::scenario::Scenario;
use floodlab::strategy;
use size::size;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let length = size("1h", "1min");

    let scenario = day(length, "300k");
    let mut group = criterion.benchmark_group("run");
    group.sample_size(10).throughput(Throughput::Elements(run(&scenario, "scheduler").messages));
    for kind in strategy::builtin() {
        group.bench_function(BenchmarkId::new(kind.kind, length), |bencher| {
            bencher.iter(|| run(&scenario, kind.kind));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("chats");
    group.sample_size(10);
    for chats in size(["30k", "300k", "3M"], ["3k", "30k", "300k"]) {
        let scenario = day(length, chats);
        group.throughput(Throughput::Elements(run(&scenario, "scheduler").messages));
        group.bench_function(BenchmarkId::new("scheduler", chats), |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| run(&scenario, "scheduler").running).sum());
        });
    }
    group.finish();
    criterion.final_summary();
}

/// `day.toml` with another length and number of chats.
fn day(length: &str, chats: &str) -> Scenario {
    let text = with(include_str!("day.toml"), "\nduration  = \"3h\"", &format!("\nduration = \"{length}\""));
    let text = with(&text, "\ncount    = \"300k\"", &format!("\ncount = \"{chats}\""));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("day.toml");
    std::fs::write(&file, text).expect("a temporary file");
    Scenario::load(&file, &Registry::builtin()).unwrap_or_else(|error| panic!("{error}"))
}

fn with(text: &str, line: &str, other: &str) -> String {
    assert!(text.contains(line), "day.toml says{line}");
    text.replace(line, other)
}

/// What a run took.
struct Ran {
    messages: u64,
    /// From the first pause (1/200 of the run) to the end: without setting up.
    running: Duration,
}

#[expect(clippy::disallowed_methods, reason = "the wall clock is what is measured")]
fn run(scenario: &Scenario, design: &str) -> Ran {
    let design = scenario.designs.iter().position(|known| known.name == design);
    let design = design.expect("day.toml has a design for every strategy");
    let simulation = Simulation { scenario, design, seed: scenario.seed, shuffle_ties: None };
    let mut begun = None;
    let outcome = simulate(&simulation, Vec::new(), |_| {
        begun.get_or_insert_with(Instant::now);
        true
    });
    let outcome = outcome.expect("nothing stalls").expect("nothing interrupts");
    let running = begun.expect("a run has pauses").elapsed();
    Ran { messages: outcome.metrics.due, running }
}
