//! `floodlab run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use super::exit::{Exit, Invalid};
use super::export::{Exports, check_folder, write_folder};
use super::progress::Bars;
use crate::names::hint;
use crate::outcome::{Report, Verdict};
use crate::registry::Registry;
use crate::report;
use crate::run::{self, Failed, Options};
use crate::scenario::Scenario;
#[cfg(feature = "redis")]
use crate::store::redis::Redis;
use crate::store::url::StoreUrl;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Scenario files.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// Run only these designs.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    design: Vec<String>,
    /// The seed, instead of the scenario's [env: FLOODLAB_SEED].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Exit with 99 if an `[[expect]]` fails.
    #[arg(long)]
    expect: bool,
    /// The report folder [default: reports/NAME; of several scenarios DIR/NAME].
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print; an export to standard output is printed alone.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    exports: Exports,
    /// Put what processes share on this Redis, instead of the scenario's store; redis://[user[:password]@]host[:port].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Use a Redis that is not on this machine.
    #[arg(long)]
    i_own_this_target: bool,
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
///
/// All that can be known to go wrong is found before the first is run: nobody waits for an hour to hear of a slip of the
/// keyboard.
pub(super) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let several = arguments.scenarios.len() > 1;
    arguments.check();
    let seed = arguments.seed();
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let handler = move || {
        // Asked twice, nothing is waited for.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    ctrlc::set_handler(handler).context("cannot listen for interrupts")?;
    let jobs = arguments.scenarios.iter().map(|file| Job::new(file, arguments, registry));
    let jobs = jobs.collect::<anyhow::Result<Vec<_>>>()?;
    check_folders(&jobs)?;
    arguments.exports.check()?;
    let mut exit = Exit::Passed;
    for (done, job) in jobs.iter().enumerate() {
        if interrupted.load(Ordering::Relaxed) {
            if several {
                super::tell(&format!("interrupted: {done} of {} scenarios were run", jobs.len()));
            }
            return Ok(Exit::Interrupted);
        }
        exit = exit.max(job.run(arguments, seed, &interrupted)?);
    }
    Ok(exit)
}

/// Whether every report has a folder of its own, and it can be written.
fn check_folders(jobs: &[Job]) -> anyhow::Result<()> {
    for (index, job) in jobs.iter().enumerate() {
        if let Some(other) = jobs[..index].iter().find(|other| other.folder == job.folder) {
            let (one, two, name) =
                (other.scenario.file.display(), job.scenario.file.display(), &job.scenario.name);
            let message = if job.scenario.file == other.scenario.file {
                format!("{one} is given twice, and the second report would replace the first; give it once")
            } else {
                format!(
                    "{one} and {two} are both called `{name}`, so the report of one would replace the other's; \
                     give one of them another `name`, or run them one by one with --output"
                )
            };
            return Err(Invalid(message).into());
        }
    }
    jobs.iter().try_for_each(|job| check_folder(&job.folder))
}

/// A scenario, what of it is to be run, and where the report goes.
struct Job {
    scenario: Scenario,
    designs: Vec<usize>,
    folder: PathBuf,
}

impl Job {
    fn new(file: &Path, arguments: &Arguments, registry: &Registry) -> anyhow::Result<Self> {
        let mut scenario = Scenario::load(file, registry)?;
        if let Some(url) = arguments.store() {
            scenario.store.url = Some(url);
        }
        arguments.check_store(&scenario)?;
        let known = || scenario.designs.iter().map(|design| design.name.as_str());
        if let Some(name) = arguments.design.iter().find(|name| known().all(|known| known != *name)) {
            let hint = hint(name, known());
            return Err(Invalid(format!("{}: unknown design `{name}`{hint}", file.display())).into());
        }
        let selected = |index: &usize| {
            arguments.design.is_empty() || arguments.design.contains(&scenario.designs[*index].name)
        };
        let designs = (0..scenario.designs.len()).filter(selected).collect();
        let folder = match &arguments.output {
            None => Path::new("reports").join(&scenario.name),
            Some(folder) if arguments.scenarios.len() > 1 => folder.join(&scenario.name),
            Some(folder) => folder.clone(),
        };
        Ok(Self { scenario, designs, folder })
    }

