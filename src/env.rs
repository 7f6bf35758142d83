//! What a strategy sees of the world: one concrete, cheap handle, the same in every world.
//!
//! The seam between worlds is the enum `World`: what differs between them stands in its variants' modules and nowhere else.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use fake_telegram::api::{Answer, TokenIndex};
use fake_telegram::time::{Duration, Time};
use rand_chacha::ChaCha8Rng;

use crate::event::Event;
use crate::executor::{Bell, Turn, TurnGuard};
use crate::rng;
use crate::sim::{Call, Due, Next, Sim};
use crate::store::Key;
use crate::world::{Belief, GiveUp, Message, ProcessIndex};

/// The worlds that a strategy can run in.
#[derive(Clone)]
enum World {
    /// Virtual time, the server model, a modelled wire.
    Sim(Rc<Sim>),
}

/// A sender process: what its workers share.
pub struct Process {
    index: ProcessIndex,
    token: TokenIndex,
    outbox: usize,
    turn: Turn,
    bell: Bell,
    memory: RefCell<Vec<(TypeId, Rc<dyn Any>)>>,
}

/// One worker's handle on its world.
#[derive(Clone)]
pub struct Env {
    world: World,
    process: Rc<Process>,
    worker: u32,
}

/// The answer to a call. One that is dropped unread counts as a delivery in the sender's books: nobody looked.
#[derive(Debug)]
#[must_use = "an answer that nobody reads is believed to be a delivery; say so with `let _ =`"]
pub struct Reply<'a> {
    env: &'a Env,
    message: Message,
    answer: Answer,
    read: bool,
}

impl Process {
    /// The process `index`, which spends `token`'s budget and takes from `outbox`.
    pub fn new(index: ProcessIndex, token: TokenIndex, outbox: usize) -> Rc<Self> {
        let (turn, bell, memory) = (Turn::default(), Bell::default(), RefCell::default());
        Rc::new(Self { index, token, outbox, turn, bell, memory })
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} of process {}", self.worker, self.process.index.0)
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.index.0)
    }
}

impl Env {
    /// Worker `worker` of `process` in the simulated world.
    pub const fn simulated(sim: Rc<Sim>, process: Rc<Process>, worker: u32) -> Self {
        Self { world: World::Sim(sim), process, worker }
    }

    /// The instant that it is on this process' clock.
    pub fn now(&self) -> Time {
        let World::Sim(sim) = &self.world;
        sim.handle().now()
    }

