//! Several seeds together, and a saved result beside a new one.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClassOutcome, Metrics, Windows};

/// The same scenario under several seeds: every design of a seed meets the same arrivals, latencies and faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replications {
    /// The seeds under which something was finished.
    pub seeds: Vec<u64>,
    /// What each run gave, by seed, then design.
    pub runs: Vec<Replication>,
    /// What all seeds of a design say of a metric, with an interval: by design, then in the order of metrics.
    pub estimates: Vec<Estimate>,
    /// Every later design against the first, pairwise by seed: by design, then in the order of metrics.
    pub differences: Vec<Difference>,
}

/// One design under one seed: its totals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replication {
    /// The seed.
    pub seed: u64,
    /// The design's name.
    pub design: String,
    /// As `Outcome::event_hash`.
    pub event_hash: String,
    /// As `Outcome::metrics`.
    pub metrics: Metrics,
    /// As `Outcome::classes`, without what they were over time.
    pub classes: IndexMap<String, ClassOutcome>,
    /// As `Outcome::windows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Windows>,
}

/// A value over all seeds and the interval that holds the true one in 95 of 100 such experiments.
///
/// Of a quantile of lag: the quantile of the lags of all seeds together, and an interval of their order statistics that allows for
/// messages of one seed being alike (Woodruff's). Of a rate: the ratio of totals over all seeds, and its interval by
/// linearisation. Of everything else: the mean over the seeds, and Student's interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The design.
    pub design: String,
    /// The metric's name.
    pub metric: String,
    /// The labels that select samples.
    pub r#where: IndexMap<String, String>,
    /// Which summary of it, as a condition writes it; empty for the plain value.
    pub aggregate: String,
    /// `us`, `ppm`, or `milli` for thousandths of a count.
    pub unit: String,
    /// The estimate.
    pub value: u64,
    /// The lower end, rounded down and not below 0. If only one seed has a value, the ends are the value.
    pub low: u64,
    /// The upper end, rounded up.
    pub high: u64,
    /// How many seeds have a value.
    pub seeds: u64,
    /// Whether value and upper end may in truth be larger.
    pub lower_bound: bool,
    /// The largest value that a single seed has (the smallest, where more is better; a lower bound is larger than anything
    /// else), and that seed.
    pub worst: SeedValue,
}

/// What one seed gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeedValue {
    /// The seed.
    pub seed: u64,
    /// Its value, in the unit of what it belongs to.
    pub value: u64,
}

/// How a metric of one design differs from that of another, pairwise by seed: the mean of the differences, and Student's
/// 95 % interval of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The design.
    pub design: String,
    /// The design that it is compared with.
    pub against: String,
    /// The metric's name.
    pub metric: String,
    /// The labels that select samples.
    pub r#where: IndexMap<String, String>,
    /// Which summary of it, as a condition writes it; empty for the plain value.
    pub aggregate: String,
    /// As in [`Estimate::unit`].
    pub unit: String,
    /// The mean of what it is compared with.
    pub from: u64,
    /// The mean of the design.
    pub to: u64,
    /// The mean difference, `to - from`.
    pub change: i64,
    /// The interval's ends, rounded outwards; `null` with one pair. Without pairs it is that of `unpaired`.
    pub interval: Option<[i64; 2]>,
    /// The same interval if the seeds were not paired (Welch's), for comparison; `null` if a side has only one seed.
    pub unpaired: Option<[i64; 2]>,
    /// Pairs: seeds that both have a value for. 0 if they were run under different seeds: then the means of all are compared.
    pub pairs: u64,
    /// Of these, those in which the design is better; equal ones, and what a lower bound may hide, count for nobody.
    pub won: u64,
    /// Of these, those in which it is worse.
    pub lost: u64,
    /// What that says.
    pub finding: Finding,
    /// Whether some value may in truth be larger.
    pub lower_bound: bool,
}

/// What a difference says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Better: the interval lies wholly beyond the noise threshold, 1 % of `from`.
    Improved,
    /// Worse, as surely.
    Regressed,
    /// Another value, as surely, and nobody can say which is better.
    Changed,
    /// The interval does not hold zero, and is not wholly beyond the noise threshold.
    WithinNoise,
    /// The interval holds zero, or would if what lies behind lower bounds were larger.
    NoDifference,
    /// All pairs are equal, as they were recorded.
    Equal,
    /// Fewer than five pairs, or without pairs fewer than five seeds on a side: nothing can be said.
    TooFew,
}

/// The saved result that conditions refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// Its file, as given.
    pub file: String,
    /// The tool that made it.
    pub tool: String,
    /// Hash of its scenario: another than that of the report means that what is compared has changed.
    pub scenario_hash: String,
    /// Its seeds.
    pub seeds: Vec<u64>,
}
