//! Gates on the verdict: what a client must not do, in k6's grammar as far as it goes for counts.
//!
//! `early_retries == 0`, `throttled{limit:token}: rate < 1%`. A rate is a share of requests.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::http::verdict::Verdict;
use crate::limits::Limit;
use crate::units::Share;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    text: String,
    metric: usize,
    limit: Option<String>,
    is_rate: bool,
    operator: Operator,
    /// A count, or parts per million of a rate.
    bound: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    AtMost,
    Equal,
    NotEqual,
    AtLeast,
    More,
}

/// How a gate came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The condition.
    pub gate: String,
    /// What was measured.
    pub measured: u64,
    /// What that is.
    pub unit: Unit,
    /// Whether it is met; `None` without a single request.
    pub passed: Option<bool>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// How many.
    Count,
    /// Of a million requests.
    Ppm,
}

/// Why a text is no gate; the message names the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("gate `{text}`: {problem}")]
pub struct GateError {
    text: String,
    problem: String,
}

type Count = fn(&Verdict, Option<&str>) -> u64;

/// What can be judged: its name, whether it has limits, how it is counted.
const METRICS: [(&str, bool, Count); 10] = [
    ("requests", false, |verdict, _| verdict.requests),
    ("delivered", false, |verdict, _| verdict.delivered),
    ("duplicates", false, |verdict, _| verdict.duplicates),
    ("throttled", true, |verdict, limit| sum(&verdict.throttled, limit)),
    ("early_retries", true, |verdict, limit| sum(&verdict.early_retries, limit)),
    ("calls_in_penalty", false, |verdict, _| verdict.calls_in_penalty),
    ("forbidden", false, |verdict, _| verdict.outcomes["forbidden"]),
    ("rejected", false, |verdict, _| verdict.outcomes["rejected"]),
    ("failed", false, |verdict, _| verdict.outcomes["failed"]),
    ("lost", false, |verdict, _| verdict.outcomes["lost"]),
];

fn sum(counts: &indexmap::IndexMap<String, u64>, limit: Option<&str>) -> u64 {
    counts.iter().filter(|(name, _)| limit.is_none_or(|limit| limit == *name)).map(|(_, count)| count).sum()
}

impl Gate {
    /// Whether the verdict meets it.
    pub fn judge(&self, verdict: &Verdict) -> Judged {
        let count = METRICS[self.metric].2(verdict, self.limit.as_deref());
        let measured = if self.is_rate {
            u128::from(count) * 1_000_000 / u128::from(verdict.requests.max(1))
        } else {
            count.into()
        };
        // A share is compared exactly, not as it is shown.
        let (left, right) = if self.is_rate {
            (u128::from(count) * 1_000_000, u128::from(self.bound) * u128::from(verdict.requests))
        } else {
            (count.into(), self.bound.into())
        };
        let met = match self.operator {
            Operator::Less => left < right,
            Operator::AtMost => left <= right,
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
            Operator::AtLeast => left >= right,
            Operator::More => left > right,
        };
        let passed = (verdict.requests > 0).then_some(met);
        let unit = if self.is_rate { Unit::Ppm } else { Unit::Count };
        Judged { gate: self.text.clone(), measured: measured as u64, unit, passed }
    }

