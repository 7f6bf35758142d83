//! The server: calls go in, decisions come out.
//!
//! [`Model::handle`] takes a call, [`Model::advance`] lets held calls go on when [`Model::next_timeout`] says so, and
//! [`Model::poll`] hands out what was decided, in order. A call is weighed in this order: fault before, delivered
//! before, chat unknown, chat dead (locally known), limits, chat dead (found out upstream), fault after.
//!
//! What every call passes through is inlined by force, here and in `limits` and `chat`: measured, it saves 60-70
//! instructions of about 400 a call.

mod holds;
mod replays;

use std::collections::VecDeque;

use self::holds::{Holds, Open};
use self::replays::Replays;
use crate::api::{
    Answer, CallId, ChatIndex, ChatKind, Decision, Draws, Forbidden, LimitIndex, Request, TokenIndex, Truth,
};
use crate::chat::Chats;
use crate::fault::{Faults, Phase};
use crate::hint::HintRule;
use crate::limits::{Budgets, Call, Level, Limit, Refusal};
use crate::penalty::whole_seconds;
use crate::profile::Profile;
use crate::time::{Duration, Time};

/// A fake Telegram.
///
/// ```
/// use fake_telegram::api::{Answer, CallId, ChatIndex, ChatKind, Draws, Method, Request, TokenIndex};
/// use fake_telegram::{chat::Chats, fault::Faults, hint::RetryHint, model::Model, profile::Profile, time::Time};
///
/// let chats = Chats::of(ChatKind::Private, 1);
/// let mut model = Model::new(&Profile::telegram(), Faults::default(), chats, 1);
/// let request = Request { token: TokenIndex(0), chat: ChatIndex(0), method: Method::SendMessage, idempotency: None, items: 1 };
/// for call in 0..6 {
///     model.handle(Time::ZERO, CallId(call), request, Draws { fault: 0 });
/// }
/// let answers: Vec<Answer> = std::iter::from_fn(|| model.poll()).map(|decision| decision.answer).collect();
/// assert_eq!(answers[4], Answer::Message { message_id: 5 });
/// assert_eq!(answers[5], Answer::TooManyRequests { hint: RetryHint::Seconds(1) });
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    now: Time,
    limits: Vec<Limit>,
    budgets: Budgets,
    faults: Faults,
    chats: Chats,
    holds: Holds,
    replays: Replays,
    remote_403_costs: bool,
    local_403_costs: bool,
    retry_hint: HintRule,
    /// One counter for all chats: ids rise in every chat, and no chat has to remember its own.
    last_message_id: u32,
    ready: VecDeque<Decision>,
}

impl Model {
    /// A server with full budgets, for `tokens` tokens; more tokens, like more chats, come on use.
    ///
    /// # Panics
    /// If a limit of the profile cannot work ([`Limit::check`] says so first), or there are too many
    /// ([`crate::limits::LIMITS_MAX`]). Profiles by name and those that settings resolve to are sound.
    pub fn new(profile: &Profile, faults: Faults, chats: Chats, tokens: u16) -> Self {
        Self {
            now: Time::ZERO,
            limits: profile.limits.clone(),
            budgets: Budgets::new(&profile.limits, chats.len(), tokens),
            faults,
            chats,
            holds: Holds::new(profile.hold),
            replays: Replays::new(profile.idempotency_keys),
            remote_403_costs: profile.remote_403_costs,
            local_403_costs: profile.local_403_costs,
            retry_hint: profile.retry_hint,
            last_message_id: 0,
            ready: VecDeque::new(),
        }
    }

    /// The same, still unused, where no two tokens write to one chat: a chat has one budget, and not one for each token.
    /// A thousand tokens with a thousand chats each then take a thousandth of the memory.
    #[must_use]
    pub fn with_own_chats(self) -> Self {
        Self { budgets: self.budgets.of_own_chats(), ..self }
    }

