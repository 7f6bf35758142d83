//! What a strategy sees of the world: one concrete, cheap handle, the same in every world.
//!
//! The seam between worlds is the enum `World`: what differs between them stands in its variants' modules and nowhere else.

mod dice;
mod process;
mod reply;
mod script;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use fake_telegram::api::TokenIndex;
use fake_telegram::time::{Duration, Time};
use rand_chacha::ChaCha8Rng;

use crate::event::Event;
use crate::executor::TurnGuard;
use crate::rng;
use crate::sim::{Call, Due, Next, Sim};
use crate::store::command::{Command, CommandError, Reply as StoreReply};
use crate::store::{Holds, Key};
use crate::world::{Belief, GiveUp, Message, ProcessIndex};

use self::script::{Closure, Running};

pub use self::dice::Dice;
pub use self::process::Process;
pub use self::reply::Reply;
pub use self::script::{After, Moves, Script, StoreScript};
pub use crate::store::StoreError;

/// The worlds that a strategy can run in.
#[derive(Clone)]
enum World {
    /// Virtual time, the server model, a modelled wire.
    Sim(Rc<Sim>),
}

/// One worker's handle on its world.
#[derive(Clone)]
pub struct Env {
    world: World,
    process: Rc<Process>,
    worker: u32,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} of process {}", self.worker, self.process.index.0)
    }
}

/// Time, and the other workers of the process.
impl Env {
    /// Worker `worker` of `process` in the simulated world.
    pub const fn simulated(sim: Rc<Sim>, process: Rc<Process>, worker: u32) -> Self {
        Self { world: World::Sim(sim), process, worker }
    }

    /// The instant that it is on this process' clock.
    #[inline]
    pub fn now(&self) -> Time {
        let World::Sim(sim) = &self.world;
        sim.handle().now().saturating_add(self.process.skew)
    }

    /// Waits until it is `deadline` on this process' clock.
    pub async fn sleep_until(&self, deadline: Time) {
        let World::Sim(sim) = &self.world;
        sim.handle().sleep_until(self.in_truth(deadline)).await;
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now().saturating_add(duration)).await;
    }

    /// Waits until a message is due, `until` is there, or a worker of this process [nudges](Env::nudge), whichever
    /// is first. For one worker of a process at a time: the one that has the [turn](Env::turn).
    pub async fn idle_until(&self, until: Time) {
        let World::Sim(sim) = &self.world;
        let mut nudged = self.process.bell.heard(sim.handle());
        // When nothing more will fall due, that is not what is waited for.
        let mut due = (!self.is_over()).then(|| Due::new(sim, self.process.outbox, self.process.index));
        let mut time = (until < Time::MAX).then(|| sim.handle().sleep_until(self.in_truth(until)));
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

    /// Starts a task beside this worker, in its process; it ends with the process.
    pub fn spawn(&self, name: &str, task: impl Future<Output = ()> + 'static) {
        let World::Sim(sim) = &self.world;
        sim.handle().spawn(format!("{name} of {self:?}"), task);
    }

    /// The true instant at which this process' clock shows `at`.
    fn in_truth(&self, at: Time) -> Time {
        if at == Time::MAX { at } else { Time::ZERO + at.saturating_since(Time::ZERO + self.process.skew) }
    }
}

/// Messages.
impl Env {
    /// The next due message; waits for one, and is `None` when nothing more will come or the process is to leave.
    pub async fn next(&self) -> Option<Message> {
        let World::Sim(sim) = &self.world;
        Next::new(sim, self.process.outbox, self.process.index).await
    }

    /// A message that is due now, if there is one.
    pub fn try_next(&self) -> Option<Message> {
        let World::Sim(sim) = &self.world;
        sim.try_next(self.process.outbox, self.process.index)
    }

    /// Whether a message is due now and waits for a process.
    pub fn is_due(&self) -> bool {
        let World::Sim(sim) = &self.world;
        sim.is_due(self.process.outbox)
    }

    /// Whether nothing is due for this process and nothing more will be.
    pub fn is_over(&self) -> bool {
        let World::Sim(sim) = &self.world;
        sim.is_over(self.process.outbox, self.process.index)
    }

    /// Whether the process is to leave: it gets no new messages, and finishes what it holds.
    pub fn is_leaving(&self) -> bool {
        let World::Sim(sim) = &self.world;
        sim.is_leaving(self.process.index)
    }

    /// Calls the server to send `message`.
    pub async fn send(&self, message: &Message) -> Reply<'_> {
        self.send_with(message, false).await
    }

    /// As [`send`](Env::send), and if `idempotency_key` the message's number goes along as one: a server that knows
    /// such keys sends nothing twice.
    pub async fn send_with(&self, message: &Message, idempotency_key: bool) -> Reply<'_> {
        let World::Sim(sim) = &self.world;
        let key = idempotency_key.then_some(message.number);
        let answer = Call::new(sim, *message, self.process.index, self.process.token, key).await;
        self.came_back("send").await;
        Reply::new(self, *message, answer)
    }

    /// When a call is given up: none is on the wire for longer.
    pub fn call_timeout(&self) -> Duration {
        let World::Sim(sim) = &self.world;
        sim.call_timeout()
    }

    /// The sender is done with `message` and believes this of it.
    pub fn settle(&self, message: &Message, belief: Belief) {
        self.record(&Event::Settled { message: *message, belief });
    }

    /// The sender gives `message` up.
    pub fn give_up(&self, message: &Message, why: GiveUp) {
        self.record(&Event::GivenUp { message: *message, why });
    }

    /// `message` asks what was answered before, and that answer is used again: it needs no call.
    pub fn reuse(&self, message: &Message) {
        self.record(&Event::Reused { message: *message });
    }
}

