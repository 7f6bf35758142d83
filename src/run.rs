//! Runs a scenario: each design against the same arrivals, in parallel, one run on one thread.

mod simulate;

use std::sync::atomic::{AtomicBool, Ordering};

use fake_telegram::time::{Duration, Time};
use rayon::prelude::*;

use crate::executor::Stalled;
use crate::gate;
use crate::outcome::{Host, Outcome, Report, SCHEMA_VERSION, ScenarioInfo};
use crate::scenario::Scenario;

pub use simulate::{Simulation, simulate};

/// How to run a scenario.
pub struct Options<'a> {
    /// The seed.
    pub seed: u64,
    /// The designs, as indices into the scenario's.
    pub designs: Vec<usize>,
    /// How many at a time; `None`: as many as there are cores.
    pub jobs: Option<usize>,
    /// Whether to run everything twice and compare.
    pub check_determinism: bool,
    /// Runs events at one instant in an order drawn with this key, in the place of the order in which they were set.
    pub shuffle_ties: Option<u64>,
    /// Whether somebody wants it to end: what is finished by then is the result.
    pub interrupted: &'a AtomicBool,
    /// The wall clock, in microseconds from any start, for the `host` blocks.
    pub wall_us: &'a (dyn Fn() -> u64 + Sync),
}

/// How far a design is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The design, as an index into the scenario's.
    pub design: usize,
    /// Virtual time.
    pub now: Time,
    /// When it ends.
    pub horizon: Duration,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The strategy cannot go on.
    #[error("design `{design}` stalls: {source}")]
    Stalled {
        /// Which.
        design: String,
        /// How.
        source: Stalled,
    },
    /// Two runs differ.
    #[error(
        "design `{design}` is not deterministic: event hash {first}, then {second}; look for a clock, a random map or a global in its strategy"
    )]
    NotDeterministic {
        /// Which.
        design: String,
        /// The hash of the first run.
        first: String,
        /// The hash of the second.
        second: String,
    },
    /// Our own bug, or a panic in a strategy.
    #[error("design `{design}`: {what}; this is a defect of floodlab, please report it with the scenario")]
    Invariant {
        /// Which.
        design: String,
        /// What broke.
        what: String,
    },
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Options(seed {}, designs {:?})", self.seed, self.designs)
    }
}

/// Runs the chosen designs.
///
/// Interrupted, the report holds the designs that were finished by then.
///
/// # Errors
/// The first thing that went wrong, in the order of the designs.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, RunError> {
    let begun = (options.wall_us)();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.unwrap_or(0)).build();
    let pool = pool.expect("the system gives threads");
    let outcomes: Vec<Result<Option<Outcome>, RunError>> = pool.install(|| {
        options.designs.par_iter().map(|design| one(scenario, *design, options, progress)).collect()
    });
    let outcomes: Result<Vec<Option<Outcome>>, RunError> = outcomes.into_iter().collect();
    let designs: Vec<Outcome> = outcomes?.into_iter().flatten().collect();
    Ok(Report {
        schema_version: SCHEMA_VERSION,
        tool: concat!("floodlab ", env!("CARGO_PKG_VERSION")).to_owned(),
        seed: options.seed,
        scenario: ScenarioInfo {
            name: scenario.name.clone(),
            hash: scenario.hash.clone(),
            horizon_us: scenario.horizon().as_micros(),
            profile: scenario.server.name.clone(),
        },
        expectations: gate::judge(&scenario.expectations, &designs),
        designs,
        gates: Vec::new(),
        reproduce: format!("floodlab run {} --seed {}", scenario.file.display(), options.seed),
        host: Host { wall_ms: ((options.wall_us)() - begun) / 1_000 },
    })
}

/// One design; `None` if it was interrupted.
fn one(
    scenario: &Scenario,
    design: usize,
    options: &Options<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Option<Outcome>, RunError> {
    let name = || scenario.designs[design].name.clone();
    let begun = (options.wall_us)();
    let again = || {
        let simulation =
            Simulation { scenario, design, seed: options.seed, shuffle_ties: options.shuffle_ties };
        let go_on = |now| {
            progress(Progress { design, now, horizon: scenario.horizon() });
            !options.interrupted.load(Ordering::Relaxed)
        };
        simulate::simulate_or_say(&simulation, go_on)
    };
    let Some(mut outcome) = again()? else { return Ok(None) };
    let wall_us = (options.wall_us)() - begun;
    if options.check_determinism {
        let Some(second) = again()? else { return Ok(None) };
        if second != outcome {
            let (first, second) = (outcome.event_hash, second.event_hash);
            return Err(RunError::NotDeterministic { design: name(), first, second });
        }
    }
    outcome.host.wall_ms = wall_us / 1_000;
    outcome.host.speed_up = scenario.horizon().as_micros().checked_div(wall_us).unwrap_or(0);
    Ok(Some(outcome))
}
