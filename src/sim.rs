//! The world: workloads feed outboxes, a modelled wire carries calls to the server model and answers back, all in virtual
//! time.
//!
//! In real time it is the same world: a [`Carrier`] is at the other end of the wire, and whoever turns the executor looks
//! at a real clock.
//!
//! Strategies never see this module; they see [`crate::env::Env`]. Computing takes no virtual time.

mod carrier;
mod lives;
mod outbox;
mod store;
mod wire;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use fake_telegram::api::{ChatIndex, Method, TokenIndex};
use fake_telegram::limits::Level;
use fake_telegram::time::{Duration, Time};

use crate::event::{Event, Observer};
use crate::executor::{Bell, Handle, Source};
use crate::ledger::Fate;
use crate::metrics::Penalties;
use crate::observers::Observers;
use crate::store::Store;
use crate::world::{Change, ClassIndex, KillPoint, Message, ProcessIndex};

pub use carrier::{Carrier, News, Outgoing};
pub use lives::Plan;
pub use outbox::{Due, Next};
pub use store::{StoreLine, Way};
pub use wire::{Call, Server};

use lives::Lives;
use outbox::Outbox;
use store::ANNOUNCEMENT;
use wire::Wire;

/// An arrival of some workload: when, in which chat, the workload's index.
pub type Arrival = (Time, ChatIndex, usize);

/// What a simulated run is made of.
pub struct Setup {
    /// The run's seed.
    pub seed: u64,
    /// The server, and the way to it.
    pub server: Server,
    /// All arrivals, in order of time.
    pub arrivals: Box<dyn Iterator<Item = Arrival>>,
    /// By workload: what its messages are and which outbox they go to.
    pub routes: Vec<Route>,
    /// The names of the classes.
    pub classes: Rc<[String]>,
    /// The tokens that processes send with, each once.
    pub tokens: Vec<TokenIndex>,
    /// How many outboxes there are.
    pub outboxes: usize,
    /// When a client gives up on a call.
    pub timeout: Duration,
    /// How many processes there ever are.
    pub processes: usize,
    /// What happens to them: when, to which, what.
    pub steps: Vec<(Time, u32, Plan)>,
    /// Where they die between two calls.
    pub kill_points: Vec<KillPoint>,
    /// Starts the tasks of a process in a life of this number, which is the group of its tasks.
    pub launch: Launch,
    /// What they share.
    pub store: Store,
    /// The way to it.
    pub way: Way,
    /// Who carries calls to it instead, if it is a real one in real time.
    pub store_line: Option<Box<dyn StoreLine>>,
    /// The distance of the samples.
    pub sample: Duration,
    /// Where totals are cut: instants, rising.
    pub cuts: Vec<Time>,
    /// Who watches.
    pub observers: Observers,
}

/// A process' token, and what it listens to.
type Listener = (TokenIndex, Rc<Bell>);

/// See [`Setup::launch`].
pub type Launch = Box<dyn Fn(&Rc<Sim>, ProcessIndex, u32)>;

/// What the messages of a workload are, and where they go.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Their class.
    pub class: ClassIndex,
    /// How long after its due instant a message is still wanted.
    pub deadline: Option<Duration>,
    /// The method that they are sent with.
    pub method: Method,
    /// [`Message::from_user`].
    pub from_user: bool,
    /// Which outbox they go to.
    pub outbox: usize,
}

/// The simulated world of one run.
pub struct Sim {
    handle: Handle,
    seed: u64,
    arrivals: RefCell<Box<dyn Iterator<Item = Arrival>>>,
    arriving: Cell<Option<Arrival>>,
    next_at: Cell<Time>,
    routes: Vec<Route>,
    classes: Rc<[String]>,
    numbered: Cell<u32>,
    tokens: Vec<TokenIndex>,
    outboxes: Vec<Outbox>,
    wire: RefCell<Wire>,
    lives: RefCell<Lives>,
    launch: Launch,
    me: Weak<Self>,
    store: Store,
    way: Way,
    store_line: Option<Box<dyn StoreLine>>,
    /// By process.
    bells: RefCell<Vec<Option<Listener>>>,
    sample: Duration,
    sample_at: Cell<Time>,
    cuts: RefCell<std::vec::IntoIter<Time>>,
    cut_at: Cell<Time>,
    /// The earlier of both.
    look_at: Cell<Time>,
    observers: RefCell<Observers>,
    /// Nothing is recorded any more: what tasks do while they are torn down did not happen.
    over: Cell<bool>,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sim({}, {} messages so far)", self.handle.now(), self.numbered.get())
    }
}

