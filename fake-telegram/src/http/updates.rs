//! What waits for one bot: its updates, who polls for them, and its webhook. Pure: time is an argument.
//!
//! `hook` is what a bot says in `setWebhook`, `delivery` what goes to it.

pub mod delivery;
pub mod hook;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use crate::http::failure::Failure;
use crate::http::kinds::{Allowed, Kind};
use crate::http::params::Params;
use crate::time::{Duration, Time};

use self::hook::Hook;

/// The updates of one bot and the two ways to them.
///
/// What a poll or a delivery leads to is said at once; who has to wait comes back with its ticket. A webhook has a
/// generation: what was begun for an older one means nothing any more.
#[derive(Debug)]
pub struct Updates {
    /// In the order of their ids, at most [`QUEUED_MAX`].
    queue: VecDeque<Update>,
    /// The id of the next one, from 1 on.
    next_id: u32,
    dropped: u64,
    allowed: Allowed,
    hook: Option<Hook>,
    generation: u64,
    last_error: Option<(Time, String)>,
    /// Before that, another `setWebhook` is too many.
    next_hook_at: Time,
    /// The poll that waits; of two the newer.
    waiting: Option<Waiting>,
    /// What polls that waited have still to be told.
    ended: BTreeMap<Ticket, Conflict>,
    next_ticket: u64,
    /// The offset of the last poll as its client gave it, and when that was.
    last_poll: Option<(i64, Time)>,
    /// Before that, conflicts are held back.
    calm_at: Time,
}

/// A poll that waits, by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What a client asks for in a `getUpdates`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Ids below it are confirmed; a negative one is counted from the end.
    pub offset: i64,
    /// How many at most, 1-100.
    pub limit: usize,
    /// How long it waits for the first one, 0-50 s.
    pub timeout: Duration,
    /// What it wants from now on; `None`: as before.
    pub allowed: Option<Allowed>,
}

/// What a poll leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Poll {
    /// Its answer.
    Updates(Vec<Value>),
    /// It waits until something is there, for as long as it asked for and at least `at_least`.
    Wait {
        /// To come back with: [`Updates::resume`], or [`Updates::leave`].
        ticket: Ticket,
        /// Zero, unless it polls too often.
        at_least: Duration,
    },
    /// It fails.
    Conflict(Conflict),
}

/// A 409.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// When it is answered.
    pub at: Time,
    /// What is answered.
    pub failure: Failure,
}

/// What became of a `setWebhook` or `deleteWebhook`; its result is `true`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// There is a new one.
    Set,
    /// It was like this before.
    AlreadySet,
    /// It is gone.
    Deleted,
    /// There was none.
    AlreadyDeleted,
}

#[derive(Debug)]
struct Update {
    id: u32,
    kind: Kind,
    payload: Value,
    forget_at: Time,
    flight: delivery::Flight,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    ticket: Ticket,
    from: u32,
    limit: usize,
}

impl Default for Updates {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            next_id: 1,
            dropped: 0,
            allowed: Allowed::default(),
            hook: None,
            generation: 0,
            last_error: None,
            next_hook_at: Time::ZERO,
            waiting: None,
            ended: BTreeMap::new(),
            next_ticket: 0,
            last_poll: None,
            calm_at: Time::ZERO,
        }
    }
}

