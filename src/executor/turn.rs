//! Taking turns, and ringing a bell: what tasks of one process need of each other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Handle, Waiter};

/// One at a time, first come, first served.
#[derive(Debug, Default)]
pub struct Turn {
    taken: Cell<bool>,
    waiters: RefCell<VecDeque<(u64, Waiter)>>,
    tickets: Cell<u64>,
    /// Whose turn it is now, between the end of a turn and the poll of the next in line.
    granted: Cell<Option<u64>>,
}

/// Whoever holds it has the turn.
#[derive(Debug)]
pub struct TurnGuard<'a> {
    turn: &'a Turn,
    handle: &'a Handle,
}

/// Waits for the turn ([`Turn::take`]).
#[derive(Debug)]
pub struct TakeTurn<'a> {
    turn: &'a Turn,
    handle: &'a Handle,
    ticket: Option<u64>,
}

impl Turn {
    /// Completes with the turn.
    pub const fn take<'a>(&'a self, handle: &'a Handle) -> TakeTurn<'a> {
        TakeTurn { turn: self, handle, ticket: None }
    }

    fn pass_on(&self, handle: &Handle) {
        let next = self.waiters.borrow_mut().pop_front();
        self.taken.set(next.is_some());
        self.granted.set(next.map(|(ticket, _)| ticket));
        if let Some((_, waiter)) = next {
            handle.wake(waiter);
        }
    }
}

impl<'a> Future for TakeTurn<'a> {
    type Output = TurnGuard<'a>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TurnGuard<'a>> {
        const WAITING: &str = "its turn among the workers of its process";
        let turn = self.turn;
        match self.ticket {
            Some(ticket) if turn.granted.get() == Some(ticket) => {
                turn.granted.set(None);
                self.ticket = None;
            }
            Some(_) => {
                self.handle.still_waiting(WAITING);
                return Poll::Pending;
            }
            None if !turn.taken.get() => turn.taken.set(true),
            None => {
                let ticket = turn.tickets.get() + 1;
                turn.tickets.set(ticket);
                let waiter = self.handle.waiter(context, WAITING);
                turn.waiters.borrow_mut().push_back((ticket, waiter));
                self.ticket = Some(ticket);
                return Poll::Pending;
            }
        }
        Poll::Ready(TurnGuard { turn, handle: self.handle })
    }
}

impl Drop for TakeTurn<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        if self.turn.granted.get() == Some(ticket) {
            self.turn.pass_on(self.handle);
            return;
        }
        let mut waiters = self.turn.waiters.borrow_mut();
        if let Some(place) = waiters.iter().position(|(waiting, _)| *waiting == ticket) {
            let (_, waiter) = waiters.remove(place).expect("the place was just found");
            self.handle.forget(waiter);
        }
    }
}

impl TurnGuard<'_> {
    /// Whether somebody waits for the turn.
    pub fn others_wait(&self) -> bool {
        !self.turn.waiters.borrow().is_empty()
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.turn.pass_on(self.handle);
    }
}

/// A bell with a memory of one ring, for one listener.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Cell<bool>,
    listener: Cell<Option<Waiter>>,
}

/// Waits for a ring ([`Bell::heard`]).
#[derive(Debug)]
pub struct Heard<'a> {
    bell: &'a Bell,
    handle: &'a Handle,
    listening: bool,
}

impl Bell {
    /// Wakes the listener, now or when it next listens.
    pub fn ring(&self, handle: &Handle) {
        self.rung.set(true);
        if let Some(listener) = self.listener.take() {
            handle.wake(listener);
        }
    }

    /// Completes at the next ring, or at once if there was one since the last.
    pub const fn heard<'a>(&'a self, handle: &'a Handle) -> Heard<'a> {
        Heard { bell: self, handle, listening: false }
    }
}

impl Future for Heard<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.bell.rung.take() {
            return Poll::Ready(());
        }
        if !self.listening {
            let listener = self.handle.waiter(context, "a bell to ring");
            let before = self.bell.listener.replace(Some(listener));
            assert!(before.is_none(), "a bell has one listener");
            self.listening = true;
        }
        Poll::Pending
    }
}

impl Drop for Heard<'_> {
    fn drop(&mut self) {
        if self.listening
            && let Some(listener) = self.bell.listener.take()
        {
            self.handle.forget(listener);
        }
    }
}
