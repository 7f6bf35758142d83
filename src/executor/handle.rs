//! The clock and the queue, as everything that lives in virtual time sees them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use fake_telegram::time::{Duration, Time};

use super::queue::{EventKey, Queue, Target};
use super::sleep::Sleep;

/// Who is to be woken: a task, or a foreign waker inside one. Handed out by [`Handle::waiter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter(Target);

/// The clock and the queue, shared by everything that lives in virtual time. Cheap to clone.
#[derive(Clone)]
pub struct Handle(pub(super) Rc<Core>);

pub(super) type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

pub(super) struct Core {
    pub(super) now: Cell<Time>,
    pub(super) queue: RefCell<Queue>,
    /// Tasks to poll at this instant, in order.
    pub(super) ready: RefCell<VecDeque<u32>>,
    pub(super) spawned: RefCell<Vec<Spawned>>,
    /// Groups whose tasks are to be dropped.
    pub(super) killed: RefCell<Vec<u32>>,
    /// Whether something was spawned or killed.
    pub(super) has_changed: Cell<bool>,
    /// The task being polled, and its group.
    pub(super) current: Cell<u32>,
    pub(super) current_group: Cell<u32>,
    /// Address of its waker's data: how a future sees whether it is polled by its task or by a combinator.
    pub(super) current_waker: Cell<*const ()>,
    /// Wakers of combinators, by slot.
    pub(super) foreign: RefCell<Foreign>,
    pub(super) waiting: Cell<&'static str>,
}

#[derive(Default)]
pub(super) struct Foreign {
    pub(super) wakers: Vec<Option<Waker>>,
    pub(super) free: Vec<u32>,
}

pub(super) struct Spawned {
    pub(super) group: u32,
    pub(super) name: String,
    pub(super) future: BoxedTask,
}

impl Handle {
    /// The clock at [`Time::ZERO`]; with `shuffle`, events at one instant run in an order drawn with that key.
    pub(super) fn new(shuffle: Option<u64>) -> Self {
        Self(Rc::new(Core {
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
        }))
    }

    /// The instant that it is.
    #[inline]
    pub fn now(&self) -> Time {
        self.0.now.get()
    }

    /// Completes at `deadline`; one that is not in the future completes at this instant, after what is already set
    /// for it. Dropping it takes its event out of the queue.
    pub fn sleep_until(&self, deadline: Time) -> Sleep {
        Sleep::new(self.clone(), deadline, "a sleep to end")
    }

    /// Completes after `duration`, in which the task waits for something that errors are to name.
    pub fn wait_for(&self, waiting: &'static str, duration: Duration) -> Sleep {
        Sleep::new(self.clone(), self.now().saturating_add(duration), waiting)
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

    /// Calls [`Source::external`](super::Source::external) with `number` (below 2^26) at `at`.
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
    pub(super) fn pending(&self) -> usize {
        self.0.queue.borrow().len()
    }

    /// Entries that the queue holds, dead ones included: its memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.0.queue.borrow().held()
    }

    /// Whether the event has happened.
    pub fn happened(&self, key: EventKey) -> bool {
        self.0.queue.borrow().happened(key)
    }

    #[cold]
    pub(super) fn wake_foreign(&self, slot: u32) {
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
