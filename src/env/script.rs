//! Scripts: what they are, and what they can do in the store.

use std::cell::RefMut;
use std::fmt;
use std::rc::Rc;

use fake_telegram::time::{Duration, Time};

use crate::event::Event;
use crate::sim::Sim;
use crate::store::command::{Command, CommandError, Reply};
use crate::store::keyspace::Keyspace;
use crate::store::script::{Answer, Eval, Names, Request};
use crate::store::{Booking, Holds, Key, Operation};
use crate::world::{Belief, GiveUp, Message, ProcessIndex};

/// A script: what it is on the simulated store, and what it is on a real Redis.
///
/// The two halves do the same. The first is Rust over values of its own types; the second is Lua over Redis' structures, and
/// whoever has none cannot run on a real Redis ([`Strategy::scripts`](crate::Strategy::scripts) tells who has).
pub trait StoreScript {
    /// What it answers.
    type Reply;

    /// Its name: what a scenario can let a process die after.
    fn name(&self) -> &'static str;

    /// What it does to the simulated store.
    fn run(self, store: &mut Script<'_>) -> Self::Reply;

    /// How it is called on a real Redis.
    fn eval(&self, _names: Names<'_>) -> Option<Eval> {
        None
    }

    /// What it has done to messages on a real Redis, which has answered this: told when the answer arrives, whether or not
    /// the process that asked still lives. `None` if it makes no sense.
    fn tell(_reply: &Reply, _moves: Moves<'_>) -> Option<()> {
        Some(())
    }

    /// What a real Redis has answered. `None` if it makes no sense.
    fn read(self, _reply: Result<Reply, CommandError>, _after: &mut After<'_>) -> Option<Self::Reply>
    where
        Self: Sized,
    {
        None
    }
}

/// A closure as a script that has no half for a real Redis.
pub(super) struct Closure<F> {
    pub(super) name: &'static str,
    pub(super) run: F,
}

impl<R, F: FnOnce(&mut Script<'_>) -> R> StoreScript for Closure<F> {
    type Reply = R;

    fn name(&self) -> &'static str {
        self.name
    }

    #[inline]
    fn run(self, store: &mut Script<'_>) -> R {
        (self.run)(store)
    }
}

/// What is left to do when a script has run on a real Redis.
#[derive(Debug)]
pub struct After<'a> {
    /// Ordinary keys that the script has made, and how long they live. In real time it has said so itself.
    expires: &'a mut Vec<(String, Duration)>,
}

impl After<'_> {
    /// An ordinary key that the script has made lives for `ttl`.
    pub fn expires(&mut self, key: String, ttl: Duration) {
        self.expires.push((key, ttl));
    }
}

/// A script of a process in the simulated world.
pub(super) struct Running<'a, S> {
    pub(super) script: S,
    pub(super) sim: &'a Rc<Sim>,
    pub(super) process: ProcessIndex,
    pub(super) life: u32,
}

impl<S: StoreScript> Operation for Running<'_, S> {
    type Reply = S::Reply;

    #[inline]
    fn simulated(self, now: Time, keyspace: &mut Keyspace) -> S::Reply {
        let Self { script, sim, process, life } = self;
        script.run(&mut Script { now, keyspace, sim, process, life })
    }

    fn request(&self, names: Names<'_>) -> Result<Request, &'static str> {
        self.script.eval(names).map(Request::Eval).ok_or_else(|| self.script.name())
    }

    fn booking(&self) -> Option<Booking> {
        let (sim, process, life) = (Rc::clone(self.sim), self.process, self.life);
        Some(Box::new(move |answer| match answer.as_slice() {
            [Ok(reply)] => S::tell(reply, Moves { sim: &sim, process, life }).is_some(),
            _ => true,
        }))
    }

    fn reply(self, mut answer: Answer, expires: &mut Vec<(String, Duration)>) -> Option<S::Reply> {
        self.script.read(answer.pop()?, &mut After { expires })
    }
}

/// A script in the simulated store, while it runs: nothing else does.
pub struct Script<'a> {
    pub(super) now: Time,
    pub(super) keyspace: &'a mut Keyspace,
    pub(super) sim: &'a Sim,
    pub(super) process: ProcessIndex,
    pub(super) life: u32,
}

/// Tells what becomes of a message in a script, from that instant on: who holds it, and so what is lost with a process
/// or with the store; and what the sender is done with.
#[derive(Clone, Copy)]
pub struct Moves<'a> {
    sim: &'a Sim,
    process: ProcessIndex,
    /// Which life of all the process was in when it asked.
    life: u32,
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
        (self.keyspace.object(key), Moves { sim: self.sim, process: self.process, life: self.life })
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

    /// The process that runs the script holds it, or nobody if it has died since.
    pub fn taken(&self, message: &Message) {
        let (message, process) = (message.number, self.process);
        self.sim.record(&match self.sim.is_in_life(process, self.life) {
            true => Event::Taken { message, process },
            false => Event::Vanished { message },
        });
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
