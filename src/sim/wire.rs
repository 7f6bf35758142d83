//! The modelled wire: a call takes a request leg to the server and a reply leg back, and its client gives up in time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use fake_telegram::api::{Answer, CallId, Decision, Draws, Request, TokenIndex};
use fake_telegram::model::Model;
use fake_telegram::time::{Duration, Time};

use crate::event::Event;
use crate::executor::{EventKey, Handle, Waiter};
use crate::rng::latency::Latency;
use crate::rng::{draw, key};
use crate::world::{Message, ProcessIndex};

use super::Sim;

/// All calls of a run, and the server behind them.
pub(super) struct Wire {
    model: Model,
    latency: Latency,
    timeout: Duration,
    latency_key: u64,
    fault_key: u64,
    /// Calls so far, by message.
    attempts: Vec<u16>,
    calls: Vec<Slot>,
    free: Vec<u32>,
}

/// One call on the wire.
struct Slot {
    message: Message,
    token: TokenIndex,
    /// The client's idempotency key.
    key: Option<u32>,
    attempt: u16,
    /// When its client gives up.
    gives_up_at: Time,
    reply_leg: Duration,
    /// Who waits for the answer; `None` once nobody does.
    client: Option<Waiter>,
    /// When the client will be woken, once that is known.
    wake: Option<EventKey>,
    /// What the client gets.
    answer: Answer,
    decision: Option<Decision>,
    /// Whether the client has been told, or has gone.
    client_done: bool,
}

impl Wire {
    pub(super) fn new(seed: u64, model: Model, latency: Latency, timeout: Duration) -> Self {
        Self {
            model,
            latency,
            timeout,
            latency_key: key(seed, "wire/latency"),
            fault_key: key(seed, "server/fault"),
            attempts: Vec::new(),
            calls: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) const fn model(&self) -> &Model {
        &self.model
    }

    pub(super) const fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }

    pub(super) fn next_timeout(&self) -> Time {
        self.model.next_timeout().unwrap_or(Time::MAX)
    }

    /// A call leaves a process. Its number, and which call for its message it is.
    fn send(
        &mut self,
        handle: &Handle,
        client: Waiter,
        message: Message,
        token: TokenIndex,
        key: Option<u32>,
    ) -> (u32, u16) {
        let now = handle.now();
        let index = message.number as usize;
        if self.attempts.len() <= index {
            self.attempts.resize(index + 1, 0);
        }
        self.attempts[index] = self.attempts[index].saturating_add(1);
        let attempt = self.attempts[index];
        let call_time = self.latency.draw(draw(self.latency_key, message.number.into(), attempt.into()));
        let request_leg = call_time / 2;
        let gives_up_at = now.saturating_add(self.timeout);
        let slot = Slot {
            message,
            token,
            key,
            attempt,
            gives_up_at,
            reply_leg: call_time - request_leg,
            client: Some(client),
            // A call that takes too long even if it is answered at once.
            wake: (call_time > self.timeout).then(|| handle.wake_at(gives_up_at, client)),
            answer: Answer::TimedOut,
            decision: None,
            client_done: false,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.calls[number as usize] = slot;
                number
            }
            None => {
                self.calls.push(slot);
                (self.calls.len() - 1) as u32
            }
        };
        handle.set(now + request_leg, number);
        (number, attempt)
    }

    /// A call reaches the server.
    pub(super) fn arrive(&mut self, now: Time, number: u32, sim: &Sim) {
        let slot = &self.calls[number as usize];
        let fault = draw(self.fault_key, slot.message.number.into(), slot.attempt.into()) as u32;
        let Slot { token, key: idempotency, message: Message { chat, method, .. }, .. } = *slot;
        let request = Request { token, chat, method, idempotency, items: 1 };
        self.model.handle(now, CallId(number), request, Draws { fault });
        self.carry_back(sim);
        let slot = &mut self.calls[number as usize];
        if slot.decision.is_none()
            && slot.wake.is_none()
            && let Some(client) = slot.client
        {
            // The server holds the call open.
            slot.wake = Some(sim.handle.wake_at(slot.gives_up_at, client));
        }
    }

    /// Held calls that are due are decided.
    pub(super) fn advance(&mut self, now: Time, sim: &Sim) {
        self.model.advance(now);
        self.carry_back(sim);
    }

    /// The messages of calls that are not decided yet.
    pub(super) fn undecided(&self) -> Vec<u32> {
        let mut free = self.free.clone();
        free.sort_unstable();
        let calls = self.calls.iter().enumerate();
        let open = calls.filter(|(number, call)| {
            call.decision.is_none() && free.binary_search(&(*number as u32)).is_err()
        });
        open.map(|(_, call)| call.message.number).collect()
    }

    fn carry_back(&mut self, sim: &Sim) {
        while let Some(decision) = self.model.poll() {
            let CallId(number) = decision.call;
            let slot = &mut self.calls[number as usize];
            slot.decision = Some(decision);
            sim.record(&Event::Decided { message: slot.message, token: slot.token, decision });
            if slot.client_done {
                self.free.push(number);
                continue;
            }
            let back_at = sim.handle.now() + slot.reply_leg;
            // Otherwise the client will have given up by then, and its waking is set.
            if back_at <= slot.gives_up_at
                && let Some(client) = slot.client
            {
                if let Some(gives_up) = slot.wake.take() {
                    sim.handle.cancel(gives_up);
                }
                slot.answer = decision.answer;
                slot.wake = Some(sim.handle.wake_at(back_at, client));
            }
        }
    }

    /// The client is done with the call, answered or not.
    fn leave(&mut self, number: u32) -> &Slot {
        let slot = &mut self.calls[number as usize];
        slot.client = None;
        slot.client_done = true;
        if slot.decision.is_some() {
            self.free.push(number);
        }
        &self.calls[number as usize]
    }
}