impl Sim {
    /// The world at its start; `handle` is its clock.
    pub fn new(setup: Setup, handle: Handle) -> Rc<Self> {
        let mut arrivals = setup.arrivals;
        let arriving = arrivals.next();
        let mut cuts = setup.cuts.into_iter();
        let sim = Rc::new_cyclic(|me| Self {
            handle,
            seed: setup.seed,
            arrivals: RefCell::new(arrivals),
            arriving: Cell::new(arriving),
            next_at: Cell::new(Time::ZERO),
            routes: setup.routes,
            classes: setup.classes,
            numbered: Cell::new(0),
            tokens: setup.tokens,
            outboxes: (0..setup.outboxes).map(|_| Outbox::default()).collect(),
            wire: RefCell::new(Wire::new(setup.seed, setup.server, setup.timeout)),
            lives: RefCell::new(Lives::new(setup.processes, setup.steps, setup.kill_points)),
            launch: setup.launch,
            me: me.clone(),
            store: setup.store,
            way: setup.way,
            store_line: setup.store_line,
            bells: RefCell::new(vec![None; setup.processes]),
            sample: setup.sample,
            sample_at: Cell::new(Time::ZERO),
            cut_at: Cell::new(cuts.next().unwrap_or(Time::MAX)),
            cuts: RefCell::new(cuts),
            look_at: Cell::new(Time::ZERO),
            observers: RefCell::new(setup.observers),
            over: Cell::new(false),
        });
        sim.plan();
        if arriving.is_none() {
            sim.close();
        }
        sim
    }

    /// The clock and the queue.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The run's seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What the processes share.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The names of the classes.
    pub const fn classes(&self) -> &Rc<[String]> {
        &self.classes
    }

    /// The run is over: samples up to the end are taken, nothing is recorded after. Shows the server's penalties and the
    /// books, and how many messages are lost that a real store in real time should have and has not.
    ///
    /// # Errors
    /// If a message is taken to be in another store and is not there: its number.
    pub fn finish<R>(&self, look: impl FnOnce(Vec<Penalties>, &Observers, u64) -> R) -> Result<R, u32> {
        self.sample_until(self.handle.now());
        self.over.set(true);
        let (wire, mut observers) = (self.wire.borrow(), self.observers.borrow_mut());
        let ledger = &mut observers.ledger;
        // A store that does not say is believed to hold what it should.
        let mut missing = Vec::new();
        if let Some(mut held) = self.store.held() {
            held.sort_unstable();
            missing.extend(ledger.in_store().filter(|message| held.binary_search(message).is_err()));
        }
        if let (None, Some(first)) = (&self.store_line, missing.first()) {
            return Err(*first);
        }
        // Somebody else may have emptied it, and of a call that had no answer nobody learns what it did.
        missing.iter().for_each(|message| ledger.lose(*message));
        ledger.close(&wire.undecided());
        let is_lost = |message: &&u32| ledger.lines()[**message as usize].fate() == Fate::Lost;
        let lost = missing.iter().filter(is_lost).count() as u64;
        Ok(look(wire.penalties(self.handle.now()), &observers, lost))
    }

    /// The kill points that did not come: process, name of the call, calls that were still to come.
    pub fn missed_kill_points(&self) -> Vec<(u32, String, u32)> {
        self.lives.borrow().missed()
    }

    /// When a client gives up on a call.
    pub fn call_timeout(&self) -> Duration {
        self.wire.borrow().timeout()
    }

    /// Whether `process` is to leave.
    #[inline]
    pub fn is_leaving(&self, process: ProcessIndex) -> bool {
        self.lives.borrow().leaves(process)
    }

    /// Whether `process` is still in the life of this number.
    #[inline]
    pub fn is_in_life(&self, process: ProcessIndex, life: u32) -> bool {
        self.lives.borrow().is_in(process, life)
    }

    /// The answer to a call named `name` has come back to `process`. Whether it is dead now.
    #[cold]
    pub fn dies_after(&self, process: ProcessIndex, name: &str) -> bool {
        let dies = self.lives.borrow().dies_after(process, name);
        if let Some(restart_after) = dies {
            self.kill(process.0.into());
            if let Some(gone) = restart_after {
                let at = self.handle.now().saturating_add(gone);
                self.lives.borrow_mut().plan(at, process.0.into(), Plan::Return);
                self.plan();
            }
        }
        dies.is_some()
    }

    #[cold]
    fn change(&self, process: u32, plan: Plan) {
        match plan {
            Plan::Change(Change::Start) => self.start(process, false),
            Plan::Return => self.start(process, true),
            Plan::Death => self.kill(process),
            Plan::Change(Change::Kill) => {
                self.kill(process);
                self.lives.borrow_mut().stay_away(process);
            }
            Plan::Change(Change::Leave) => {
                if self.lives.borrow_mut().leave(process) {
                    // Whoever of it waits for a message finds out that it gets none.
                    self.outboxes.iter().for_each(|outbox| outbox.wake_all(&self.handle));
                }
            }
        }
    }