    /// A call arrives. Its decision is ready at once, or after a hold.
    ///
    /// Held calls that are due by `now` go first.
    ///
    /// # Panics
    /// If time runs backward. Nothing that a client may send is a panic.
    pub fn handle(&mut self, now: Time, call: CallId, request: Request, draws: Draws) {
        self.advance(now);
        let hit = self.faults.hit(now, draws.fault);
        let mut open =
            Open { call, request, hit, fault_draw: draws.fault, in_penalty: false, waited: Duration::ZERO };
        let known = self.chats.look(request.chat, now);
        // An unknown chat has only the limits that every call has.
        let budget = of(request, known.map_or(ChatKind::Private, |(kind, _)| kind));
        open.in_penalty = self.budgets.in_penalty(budget, now);
        if let Some(hit) = hit.filter(|hit| hit.phase == Phase::Before) {
            let answer = hit.kind.answer(self.next_message_id());
            return self.ready.push_back(open.decision(now, answer, Truth::Nothing, 0));
        }
        if let Some(answer) = self.replays.answer(request) {
            return self.decide(open, now, answer, Truth::Replayed, 0);
        }
        let Some((_, dead)) = known else {
            return self.decide(open, now, Answer::ChatNotFound, Truth::Unknown, 0);
        };
        if let Some(why) = dead.filter(|&why| !self.costs(why)) {
            return self.decide(open, now, Answer::Forbidden(why), Truth::Dead, 0);
        }
        if self.holds.is_behind(request) {
            self.holds.queue(open);
        } else if self.budgets.take(budget, now, open.in_penalty) {
            self.accept(open, budget, now, dead);
        } else {
            self.refuse_or_hold(open, budget, now);
        }
    }

    /// When [`Model::advance`] must be called next; `None` while no call is held.
    pub fn next_timeout(&self) -> Option<Time> {
        self.holds.next_timeout()
    }

