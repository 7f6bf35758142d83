//! What the verbs that run a scenario have in common: what of it is to be run, where the results go, and how it is judged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};

use super::baseline::{self, Baseline};
use super::exit::{Exit, Invalid};
use super::export::{self, Exports, Format, write_folder};
use crate::gate::Rule;
use crate::names::hint;
use crate::outcome::{Report, Verdict};
use crate::registry::Registry;
use crate::report;
use crate::run::{Failed, Saved};
use crate::scenario::Scenario;
#[cfg(feature = "redis")]
use crate::store::redis::Redis;
use crate::store::url::StoreUrl;

/// What of a scenario is to be run, and where the results go.
#[derive(Debug, clap::Args)]
pub(super) struct Choice {
    /// Run only these designs.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    design: Vec<String>,
    /// The seed, instead of the scenario's [env: FLOODLAB_SEED].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Add a gate, as in 'lag{class:reply}: p(99) <= 5s' or 'lost == 0'; repeatable. `floodlab list metrics`.
    #[arg(long, value_name = "GATE")]
    gate: Vec<String>,
    #[command(flatten)]
    pub(super) baseline: Baseline,
    /// Exit with 99 if an `[[expect]]` fails.
    #[arg(long)]
    pub(super) expect: bool,
    /// The report folder [default: reports/NAME; of several scenarios DIR/NAME].
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print; an export to standard output is printed alone.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    pub(super) exports: Exports,
    /// Put what processes share on this Redis, instead of the scenario's store;
    /// redis://[user[:password]@]host[:port][/database].
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Call a server, or use a Redis, that is not on this machine: it is yours to flood.
    #[arg(long)]
    pub(super) i_own_this_target: bool,
    /// A failed gate does not change the exit code.
    #[arg(long)]
    no_fail: bool,
}

/// Listens for interrupts, by Ctrl-C or by whoever ends the program (SIGTERM, SIGHUP): whether there was one.
pub(super) fn interrupts() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let handler = move || {
        // Asked twice, nothing is waited for.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    ctrlc::set_handler(handler).context("cannot listen for interrupts")?;
    Ok(interrupted)
}

/// A scenario, what of it is to be run, and where the report goes.
pub(super) struct Job {
    pub(super) scenario: Scenario,
    pub(super) designs: Vec<usize>,
    pub(super) folder: PathBuf,
    /// What gates compare with.
    pub(super) baseline: Option<Saved>,
    /// Where the result is saved to be compared with.
    save_baseline: Option<PathBuf>,
}

impl Job {
    /// Reads a scenario; of `several` each has its folder below the one that was named.
    pub(super) fn new(
        file: &Path,
        choice: &Choice,
        several: bool,
        registry: &Registry,
    ) -> anyhow::Result<Self> {
        let mut scenario = Scenario::load(file, registry)?;
        if let Some(url) = choice.store() {
            scenario.store.url = Some(url);
        }
        choice.check_store(&scenario)?;
        for gate in &choice.gate {
            scenario.add_gate(gate).map_err(|error| Invalid(format!("--gate '{gate}': {error}")))?;
        }
        let known = || scenario.designs.iter().map(|design| design.name.as_str());
        if let Some(name) = choice.design.iter().find(|name| known().all(|known| known != *name)) {
            let hint = hint(name, known());
            return Err(Invalid(format!("{}: unknown design `{name}`{hint}", file.display())).into());
        }
        let selected = |index: &usize| {
            choice.design.is_empty() || choice.design.contains(&scenario.designs[*index].name)
        };
        let designs: Vec<usize> = (0..scenario.designs.len()).filter(selected).collect();
        let baseline = choice.baseline.load(&scenario, &designs, several)?;
        let save_baseline = choice.baseline.save_baseline.then(|| choice.baseline.file(&scenario, several));
        let folder = match &choice.output {
            None => Path::new("reports").join(&scenario.name),
            Some(folder) if several => folder.join(&scenario.name),
            Some(folder) => folder.clone(),
        };
        Ok(Self { scenario, designs, folder, baseline, save_baseline })
    }

    /// Finds out whether the report folder can be written, and the baseline's.
    pub(super) fn check_folder(&self) -> anyhow::Result<()> {
        export::check_folder(&self.folder)?;
        self.save_baseline
            .as_deref()
            .map_or(Ok(()), |file| export::check_file(file, "cannot save the baseline to"))
    }

