//! Messages that are due and not yet handed to a process.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::event::Event;
use crate::executor::{Handle, Waiter};
use crate::world::{Message, ProcessIndex};

use super::Sim;

/// One queue of due messages; each is handed to one process, at most once, first come, first served.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: RefCell<VecDeque<Message>>,
    waiters: RefCell<VecDeque<(u64, Waiter)>>,
    tickets: Cell<u64>,
    closed: Cell<bool>,
}

impl Outbox {
    pub(super) fn push(&self, message: Message, handle: &Handle) {
        self.queue.borrow_mut().push_back(message);
        self.wake_one(handle);
    }

    /// No more will come: whoever waits is told.
    pub(super) fn close(&self, handle: &Handle) {
        self.closed.set(true);
        self.wake_all(handle);
    }

    /// Whoever waits looks again.
    pub(super) fn wake_all(&self, handle: &Handle) {
        for (_, waiter) in self.waiters.take() {
            handle.wake(waiter);
        }
    }

    fn wake_one(&self, handle: &Handle) {
        if let Some((_, waiter)) = self.waiters.borrow_mut().pop_front() {
            handle.wake(waiter);
        }
    }

    fn wait(&self, handle: &Handle, context: &Context<'_>) -> u64 {
        let ticket = self.tickets.get() + 1;
        self.tickets.set(ticket);
        let waiter = handle.waiter(context, "a message to fall due");
        self.waiters.borrow_mut().push_back((ticket, waiter));
        ticket
    }

    /// Whether the ticket is still in line.
    fn waits(&self, ticket: u64) -> bool {
        // Tickets rise along the line, so only the front has to be looked at.
        let waiters = self.waiters.borrow();
        waiters.front().is_some_and(|(front, _)| *front <= ticket)
            && waiters.binary_search_by_key(&ticket, |(waiting, _)| *waiting).is_ok()
    }

    /// Leaves the line, with what it waited for.
    fn served(&self, ticket: u64, handle: &Handle) {
        if self.waits(ticket) {
            self.leave(ticket, handle);
        }
    }

    /// Leaves the line. Whoever was woken and leaves without a message wakes the next.
    fn leave(&self, ticket: u64, handle: &Handle) {
        let mut waiters = self.waiters.borrow_mut();
        match waiters.binary_search_by_key(&ticket, |(waiting, _)| *waiting) {
            Ok(place) => {
                let (_, waiter) = waiters.remove(place).expect("the place was just found");
                handle.forget(waiter);
            }
            Err(_) => {
                drop(waiters);
                if !self.queue.borrow().is_empty() {
                    self.wake_one(handle);
                }
            }
        }
    }
}

impl Sim {
    /// The next due message of `outbox` for `process`, if there is one now.
    pub fn try_next(&self, outbox: usize, process: ProcessIndex) -> Option<Message> {
        if self.is_leaving(process) {
            return None;
        }
        let message = self.outboxes[outbox].queue.borrow_mut().pop_front()?;
        self.record(&Event::Taken { message: message.number, process });
        Some(message)
    }

    /// Whether something is in `outbox`.
    pub fn is_due(&self, outbox: usize) -> bool {
        !self.outboxes[outbox].queue.borrow().is_empty()
    }

    /// Whether nothing is in `outbox` for `process` and nothing will come.
    pub fn is_over(&self, outbox: usize, process: ProcessIndex) -> bool {
        let outbox = &self.outboxes[outbox];
        outbox.closed.get() && outbox.queue.borrow().is_empty() || self.is_leaving(process)
    }
}

/// Waits until something is due, or nothing will be. Takes nothing.
#[derive(Debug)]
pub struct Due<'a> {
    sim: &'a Sim,
    outbox: usize,
    process: ProcessIndex,
    ticket: Option<u64>,
}

impl<'a> Due<'a> {
    /// Waits at `outbox` for `process`.
    pub const fn new(sim: &'a Sim, outbox: usize, process: ProcessIndex) -> Self {
        Self { sim, outbox, process, ticket: None }
    }
}

impl Future for Due<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let outbox = &self.sim.outboxes[self.outbox];
        let ready = outbox.closed.get() || !outbox.queue.borrow().is_empty();
        if ready || self.sim.is_leaving(self.process) {
            if let Some(ticket) = self.ticket.take() {
                outbox.served(ticket, &self.sim.handle);
            }
            return Poll::Ready(());
        }
        if self.ticket.is_none_or(|ticket| !outbox.waits(ticket)) {
            self.ticket = Some(outbox.wait(&self.sim.handle, context));
        } else {
            self.sim.handle.still_waiting("a message to fall due");
        }
        Poll::Pending
    }
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.sim.outboxes[self.outbox].leave(ticket, &self.sim.handle);
        }
    }
}

/// The next due message, or `None` when nothing more will come.
#[derive(Debug)]
pub struct Next<'a> {
    due: Due<'a>,
}

impl<'a> Next<'a> {
    /// Waits at `outbox` for `process`.
    pub const fn new(sim: &'a Sim, outbox: usize, process: ProcessIndex) -> Self {
        Self { due: Due::new(sim, outbox, process) }
    }
}

impl Future for Next<'_> {
    type Output = Option<Message>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        match Pin::new(&mut self.due).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(self.due.sim.try_next(self.due.outbox, self.due.process)),
        }
    }
}