    /// Whether there is its limit.
    ///
    /// # Errors
    /// If it names one that is not among `limits`: it would never fail.
    pub fn check(&self, limits: &[Limit]) -> Result<(), GateError> {
        let Some(limit) = &self.limit else { return Ok(()) };
        let names: Vec<&str> = limits.iter().map(|limit| limit.name.as_str()).collect();
        if names.contains(&limit.as_str()) {
            return Ok(());
        }
        let problem = match nearest(limit, &names) {
            Some(near) => {
                format!("unknown limit `{limit}`; did you mean `{near}`? Known are {}", names.join(", "))
            }
            None => format!("unknown limit `{limit}`; the profile has none"),
        };
        Err(GateError { text: self.text.clone(), problem })
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known.iter().copied().max_by_key(|known| (strsim::jaro(known, name) * 1e6) as u64)
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gate, measured, unit, passed } = self;
        match passed {
            Some(true) => write!(f, "passed  {gate}"),
            Some(false) if *unit == Unit::Ppm => {
                write!(f, "FAILED  {gate}  (measured {}%)", *measured as f64 / 1e4)
            }
            Some(false) => write!(f, "FAILED  {gate}  (measured {measured})"),
            None => write!(f, "FAILED  {gate}  (no request was made)"),
        }
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let wrong = |problem: String| GateError { text: text.to_owned(), problem };
        let grammar = || {
            wrong("write it as `METRIC OP NUMBER` or `METRIC{limit:NAME}: rate OP SHARE%`, OP being <, <=, ==, !=, >= or >".to_owned())
        };
        let at = text.find(['<', '>', '=', '!']).ok_or_else(grammar)?;
        let (left, rest) = text.split_at(at);
        let length = if rest[1..].starts_with('=') { 2 } else { 1 };
        let operator = match &rest[..length] {
            "<" => Operator::Less,
            "<=" => Operator::AtMost,
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            ">=" => Operator::AtLeast,
            ">" => Operator::More,
            _ => return Err(grammar()),
        };
        let bound = rest[length..].trim();
        // The colon of an aggregate stands behind the label's.
        let labelled = left.find('}').map_or(0, |end| end + 1);
        let (left, is_rate) = match left[labelled..]
            .split_once(':')
            .map(|(name, aggregate)| (labelled + name.len(), aggregate))
        {
            Some((end, aggregate)) => match aggregate.trim() {
                "rate" => (&left[..end], true),
                "count" => (&left[..end], false),
                other => return Err(wrong(format!("unknown aggregate `{other}`; known are rate, count"))),
            },
            None => (left, false),
        };
        let (name, limit) = match left.trim().split_once('{') {
            Some((name, label)) => {
                let limit = label.trim().strip_suffix('}').and_then(|label| label.split_once(':'));
                match limit {
                    Some(("limit", limit)) => (name, Some(limit.trim().to_owned())),
                    _ => return Err(wrong("the only label is `limit`, as in `{limit:token}`".to_owned())),
                }
            }
            None => (left.trim(), None),
        };
        let Some(metric) = METRICS.iter().position(|(known, ..)| *known == name) else {
            let known: Vec<&str> = METRICS.iter().map(|(name, ..)| *name).collect();
            let near = nearest(name, &known).unwrap_or_default();
            return Err(wrong(format!(
                "unknown metric `{name}`; did you mean `{near}`? Known are {}",
                known.join(", ")
            )));
        };
        if limit.is_some() && !METRICS[metric].1 {
            return Err(wrong(format!("`{name}` has no limits; leave `{{...}}` out")));
        }
        let bound = if is_rate {
            let share: Share = bound.parse().map_err(|error| wrong(format!("{error}")))?;
            share.as_ppm().into()
        } else {
            bound.parse().map_err(|_| wrong(format!("`{bound}` is no whole number")))?
        };
        Ok(Self { text: text.to_owned(), metric, limit, is_rate, operator, bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let mut verdict = Verdict::sum(&[]);
        verdict.requests = 200;
        verdict.throttled = [("token".to_owned(), 2), ("chat".to_owned(), 3)].into_iter().collect();
        verdict
    }

    fn passes(gate: &str) -> Option<bool> {
        gate.parse::<Gate>().expect(gate).judge(&verdict()).passed
    }

    #[test]
    fn counts_and_rates_are_judged_exactly() {
        for met in [
            "early_retries == 0",
            "throttled <= 5",
            "throttled{limit:chat} == 3",
            "throttled{limit:token}: rate <= 1%",
            "throttled: rate < 2.6%",
            "throttled{limit: token}:rate<=1%",
            "requests: count >= 200",
            "lost != 1",
        ] {
            assert_eq!(passes(met), Some(true), "{met}");
        }
        for missed in ["throttled{limit:token}: rate < 1%", "throttled > 5", "throttled{limit:group} > 0"] {
            assert_eq!(passes(missed), Some(false), "{missed}");
        }
        let nothing = "early_retries == 0".parse::<Gate>().expect("a gate").judge(&Verdict::sum(&[]));
        assert_eq!(nothing.passed, None);
    }

    /// A limit that is not there is never refused by: the gate would always pass.
    #[test]
    fn a_limit_has_to_be_there() {
        let check = |gate: &str| {
            let gate = gate.parse::<Gate>().expect("a gate");
            gate.check(&crate::profile::Profile::telegram().limits).map_err(|error| error.to_string())
        };
        assert_eq!(check("throttled{limit:token} == 0"), Ok(()));
        let error = check("throttled{limit:tokn} == 0").expect_err("there is no such limit");
        assert!(error.contains("did you mean `token`"), "{error}");
    }

    #[test]
    fn what_is_no_gate_is_told_what_to_do() {
        let error = |gate: &str| gate.parse::<Gate>().expect_err(gate).to_string();
        assert!(error("early_retires == 0").contains("did you mean `early_retries`"));
        assert!(error("requests{limit:chat} > 0").contains("has no limits"));
        assert!(error("throttled: rate < 1").contains("per cent"));
        assert!(error("throttled: p(99) < 1%").contains("known are rate, count"));
        for broken in ["", "throttled", "throttled = 1", "throttled == x", "throttled{chat} > 1"] {
            error(broken);
        }
    }
}
