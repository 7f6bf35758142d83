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
//! In real time the same tasks run by turns ([`Executor::turn`]); whoever calls it has the clock.
//!
//! Start reading at [`Executor::run`].

mod handle;
mod queue;
mod sleep;
mod stalled;
mod turn;
mod waker;

use std::fmt;
use std::task::{Context, Poll, Waker};

use fake_telegram::time::{Duration, Time};

use handle::{BoxedTask, Spawned};
use waker::Woken;

pub use handle::{Handle, Waiter};
pub use queue::{EventKey, Target};
pub use sleep::Sleep;
pub use stalled::Stalled;
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
        Self {
            handle: Handle::new(shuffle),
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
                    return Err(self.stuck());
                }
                if until != Time::MAX {
                    self.advance(until);
                }
                return Ok(());
            }
            self.advance(at);
            self.happen(source, own <= queued)?;
        }
    }

    /// A turn in real time: lets everything happen that is due by `now`, and it happens at `now`; late is late. When
    /// something is next due; [`Time::MAX`] if nothing is. `late` hears of each event how late it is.
    ///
    /// # Errors
    /// [`Stalled`], for a livelock in the tasks. Whether it is a deadlock that nothing is due, only who waits for
    /// something outside of the queue can tell ([`Executor::deadlock`]).
    pub fn turn(
        &mut self,
        source: &impl Source,
        now: Time,
        mut late: impl FnMut(Duration),
    ) -> Result<Time, Stalled> {
        self.advance(now);
        loop {
            if !self.is_settled() {
                self.settle()?;
            }
            let own = source.next_at();
            let queued = self.handle.0.queue.borrow_mut().next_at();
            let at = own.min(queued);
            if at > now {
                return Ok(at);
            }
            late(now - at);
            self.happen(source, own <= queued)?;
        }
    }

    /// The earliest event happens: the source's `own`, or the head of the queue.
    #[inline(always)]
    fn happen(&mut self, source: &impl Source, own: bool) -> Result<(), Stalled> {
        if own {
            self.fired += 1;
            source.fire();
            return Ok(());
        }
        let target = self.handle.0.queue.borrow_mut().pop();
        match target.task() {
            Some(task) => self.poll(task)?,
            None if target.is_foreign() => self.handle.wake_foreign(target.index()),
            None => source.external(target.index()),
        }
        Ok(())
    }

    /// Drops every task, for the memory and for what they hold.
    pub fn clear(&mut self) {
        self.tasks.clear();
        self.ended.clear();
        self.alive = 0;
    }

    /// It is `at` now, unless it is later already; what was due meanwhile is still to happen.
    #[inline]
    pub fn advance(&mut self, at: Time) {
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

    /// Who waits, if anybody does, when nothing is due and nothing will come from outside.
    pub fn deadlock(&self) -> Option<Stalled> {
        (self.alive > 0).then(|| self.stuck())
    }

    fn stuck(&self) -> Stalled {
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