    fn start(&self, process: u32, returns: bool) {
        let started = self.lives.borrow_mut().start(process, returns);
        if let Some(life) = started {
            let process = ProcessIndex(process as u16);
            self.record(&Event::Started { process });
            let me = self.me.upgrade().expect("whoever tells the world that time has come holds it");
            (self.launch)(&me, process, life);
        }
    }

    fn kill(&self, process: u32) {
        let killed = self.lives.borrow_mut().kill(process);
        if let Some(life) = killed {
            self.record(&Event::Killed { process: ProcessIndex(process as u16) });
            self.handle.kill(life);
        }
    }

    #[inline(always)]
    pub(crate) fn record(&self, event: &Event) {
        if !self.over.get() {
            let now = self.handle.now();
            self.sample_until(now);
            self.observers.borrow_mut().observe(now, event);
        }
    }

    /// Takes the samples before `now`'s events; nothing has changed since they were due, so late is exact.
    #[inline]
    fn sample_until(&self, now: Time) {
        if self.look_at.get() <= now {
            self.take_samples(now);
        }
    }

    #[cold]
    fn take_samples(&self, now: Time) {
        while self.look_at.get() <= now {
            let at = self.look_at.get();
            let level = self.level(at);
            let mut observers = self.observers.borrow_mut();
            if self.cut_at.get() == at {
                observers.cut(at, level, self.wire.borrow().penalties(at));
                self.cut_at.set(self.cuts.borrow_mut().next().unwrap_or(Time::MAX));
            }
            if self.sample_at.get() == at {
                observers.observe(at, &Event::Sample { level });
                self.sample_at.set(at + self.sample);
            }
            self.look_at.set(self.sample_at.get().min(self.cut_at.get()));
        }
    }

    /// What the token-wide limit allows at `at`, over all tokens.
    fn level(&self, at: Time) -> Option<Level> {
        let wire = self.wire.borrow();
        let levels = self.tokens.iter().filter_map(|token| wire.level(*token, at));
        levels.reduce(|mut sum, level| {
            sum.available += level.available;
            sum.capacity += level.capacity;
            sum.rate.count += level.rate.count;
            sum
        })
    }

    /// Says again when the next event of our own is.
    fn plan(&self) {
        let due = self.arriving.get().map_or(Time::MAX, |(at, ..)| at);
        let planned = self.lives.borrow().next_at().min(self.store.next_event_at());
        self.next_at.set(due.min(self.wire.borrow().next_timeout()).min(planned));
    }

    fn arrive(&self, (due, chat, workload): Arrival) {
        let route = self.routes[workload];
        let number = self.numbered.get();
        self.numbered.set(number + 1);
        let (kind, alive) = self.wire.borrow_mut().look(chat, due, route.from_user);
        let deadline = route.deadline.map_or(Time::MAX, |deadline| due.saturating_add(deadline));
        let Route { class, method, from_user, .. } = route;
        let message = Message { number, chat, due, deadline, class, kind, method, from_user };
        self.record(&Event::Due { message, alive });
        self.outboxes[route.outbox].push(message, &self.handle);
        let next = self.arrivals.borrow_mut().next();
        self.arriving.set(next);
        if next.is_none() {
            self.close();
        }
    }

    fn close(&self) {
        for outbox in &self.outboxes {
            outbox.close(&self.handle);
        }
    }
}

impl Source for Sim {
    fn next_at(&self) -> Time {
        self.next_at.get()
    }

    fn fire(&self) {
        let now = self.handle.now();
        self.sample_until(now);
        let happens = self.lives.borrow_mut().due(now);
        if let Some((process, plan)) = happens {
            self.change(process, plan);
        } else if self.store.next_event_at() <= now {
            self.advance_store(now);
        } else if self.wire.borrow().next_timeout() <= now {
            self.wire.borrow_mut().advance(now, self);
        } else if let Some(arrival) = self.arriving.get() {
            self.arrive(arrival);
        }
        self.plan();
    }

    fn external(&self, call: u32) {
        let now = self.handle.now();
        self.sample_until(now);
        if call >= ANNOUNCEMENT {
            return self.hear(call - ANNOUNCEMENT);
        }
        let mut wire = self.wire.borrow_mut();
        let before = wire.next_timeout();
        wire.arrive(now, call, self);
        let changed = wire.next_timeout() != before;
        drop(wire);
        if changed {
            self.plan();
        }
    }
}
