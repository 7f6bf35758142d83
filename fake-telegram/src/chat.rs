//! Chats: what kind each is, and whether it can receive.
//!
//! Chats die and come back in three ways: some are dead from the start, some by schedule, and some as time goes by
//! (churn). All of it is a pure function of the key, the chat and the time, evaluated when somebody looks.

use std::ops::Range;

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
                self.turns.push(self.next_turn(chat, Time::ZERO));
            }
        }
        ChatIndex(first)
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
        if let Some((_, Some(Forbidden::Blocked | Forbidden::Kicked))) = self.look(chat, now) {
            self.change(chat.0, Action::Revive, now);
        }
    }

    /// Something happens to a known chat at `now`, as a [schedule](Lifecycle::schedule) would have it. Time only goes
    /// forward.
    pub fn happens(&mut self, chat: ChatIndex, action: Action, now: Time) {
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
                if (chat as usize) < self.cells.len() {
                    // What the chat did by itself before `at` no longer matters.
                    self.change(chat, action, at);
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
            self.change(chat, if dead { Action::Revive } else { Action::Die }, turn);
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
            self.turns[chat as usize] = self.next_turn(chat, at);
        }
    }

    fn is_dead(&self, chat: u32) -> bool {
        matches!(self.cells[chat as usize].state, State::Known { dead: Some(_) })
    }

    /// When a chat that has just changed, at `at`, changes by itself. The draw belongs to the chat and that instant,
    /// so no counter is kept; the distribution has no memory, so a change by schedule may start it anew.
    fn next_turn(&self, chat: u32, at: Time) -> Time {
        if self.cells[chat as usize].state == State::Unknown {
            return Time::MAX;
        }
        let mean = if self.is_dead(chat) { self.lifecycle.mean_absence } else { self.lifecycle.mean_life };
        mean.map_or(Time::MAX, |mean| {
            at.saturating_add(exponential(draw(self.key ^ CHURN, chat.into(), at.as_micros()), mean))
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
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn dead(chats: &mut Chats, now: Time) -> usize {
        (0..chats.len() as u32).filter(|&chat| chats.dead(ChatIndex(chat), now).is_some()).count()
    }

    #[test]
    fn a_chat_is_two_bytes() {
        assert_eq!(size_of::<Cell>(), 2);
    }

    #[test]
    fn the_share_that_is_dead_at_the_start_is_drawn_for_each_chat() {
        let mut chats = Chats::new(5, Lifecycle { dead: Share::from_ppm(100_000), ..Lifecycle::default() });
        chats.add(ChatKind::Private, 10_000);
        // 1,000 expected, standard deviation 30.
        assert!((850..=1_150).contains(&dead(&mut chats, Time::ZERO)));
        assert_eq!(chats.dead(ChatIndex(10_000), Time::ZERO), None, "an unknown chat is not dead");
    }

    #[test]
    fn an_unknown_chat_stays_unknown_whatever_happens_to_the_others() {
        let revive = Change { at: DAY, action: Action::Revive, share: None, chats: vec![], range: None };
        let lifecycle = Lifecycle {
            unknown: Share::from_ppm(100_000),
            mean_life: Some(DAY),
            schedule: vec![revive],
            ..Lifecycle::default()
        };
        let mut chats = Chats::new(5, lifecycle);
        chats.add(ChatKind::Group, 10_000);
        let mut unknown = |now| {
            (0..10_000).map(ChatIndex).filter(|&chat| chats.look(chat, now).is_none()).collect::<Vec<_>>()
        };
        let first = unknown(Time::ZERO);
        // 1,000 expected, standard deviation 30.
        assert!((850..=1_150).contains(&first.len()));
        assert_eq!(unknown(Time::ZERO + DAY * 3), first);
        assert_eq!(chats.kind(first[0]), Some(ChatKind::Group), "its sender takes it for a group");
    }

    #[test]
    fn the_share_that_has_nothing_to_tell_is_drawn_for_each_chat() {
        let share = |ppm| Lifecycle {
            empty: Share::from_ppm(ppm),
            dead: Share::from_ppm(300_000),
            ..Lifecycle::default()
        };
        let nothing = |ppm| {
            let mut chats = Chats::new(5, share(ppm));
            chats.add(ChatKind::Private, 10_000);
            let empty = (0..10_000).map(ChatIndex).filter(|&chat| chats.has_nothing_to_tell(chat));
            let empty = empty.collect::<Vec<_>>();
            let dead = empty.iter().filter(|&&chat| chats.dead(chat, Time::ZERO).is_some()).count();
            (empty.len(), dead)
        };
        // 3,000 expected, standard deviation 46; of those 900 dead, as of all: the draws are independent.
        let (empty, dead) = nothing(300_000);
        assert!((2_770..=3_230).contains(&empty) && (770..=1_030).contains(&dead), "{empty}, {dead}");
        assert_eq!(nothing(0).0, 0);
        assert_eq!(nothing(1_000_000).0, 10_000);
    }

    #[test]
    fn a_schedule_is_followed_whenever_somebody_looks() {
        let change = |at, action, chats: &[u32], share| Change {
            at: Duration::from_secs(at),
            action,
            share,
            chats: chats.to_vec(),
            range: None,
        };
        let schedule = vec![
            change(20, Action::Revive, &[0], None),
            change(10, Action::Deactivate, &[0, 1, 77], None),
            change(30, Action::Die, &[], Some(Share::ALL)),
        ];
        let mut chats = Chats::new(1, Lifecycle { schedule, ..Lifecycle::default() });
        chats.add(ChatKind::Private, 3);
        chats.add(ChatKind::Group, 1);
        let mut states = |t| [0, 1, 2, 3].map(|i| chats.dead(ChatIndex(i), Time::from_secs(t)));
        let (blocked, gone) = (Some(Forbidden::Blocked), Some(Forbidden::Deactivated));
        assert_eq!(states(9), [None; 4]);
        assert_eq!(states(10), [gone, gone, None, None]);
        assert_eq!(states(25), [None, gone, None, None]);
        assert_eq!(states(30), [blocked, blocked, blocked, Some(Forbidden::Kicked)]);
    }

    #[test]
    fn a_range_adds_up_with_lists_and_shares() {
        let dead = |change: &str| {
            let change: Change =
                toml::from_str(&format!("at = \"0s\"\naction = \"die\"\n{change}")).expect(change);
            let mut chats = Chats::new(1, Lifecycle { schedule: vec![change], ..Lifecycle::default() });
            chats.add(ChatKind::Private, 2_000);
            (0..2_000).filter(|&chat| chats.dead(ChatIndex(chat), Time::ZERO).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(dead("range = { first = 0, count = 1000 }"), (0..1_000).collect::<Vec<_>>());
        assert_eq!(dead("range = { first = 3, count = 2 }\nchats = [0, 4, 7]"), [0, 3, 4, 7]);
        assert_eq!(dead("range = { first = 1999, count = \"1k\" }"), [1_999]);
        for nobody in ["first = 0, count = 0", "first = 2000, count = 1", "first = 4294967295, count = 9"] {
            assert!(dead(&format!("range = {{ {nobody} }}")).is_empty());
        }
        assert_eq!(dead(""), (0..2_000).collect::<Vec<_>>());
        // Half of the other 1,000: standard deviation 16.
        let both = dead("range = { first = 500, count = 1000 }\nshare = \"50%\"");
        assert!((500..1_500).all(|chat| both.contains(&chat)));
        assert!((1_420..=1_580).contains(&both.len()));
    }

    /// T6: a user may unblock and write again.
    #[test]
    fn who_writes_again_can_be_written_to_again_unless_the_account_is_gone() {
        let change = |at, action, chats: &[u32]| Change {
            at: Duration::from_secs(at),
            action,
            share: None,
            chats: chats.to_vec(),
            range: None,
        };
        let schedule = vec![
            change(10, Action::Die, &[0, 2]),
            change(10, Action::Deactivate, &[1]),
            change(30, Action::Die, &[0]),
        ];
        let mut chats = Chats::new(1, Lifecycle { schedule: schedule.clone(), ..Lifecycle::default() });
        chats.add(ChatKind::Private, 2);
        chats.add(ChatKind::Group, 1);
        let (blocked, gone, kicked) =
            (Some(Forbidden::Blocked), Some(Forbidden::Deactivated), Some(Forbidden::Kicked));
        let states = |chats: &mut Chats, t| [0, 1, 2].map(|i| chats.dead(ChatIndex(i), Time::from_secs(t)));
        let write = |chats: &mut Chats, t| {
            (0..4).for_each(|chat| chats.wrote(ChatIndex(chat), Time::from_secs(t)));
        };
        // Who is alive, or beyond the declared chats, changes nothing by writing.
        write(&mut chats, 9);
        assert_eq!(states(&mut chats, 9), [None; 3]);
        assert_eq!(states(&mut chats, 19), [blocked, gone, kicked]);
        write(&mut chats, 20);
        assert_eq!(states(&mut chats, 20), [None, gone, None]);
        assert_eq!(states(&mut chats, 30), [blocked, gone, None], "what is scheduled happens");

        let mut chats = Chats::new(1, Lifecycle { unknown: Share::ALL, schedule, ..Lifecycle::default() });
        chats.add(ChatKind::Private, 1);
        chats.wrote(ChatIndex(0), Time::from_secs(20));
        assert_eq!(chats.look(ChatIndex(0), Time::from_secs(20)), None);
    }

    /// After they wrote, chats live as long as new ones.
    #[test]
    fn a_chat_that_wrote_lives_anew() {
        let lifecycle = Lifecycle {
            dead: Share::ALL,
            mean_life: Some(DAY * 30),
            mean_absence: Some(DAY * 10_000),
            ..Lifecycle::default()
        };
        let mut chats = Chats::new(11, lifecycle);
        chats.add(ChatKind::Private, 10_000);
        let at = |days| Time::ZERO + DAY * days;
        for chat in (0..10_000).map(ChatIndex) {
            chats.wrote(chat, at(5));
        }
        assert_eq!(dead(&mut chats, at(5)), 0);
        // The chain of the test below: 1 / (1 + 30 / 10,000) x (1 - exp(-1.003)) = 63.13%. Standard deviation 48.
        assert!((6_073..=6_553).contains(&dead(&mut chats, at(35))));
    }

    /// Alive share of a two-state chain: at rest `life / (life + absence)`.
    #[test]
    fn churn_comes_to_rest_where_theory_says() {
        let lifecycle =
            Lifecycle { mean_life: Some(DAY * 30), mean_absence: Some(DAY * 10), ..Lifecycle::default() };
        let mut chats = Chats::new(11, lifecycle);
        chats.add(ChatKind::Private, 10_000);
        // After 30 days of 30-day lives without returns 63.2% would be dead; with returns the share is
        // 1/4 (1 - exp(-t (1/30 + 1/10))): at 30 days 24.5%, at 300 days 25%. Standard deviation 43.
        let at = |days| Time::ZERO + DAY * days;
        assert!((2_237..=2_667).contains(&dead(&mut chats, at(30))));
        assert!((2_285..=2_715).contains(&dead(&mut chats, at(300))));
    }

    #[test]
    fn the_state_does_not_depend_on_when_somebody_looked() {
        let lifecycle = Lifecycle {
            dead: Share::from_ppm(100_000),
            mean_life: Some(DAY),
            mean_absence: Some(DAY),
            schedule: vec![Change {
                at: DAY * 3,
                action: Action::Revive,
                share: Some(Share::from_ppm(500_000)),
                chats: Vec::new(),
                range: None,
            }],
            ..Lifecycle::default()
        };
        let chats = || {
            let mut chats = Chats::new(3, lifecycle.clone());
            chats.add(ChatKind::Private, 500);
            chats
        };
        let (mut often, mut once) = (chats(), chats());
        for hour in 0..150 {
            dead(&mut often, Time::ZERO + Duration::from_hours(hour));
        }
        let at = Time::ZERO + Duration::from_hours(150);
        for chat in (0..500).map(ChatIndex) {
            assert_eq!(often.dead(chat, at), once.dead(chat, at));
        }
    }
}
