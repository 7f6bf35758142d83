//! What a client did with its budget: the verdict on whoever connected.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet, FxHasher};
use serde::Serialize;

use super::journal::{Entry, Outcome};
use crate::limits::{Algorithm, Limit};
use crate::time::{Duration, Time};

/// What is counted of one bot.
#[derive(Debug, Default)]
pub struct Counts {
    first_at: Option<Time>,
    requests: u64,
    outcomes: ByOutcome,
    /// By method: a bot uses few.
    methods: Vec<(&'static str, ByOutcome)>,
    /// By limit.
    refused: IndexMap<Box<str>, u64, FxBuildHasher>,
    early: IndexMap<Box<str>, u64, FxBuildHasher>,
    in_penalty: u64,
    sent: u64,
    duplicates: u64,
    taken: u64,
    held_max: Duration,
    /// What was said where, as hashes; the last [`TEXTS_MAX`], in their order too.
    texts: FxHashSet<u64>,
    texts_in_order: VecDeque<u64>,
}

/// By [`Outcome::ALL`].
type ByOutcome = [u64; Outcome::ALL.len()];

/// So many texts of a bot are remembered to tell which are said again.
const TEXTS_MAX: usize = 100_000;

/// The verdict on one client, or on all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The bot; absent for all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bot: Option<i64>,
    /// Calls.
    pub requests: u64,
    /// Calls by what the client got.
    pub outcomes: IndexMap<&'static str, u64>,
    /// Refusals by limit.
    pub throttled: IndexMap<String, u64>,
    /// Early retries by limit ([`crate::early`]).
    pub early_retries: IndexMap<String, u64>,
    /// Calls that arrived while a penalty ran.
    pub calls_in_penalty: u64,
    /// Messages that arrived in chats.
    pub delivered: u64,
    /// Of these, those whose text had been delivered to the same chat before, of the last 100,000 texts.
    pub duplicates: u64,
    /// The longest that a call was held open.
    pub held_max_us: u64,
    /// Tokens taken of the token-wide limit, and of how many that there were since the first call.
    pub budget_utilisation_ppm: u64,
}

impl Counts {
    /// A call, and the text that it says if it says one.
    pub fn add(&mut self, entry: &Entry, items: u32, limit_of_early: Option<&str>, text: Option<&str>) {
        let arrived = Time::from_micros(entry.arrived_us);
        self.first_at.get_or_insert(arrived);
        self.requests += 1;
        self.outcomes[entry.outcome as usize] += 1;
        self.of_method(entry.method)[entry.outcome as usize] += 1;
        if let Some(limit) = &entry.truth.limit {
            *self.refused.entry(limit.clone()).or_default() += 1;
        }
        if let Some(limit) = limit_of_early {
            *self.early.entry(limit.into()).or_default() += 1;
        }
        self.in_penalty += u64::from(entry.truth.in_penalty);
        self.taken += u64::from(entry.truth.taken);
        self.held_max = self.held_max.max(Time::from_micros(entry.at_us).saturating_since(arrived));
        if entry.truth.truth == "delivered" && text.is_some() {
            self.sent += u64::from(items);
            self.says(entry.chat, text.unwrap_or_default());
        }
    }

    fn of_method(&mut self, method: &'static str) -> &mut ByOutcome {
        let known = self.methods.iter().position(|(name, _)| *name == method);
        let index = known.unwrap_or_else(|| {
            self.methods.push((method, ByOutcome::default()));
            self.methods.len() - 1
        });
        &mut self.methods[index].1
    }

    fn says(&mut self, chat: Option<i64>, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut hasher = FxHasher::default();
        (chat, text).hash(&mut hasher);
        let said = hasher.finish();
        if !self.texts.insert(said) {
            self.duplicates += 1;
            return;
        }
        self.texts_in_order.push_back(said);
        if self.texts_in_order.len() > TEXTS_MAX
            && let Some(oldest) = self.texts_in_order.pop_front()
        {
            self.texts.remove(&oldest);
        }
    }