    /// Runs it, writes and prints what was finished, then says what was not.
    fn run(
        &self,
        arguments: &Arguments,
        seed: Option<u64>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Exit> {
        let scenario = &self.scenario;
        #[expect(clippy::disallowed_methods, reason = "the `host` blocks say how long it took")]
        let begun = std::time::Instant::now();
        let options = Options {
            seed: seed.unwrap_or(scenario.seed),
            designs: self.designs.clone(),
            jobs: arguments.jobs.map(usize::from),
            check_determinism: arguments.check_determinism,
            shuffle_ties: arguments.shuffle_ties,
            interrupted,
            wall_us: &move || u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
        let bars = Bars::new(scenario);
        let result = run::run(scenario, &options, &|progress| bars.show(progress));
        drop(bars);
        let (report, errors) = match result {
            Ok(report) => (report, Vec::new()),
            Err(Failed { report, errors }) => (*report, errors),
        };
        // An earlier report is worth more than an empty one.
        let published = if report.designs.is_empty() { Ok(()) } else { self.publish(arguments, &report) };
        let mut exit = Exit::Passed;
        for error in errors {
            let error = anyhow::Error::from(error);
            super::complain(&error);
            exit = exit.max(Exit::of(&error));
        }
        published?;
        if report.unfinished.iter().any(|design| design.error.is_none()) {
            let (finished, all) = (report.designs.len(), self.designs.len());
            let nothing = if finished == 0 { "; nothing is written" } else { "" };
            super::tell(&format!("interrupted: {finished} of {all} designs finished{nothing}"));
            exit = Exit::Interrupted;
        }
        Ok(if report.unfinished.is_empty() { self.judge(arguments, &report) } else { exit })
    }

    /// Writes the folder and the exports, and prints.
    fn publish(&self, arguments: &Arguments, report: &Report) -> anyhow::Result<()> {
        let files = report::files(report);
        write_folder(&self.folder, &files)?;
        arguments.exports.write(report, &files)?;
        match arguments.format {
            // Whoever reads the export wants nothing else.
            Format::Text if arguments.exports.to_stdout() > 0 => Ok(()),
            Format::Text => {
                super::print(&report::table(report, true, super::width()))?;
                super::print(&format!("report: {}", self.folder.display()))
            }
            Format::Json => super::print(&report::json(report)),
            Format::Md => super::print(&report::markdown(report)),
            Format::Quiet => Ok(()),
        }
    }

    fn judge(&self, arguments: &Arguments, report: &Report) -> Exit {
        let file = self.scenario.file.display();
        if report.designs.iter().all(|design| design.metrics.due == 0) {
            super::complain(&anyhow!(
                "nothing to run: no message of {file} falls due; is `duration` too short, or a rate too low?"
            ));
            return Exit::Nothing;
        }
        let expectations = report.expectations.iter().filter(|_| arguments.expect);
        let failed: Vec<&Verdict> = report.gates.iter().chain(expectations).filter(|v| !v.passed).collect();
        match failed.as_slice() {
            _ if arguments.no_fail => Exit::Passed,
            [] if arguments.expect && report.expectations.is_empty() => {
                let why = match self.scenario.expectations.len() {
                    0 => format!("{file} has no [[expect]]"),
                    _ => format!(
                        "the expectations of {file} were skipped, because designs that they are about were not \
                         selected; leave --design out"
                    ),
                };
                super::complain(&anyhow!("nothing to judge: {why}"));
                Exit::Nothing
            }
            [] => Exit::Passed,
            failed if failed.iter().all(|verdict| verdict.measured.is_none()) => Exit::Nothing,
            _ => Exit::GateFailed,
        }
    }
}

impl Arguments {
    /// What clap does not see is wrong with the command line.
    fn check(&self) {
        if self.scenarios.len() > 1 && !self.exports.is_empty() {
            super::usage("--export-* writes one result; run one scenario, or use --output");
        }
        let printed = usize::from(matches!(self.format, Format::Json | Format::Md));
        if self.exports.to_stdout() + printed > 1 {
            super::usage("only one document can go to standard output; export the others to files");
        }
    }

    /// Whether the scenario can be run on its Redis, and its owner wants that.
    fn check_store(&self, scenario: &Scenario) -> anyhow::Result<()> {
        let Some(url) = &scenario.store.url else { return Ok(()) };
        let file = scenario.file.display();
        if !url.is_loopback() && !self.i_own_this_target {
            let message = format!(
                "{file}: the store {url} is not on this machine; a run puts load on it, so say --i-own-this-target if it is yours"
            );
            return Err(Invalid(message).into());
        }
        if let Some((strategy, script)) = scenario.unwritten_script() {
            let message = format!(
                "{file}: the script `{script}` of strategy `{strategy}` is not written for a real Redis, so it cannot run on {url}"
            );
            return Err(Invalid(message).into());
        }
        #[cfg(feature = "redis")]
        Redis::open(url, scenario.store.timeout).map(drop)?;
        Ok(())
    }

    /// The Redis that somebody asks for. clap's error would show its password.
    fn store(&self) -> Option<StoreUrl> {
        let url = self.store.as_deref()?.parse();
        Some(url.unwrap_or_else(|error| super::usage(&format!("--store: {error}"))))
    }

    /// The seed that somebody asks for. clap reads variables too, but its errors do not name them.
    fn seed(&self) -> Option<u64> {
        self.seed.or_else(|| {
            let text = std::env::var_os(SEED)?;
            let seed = text.to_str().and_then(|text| text.parse().ok());
            seed.or_else(|| {
                super::usage(&format!("{SEED} is `{}`; a seed is a whole number from 0 on", text.display()))
            })
        })
    }
}

const SEED: &str = "FLOODLAB_SEED";
