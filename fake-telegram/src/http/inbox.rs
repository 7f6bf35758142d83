//! The updates of one bot, for those who wait for them.
//!
//! How long a bot's own program is waited for (a long poll, the answer of a webhook) is real time; what the server does by
//! itself (holds, pauses, limits) goes by its clock.

use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::watch;

use crate::http::clock::Clock;
use crate::http::failure::Failure;
use crate::http::kinds::{Allowed, Kind};
use crate::http::params::Params;
use crate::http::updates::hook::Hook;
use crate::http::updates::{Ask, Change, Conflict, Poll, Ticket, Updates};

/// The updates of one bot.
#[derive(Debug)]
pub struct Inbox {
    updates: Mutex<Updates>,
    /// Told whenever somebody who waits should look again.
    changed: watch::Sender<()>,
    clock: Arc<Clock>,
}

impl Inbox {
    /// An empty one, at `clock`'s time.
    pub fn new(clock: Arc<Clock>) -> Self {
        Self { updates: Mutex::default(), changed: watch::Sender::new(()), clock }
    }

    /// Adds an update and tells its id; `None` if it is not kept ([`Updates::push`]).
    pub fn push(&self, kind: Kind, payload: Value) -> Option<u32> {
        let id = self.updates().push(self.clock.now(), kind, payload);
        if id.is_some() {
            self.tell();
        }
        id
    }

    /// `getUpdates`: the updates, as soon as there are some or its time is up. Dropping the future ends the poll.
    ///
    /// # Errors
    /// 409 if there is a webhook, or this poll is ended by a newer one or by `setWebhook`.
    pub async fn get_updates(&self, params: &Params) -> Result<Value, Failure> {
        let ask = Ask::read(params);
        let mut changed = self.changed.subscribe();
        let first = self.updates().poll(self.clock.now(), &ask);
        let poll = match first {
            Poll::Wait { ticket, at_least } => {
                // An older one may have been ended.
                self.tell();
                let _leave = Leave { inbox: self, ticket };
                let wait = ask.timeout.max(self.clock.real(at_least));
                let wait = std::time::Duration::from_micros(wait.as_micros());
                let answer = tokio::time::timeout(wait, self.answer(ticket, &mut changed)).await;
                answer.unwrap_or(Poll::Updates(Vec::new()))
            }
            at_once => at_once,
        };
        match poll {
            Poll::Conflict(Conflict { at, failure }) => {
                self.clock.sleep_until(at).await;
                Err(failure)
            }
            Poll::Updates(updates) => Ok(Value::Array(updates)),
            Poll::Wait { .. } => Ok(Value::Array(Vec::new())),
        }
    }

    /// What a poll that waits is answered in the end; the only [`Poll::Wait`] is one that nobody can answer.
    async fn answer(&self, ticket: Ticket, changed: &mut watch::Receiver<()>) -> Poll {
        loop {
            let poll = self.updates().resume(self.clock.now(), ticket);
            // The sender lives as long as `self`.
            if !matches!(poll, Poll::Wait { .. }) || changed.changed().await.is_err() {
                return poll;
            }
        }
    }

    /// `setWebhook`; without a URL it removes the webhook. After [`Change::Set`],
    /// [`deliver`](crate::http::webhook::deliver) has to be started.
    ///
    /// # Errors
    /// 400 for parameters that make no webhook ([`Hook::read`]), 429 if it is set more often than once a second.
    pub fn set_webhook(&self, params: &Params) -> Result<Change, Failure> {
        self.change(params, Hook::read(params)?)
    }

    /// `deleteWebhook`.
    pub fn delete_webhook(&self, params: &Params) -> Change {
        self.change(params, None).unwrap_or(Change::Deleted)
    }

    fn change(&self, params: &Params, hook: Option<Hook>) -> Result<Change, Failure> {
        let allowed = params.json("allowed_updates").and_then(|value| Allowed::read(&value));
        let drop_pending = params.is_true("drop_pending_updates");
        let change = self.updates().set_hook(self.clock.now(), hook, allowed, drop_pending)?;
        self.tell();
        Ok(change)
    }

    /// `getWebhookInfo`.
    pub fn webhook_info(&self) -> Value {
        self.updates().hook_info(|at| self.clock.unix(at))
    }

    /// Forgets everything: updates, webhook, who polls.
    pub fn reset(&self) {
        self.updates().reset();
        self.tell();
    }

    /// How many updates wait, and how many were lost because too many waited or they waited for too long.
    pub fn pending_and_dropped(&self) -> (usize, u64) {
        let updates = self.updates();
        (updates.pending(), updates.dropped())
    }

    /// For deliveries: what waits.
    pub(super) fn updates(&self) -> MutexGuard<'_, Updates> {
        self.updates.lock().expect("nobody panics while the updates are looked at")
    }

    /// For deliveries: completes when something has changed.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn tell(&self) {
        self.changed.send_replace(());
    }
}

/// Ends a poll, answered or not.
struct Leave<'a> {
    inbox: &'a Inbox,
    ticket: Ticket,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.inbox.updates().leave(self.ticket);
    }
}

#[cfg(test)]
mod tests;
