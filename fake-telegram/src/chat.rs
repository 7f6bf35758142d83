//! Chats: what kind each is, and whether it can receive.
//!
//! Chats die and come back in three ways: some are dead from the start, some by schedule, and some as time goes by
//! (churn). All of it is a pure function of the key, the chat and the time, evaluated when somebody looks.

use std::ops::Range;

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{ChatIndex, ChatKind, Forbidden};
use crate::draw::{draw, exponential, hits};
use crate::time::{Duration, Time};
use crate::units::{Count, Share};

/// Who is dead, and when. The default: nobody, ever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lifecycle {
    /// The share of chats that are dead at the start, drawn for each chat.
    pub dead: Share,
    /// The share of chats that the server does not know, ever: whoever writes to them has their ids from elsewhere, or
    /// they are gone without a trace. Drawn for each chat.
    pub unknown: Share,
    /// The share of chats of which there is nothing to tell, ever: a [question](crate::api::Method::is_question) about
    /// them is answered with nothing. Drawn for each chat.
    pub empty: Share,
    /// How long a chat lives, on average; exponentially distributed. For ever if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_life: Option<Duration>,
    /// How long a dead chat stays dead, on average; exponentially distributed. For ever if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_absence: Option<Duration>,
    /// Changes at set times, in any order; of one time in the order of the list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<Change>,
}

/// Some chats die or come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, counted from the start of the run.
    pub at: Duration,
    /// What happens to them.
    pub action: Action,
    /// The share of all chats that it happens to, drawn for each chat and change; everybody if neither this nor
    /// `chats` nor `range` is given, and all of them add up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The chats that it happens to, by index; unknown ones are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chats: Vec<u32>,
    /// A range of chats that it happens to, as the chats of one workload are; unknown ones are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ChatRange>,
}

/// Chats whose indices follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatRange {
    /// The index of the first.
    pub first: u32,
    /// How many.
    pub count: Count,
}

/// What happens to a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The user blocks the bot; from a group or channel it is kicked.
    Die,
    /// The user's account is deleted; from a group or channel the bot is kicked.
    Deactivate,
    /// It can receive again.
    Revive,
}

/// The declared chats: 2 bytes each, and 8 more where there is churn.
#[derive(Debug, Clone, Default)]
pub struct Chats {
    cells: Vec<Cell>,
    key: u64,
    lifecycle: Lifecycle,
    /// How much of the schedule is done.
    done: usize,
    /// When the rest of it begins.
    next_at: Option<Time>,
    /// When each chat next dies or comes back by itself; empty without churn.
    turns: Vec<Time>,
    copies: Copies,
    watch: Option<Watch>,
}

/// Chats that are the same as others until something happens to them alone.
#[derive(Debug, Clone, Default)]
struct Copies {
    /// The copies of a chat.
    of: FxHashMap<u32, Vec<u32>>,
    /// The chat that a copy is one of.
    original: FxHashMap<u32, u32>,
}

/// Somebody wants to know what happens to chats.
#[derive(Debug, Clone)]
struct Watch {
    /// To those from this one on.
    from: u32,
    /// When the first of them may next die or come back by itself.
    turn: Time,
    happened: Vec<Happening>,
}

/// What happened to a chat by itself or by schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening {
    /// To which.
    pub chat: ChatIndex,
    /// When.
    pub at: Time,
    /// Why it could not receive before; `None` if it could.
    pub before: Option<Forbidden>,
    /// Why it cannot receive since.
    pub after: Option<Forbidden>,
}

impl Happening {
    /// Whether an account is gone or, against all odds, back.
    pub fn is_about_an_account(&self) -> bool {
        [self.before, self.after].contains(&Some(Forbidden::Deactivated))
    }
}

/// A chat's kind and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    kind: ChatKind,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Known {
        dead: Option<Forbidden>,
    },
    /// For ever.
    Unknown,
    /// Always there.
    Lasting,
}