    /// Lets everything happen that is due by `now`, each thing at its own time.
    ///
    /// # Panics
    /// If time runs backward.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        assert!(self.now <= now, "time runs forward");
        while let Some(at) = self.holds.next_timeout().filter(|&at| at <= now) {
            self.wake(at);
        }
        self.now = now;
    }

    /// The next decision that is ready: in the order in which they were made.
    pub fn poll(&mut self) -> Option<Decision> {
        self.ready.pop_front()
    }

    /// Whether the chat is known and can receive at `now`.
    pub fn can_receive(&mut self, chat: ChatIndex, now: Time) -> bool {
        self.chats.look(chat, now).is_some_and(|(_, dead)| dead.is_none())
    }

    /// The user of the chat writes to the bot: if it was blocked or kicked, the chat can receive from now on
    /// ([`Chats::wrote`]).
    ///
    /// Held calls that are due by `now` go first.
    ///
    /// # Panics
    /// If time runs backward.
    pub fn wrote(&mut self, chat: ChatIndex, now: Time) {
        self.advance(now);
        self.chats.wrote(chat, now);
    }

    /// What kind of chat it is, or was taken for; `None` beyond the declared chats.
    pub fn chat_kind(&self, chat: ChatIndex) -> Option<ChatKind> {
        self.chats.kind(chat)
    }

    /// The chats, to be added to and changed while the server runs (an admin interface).
    pub const fn chats(&mut self) -> &mut Chats {
        &mut self.chats
    }

    /// A token begins anew: its budgets are full, its penalties over, its held calls dropped. What its
    /// [own chats](Model::with_own_chats) spent stays: it is to write to others.
    ///
    /// # Panics
    /// If time runs backward.
    pub fn forget(&mut self, token: TokenIndex, now: Time) {
        self.advance(now);
        self.budgets.forget(token, now);
        self.holds.forget(token);
        self.replays.forget(token);
    }

    /// Other faults from now on; their times count from the start of the run all the same.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// The limits in force, by [`LimitIndex`].
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// What the token-wide limit (the first with the key `token` that applies to every call) still allows; `None` if
    /// there is none. What will have been available by a later time is at most `available + rate x time`.
    pub fn token_level(&self, token: TokenIndex, now: Time) -> Option<Level> {
        self.budgets.token_level(token, now)
    }

    /// For how long penalties of the limit ran, summed over its keys; one that runs on is cut at `until`, which is no
    /// earlier than the last call.
    pub fn penalty_time(&self, limit: LimitIndex, until: Time) -> Duration {
        self.budgets.penalty_time(limit, until)
    }

    /// How often a penalty of the limit began, over all its keys: calls that a running one refuses lengthen it or not,
    /// and begin nothing.
    pub fn penalties(&self, limit: LimitIndex) -> u64 {
        self.budgets.penalties(limit)
    }

    /// The longest that a penalty of the limit ran for one key, from the first refusal to the deadline; one that runs
    /// on is cut at `until`, which is no earlier than the last call. Zero if there was none.
    pub fn penalty_longest(&self, limit: LimitIndex, until: Time) -> Duration {
        self.budgets.penalty_longest(limit, until)
    }

    fn costs(&self, why: Forbidden) -> bool {
        match why {
            Forbidden::Blocked | Forbidden::Deactivated => self.remote_403_costs,
            Forbidden::Kicked => self.local_403_costs,
        }
    }

    /// The head of the chain whose hold ends first, at `at`, is tried again; then, while heads leave, the next.
    #[cold]
    fn wake(&mut self, at: Time) {
        let (chain, mut queue) = self.holds.wake();
        while let Some(mut head) = queue.pop_front() {
            // What stood before it may have been the same.
            if let Some(answer) = self.replays.answer(head.request) {
                self.decide(head, at, answer, Truth::Replayed, 0);
                continue;
            }
            let (kind, dead) = self.chats.look(head.request.chat, at).expect("chats do not vanish");
            let budget = of(head.request, kind);
            if let Some(why) = dead.filter(|&why| !self.costs(why)) {
                self.decide(head, at, Answer::Forbidden(why), Truth::Dead, 0);
                continue;
            }
            if self.budgets.take(budget, at, self.budgets.in_penalty(budget, at)) {
                self.accept(head, budget, at, dead);
                continue;
            }
            let refusal = self.budgets.refusal(budget, at);
            let wait = whole_seconds(refusal.wait);
            let stays = self.holds.wait(&mut head, wait);
            if !stays {
                self.budgets.refuse(budget, at);
                self.refused(head, at, refusal);
            }
            // What the head meets counts for all behind it; they fail with the head's wait, untried, and since they
            // never reached a limit they are no offence.
            for follower in self.holds.cascade(&mut queue, wait) {
                self.refused(follower, at, refusal);
            }
            if stays {
                queue.push_front(head);
                return self.holds.sleep(chain, queue, at + wait);
            }
        }
    }

    #[inline(always)]
    fn accept(&mut self, open: Open, budget: Call, at: Time, dead: Option<Forbidden>) {
        let taken = self.budgets.taken(budget);
        if let Some(why) = dead {
            return self.decide(open, at, Answer::Forbidden(why), Truth::Dead, taken);
        }
        let Request { chat, method, items, .. } = open.request;
        let answer = if method.is_question() && self.chats.has_nothing_to_tell(chat) {
            Answer::Nothing
        } else {
            let message_id = self.next_message_id();
            // The rest of an album follows.
            self.last_message_id = self.last_message_id.saturating_add(items.saturating_sub(1).into());
            Answer::Message { message_id }
        };
        self.replays.remember(open.request, answer);
        self.decide(open, at, answer, Truth::Delivered, taken);
    }

    /// A call that is tried for the first time is refused.
    fn refuse_or_hold(&mut self, mut open: Open, budget: Call, now: Time) {
        if self.holds.may_wait() {
            let wait = whole_seconds(self.budgets.refusal(budget, now).wait);
            if self.holds.wait(&mut open, wait) {
                return self.holds.begin(open, now + wait);
            }
        }
        let refusal = self.budgets.refuse(budget, now);
        self.refused(open, now, refusal);
    }

    fn refused(&mut self, open: Open, at: Time, Refusal { limit, wait }: Refusal) {
        let answer = match self.faults.instead_of_429(at, open.fault_draw) {
            Some(hit) => hit.kind.answer(self.next_message_id()),
            None => Answer::TooManyRequests { hint: self.retry_hint.say(at, wait) },
        };
        self.ready.push_back(open.decision(at, answer, Truth::Refused { limit, wait }, 0));
    }

    /// Decides anything but a refusal: a fault that comes after the effect replaces the answer.
    #[inline(always)]
    fn decide(&mut self, open: Open, at: Time, answer: Answer, truth: Truth, taken: u32) {
        let answer = open.hit.map_or(answer, |hit| hit.kind.answer(self.last_message_id));
        self.ready.push_back(open.decision(at, answer, truth, taken));
    }

    fn next_message_id(&mut self) -> u32 {
        self.last_message_id = self.last_message_id.wrapping_add(1).max(1);
        self.last_message_id
    }
}

/// A request, as limits look at it.
fn of(request: Request, kind: ChatKind) -> Call {
    let Request { token, chat, method, items, .. } = request;
    Call { token, chat, kind, method, items }
}
