//! A deterministic, single-threaded executor in virtual time.
//!
//! It knows futures and time, nothing of servers. Tasks are ordinary `!Send` futures; time jumps from one event to the
//! next. Events at one instant run in the order in which they were set, by an explicit counter (optionally in a
//! seeded shuffle, which finds code that lives off the order).
//!
//! The hot path allocates nothing and touches no atomic read-modify-write: an event is one `u128` that carries the
//! task's number, and our own futures wake by that number. Futures from elsewhere (`futures::channel`,
//! `FuturesUnordered`, ...) wake through the task's [`Waker`], which works and costs more.
//!
//! Start reading at [`Executor::run`].

mod queue;
mod sleep;
mod turn;
mod waker;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use fake_telegram::time::{Duration, Time};

use queue::Queue;
use waker::Woken;

pub use queue::{EventKey, Target};
pub use sleep::Sleep;
pub use turn::{Bell, Heard, TakeTurn, Turn, TurnGuard};

/// Polls at one instant, beside those for each task and each event of the source, after which a run counts as spinning.
pub const POLLS_PER_INSTANT_MAX: u64 = 1_000_000;
/// Polls that each event of the source (an arrival) may cause at one instant: a million messages that fall due
/// together are work, not a spin.
const POLLS_PER_FIRE: u64 = 32;

/// What happens outside of the tasks, in the same virtual time: arrivals, calls that reach a server.
pub trait Source {
    /// The instant of the source's own next event; [`Time::MAX`] if there is none. At equal instants it comes before
    /// everything in the queue.
    fn next_at(&self) -> Time;
    /// The source's own event is due.
    fn fire(&self);
    /// An event set with [`Handle::set`] is due.
    fn external(&self, number: u32);
}

/// A source without events, for tasks that need nothing but time.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Source for Nothing {
    fn next_at(&self) -> Time {
        Time::MAX
    }
    fn fire(&self) {}
    fn external(&self, _: u32) {}
}

/// How a run ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stalled {
    /// Nothing is left to happen, and tasks still wait.
    #[error("nothing is left to happen at {at}, and {} waits for ever: {}", tally(*count), list(tasks))]
    Deadlock {
        /// When.
        at: Time,
        /// How many wait.
        count: usize,
        /// The first few, each with what it waits for.
        tasks: Vec<(String, &'static str)>,
    },
    /// A task is polled again and again and time does not pass.
    #[error(
        "{task} spins at {at}: polled more than {polls} times without time passing, waiting for {waiting}"
    )]
    Livelock {
        /// When.
        at: Time,
        /// Which task was polled last.
        task: String,
        /// What it said it waits for.
        waiting: &'static str,
        /// The bound that it passed.
        polls: u64,
    },
}

fn tally(tasks: usize) -> String {
    if tasks == 1 { "a task".to_owned() } else { format!("each of {tasks} tasks") }
}

