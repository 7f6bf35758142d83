//! Early retries: a finding about senders, who called although they had been told to wait.
//!
//! What counts is what the server said, true or not; after a refusal that says nothing about the wait no call is early.
//! Whoever was answered knows at once, any process of the token 1 s later. A refusal does not tell its limit, so after
//! one of a whole token's calls to other chats count only once a second chat has been refused.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::api::{ChatIndex, LimitIndex, Method, TokenIndex};
use crate::limits::{Key, Limit};
use crate::time::{Duration, Time};

/// After this long every process of a token is taken to know of a refusal.
pub const COMMON_KNOWLEDGE: Duration = Duration::from_secs(1);

/// Tells which calls are early.
#[derive(Debug)]
pub struct EarlyRetries {
    /// By limit: whose budget it is.
    keys: Vec<Key>,
    /// By token.
    tokens: Vec<Refusals>,
    /// By limits that no token has for itself.
    host: Refusal,
    common_after: Duration,
}

/// A call, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    /// Whose budget it spends.
    pub token: TokenIndex,
    /// Where to.
    pub chat: ChatIndex,
    /// What for.
    pub method: Method,
    /// Which process of the token calls; `None` to whoever cannot tell processes apart: then nobody knows at once.
    pub process: Option<u16>,
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
    limit: u8,
    chat: ChatIndex,
    second_chat: bool,
    /// Until when, as far as each process was told.
    told: Vec<(u16, Time)>,
    /// Until when, as far as every process of the token is taken to know.
    common: Time,
    /// What will be common knowledge: when it was answered, until when.
    spreading: VecDeque<(Time, Time)>,
}

impl Default for EarlyRetries {
    fn default() -> Self {
        Self::new(&[], 0)
    }
}

impl EarlyRetries {
    /// For the limits of a profile and `tokens` tokens; more come on use.
    pub fn new(limits: &[Limit], tokens: usize) -> Self {
        Self {
            keys: limits.iter().map(|limit| limit.key).collect(),
            tokens: std::iter::repeat_with(Refusals::default).take(tokens).collect(),
            host: Refusal::default(),
            common_after: COMMON_KNOWLEDGE,
        }
    }

    /// The same where it takes `after` until every process knows, not [`COMMON_KNOWLEDGE`].
    #[must_use]
    pub fn with_common_after(self, after: Duration) -> Self {
        Self { common_after: after, ..self }
    }

    /// What a token was told is forgotten.
    pub fn forget(&mut self, token: TokenIndex) {
        if let Some(refusals) = self.tokens.get_mut(usize::from(token.0)) {
            *refusals = Refusals::default();
        }
    }

    /// The limit of the refusal that the caller of `call`, made at `at`, should have waited for.
    #[inline(always)]
    pub fn early(&mut self, at: Time, call: Called) -> Option<LimitIndex> {
        let Called { chat, method, process, .. } = call;
        let after = self.common_after;
        let Some(Refusals { token, methods, chats, chats_until }) =
            self.tokens.get_mut(usize::from(call.token.0))
        else {
            return self.host.known(at, process, chat, after);
        };
        let of_chat =
            |chats: &mut FxHashMap<ChatIndex, Refusal>| chats.get_mut(&chat)?.known(at, process, chat, after);
        token
            .known(at, process, chat, after)
            .or_else(|| methods[method as usize].known(at, process, chat, after))
            .or_else(|| if at < *chats_until { of_chat(chats) } else { None })
            .or_else(|| self.host.known(at, process, chat, after))
    }

    /// `call` was refused by `limit`; its caller learned at `at` that it has to wait until `until`.
    pub fn refused(&mut self, at: Time, call: Called, limit: LimitIndex, until: Time) {
        let Called { chat, method, process, .. } = call;
        let key = self.keys[usize::from(limit.0)];
        let token = usize::from(call.token.0);
        if self.tokens.len() <= token {
            self.tokens.resize_with(token + 1, Refusals::default);
        }
        let refusals = &mut self.tokens[token];
        let refusal = match key {
            Key::Chat => {
                // What is over says nothing any more.
                if at >= refusals.chats_until {
                    refusals.chats.clear();
                }
                refusals.chats_until = refusals.chats_until.max(until);
                refusals.chats.entry(chat).or_default()
            }
            Key::Method => &mut refusals.methods[method as usize],
            Key::Token => &mut refusals.token,
            Key::Host => &mut self.host,
        };
        refusal.extend(at, until, process, chat, limit);
    }
}

