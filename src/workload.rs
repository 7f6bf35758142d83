//! What there is to send, and when: a lazy stream of arrivals in order of time, the same under every design.

use fake_telegram::api::{ChatIndex, ChatKind};
use fake_telegram::time::{Duration, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One message falls due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub due: Time,
    /// In which chat.
    pub chat: ChatIndex,
}

/// The arrivals of one workload, in order of `due`, none at or after [`Context::duration`].
pub type Arrivals = Box<dyn Iterator<Item = Arrival> + Send>;

/// What a workload may know of the run.
#[derive(Debug)]
pub struct Context<'a> {
    /// The run's seed.
    pub seed: u64,
    /// The workload's name in the scenario: part of the purpose of each of its streams.
    pub name: &'a str,
    /// When workloads end.
    pub duration: Duration,
    /// The chats that the scenario declares, and the block of this workload's own.
    pub chats: &'a Population,
}

/// A workload: the struct is its TOML parameters.
///
/// Two steps, since a trace brings chats of its own: [`declare`](Workload::declare) says which, once, when the
/// scenario is read; [`arrivals`](Workload::arrivals) yields the stream, once a run.
pub trait Workload: Clone + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Its name in a scenario, kebab-case.
    const KIND: &'static str;
    /// One line for `floodlab list workloads`.
    const SUMMARY: &'static str;
    // The rest of the surface is decided by the workloads' author.
}

/// Placeholder until the workloads land.
#[derive(Debug, Default)]
pub struct Population {
    /// The kind of each chat, by index.
    pub kinds: Vec<ChatKind>,
}

/// What the registry knows of a workload's type.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadKind {
    /// [`Workload::KIND`].
    pub kind: &'static str,
    /// [`Workload::SUMMARY`].
    pub summary: &'static str,
    /// The JSON Schema of the parameters.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}