fn list(tasks: &[(String, &'static str)]) -> String {
    tasks.iter().map(|(task, waiting)| format!("{task} waits for {waiting}")).collect::<Vec<_>>().join("; ")
}

/// Who is to be woken: a task, or a foreign waker inside one. Handed out by [`Handle::waiter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter(Target);

/// The clock and the queue, shared by everything that lives in virtual time. Cheap to clone.
#[derive(Clone)]
pub struct Handle(Rc<Core>);

type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

struct Core {
    now: Cell<Time>,
    queue: RefCell<Queue>,
    /// Tasks to poll at this instant, in order.
    ready: RefCell<VecDeque<u32>>,
    spawned: RefCell<Vec<Spawned>>,
    /// Groups whose tasks are to be dropped.
    killed: RefCell<Vec<u32>>,
    /// Whether something was spawned or killed.
    has_changed: Cell<bool>,
    /// The task being polled, and its group.
    current: Cell<u32>,
    current_group: Cell<u32>,
    /// Address of its waker's data: how a future sees whether it is polled by its task or by a combinator.
    current_waker: Cell<*const ()>,
    /// Wakers of combinators, by slot.
    foreign: RefCell<Foreign>,
    waiting: Cell<&'static str>,
}

#[derive(Default)]
struct Foreign {
    wakers: Vec<Option<Waker>>,
    free: Vec<u32>,
}

struct Spawned {
    group: u32,
    name: String,
    future: BoxedTask,
}

struct Task {
    group: u32,
    name: String,
    future: Option<BoxedTask>,
    waker: Waker,
    waiting: &'static str,
}

/// Runs tasks in virtual time.
pub struct Executor {
    handle: Handle,
    tasks: Vec<Task>,
    alive: usize,
    woken: std::sync::Arc<Woken>,
    /// Slots of tasks that have ended.
    ended: Vec<u32>,
    polls_per_instant_max: u64,
    polls_at_instant: u64,
    fired: u64,
}

impl Handle {
    /// The instant that it is.
    #[inline]
    pub fn now(&self) -> Time {
        self.0.now.get()
    }

    /// Completes at `deadline`; one that is not in the future completes at this instant, after what is already set
    /// for it. Dropping it takes its event out of the queue.
    pub fn sleep_until(&self, deadline: Time) -> Sleep {
        Sleep::new(self.clone(), deadline)
    }

    /// Completes after `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.now().saturating_add(duration))
    }

    /// Starts another task, after those that are ready now; in the group of the task that does so, in group 0 outside
    /// of tasks.
    pub fn spawn(&self, name: String, task: impl Future<Output = ()> + 'static) {
        self.spawn_in(self.0.current_group.get(), name, task);
    }

    /// Starts a task of a group of tasks that end together if somebody [kills](Handle::kill) them.
    pub fn spawn_in(&self, group: u32, name: String, task: impl Future<Output = ()> + 'static) {
        self.0.spawned.borrow_mut().push(Spawned { group, name, future: Box::pin(task) });
        self.0.has_changed.set(true);
    }

    /// Drops all tasks of `group` at this instant, before any task is polled again; the task that is being polled is
    /// dropped when it next waits, so it should wait at once.
    pub fn kill(&self, group: u32) {
        self.0.killed.borrow_mut().push(group);
        self.0.has_changed.set(true);
    }

    /// Calls [`Source::external`] with `number` (below 2^26) at `at`.
    pub fn set(&self, at: Time, number: u32) -> EventKey {
        self.0.queue.borrow_mut().set(at, Target::external(number))
    }

    /// Takes an event back; does nothing if it has happened.
    pub fn cancel(&self, key: EventKey) {
        self.0.queue.borrow_mut().cancel(key);
    }

    /// Wakes `waiter` at `at`.
    #[inline]
    pub fn wake_at(&self, at: Time, waiter: Waiter) -> EventKey {
        self.0.queue.borrow_mut().set(at, waiter.0)
    }

    /// Wakes `waiter` at this instant, after those woken before.
    #[inline]
    pub fn wake(&self, waiter: Waiter) {
        match waiter.0.task() {
            Some(task) => self.0.ready.borrow_mut().push_back(task),
            None => self.wake_foreign(waiter.0.index()),
        }
    }

    /// Whoever polls the calling future, to be woken later. `waiting` names what for, in errors.
    ///
    /// Every waiter is either woken once or given back with [`Handle::forget`].
    #[inline]
    pub fn waiter(&self, context: &Context<'_>, waiting: &'static str) -> Waiter {
        self.0.waiting.set(waiting);
        if context.waker().data() == self.0.current_waker.get() {
            return Waiter(Target::for_task(self.0.current.get()));
        }
        self.foreign_waiter(context)
    }

    #[cold]
    fn foreign_waiter(&self, context: &Context<'_>) -> Waiter {
        let mut foreign = self.0.foreign.borrow_mut();
        let waker = Some(context.waker().clone());
        let slot = match foreign.free.pop() {
            Some(slot) => {
                foreign.wakers[slot as usize] = waker;
                slot
            }
            None => {
                foreign.wakers.push(waker);
                (foreign.wakers.len() - 1) as u32
            }
        };
        Waiter(Target::foreign(slot))
    }

    /// Says again what the task waits for, when a future is polled before its time.
    pub fn still_waiting(&self, waiting: &'static str) {
        self.0.waiting.set(waiting);
    }

    /// Gives a waiter back that will not be woken.
    pub fn forget(&self, waiter: Waiter) {
        if waiter.0.task().is_none() {
            let mut foreign = self.0.foreign.borrow_mut();
            foreign.wakers[waiter.0.index() as usize] = None;
            foreign.free.push(waiter.0.index());
        }
    }

    /// Events in the queue, dead ones not counted.
    #[cfg(test)]
    fn pending(&self) -> usize {
        self.0.queue.borrow().len()
    }

    /// Entries that the queue holds, dead ones included: its memory.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.0.queue.borrow().held()
    }

    /// Whether the event has happened.
    pub fn happened(&self, key: EventKey) -> bool {
        self.0.queue.borrow().happened(key)
    }

    #[cold]
    fn wake_foreign(&self, slot: u32) {
        let waker = {
            let mut foreign = self.0.foreign.borrow_mut();
            foreign.free.push(slot);
            foreign.wakers[slot as usize].take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.now())
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Executor({}, {} tasks)", self.handle.now(), self.alive)
    }
}