    /// Calls by method and outcome.
    pub fn by_method(&self) -> impl Iterator<Item = (&'static str, Outcome, u64)> {
        self.methods.iter().flat_map(|(method, counts)| {
            let counts = Outcome::ALL.into_iter().zip(*counts).filter(|(_, count)| *count > 0);
            counts.map(|(outcome, count)| (*method, outcome, count))
        })
    }

    /// The verdict at `now`, under a profile with these limits.
    pub fn verdict(&self, bot: i64, limits: &[Limit], now: Time) -> Verdict {
        let available = self.first_at.map_or(0, |first| available_micro(limits, now.saturating_since(first)));
        let counts = |counts: &IndexMap<Box<str>, u64, FxBuildHasher>| {
            counts.iter().map(|(limit, count)| (limit.to_string(), *count)).collect()
        };
        Verdict {
            bot: Some(bot),
            requests: self.requests,
            outcomes: Outcome::ALL.iter().map(|o| (o.name(), self.outcomes[*o as usize])).collect(),
            throttled: counts(&self.refused),
            early_retries: counts(&self.early),
            calls_in_penalty: self.in_penalty,
            delivered: self.sent,
            duplicates: self.duplicates,
            held_max_us: self.held_max.as_micros(),
            budget_utilisation_ppm: ratio_ppm(self.taken, available),
        }
    }
}

impl Verdict {
    /// All together; the utilisation is that of the bot that used most of its own.
    pub fn sum(verdicts: &[Self]) -> Self {
        let mut sum = Self {
            outcomes: Outcome::ALL.iter().map(|outcome| (outcome.name(), 0)).collect(),
            ..Self::default()
        };
        for verdict in verdicts {
            sum.requests += verdict.requests;
            sum.calls_in_penalty += verdict.calls_in_penalty;
            sum.delivered += verdict.delivered;
            sum.duplicates += verdict.duplicates;
            sum.held_max_us = sum.held_max_us.max(verdict.held_max_us);
            sum.budget_utilisation_ppm = sum.budget_utilisation_ppm.max(verdict.budget_utilisation_ppm);
            for (outcome, count) in &verdict.outcomes {
                *sum.outcomes.entry(outcome).or_default() += count;
            }
            for (limit, count) in &verdict.throttled {
                *sum.throttled.entry(limit.clone()).or_default() += count;
            }
            for (limit, count) in &verdict.early_retries {
                *sum.early_retries.entry(limit.clone()).or_default() += count;
            }
        }
        sum
    }

    /// The verdict for people, a line a finding.
    pub fn lines(&self) -> String {
        let list = |counts: &IndexMap<String, u64>| {
            let parts: Vec<String> = counts.iter().map(|(limit, count)| format!("{limit} {count}")).collect();
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
        };
        let outcomes: Vec<String> = self
            .outcomes
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(outcome, count)| format!("{outcome} {count}"))
            .collect();
        let outcomes =
            if outcomes.is_empty() { String::new() } else { format!(" ({})", outcomes.join(", ")) };
        let who = self.bot.map_or_else(|| "all bots".to_owned(), |bot| format!("bot {bot}"));
        let rows = [
            ("requests", format!("{}{outcomes}", self.requests)),
            ("refusals by limit", list(&self.throttled)),
            ("early retries", list(&self.early_retries)),
            ("calls in a penalty", self.calls_in_penalty.to_string()),
            ("messages delivered", format!("{}, {} of them said before", self.delivered, self.duplicates)),
            ("budget used", format!("{:.1}%", self.budget_utilisation_ppm as f64 / 1e4)),
            ("longest hold", Duration::from_micros(self.held_max_us / 1_000 * 1_000).to_string()),
        ];
        let rows: Vec<String> = rows.iter().map(|(name, value)| format!("  {name:<19} {value}")).collect();
        format!("{who}\n{}\n", rows.join("\n"))
    }
}

