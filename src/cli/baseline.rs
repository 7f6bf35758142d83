//! The saved result that gates compare with: where it lies, and whether it will do.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::exit::Invalid;
use super::{export, saved};
use crate::gate::{Reference, has_windows};
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
        let on_baseline = scenario.gates.iter().flat_map(|gate| {
            let of = gate
                .conditions
                .iter()
                .filter(|condition| condition.reference() == Some(&Reference::Baseline));
            of.map(move |condition| (gate, condition))
        });
        let on_baseline: Vec<_> = on_baseline.collect();
        if on_baseline.is_empty() && self.baseline.is_none() {
            return Ok(None);
        }
        let file = self.file(scenario, several);
        let is_lenient = self.baseline_lenient || self.save_baseline;
        if !file.exists() && is_lenient {
            if !on_baseline.is_empty() {
                super::tell(&format!(
                    "no baseline yet ({}): {} of it {} not judged",
                    file.display(),
                    counted(on_baseline.len(), "condition"),
                    if on_baseline.len() == 1 { "is" } else { "are" },
                ));
            }
            return Ok(None);
        }
        let again = "make it with --save-baseline, or leave such conditions out with --baseline-lenient";
        if !file.exists() {
            let asked = match on_baseline.first() {
                Some((gate, condition)) => {
                    format!("the gate `{}: {}` compares with a baseline", gate.metric.name, condition.written)
                }
                None => "a baseline is asked for".to_owned(),
            };
            return Err(Invalid(format!("{asked}, and {} does not exist; {again}", file.display())).into());
        }
        let report = match saved::load(&file) {
            Ok((_, report)) => report,
            // It is about to be replaced.
            Err(error) if self.save_baseline => {
                super::tell(&format!("the old baseline is of no use: {error}"));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let saved = Runs::of(&report);
        for (gate, condition) in on_baseline.iter().filter(|_| !is_lenient) {
            let judged = designs.iter().map(|design| &scenario.designs[*design].name);
            for name in judged.filter(|name| gate.applies_to(name)) {
                let Some(runs) = saved.iter().find(|runs| runs.design == name) else {
                    let file = file.display();
                    return Err(
                        Invalid(format!("the baseline {file} has no design `{name}`; {again}")).into()
                    );
                };
                if !has_windows(gate, condition, runs) {
                    let (file, metric) = (file.display(), gate.metric.name);
                    return Err(Invalid(format!(
                        "the baseline {file} was saved without the windows of the gate `{metric}: {}`; {again}",
                        condition.written
                    ))
                    .into());
                }
            }
        }
        Ok(Some(Saved { file: file.display().to_string(), report }))
    }
}

/// Writes the baseline.
pub(super) fn save(file: &Path, made: &Report) -> anyhow::Result<()> {
    export::write(file, report::json(&made.baseline()).as_bytes()).context("the baseline is not saved")
}

/// `1 condition`, `2 conditions`.
pub(super) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