impl Refusal {
    fn extend(&mut self, at: Time, until: Time, process: Option<u16>, chat: ChatIndex, limit: LimitIndex) {
        if at >= self.until {
            *self = Self { chat, limit: limit.0, ..Self::default() };
        }
        self.second_chat |= chat != self.chat;
        if let Some(process) = process {
            match self.told.iter_mut().find(|(told, _)| *told == process) {
                Some((_, told)) => *told = until.max(*told),
                None => self.told.push((process, until)),
            }
        }
        // Only what lasts longer than all before it will ever be news.
        if until > self.until {
            self.until = until;
            self.spreading.push_back((at, until));
        }
    }

    #[inline]
    fn known(
        &mut self,
        now: Time,
        process: Option<u16>,
        chat: ChatIndex,
        common_after: Duration,
    ) -> Option<LimitIndex> {
        if now >= self.until || !(self.second_chat || chat == self.chat) {
            return None;
        }
        while let Some((_, until)) = self.spreading.pop_front_if(|(at, _)| now > *at + common_after) {
            self.common = until;
        }
        let is_told = |(told, until): &(u16, Time)| process == Some(*told) && now < *until;
        (now < self.common || self.told.iter().any(is_told)).then_some(LimitIndex(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const TOKEN: LimitIndex = LimitIndex(0);
    const CHAT: LimitIndex = LimitIndex(1);

    fn call(process: Option<u16>, chat: u32) -> Called {
        Called { token: TokenIndex(0), chat: ChatIndex(chat), method: Method::SendMessage, process }
    }

    fn ms(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Refusals of 10 s, answered at 0 to process 0.
    fn after(limits: &[Limit], refusals: &[(LimitIndex, u32)]) -> EarlyRetries {
        let mut early = EarlyRetries::new(limits, 0);
        for (limit, chat) in refusals {
            early.refused(Time::ZERO, call(Some(0), *chat), *limit, Time::from_secs(10));
        }
        early
    }

    #[test]
    fn a_chats_refusal_speaks_of_that_chat_alone() {
        let mut early = after(&Profile::telegram().limits, &[(CHAT, 7)]);
        let mut is_early = |at, process, chat| early.early(ms(at), call(process, chat)).is_some();
        assert!(is_early(1, Some(0), 7), "the same process knows at once");
        assert!(!is_early(1_000, Some(1), 7), "another does not, within a second");
        assert!(!is_early(1_000, None, 7), "nor does one that is not known");
        assert!(is_early(1_001, Some(1), 7) && is_early(1_001, None, 7));
        assert!(!is_early(5_000, Some(0), 8), "another chat");
        assert!(is_early(9_999, Some(0), 7));
        assert!(!is_early(10_000, Some(0), 7), "retry_after is over");
        assert_eq!(early.early(ms(9_999), call(None, 7)), Some(CHAT));
    }

    #[test]
    fn a_tokens_refusal_counts_elsewhere_once_a_second_chat_is_refused() {
        let limits = Profile::telegram().limits;
        let is_early = |refusals: &[_], at, process, chat| {
            after(&limits, refusals).early(ms(at), call(Some(process), chat)).is_some()
        };
        let (one, two) = ([(TOKEN, 7)], [(TOKEN, 7), (TOKEN, 9)]);
        assert!(is_early(&one, 1, 0, 7));
        assert!(!is_early(&one, 1, 0, 8), "it could be the chat's limit");
        assert!(is_early(&two, 1, 0, 8));
        assert!(!is_early(&two, 500, 1, 8) && is_early(&two, 1_001, 1, 8));
    }

    /// A limit of a method says nothing of another, one of the host speaks to all tokens.
    #[test]
    fn a_refusal_speaks_of_whom_its_limit_is_keyed_by() {
        let limit = |key| Limit { key, kinds: Vec::new(), ..Profile::telegram().limits[0].clone() };
        let limits = [limit(Key::Method), limit(Key::Host)];
        let is_early = |of, token, method| {
            let mut early = after(&limits, &[(LimitIndex(of), 7), (LimitIndex(of), 8)]);
            let call = Called { token: TokenIndex(token), method, ..call(Some(token), 9) };
            early.early(ms(2_000), call).is_some()
        };
        assert!(is_early(0, 0, Method::SendMessage) && !is_early(0, 0, Method::SendPhoto));
        assert!(!is_early(0, 1, Method::SendMessage), "another token");
        assert!(is_early(1, 1, Method::SendPhoto), "all are one to the host");
    }
}
