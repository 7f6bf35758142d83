//! The result of a run as plain data: what `report.json` holds, key by key, in this order.
//!
//! Integers with the unit in the name; nothing from the wall clock outside the `host` blocks. So everything else is
//! deterministic to the byte. Renderers read nothing but this.

mod live;
mod replications;
mod windows;
mod totals;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use live::{Late, Live, LiveCalls, LiveStore};
pub use replications::{Baseline, Difference, Estimate, Finding, Replication, Replications, SeedValue};
pub use totals::{Run, Runs, Totals};
pub use windows::{WindowValue, Windows};

/// The version of this layout.
pub const SCHEMA_VERSION: u32 = 1;

/// One scenario, run under each of its designs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name and version of the tool.
    pub tool: String,
    /// The seed of the run; of several, the first that has a result.
    pub seed: u64,
    /// What was run.
    pub scenario: ScenarioInfo,
    /// One result per design, in the scenario's order; with replications that of the first seed.
    pub designs: Vec<Outcome>,
    /// What all seeds say together; absent if there was only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replications: Option<Replications>,
    /// The saved result that conditions refer to; absent if none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The verdicts on the gates.
    pub gates: Vec<Verdict>,
    /// The verdicts on what the scenario is known to show.
    pub expectations: Vec<Verdict>,
    /// The designs that were to run and have no result; empty unless something went wrong.
    pub unfinished: Vec<Unfinished>,
    /// The command that gives this result again.
    pub reproduce: String,
    /// The machine's share; not deterministic.
    pub host: Host,
}

/// A design without a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unfinished {
    /// The design's name.
    pub design: String,
    /// The seed of the run that has none; absent if there was only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What went wrong; `null` if somebody interrupted it.
    pub error: Option<String>,
}

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioInfo {
    /// The scenario's name.
    pub name: String,
    /// Hash of the scenario with every default filled in, 16 hex digits.
    pub hash: String,
    /// When the run ended: the end of the workloads plus the drain.
    pub horizon_us: u64,
    /// How much of its beginning is left out of all totals; absent if nothing is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up_us: u64,
    /// The server's profile.
    pub profile: String,
    /// The real Redis that held what processes share, without its password; absent if that was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

/// What one design made of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The design's name.
    pub name: String,
    /// Hash of every event of the run, 16 hex digits: equal runs, equal hash.
    pub event_hash: String,
    /// Totals over the run.
    pub metrics: Metrics,
    /// The same by class, in the scenario's order of classes.
    pub classes: IndexMap<String, ClassOutcome>,
    /// The dials over time.
    pub series: Series,
    /// The distribution of lag, for the plot.
    pub lag_distribution: Distribution,
    /// The worst windows, where a condition asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Windows>,
    /// Every lag, counted, by class; not in the file.
    #[serde(skip)]
    pub lag_counts: IndexMap<String, LagCounts>,
    /// The machine's share; not deterministic.
    pub host: DesignHost,
    /// What real time brought; absent in a simulation. With it nothing of the result is deterministic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
}

/// Totals over the run. `due = delivered + dead + expired + dropped + pending + lost`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Messages that fell due.
    pub due: u64,
    /// Delivered in truth, at least once.
    pub delivered: u64,
    /// Their chat could not receive when they fell due, or their last attempt was answered so.
    pub dead: u64,
    /// Given up by the sender because of their deadline.
    pub expired: u64,
    /// Given up by the sender for another reason.
    pub dropped: u64,
    /// In the outbox, on the wire, held by a live worker, or in a queue of the store at the end of the run.
    pub pending: u64,
    /// All else: believed delivered and not, or gone with a process.
    pub lost: u64,
    /// Deliveries beyond a message's first.
    pub duplicated: u64,
    /// Messages delivered into a chat after a later one of that chat.
    pub reordered: u64,
    /// Messages that the sender believes it delivered.
    pub believed_delivered: u64,
    /// Messages of which the sender says that it does not know.
    pub believed_unknown: u64,
    /// Calls to the server.
    pub requests: u64,
    /// Calls that arrived while a penalty ran (the server's view).
    pub calls_in_penalty: u64,
    /// Calls sent before the `retry_after` of a refusal that the sender knew of was over.
    pub early_retries: u64,
    /// Calls per due message, in millionths.
    pub amplification_ppm: u64,
    /// Refusals by the limit that was hit, in the profile's order of limits.
    pub throttled: IndexMap<String, u64>,
    /// Tokens of the token-wide limit spent on chats that cannot receive.
    pub spent_on_dead: u64,
    /// Time under penalty by limit, summed over keys.
    pub penalty_us: IndexMap<String, u64>,
    /// Tokens taken of the token-wide limit per token available, in millionths; `null` without such a limit.
    pub budget_utilisation_ppm: Option<u64>,
    /// The longest that the queue of one chat ever was.
    pub queue_depth_max: u64,
    /// Lag, from due to delivered.
    pub lag_us: Lag,
    /// Messages that the sender believes it delivered and that are not in their chat.
    pub believed_falsely: u64,
    /// Messages whose answer was known and used again: delivered without a call.
    pub reused: u64,
    /// Penalties that began, by limit, over all keys; one that is prolonged is one.
    pub penalties: IndexMap<String, u64>,
    /// The longest single penalty by limit, from its first refusal to its end.
    pub penalty_max_us: IndexMap<String, u64>,
    /// The most calls that left within one millisecond (of the clock, not any), over all processes.
    pub calls_per_ms_max: u64,
    /// Processes that died.
    pub kills: u64,
    /// Ordinary keys in the store at the end of the run (what senders keep in objects of their own is not counted).
    pub store_keys: u64,
    /// Those of them that will never expire.
    pub store_keys_without_ttl: u64,
}

