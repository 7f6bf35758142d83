//! The one list of metrics: what can be judged, and how to read it from an [`Outcome`].

use crate::outcome::{ClassOutcome, Lag, Metrics, Totals};

use super::RuleError;
use super::condition::Aggregate;

/// Something that a run measures. Its name is its key in `report.json` without the unit.
#[derive(Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// What it is, in a line.
    pub doc: &'static str,
    /// The label that selects a part of it, if any.
    pub label: Option<Label>,
    /// What a comparison calls an improvement.
    pub better: Better,
    /// Whether a window of a run has a value of its own.
    pub by_window: bool,
    source: Source,
}

/// What a value is, and so how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds; written `5s`.
    Duration,
    /// Parts per million of a whole; written `1.5%`.
    Share,
    /// Millionths, and more than one whole is usual; written `1.05`.
    Ratio,
    /// A number of things; written `0`, `300k`.
    Count,
}

/// What a comparison calls an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// A smaller value.
    Less,
    /// A larger value.
    More,
    /// Nobody can say: it describes.
    Neither,
}

/// What selects a part of a metric's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// A class of messages.
    Class,
    /// A limit of the server profile.
    Limit,
}

/// How a value is read.
enum Source {
    /// A distribution, overall or of a class.
    Lag,
    /// A number; the function's second argument is the label's value. With `of`, `rate` is the share of that.
    Number { read: Read, of: Option<Read> },
}

type Read = fn(Totals<'_>, Option<&str>) -> Option<u64>;

/// A value in base units (microseconds, wholes): the fraction `numerator / denominator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) numerator: u64,
    /// At least 1.
    pub(crate) denominator: u64,
    /// Whether the truth may be larger.
    pub(crate) lower_bound: bool,
}

impl Metric {
    /// The metric of this name.
    ///
    /// # Errors
    /// If there is none; the error names the nearest.
    pub fn named(name: &str) -> Result<&'static Self, RuleError> {
        METRICS
            .iter()
            .find(|metric| metric.name == name)
            .ok_or_else(|| super::unknown("metric", name, METRICS.iter().map(|metric| metric.name)))
    }

    /// The summaries that it has, as they are written; the empty text is the plain value.
    pub fn aggregates(&self) -> &'static [&'static str] {
        match self.source {
            Source::Lag => &["p(50)", "p(90)", "p(99)", "p(99.9)", "max"],
            Source::Number { of: Some(_), .. } => &["", "rate"],
            Source::Number { of: None, .. } => &[""],
        }
    }

    pub(super) fn check_label(&self, label: &str) -> Result<(), RuleError> {
        if self.label.is_some_and(|known| known.name() == label) {
            return Ok(());
        }
        let hint = match self.label {
            Some(known) => format!("it can by `{}`", known.name()),
            None => "leave `where` out".to_owned(),
        };
        Err(RuleError::Label { metric: self.name, label: label.to_owned(), hint })
    }

    /// `None` without samples.
    pub(crate) fn measure(
        &self,
        totals: Totals<'_>,
        aggregate: Aggregate,
        label: Option<&str>,
    ) -> Option<Measured> {
        let whole = |numerator| Measured { numerator, denominator: 1, lower_bound: false };
        match self.source {
            Source::Lag => {
                let lag = match label {
                    Some(class) => &totals.classes.get(class)?.lag_us,
                    None => &totals.metrics.lag_us,
                };
                let (key, value) = quantile(lag, aggregate);
                let lower_bound = lag.lower_bound.iter().any(|name| name == key);
                value.map(|us| Measured { lower_bound, ..whole(us) })
            }
            Source::Number { read, of } => {
                let value = read(totals, label)?;
                match (aggregate, of) {
                    (Aggregate::Rate, Some(of)) => {
                        let denominator = of(totals, label).filter(|whole| *whole > 0)?;
                        Some(Measured { denominator, ..whole(value) })
                    }
                    _ if matches!(self.unit, Unit::Share | Unit::Ratio) => {
                        Some(Measured { denominator: 1_000_000, ..whole(value) })
                    }
                    _ => Some(whole(value)),
                }
            }
        }
    }

    /// The values that its label has in `totals`; none without a label.
    pub(crate) fn label_values<'a>(&self, totals: Totals<'a>) -> Vec<&'a str> {
        match self.label {
            None => Vec::new(),
            Some(Label::Class) => totals.classes.keys().map(String::as_str).collect(),
            Some(Label::Limit) => totals.metrics.throttled.keys().map(String::as_str).collect(),
        }
    }

    /// As [`Self::aggregates`], read.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = Aggregate> {
        Aggregate::ALL.into_iter().filter(|aggregate| self.aggregates().contains(&aggregate.name()))
    }
}

