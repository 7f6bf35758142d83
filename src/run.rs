//! Runs a scenario: each design against the same arrivals, under each seed, in parallel, one run on one thread.

mod simulate;
mod reproduce;
#[cfg(feature = "live")]
mod drive;

use std::sync::atomic::{AtomicBool, Ordering};

use fake_telegram::time::{Duration, Time};
use rayon::prelude::*;

use crate::compare;
use crate::executor::Stalled;
use crate::gate;
use crate::outcome::{
    Baseline, Host, Outcome, Replication, Replications, Report, Run, Runs, SCHEMA_VERSION, ScenarioInfo,
    Unfinished,
};
use crate::scenario::Scenario;

#[cfg(feature = "live")]
pub use drive::{Drive, drive, server};
pub use simulate::{Simulation, simulate};

/// How to run a scenario.
pub struct Options<'a> {
    /// The seeds; at least one, each once.
    pub seeds: Vec<u64>,
    /// The saved result that conditions refer to.
    pub baseline: Option<&'a Saved>,
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

/// A result that was saved to be compared with.
#[derive(Debug, Clone)]
pub struct Saved {
    /// Where it lies, as given.
    pub file: String,
    /// What was saved.
    pub report: Report,
}

/// A run of a design has gone on.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The design, as an index into the scenario's.
    pub design: usize,
    /// Its virtual time.
    pub now: Time,
    /// How much of that is new since it was last told.
    pub by: Duration,
}

/// Something went wrong with some of the designs.
#[derive(Debug, thiserror::Error)]
#[error("{}", errors.iter().map(with_cause).collect::<Vec<_>>().join("; "))]
pub struct Failed {
    /// The result of the others.
    pub report: Box<Report>,
    /// What went wrong, in the order of the designs; at least one.
    pub errors: Vec<RunError>,
}

/// Why there is no result of a design.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The strategy cannot go on.
    #[error("design `{design}` stalls")]
    Stalled {
        /// Which.
        design: String,
        /// How.
        source: Stalled,
    },
    /// A kill point did not come: the run did not show what it was made for.
    #[error(
        "design `{design}`: process {process} was to die after a call named `{after}` and made {left} too few; lower `count` in its timeline, or let the run last longer"
    )]
    Missed {
        /// Which.
        design: String,
        /// Which of its processes.
        process: u32,
        /// The name of the call.
        after: String,
        /// How many calls were still to come.
        left: u32,
    },
    /// The server cannot be called.
    #[cfg(feature = "live")]
    #[error("design `{design}` cannot be driven")]
    Target {
        /// Which.
        design: String,
        /// Why.
        source: crate::live::TargetError,
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
    /// The real Redis of the scenario cannot be used, or does not go on.
    #[error("design `{design}`: {what}")]
    Store {
        /// Which.
        design: String,
        /// What is wrong.
        what: String,
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
        write!(f, "Options(seeds {:?}, designs {:?})", self.seeds, self.designs)
    }
}

/// Runs the chosen designs under each seed.
///
/// Interrupted, the report holds what was finished by then, and names the rest.
///
/// # Errors
/// If something goes wrong with a run; the others run to their end, and their results are in the error.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, Failed> {
    let begun = (options.wall_us)();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.unwrap_or(0)).build();
    let pool = pool.expect("the system gives threads");
    // Seed by seed, so that what is interrupted has whole seeds.
    let grid: Vec<(u64, usize)> =
        options.seeds.iter().flat_map(|seed| options.designs.iter().map(|design| (*seed, *design))).collect();
    let is_replicated = options.seeds.len() > 1;
    let results: Vec<Finished> = pool.install(|| {
        let one = |&(seed, design): &(u64, usize)| Finished {
            seed: is_replicated.then_some(seed),
            design,
            result: one(scenario, design, seed, options, progress),
        };
        // Taken in order, and finished in any.
        let mut results: Vec<(usize, Finished)> =
            grid.iter().enumerate().par_bridge().map(|(index, run)| (index, one(run))).collect();
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, finished)| finished).collect()
    });
    let reproduce = reproduce::run(scenario, options);
    let (mut report, finished, errors) = report(scenario, options.seeds[0], results, reproduce);
    let runs = runs(&finished);
    let saved = options.baseline.map(|saved| Runs::of(&saved.report)).unwrap_or_default();
    report.gates = gate::judge(&scenario.gates, &runs, &saved);
    report.expectations = gate::judge(&scenario.expectations, &runs, &saved);
    for verdict in report.gates.iter_mut().chain(&mut report.expectations).filter(|verdict| !verdict.passed) {
        verdict.reproduce = verdict.seed.map(|seed| reproduce::verdict(scenario, options, verdict, seed));
    }
    report.baseline = options.baseline.map(Saved::info);
    if is_replicated {
        report.replications = Some(Replications {
            seeds: {
                let has_run = |seed: &&u64| finished.iter().any(|(of, _)| of == *seed);
                options.seeds.iter().filter(has_run).copied().collect()
            },
            estimates: compare::estimates(&runs),
            differences: runs.split_first().map_or_else(Vec::new, |(first, others)| {
                others.iter().flat_map(|other| compare::differences(other, first)).collect()
            }),
            runs: finished.iter().map(|(seed, outcome)| Replication::of(*seed, outcome)).collect(),
        });
    }
    // Of a run that was interrupted or failed, the first seed may have no result.
    report.seed = finished.first().map_or(report.seed, |(seed, _)| *seed);
    report.designs =
        finished.into_iter().filter(|(seed, _)| *seed == report.seed).map(|(_, one)| one).collect();
    report.host.wall_ms = ((options.wall_us)() - begun) / 1_000;
    if errors.is_empty() { Ok(report) } else { Err(Failed { report: Box::new(report), errors }) }
}

