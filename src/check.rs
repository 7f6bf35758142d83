//! Findings about the sender, from the event stream.

use std::collections::VecDeque;

use fake_telegram::api::{Answer, ChatIndex, Method, TokenIndex, Truth};
use fake_telegram::limits::{Key, Limit};
use fake_telegram::time::{Duration, Time};
use rustc_hash::FxHashMap;

use crate::event::{Event, Observer};
use crate::world::ProcessIndex;

/// After this long every process of a token is taken to know of a refusal.
const COMMON_KNOWLEDGE: Duration = Duration::from_secs(1);

/// Counts early retries: calls sent although the sender knew of a refusal whose `retry_after` was not over.
///
/// What counts is what the server said, true or not; after a refusal that says nothing about the wait no call is early.
///
/// The same process knows from the answer on, any process of the token 1 s later. A refusal does not tell its limit,
/// so after a token-wide one calls to other chats count only once a second chat has been refused.
#[derive(Debug, Default)]
pub struct EarlyRetries {
    /// How many there were.
    pub count: u64,
    /// By limit: whose budget it is.
    keys: Vec<Key>,
    /// Which token each process sends with.
    tokens: Vec<TokenIndex>,
    refusals: Vec<Refusals>,
    /// By limits that no token has for itself.
    host: Refusal,
}

/// What a token's processes were refused.
#[derive(Debug, Default)]
struct Refusals {
    token: Refusal,
    /// By method.
    methods: [Refusal; Method::ALL.len()],
    chats: FxHashMap<ChatIndex, Refusal>,
    /// No refusal in `chats` lasts longer.
    chats_until: Time,
}

/// A stretch of refusals by one limit and key: each while an earlier one is in force.
#[derive(Debug, Default)]
struct Refusal {
    /// None of them lasts longer.
    until: Time,
    chat: ChatIndex,
    second_chat: bool,
    /// Until when, as far as each process was told.
    told: Vec<(ProcessIndex, Time)>,
    /// Until when, as far as every process of the token is taken to know.
    common: Time,
    /// What will be common knowledge: when it was answered, until when.
    spreading: VecDeque<(Time, Time)>,
}

impl EarlyRetries {
    /// Counts for the limits of a profile; `tokens` says which token each process sends with.
    pub fn new(limits: &[Limit], tokens: Vec<TokenIndex>) -> Self {
        let refusals = tokens.iter().map(|token| usize::from(token.0) + 1).max().unwrap_or(0);
        Self {
            count: 0,
            keys: limits.iter().map(|limit| limit.key).collect(),
            tokens,
            refusals: std::iter::repeat_with(Refusals::default).take(refusals).collect(),
            host: Refusal::default(),
        }
    }

    fn of(&mut self, process: ProcessIndex) -> &mut Refusals {
        &mut self.refusals[usize::from(self.tokens[usize::from(process.0)].0)]
    }
}

impl Refusal {
    fn extend(&mut self, at: Time, until: Time, process: ProcessIndex, chat: ChatIndex) {
        if at >= self.until {
            *self = Self { chat, ..Self::default() };
        }
        self.second_chat |= chat != self.chat;
        match self.told.iter_mut().find(|(told, _)| *told == process) {
            Some((_, told)) => *told = until.max(*told),
            None => self.told.push((process, until)),
        }
        // Only what lasts longer than all before it will ever be news.
        if until > self.until {
            self.until = until;
            self.spreading.push_back((at, until));
        }
    }

    fn known(&mut self, now: Time, process: ProcessIndex, chat: ChatIndex) -> bool {
        if now >= self.until || !(self.second_chat || chat == self.chat) {
            return false;
        }
        while let Some((_, until)) = self.spreading.pop_front_if(|(at, _)| now > *at + COMMON_KNOWLEDGE) {
            self.common = until;
        }
        now < self.common || self.told.iter().any(|(told, until)| *told == process && now < *until)
    }
}

