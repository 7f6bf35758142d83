//! What a real Redis is asked. A script is Lua to it, the keys that this works on, and its arguments.

use super::command::{Command, CommandError, Reply};
use super::keyspace::Keyspace;
use super::object::Key;

/// A call to a real Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Commands in one round trip, in order.
    Commands(Vec<Command>),
    /// A script.
    Eval(Eval),
    /// All data of the run are deleted, at once.
    Flush,
}

/// What was answered: by command, or of a script one.
pub type Answer = Vec<Result<Reply, CommandError>>;

/// A call of a script. Whoever makes it says before all arguments what time it is: `ARGV[1]` is `virtual` or `real`, and
/// `ARGV[2]` the instant, or that of the server's clock at which the run began, both in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eval {
    /// Lua.
    pub source: &'static str,
    /// `KEYS`.
    pub keys: Vec<Name>,
    /// `ARGV` from the third on.
    pub args: Vec<String>,
}

/// The name of a key; as in the simulated store, ordinary keys and objects do not see each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// An ordinary key: what commands work on.
    Ordinary(String),
    /// A part of an object. Of an object that holds messages `NAME:messages` is a hash whose values begin with a message's
    /// number and a colon.
    Object(String),
}

/// What objects are called, for whoever has their keys.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a>(&'a Keyspace);

impl<'a> Names<'a> {
    /// The names of the objects of a store.
    pub const fn new(keyspace: &'a Keyspace) -> Self {
        Self(keyspace)
    }

    /// The object itself, for one that is kept under one key.
    pub fn whole<V>(self, key: Key<V>) -> Name {
        Name::Object(self.0.name(key).to_owned())
    }

    /// A part of an object.
    pub fn part<V>(self, key: Key<V>, part: &str) -> Name {
        Name::Object(format!("{}:{part}", self.0.name(key)))
    }
}