/// A call to the server for a message; completes with what the client gets.
///
/// Dropped before, the call still arrives.
#[derive(Debug)]
pub struct Call<'a> {
    sim: &'a Sim,
    message: Message,
    process: ProcessIndex,
    token: TokenIndex,
    key: Option<u32>,
    sent: Option<u32>,
}

impl<'a> Call<'a> {
    /// A call for `message` by `process` with `token`, and with an idempotency key; it leaves when it is first polled.
    pub const fn new(
        sim: &'a Sim,
        message: Message,
        process: ProcessIndex,
        token: TokenIndex,
        key: Option<u32>,
    ) -> Self {
        Self { sim, message, process, token, key, sent: None }
    }
}

impl Future for Call<'_> {
    type Output = Answer;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        const WAITING: &str = "the answer to a call";
        let (sim, message, process) = (self.sim, self.message, self.process);
        let mut wire = sim.wire.borrow_mut();
        let Some(number) = self.sent else {
            let client = sim.handle.waiter(context, WAITING);
            let (number, attempt) = wire.send(&sim.handle, client, message, self.token, self.key);
            drop(wire);
            self.sent = Some(number);
            sim.record(&Event::Sent { message, process, attempt });
            return Poll::Pending;
        };
        if wire.calls[number as usize].wake.is_none_or(|wake| !sim.handle.happened(wake)) {
            sim.handle.still_waiting(WAITING);
            return Poll::Pending;
        }
        let Slot { answer, decision, .. } = *wire.leave(number);
        drop(wire);
        self.sent = None;
        sim.record(&Event::Answered { message, process, answer, decision });
        Poll::Ready(answer)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Some(number) = self.sent else { return };
        let mut wire = self.sim.wire.borrow_mut();
        let slot = &wire.calls[number as usize];
        let (wake, client) = (slot.wake, slot.client);
        wire.leave(number);
        match (wake, client) {
            (Some(wake), _) if self.sim.handle.happened(wake) => {}
            (wake, Some(client)) => {
                if let Some(wake) = wake {
                    self.sim.handle.cancel(wake);
                }
                self.sim.handle.forget(client);
            }
            (_, None) => {}
        }
    }
}