impl Observer for EarlyRetries {
    #[inline(always)]
    fn observe(&mut self, at: Time, event: &Event) {
        match *event {
            Event::Sent { message, process, .. } => {
                let chat = message.chat;
                let early_for_all = self.host.known(at, process, chat);
                let Refusals { token, methods, chats, chats_until } = self.of(process);
                let early = token.known(at, process, chat)
                    || methods[message.method as usize].known(at, process, chat)
                    || at < *chats_until
                        && chats.get_mut(&chat).is_some_and(|refusal| refusal.known(at, process, chat));
                self.count += u64::from(early || early_for_all);
            }
            Event::Answered {
                message,
                process,
                answer: answer @ Answer::TooManyRequests { .. },
                decision: Some(decision),
            } => {
                let Truth::Refused { limit, .. } = decision.truth else { return };
                let Some(wait) = answer.retry_after(decision.at) else { return };
                let until = decision.at.saturating_add(wait);
                let (key, chat) = (self.keys[usize::from(limit.0)], message.chat);
                if key == Key::Host {
                    return self.host.extend(at, until, process, chat);
                }
                let refusals = self.of(process);
                let refusal = match key {
                    Key::Chat => {
                        refusals.chats_until = refusals.chats_until.max(until);
                        refusals.chats.entry(chat).or_default()
                    }
                    Key::Method => &mut refusals.methods[message.method as usize],
                    Key::Token | Key::Host => &mut refusals.token,
                };
                refusal.extend(at, until, process, chat);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fake_telegram::api::{CallId, ChatKind, Decision, LimitIndex};
    use fake_telegram::hint::RetryHint;
    use fake_telegram::profile::Profile;

    use super::*;
    use crate::world::{ClassIndex, Message};

    const TOKEN: LimitIndex = LimitIndex(0);
    const CHAT: LimitIndex = LimitIndex(1);

    fn message(chat: u32) -> Message {
        let (due, deadline, class) = (Time::ZERO, Time::MAX, ClassIndex(0));
        Message {
            number: 0,
            chat: ChatIndex(chat),
            due,
            deadline,
            class,
            kind: ChatKind::Private,
            method: Method::SendMessage,
            from_user: false,
        }
    }

    /// A refusal of 10 s, decided and answered at 0 to process 0.
    fn refused(check: &mut EarlyRetries, limit: LimitIndex, chat: u32) {
        refused_with(check, RetryHint::Seconds(10), limit, chat);
    }

    fn refused_with(check: &mut EarlyRetries, hint: RetryHint, limit: LimitIndex, chat: u32) {
        let answer = Answer::TooManyRequests { hint };
        let truth = Truth::Refused { limit, wait: Duration::from_secs(10) };
        let decision =
            Decision { call: CallId(0), at: Time::ZERO, answer, truth, in_penalty: false, taken: 0 };
        let (message, process) = (message(chat), ProcessIndex(0));
        check.observe(Time::ZERO, &Event::Answered { message, process, answer, decision: Some(decision) });
    }

    fn is_early(check: &mut EarlyRetries, at_ms: u64, process: u16, chat: u32) -> bool {
        let before = check.count;
        let event = Event::Sent { message: message(chat), process: ProcessIndex(process), attempt: 1 };
        check.observe(Time::ZERO + Duration::from_millis(at_ms), &event);
        check.count > before
    }

    #[test]
    fn a_chats_refusal_speaks_of_that_chat_alone() {
        let mut check = EarlyRetries::new(&Profile::telegram().limits, vec![TokenIndex(0); 2]);
        refused(&mut check, CHAT, 7);
        assert!(is_early(&mut check, 1, 0, 7), "the same process knows at once");
        assert!(!is_early(&mut check, 1_000, 1, 7), "another does not, within a second");
        assert!(is_early(&mut check, 1_001, 1, 7));
        assert!(!is_early(&mut check, 5_000, 0, 8), "another chat");
        assert!(is_early(&mut check, 9_999, 0, 7));
        assert!(!is_early(&mut check, 10_000, 0, 7), "retry_after is over");
    }

    /// A limit of a method says nothing of another, one of the host speaks to all tokens.
    #[test]
    fn a_refusal_speaks_of_whom_its_limit_is_keyed_by() {
        let limit = |key| Limit { key, kinds: Vec::new(), ..Profile::telegram().limits[0].clone() };
        let limits = [limit(Key::Method), limit(Key::Host)];
        let early = |of: u8, process, method| {
            let mut check = EarlyRetries::new(&limits, vec![TokenIndex(0), TokenIndex(1)]);
            refused(&mut check, LimitIndex(of), 7);
            refused(&mut check, LimitIndex(of), 8);
            let message = Message { method, ..message(9) };
            let event = Event::Sent { message, process: ProcessIndex(process), attempt: 1 };
            check.observe(Time::from_secs(2), &event);
            check.count == 1
        };
        assert!(early(0, 0, Method::SendMessage) && !early(0, 0, Method::SendPhoto));
        assert!(!early(0, 1, Method::SendMessage), "another token");
        assert!(early(1, 1, Method::SendPhoto), "all are one to the host");
    }

    #[test]
    fn what_the_server_said_counts_and_not_how_long_it_lasts() {
        let early_at = |hint, at_ms| {
            let mut check = EarlyRetries::new(&Profile::telegram().limits, vec![TokenIndex(0)]);
            refused_with(&mut check, hint, CHAT, 7);
            is_early(&mut check, at_ms, 0, 7)
        };
        assert!(early_at(RetryHint::Date(3), 2_999) && !early_at(RetryHint::Date(3), 3_000));
        assert!(early_at(RetryHint::Seconds(3), 2_999) && !early_at(RetryHint::Seconds(3), 3_000));
        assert!(!early_at(RetryHint::Absent, 1), "nobody was told to wait");
    }

    #[test]
    fn a_tokens_refusal_counts_elsewhere_once_a_second_chat_is_refused() {
        let mut check = EarlyRetries::new(&Profile::telegram().limits, vec![TokenIndex(0); 2]);
        refused(&mut check, TOKEN, 7);
        assert!(is_early(&mut check, 1, 0, 7));
        assert!(!is_early(&mut check, 1, 0, 8), "it could be the chat's limit");
        refused(&mut check, TOKEN, 9);
        assert!(is_early(&mut check, 1, 0, 8));
        assert!(!is_early(&mut check, 500, 1, 8));
        assert!(is_early(&mut check, 1_001, 1, 8));
    }
}