/// Quantiles of lag in microseconds; `null` without samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lag {
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// Messages counted, the censored ones included.
    pub samples: u64,
    /// Messages not delivered by the end of the run, counted with their age.
    pub censored: u64,
    /// The names of the quantiles that are lower bounds: they would change if all censored ages were infinite.
    pub lower_bound: Vec<String>,
}

/// One class of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassOutcome {
    /// As in [`Metrics::due`].
    pub due: u64,
    /// As in [`Metrics::delivered`].
    pub delivered: u64,
    /// As in [`Metrics::dead`].
    pub dead: u64,
    /// As in [`Metrics::expired`].
    pub expired: u64,
    /// As in [`Metrics::dropped`].
    pub dropped: u64,
    /// As in [`Metrics::pending`].
    pub pending: u64,
    /// As in [`Metrics::lost`].
    pub lost: u64,
    /// As in [`Metrics::duplicated`].
    pub duplicated: u64,
    /// As in [`Metrics::believed_unknown`].
    pub believed_unknown: u64,
    /// Lag of the class.
    pub lag_us: Lag,
    /// 99th percentile of lag over time, by the window in which the messages fell due; `null` in a window without.
    pub lag_p99_us: Vec<Option<u64>>,
}

/// The dials over time: point i covers `[i, i + 1) * step_us`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// The width of a point.
    pub step_us: u64,
    /// Tokens taken per token available, in millionths (empty without a token-wide limit).
    pub budget_utilisation_ppm: Vec<Option<u64>>,
    /// 99th percentile of lag, by the window in which the messages fell due.
    pub lag_p99_us: Vec<Option<u64>>,
    /// The longest queue of one chat.
    pub queue_depth_max: Vec<u64>,
    /// Refusals by limit.
    pub throttled: IndexMap<String, Vec<u64>>,
}

/// The distribution of lag: `us[i]` is the quantile at `ppm[i]` parts per million.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Quantiles, rising, in parts per million.
    pub ppm: Vec<u32>,
    /// Lag at each.
    pub us: Vec<u64>,
    /// From this quantile on the values are lower bounds; `null` if none is.
    pub lower_bound_from_ppm: Option<u32>,
}

/// The verdict on one gate or expectation for one design.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The metric's name.
    pub metric: String,
    /// The design that was judged.
    pub design: String,
    /// The labels that select samples.
    pub r#where: IndexMap<String, String>,
    /// What was asked for, as written.
    pub expect: String,
    /// What was measured, in `unit`; `null` without samples.
    pub measured: Option<u64>,
    /// `us`, `ppm` or `count`.
    pub unit: String,
    /// Whether it holds. Without samples it does not.
    pub passed: bool,
    /// Whether what was measured may in truth be larger.
    pub lower_bound: bool,
    /// What the right-hand side was, in `unit`, if it refers to another result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<i64>,
    /// The width of the windows, of which the worst was judged; absent for the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_us: Option<u64>,
    /// When the worst window begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_us: Option<u64>,
    /// With replications and where an interval was judged: its ends, in `unit`. Against a quantity it is that of the value, and
    /// `measured` is the end that was judged; with `bound` it is that of the value less the bound, and `measured` the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[i64; 2]>,
    /// With replications: the seed with the worst value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The command that shows it, if it does not hold: the design, under its worst seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

/// Lags in microseconds, counted to three significant digits: `(value, how many)`, rising.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LagCounts {
    /// Of messages that were delivered.
    pub delivered: Vec<(u64, u64)>,
    /// Ages of those that were not.
    pub censored: Vec<(u64, u64)>,
    /// The largest of both, exact.
    pub max: u64,
}

/// The machine's share of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Wall time of the whole, in milliseconds.
    pub wall_ms: u64,
}

/// The machine's share of one design.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DesignHost {
    /// Wall time of the simulation, in milliseconds.
    pub wall_ms: u64,
    /// Horizon per wall time.
    pub speed_up: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(us: &u64) -> bool {
    *us == 0
}
