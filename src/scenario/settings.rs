//! The tables of a scenario's file that are plain data, with their defaults.

use fake_telegram::api::Method;
use fake_telegram::chat::{Change, Lifecycle};
use fake_telegram::time::Duration;
use fake_telegram::units::{Count, Share};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::one_or_many::OneOrMany;
use crate::store::plan::Event;
use crate::store::url::StoreUrl;

/// More workers than one machine runs; a guard against a slip of the keyboard.
pub(super) const WORKERS_MAX: u32 = 1_000_000;

/// The top of the file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scenario")]
pub(super) struct Settings {
    /// What reports call it. Default: the file's name without extension.
    #[serde(default)]
    pub(super) name: String,
    /// What it shows, in prose.
    #[serde(default)]
    pub(super) summary: String,
    /// The incidents and cases that it reproduces, as in `["S8", "C25"]`.
    #[serde(default)]
    pub(super) covers: Vec<String>,
    /// What all randomness comes from, unless `--seed` says otherwise.
    #[serde(default = "seed")]
    #[schemars(range(min = 0))]
    pub(super) seed: i64,
    /// When workloads end.
    pub(super) duration: Duration,
    /// How long after that the run goes on, so that what is late can still arrive.
    #[serde(default = "ten_minutes")]
    pub(super) drain: Duration,
    /// How much of the beginning is left out of all totals: messages that fall due in it, and what happens in it. Plots
    /// show it.
    #[serde(default)]
    pub(super) warm_up: Duration,
    /// Processes of a design that says nothing else.
    #[serde(default = "one", deserialize_with = "some")]
    #[schemars(range(min = 1))]
    pub(super) processes: u32,
    /// Workers in each process of a design that says nothing else.
    #[serde(default = "sixteen", deserialize_with = "some")]
    #[schemars(range(min = 1))]
    pub(super) workers: u32,
    /// The chats.
    #[serde(default)]
    pub(super) chats: Chats,
    /// The way to the server.
    #[serde(default)]
    pub(super) wire: Wire,
    /// What processes share: a table [store], or the address of a real Redis.
    #[serde(default)]
    #[schemars(schema_with = "store_or_url")]
    pub(super) store: Store,
}

/// `[chats]`: the declared chats. Workloads may bring more.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table [chats]")]
pub(super) struct Chats {
    /// How many there are.
    pub(super) count: Count,
    /// The share of groups.
    pub(super) groups: Share,
    /// The share of channels; the rest are private chats.
    pub(super) channels: Share,
    /// The share of chats that are dead at the start, drawn for each chat.
    pub(super) dead: Share,
    /// The share of chats that the server does not know, drawn for each chat: whoever writes to them gets a 400.
    pub(super) unknown: Share,
    /// The share of chats about which there is nothing to tell, drawn for each chat: questions about them are answered,
    /// and the answer is empty.
    pub(super) empty: Share,
    /// How long a chat lives, on average; for ever without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mean_life: Option<Duration>,
    /// How long a dead chat stays dead, on average; for ever without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mean_absence: Option<Duration>,
    /// Chats that die or come back at set times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) schedule: Vec<Change>,
}

impl Chats {
    pub(super) fn lifecycle(&self) -> Lifecycle {
        Lifecycle {
            dead: self.dead,
            unknown: self.unknown,
            empty: self.empty,
            mean_life: self.mean_life,
            mean_absence: self.mean_absence,
            schedule: self.schedule.clone(),
        }
    }
}

/// `[wire]`: how long a call takes (lognormal) and when a client gives up on it.
///
/// The defaults are guesses between single reports of 50 to 100 ms; nobody has published percentiles
/// (docs/scenario.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table [wire]")]
pub struct Wire {
    /// The median call time (request leg plus reply leg).
    pub median: Duration,
    /// Its 99th percentile; equal to the median: constant.
    pub p99: Duration,
    /// The client's time-out.
    pub timeout: Duration,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            median: Duration::from_millis(80),
            p99: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
        }
    }
}