/// Micro-tokens that a token-wide limit offered in `elapsed`: burst + rate x elapsed (`interface.md`, "Numbers").
fn available_micro(limits: &[Limit], elapsed: Duration) -> u64 {
    let Some(limit) = limits.iter().find(|limit| limit.is_token_wide()) else { return 0 };
    let rate = limit.algorithm.rate();
    let gained = u128::from(rate.count) * u128::from(elapsed.as_micros()) * 1_000_000
        / u128::from(rate.period.as_micros().max(1));
    let burst = match limit.algorithm {
        Algorithm::TokenBucket { burst, .. } => burst,
        Algorithm::SlidingWindow { limit, .. } | Algorithm::FixedWindow { limit, .. } => limit.into(),
    };
    u64::try_from(gained + u128::from(burst) * 1_000_000).unwrap_or(u64::MAX)
}

fn ratio_ppm(tokens: u64, available_micro: u64) -> u64 {
    if available_micro == 0 {
        return 0;
    }
    (u128::from(tokens) * 1_000_000 * 1_000_000 / u128::from(available_micro)) as u64
}

#[cfg(test)]
mod tests {
    use super::super::journal::Truth;
    use super::*;
    use crate::profile::Profile;

    fn entry(at_s: u64, truth: &'static str, limit: Option<&str>) -> Entry {
        let outcome = if limit.is_some() { Outcome::Refused } else { Outcome::Ok };
        let taken = u32::from(truth == "delivered");
        let limit = limit.map(Into::into);
        Entry {
            n: 0,
            arrived_us: at_s * 1_000_000,
            at_us: at_s * 1_000_000,
            bot: 1,
            method: "sendMessage",
            chat: Some(7),
            outcome,
            truth: Truth { truth, limit, wait_us: None, in_penalty: false, taken },
            early: false,
            call: None,
        }
    }

    /// Two tokens of 30 + 30/s x 1 s = 60.
    #[test]
    fn the_budget_is_burst_and_rate_since_the_first_call() {
        let mut counts = Counts::default();
        counts.add(&entry(5, "delivered", None), 1, None, Some("a"));
        counts.add(&entry(6, "delivered", None), 1, None, Some("b"));
        counts.add(&entry(6, "refused", Some("chat")), 1, Some("chat"), Some("b"));
        let verdict = counts.verdict(1, &Profile::telegram().limits, Time::from_secs(6));
        assert_eq!(verdict.budget_utilisation_ppm, 33_333);
        assert_eq!((verdict.requests, verdict.delivered, verdict.duplicates), (3, 2, 0));
        assert_eq!((verdict.throttled["chat"], verdict.early_retries["chat"]), (1, 1));
        assert_eq!((verdict.outcomes["ok"], verdict.outcomes["refused"]), (2, 1));
    }

    #[test]
    fn the_same_text_in_the_same_chat_is_a_duplicate() {
        let mut counts = Counts::default();
        for text in ["a", "b", "a", "a"] {
            counts.add(&entry(1, "delivered", None), 1, None, Some(text));
        }
        counts.add(&Entry { chat: Some(8), ..entry(1, "delivered", None) }, 1, None, Some("a"));
        assert_eq!(counts.verdict(1, &[], Time::from_secs(1)).duplicates, 2);
    }

    /// Of 100,001 different texts the first is forgotten, and no other.
    #[test]
    fn the_text_that_was_said_the_longest_ago_is_forgotten_first() {
        let mut counts = Counts::default();
        let mut say = |number: usize| {
            counts.add(&entry(1, "delivered", None), 1, None, Some(&number.to_string()));
            counts.duplicates
        };
        let news = (0..TEXTS_MAX + 2).map(&mut say).last();
        assert_eq!(news, Some(0));
        assert_eq!([TEXTS_MAX + 1, TEXTS_MAX, 2].map(&mut say), [1, 2, 3]);
        assert_eq!([0, 1].map(&mut say), [3, 3]);
    }
}
