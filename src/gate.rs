//! Conditions on metrics: the grammar of `[[expect]]`, and of every threshold to come.
//!
//! A [`Rule`] names a [`Metric`], labels that select, designs, and [`Condition`]s in k6's grammar, with units:
//! `p(99) <= 5s`, `rate < 1.5%`, `== 0`, `p(99) <= 0.1 * naive-loop`. [`judge`] holds rules against outcomes, in
//! whole numbers. One principle decides about lower bounds (`≥`): *a condition passes only if it holds whatever the
//! true values behind the lower bounds are*.

mod condition;
mod metric;

use std::str::FromStr;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::names::hint;
use crate::one_or_many::OneOrMany;
use crate::outcome::{Outcome, Verdict};

pub use condition::{Aggregate, Bound, Condition, Operator, Quantity, Sign};
pub use metric::{Better, Label, METRICS, Metric, Unit};

/// What designs must show: conditions on one metric.
///
/// In TOML the table of [`Written`]; on the command line `lag{class:alert}: p(99) <= 5s`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Rule {
    /// What is measured.
    pub metric: &'static Metric,
    /// The labels that select samples, by [`Label`] name.
    pub r#where: IndexMap<String, String>,
    /// The designs that must pass. Empty: every design that no condition refers to.
    pub designs: Vec<String>,
    /// What must hold, each for itself; at least one.
    pub conditions: Vec<Condition>,
}

/// A rule as it is written in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The metric's name: `floodlab list metrics`.
    pub metric: String,
    /// Labels that select samples, as in `{ class = "reply" }`.
    #[serde(default)]
    pub r#where: IndexMap<String, String>,
    /// The designs that must pass: a name or a list; absent = every design that no condition refers to.
    #[serde(default)]
    pub design: OneOrMany<String>,
    /// What must hold: a condition or a list, as in `p(99) <= 5s` or `p(99) <= 0.1 * naive-loop`.
    pub expect: OneOrMany<String>,
}

/// The names that a rule may use: those of its scenario.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Its designs.
    pub designs: &'a [String],
    /// Its classes of messages.
    pub classes: &'a [String],
    /// The limits of its server profile.
    pub limits: &'a [String],
}

/// Why a rule cannot be used; the message names the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A name that nothing has.
    #[error("unknown {what} `{name}`{hint}")]
    Unknown {
        /// What it should name.
        what: &'static str,
        /// The name as written.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A label that the metric does not have.
    #[error("`{metric}` cannot be selected by `{label}`; {hint}")]
    Label {
        /// The metric.
        metric: &'static str,
        /// The label as written.
        label: String,
        /// What it has.
        hint: String,
    },
    /// A summary that the metric does not have.
    #[error("`{metric}` has no `{aggregate}`; it has {known}")]
    Aggregate {
        /// The metric.
        metric: &'static str,
        /// The aggregate as written.
        aggregate: String,
        /// What it has.
        known: String,
    },
    /// A quantity without its unit, or in another one.
    #[error("cannot read the right-hand side: {0}")]
    Quantity(String),
    /// Not the grammar at all.
    #[error("`{text}` is not a condition: {why}")]
    Syntax {
        /// As written.
        text: String,
        /// What is missing.
        why: &'static str,
    },
    /// The saved result to compare with.
    #[error(
        "`{RESERVED}` is reserved for saved results and not available yet; compare with a design of the scenario, as in `p(99) <= 0.1 * naive-loop`"
    )]
    Baseline,
    /// Nothing to hold against.
    #[error("`expect` is empty; write a condition, as in `p(99) <= 5s`")]
    Empty,
}

impl Rule {
    /// Checks every name against those of the scenario.
    ///
    /// # Errors
    /// An unknown design, class or limit, with the nearest known name.
    pub fn check(&self, known: Known<'_>) -> Result<(), RuleError> {
        let references = self.conditions.iter().filter_map(Condition::reference);
        for design in self.designs.iter().map(String::as_str).chain(references) {
            known_name("design", design, known.designs)?;
        }
        for (label, value) in &self.r#where {
            match Label::named(label).expect("labels are checked when a rule is read") {
                Label::Class => known_name("class", value, known.classes)?,
                Label::Limit => known_name("limit", value, known.limits)?,
            }
        }
        Ok(())
    }

    fn applies_to(&self, design: &str) -> bool {
        if self.designs.is_empty() {
            self.conditions.iter().all(|condition| condition.reference() != Some(design))
        } else {
            self.designs.iter().any(|name| name == design)
        }
    }

    /// The value that `condition` speaks of, in `outcome`.
    fn measure(&self, condition: &Condition, outcome: &Outcome) -> Option<metric::Measured> {
        self.metric.measure(
            outcome.totals(),
            condition.aggregate,
            self.r#where.values().next().map(String::as_str),
        )
    }
}