impl Updates {
    /// Adds an update and tells its id; `None` if the bot does not want its kind, or too many wait already.
    pub fn push(&mut self, now: Time, kind: Kind, payload: Value) -> Option<u32> {
        if !self.allowed.contains(kind) {
            return None;
        }
        self.forget_old(now);
        if self.queue.len() >= QUEUED_MAX || self.next_id > ID_MAX {
            self.dropped += 1;
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        let flight = delivery::Flight::new(&payload);
        self.queue.push_back(Update { id, kind, payload, forget_at: now.saturating_add(KEPT), flight });
        Some(id)
    }

    /// Answers a poll, or lets it wait, in which case an older one that waits is ended.
    pub fn poll(&mut self, now: Time, ask: &Ask) -> Poll {
        if self.hook.is_some() {
            return Poll::Conflict(self.conflict(now, HOOK_IS_ACTIVE));
        }
        if let Some(allowed) = ask.allowed {
            self.allowed = allowed;
        }
        let again = self.last_poll.is_some_and(|(offset, at)| {
            offset == ask.offset && ask.timeout < SLOWED && now.saturating_since(at) < SLOWED
        });
        self.last_poll = Some((ask.offset, now));
        let from = self.resolve(now, ask.offset);
        let updates = self.read(from, ask.limit);
        if !updates.is_empty() || (ask.timeout.is_zero() && !again) {
            return Poll::Updates(updates);
        }
        self.end_waiting(now, OTHER_POLL);
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting = Some(Waiting { ticket, from, limit: ask.limit });
        Poll::Wait { ticket, at_least: if again { SLOWED } else { Duration::ZERO } }
    }

    /// Looks again for a poll that waits.
    pub fn resume(&mut self, now: Time, ticket: Ticket) -> Poll {
        if let Some(conflict) = self.ended.remove(&ticket) {
            return Poll::Conflict(conflict);
        }
        let Some(waiting) = self.waiting.filter(|waiting| waiting.ticket == ticket) else {
            return Poll::Updates(Vec::new());
        };
        self.forget_old(now);
        let updates = self.read(waiting.from, waiting.limit);
        if updates.is_empty() {
            return Poll::Wait { ticket, at_least: Duration::ZERO };
        }
        self.waiting = None;
        Poll::Updates(updates)
    }

    /// Forgets a poll: its time is up, its client is gone, or it has its answer.
    pub fn leave(&mut self, ticket: Ticket) {
        self.ended.remove(&ticket);
        self.waiting = self.waiting.filter(|waiting| waiting.ticket != ticket);
    }

    /// Sets the webhook, or removes it. `allowed` is remembered, and `drop_pending` forgets what waits.
    ///
    /// # Errors
    /// 429 if it is set more often than once a second.
    pub fn set_hook(
        &mut self,
        now: Time,
        hook: Option<Hook>,
        allowed: Option<Allowed>,
        drop_pending: bool,
    ) -> Result<Change, Failure> {
        if hook.is_some() {
            if now < self.next_hook_at {
                return Err(Failure::retry_after(1));
            }
            self.next_hook_at = now.saturating_add(BETWEEN_HOOKS);
        }
        if let Some(allowed) = allowed {
            self.allowed = allowed;
        }
        if drop_pending {
            self.queue.clear();
        } else if self.hook == hook && hook.as_ref().is_none_or(|hook| !hook.has_certificate) {
            return Ok(if hook.is_some() { Change::AlreadySet } else { Change::AlreadyDeleted });
        }
        let change = match (&self.hook, &hook) {
            (_, Some(_)) => Change::Set,
            (Some(_), None) => Change::Deleted,
            (None, None) => Change::AlreadyDeleted,
        };
        if hook.is_some() {
            self.end_waiting(now, SET_HOOK);
        }
        self.hook = hook;
        self.last_error = None;
        self.land();
        Ok(change)
    }

    /// The bot's `WebhookInfo`; `unix` tells the Unix time of an instant.
    pub fn hook_info(&self, unix: impl FnOnce(Time) -> i64) -> Value {
        let hook = self.hook.as_ref();
        let mut info = Map::new();
        let mut set = |name: &str, value: Value| info.insert(name.to_owned(), value);
        set("url", hook.map_or("", |hook| &hook.url).into());
        set("has_custom_certificate", hook.is_some_and(|hook| hook.has_certificate).into());
        set("pending_update_count", self.pending().into());
        if let Some(address) = hook.and_then(|hook| hook.ip_address.clone()) {
            set("ip_address", address.into());
        }
        if let Some((at, message)) = &self.last_error {
            set("last_error_date", unix(*at).into());
            set("last_error_message", message.clone().into());
        }
        if let Some(hook) = hook {
            set("max_connections", hook.max_connections.into());
        }
        if self.allowed != Allowed::default() {
            set("allowed_updates", self.allowed.names().collect());
        }
        Value::Object(info)
    }

    /// Forgets everything but how far it has counted: ids that a bot has seen do not come again.
    pub fn reset(&mut self) {
        let counted = (self.next_id, self.next_ticket, self.generation);
        *self = Self::default();
        (self.next_id, self.next_ticket, self.generation) = counted;
        self.generation += 1;
    }

    /// How many updates wait.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// How many updates were lost because too many waited, or they waited for too long.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Confirms what is below `offset`, and says from where on the poll reads.
    fn resolve(&mut self, now: Time, offset: i64) -> u32 {
        self.forget_old(now);
        let head = self.queue.front().map_or(self.next_id, |update| update.id);
        let from = if offset < 0 { i64::from(self.next_id).saturating_add(offset) } else { offset };
        let from = from.max(i64::from(head));
        // A number from another life of the bot: it confirms nothing.
        if from > i64::from(self.next_id) + AHEAD_MAX { head } else { from as u32 }
    }

    /// The first `limit` updates from `from` on; those before are confirmed, and gone.
    fn read(&mut self, from: u32, limit: usize) -> Vec<Value> {
        while self.queue.pop_front_if(|update| update.id < from).is_some() {}
        self.queue.iter().take(limit).map(Update::json).collect()
    }

    fn forget_old(&mut self, now: Time) {
        while self.queue.pop_front_if(|update| update.forget_at <= now).is_some() {
            self.dropped += 1;
        }
    }

    fn end_waiting(&mut self, now: Time, text: &'static str) {
        if let Some(waiting) = self.waiting.take() {
            let conflict = self.conflict(now, text);
            self.ended.insert(waiting.ticket, conflict);
        }
    }

    /// The first conflict is told at once; each in the 3 s after it is held for 3 s.
    fn conflict(&mut self, now: Time, text: &'static str) -> Conflict {
        let at = if now >= self.calm_at {
            self.calm_at = now.saturating_add(CONFLICT_HOLD);
            now
        } else {
            now.saturating_add(CONFLICT_HOLD)
        };
        Conflict { at, failure: Failure::new(409, text) }
    }
}

impl Ask {
    /// Reads the parameters of a `getUpdates`; what is out of range is brought into it (tdlib/telegram-bot-api
    /// `Client.cpp`, get_integer_arg).
    pub fn read(params: &Params) -> Self {
        let number = |name, default, max| params.integer(name).unwrap_or(default).clamp(default.min(1), max);
        Self {
            offset: params.integer("offset").unwrap_or(0).clamp(i32::MIN.into(), i32::MAX.into()),
            limit: number("limit", 100, 100) as usize,
            timeout: Duration::from_secs(number("timeout", 0, TIMEOUT_MAX) as u64),
            allowed: params.json("allowed_updates").and_then(|value| Allowed::read(&value)),
        }
    }
}

impl Update {
    /// As the API writes it: the id, and one key that is its kind.
    fn json(&self) -> Value {
        json!({ "update_id": self.id, self.kind.name(): self.payload })
    }
}

impl Change {
    /// The API's own text.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Set => "Webhook was set",
            Self::AlreadySet => "Webhook is already set",
            Self::Deleted => "Webhook was deleted",
            Self::AlreadyDeleted => "Webhook is already deleted",
        }
    }
}

