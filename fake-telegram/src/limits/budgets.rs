//! What the limits still allow: the state of every limit and key, and the one place where a call is weighed.
//!
//! The common case is a call that fits: no hashing, no allocation, one 8-byte cell for each limit that applies.

use rustc_hash::FxHashMap;

use super::{Algorithm, Key, LIMITS_MAX, Level, Limit};
use crate::api::{ChatIndex, ChatKind, LimitIndex, Method, TokenIndex};
use crate::bucket::{BucketState, TokenBucket};
use crate::penalty::{Penalty, PenaltyRule};
use crate::time::{Duration, Time};
use crate::window::{FixedState, FixedWindow, SlidingLog, SlidingWindow};

/// A call, as far as limits look at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) token: TokenIndex,
    pub(crate) chat: ChatIndex,
    pub(crate) kind: ChatKind,
    pub(crate) method: Method,
}

/// The limit that refuses a call (of several the one with the longest wait, of equals the first), and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) limit: LimitIndex,
    pub(crate) wait: Duration,
}

/// The state of a list of limits.
#[derive(Debug, Clone)]
pub(crate) struct Budgets {
    rules: Vec<Rule>,
    /// For each kind and method, the limits that apply.
    plans: [Vec<Place>; KINDS * METHODS],
    cells: Cells,
    logs: Vec<SlidingLog>,
    /// The latest deadline of all penalties: from then on nobody looks for one.
    latest_deadline: Time,
    /// The limit that is the token's budget, if there is one.
    token_wide: Option<LimitIndex>,
}

/// A limit, compiled.
#[derive(Debug, Clone)]
struct Rule {
    meter: Meter,
    algorithm: Algorithm,
    key: Key,
    /// Of the token's cells, or of the chat's cells *among the limits of its kind*.
    slots: [u8; KINDS],
    penalty: Option<PenaltyRule>,
    penalties: FxHashMap<u64, Penalty>,
    latest_deadline: Time,
    penalty_time: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Counter {
    Bucket(TokenBucket),
    Sliding(SlidingWindow),
    Fixed(FixedWindow),
}

/// A limit that applies to a kind and method: how it counts, and where it keeps the cell of a call. All that the
/// common case needs, in one place.
#[derive(Debug, Clone, Copy)]
struct Place {
    meter: Meter,
    key: Key,
    slot: u8,
    limit: u8,
}

/// How a limit counts, compiled.
#[derive(Debug, Clone, Copy)]
struct Meter {
    counter: Counter,
    cost: u32,
}

/// One integer for each limit and key, 0 before its first use; grows on use.
#[derive(Debug, Clone, Default)]
struct Cells {
    of_tokens: Vec<u64>,
    token_slots: usize,
    /// For each token, the cells of all chats.
    of_chats: Vec<Vec<u64>>,
    chat_slots: usize,
    chats: usize,
}

impl Budgets {
    /// Full budgets for `chats` chats and `tokens` tokens (more come on use).
    ///
    /// # Panics
    /// If a limit is impossible ([`Limit::check`] says so first), or there are more than [`LIMITS_MAX`].
    pub(crate) fn new(limits: &[Limit], chats: usize, tokens: u16) -> Self {
        assert!(limits.len() <= LIMITS_MAX, "a profile has at most {LIMITS_MAX} limits");
        let mut token_slots = 0;
        let mut chat_slots = [0; KINDS];
        let rules: Vec<Rule> =
            limits.iter().map(|limit| Rule::new(limit, &mut token_slots, &mut chat_slots)).collect();
        let plans = std::array::from_fn(|plan| {
            let (kind, method) = (ALL_KINDS[plan / METHODS], Method::ALL[plan % METHODS]);
            let applying =
                limits.iter().zip(&rules).enumerate().filter(|(_, (l, _))| l.applies(kind, method));
            applying.map(|(i, (_, rule))| rule.place(i as u8, kind)).collect()
        });
        Self {
            rules,
            plans,
            cells: Cells::new(chats, tokens.into(), token_slots.into(), chat_slots),
            logs: Vec::new(),
            latest_deadline: Time::ZERO,
            token_wide: limits.iter().position(Limit::is_token_wide).map(|i| LimitIndex(i as u8)),
        }
    }

