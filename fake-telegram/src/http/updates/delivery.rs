//! Which update goes to the webhook next.
//!
//! Updates of one chat (of one user, where there is no chat) go one after the other, in order, and the next waits until the
//! one before is delivered; different chats overtake each other. That is what the real server does (tdlib/telegram-bot-api
//! `WebhookActor.cpp`, queue_updates_).

use std::collections::BTreeSet;

use reqwest::Url;
use serde_json::Value;

use super::Updates;
use crate::time::{Duration, Time};

/// What the webhook of a generation has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Deliver this.
    Post(Post),
    /// Nothing, until something changes or it is the instant given.
    Wait(Option<Time>),
    /// Nothing ever: there is another webhook, or none.
    Over,
}

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// The update's id.
    pub id: u32,
    /// Where it goes.
    pub target: Url,
    /// The secret token that goes with it.
    pub secret_token: Option<String>,
    /// The update, as JSON.
    pub body: String,
}

/// An update on its way to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flight {
    /// Whose order it keeps; `None`: nobody's.
    lane: Option<i64>,
    on_the_wire: bool,
    failures: u32,
    /// Not before that.
    ready_at: Time,
}

impl Updates {
    /// The generation of the webhook, and where it is; `None` without one.
    pub fn hook_target(&self) -> Option<(u64, &Url)> {
        Some((self.generation, &self.hook.as_ref()?.target))
    }

    /// What to deliver next.
    pub fn next_post(&mut self, now: Time, generation: u64) -> Next {
        let Some(hook) = self.hook.as_ref().filter(|_| self.generation == generation) else {
            return Next::Over;
        };
        let loaded = hook.max_connections * LOADED_PER_CONNECTION;
        let (target, secret_token) = (hook.target.clone(), hook.secret_token.clone());
        let connections = hook.max_connections;
        self.forget_old(now);
        if self.queue.iter().take(loaded).filter(|update| update.flight.on_the_wire).count() >= connections {
            return Next::Wait(None);
        }
        let (mut busy, mut wake_at) = (BTreeSet::new(), None::<Time>);
        for update in self.queue.iter_mut().take(loaded) {
            let flight = &mut update.flight;
            let heads_its_lane = flight.lane.is_none_or(|lane| busy.insert(lane));
            if !heads_its_lane || flight.on_the_wire {
                continue;
            }
            if flight.ready_at <= now {
                flight.on_the_wire = true;
                let body = update.json().to_string();
                return Next::Post(Post { id: update.id, target, secret_token, body });
            }
            wake_at = Some(wake_at.map_or(flight.ready_at, |at| at.min(flight.ready_at)));
        }
        Next::Wait(wake_at)
    }

    /// An update has arrived: it is gone.
    pub fn delivered(&mut self, generation: u64, id: u32) {
        if self.generation == generation
            && let Some(at) = self.position(id)
        {
            self.queue.remove(at);
        }
    }

    /// An update has not arrived: it is sent again, after the pause that the webhook asks for or a growing one.
    pub fn failed(&mut self, now: Time, generation: u64, id: u32, error: String, pause: Option<Duration>) {
        if self.generation != generation {
            return;
        }
        self.last_error = Some((now, error));
        if let Some(at) = self.position(id) {
            let flight = &mut self.queue[at].flight;
            flight.on_the_wire = false;
            flight.failures += 1;
            let pause = pause.map_or_else(|| growing(flight.failures), |pause| pause.min(PAUSE_ASKED_MAX));
            flight.ready_at = now.saturating_add(pause);
        }
    }

    /// Notes why nothing is delivered.
    pub fn refuse(&mut self, now: Time, generation: u64, error: String) {
        if self.generation == generation {
            self.last_error = Some((now, error));
        }
    }

    /// The webhook is another one: whatever is on its way counts as never sent.
    pub(super) fn land(&mut self) {
        self.generation += 1;
        for update in &mut self.queue {
            update.flight = Flight { lane: update.flight.lane, ..Flight::default() };
        }
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.queue.binary_search_by_key(&id, |update| update.id).ok()
    }
}

impl Default for Flight {
    fn default() -> Self {
        Self { lane: None, on_the_wire: false, failures: 0, ready_at: Time::ZERO }
    }
}

impl Flight {
    pub(super) fn new(payload: &Value) -> Self {
        let id = |path| payload.pointer(path).and_then(Value::as_i64);
        let lane = id("/chat/id").or_else(|| id("/from/id")).or_else(|| id("/user/id"));
        Self { lane, ..Self::default() }
    }
}

/// The pause after so many failures in a row: none, then 2, 4, 8 ... 60 s.
fn growing(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        _ => Duration::from_secs(1 << (failures - 1).min(6)).min(PAUSE_MAX),
    }
}

/// How far ahead it is looked for something to deliver (`WebhookActor.cpp`, max_loaded_updates_).
const LOADED_PER_CONNECTION: usize = 2;
/// `WebhookActor.h`, WEBHOOK_MAX_RESEND_TIMEOUT; there, up to twice that, by chance.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// `WebhookActor.cpp`, on_update_error, MAX_RETRY_AFTER.
const PAUSE_ASKED_MAX: Duration = Duration::from_hours(1);

#[cfg(test)]
mod tests;