/// What processes share.
impl Env {
    /// The value called `name` in the store; it begins as `initial()`, now and after each loss of data.
    pub fn key<V: 'static>(&self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        let World::Sim(sim) = &self.world;
        sim.store().key(name, initial)
    }

    /// As [`key`](Env::key), for a value that holds messages: what is lost with the store, and what is not lost with a
    /// process ([`Script::holder`]).
    pub fn holder<V: Holds + 'static>(&self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        let World::Sim(sim) = &self.world;
        sim.store().holder(name, initial)
    }

    /// Runs a script in the store, at once and alone. It gets the store's own instant.
    ///
    /// # Errors
    /// If the store cannot be reached (it has not run then), or does not answer in time: it may have run, as over any
    /// network, so whoever runs it again has to be prepared for that.
    pub async fn run<S: StoreScript>(&self, script: S) -> Result<S::Reply, StoreError> {
        let name = script.name();
        let World::Sim(sim) = &self.world;
        let Process { index: process, life, .. } = *self.process;
        let running = Running { script, sim, process, life };
        let result = match sim.store_line() {
            None => {
                let (result, back) = sim.call_store(process, running);
                back.await;
                result
            }
            Some(line) => Box::pin(sim.carry_to_store(line, process, running)).await,
        };
        self.came_back(name).await;
        result
    }

    /// Runs the script called `name`, which is not written for a real Redis; otherwise as [`run`](Env::run).
    ///
    /// # Errors
    /// As `run`.
    pub async fn script<R>(
        &self,
        name: &'static str,
        script: impl FnOnce(&mut Script<'_>) -> R,
    ) -> Result<R, StoreError> {
        self.run(Closure { name, run: script }).await
    }

    /// Executes a command in the store.
    ///
    /// # Errors
    /// As [`run`](Env::run), and if the command does not fit what is under its key.
    pub async fn call(&self, command: Command) -> Result<StoreReply, StoreError> {
        let name = command.name();
        let World::Sim(sim) = &self.world;
        let result = match sim.store_line() {
            None => {
                let (result, back) = sim.call_store(self.process.index, &command);
                back.await;
                result
            }
            Some(line) => Box::pin(sim.carry_to_store(line, self.process.index, &command)).await,
        };
        self.came_back(name).await;
        result?.map_err(StoreError::Command)
    }

    /// Executes commands in one round trip, in order; others' commands may come in between on a real store, and do
    /// not on the simulated one. The call is called `pipeline`.
    ///
    /// # Errors
    /// As [`run`](Env::run).
    pub async fn pipeline(
        &self,
        commands: Vec<Command>,
    ) -> Result<Vec<Result<StoreReply, CommandError>>, StoreError> {
        let World::Sim(sim) = &self.world;
        let result = match sim.store_line() {
            None => {
                let (result, back) = sim.call_store(self.process.index, commands.as_slice());
                back.await;
                result
            }
            Some(line) => Box::pin(sim.carry_to_store(line, self.process.index, commands.as_slice())).await,
        };
        self.came_back("pipeline").await;
        result
    }

    /// Tells the other processes of this token that something waits in the store and that it pays to look: ends their
    /// [wait](Env::idle_until), as `PUBLISH` would, once the word has got around. Nobody waits for it.
    pub fn announce(&self) {
        let World::Sim(sim) = &self.world;
        sim.announce(self.process.index);
    }

    /// An answer has come back. If the process is to die between this call and its next, it does so here.
    #[inline]
    fn came_back(&self, name: &'static str) -> impl Future<Output = ()> {
        let World::Sim(sim) = &self.world;
        let dies = self.process.is_watched && sim.dies_after(self.process.index, name);
        // Nobody polls the dead again.
        poll_fn(move |_| if dies { Poll::Pending } else { Poll::Ready(()) })
    }
}

/// Who and where this is.
impl Env {
    /// This process' value of type `T`, shared by its workers; it begins as `initial()`.
    pub fn memory<T: 'static>(&self, initial: impl FnOnce() -> T) -> Rc<T> {
        self.process.memory(initial)
    }

    /// A generator of this worker's own for `purpose`; it cannot shift anybody else's draws.
    pub fn rng(&self, purpose: &str) -> ChaCha8Rng {
        let World::Sim(sim) = &self.world;
        let Process { index, life, .. } = &*self.process;
        let name = format!("strategy/{purpose}/{}/{life}/{}", index.0, self.worker);
        rng::stream(sim.seed(), &name)
    }

    /// Uniform numbers from [`rng`](Env::rng), which costs nothing until the first of them.
    pub fn dice(&self, purpose: &'static str) -> Dice {
        Dice::new(self.clone(), purpose)
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

    /// Which life this is, over all processes of the run: a process that starts again has another.
    pub fn life(&self) -> u32 {
        self.process.life
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
