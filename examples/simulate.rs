//! Simulates one design of a scenario and prints how many messages there were: nothing but the engine, for profilers.
//!
//! `cargo run --release --example simulate -- SCENARIO DESIGN`

use std::path::Path;

use floodlab::Registry;
use floodlab::run::{Simulation, simulate};
use floodlab::scenario::Scenario;

#[expect(clippy::print_stdout, reason = "this is a program")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(design)) = (arguments.next(), arguments.next()) else {
        panic!("usage: simulate SCENARIO DESIGN");
    };
    let scenario =
        Scenario::load(Path::new(&file), &Registry::builtin()).unwrap_or_else(|error| panic!("{error}"));
    let design =
        scenario.designs.iter().position(|known| known.name == design).expect("the scenario has this design");
    let simulation = Simulation { scenario: &scenario, design, seed: scenario.seed, shuffle_ties: None };
    let outcome = simulate(&simulation, Vec::new(), |_| true).unwrap_or_else(|error| panic!("{error}"));
    println!("{}", outcome.map_or(0, |outcome| outcome.metrics.due));
}
