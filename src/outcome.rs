//! The result of a run as plain data: what `report.json` holds, key by key, in this order.
//!
//! Integers with the unit in the name; nothing from the wall clock outside the `host` blocks. So everything else is
//! deterministic to the byte. Renderers read nothing but this.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of this layout.
pub const SCHEMA_VERSION: u32 = 1;

/// One scenario, run under each of its designs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name and version of the tool.
    pub tool: String,
    /// The seed of the run; of several, the first.
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

/// The same scenario under several seeds: every design of a seed meets the same arrivals, latencies and faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replications {
    /// The seeds, as asked for.
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
    /// As [`Outcome::event_hash`].
    pub event_hash: String,
    /// As [`Outcome::metrics`].
    pub metrics: Metrics,
    /// As [`Outcome::classes`], without what they were over time.
    pub classes: IndexMap<String, ClassOutcome>,
    /// As [`Outcome::windows`].
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

/// The worst windows of one run, for conditions with `over`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Windows {
    /// The metric's name.
    pub metric: String,
    /// The labels that select samples.
    pub r#where: IndexMap<String, String>,
    /// Which summary of it, as a condition writes it; empty for the plain value.
    pub aggregate: String,
    /// The width of a window.
    pub over_us: u64,
    /// The window with the largest value (a lower bound is larger than anything else); `null` if none has samples.
    pub largest: Option<WindowValue>,
    /// The window with the smallest.
    pub smallest: Option<WindowValue>,
}

/// The value of one window: `numerator / denominator`, in microseconds or wholes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowValue {
    /// When the window begins.
    pub from_us: u64,
    /// The value, above the line.
    pub numerator: u64,
    /// Below it; at least 1.
    pub denominator: u64,
    /// Whether the truth may be larger.
    pub lower_bound: bool,
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

/// A run in real time: what it ran against, and what may explain its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// The base URL, without tokens; of a server of our own that was started for the run, the one that it had.
    pub url: String,
    /// The server's name, if it says one.
    pub server: Option<String>,
    /// Whether the server told what really happened to each call. Otherwise the answers are taken for the truth: a 200
    /// with a message is a delivery, what was not answered was not delivered, and each 429 counts for the profile's
    /// first limit.
    pub told_truth: bool,
    /// When somebody interrupted it, from its start; `null` if nobody did.
    pub interrupted_us: Option<u64>,
    /// How late things ran that were due in our own program: answers that had come, sleeps that were over, messages
    /// that were to fall due. What is large here is the machine's fault and not a sender's.
    pub late_us: Late,
    /// What became of the calls.
    pub calls: LiveCalls,
    /// How a real store was at the end; absent if it was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<LiveStore>,
}

/// The totals of one run, wherever they are kept: all that a condition on the whole run reads.
#[derive(Debug, Clone, Copy)]
pub struct Totals<'a> {
    /// Over all messages.
    pub metrics: &'a Metrics,
    /// By class.
    pub classes: &'a IndexMap<String, ClassOutcome>,
    /// The worst windows, where a condition asks for them.
    pub windows: &'a [Windows],
}

impl Outcome {
    /// Its totals.
    pub fn totals(&self) -> Totals<'_> {
        Totals { metrics: &self.metrics, classes: &self.classes, windows: &self.windows }
    }
}

impl Outcome {
    /// Forgets what it was over time, and its distribution: totals, windows and counted lags stay.
    pub fn keep_totals(&mut self) {
        self.series = Series::default();
        self.lag_distribution = Distribution::default();
        self.classes.values_mut().for_each(|class| class.lag_p99_us = Vec::new());
    }
}

impl Replication {
    /// The totals of a run under `seed`.
    pub fn of(seed: u64, outcome: &Outcome) -> Self {
        let mut classes = outcome.classes.clone();
        classes.values_mut().for_each(|class| class.lag_p99_us = Vec::new());
        Self {
            seed,
            design: outcome.name.clone(),
            event_hash: outcome.event_hash.clone(),
            metrics: outcome.metrics.clone(),
            classes,
            windows: outcome.windows.clone(),
        }
    }

    /// Its totals.
    pub fn totals(&self) -> Totals<'_> {
        Totals { metrics: &self.metrics, classes: &self.classes, windows: &self.windows }
    }
}

impl Report {
    /// Its seeds.
    pub fn seeds(&self) -> &[u64] {
        self.replications.as_ref().map_or_else(|| std::slice::from_ref(&self.seed), |all| &all.seeds)
    }

    /// What a later run is compared with: all totals, and nothing of the machine or over time.
    pub fn baseline(&self) -> Self {
        let mut baseline = Self {
            gates: Vec::new(),
            expectations: Vec::new(),
            baseline: None,
            host: Host::default(),
            ..self.clone()
        };
        for outcome in &mut baseline.designs {
            outcome.keep_totals();
            outcome.host = DesignHost::default();
        }
        if let Some(replications) = &mut baseline.replications {
            replications.estimates = Vec::new();
            replications.differences = Vec::new();
        }
        baseline
    }

    /// The totals of a design by seed, in the order of seeds; of one that is not there, none.
    pub fn totals_of(&self, design: &str) -> Vec<(u64, Totals<'_>)> {
        match &self.replications {
            Some(replications) => {
                let runs = replications.runs.iter().filter(|run| run.design == design);
                runs.map(|run| (run.seed, run.totals())).collect()
            }
            None => {
                let designs = self.designs.iter().filter(|outcome| outcome.name == design);
                designs.map(|outcome| (self.seed, outcome.totals())).collect()
            }
        }
    }
}

/// A real store at the end of a run in real time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveStore {
    /// Messages that are lost because they should have been there and were in no queue: with what somebody else deleted, or by
    /// a call whose answer never came.
    pub missing: u64,
    /// Why it could not be asked what is in it, if so: what should be there counts as pending, and `store_keys` is 0.
    pub silent: Option<String>,
}

/// How late things ran, in microseconds; a timer alone takes up to about 2 ms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Late {
    /// How many things ran.
    pub events: u64,
    /// 99th percentile of how late.
    pub p99: u64,
    /// The latest.
    pub max: u64,
}

/// What became of the calls of a run in real time. Calls that were on the wire at its end are in none of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveCalls {
    /// Answered, whatever the answer was.
    pub answered: u64,
    /// No connection, or none in time: nothing was sent.
    pub unconnected: u64,
    /// The connection ended before the request was sent.
    pub unsent: u64,
    /// The connection ended after the request was sent: nobody knows whether it was received.
    pub lost: u64,
    /// No whole answer within the time-out, after the request was sent.
    pub timed_out: u64,
    /// Refused with 429 by a limit that the scenario's profile does not have: counted for its first limit, and for none
    /// if it has none.
    pub refused_elsewhere: u64,
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
    /// With replications and where an interval was judged: its ends, in `unit`. `measured` is the end that was judged.
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