/// Holds rules against outcomes: a verdict for each rule, design that it applies to, and condition, in this order.
///
/// Where a value has no samples (its own, or that of the design referred to) the verdict has `measured: null` and
/// does not pass. A design that is not among `outcomes` (not selected with `--design`) gives no verdict, neither for
/// itself nor for a condition that refers to it.
pub fn judge(rules: &[Rule], outcomes: &[Outcome]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for rule in rules {
        for outcome in outcomes.iter().filter(|outcome| rule.applies_to(&outcome.name)) {
            for condition in &rule.conditions {
                let reference = match condition.reference() {
                    None => None,
                    Some(name) => match outcomes.iter().find(|outcome| outcome.name == name) {
                        None => continue,
                        found => found,
                    },
                };
                verdicts.push(verdict(rule, condition, outcome, reference));
            }
        }
    }
    verdicts
}

fn verdict(rule: &Rule, condition: &Condition, outcome: &Outcome, reference: Option<&Outcome>) -> Verdict {
    let reference = reference.map(|outcome| rule.measure(condition, outcome));
    // A reference without samples leaves nothing to compare with, so that nothing is reported as measured.
    let measured = rule.measure(condition, outcome).filter(|_| reference != Some(None));
    let passed = measured.is_some_and(|measured| condition.holds(measured, reference.flatten()));
    let unit = condition.unit;
    Verdict {
        metric: rule.metric.name.to_owned(),
        design: outcome.name.clone(),
        r#where: rule.r#where.clone(),
        expect: condition.written.clone(),
        measured: measured.map(|measured| measured.reported(unit)),
        unit: unit.suffix().to_owned(),
        passed,
        lower_bound: measured.is_some_and(|measured| measured.lower_bound),
        ..Verdict::default()
    }
}

impl TryFrom<Written> for Rule {
    type Error = RuleError;

    fn try_from(written: Written) -> Result<Self, RuleError> {
        let metric = Metric::named(&written.metric)?;
        for label in written.r#where.keys() {
            metric.check_label(label)?;
        }
        if written.expect.0.is_empty() {
            return Err(RuleError::Empty);
        }
        let conditions =
            written.expect.0.iter().map(|text| Condition::parse(text, metric)).collect::<Result<_, _>>()?;
        Ok(Self { metric, r#where: written.r#where, designs: written.design.0, conditions })
    }
}

/// Reads the short form, `METRIC{LABEL:VALUE}: CONDITION, …`; the labels are optional.
impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = |why| RuleError::Syntax { text: text.to_owned(), why };
        let no_colon = "a colon parts metric and condition, as in `lag: p(99) <= 5s`";
        let (head, _) = text.split_once(':').ok_or_else(|| wrong(no_colon))?;
        let (metric, labels, conditions) = match head.split_once('{') {
            None => (head, "", &text[head.len() + 1..]),
            Some((metric, _)) => {
                let (labels, rest) = text[metric.len() + 1..]
                    .split_once('}')
                    .ok_or_else(|| wrong("`{` is not closed; write `lag{class:reply}: p(99) <= 5s`"))?;
                (metric, labels, rest.trim_start().strip_prefix(':').ok_or_else(|| wrong(no_colon))?)
            }
        };
        let mut r#where = IndexMap::new();
        for label in labels.split(',').filter(|label| !label.trim().is_empty()) {
            let (name, value) =
                label.split_once(':').ok_or_else(|| wrong("a label is written `class:reply`"))?;
            r#where.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        Self::try_from(Written {
            metric: metric.trim().to_owned(),
            r#where,
            design: OneOrMany::default(),
            expect: OneOrMany(conditions.split(',').map(str::to_owned).collect()),
        })
    }
}

/// What a verdict is about, as it is written on a line: `lag{class:reply}`.
pub fn subject(verdict: &Verdict) -> String {
    labelled(&verdict.metric, &verdict.r#where)
}

/// A metric and what selects its samples, as they are written on a line.
pub(crate) fn labelled(metric: &str, r#where: &IndexMap<String, String>) -> String {
    if r#where.is_empty() {
        return metric.to_owned();
    }
    let labels: Vec<_> = r#where.iter().map(|(label, value)| format!("{label}:{value}")).collect();
    format!("{metric}{{{}}}", labels.join(","))
}

fn known_name(what: &'static str, name: &str, known: &[String]) -> Result<(), RuleError> {
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(unknown(what, name, known.iter().map(String::as_str)))
}

fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> RuleError {
    RuleError::Unknown { what, name: name.to_owned(), hint: hint(name, known) }
}

/// The name that no design may have: the saved result that a later version compares with.
pub const RESERVED: &str = "baseline";

#[cfg(test)]
mod tests;
