//! Named sets of server rules. Profiles differ in data only.
//!
//! Nobody outside Telegram (or the market) knows most of these numbers; each can be overridden ([`ServerSettings`]).

mod resolve;
mod settings;

pub use self::resolve::ProfileError;
pub use self::settings::{HintSettings, HoldSettings, LimitSettings, PenaltySettings, ServerSettings};
use crate::api::{ChatKind, Method};
use crate::hint::HintRule;
use crate::limits::{Algorithm, Key, Limit};
use crate::penalty::PenaltyRule;
use crate::time::Duration;
use crate::units::Rate;

/// The rules of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What it is called; a profile with overrides keeps the name of what it is made of.
    pub name: String,
    /// All of them are checked, in this order.
    pub limits: Vec<Limit>,
    /// Whether the server keeps calls open instead of refusing them at once.
    pub hold: Option<Hold>,
    /// Whether a 403 found out by a real upstream call spends budget like a delivery (incident T6; `telegram.md` 3.6
    /// guesses yes). If not, limits are not even asked.
    pub remote_403_costs: bool,
    /// Whether a 403 from the server's cache does (`telegram.md` 3.6: no upstream call, so no).
    pub local_403_costs: bool,
    /// What a 429 says about the wait. Telegram says it exactly (incident T2); other APIs do not (T8).
    pub retry_hint: HintRule,
    /// Whether a call that repeats the key of a delivered one is answered as that was, and does nothing (incident S13).
    /// Telegram has no such thing.
    pub idempotency_keys: bool,
}

/// Holding calls open (`telegram.md` 3.1, read from td `NetQueryDelayer.cpp`).
///
/// A refusal with a wait of X whole seconds, where all waits of the call so far and X fit into `budget`, is not
/// answered: the call sleeps X and is tried again. Calls to one chat with one method queue behind one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// How much waiting a call may add up. Default 8 s; sweep 0, 8, 60 s (before March 2020).
    pub budget: Duration,
    /// Whether the wait of the first call in a queue counts for all that stand behind it, so that they may fail
    /// without ever being tried (`telegram.md` 3.2, td `SequenceDispatcher.cpp`). Default on.
    pub cascade: bool,
}

impl Hold {
    /// How much waiting a call with `method` may add up: for `sendChatAction` no more than 2 s (`telegram.md` 3.1, read
    /// from td `DialogActionManager.cpp`).
    pub fn budget_of(self, method: Method) -> Duration {
        const OF_ACTIONS: Duration = Duration::from_secs(2);
        if method == Method::SendChatAction { self.budget.min(OF_ACTIONS) } else { self.budget }
    }
}

