//! The saved result that gates compare with: where it lies, and whether it will do.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::exit::Invalid;
use super::{export, saved};
use crate::gate::{self, Lacking};
use crate::outcome::{Report, Runs};
use crate::report;
use crate::run::Saved;
use crate::scenario::Scenario;

/// Where baselines lie, from the working directory.
const FOLDER: &str = "reports/baseline";

#[derive(Debug, clap::Args)]
pub(super) struct Baseline {
    /// The saved result that gates compare with: a file, or a folder with NAME.json [default: reports/baseline, if a gate
    /// asks for it].
    #[arg(long, value_name = "PATH")]
    baseline: Option<PathBuf>,
    /// Save the result as the baseline, after the gates are judged by the old one.
    #[arg(long)]
    pub(super) save_baseline: bool,
    /// Leave out conditions on a baseline that is not there.
    #[arg(long)]
    baseline_lenient: bool,
}

impl Baseline {
    /// Whether the result is to be saved where a simulation's lies by default.
    #[cfg(feature = "live")]
    pub(super) fn replaces_the_usual(&self) -> bool {
        self.save_baseline && self.baseline.is_none()
    }

    /// Where the baseline of a scenario lies; the scenario is one of `several`.
    pub(super) fn file(&self, scenario: &Scenario, several: bool) -> PathBuf {
        let in_folder = |folder: &Path| folder.join(format!("{}.json", scenario.name));
        match &self.baseline {
            None => in_folder(Path::new(FOLDER)),
            Some(path) if several || path.is_dir() || path.extension().is_none() => in_folder(path),
            Some(file) => file.clone(),
        }
    }

    /// The baseline of a scenario, if it is there and wanted.
    pub(super) fn load(
        &self,
        scenario: &Scenario,
        designs: &[usize],
        several: bool,
    ) -> anyhow::Result<Option<Saved>> {
        let designs: Vec<&str> =
            designs.iter().map(|design| scenario.designs[*design].name.as_str()).collect();
        if self.baseline.is_none() && gate::lacking(&scenario.gates, &designs, &[]).is_empty() {
            return Ok(None);
        }
        let file = self.file(scenario, several);
        let is_lenient = self.baseline_lenient || self.save_baseline;
        let report = match saved::load(&file) {
            _ if !file.exists() => None,
            Ok((_, report)) => Some(report),
            // It is about to be replaced.
            Err(error) if self.save_baseline => {
                super::tell(&format!("the old baseline is of no use: {error}"));
                None
            }
            Err(error) => return Err(error),
        };
        let saved = report.as_ref().map(Runs::of).unwrap_or_default();
        let lacking = gate::lacking(&scenario.gates, &designs, &saved);
        let file = file.display().to_string();
        if is_lenient {
            let mut conditions = lacking;
            conditions.dedup_by(|one, other| std::ptr::eq(one.condition, other.condition));
            if !conditions.is_empty() {
                super::tell(&format!(
                    "the baseline {file} has nothing for {}, left out for now",
                    counted(conditions.len(), "condition")
                ));
            }
        } else if let Some(what) = lacks(&file, report.is_some(), lacking.first()) {
            let again = "make it with --save-baseline, or leave such conditions out with --baseline-lenient";
            return Err(Invalid(format!("{what}; {again}")).into());
        }
        Ok(report.map(|report| Saved { file, report }))
    }
}

/// What is wrong with a baseline that is there or not, and of which this is asked.
fn lacks(file: &str, exists: bool, asked: Option<&Lacking<'_>>) -> Option<String> {
    let Some(Lacking { rule, condition, design, has_design }) = asked else {
        return (!exists).then(|| format!("a baseline is asked for, and {file} does not exist"));
    };
    let gate = format!("the gate `{}: {}`", rule.metric.name, condition.written);
    Some(match (exists, has_design) {
        (false, _) => format!("{gate} compares with a baseline, and {file} does not exist"),
        (true, false) => format!("the baseline {file} has no design `{design}`"),
        (true, true) => format!("the baseline {file} was saved without the windows of {gate}"),
    })
}

/// Writes the baseline.
pub(super) fn save(file: &Path, made: &Report) -> anyhow::Result<()> {
    export::write(file, report::json(&made.baseline()).as_bytes()).context("the baseline is not saved")
}

/// `1 condition`, `2 conditions`.
pub(super) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