/// `[store]`: what the processes of a design share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table [store]")]
pub struct Store {
    /// A real Redis, at least 7, as in `redis://127.0.0.1:6379`; simulated without it. Passwords are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<StoreUrl>,
    /// The median time that a call to it takes.
    pub round_trip: Duration,
    /// Its 99th percentile (lognormal). Default: the median; then it is constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) round_trip_p99: Option<Duration>,
    /// When a process gives up on a call.
    pub timeout: Duration,
    /// What happens to it.
    #[serde(rename = "event", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

impl Store {
    /// The 99th percentile of the time that a call takes, at least [`round_trip`](Store::round_trip).
    pub fn round_trip_p99(&self) -> Duration {
        self.round_trip_p99.unwrap_or(self.round_trip)
    }
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: None,
            round_trip: Duration::from_millis(1),
            round_trip_p99: None,
            timeout: Duration::from_secs(1),
            events: Vec::new(),
        }
    }
}

/// `[workload.NAME]`: what all workloads have. The other keys are those of its kind.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadSettings {
    /// Which workload: `floodlab list workloads`.
    pub(super) kind: String,
    /// The class of its messages, any name; lag is told by class. Classes that come first matter most.
    pub(super) class: String,
    /// How long after it fell due a message is still wanted; for ever without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<Duration>,
    /// The method that its messages are sent with.
    #[serde(default = "send_message")]
    pub(super) method: Method,
    /// Each message answers what the user has just written, so a user who had blocked the bot has unblocked it.
    #[serde(default)]
    pub(super) from_user: bool,
}

/// `[[design.group]]`, and what a design of one group has of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GroupSettings {
    /// Its name. Default: the strategy's kind.
    pub(super) name: Option<String>,
    /// How many processes. Default: the scenario's.
    #[serde(deserialize_with = "perhaps_some")]
    #[schemars(range(min = 1))]
    pub(super) processes: Option<u32>,
    /// Workers in each. Default: the scenario's.
    #[serde(deserialize_with = "perhaps_some")]
    #[schemars(range(min = 1))]
    pub(super) workers: Option<u32>,
    /// The token that they send with. Default: `main`.
    pub(super) token: Option<String>,
    /// The workloads routed to it. Default: all.
    pub(super) workloads: Option<Vec<String>>,
    /// When its processes start. Default: with the run.
    pub(super) start: Option<Duration>,
    /// How far a process' clock is ahead of the store's: one for all, or a list by process, whose last one holds for
    /// all further processes. Default: not at all.
    pub(super) skew: Option<OneOrMany<Duration>>,
    /// What happens to its processes. Default: nothing.
    pub(super) timeline: Option<Vec<Entry>>,
}

/// An entry of `timeline`: one when (`at`, `after` or `every`) and one what (`add`, `leave`, `kill` or `restart`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "an entry such as { at = \"10min\", add = 3 }")]
#[schemars(rename = "TimelineEntry")]
pub(super) struct Entry {
    /// At this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Duration>,
    /// When a call of this name has been answered and before the process makes its next one: `send`, `any`, or a call
    /// to the store that the strategy makes. Goes with `kill`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<String>,
    /// With `after`: which of these calls, counted over all lives of the process. Default: the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<Count>,
    /// By chance, each process once in this time on average. Goes with `kill`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) every: Option<Duration>,
    /// So many processes more start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) add: Option<u32>,
    /// So many processes, the youngest that run, take nothing new and finish what they hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leave: Option<u32>,
    /// These processes, by number, are gone at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kill: Option<OneOrMany<u32>>,
    /// These processes, by number, are killed if they run, and start with empty memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) restart: Option<OneOrMany<u32>>,
    /// With `kill`: they come back after this time. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) restart_after: Option<Duration>,
}

/// A number of processes or workers.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match i64::deserialize(deserializer)? {
        ..1 => Err(D::Error::custom("with none of them nothing is sent; at least 1")),
        number => u32::try_from(number).ok().filter(|number| *number <= WORKERS_MAX).ok_or_else(|| {
            D::Error::custom(format!("a design has at most {WORKERS_MAX} workers in all, not {number}"))
        }),
    }
}

fn perhaps_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    some(deserializer).map(Some)
}

fn store_or_url(generator: &mut SchemaGenerator) -> Schema {
    let (table, url) = (generator.subschema_for::<Store>(), generator.subschema_for::<StoreUrl>());
    json_schema!({ "anyOf": [table, url] })
}

fn send_message() -> Method {
    Method::SendMessage
}

fn seed() -> i64 {
    1
}

fn one() -> u32 {
    1
}

fn sixteen() -> u32 {
    16
}

fn ten_minutes() -> Duration {
    Duration::from_mins(10)
}