impl Default for Executor {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Executor {
    /// An executor at [`Time::ZERO`]; with `shuffle`, events at one instant run in an order drawn with that key.
    pub fn new(shuffle: Option<u64>) -> Self {
        let core = Core {
            now: Cell::new(Time::ZERO),
            queue: RefCell::new(Queue::new(shuffle)),
            ready: RefCell::default(),
            spawned: RefCell::default(),
            killed: RefCell::default(),
            has_changed: Cell::new(false),
            current: Cell::new(0),
            current_group: Cell::new(0),
            current_waker: Cell::new(std::ptr::null()),
            foreign: RefCell::default(),
            waiting: Cell::new(""),
        };
        Self {
            handle: Handle(Rc::new(core)),
            tasks: Vec::new(),
            alive: 0,
            woken: std::sync::Arc::default(),
            ended: Vec::new(),
            polls_per_instant_max: POLLS_PER_INSTANT_MAX,
            polls_at_instant: 0,
            fired: 0,
        }
    }

    /// Another bound than [`POLLS_PER_INSTANT_MAX`].
    #[cfg(test)]
    fn with_polls_per_instant_max(mut self, polls: u64) -> Self {
        self.polls_per_instant_max = polls;
        self
    }

    /// The clock and the queue.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs until `until`: everything before it happens, nothing at it or after. Ends early when neither a task nor
    /// the source has anything left to do.
    ///
    /// 1. Tasks that are ready are polled, first come, first served.
    /// 2. The earliest event is taken: the source's own, or the head of the queue.
    /// 3. Time jumps to it.
    /// 4. The source is told, or the task is polled.
    ///
    /// # Errors
    /// [`Stalled`], which names the task: a deadlock or a livelock in the tasks.
    pub fn run(&mut self, source: &impl Source, until: Time) -> Result<(), Stalled> {
        loop {
            if !self.is_settled() {
                self.settle()?;
            }
            let own = source.next_at();
            let queued = self.handle.0.queue.borrow_mut().next_at();
            let at = own.min(queued);
            if at >= until {
                if at == Time::MAX && self.alive > 0 {
                    return Err(self.deadlock());
                }
                if until != Time::MAX {
                    self.advance(until);
                }
                return Ok(());
            }
            self.advance(at);
            if own <= queued {
                self.fired += 1;
                source.fire();
                continue;
            }
            let target = self.handle.0.queue.borrow_mut().pop();
            match target.task() {
                Some(task) => self.poll(task)?,
                None if target.is_foreign() => self.handle.wake_foreign(target.index()),
                None => source.external(target.index()),
            }
        }
    }

