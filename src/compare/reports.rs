//! Two saved reports side by side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::hint;
use crate::outcome::{Difference, Report, Runs, SCHEMA_VERSION, ScenarioInfo};

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
        let (olds, news) = (Runs::of(from.1), Runs::of(to.1));
        let pairs = pairs((from.0, &olds), (to.0, &news), designs)?;
        let compared = pairs.into_iter().flat_map(|(old, new)| differences(new, old)).collect();
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
fn pairs<'r, 'a>(
    (from, olds): (&str, &'r [Runs<'a>]),
    (to, news): (&str, &'r [Runs<'a>]),
    designs: &[String],
) -> Result<Vec<(&'r Runs<'a>, &'r Runs<'a>)>, CompareError> {
    if let ([old], [new], []) = (olds, news, designs) {
        return Ok(vec![(old, new)]);
    }
    for name in designs {
        for (file, known) in [(from, olds), (to, news)] {
            if known.iter().all(|runs| runs.design != name) {
                let hint = hint(name, known.iter().map(|runs| runs.design));
                return Err(CompareError::Unknown { file: file.to_owned(), name: name.clone(), hint });
            }
        }
    }
    let wanted = |runs: &&Runs<'_>| designs.is_empty() || designs.iter().any(|name| name == runs.design);
    let old = |new: &Runs<'_>| olds.iter().find(|old| old.design == new.design);
    let common: Vec<_> = news.iter().filter(wanted).filter_map(|new| Some((old(new)?, new))).collect();
    if common.is_empty() {
        let list = |runs: &[Runs<'_>]| match runs {
            [] => "none".to_owned(),
            runs => runs.iter().map(|runs| runs.design).collect::<Vec<_>>().join(", "),
        };
        return Err(CompareError::NothingInCommon {
            from: from.to_owned(),
            from_names: list(olds),
            to: to.to_owned(),
            to_names: list(news),
        });
    }
    Ok(common)
}
