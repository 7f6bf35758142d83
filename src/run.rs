//! Runs a scenario: each design against the same arrivals, in parallel, one run on one thread.

mod simulate;
#[cfg(feature = "live")]
mod drive;

use std::sync::atomic::{AtomicBool, Ordering};

use fake_telegram::time::{Duration, Time};
use rayon::prelude::*;

use crate::executor::Stalled;
use crate::gate;
use crate::outcome::{Host, Outcome, Report, SCHEMA_VERSION, ScenarioInfo, Unfinished};
use crate::scenario::Scenario;
use crate::store::url::StoreUrl;

#[cfg(feature = "live")]
pub use drive::{Drive, drive, server};
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
        write!(f, "Options(seed {}, designs {:?})", self.seed, self.designs)
    }
}

/// Runs the chosen designs.
///
/// Interrupted, the report holds the designs that were finished by then, and names the others.
///
/// # Errors
/// If something goes wrong with a design; the others run to their end, and their results are in the error.
pub fn run(
    scenario: &Scenario,
    options: &Options<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, Failed> {
    let begun = (options.wall_us)();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.unwrap_or(0)).build();
    let pool = pool.expect("the system gives threads");
    let outcomes: Vec<Result<Option<Outcome>, RunError>> = pool.install(|| {
        options.designs.par_iter().map(|design| one(scenario, *design, options, progress)).collect()
    });
    let reproduce = reproduce(scenario, options);
    let mut made = report(scenario, &options.designs, options.seed, outcomes, reproduce);
    let report = made.as_mut().unwrap_or_else(|failed| &mut *failed.report);
    report.expectations = gate::judge(&scenario.expectations, &report.designs);
    report.host.wall_ms = ((options.wall_us)() - begun) / 1_000;
    made
}

/// What came of the designs, put together; not judged.
fn report(
    scenario: &Scenario,
    chosen: &[usize],
    seed: u64,
    outcomes: Vec<Result<Option<Outcome>, RunError>>,
    reproduce: String,
) -> Result<Report, Failed> {
    let (mut designs, mut unfinished, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (design, outcome) in chosen.iter().zip(outcomes) {
        let name = || scenario.designs[*design].name.clone();
        match outcome {
            Ok(Some(outcome)) => designs.push(outcome),
            Ok(None) => unfinished.push(Unfinished { design: name(), ..Unfinished::default() }),
            Err(error) => {
                unfinished.push(Unfinished { design: name(), seed: None, error: Some(with_cause(&error)) });
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
            warm_up_us: 0,
            profile: scenario.server.name.clone(),
            store: scenario.store.url.as_ref().map(ToString::to_string),
        },
        expectations: Vec::new(),
        designs,
        gates: Vec::new(),
        replications: None,
        baseline: None,
        unfinished,
        reproduce,
        host: Host { wall_ms: 0 },
    };
    if errors.is_empty() { Ok(report) } else { Err(Failed { report: Box::new(report), errors }) }
}

/// The command that gives the same result again, for a shell.
fn reproduce(scenario: &Scenario, options: &Options<'_>) -> String {
    let mut command = command("run", scenario, &options.designs, options.seed);
    command += owned(scenario, true);
    if let Some(key) = options.shuffle_ties {
        command += &format!(" --shuffle-ties {key}");
    }
    command
}

/// The beginning of such a command.
fn command(verb: &str, scenario: &Scenario, designs: &[usize], seed: u64) -> String {
    let mut command = format!("floodlab {verb} {} --seed {seed}", quoted(&scenario.file.to_string_lossy()));
    if designs.len() < scenario.designs.len() {
        let names = designs.iter().map(|design| scenario.designs[*design].name.as_str());
        // Names have no characters that a shell would read.
        command += &format!(" --design {}", names.collect::<Vec<_>>().join(","));
    }
    if let Some(url) = &scenario.store.url {
        command += &format!(" --store {}", quoted(&url.to_string()));
    }
    command
}

/// Its end, if it calls another machine: the store's, or a target that is not a `local` one.
fn owned(scenario: &Scenario, local: bool) -> &'static str {
    let is_here = local && scenario.store.url.as_ref().is_none_or(StoreUrl::is_loopback);
    if is_here { "" } else { " --i-own-this-target" }
}

/// A text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn with_cause(error: &RunError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    /// What the command line needs to let it through, and nothing secret.
    #[test]
    fn a_real_store_is_part_of_the_command() {
        let end = |store: &str, local| {
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join("it.toml");
            let text = format!(
                "duration = \"1s\"\n{store}\n[chats]\ncount = 1\n[workload.all]\nkind = \"broadcast\"\n\
                 class = \"all\"\n[[design]]\nstrategy = \"bare\"\n"
            );
            std::fs::write(&file, text).expect("written");
            let scenario = Scenario::load(&file, &Registry::builtin()).expect("a scenario");
            let command = command("run", &scenario, &[0], 7) + owned(&scenario, local);
            command.split_once(" --seed 7").expect("the seed").1.to_owned()
        };
        let (here, there) =
            (r#"store = "redis://127.0.0.1:1/2""#, r#"store = "redis://me:secret@192.0.2.1:1""#);
        assert_eq!(end("", true), "");
        assert_eq!(end("", false), " --i-own-this-target");
        assert_eq!(end(here, true), " --store redis://127.0.0.1:1/2");
        assert_eq!(end(here, false), " --store redis://127.0.0.1:1/2 --i-own-this-target");
        assert_eq!(end(there, true), " --store redis://me@192.0.2.1:1 --i-own-this-target");
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let check = |path, expected: &str| assert_eq!(quoted(path), expected);
        check("scenarios/three-pods.toml", "scenarios/three-pods.toml");
        check("häfen/ß.toml", "häfen/ß.toml");
        check("my scenarios/a.toml", "'my scenarios/a.toml'");
        check("it's $HOME.toml", r"'it'\''s $HOME.toml'");
        check("", "''");
    }
}