impl Chats {
    /// No chats yet; randomness comes from `key`.
    pub fn new(key: u64, mut lifecycle: Lifecycle) -> Self {
        lifecycle.schedule.sort_by_key(|change| change.at);
        let next_at = lifecycle.schedule.first().map(|change| Time::ZERO + change.at);
        Self { key, lifecycle, next_at, ..Self::default() }
    }

    /// `count` immortal chats of one kind.
    pub fn of(kind: ChatKind, count: u32) -> Self {
        let mut chats = Self::new(0, Lifecycle::default());
        chats.add(kind, count);
        chats
    }

    /// Adds a chat of `kind` to which nothing ever happens; its index.
    pub fn add_lasting(&mut self, kind: ChatKind) -> ChatIndex {
        let index = ChatIndex(self.cells.len() as u32);
        self.cells.push(Cell { kind, state: State::Lasting });
        if self.churns() {
            self.turns.push(Time::MAX);
        }
        index
    }

    /// Adds `count` chats of `kind`, as they are at the start of the run; the index of the first.
    pub fn add(&mut self, kind: ChatKind, count: u32) -> ChatIndex {
        let first = self.cells.len() as u32;
        self.cells.reserve(count as usize);
        for chat in first..first + count {
            let drawn = |share, purpose| hits(share, draw(self.key, purpose, chat.into()));
            let dead = drawn(self.lifecycle.dead, DEAD).then(|| lost(kind, Forbidden::Blocked));
            let known = !drawn(self.lifecycle.unknown, UNKNOWN);
            self.cells.push(Cell { kind, state: if known { State::Known { dead } } else { State::Unknown } });
            if self.churns() {
                self.turns.push(Time::MAX);
                self.set_turn(chat, Time::ZERO);
            }
        }
        ChatIndex(first)
    }

    /// Adds a copy of a chat as it is at `now`: what happens to the chat happens to it, too, but not the other way round.
    /// Left alone it lives as the chat does. Time only goes forward.
    pub fn copy(&mut self, of: ChatIndex, now: Time) -> ChatIndex {
        self.look(of, now);
        let Some(cell) = self.cells.get(of.0 as usize).copied() else { return of };
        let index = self.cells.len() as u32;
        self.cells.push(cell);
        self.copies.of.entry(of.0).or_default().push(index);
        self.copies.original.insert(index, of.0);
        if let Some(turn) = self.turns.get(of.0 as usize).copied() {
            self.turns.push(turn);
            self.expect(index, turn);
        }
        ChatIndex(index)
    }

    /// From now on [`Chats::take_happened`] tells what happens to chats that are added later.
    pub fn watch(&mut self) {
        let from = self.cells.len() as u32;
        self.watch = Some(Watch { from, turn: Time::MAX, happened: Vec::new() });
    }

    /// Lets happen what is due by `now`: by schedule, and by itself to chats that are watched. Time only goes forward.
    pub fn follow(&mut self, now: Time) {
        if self.next_at.is_some_and(|at| at <= now) {
            self.follow_schedule(now);
        }
        let Some(Watch { from, turn, .. }) = self.watch.as_ref() else { return };
        let (from, turn) = (*from, *turn);
        if turn <= now {
            for chat in from..self.turns.len() as u32 {
                self.catch_up(chat, now);
            }
            let turn = self.turns[from as usize..].iter().min().copied().unwrap_or(Time::MAX);
            self.watch.as_mut().expect("it was there").turn = turn;
        }
    }

    /// When [`Chats::follow`] next has something to do; `None` if never.
    pub fn next_change(&self) -> Option<Time> {
        let turn = self.watch.as_ref().map(|watch| watch.turn).filter(|turn| *turn < Time::MAX);
        [self.next_at, turn].into_iter().flatten().min()
    }

