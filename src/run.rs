//! A stub until the engine lands: every design delivers nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use fake_telegram::time::{Duration, Time};

use crate::outcome::{Host, Outcome, Report, SCHEMA_VERSION, ScenarioInfo};
use crate::scenario::Scenario;

/// How to run a scenario.
#[derive(Debug)]
pub struct Options<'a> {
    /// The seed.
    pub seed: u64,
    /// The designs, as indices into the scenario's.
    pub designs: Vec<usize>,
    /// How many at a time; `None`: as many as there are cores.
    pub jobs: Option<usize>,
    /// Whether to run everything twice.
    pub check_determinism: bool,
    /// Whether somebody wants it to end.
    pub interrupted: &'a AtomicBool,
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
    /// Two runs differ.
    #[error("design `{design}` is not deterministic")]
    NotDeterministic {
        /// Which.
        design: String,
    },
    /// Our own bug.
    #[error("design `{design}`: {what}")]
    Invariant {
        /// Which.
        design: String,
        /// What broke.
        what: String,
    },
}

/// Runs it.
///
/// # Errors
/// If an invariant breaks.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, RunError> {
    let horizon = scenario.horizon();
    let designs = options.designs.iter().take_while(|_| !options.interrupted.load(Ordering::Relaxed));
    let designs = designs.map(|design| {
        progress(Progress { design: *design, now: Time::ZERO + horizon, horizon });
        Outcome {
            name: scenario.designs[*design].name.clone(),
            event_hash: scenario.hash.clone(),
            metrics: Default::default(),
            classes: scenario.classes.iter().map(|class| (class.clone(), Default::default())).collect(),
            series: Default::default(),
            lag_distribution: Default::default(),
            host: Default::default(),
        }
    });
    let designs: Vec<Outcome> = designs.collect();
    Ok(Report {
        schema_version: SCHEMA_VERSION,
        tool: concat!("floodlab ", env!("CARGO_PKG_VERSION")).to_owned(),
        seed: options.seed,
        scenario: ScenarioInfo {
            name: scenario.name.clone(),
            hash: scenario.hash.clone(),
            horizon_us: horizon.as_micros(),
            profile: scenario.server.name.clone(),
        },
        expectations: crate::gate::judge(&scenario.expectations, &designs),
        designs,
        gates: Vec::new(),
        reproduce: format!("floodlab run {} --seed {}", scenario.file.display(), options.seed),
        host: Host::default(),
    })
}