/// Metrics are the entries of [`METRICS`]: one name, one metric.
impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Unit {
    /// The unit of a verdict: `us`, `ppm` or `count`.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Duration => "us",
            Self::Share | Self::Ratio => "ppm",
            Self::Count => "count",
        }
    }
}

impl Label {
    /// Its name in `where`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Limit => "limit",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Class, Self::Limit].into_iter().find(|label| label.name() == name)
    }
}

impl Measured {
    /// As a verdict reports it, unrounded: microseconds, parts per million, things.
    pub(super) fn value(self, unit: Unit) -> f64 {
        let value = self.numerator as f64 / self.denominator as f64;
        match unit {
            Unit::Duration | Unit::Count => value,
            Unit::Share | Unit::Ratio => value * 1e6,
        }
    }

    /// The value as a verdict reports it: whole units, where a share is never rounded to none or all.
    pub(super) fn reported(self, unit: Unit) -> u64 {
        match unit {
            Unit::Duration | Unit::Count => self.numerator,
            Unit::Share | Unit::Ratio => {
                let ppm = u128::from(self.numerator) * 1_000_000 / u128::from(self.denominator);
                (ppm as u64).max(u64::from(self.numerator > 0))
            }
        }
    }
}

fn quantile(lag: &Lag, aggregate: Aggregate) -> (&'static str, Option<u64>) {
    match aggregate {
        Aggregate::Median => ("p50", lag.p50),
        Aggregate::P90 => ("p90", lag.p90),
        Aggregate::P99 => ("p99", lag.p99),
        Aggregate::P999 => ("p999", lag.p999),
        Aggregate::Max => ("max", lag.max),
        Aggregate::Value | Aggregate::Rate => {
            unreachable!("conditions are checked against their metric's aggregates")
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Lag => "Lag",
            Self::Number { .. } => "Number",
        })
    }
}

/// A number that exists by class too; its rate is the share of what fell due.
macro_rules! ledger {
    ($field:ident, $better:ident, $doc:literal) => {
        Metric {
            name: stringify!($field),
            unit: Unit::Count,
            doc: $doc,
            label: Some(Label::Class),
            better: Better::$better,
            by_window: true,
            source: Source::Number {
                read: |totals, class| ledger(totals, class, |all| all.$field, |class| class.$field),
                of: Some(due),
            },
        }
    };
}

/// A total of the whole run.
macro_rules! total {
    ($name:ident, $unit:ident, $better:ident, $read:expr, $of:expr, $doc:literal) => {
        Metric {
            name: stringify!($name),
            unit: Unit::$unit,
            doc: $doc,
            label: None,
            better: Better::$better,
            by_window: true,
            source: Source::Number { read: |totals, _| $read(&totals.metrics), of: $of },
        }
    };
}

/// A number by limit; without a label, the sum.
macro_rules! by_limit {
    ($name:ident, $unit:ident, $field:ident, $of:expr, $doc:literal) => {
        Metric {
            name: stringify!($name),
            unit: Unit::$unit,
            doc: $doc,
            label: Some(Label::Limit),
            better: Better::Less,
            by_window: true,
            source: Source::Number {
                read: |totals, limit| match limit {
                    Some(limit) => totals.metrics.$field.get(limit).copied(),
                    None => Some(totals.metrics.$field.values().sum()),
                },
                of: $of,
            },
        }
    };
}

fn ledger(
    totals: Totals<'_>,
    class: Option<&str>,
    all: fn(&Metrics) -> u64,
    one: fn(&ClassOutcome) -> u64,
) -> Option<u64> {
    match class {
        Some(class) => totals.classes.get(class).map(one),
        None => Some(all(totals.metrics)),
    }
}

fn due(totals: Totals<'_>, class: Option<&str>) -> Option<u64> {
    ledger(totals, class, |all| all.due, |class| class.due)
}

fn requests(totals: Totals<'_>, _: Option<&str>) -> Option<u64> {
    Some(totals.metrics.requests)
}

