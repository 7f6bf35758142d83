//! What a script in the store can do.

use std::cell::RefMut;
use std::fmt;

use fake_telegram::time::Time;

use crate::event::Event;
use crate::sim::Sim;
use crate::store::command::{Command, CommandError, Reply};
use crate::store::keyspace::Keyspace;
use crate::store::{Holds, Key};
use crate::world::{Belief, GiveUp, Message, ProcessIndex};

/// A script in the store, while it runs: nothing else does.
pub struct Script<'a> {
    pub(super) now: Time,
    pub(super) keyspace: &'a mut Keyspace,
    pub(super) sim: &'a Sim,
    pub(super) process: ProcessIndex,
}

/// Tells what becomes of a message in a script, from that instant on: who holds it, and so what is lost with a process
/// or with the store; and what the sender is done with.
#[derive(Clone, Copy)]
pub struct Moves<'a> {
    sim: &'a Sim,
    process: ProcessIndex,
}

impl fmt::Debug for Script<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({}, of process {})", self.now, self.process.0)
    }
}

impl fmt::Debug for Moves<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moves(of process {})", self.process.0)
    }
}

impl<'a> Script<'a> {
    /// The store's own instant.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The value under `key`; of several keys each can be had at once.
    ///
    /// # Panics
    /// If the script has it already.
    #[inline]
    pub fn object<V: 'static>(&self, key: Key<V>) -> RefMut<'_, V> {
        self.keyspace.object(key)
    }

    /// The value under `key`, which holds messages, and who is told which.
    ///
    /// # Panics
    /// As [`object`](Script::object).
    #[inline]
    pub fn holder<V: Holds + 'static>(&self, key: Key<V>) -> (RefMut<'_, V>, Moves<'a>) {
        (self.keyspace.object(key), Moves { sim: self.sim, process: self.process })
    }

    /// Executes a command of Redis.
    ///
    /// # Errors
    /// If it does not fit what is under its key.
    pub fn execute(&mut self, command: &Command) -> Result<Reply, CommandError> {
        self.keyspace.execute(self.now, command)
    }
}

impl Moves<'_> {
    /// The store holds the message.
    #[inline]
    pub fn stored(&self, message: &Message) {
        self.sim.record(&Event::Stored { message: message.number });
    }

    /// The process that runs the script holds it.
    pub fn taken(&self, message: &Message) {
        self.sim.record(&Event::Taken { message: message.number, process: self.process });
    }

    /// It leaves the store, and is given up.
    pub fn given_up(&self, message: &Message, why: GiveUp) {
        self.sim.record(&Event::GivenUp { message: *message, why });
    }

    /// It leaves the store, and nobody knows whether it arrived.
    pub fn unknown(&self, message: &Message) {
        self.sim.record(&Event::Settled { message: *message, belief: Belief::Unknown });
    }
}
