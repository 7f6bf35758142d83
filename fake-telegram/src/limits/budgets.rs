//! What the limits still allow: the state of every limit and key, and the one place where a call is weighed.
//!
//! The common case is a call that fits: no hashing, no allocation, one 8-byte cell for each limit that applies.

use rustc_hash::FxHashMap;

use super::cells::{ALL_KINDS, Cells, KINDS, Place, Slot, Slots};
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
    pub(crate) items: u16,
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
    plans: [Vec<Check>; KINDS * METHODS],
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
    /// The [`part`] of a call that has a penalty of its own.
    key: u64,
    place: Place,
    penalty: Option<PenaltyRule>,
    penalties: FxHashMap<u64, Penalty>,
    latest_deadline: Time,
    penalty_time: Duration,
    episodes: u64,
    /// Of the episodes that a later one of the same key came after.
    longest_before: Duration,
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
struct Check {
    meter: Meter,
    slot: Slot,
    limit: u8,
}

/// How a limit counts, compiled.
#[derive(Debug, Clone, Copy)]
struct Meter {
    counter: Counter,
    /// Of one message.
    cost: u32,
    /// What there is at most, and so what a call costs at most.
    capacity: u32,
}

impl Budgets {
    /// Full budgets for `chats` chats and `tokens` tokens (more come on use).
    ///
    /// # Panics
    /// If a limit is impossible ([`Limit::check`] says so first), or there are more than [`LIMITS_MAX`].
    pub(crate) fn new(limits: &[Limit], chats: usize, tokens: u16) -> Self {
        assert!(limits.len() <= LIMITS_MAX, "a profile has at most {LIMITS_MAX} limits");
        let mut slots = Slots::default();
        let rules: Vec<Rule> = limits.iter().map(|limit| Rule::new(limit, &mut slots)).collect();
        let plans = std::array::from_fn(|plan| {
            let (kind, method) = (ALL_KINDS[plan / METHODS], Method::ALL[plan % METHODS]);
            let applying =
                limits.iter().zip(&rules).enumerate().filter(|(_, (l, _))| l.applies(kind, method));
            applying.map(|(i, (_, rule))| rule.check(i as u8, kind, method)).collect()
        });
        Self {
            rules,
            plans,
            cells: Cells::new(chats, tokens.into(), slots),
            logs: Vec::new(),
            latest_deadline: Time::ZERO,
            token_wide: limits.iter().position(Limit::is_token_wide).map(|i| LimitIndex(i as u8)),
        }
    }

    /// The same, still full, for chats that are one token's own each.
    pub(crate) fn of_own_chats(self) -> Self {
        Self { cells: self.cells.of_own_chats(), ..self }
    }

    /// Whether a penalty of a limit that applies runs.
    #[inline(always)]
    pub(crate) fn in_penalty(&self, call: Call, now: Time) -> bool {
        now < self.latest_deadline
            && self.plans[plan(call)]
                .iter()
                .any(|check| self.rules[usize::from(check.limit)].running(call, now).is_some())
    }

    /// Takes from all limits that apply, or from none; `false` if one refuses. `in_penalty` is
    /// [`Budgets::in_penalty`] now.
    #[inline(always)]
    pub(crate) fn take(&mut self, call: Call, now: Time, in_penalty: bool) -> bool {
        if in_penalty {
            return false;
        }
        let Self { plans, cells, logs, .. } = self;
        let checks = &plans[plan(call)][..];
        let cells = cells.of(call.token, call.chat);
        for check in checks {
            let (shelf, number) = check.slot.index();
            if !check.meter.fits(cells[shelf][number], logs, now, call.items) {
                return false;
            }
        }
        for check in checks {
            let (shelf, number) = check.slot.index();
            check.meter.take(&mut cells[shelf][number], logs, now, call.items);
        }
        true
    }

    /// What the answer to a call that is refused says; nothing changes.
    pub(crate) fn refusal(&self, call: Call, now: Time) -> Refusal {
        let Self { rules, plans, cells, logs, .. } = self;
        let mut longest = None;
        for check in &plans[plan(call)] {
            let rule = &rules[usize::from(check.limit)];
            if let Some((wait, _)) = rule.refused(check, cells, logs, call, now) {
                longest = Refusal::longer(longest, check, wait);
            }
        }
        longest.expect("a refused call has a limit that refuses")
    }