/// Every metric, in the order of `report.json`.
pub const METRICS: &[Metric] = &[
    ledger!(due, Neither, "messages that fell due"),
    ledger!(delivered, More, "messages delivered in truth, at least once; rate: share of due"),
    ledger!(dead, Neither, "messages to chats that could not receive; rate: share of due"),
    ledger!(expired, Less, "messages given up because of their deadline; rate: share of due"),
    ledger!(dropped, Less, "messages given up for another reason; rate: share of due"),
    ledger!(pending, Less, "messages still under way at the end of the run; rate: share of due"),
    ledger!(
        lost,
        Less,
        "messages gone: the sender is done with them and they did not arrive, or gone with a process or the store; rate: share of due"
    ),
    ledger!(duplicated, Less, "deliveries beyond a message's first; rate: per due"),
    total!(
        reordered,
        Count,
        Less,
        |m: &Metrics| Some(m.reordered),
        Some(due),
        "messages delivered after a later one of their chat; rate: share of due"
    ),
    total!(
        believed_delivered,
        Count,
        Neither,
        |m: &Metrics| Some(m.believed_delivered),
        Some(due),
        "messages that the sender believes delivered; rate: share of due"
    ),
    ledger!(believed_unknown, Less, "messages of which the sender does not know; rate: share of due"),
    total!(requests, Count, Less, |m: &Metrics| Some(m.requests), None, "calls to the server"),
    total!(
        calls_in_penalty,
        Count,
        Less,
        |m: &Metrics| Some(m.calls_in_penalty),
        Some(requests),
        "calls that arrived while a penalty ran; rate: share of requests"
    ),
    total!(
        early_retries,
        Count,
        Less,
        |m: &Metrics| Some(m.early_retries),
        Some(requests),
        "calls sent before a known retry_after was over; rate: share of requests"
    ),
    total!(
        amplification,
        Ratio,
        Less,
        |m: &Metrics| (m.due > 0).then_some(m.amplification_ppm),
        None,
        "calls per due message"
    ),
    by_limit!(
        throttled,
        Count,
        throttled,
        Some(requests),
        "refusals with 429, by limit; rate: share of requests"
    ),
    total!(
        spent_on_dead,
        Count,
        Less,
        |m: &Metrics| Some(m.spent_on_dead),
        Some(requests),
        "tokens spent on chats that cannot receive; rate: per request"
    ),
    by_limit!(penalty, Duration, penalty_us, None, "time under penalty, summed over keys, by limit"),
    total!(
        budget_utilisation,
        Share,
        Neither,
        |m: &Metrics| m.budget_utilisation_ppm,
        None,
        "tokens taken per token available of the token-wide limit"
    ),
    total!(
        queue_depth_max,
        Count,
        Less,
        |m: &Metrics| Some(m.queue_depth_max),
        None,
        "the longest that the queue of one chat ever was"
    ),
    Metric {
        name: "lag",
        unit: Unit::Duration,
        doc: "from due to delivered; what was not delivered counts with its age at the end of the run, as a lower bound",
        label: Some(Label::Class),
        better: Better::Less,
        by_window: true,
        source: Source::Lag,
    },
    total!(
        believed_falsely,
        Count,
        Less,
        |m: &Metrics| Some(m.believed_falsely),
        Some(due),
        "messages that the sender believes delivered and that are not in their chat; rate: share of due"
    ),
    total!(
        reused,
        Count,
        Neither,
        |m: &Metrics| Some(m.reused),
        Some(due),
        "messages answered from what was known, without a call; rate: share of due"
    ),
    by_limit!(penalties, Count, penalties, None, "penalties that began, by limit"),
    Metric {
        name: "penalty_max",
        unit: Unit::Duration,
        doc: "the longest single penalty, from its first refusal to its end, by limit",
        label: Some(Label::Limit),
        better: Better::Less,
        by_window: false,
        source: Source::Number {
            read: |totals, limit| match limit {
                Some(limit) => totals.metrics.penalty_max_us.get(limit).copied(),
                None => Some(totals.metrics.penalty_max_us.values().copied().max().unwrap_or(0)),
            },
            of: None,
        },
    },
    total!(
        calls_per_ms_max,
        Count,
        Less,
        |m: &Metrics| Some(m.calls_per_ms_max),
        None,
        "the most calls that left within one millisecond"
    ),
    total!(kills, Count, Neither, |m: &Metrics| Some(m.kills), None, "processes that died"),
    Metric {
        by_window: false,
        ..total!(
            store_keys,
            Count,
            Less,
            |m: &Metrics| Some(m.store_keys),
            None,
            "ordinary keys in the store at the end of the run"
        )
    },
    Metric {
        by_window: false,
        ..total!(
            store_keys_without_ttl,
            Count,
            Less,
            |m: &Metrics| Some(m.store_keys_without_ttl),
            None,
            "keys in the store at the end of the run that will never expire"
        )
    },
];
