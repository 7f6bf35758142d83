//! Conditions on metrics: the grammar of gates and of `[[expect]]`.
//!
//! A [`Rule`] names a [`Metric`], labels that select, designs, and [`Condition`]s in k6's grammar, with units:
//! `p(99) <= 5s`, `rate < 1.5%`, `== 0`, `p(99) <= 0.1 * naive-loop`, `p(99) <= baseline * 1.1`. [`judge`] holds rules against outcomes, in
//! whole numbers. One principle decides about lower bounds (`≥`): *a condition passes only if it holds whatever the
//! true values behind the lower bounds are*.

mod condition;
mod metric;
mod judge;
mod windows;

use std::str::FromStr;

use fake_telegram::time::Duration;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::names::hint;
use crate::one_or_many::OneOrMany;
use crate::outcome::{Totals, Verdict};

pub use condition::{Aggregate, BASELINE, Bound, Condition, Operator, Quantity, Reference, Sign};
use metric::Measured;

pub use judge::{Lacking, judge, lacking};
pub use metric::{Better, Label, METRICS, Metric, Unit};
pub use windows::{widths, worst};

/// What designs must show: conditions on one metric.
///
/// In TOML the table of [`Written`]; on the command line `lag{class:alert}: p(99) <= 5s over any 60s`.
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
    /// Judges the worst window of this width, in the place of the whole run. Windows begin at multiples of it.
    pub over: Option<Duration>,
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
    /// What must hold: a condition or a list, as in `p(99) <= 5s`, `p(99) <= 0.1 * naive-loop` or
    /// `p(99) <= baseline * 1.1`.
    pub expect: OneOrMany<String>,
    /// Judges the worst window in the place of the whole run, as in `any 60s`.
    #[serde(default)]
    pub over: Option<String>,
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
    /// When its run ends.
    pub horizon: Duration,
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
    /// A metric or an operator that cannot be judged by windows, or windows that cannot be cut.
    #[error("`over`: {0}")]
    Over(String),
    /// What a scenario shows cannot depend on a saved result.
    #[error("`{BASELINE}` is a saved result, which `[[expect]]` cannot rest on; write a [[gate]]")]
    Unbased,
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
        let references = self.conditions.iter().filter_map(Condition::design);
        for design in self.designs.iter().map(String::as_str).chain(references) {
            known_name("design", design, known.designs)?;
        }
        if let Some(over) = self.over {
            Self::check_windows(over, known.horizon)?;
        }
        for (label, value) in &self.r#where {
            match Label::named(label).expect("labels are checked when a rule is read") {
                Label::Class => known_name("class", value, known.classes)?,
                Label::Limit => known_name("limit", value, known.limits)?,
            }
        }
        Ok(())
    }

    fn check_windows(over: Duration, horizon: Duration) -> Result<(), RuleError> {
        if horizon.as_micros() / over.as_micros() > WINDOWS_MAX {
            let least = match horizon.as_secs_ceil() / WINDOWS_MAX {
                0 => Duration::from_micros(horizon.as_micros().div_ceil(WINDOWS_MAX)),
                _ => Duration::from_secs(horizon.as_secs_ceil().div_ceil(WINDOWS_MAX)),
            };
            return Err(RuleError::Over(format!(
                "a run of {horizon} has more than {WINDOWS_MAX} windows of {over}; write at least {least}"
            )));
        }
        Ok(())
    }

    /// The value that `condition` speaks of, over these totals.
    fn measure(&self, condition: &Condition, totals: Totals<'_>) -> Option<Measured> {
        self.metric.measure(totals, condition.aggregate, self.r#where.values().next().map(String::as_str))
    }

    /// Whether a design must pass it.
    pub fn applies_to(&self, design: &str) -> bool {
        if self.designs.is_empty() {
            self.conditions.iter().all(|condition| condition.design() != Some(design))
        } else {
            self.designs.iter().any(|name| name == design)
        }
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
        let conditions = written.expect.0.iter().map(|text| Condition::parse(text, metric));
        let conditions = conditions.collect::<Result<Vec<_>, _>>()?;
        let over = written.over.as_deref().map(width).transpose()?;
        if over.is_some() {
            if !metric.by_window {
                let windowed = METRICS.iter().filter(|metric| metric.by_window);
                let windowed: Vec<_> = windowed.map(|metric| metric.name).collect();
                return Err(RuleError::Over(format!(
                    "`{}` is known for the whole run only; by windows there are {}",
                    metric.name,
                    windowed.join(", ")
                )));
            }
            let has_no_worst = |condition: &&Condition| {
                let is_equal = condition.operator == Operator::Equal && condition.reference().is_some();
                is_equal || condition.operator == Operator::Unequal
            };
            if let Some(condition) = conditions.iter().find(has_no_worst) {
                return Err(RuleError::Over(format!(
                    "no window is the worst of `{}`; write a condition with <= < >= or >",
                    condition.written
                )));
            }
        }
        Ok(Self { metric, r#where: written.r#where, designs: written.design.0, conditions, over })
    }
}

/// Reads `any 60s`.
fn width(text: &str) -> Result<Duration, RuleError> {
    let width = text.trim().strip_prefix("any ").ok_or_else(|| {
        RuleError::Over(format!(
            "`{text}` is no window; write it as in `any 60s`: the worst of all windows of 60 s"
        ))
    })?;
    match width.parse::<Duration>() {
        Ok(width) if width.is_zero() => {
            Err(RuleError::Over("nothing is due in no time; write `any 60s`".to_owned()))
        }
        Ok(width) => Ok(width),
        Err(error) => Err(RuleError::Over(error.to_string())),
    }
}

/// A rule has at most this many windows: a guard against a slip of the keyboard.
const WINDOWS_MAX: u64 = 100_000;

/// Reads the short form, `METRIC{LABEL:VALUE}: CONDITION, … over any WIDTH`. Labels and window are optional, and so is the colon
/// where an operator follows; the label `design` names a design that must pass.
impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = |why| RuleError::Syntax { text: text.to_owned(), why };
        let no_colon = "a colon parts metric and condition, as in `lag: p(99) <= 5s`";
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let trimmed = text.trim_start();
        let (metric, rest) = trimmed.split_at(trimmed.find(|c| !is_name(c)).unwrap_or(trimmed.len()));
        let rest = rest.trim_start();
        let (labels, rest) = match rest.strip_prefix('{') {
            None => ("", rest),
            Some(rest) => rest
                .split_once('}')
                .ok_or_else(|| wrong("`{` is not closed; write `lag{class:reply}: p(99) <= 5s`"))?,
        };
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix(':') {
            Some(rest) => rest,
            None if rest.starts_with(['<', '>', '=', '!']) => rest,
            None => return Err(wrong(no_colon)),
        };
        let (conditions, over) = match rest.split_once(" over ") {
            Some((conditions, over)) => (conditions, Some(over.trim().to_owned())),
            None => (rest, None),
        };
        let (mut r#where, mut design) = (IndexMap::new(), Vec::new());
        for label in labels.split(',').filter(|label| !label.trim().is_empty()) {
            let (name, value) =
                label.split_once(':').ok_or_else(|| wrong("a label is written `class:reply`"))?;
            match name.trim() {
                "design" => design.push(value.trim().to_owned()),
                name if r#where.contains_key(name) => return Err(wrong("a label is there twice")),
                name => drop(r#where.insert(name.to_owned(), value.trim().to_owned())),
            }
        }
        Self::try_from(Written {
            metric: metric.to_owned(),
            r#where,
            design: OneOrMany(design),
            expect: OneOrMany(conditions.split(',').map(str::to_owned).collect()),
            over,
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

#[cfg(test)]
mod tests;