    /// Whether a penalty of a limit that applies runs.
    #[inline(always)]
    pub(crate) fn in_penalty(&self, call: Call, now: Time) -> bool {
        now < self.latest_deadline
            && self.plans[plan(call)]
                .iter()
                .any(|&place| self.rules[usize::from(place.limit)].running(call, now).is_some())
    }

    /// Takes from all limits that apply, or from none; `false` if one refuses. `in_penalty` is
    /// [`Budgets::in_penalty`] now.
    #[inline(always)]
    pub(crate) fn take(&mut self, call: Call, now: Time, in_penalty: bool) -> bool {
        if in_penalty {
            return false;
        }
        let Self { plans, cells, logs, .. } = self;
        let places = &plans[plan(call)][..];
        let cells = cells.of(call);
        for place in places {
            if !place.meter.fits(cells[place.key as usize][usize::from(place.slot)], logs, now) {
                return false;
            }
        }
        for place in places {
            place.meter.take(&mut cells[place.key as usize][usize::from(place.slot)], logs, now);
        }
        true
    }

    /// What the answer to a call that is refused says; nothing changes.
    pub(crate) fn refusal(&self, call: Call, now: Time) -> Refusal {
        let mut longest = None;
        for &place in &self.plans[plan(call)] {
            if let Some((wait, _)) = self.refused_by(place, call, now) {
                longest = Refusal::longer(longest, place, wait);
            }
        }
        longest.expect("a refused call has a limit that refuses")
    }

    /// As [`Budgets::refusal`], and the refusal is answered: each limit that refuses sets or lengthens its penalty.
    pub(crate) fn refuse(&mut self, call: Call, now: Time) -> Refusal {
        let mut longest = None;
        for i in 0..self.plans[plan(call)].len() {
            let place = self.plans[plan(call)][i];
            if let Some((wait, penalty)) = self.refused_by(place, call, now) {
                longest = Refusal::longer(longest, place, wait);
                if let Some(penalty) = penalty {
                    self.rules[usize::from(place.limit)].punish(call, now, penalty);
                    self.latest_deadline = self.latest_deadline.max(penalty.deadline);
                }
            }
        }
        longest.expect("a refused call has a limit that refuses")
    }

    /// If the limit refuses, the wait that it answers and the penalty that its rule then gives.
    fn refused_by(&self, place: Place, call: Call, now: Time) -> Option<(Duration, Option<Penalty>)> {
        let rule = &self.rules[usize::from(place.limit)];
        let wait = match rule.running(call, now) {
            Some(penalty) => penalty.deadline - now,
            None => place.meter.wait(self.cells.get(place, call), &self.logs, now),
        };
        if wait.is_zero() {
            return None;
        }
        Some(rule.penalty.map_or((wait, None), |penalty| {
            let penalty = penalty.refuse(rule.penalties.get(&rule.key_of(call)).copied(), now, wait);
            (penalty.deadline - now, Some(penalty))
        }))
    }

    /// What an accepted call takes from the token's budget: 0 if there is no token-wide limit.
    #[inline]
    pub(crate) fn taken(&self) -> u32 {
        self.token_wide.map_or(0, |limit| self.rules[usize::from(limit.0)].meter.cost)
    }

    /// The token's budget.
    pub(crate) fn token_level(&self, token: TokenIndex, now: Time) -> Option<Level> {
        let limit = self.token_wide?.0;
        let rule = &self.rules[usize::from(limit)];
        let place = rule.place(limit, ChatKind::Private);
        let call = Call { token, chat: ChatIndex(0), kind: ChatKind::Private, method: Method::SendMessage };
        Some(Level::of(&rule.algorithm, rule.meter.level_micro(self.cells.get(place, call), &self.logs, now)))
    }

