//! What there is to send, and when: lazy streams of arrivals in order of time, the same under every design.
//!
//! A workload knows chats and time, nothing of servers or strategies. Start with [`Workload`]; [`broadcast`] is the
//! simplest one.

pub mod factor;
pub mod population;
pub mod audience;
pub mod popularity;
pub mod profile;
pub mod poisson;
pub mod broadcast;
pub mod trace;
pub mod merge;

use std::fs;
use std::path::Path;

use fake_telegram::api::ChatIndex;
use fake_telegram::time::{Duration, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::population::Population;

/// One message falls due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub due: Time,
    /// In which chat.
    pub chat: ChatIndex,
}

/// The arrivals of one workload in one run, in order of `due`, none at or after [`Site::duration`].
pub type Arrivals = Box<dyn Iterator<Item = Arrival> + Send>;

/// The arrivals as a function of the run's seed.
pub type Source = Box<dyn Fn(u64) -> Arrivals + Send + Sync>;

/// A workload: the struct is its TOML parameters.
pub trait Workload: Serialize + DeserializeOwned + JsonSchema + 'static {
    /// Its name in a scenario, kebab-case.
    const KIND: &'static str;
    /// One line for `floodlab list workloads`.
    const SUMMARY: &'static str;

    /// Checks the parameters against the scenario and does, once, what every run would do again: reads a file,
    /// declares chats of its own, builds a table.
    ///
    /// A source draws from [`rng::stream`](crate::rng::stream) under purposes that begin with [`Site::purpose`], and
    /// from nothing else.
    ///
    /// # Errors
    /// If a parameter does not fit the scenario.
    fn prepare(self, site: &mut Site<'_>) -> Result<Source, WorkloadError>;
}

/// Where a workload is set up: what it may know of its scenario.
#[derive(Debug)]
pub struct Site<'a> {
    /// The workload's name in the scenario.
    pub name: &'a str,
    /// When workloads end.
    pub duration: Duration,
    /// The scenario's chats; a workload may [`add`](Population::add) chats of its own.
    pub chats: &'a mut Population,
    /// Where the scenario's file lies.
    pub directory: &'a Path,
    /// What was read so far.
    pub(crate) files: Vec<Vec<u8>>,
}

impl Site<'_> {
    /// The prefix of the purposes of this workload's streams.
    pub fn purpose(&self) -> String {
        format!("workload/{}", self.name)
    }

    /// Reads a file whose path is relative to the scenario's; its contents become part of the scenario's hash.
    ///
    /// # Errors
    /// If it cannot be read; `key` is the parameter that names it.
    pub fn read(&mut self, key: &'static str, file: &str) -> Result<&[u8], WorkloadError> {
        let path = self.directory.join(file);
        let bytes = fs::read(&path)
            .map_err(|error| WorkloadError::new(key, format!("cannot read {}: {error}", path.display())))?;
        self.files.push(bytes);
        Ok(self.files.last().expect("just pushed"))
    }
}

/// Why a workload does not fit its scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct WorkloadError {
    /// The parameter that has to change.
    pub key: &'static str,
    /// What is wrong with it; a fragment that names the way out.
    pub message: String,
}

impl WorkloadError {
    /// The error `message` about the parameter `key`.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// What the registry knows of a workload's type.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadKind {
    /// [`Workload::KIND`].
    pub kind: &'static str,
    /// [`Workload::SUMMARY`].
    pub summary: &'static str,
    /// Reads the parameters: everything of the table but what all workloads have.
    pub read: fn(toml::de::ValueDeserializer<'_>) -> Result<Parameters, toml::de::Error>,
    /// The JSON Schema of the parameters.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The parameters of a workload, its type forgotten.
pub struct Parameters {
    /// Every default filled in.
    pub table: toml::Table,
    /// [`Workload::prepare`].
    pub prepare: Prepare,
}

/// [`Workload::prepare`] with its workload.
pub type Prepare = Box<dyn FnOnce(&mut Site<'_>) -> Result<Source, WorkloadError>>;

impl std::fmt::Debug for Parameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.table.fmt(f)
    }
}

impl WorkloadKind {
    /// The entry of workload `W`.
    pub fn of<W: Workload>() -> Self {
        Self {
            kind: W::KIND,
            summary: W::SUMMARY,
            read: |parameters| {
                let workload = W::deserialize(parameters)?;
                let table = toml::Table::try_from(&workload).expect("parameters are a table");
                Ok(Parameters { table, prepare: Box::new(|site| workload.prepare(site)) })
            },
            schema: |generator| generator.subschema_for::<W>(),
        }
    }
}

/// The workloads that come with floodlab: a new one is a file and a line here.
pub fn builtin() -> Vec<WorkloadKind> {
    vec![
        WorkloadKind::of::<poisson::Poisson>(),
        WorkloadKind::of::<broadcast::Broadcast>(),
        WorkloadKind::of::<trace::Trace>(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrivals of a workload in a day of 10,000 chats, 200 of them groups and 100 channels.
    pub(super) fn arrivals<W: Workload>(toml: &str, seed: u64) -> Vec<Arrival> {
        prepare::<W>(toml).expect("fits the scenario")(seed).collect()
    }

    pub(super) fn prepare<W: Workload>(toml: &str) -> Result<Source, WorkloadError> {
        let mut chats = Population::new(9_700, 200, 100);
        let (duration, directory) = (Duration::from_hours(24), Path::new("scenarios"));
        let mut site = Site { name: "test", duration, chats: &mut chats, directory, files: Vec::new() };
        let toml = format!("{{ {toml} }}");
        let parameters = toml::de::ValueDeserializer::parse(&toml).expect("TOML");
        W::deserialize(parameters).expect("parameters").prepare(&mut site)
    }

    /// The seed matters, and nothing else does.
    #[test]
    fn equal_seeds_give_equal_arrivals() {
        let check = |one: Vec<Arrival>, same: Vec<Arrival>, other: Vec<Arrival>| {
            assert!(one.len() > 100 && one == same && one != other);
            assert!(one.is_sorted_by_key(|arrival| arrival.due));
        };
        let poisson = |seed| arrivals::<poisson::Poisson>(r#"rate = "1/s""#, seed);
        check(poisson(1), poisson(1), poisson(2));
        let broadcast = |seed| arrivals::<broadcast::Broadcast>(r#"chats = { count = 500 }"#, seed);
        check(broadcast(1), broadcast(1), broadcast(2));
        let trace = r#"file = "traces/gitter_bot_sends.csv.gz", speed = 510, repeat = 3, stagger = "1h""#;
        let trace = |seed| arrivals::<trace::Trace>(trace, seed);
        check(trace(1), trace(1), trace(2));
    }
}