/// What came of a design under a seed.
struct Finished {
    /// Which, if there are several.
    seed: Option<u64>,
    design: usize,
    result: Result<Option<Outcome>, RunError>,
}

/// The runs of each design, with their lags.
fn runs(finished: &[(u64, Outcome)]) -> Vec<Runs<'_>> {
    Runs::by_design(finished.iter().map(|(seed, outcome)| {
        let run = Run { seed: *seed, totals: outcome.totals(), lags: Some(&outcome.lag_counts) };
        (outcome.name.as_str(), run)
    }))
}

impl Saved {
    fn info(&self) -> Baseline {
        let Report { tool, scenario, .. } = &self.report;
        Baseline {
            file: self.file.clone(),
            tool: tool.clone(),
            scenario_hash: scenario.hash.clone(),
            seeds: self.report.seeds().to_vec(),
        }
    }
}

/// What came of the runs, put together: a report without designs and not judged, the outcomes with their seeds, and what went wrong.
fn report(
    scenario: &Scenario,
    seed: u64,
    results: Vec<Finished>,
    reproduce: String,
) -> (Report, Vec<(u64, Outcome)>, Vec<RunError>) {
    let (mut finished, mut unfinished, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for Finished { seed: of, design, result } in results {
        let name = || scenario.designs[design].name.clone();
        match result {
            Ok(Some(outcome)) => finished.push((of.unwrap_or(seed), outcome)),
            Ok(None) => unfinished.push(Unfinished { design: name(), seed: of, error: None }),
            Err(error) => {
                unfinished.push(Unfinished { design: name(), seed: of, error: Some(with_cause(&error)) });
                errors.push(error);
            }
        }
    }
    let report = Report {
        schema_version: SCHEMA_VERSION,
        tool: concat!("floodlab ", env!("CARGO_PKG_VERSION")).to_owned(),
        seed,
        scenario: ScenarioInfo {
            name: scenario.name.clone(),
            hash: scenario.hash.clone(),
            horizon_us: scenario.horizon().as_micros(),
            warm_up_us: scenario.warm_up.as_micros(),
            profile: scenario.server.name.clone(),
            store: scenario.store.url.as_ref().map(ToString::to_string),
        },
        expectations: Vec::new(),
        designs: Vec::new(),
        gates: Vec::new(),
        replications: None,
        baseline: None,
        unfinished,
        reproduce,
        host: Host { wall_ms: 0 },
    };
    (report, finished, errors)
}

fn with_cause(error: &RunError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// One design under one seed; `None` if it was interrupted.
fn one(
    scenario: &Scenario,
    design: usize,
    seed: u64,
    options: &Options<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Option<Outcome>, RunError> {
    let name = || scenario.designs[design].name.clone();
    let begun = (options.wall_us)();
    let again = || {
        let simulation = Simulation { scenario, design, seed, shuffle_ties: options.shuffle_ties };
        let mut last = Time::ZERO;
        let go_on = |now| {
            progress(Progress { design, now, by: now - std::mem::replace(&mut last, now) });
            !options.interrupted.load(Ordering::Relaxed)
        };
        simulate::or_say(&simulation, || simulate(&simulation, Vec::new(), go_on))
    };
    if options.interrupted.load(Ordering::Relaxed) {
        return Ok(None);
    }
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