    /// Time under penalty so far, over all keys, where penalties that run on are cut at `until`.
    pub(crate) fn penalty_time(&self, limit: LimitIndex, until: Time) -> Duration {
        let rule = &self.rules[usize::from(limit.0)];
        // A sum: in whatever order.
        let beyond = rule.penalties.values().map(|p| p.deadline.saturating_since(until.max(p.first_at)));
        rule.penalty_time - beyond.fold(Duration::ZERO, |sum, beyond| sum + beyond)
    }
}

impl Refusal {
    /// The longer of two waits, of equals the first.
    fn longer(longest: Option<Self>, place: Place, wait: Duration) -> Option<Self> {
        longest.filter(|longest| longest.wait >= wait).or(Some(Self { limit: LimitIndex(place.limit), wait }))
    }
}

impl Rule {
    fn new(limit: &Limit, token_slots: &mut u8, chat_slots: &mut [u8; KINDS]) -> Self {
        let counter = match limit.algorithm {
            Algorithm::TokenBucket { rate, burst } => Counter::Bucket(TokenBucket::new(rate, burst)),
            Algorithm::SlidingWindow { limit, window } => Counter::Sliding(SlidingWindow { limit, window }),
            Algorithm::FixedWindow { limit, window } => Counter::Fixed(FixedWindow { limit, window }),
        };
        let mut slots = [0; KINDS];
        for (i, &kind) in ALL_KINDS.iter().enumerate() {
            match limit.key {
                Key::Token => slots[i] = *token_slots,
                Key::Chat if limit.kinds.is_empty() || limit.kinds.contains(&kind) => {
                    slots[i] = chat_slots[i];
                    chat_slots[i] += 1;
                }
                Key::Chat => {}
            }
        }
        *token_slots += u8::from(limit.key == Key::Token);
        Self {
            meter: Meter { counter, cost: limit.cost },
            algorithm: limit.algorithm,
            key: limit.key,
            slots,
            penalty: limit.penalty,
            penalties: FxHashMap::default(),
            latest_deadline: Time::ZERO,
            penalty_time: Duration::ZERO,
        }
    }

    fn place(&self, limit: u8, kind: ChatKind) -> Place {
        Place { meter: self.meter, key: self.key, slot: self.slots[kind as usize], limit }
    }

    /// The penalty that runs for the call's key.
    fn running(&self, call: Call, now: Time) -> Option<Penalty> {
        if now >= self.latest_deadline {
            return None;
        }
        self.penalties.get(&self.key_of(call)).copied().filter(|penalty| penalty.runs(now))
    }

    fn punish(&mut self, call: Call, now: Time, penalty: Penalty) {
        let before = self.penalties.insert(self.key_of(call), penalty);
        let from = before.map_or(now, |before| before.deadline.max(now));
        self.penalty_time += penalty.deadline - from;
        self.latest_deadline = self.latest_deadline.max(penalty.deadline);
    }

    fn key_of(&self, call: Call) -> u64 {
        let token = u64::from(call.token.0);
        match self.key {
            Key::Token => token,
            Key::Chat => token << 32 | u64::from(call.chat.0),
        }
    }
}

impl Meter {
    fn wait(&self, cell: u64, logs: &[SlidingLog], now: Time) -> Duration {
        match &self.counter {
            Counter::Bucket(bucket) => bucket.wait_for(BucketState::from_bits(cell), now, self.cost.into()),
            Counter::Sliding(_) if cell == 0 => Duration::ZERO,
            Counter::Sliding(window) => window.wait(&logs[cell as usize - 1], now, self.cost),
            Counter::Fixed(window) => window.wait(FixedState::from_bits(cell), now, self.cost),
        }
    }

    #[inline]
    fn fits(&self, cell: u64, logs: &[SlidingLog], now: Time) -> bool {
        match &self.counter {
            Counter::Bucket(bucket) => bucket.has(BucketState::from_bits(cell), now, self.cost.into()),
            _ => self.wait(cell, logs, now).is_zero(),
        }
    }

