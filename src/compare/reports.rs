//! Two saved reports side by side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::hint;
use crate::outcome::{Difference, Report, Run, Runs, SCHEMA_VERSION, ScenarioInfo};

use super::differences;

/// How a newer result differs from an older one: what `floodlab compare --format json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The version of this layout: that of `report.json`.
    pub schema_version: u32,
    /// The older result.
    pub from: Side,
    /// The newer one.
    pub to: Side,
    /// What differs, by design, then in the order of metrics.
    pub differences: Vec<Difference>,
}

/// One of the two results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Its file.
    pub file: String,
    /// The tool that made it.
    pub tool: String,
    /// Its seeds.
    pub seeds: Vec<u64>,
    /// What was run.
    pub scenario: ScenarioInfo,
}

/// Why two results cannot be compared; the message names the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A design that one of them does not have.
    #[error("{file}: unknown design `{name}`{hint}")]
    Unknown {
        /// The file that does not have it.
        file: String,
        /// The name as given.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// Nothing to compare.
    #[error(
        "no design in common: {from} has {from_names}, {to} has {to_names}; give one name to what is to be compared, \
         or save results of one design each"
    )]
    NothingInCommon {
        /// The older file.
        from: String,
        /// Its designs.
        from_names: String,
        /// The newer file.
        to: String,
        /// Its designs.
        to_names: String,
    },
}

impl Comparison {
    /// Compares two reports, each with the name of its file: designs of the same name, or if both have exactly one, these. If
    /// `designs` are named, only they are compared.
    ///
    /// # Errors
    /// If a report does not have a design that was named, or the two have none in common.
    pub fn new(from: (&str, &Report), to: (&str, &Report), designs: &[String]) -> Result<Self, CompareError> {
        let mut compared = Vec::new();
        for (against, design) in pairs(from, to, designs)? {
            compared.extend(differences(&runs(to.1, design), &runs(from.1, against)));
        }
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            from: Side::new(from),
            to: Side::new(to),
            differences: compared,
        })
    }
}

impl Side {
    fn new((file, report): (&str, &Report)) -> Self {
        let (tool, scenario) = (report.tool.clone(), report.scenario.clone());
        Self { file: file.to_owned(), tool, seeds: report.seeds().to_vec(), scenario }
    }
}

/// Which designs are compared, older and newer, in the newer one's order.
fn pairs<'a>(
    from: (&str, &'a Report),
    to: (&str, &'a Report),
    designs: &[String],
) -> Result<Vec<(&'a str, &'a str)>, CompareError> {
    let (olds, news) = (names(from.1), names(to.1));
    if let ([old], [new], []) = (&*olds, &*news, designs) {
        return Ok(vec![(old, new)]);
    }
    for name in designs {
        for (file, known) in [(from.0, &olds), (to.0, &news)] {
            if !known.contains(&name.as_str()) {
                let hint = hint(name, known.iter().copied());
                return Err(CompareError::Unknown { file: file.to_owned(), name: name.clone(), hint });
            }
        }
    }
    let wanted = |name: &str| designs.is_empty() || designs.iter().any(|design| design == name);
    let common: Vec<_> =
        news.iter().filter(|name| olds.contains(name) && wanted(name)).map(|name| (*name, *name)).collect();
    if common.is_empty() {
        let list = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(CompareError::NothingInCommon {
            from: from.0.to_owned(),
            from_names: list(&olds),
            to: to.0.to_owned(),
            to_names: list(&news),
        });
    }
    Ok(common)
}

/// The designs that a report has results of.
fn names(report: &Report) -> Vec<&str> {
    let firsts = report.designs.iter().map(|outcome| outcome.name.as_str());
    let runs = report.replications.iter().flat_map(|replications| &replications.runs);
    let mut names = Vec::new();
    for name in firsts.chain(runs.map(|run| run.design.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn runs<'a>(report: &'a Report, design: &'a str) -> Runs<'a> {
    let run = |(seed, totals)| Run { seed, totals, lags: None };
    Runs { design, runs: report.totals_of(design).into_iter().map(run).collect() }
}