    /// As [`Budgets::refusal`], and the refusal is answered: each limit that refuses sets or lengthens its penalty.
    pub(crate) fn refuse(&mut self, call: Call, now: Time) -> Refusal {
        let Self { rules, plans, cells, logs, latest_deadline, .. } = self;
        let mut longest = None;
        for check in &plans[plan(call)] {
            let rule = &mut rules[usize::from(check.limit)];
            if let Some((wait, penalty)) = rule.refused(check, cells, logs, call, now) {
                longest = Refusal::longer(longest, check, wait);
                if let Some(penalty) = penalty {
                    rule.punish(call, now, penalty);
                    *latest_deadline = penalty.deadline.max(*latest_deadline);
                }
            }
        }
        longest.expect("a refused call has a limit that refuses")
    }

    /// What an accepted call takes from the token's budget: 0 if there is no token-wide limit.
    #[inline]
    pub(crate) fn taken(&self, call: Call) -> u32 {
        let token_wide = self.token_wide.filter(|_| call.method.spends());
        token_wide.map_or(0, |limit| self.rules[usize::from(limit.0)].meter.cost_of(call.items))
    }

    /// What a token and its chats spent is forgotten, and so are their penalties; what they share with others stays, and
    /// what its [own chats](Budgets::of_own_chats) spent. So does the sum of penalties until `now`.
    pub(crate) fn forget(&mut self, token: TokenIndex, now: Time) {
        self.cells.forget(token);
        for rule in self.rules.iter_mut().filter(|rule| rule.key != part(Key::Host)) {
            let Rule { penalties, penalty_time, longest_before, .. } = rule;
            penalties.retain(|key, penalty| {
                let stays = key & part(Key::Token) != u64::from(token.0) << 40;
                if !stays {
                    *penalty_time = *penalty_time - penalty.deadline.saturating_since(now);
                    *longest_before = (*longest_before).max(penalty.deadline.min(now) - penalty.first_at);
                }
                stays
            });
        }
    }

    /// The token's budget.
    pub(crate) fn token_level(&self, token: TokenIndex, now: Time) -> Option<Level> {
        let limit = self.token_wide?.0;
        let rule = &self.rules[usize::from(limit)];
        // Of any chat and method.
        let slot = rule.place.slot(ChatKind::Private, Method::SendMessage);
        let cell = self.cells.get(slot, token, ChatIndex(0));
        Some(Level::of(&rule.algorithm, rule.meter.level_micro(cell, &self.logs, now)))
    }

    /// Time under penalty so far, over all keys, where penalties that run on are cut at `until`.
    pub(crate) fn penalty_time(&self, limit: LimitIndex, until: Time) -> Duration {
        let rule = &self.rules[usize::from(limit.0)];
        // A sum: in whatever order.
        let beyond = rule.penalties.values().map(|p| p.deadline.saturating_since(until.max(p.first_at)));
        rule.penalty_time - beyond.fold(Duration::ZERO, |sum, beyond| sum + beyond)
    }

    /// Episodes begun, over all keys.
    pub(crate) fn penalties(&self, limit: LimitIndex) -> u64 {
        self.rules[usize::from(limit.0)].episodes
    }

    /// The longest episode of all keys, where one that runs on is cut at `until`.
    pub(crate) fn penalty_longest(&self, limit: LimitIndex, until: Time) -> Duration {
        let rule = &self.rules[usize::from(limit.0)];
        // A maximum: in whatever order.
        let last = rule.penalties.values().map(|p| p.deadline.min(until).saturating_since(p.first_at));
        last.fold(rule.longest_before, Duration::max)
    }
}

impl Refusal {
    /// The longer of two waits, of equals the first.
    fn longer(longest: Option<Self>, check: &Check, wait: Duration) -> Option<Self> {
        longest.filter(|longest| longest.wait >= wait).or(Some(Self { limit: LimitIndex(check.limit), wait }))
    }
}

impl Rule {
    fn new(limit: &Limit, slots: &mut Slots) -> Self {
        let counter = match limit.algorithm {
            Algorithm::TokenBucket { rate, burst } => Counter::Bucket(TokenBucket::new(rate, burst)),
            Algorithm::SlidingWindow { limit, window } => Counter::Sliding(SlidingWindow { limit, window }),
            Algorithm::FixedWindow { limit, window } => Counter::Fixed(FixedWindow { limit, window }),
        };
        let capacity = u32::try_from(limit.algorithm.capacity()).unwrap_or(u32::MAX);
        Self {
            meter: Meter { counter, cost: limit.cost, capacity },
            algorithm: limit.algorithm,
            key: part(limit.key),
            place: slots.place(limit.key, |kind| limit.kinds.is_empty() || limit.kinds.contains(&kind)),
            penalty: limit.penalty,
            penalties: FxHashMap::default(),
            latest_deadline: Time::ZERO,
            penalty_time: Duration::ZERO,
            episodes: 0,
            longest_before: Duration::ZERO,
        }
    }