    #[inline]
    fn take(&self, cell: &mut u64, logs: &mut Vec<SlidingLog>, now: Time) {
        match &self.counter {
            Counter::Bucket(bucket) => {
                let mut state = BucketState::from_bits(*cell);
                bucket.take_many(&mut state, now, self.cost.into());
                *cell = state.to_bits();
            }
            Counter::Sliding(window) => {
                if *cell == 0 {
                    logs.push(SlidingLog::default());
                    *cell = logs.len() as u64;
                }
                window.take(&mut logs[*cell as usize - 1], now, self.cost);
            }
            Counter::Fixed(window) => {
                let mut state = FixedState::from_bits(*cell);
                window.take(&mut state, now, self.cost);
                *cell = state.to_bits();
            }
        }
    }

    fn level_micro(&self, cell: u64, logs: &[SlidingLog], now: Time) -> u64 {
        let whole = match &self.counter {
            Counter::Bucket(bucket) => return bucket.level_micro(BucketState::from_bits(cell), now),
            Counter::Sliding(window) if cell == 0 => window.limit,
            Counter::Sliding(window) => window.left(&logs[cell as usize - 1], now),
            Counter::Fixed(window) => window.left(FixedState::from_bits(cell), now),
        };
        u64::from(whole) * 1_000_000
    }
}

impl Cells {
    fn new(chats: usize, tokens: usize, token_slots: usize, chat_slots: [u8; KINDS]) -> Self {
        let chat_slots = chat_slots.into_iter().max().unwrap_or(0).into();
        // Zeroed by the system, page by page, on first use.
        let of_chats = (0..tokens).map(|_| vec![0; chats * chat_slots]).collect();
        Self { of_tokens: vec![0; tokens * token_slots], token_slots, of_chats, chat_slots, chats }
    }

    /// The cell, 0 if nobody used it yet.
    fn get(&self, place: Place, call: Call) -> u64 {
        let (token, chat) = (usize::from(call.token.0), call.chat.0 as usize);
        let cell = match place.key {
            Key::Token => self.of_tokens.get(token * self.token_slots + usize::from(place.slot)),
            Key::Chat => self
                .of_chats
                .get(token)
                .and_then(|cells| cells.get(chat * self.chat_slots + usize::from(place.slot))),
        };
        cell.copied().unwrap_or(0)
    }

    /// For each [`Key`], all cells of the call's token and all of its chat.
    #[inline]
    fn of(&mut self, call: Call) -> [&mut [u64]; 2] {
        let token = usize::from(call.token.0);
        let of_token = token * self.token_slots;
        let of_chat = call.chat.0 as usize * self.chat_slots;
        if self.of_chats.get(token).is_none_or(|cells| cells.len() < of_chat + self.chat_slots) {
            self.grow(token, of_chat);
        }
        let of_chats = &mut self.of_chats[token][of_chat..of_chat + self.chat_slots];
        [&mut self.of_tokens[of_token..of_token + self.token_slots], of_chats]
    }

    #[cold]
    fn grow(&mut self, token: usize, of_chat: usize) {
        if self.of_chats.len() <= token {
            self.of_chats.resize(token + 1, Vec::new());
            self.of_tokens.resize((token + 1) * self.token_slots, 0);
        }
        let cells = &mut self.of_chats[token];
        let wanted = (of_chat + self.chat_slots).max(self.chats * self.chat_slots);
        if cells.is_empty() {
            *cells = vec![0; wanted];
        } else {
            cells.resize(wanted, 0);
        }
    }
}

fn plan(call: Call) -> usize {
    call.kind as usize * METHODS + call.method as usize
}

const KINDS: usize = 3;
const METHODS: usize = Method::ALL.len();
const ALL_KINDS: [ChatKind; KINDS] = [ChatKind::Private, ChatKind::Group, ChatKind::Channel];
