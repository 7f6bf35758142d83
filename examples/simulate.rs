//! Simulates one design of a scenario and prints how many messages there were: nothing but the engine, for profilers.
//!
//! `cargo run --release --example simulate -- SCENARIO DESIGN`; without a design it prints their names. On Linux a
//! second line is the peak of its memory in kB.

use std::path::Path;

use floodlab::Registry;
use floodlab::run::{Simulation, simulate};
use floodlab::scenario::Scenario;

#[expect(clippy::print_stdout, reason = "this is a program")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("usage: simulate SCENARIO [DESIGN]");
    let scenario =
        Scenario::load(Path::new(&file), &Registry::builtin()).unwrap_or_else(|error| panic!("{error}"));
    let Some(design) = arguments.next() else {
        scenario.designs.iter().for_each(|design| println!("{}", design.name));
        return;
    };
    let design =
        scenario.designs.iter().position(|known| known.name == design).expect("the scenario has this design");
    let simulation = Simulation { scenario: &scenario, design, seed: scenario.seed, shuffle_ties: None };
    let outcome = simulate(&simulation, Vec::new(), |_| true).unwrap_or_else(|error| panic!("{error}"));
    println!("{}", outcome.map_or(0, |outcome| outcome.metrics.due));
    if let Some(peak_kb) = peak_kb() {
        println!("{peak_kb}");
    }
}

/// The peak of the resident set, as Linux tells it.
fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse().ok()
}