/// Of one bot. The real server keeps up to a million and, like this one, takes no more until there is room (td
/// `TQueue.cpp`, MAX_QUEUE_EVENTS); less here, since a thousand bots share one memory.
const QUEUED_MAX: usize = 100_000;
/// Updates are kept no longer than a day (core.telegram.org/bots/api#getting-updates).
const KEPT: Duration = Duration::from_hours(24);
/// The largest `update_id` (clients keep it in 32 bits with a sign).
const ID_MAX: u32 = i32::MAX as u32;
/// An offset further ahead of the next id is not taken at its word (td `TQueue.cpp`, get: "in the future").
const AHEAD_MAX: i64 = 10;
/// Seconds; telegram.md 1.10.
const TIMEOUT_MAX: i64 = 50;
/// A poll with the offset of the last one, sooner than this after it, waits for this long unless something is there
/// (telegram.md 5.5; tdlib/telegram-bot-api `Client.cpp`, process_get_updates_query).
const SLOWED: Duration = Duration::from_secs(3);
/// telegram.md 2.3.
const CONFLICT_HOLD: Duration = Duration::from_secs(3);
/// telegram.md 3.4.
const BETWEEN_HOOKS: Duration = Duration::from_secs(1);
// Texts: `bot-api-errors.json`.
const OTHER_POLL: &str =
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
const SET_HOOK: &str = "Conflict: terminated by setWebhook request";
const HOOK_IS_ACTIVE: &str = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";

#[cfg(test)]
mod tests;
