//! One condition: its grammar and its arithmetic.
//!
//! ```text
//! condition = [aggregate] operator bound
//! aggregate = "p(50)" | "p(90)" | "p(99)" | "p(99.9)" | "med" | "max" | "rate" | "count" | "value"
//! operator  = "<=" | "<" | ">=" | ">" | "==" | "!="
//! bound     = quantity | term [("+" | " - ") quantity]
//! term      = result | factor "*" result | result "*" factor
//! result    = design | "baseline"
//! ```
//!
//! A `-` without spaces around it belongs to a design's name. What begins with a digit is a quantity; a design whose
//! name does is written `1 * 4-pods`.

use std::cmp::Ordering;
use std::fmt;

use fake_telegram::time::Duration;
use fake_telegram::units::{Count, Share};

use super::RuleError;
use super::metric::{Measured, Metric, Unit};

/// `[aggregate] operator bound`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// As written.
    pub written: String,
    /// Which summary of the metric.
    pub aggregate: Aggregate,
    /// How the two sides compare.
    pub operator: Operator,
    /// The right-hand side.
    pub bound: Bound,
    /// The unit of both sides: the metric's, or a share for a rate.
    pub unit: Unit,
}

/// Which summary of a metric is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// The number itself.
    Value,
    /// Its share of what it is counted among.
    Rate,
    /// Half are at most this: `p(50)`, or `med`.
    Median,
    /// `p(90)`.
    P90,
    /// `p(99)`.
    P99,
    /// `p(99.9)`.
    P999,
    /// The largest.
    Max,
}

/// How measured and bound compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

/// The right-hand side of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// A quantity.
    Fixed(Quantity),
    /// The same metric of another result, scaled and shifted.
    Relative {
        /// Which result.
        to: Reference,
        /// In millionths.
        factor: u64,
        /// What is added or taken off.
        offset: Option<(Sign, Quantity)>,
    },
}

/// A result that a condition refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// That of another design of the same run.
    Design(String),
    /// The saved one of the same design.
    Baseline,
}

/// Whether an offset is added or taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

/// A number of millionths of a microsecond, of the whole, or of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// Below 2^84.
    millionths: u128,
    unit: Unit,
}

impl Condition {
    /// Reads a condition on `metric`.
    ///
    /// # Errors
    /// If it is not in the grammar, has an aggregate that the metric lacks, or a quantity of another unit.
    pub fn parse(text: &str, metric: &'static Metric) -> Result<Self, RuleError> {
        let wrong = |why| RuleError::Syntax { text: text.trim().to_owned(), why };
        let at = text.find(['<', '>', '=', '!']).ok_or_else(|| wrong("it lacks one of <= < >= > == !="))?;
        let (left, rest) = text.split_at(at);
        let aggregate = Aggregate::parse(left, metric)?;
        let (operator, right) = Operator::ALL
            .iter()
            .find_map(|operator| Some((*operator, rest.strip_prefix(operator.symbol())?)))
            .ok_or_else(|| wrong("the operators are <= < >= > == !="))?;
        let right = right.trim();
        if right.is_empty() {
            return Err(wrong("nothing follows the operator"));
        }
        if right.starts_with('=') {
            return Err(wrong("the operators are <= < >= > == !="));
        }
        let unit = if aggregate == Aggregate::Rate { Unit::Share } else { metric.unit };
        let bound = Bound::parse(right, unit)?.ok_or_else(|| {
            wrong("the right-hand side is a quantity, or a design with a factor and an offset, as in `0.1 * naive-loop + 1s`")
        })?;
        Ok(Self { written: text.trim().to_owned(), aggregate, operator, bound, unit })
    }

    /// What the right-hand side refers to.
    pub const fn reference(&self) -> Option<&Reference> {
        match &self.bound {
            Bound::Fixed(_) => None,
            Bound::Relative { to, .. } => Some(to),
        }
    }

    /// The design that the right-hand side refers to.
    pub fn design(&self) -> Option<&str> {
        match self.reference()? {
            Reference::Design(name) => Some(name),
            Reference::Baseline => None,
        }
    }