    fn check(&self, limit: u8, kind: ChatKind, method: Method) -> Check {
        Check { meter: self.meter, slot: self.place.slot(kind, method), limit }
    }

    /// If it refuses the call, the wait that it answers and the penalty that its rule then gives.
    fn refused(
        &self,
        check: &Check,
        cells: &Cells,
        logs: &[SlidingLog],
        call: Call,
        now: Time,
    ) -> Option<(Duration, Option<Penalty>)> {
        let wait = match self.running(call, now) {
            Some(penalty) => penalty.deadline - now,
            None => check.meter.wait(cells.get(check.slot, call.token, call.chat), logs, now, call.items),
        };
        if wait.is_zero() {
            return None;
        }
        Some(self.penalty.map_or((wait, None), |rule| {
            let penalty = rule.refuse(self.penalties.get(&self.key_of(call)).copied(), now, wait);
            (penalty.deadline - now, Some(penalty))
        }))
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
        if from == now {
            self.episodes += 1;
            let over = before.map_or(Duration::ZERO, |before| before.deadline - before.first_at);
            self.longest_before = self.longest_before.max(over);
        }
        self.penalty_time += penalty.deadline - from;
        self.latest_deadline = self.latest_deadline.max(penalty.deadline);
    }

    /// What tells the call's penalty from those of others.
    fn key_of(&self, call: Call) -> u64 {
        call.word() & self.key
    }
}

impl Call {
    fn word(self) -> u64 {
        u64::from(self.token.0) << 40 | (self.method as u64) << 32 | u64::from(self.chat.0)
    }
}

/// The part of a call's word that a limit with this key looks at: no branch for each refusal.
const fn part(key: Key) -> u64 {
    const TOKEN: u64 = 0xFFFF << 40;
    match key {
        Key::Host => 0,
        Key::Token => TOKEN,
        Key::Method => TOKEN | 0xFF << 32,
        Key::Chat => TOKEN | 0xFFFF_FFFF,
    }
}

impl Meter {
    /// What a call of so many messages takes.
    #[inline(always)]
    const fn cost_of(&self, items: u16) -> u32 {
        if items == 1 {
            return self.cost;
        }
        let cost = self.cost.saturating_mul(items as u32);
        if cost < self.capacity { cost } else { self.capacity }
    }

    fn wait(&self, cell: u64, logs: &[SlidingLog], now: Time, items: u16) -> Duration {
        let cost = self.cost_of(items);
        match &self.counter {
            Counter::Bucket(bucket) => bucket.wait_for(BucketState::from_bits(cell), now, cost.into()),
            Counter::Sliding(_) if cell == 0 => Duration::ZERO,
            Counter::Sliding(window) => window.wait(&logs[cell as usize - 1], now, cost),
            Counter::Fixed(window) => window.wait(FixedState::from_bits(cell), now, cost),
        }
    }

    #[inline]
    fn fits(&self, cell: u64, logs: &[SlidingLog], now: Time, items: u16) -> bool {
        match &self.counter {
            Counter::Bucket(bucket) => {
                bucket.has(BucketState::from_bits(cell), now, self.cost_of(items).into())
            }
            _ => self.wait(cell, logs, now, items).is_zero(),
        }
    }

    #[inline]
    fn take(&self, cell: &mut u64, logs: &mut Vec<SlidingLog>, now: Time, items: u16) {
        let cost = self.cost_of(items);
        match &self.counter {
            Counter::Bucket(bucket) => {
                let mut state = BucketState::from_bits(*cell);
                bucket.take_many(&mut state, now, cost.into());
                *cell = state.to_bits();
            }
            Counter::Sliding(window) => {
                if *cell == 0 {
                    logs.push(SlidingLog::default());
                    *cell = logs.len() as u64;
                }
                window.take(&mut logs[*cell as usize - 1], now, cost);
            }
            Counter::Fixed(window) => {
                let mut state = FixedState::from_bits(*cell);
                window.take(&mut state, now, cost);
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

fn plan(call: Call) -> usize {
    call.kind as usize * METHODS + call.method as usize
}

const METHODS: usize = Method::ALL.len();
