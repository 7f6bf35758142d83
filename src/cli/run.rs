//! `floodlab run`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::{CommandFactory, ValueEnum};

use super::exit::{Exit, Invalid};
use super::export::{Exports, write_folder};
use super::progress::Bars;
use crate::names::hint;
use crate::outcome::{Report, Verdict};
use crate::registry::Registry;
use crate::report;
use crate::run::{self, Options};
use crate::scenario::Scenario;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Scenario files.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// Run only these designs.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    design: Vec<String>,
    /// The seed, instead of the scenario's.
    #[arg(long, value_name = "N", env = "FLOODLAB_SEED")]
    seed: Option<u64>,
    /// Exit with 99 if an `[[expect]]` fails.
    #[arg(long)]
    expect: bool,
    /// The report folder [default: reports/NAME; of several scenarios DIR/NAME].
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    exports: Exports,
    /// Run everything twice and compare.
    #[arg(long)]
    check_determinism: bool,
    /// Shuffle simultaneous events with this key: finds senders that live off their order.
    #[arg(long, value_name = "N")]
    shuffle_ties: Option<u64>,
    /// How many designs run at a time [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// A failed gate does not change the exit code.
    #[arg(long)]
    no_fail: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// What `report.json` holds.
    Json,
    /// What `report.md` holds.
    Md,
    /// Nothing.
    Quiet,
}

/// Runs every scenario; the gravest exit code decides.
pub(super) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    if arguments.scenarios.len() > 1 && !arguments.exports.is_empty() {
        let message = "--export-* writes one result; run one scenario, or use --output";
        super::Cli::command().error(clap::error::ErrorKind::ArgumentConflict, message).exit();
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let handler = move || {
        // Asked twice, nothing is waited for.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    ctrlc::set_handler(handler).context("cannot listen for interrupts")?;
    // All are read before the first is run: nobody waits for an hour to hear of a slip of the keyboard.
    let scenarios = arguments.scenarios.iter().map(|file| Job::new(file, arguments, registry));
    let scenarios = scenarios.collect::<anyhow::Result<Vec<_>>>()?;
    let mut exit = Exit::Passed;
    for job in &scenarios {
        exit = exit.max(job.run(arguments, scenarios.len() > 1, &interrupted)?);
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
    }
    Ok(exit)
}

/// A scenario and what of it is to be run.
struct Job {
    scenario: Scenario,
    designs: Vec<usize>,
}

impl Job {
    fn new(file: &std::path::Path, arguments: &Arguments, registry: &Registry) -> anyhow::Result<Self> {
        let scenario = Scenario::load(file, registry)?;
        let known = || scenario.designs.iter().map(|design| design.name.as_str());
        if let Some(name) = arguments.design.iter().find(|name| known().all(|known| known != *name)) {
            let hint = hint(name, known());
            return Err(Invalid(format!("{}: unknown design `{name}`{hint}", file.display())).into());
        }
        let selected = |index: &usize| {
            arguments.design.is_empty() || arguments.design.contains(&scenario.designs[*index].name)
        };
        let designs = (0..scenario.designs.len()).filter(selected).collect();
        Ok(Self { scenario, designs })
    }

    fn run(
        &self,
        arguments: &Arguments,
        one_of_many: bool,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Exit> {
        let scenario = &self.scenario;
        #[expect(clippy::disallowed_methods, reason = "the `host` blocks say how long it took")]
        let begun = std::time::Instant::now();
        let options = Options {
            seed: arguments.seed.unwrap_or(scenario.seed),
            designs: self.designs.clone(),
            jobs: arguments.jobs.map(usize::from),
            check_determinism: arguments.check_determinism,
            shuffle_ties: arguments.shuffle_ties,
            interrupted,
            wall_us: &move || u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
        let bars = Bars::new(scenario);
        let report = run::run(scenario, &options, &|progress| bars.show(progress))?;
        drop(bars);
        let folder = match &arguments.output {
            None => PathBuf::from("reports").join(&scenario.name),
            Some(folder) if one_of_many => folder.join(&scenario.name),
            Some(folder) => folder.clone(),
        };
        let files = report::files(&report);
        write_folder(&folder, &files)?;
        arguments.exports.write(&report, &files)?;
        match arguments.format {
            Format::Text => {
                super::print(&report::table(&report, true, super::width()))?;
                super::print(&format!("report: {}", folder.display()))?;
            }
            Format::Json => super::print(&report::json(&report))?,
            Format::Md => super::print(&report::markdown(&report))?,
            Format::Quiet => {}
        }
        Ok(arguments.judge(&report))
    }
}

impl Arguments {
    fn judge(&self, report: &Report) -> Exit {
        let expectations = report.expectations.iter().filter(|_| self.expect);
        let failed: Vec<&Verdict> = report.gates.iter().chain(expectations).filter(|v| !v.passed).collect();
        match failed.as_slice() {
            [] => Exit::Passed,
            _ if self.no_fail => Exit::Passed,
            failed if failed.iter().all(|verdict| verdict.measured.is_none()) => Exit::Nothing,
            _ => Exit::GateFailed,
        }
    }
}