    /// Waits until `deadline`.
    pub async fn sleep_until(&self, deadline: Time) {
        let World::Sim(sim) = &self.world;
        sim.handle().sleep_until(deadline).await;
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now().saturating_add(duration)).await;
    }

    /// The next due message; waits for one, and is `None` when nothing more will come.
    pub async fn next(&self) -> Option<Message> {
        let World::Sim(sim) = &self.world;
        Next::new(sim, self.process.outbox, self.process.index).await
    }

    /// A message that is due now, if there is one.
    pub fn try_next(&self) -> Option<Message> {
        let World::Sim(sim) = &self.world;
        sim.try_next(self.process.outbox, self.process.index)
    }

    /// Whether nothing is due and nothing more will be.
    pub fn is_over(&self) -> bool {
        let World::Sim(sim) = &self.world;
        sim.is_over(self.process.outbox)
    }

    /// Waits until a message is due, `until` is there, or a worker of this process [nudges](Env::nudge), whichever
    /// is first. For one worker of a process at a time: the one that has the [turn](Env::turn).
    pub async fn idle_until(&self, until: Time) {
        let World::Sim(sim) = &self.world;
        let mut nudged = self.process.bell.heard(sim.handle());
        // When nothing more will fall due, that is not what is waited for.
        let mut due = (!self.is_over()).then(|| Due::new(sim, self.process.outbox));
        let mut time = (until < Time::MAX).then(|| sim.handle().sleep_until(until));
        poll_fn(|context| {
            let ended = Pin::new(&mut nudged).poll(context).is_ready()
                || due.as_mut().is_some_and(|due| Pin::new(due).poll(context).is_ready())
                || time.as_mut().is_some_and(|time| Pin::new(time).poll(context).is_ready());
            if ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Ends the [wait](Env::idle_until) of this process, now or when it next begins.
    pub fn nudge(&self) {
        let World::Sim(sim) = &self.world;
        self.process.bell.ring(sim.handle());
    }

    /// The turn among the workers of this process: one has it at a time, first come, first served.
    pub async fn turn(&self) -> TurnGuard<'_> {
        let World::Sim(sim) = &self.world;
        self.process.turn.take(sim.handle()).await
    }

    /// Calls the server to send `message`.
    pub async fn send(&self, message: &Message) -> Reply<'_> {
        let World::Sim(sim) = &self.world;
        let answer = Call::new(sim, *message, self.process.index, self.process.token).await;
        Reply { env: self, message: *message, answer, read: false }
    }

    /// The sender is done with `message` and believes this of it.
    pub fn settle(&self, message: &Message, belief: Belief) {
        self.record(&Event::Settled { message: *message, belief });
    }

    /// The sender gives `message` up.
    pub fn give_up(&self, message: &Message, why: GiveUp) {
        self.record(&Event::GivenUp { message: *message, why });
    }

    /// The value called `name` in the store that all processes share; it begins as `initial()`, also after the store
    /// has lost its data.
    pub fn key<V: 'static>(&self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        let World::Sim(sim) = &self.world;
        sim.store().key(name, initial)
    }

    /// Runs a script in the store: half a round trip there, the script at once and alone, half a round trip back.
    /// The script gets the store's own instant.
    pub async fn script<V: 'static, R>(&self, key: Key<V>, script: impl FnOnce(Time, &mut V) -> R) -> R {
        let World::Sim(sim) = &self.world;
        // The round trip is the same for all, so calls reach the store in the order in which they leave, and nothing
        // but scripts sees what is in it: a script may run when its call leaves, at the instant of its arrival.
        let arrival = sim.handle().now() + sim.round_trip() / 2;
        let result = sim.store().run(key, arrival, script);
        sim.handle().sleep(sim.round_trip()).await;
        result
    }

    /// This process' value of type `T`, shared by its workers; it begins as `initial()`.
    pub fn memory<T: 'static>(&self, initial: impl FnOnce() -> T) -> Rc<T> {
        let mut memory = self.process.memory.borrow_mut();
        let known = memory.iter().find(|(id, _)| *id == TypeId::of::<T>()).map(|(_, value)| value.clone());
        let value = known.unwrap_or_else(|| {
            let value: Rc<dyn Any> = Rc::new(initial());
            memory.push((TypeId::of::<T>(), value.clone()));
            value
        });
        value.downcast().expect("values are kept by their type")
    }

    /// A generator of this worker's own for `purpose`; it cannot shift anybody else's draws.
    pub fn rng(&self, purpose: &str) -> ChaCha8Rng {
        let World::Sim(sim) = &self.world;
        let name = format!("strategy/{purpose}/{}/{}", self.process.index.0, self.worker);
        rng::stream(sim.seed(), &name)
    }

    /// Starts a task beside this worker, in its process.
    pub fn spawn(&self, name: &str, task: impl Future<Output = ()> + 'static) {
        let World::Sim(sim) = &self.world;
        sim.handle().spawn(format!("{name} of {self:?}"), task);
    }

    /// The names of the classes of messages, by [`crate::world::ClassIndex`].
    pub fn classes(&self) -> Rc<[String]> {
        let World::Sim(sim) = &self.world;
        sim.classes().clone()
    }

    /// Which worker of its process this is, from 0.
    pub const fn worker(&self) -> u32 {
        self.worker
    }

    /// Which process of its design this is, from 0.
    pub fn process(&self) -> ProcessIndex {
        self.process.index
    }

    /// The token that this process sends with: its budget is shared by all processes of the token.
    pub fn token(&self) -> TokenIndex {
        self.process.token
    }

    #[inline(always)]
    fn record(&self, event: &Event) {
        let World::Sim(sim) = &self.world;
        sim.record(event);
    }
}

impl Reply<'_> {
    /// What came back. The sender has looked: from here on it is for the sender to [`Env::settle`] the message,
    /// to [give it up](Env::give_up) or to send it again.
    pub fn read(mut self) -> Answer {
        self.read = true;
        self.answer
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if !self.read {
            self.env.settle(&self.message, Belief::Delivered);
        }
    }
}