    /// Writes and prints what was finished, says what was not, and judges.
    pub(super) fn conclude(&self, choice: &Choice, result: Result<Report, Failed>) -> anyhow::Result<Exit> {
        let (report, errors) = match result {
            Ok(report) => (report, Vec::new()),
            Err(Failed { report, errors }) => (*report, errors),
        };
        // An earlier report is worth more than an empty one.
        let published = if report.designs.is_empty() { Ok(()) } else { self.publish(choice, &report) };
        let mut exit = Exit::Passed;
        for error in errors {
            let error = anyhow::Error::from(error);
            super::complain(&error);
            exit = exit.max(Exit::of(&error));
        }
        published?;
        let cut = report
            .designs
            .iter()
            .any(|design| design.live.as_ref().is_some_and(|live| live.interrupted_us.is_some()));
        if cut {
            super::tell("interrupted: the report ends where the run did");
            exit = Exit::Interrupted;
        } else if report.unfinished.iter().any(|design| design.error.is_none()) {
            let (finished, what) = match &report.replications {
                Some(all) => (all.runs.len(), "runs"),
                None => (report.designs.len(), "designs"),
            };
            let all = finished + report.unfinished.len();
            let nothing = if report.designs.is_empty() { "; nothing is written" } else { "" };
            super::tell(&format!("interrupted: {finished} of {all} {what} finished{nothing}"));
            exit = Exit::Interrupted;
        }
        if !report.unfinished.is_empty() || cut {
            if self.save_baseline.is_some() {
                super::tell("the baseline is not saved: the result is not whole");
            }
            return Ok(exit);
        }
        if let Some(file) = &self.save_baseline {
            baseline::save(file, &report)?;
            super::tell(&format!("baseline: {}", file.display()));
        }
        Ok(self.judge(choice, &report))
    }

    /// Writes the folder and the exports, and prints.
    fn publish(&self, choice: &Choice, report: &Report) -> anyhow::Result<()> {
        let files = report::files(report);
        write_folder(&self.folder, &files)?;
        choice.exports.write(report, &files)?;
        match choice.format {
            // Whoever reads the export wants nothing else.
            Format::Text if choice.exports.to_stdout() > 0 => Ok(()),
            Format::Text => {
                super::print(&report::table(report, true, super::width()))?;
                super::print(&format!("report: {}", self.folder.display()))
            }
            Format::Json => super::print(&report::json(report)),
            Format::Md => super::print(&report::markdown(report)),
            Format::Quiet => Ok(()),
        }
    }

    /// Whether there are gates, and none was about what was run.
    fn skips_all_gates(&self, report: &Report) -> bool {
        let is_about_others = |gate: &Rule| {
            let is_run = |name: &str| report.designs.iter().any(|design| design.name == name);
            let references = gate.conditions.iter().filter_map(|condition| condition.design());
            !report.designs.iter().any(|design| gate.applies_to(&design.name))
                || !references.into_iter().all(is_run)
        };
        let gates = &self.scenario.gates;
        !gates.is_empty() && report.gates.is_empty() && gates.iter().any(is_about_others)
    }

    fn judge(&self, choice: &Choice, report: &Report) -> Exit {
        let file = self.scenario.file.display();
        if report.designs.iter().all(|design| design.metrics.due == 0) {
            super::complain(&anyhow!(
                "nothing to run: no message of {file} falls due; is `duration` too short, or a rate too low?"
            ));
            return Exit::Nothing;
        }
        let expectations = report.expectations.iter().filter(|_| choice.expect);
        let failed: Vec<&Verdict> = report.gates.iter().chain(expectations).filter(|v| !v.passed).collect();
        match failed.as_slice() {
            [] if self.skips_all_gates(report) => {
                super::complain(&anyhow!(
                    "nothing to judge: the gates of {file} were skipped, because designs that they are about were not \
                     selected; leave --design out"
                ));
                Exit::Nothing
            }
            [] if choice.expect && report.expectations.is_empty() => {
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
            _ if choice.no_fail => Exit::Passed,
            _ => Exit::GateFailed,
        }
    }
}

impl Choice {
    /// What clap does not see is wrong with the command line.
    pub(super) fn check(&self, several: bool) {
        if several && !self.exports.is_empty() {
            super::usage("--export-* writes one result; run one scenario, or use --output");
        }
        if self.baseline.save_baseline && !self.design.is_empty() {
            super::usage("--save-baseline saves the result of all designs; leave --design out");
        }
        self.format.check_alone(self.exports.to_stdout());
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
    pub(super) fn seed(&self) -> Option<u64> {
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