    /// Whether it holds for certain. `reference` is there if the bound refers to a result.
    pub(super) fn holds(&self, measured: Measured, reference: Option<Measured>) -> bool {
        let none = Measured { numerator: 0, denominator: 1, lower_bound: false };
        let (reference, factor, plus, minus) = match &self.bound {
            Bound::Fixed(quantity) => (none, 0, quantity.millionths, 0),
            Bound::Relative { factor, offset, .. } => {
                let reference = reference.expect("the caller looks the reference up");
                match offset {
                    None => (reference, *factor, 0, 0),
                    Some((Sign::Plus, by)) => (reference, *factor, by.millionths, 0),
                    Some((Sign::Minus, by)) => (reference, *factor, 0, by.millionths),
                }
            }
        };
        // measured + minus <=> factor * reference + plus, both sides times a million and both denominators. The
        // products stay below 2^128: microseconds (64 bits) have the denominator 1, and counts of calls are below
        // 2^40, so a rate has 40 bits above and below the line, a factor at most 44.
        let (m, r) = (measured, reference);
        let [m_top, m_below, r_top, r_below] =
            [m.numerator, m.denominator, r.numerator, r.denominator].map(u128::from);
        let left = (m_top * 1_000_000 + minus * m_below) * r_below;
        let right = (u128::from(factor) * r_top + plus * r_below) * m_below;
        // A lower bound may in truth be any larger value, so it proves only what larger values prove as well.
        let (larger, smaller) = (!reference.lower_bound, !measured.lower_bound);
        match (self.operator, left.cmp(&right)) {
            (Operator::AtMost, Ordering::Less | Ordering::Equal) | (Operator::Below, Ordering::Less) => {
                smaller
            }
            (Operator::AtLeast, Ordering::Greater | Ordering::Equal)
            | (Operator::Above, Ordering::Greater) => larger,
            (Operator::Equal, Ordering::Equal) => larger && smaller,
            (Operator::Unequal, Ordering::Greater) => larger,
            (Operator::Unequal, Ordering::Less) => smaller,
            _ => false,
        }
    }
}

impl Aggregate {
    pub(super) const ALL: [Self; 7] =
        [Self::Value, Self::Rate, Self::Median, Self::P90, Self::P99, Self::P999, Self::Max];

    /// Which quantile it is, in parts per million.
    pub(crate) const fn ppm(self) -> Option<u32> {
        match self {
            Self::Median => Some(500_000),
            Self::P90 => Some(900_000),
            Self::P99 => Some(990_000),
            Self::P999 => Some(999_000),
            Self::Value | Self::Rate | Self::Max => None,
        }
    }

    /// As it is written; empty for the plain value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "",
            Self::Rate => "rate",
            Self::Median => "p(50)",
            Self::P90 => "p(90)",
            Self::P99 => "p(99)",
            Self::P999 => "p(99.9)",
            Self::Max => "max",
        }
    }

    fn parse(text: &str, metric: &'static Metric) -> Result<Self, RuleError> {
        let name = text.replace(char::is_whitespace, "");
        let known = metric.aggregates();
        // k6's words for the same.
        let name = match name.as_str() {
            "med" => "p(50)",
            "count" if metric.unit == Unit::Count => "",
            "value" => "",
            other => other,
        };
        let found = Self::ALL.into_iter().find(|aggregate| aggregate.name() == name);
        found.filter(|aggregate| known.contains(&aggregate.name())).ok_or_else(|| {
            let names: Vec<_> =
                known.iter().map(|name| if name.is_empty() { "its plain value" } else { name }).collect();
            let aggregate = if name.is_empty() { "plain value" } else { name };
            RuleError::Aggregate {
                metric: metric.name,
                aggregate: aggregate.to_owned(),
                known: names.join(", "),
            }
        })
    }
}

impl Operator {
    /// Longer symbols first, as the parser tries them in order.
    const ALL: [Self; 6] =
        [Self::AtMost, Self::AtLeast, Self::Equal, Self::Unequal, Self::Below, Self::Above];

    fn symbol(self) -> &'static str {
        match self {
            Self::AtMost => "<=",
            Self::Below => "<",
            Self::AtLeast => ">=",
            Self::Above => ">",
            Self::Equal => "==",
            Self::Unequal => "!=",
        }
    }
}