    /// What happened to chats that are watched, since this was last asked: of one chat in order.
    pub fn take_happened(&mut self) -> Vec<Happening> {
        self.watch.as_mut().map(|watch| std::mem::take(&mut watch.happened)).unwrap_or_default()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// What kind of chat it is, or was taken for; `None` beyond the declared chats.
    pub fn kind(&self, chat: ChatIndex) -> Option<ChatKind> {
        self.cells.get(chat.0 as usize).map(|cell| cell.kind)
    }

    /// Why the chat cannot receive at `now`; `None` if it can, or if it is unknown. Time only goes forward.
    pub fn dead(&mut self, chat: ChatIndex, now: Time) -> Option<Forbidden> {
        self.look(chat, now)?.1
    }

    /// Whether there is nothing to tell of the chat: what a question about it is answered. Drawn whenever somebody
    /// asks.
    pub fn has_nothing_to_tell(&self, chat: ChatIndex) -> bool {
        hits(self.lifecycle.empty, draw(self.key, EMPTY, chat.0.into()))
    }

    /// The user of the chat (of a group or channel: whoever can let the bot in again) writes to the bot: if it was
    /// blocked or kicked, the chat can receive from `now` on, and lives anew. An account that is gone cannot write, nor
    /// can a chat that is unknown. Time only goes forward.
    pub fn wrote(&mut self, chat: ChatIndex, now: Time) {
        for copy in self.copies_of(chat.0) {
            self.wrote(ChatIndex(copy), now);
        }
        if let Some((_, Some(Forbidden::Blocked | Forbidden::Kicked))) = self.look(chat, now) {
            self.change(chat.0, Action::Revive, now);
        }
    }

    /// Something happens to a known chat at `now`, as a [schedule](Lifecycle::schedule) would have it. Time only goes
    /// forward.
    pub fn happens(&mut self, chat: ChatIndex, action: Action, now: Time) {
        for copy in self.copies_of(chat.0) {
            self.happens(ChatIndex(copy), action, now);
        }
        if self.look(chat, now).is_some() {
            self.change(chat.0, action, now);
        }
    }

    /// The server no longer knows the chat, ever.
    pub fn forget(&mut self, chat: ChatIndex) {
        if let Some(cell) = self.cells.get_mut(chat.0 as usize) {
            cell.state = State::Unknown;
        }
    }

    /// A known chat's kind and state at `now`.
    #[inline(always)]
    pub(crate) fn look(&mut self, chat: ChatIndex, now: Time) -> Option<(ChatKind, Option<Forbidden>)> {
        if self.next_at.is_some_and(|at| at <= now) {
            self.follow_schedule(now);
        }
        if self.turns.get(chat.0 as usize).is_some_and(|&turn| turn <= now) {
            self.catch_up(chat.0, now);
        }
        match *self.cells.get(chat.0 as usize)? {
            Cell { kind, state: State::Known { dead } } => Some((kind, dead)),
            Cell { state: State::Unknown, .. } => None,
            Cell { kind, state: State::Lasting } => Some((kind, None)),
        }
    }

    fn churns(&self) -> bool {
        self.lifecycle.mean_life.is_some() || self.lifecycle.mean_absence.is_some()
    }

    #[cold]
    fn follow_schedule(&mut self, now: Time) {
        while let Some(change) = self.lifecycle.schedule.get(self.done) {
            let at = Time::ZERO + change.at;
            if at > now {
                self.next_at = Some(at);
                return;
            }
            let Change { action, share, range, .. } = *change;
            let chats = change.chats.clone();
            let everybody = share.is_none() && chats.is_empty() && range.is_none();
            let number = self.done as u64;
            self.done += 1;
            let share = if everybody { Share::ALL } else { share.unwrap_or_default() };
            let range = range.map_or(0..0, |range| range.within(self.cells.len()));
            let of_share = |chat: &u32| hits(share, draw(self.key ^ CHANGE, number, (*chat).into()));
            let drawn: Vec<u32> = (0..self.cells.len() as u32).filter(of_share).collect();
            for chat in chats.into_iter().chain(range).chain(drawn) {
                // Copies come after what they are copies of.
                if (chat as usize) < self.cells.len() && !self.copies.original.contains_key(&chat) {
                    // What the chat did by itself before `at` no longer matters.
                    self.changes(chat, action, at);
                    for copy in self.copies_of(chat) {
                        self.changes(copy, action, at);
                    }
                }
            }
        }
        self.next_at = None;
    }

    /// Lets a chat's own deaths and returns up to `now` happen.
    #[cold]
    fn catch_up(&mut self, chat: u32, now: Time) {
        while let Some(&turn) = self.turns.get(chat as usize).filter(|&&turn| turn <= now) {
            let dead = self.is_dead(chat);
            self.changes(chat, if dead { Action::Revive } else { Action::Die }, turn);
        }
    }

    fn copies_of(&self, chat: u32) -> Vec<u32> {
        self.copies.of.get(&chat).cloned().unwrap_or_default()
    }

    /// As [`Chats::change`], and whoever watches is told.
    fn changes(&mut self, chat: u32, action: Action, at: Time) {
        let before = self.why_dead(chat);
        self.change(chat, action, at);
        let after = self.why_dead(chat);
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.from <= chat)
            && before != after
        {
            watch.happened.push(Happening { chat: ChatIndex(chat), at, before, after });
        }
    }

