//! A scenario: the experiment as data, every default filled in.
//!
//! A file becomes a [`Scenario`] in three steps, each knowing only the one before: the text becomes a tree that
//! remembers positions (`document`, `json`), the tree becomes tables with their defaults (`settings`), and names
//! become what they stand for (`read`).

mod error;
mod json;
mod document;
mod settings;
mod read;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fake_telegram::api::Method;
use fake_telegram::chat::{Chats, Lifecycle};
use fake_telegram::fault::Fault;
use fake_telegram::profile::Profile;
use fake_telegram::time::Duration;

pub use self::error::{Excerpt, ScenarioError};
pub use self::schema::schema;
pub use self::settings::{Store, Wire};
use crate::gate::{Known, Rule, RuleError};
use crate::registry::Registry;
use crate::rng;
use crate::store::command::Command;
use crate::strategy::Configured;
use crate::workload::Source;
use crate::workload::merge::Merge;
use crate::workload::population::Population;
use crate::world::{ClassIndex, KillPoint, Kills, Step};

/// An experiment: the same traffic and the same server for each of its designs.
#[derive(Debug)]
pub struct Scenario {
    /// The file that it was read from.
    pub file: PathBuf,
    /// What reports call it.
    pub name: String,
    /// What it shows, in prose.
    pub summary: String,
    /// The incidents and cases that it reproduces.
    pub covers: Vec<String>,
    /// The seed, unless somebody asks for another.
    pub seed: u64,
    /// When workloads end.
    pub duration: Duration,
    /// How long after that the run goes on.
    pub drain: Duration,
    /// How much of the beginning is left out of all totals.
    pub warm_up: Duration,
    /// The server's rules.
    pub server: Profile,
    /// What goes wrong beside them; [`Faults::new`](fake_telegram::fault::Faults::new) accepts it.
    pub faults: Vec<Fault>,
    /// The chats: the declared ones, then those that workloads brought.
    pub population: Population,
    /// Which of them are dead, and when.
    pub lifecycle: Lifecycle,
    /// The way to the server.
    pub wire: Wire,
    /// What processes share.
    pub store: Store,
    /// The classes of messages, in order of first appearance.
    pub classes: Vec<String>,
    /// The tokens, in order of first appearance.
    pub tokens: Vec<String>,
    /// What there is to send.
    pub workloads: Vec<NamedWorkload>,
    /// What is compared.
    pub designs: Vec<Design>,
    /// What designs must pass.
    pub gates: Vec<Rule>,
    /// Those of them that somebody added, as written.
    pub asked_gates: Vec<String>,
    /// What the scenario is known to show.
    pub expectations: Vec<Rule>,
    /// A hash of all of this and of the files that workloads read, 16 hex digits. Comments do not change it.
    pub hash: String,
    normal: toml::Table,
}

/// A workload of a scenario.
pub struct NamedWorkload {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// The class of its messages.
    pub class: ClassIndex,
    /// How long after it fell due a message is still wanted.
    pub deadline: Option<Duration>,
    /// The method that its messages are sent with.
    pub method: Method,
    /// Each arrival answers what the user has just written, so a user who had blocked the bot has unblocked it.
    pub from_user: bool,
    /// Its arrivals as a function of the seed.
    pub source: Source,
}

/// What is compared: process groups, each with a strategy.
#[derive(Debug)]
pub struct Design {
    /// Its name in tables and reports.
    pub name: String,
    /// Its process groups.
    pub groups: Vec<Group>,
}

/// Processes that run the same strategy.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// What each worker runs.
    pub strategy: Arc<dyn Configured>,
    /// How many processes there ever are, at least 1: those that it begins with, and those that its timeline adds.
    pub processes: u32,
    /// What happens to them.
    pub timeline: Timeline,
    /// How far the clock of each process is ahead of the store's.
    pub skew: Vec<Duration>,
    /// Workers in each, at least 1.
    pub workers: u32,
    /// The token that they send with (an index into the scenario's tokens).
    pub token: u16,
    /// The workloads routed to it (indices, rising).
    pub workloads: Vec<usize>,
}

/// What happens to the processes of a group; they are numbered within it, from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Changes at known instants before the end of the run, by time, then as written. The first processes' starts are
    /// among them.
    pub steps: Vec<Step>,
    /// Deaths between two calls.
    pub kill_points: Vec<KillPoint>,
    /// Deaths by chance.
    pub kills: Vec<Kills>,
}

impl Scenario {
    /// Reads and checks a file: TOML, or JSON of the same shape if it is called `*.json`.
    ///
    /// # Errors
    /// The first thing that is wrong with it; every error is the author's to mend.
    pub fn load(file: &Path, registry: &Registry) -> Result<Self, ScenarioError> {
        read::read(&document::Document::open(file)?, registry)
    }

    /// A strategy and a script of it that is not written for a real Redis, if there is one.
    pub fn unwritten_script(&self) -> Option<(&'static str, &'static str)> {
        let groups = self.designs.iter().flat_map(|design| &design.groups);
        groups.map(|group| &group.strategy).find_map(|strategy| {
            let written = strategy.scripts();
            let anywhere = |call: &&str| ["send", "pipeline"].contains(call) || Command::NAMES.contains(call);
            let unwritten = |call: &&str| !anywhere(call) && !written.contains(call);
            Some((strategy.kind(), strategy.calls().into_iter().find(unwritten)?))
        })
    }

    /// When a run ends: the end of the workloads plus the drain.
    pub fn horizon(&self) -> Duration {
        self.duration + self.drain
    }

    /// The rules that its runs are held against, and those that somebody adds.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> + Clone {
        self.gates.iter().chain(&self.expectations)
    }

    /// Reads a rule in its short form, and adds it to the gates.
    ///
    /// # Errors
    /// If it is none, or names something that the scenario does not have.
    pub fn add_gate(&mut self, text: &str) -> Result<(), RuleError> {
        let rule: Rule = text.parse()?;
        rule.check(self.names().known())?;
        self.gates.push(rule);
        self.asked_gates.push(text.to_owned());
        Ok(())
    }

    fn names(&self) -> Names {
        Names {
            designs: self.designs.iter().map(|design| design.name.clone()).collect(),
            classes: self.classes.clone(),
            limits: self.server.limits.iter().map(|limit| limit.name.clone()).collect(),
            horizon: self.horizon(),
        }
    }

    /// All arrivals of a run, in order of `due`: when, in which chat, the workload's index; ties in the file's order.
    pub fn arrivals(&self, seed: u64) -> Merge {
        Merge::new(self.workloads.iter().map(|workload| (workload.source)(seed)))
    }

    /// The server's view of the chats in a run.
    pub fn chats(&self, seed: u64) -> Chats {
        let mut chats = Chats::new(rng::key(seed, "chats"), self.lifecycle.clone());
        for run in self.population.kinds().chunk_by(|this, next| this == next) {
            chats.add(run[0], u32::try_from(run.len()).expect("chats are counted in u32"));
        }
        chats
    }

    /// The scenario as TOML with every default filled in; reads back as the same scenario.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.normal).expect("a table is TOML")
    }
}

/// What rules may name.
struct Names {
    designs: Vec<String>,
    classes: Vec<String>,
    limits: Vec<String>,
    horizon: Duration,
}

impl Names {
    fn known(&self) -> Known<'_> {
        let Self { designs, classes, limits, horizon } = self;
        Known { designs, classes, limits, horizon: *horizon }
    }
}

impl std::fmt::Debug for NamedWorkload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedWorkload")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