impl Bound {
    /// `Ok(None)` if the text is not in the grammar.
    fn parse(text: &str, unit: Unit) -> Result<Option<Self>, RuleError> {
        let minus = text.split_once(" - ").map(|(term, by)| (term, Sign::Minus, by));
        let split = text.split_once('+').map(|(term, by)| (term, Sign::Plus, by)).or(minus);
        let (term, offset) = match split {
            None => (text, None),
            Some((term, sign, by)) => (term.trim(), Some((sign, Quantity::parse(by, unit)?))),
        };
        let (factor, name) = match term.split_once('*').map(|(a, b)| (a.trim(), b.trim())) {
            None if term.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                let fixed = Self::Fixed(Quantity::parse(term, unit)?);
                return Ok(offset.is_none().then_some(fixed));
            }
            None => (1_000_000, term),
            Some((a, b)) => match (factor(a), factor(b)) {
                (Some(factor), _) => (factor, b),
                (None, Some(factor)) => (factor, a),
                (None, None) => return Ok(None),
            },
        };
        let is_name = !name.is_empty()
            && !name.starts_with('-')
            && !name.contains(|c: char| c.is_whitespace() || "*+<>=!(){},%".contains(c));
        let to = if name == BASELINE { Reference::Baseline } else { Reference::Design(name.to_owned()) };
        Ok(is_name.then_some(Self::Relative { to, factor, offset }))
    }
}

/// What a condition calls the saved result; no design may be called so.
pub const BASELINE: &str = "baseline";

/// A factor in millionths, at most 10,000,000.
fn factor(text: &str) -> Option<u64> {
    let millionths = millionths(text)?;
    u64::try_from(millionths).ok().filter(|factor| *factor <= 10_000_000 * 1_000_000)
}

/// A plain decimal number with at most six decimals.
fn millionths(text: &str) -> Option<u128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && decimals.is_empty())
        || whole.len() > 12
        || decimals.len() > 6
        || !digits(whole)
        || !digits(decimals)
    {
        return None;
    }
    format!("{whole}{decimals:0<6}").parse().ok()
}

impl Quantity {
    /// As a verdict reports values: microseconds, parts per million, things.
    pub(super) fn value(self) -> f64 {
        match self.unit {
            Unit::Duration | Unit::Count => self.millionths as f64 / 1e6,
            Unit::Share | Unit::Ratio => self.millionths as f64,
        }
    }

    fn parse(text: &str, unit: Unit) -> Result<Self, RuleError> {
        let text = text.trim();
        let wrong = |why: String| RuleError::Quantity(why);
        let millionths = match unit {
            Unit::Duration => {
                let duration: Duration = text.parse().map_err(|error| wrong(format!("{error}")))?;
                u128::from(duration.as_micros()) * 1_000_000
            }
            Unit::Count => {
                let count: Count = text.parse().map_err(|error| wrong(format!("{error}")))?;
                u128::from(count.0) * 1_000_000
            }
            Unit::Share => {
                // `Share` reads it and words the errors; it rounds to its resolution, which a threshold must not.
                let share: Share = text.parse().map_err(|error| wrong(format!("{error}")))?;
                let written = text.strip_suffix('%').and_then(|number| millionths(number.trim()));
                let ppm = u128::from(share.as_ppm());
                if written != Some(ppm * 100) {
                    return Err(wrong(format!("`{text}` has too many decimals; a share is read to 0.0001%")));
                }
                ppm
            }
            Unit::Ratio => millionths(text).ok_or_else(|| {
                wrong(format!("`{text}` is not a ratio; write a plain number, as in `1.05`"))
            })?,
        };
        Ok(Self { millionths, unit })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.aggregate.name() {
            "" => write!(f, "{} {}", self.operator.symbol(), self.bound),
            name => write!(f, "{name} {} {}", self.operator.symbol(), self.bound),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(quantity) => quantity.fmt(f),
            Self::Relative { to, factor, offset } => {
                let name = match to {
                    Reference::Design(name) => name,
                    Reference::Baseline => BASELINE,
                };
                if *factor != 1_000_000 || name.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                    write!(f, "{} * ", Decimal((*factor).into()))?;
                }
                f.write_str(name)?;
                match offset {
                    None => Ok(()),
                    Some((Sign::Plus, by)) => write!(f, " + {by}"),
                    Some((Sign::Minus, by)) => write!(f, " - {by}"),
                }
            }
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Duration => Duration::from_micros((self.millionths / 1_000_000) as u64).fmt(f),
            Unit::Share => write!(f, "{}%", Decimal(self.millionths * 100)),
            Unit::Count | Unit::Ratio => Decimal(self.millionths).fmt(f),
        }
    }
}

/// A number of millionths as a decimal number, without needless zeros.
struct Decimal(u128);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{rest:06}").trim_end_matches('0'))
    }
}