impl Profile {
    /// All profiles, in the order in which people should meet them: name and one line.
    pub const ALL: [(&str, &str); 4] = [
        ("telegram", "three limits, early retries double the pause; the default"),
        ("telegram-observed", "what logs show: 8 s holds, fixed deadlines, re-offences double"),
        ("market", "a Steam-like market: 20 calls a minute, then a ban of minutes of which nothing is said"),
        ("unlimited", "no limits: everything is delivered at once"),
    ];

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "telegram" => Some(Self::telegram()),
            "telegram-observed" => Some(Self::telegram_observed()),
            "market" => Some(Self::market()),
            "unlimited" => Some(Self::unlimited()),
            _ => None,
        }
    }

    /// The default (`design.md`): rates as published (core.telegram.org/bots/faq, "My bot is hitting limits": about
    /// 30 messages a second, one a second into one chat, 20 a minute into one group), penalties as in incident T3.
    pub fn telegram() -> Self {
        // The burst of a chat is nobody's number: "short bursts forgiven" (FAQ), spread 3-30.
        Self::of_telegram("telegram", 5, PenaltyRule::EARLY_RETRY, None)
    }

    /// `telegram.md` section 8: what public logs and the open server show.
    pub fn telegram_observed() -> Self {
        let hold = Hold { budget: Duration::from_secs(8), cascade: true };
        // Burst 20: thirty fast sends, trouble from about the twentieth on (PTB#1045).
        let mut profile = Self::of_telegram("telegram-observed", 20, PenaltyRule::REOFFENCE, Some(hold));
        // Forwards have budgets of their own, as large as those of sends (`telegram.md` 1.27).
        let not_forwards: Vec<Method> =
            Method::ALL.into_iter().filter(|m| m.spends() && *m != Method::ForwardMessage).collect();
        let mut more = Vec::new();
        for limit in profile.limits.iter_mut().filter(|limit| limit.key == Key::Chat) {
            let name = format!("{}-forward", limit.name);
            more.push(Limit { name, methods: vec![Method::ForwardMessage], ..limit.clone() });
            limit.methods.clone_from(&not_forwards);
        }
        let window = |name: &str, method, limit, seconds| Limit {
            name: name.to_owned(),
            key: Key::Chat,
            kinds: Vec::new(),
            methods: vec![method],
            algorithm: Algorithm::SlidingWindow { limit, window: Duration::from_secs(seconds) },
            cost: 1,
            penalty: Some(PenaltyRule::REOFFENCE),
        };
        // Typing: 20 in 5 s and 40 in 30 s (`telegram.md` 1.9); topics: 26 renames in a burst are too many (5.5).
        more.push(window("action", Method::SendChatAction, 20, 5));
        more.push(window("action-long", Method::SendChatAction, 40, 30));
        more.push(window("topic", Method::EditForumTopic, 20, 60));
        profile.limits.extend(more);
        profile
    }

    /// A Steam-like market (incident T9; field notes of its users, nothing is published): about 20 requests a minute,
    /// whatever they ask, then 429 and several minutes of ban. Its 429 says nothing about the wait.
    ///
    /// Invented: that the window slides, and the rules of [`PenaltyRule::EARLY_RETRY`] for what follows, by which a
    /// call inside the ban lengthens it. "Several minutes" are 5, for as long as its clients sleep after a 429.
    pub fn market() -> Self {
        let PenaltyRule::EarlyRetry { grace, cap, halve_every, .. } = PenaltyRule::EARLY_RETRY else {
            unreachable!("a rule is its own kind");
        };
        let minimum = Duration::from_mins(5);
        let token = Limit {
            name: "token".to_owned(),
            key: Key::Token,
            kinds: Vec::new(),
            methods: Vec::new(),
            algorithm: Algorithm::SlidingWindow { limit: 20, window: Duration::from_mins(1) },
            cost: 1,
            penalty: Some(PenaltyRule::EarlyRetry { grace, minimum, cap, halve_every }),
        };
        let name = "market".to_owned();
        Self { name, limits: vec![token], retry_hint: HintRule::Absent, ..Self::unlimited() }
    }

    /// No limits, no holds.
    pub fn unlimited() -> Self {
        Self {
            name: "unlimited".to_owned(),
            limits: Vec::new(),
            hold: None,
            remote_403_costs: true,
            local_403_costs: false,
            retry_hint: HintRule::Exact,
            idempotency_keys: false,
        }
    }

    /// The same for a server whose time runs `speed` times as fast, while its clients and the network do not: what was on
    /// the wire when a refusal was answered takes longer by its clock.
    pub fn at_speed(&self, speed: u32) -> Self {
        let mut profile = self.clone();
        for limit in &mut profile.limits {
            if let Some(PenaltyRule::EarlyRetry { grace, .. }) = &mut limit.penalty {
                *grace = grace.saturating_mul(speed.into());
            }
        }
        profile
    }

    fn of_telegram(name: &str, chat_burst: u64, penalty: PenaltyRule, hold: Option<Hold>) -> Self {
        let limit = |name: &str, key, kinds: &[ChatKind], algorithm| Limit {
            name: name.to_owned(),
            key,
            kinds: kinds.to_vec(),
            methods: Vec::new(),
            algorithm,
            cost: 1,
            penalty: Some(penalty),
        };
        let bucket = |rate, burst| Algorithm::TokenBucket { rate, burst };
        // A true sliding window: the waits that groups show, 25 to 43 s, are 60 s less the time in which 20 were
        // sent; a bucket would ask for 3 s (`telegram.md` 5.1).
        let twenty_a_minute = Algorithm::SlidingWindow { limit: 20, window: Duration::from_mins(1) };
        Self {
            name: name.to_owned(),
            limits: vec![
                limit("token", Key::Token, &[], bucket(Rate::per_second(30), 30)),
                limit("chat", Key::Chat, &[ChatKind::Private], bucket(Rate::per_second(1), chat_burst)),
                limit("group", Key::Chat, &[ChatKind::Group], twenty_a_minute),
                // 20 (PTB wiki) or 10 a minute (teloxide): `telegram.md` 5.4.
                limit("channel", Key::Chat, &[ChatKind::Channel], twenty_a_minute),
            ],
            hold,
            remote_403_costs: true,
            local_403_costs: false,
            retry_hint: HintRule::Exact,
            idempotency_keys: false,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::telegram()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_found_by_its_name_and_possible() {
        for (name, _) in Profile::ALL {
            let profile = Profile::named(name).expect("a listed profile");
            assert_eq!(profile.name, name);
            assert!(profile.limits.iter().all(|limit| limit.check().is_ok()));
        }
        assert_eq!(Profile::named("tele"), None);
    }
}