    /// Drops every task, for the memory and for what they hold.
    pub fn clear(&mut self) {
        self.tasks.clear();
        self.ended.clear();
        self.alive = 0;
    }

    fn advance(&mut self, at: Time) {
        if at > self.handle.now() {
            self.handle.0.now.set(at);
            self.polls_at_instant = 0;
        }
    }

    /// Polls what is ready at this instant until nothing is.
    fn settle(&mut self) -> Result<(), Stalled> {
        loop {
            if self.woken.any() {
                self.handle.0.ready.borrow_mut().extend(self.woken.take());
            }
            if self.handle.0.has_changed.take() {
                self.bury();
                self.adopt();
            }
            let Some(task) = self.handle.0.ready.borrow_mut().pop_front() else { return Ok(()) };
            self.poll(task)?;
        }
    }

    /// Whether there is something to [settle](Executor::settle).
    #[inline]
    fn is_settled(&self) -> bool {
        self.handle.0.ready.borrow().is_empty() && !self.handle.0.has_changed.get() && !self.woken.any()
    }

    /// Drops the tasks of killed groups.
    fn bury(&mut self) {
        let killed = self.handle.0.killed.take();
        if killed.is_empty() {
            return;
        }
        let is_killed = |group: u32| killed.contains(&group);
        // What a dropped future does in its `Drop` may spawn, kill or wake.
        let unborn: Vec<Spawned> = {
            let mut spawned = self.handle.0.spawned.borrow_mut();
            spawned.extract_if(.., |spawned| is_killed(spawned.group)).collect()
        };
        drop(unborn);
        for id in 0..self.tasks.len() {
            let task = &mut self.tasks[id];
            if is_killed(task.group)
                && let Some(future) = task.future.take()
            {
                self.ended.push(id as u32);
                self.alive -= 1;
                drop(future);
            }
        }
    }

    fn adopt(&mut self) {
        let spawned = self.handle.0.spawned.take();
        for Spawned { group, name, future } in spawned {
            // Whoever still holds the number of a task that has ended wakes its successor, which then finds nothing new.
            let id = self.ended.pop().unwrap_or(self.tasks.len() as u32);
            let waker = self.woken.waker(id);
            let task = Task { group, name, future: Some(future), waker, waiting: "its first turn" };
            match self.tasks.get_mut(id as usize) {
                Some(slot) => *slot = task,
                None => self.tasks.push(task),
            }
            self.alive += 1;
            self.handle.0.ready.borrow_mut().push_back(id);
        }
    }

    fn poll(&mut self, id: u32) -> Result<(), Stalled> {
        self.polls_at_instant += 1;
        let task = &mut self.tasks[id as usize];
        let funded = self.alive as u64 + self.fired.saturating_mul(POLLS_PER_FIRE);
        if self.polls_at_instant > self.polls_per_instant_max + funded {
            return Err(Stalled::Livelock {
                at: self.handle.now(),
                task: task.name.clone(),
                waiting: task.waiting,
                polls: self.polls_per_instant_max,
            });
        }
        // A task can be woken after its end, by a waker that somebody kept.
        let Some(future) = task.future.as_mut() else { return Ok(()) };
        let core = &self.handle.0;
        core.current.set(id);
        core.current_group.set(task.group);
        core.current_waker.set(task.waker.data());
        core.waiting.set("something outside of the run");
        match future.as_mut().poll(&mut Context::from_waker(&task.waker)) {
            Poll::Pending => task.waiting = core.waiting.get(),
            Poll::Ready(()) => {
                task.future = None;
                self.ended.push(id);
                self.alive -= 1;
            }
        }
        self.handle.0.current_group.set(0);
        Ok(())
    }

    fn deadlock(&self) -> Stalled {
        const SHOWN: usize = 3;
        let waiting = self.tasks.iter().filter(|task| task.future.is_some());
        Stalled::Deadlock {
            at: self.handle.now(),
            count: self.alive,
            tasks: waiting.take(SHOWN).map(|task| (task.name.clone(), task.waiting)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