    fn change(&mut self, chat: u32, action: Action, at: Time) {
        let cell = &mut self.cells[chat as usize];
        let State::Known { dead } = &mut cell.state else { return };
        *dead = match action {
            Action::Die => Some(lost(cell.kind, Forbidden::Blocked)),
            Action::Deactivate => Some(lost(cell.kind, Forbidden::Deactivated)),
            Action::Revive => None,
        };
        if self.churns() {
            self.set_turn(chat, at);
        }
    }

    fn set_turn(&mut self, chat: u32, at: Time) {
        let turn = self.next_turn(chat, at);
        self.turns[chat as usize] = turn;
        self.expect(chat, turn);
    }

    fn expect(&mut self, chat: u32, turn: Time) {
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.from <= chat) {
            watch.turn = watch.turn.min(turn);
        }
    }

    fn is_dead(&self, chat: u32) -> bool {
        self.why_dead(chat).is_some()
    }

    fn why_dead(&self, chat: u32) -> Option<Forbidden> {
        match self.cells[chat as usize].state {
            State::Known { dead } => dead,
            State::Unknown | State::Lasting => None,
        }
    }

    /// When a chat that has just changed, at `at`, changes by itself. The draw belongs to the chat and that instant,
    /// so no counter is kept; the distribution has no memory, so a change by schedule may start it anew.
    fn next_turn(&self, chat: u32, at: Time) -> Time {
        if self.cells[chat as usize].state == State::Unknown {
            return Time::MAX;
        }
        // A copy that is left alone has the draws of its original.
        let drawn = self.copies.original.get(&chat).copied().unwrap_or(chat);
        let mean = if self.is_dead(chat) { self.lifecycle.mean_absence } else { self.lifecycle.mean_life };
        mean.map_or(Time::MAX, |mean| {
            at.saturating_add(exponential(draw(self.key ^ CHURN, drawn.into(), at.as_micros()), mean))
        })
    }
}

impl ChatRange {
    /// Those of its indices that `count` chats have.
    fn within(self, count: usize) -> Range<u32> {
        let end = u64::from(self.first).saturating_add(self.count.0).min(count as u64);
        self.first..end as u32
    }
}

/// How a chat of `kind` is lost: users block the bot or go, groups and channels kick it.
const fn lost(kind: ChatKind, private: Forbidden) -> Forbidden {
    match kind {
        ChatKind::Private => private,
        ChatKind::Group | ChatKind::Channel => Forbidden::Kicked,
    }
}

// Purposes of draws under a chat's key, any numbers.
const DEAD: u64 = 0xDEAD;
const UNKNOWN: u64 = 0x0400;
const EMPTY: u64 = 0x0200;
const CHANGE: u64 = 0xC4A9_6E00;
const CHURN: u64 = 0xC4C4_0000_0000;

#[cfg(test)]
mod tests;
