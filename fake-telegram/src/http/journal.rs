//! What was called, and what came of it: the last calls of all bots.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The last calls, oldest first.
#[derive(Debug)]
pub struct Journal {
    entries: VecDeque<Entry>,
    capacity: usize,
    next: u64,
}

/// One call. Times are microseconds on the server's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number, from 1; calls are numbered in the order in which they were decided.
    pub n: u64,
    /// When it arrived.
    pub arrived_us: u64,
    /// When it was decided, which is later if it was held.
    pub at_us: u64,
    /// Which bot called.
    pub bot: i64,
    /// The method.
    pub method: &'static str,
    /// The chat that it writes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<i64>,
    /// What the client got.
    pub outcome: Outcome,
    /// What happened.
    #[serde(flatten)]
    pub truth: Truth,
    /// Whether the client should have waited ([`crate::early`]).
    pub early: bool,
    /// The number that the client gave it ([`super::reply::CALL`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
}

/// What happened to a call, as the header [`super::reply::TRUTH`] says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// `delivered`, `replayed`, `refused`, `dead`, `unknown`, `nothing`.
    pub truth: &'static str,
    /// The limit that refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<str>>,
    /// Until its budget or penalty frees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_us: Option<u64>,
    /// Whether it arrived while a penalty ran.
    pub in_penalty: bool,
    /// Tokens taken of the token-wide limit.
    pub taken: u32,
}

/// What a client got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// 200 with a result.
    Ok,
    /// 429.
    Refused,
    /// 403.
    Forbidden,
    /// Another 4xx.
    Rejected,
    /// 5xx.
    Failed,
    /// 200 with a body that is not what it should be.
    Garbage,
    /// No answer.
    Lost,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Ok, Self::Refused, Self::Forbidden, Self::Rejected, Self::Failed, Self::Garbage, Self::Lost];

    /// Its name, as in JSON and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Forbidden => "forbidden",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Garbage => "garbage",
            Self::Lost => "lost",
        }
    }
}

/// Which calls somebody wants to see: all that fit everything that is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Those after this number.
    pub since: Option<u64>,
    /// Those of this bot.
    pub bot: Option<i64>,
    /// Those of this method, in any case.
    pub method: Option<String>,
    /// Those that write to this chat.
    pub chat: Option<i64>,
    /// Those with this outcome.
    pub outcome: Option<Outcome>,
    /// The one with this number of its client's.
    pub call: Option<u64>,
    /// So many at most, the oldest; 1,000 if absent.
    pub limit: Option<usize>,
}

impl Journal {
    /// Room for `capacity` calls; the oldest make room.
    pub const fn new(capacity: usize) -> Self {
        Self { entries: VecDeque::new(), capacity, next: 1 }
    }

    /// Adds a call; its number.
    pub fn add(&mut self, mut entry: Entry) -> u64 {
        let n = self.next;
        self.next += 1;
        if self.capacity == 0 {
            return n;
        }
        if self.entries.len() == self.capacity {
            self.entries.pop_front();
        }
        entry.n = n;
        self.entries.push_back(entry);
        n
    }

    /// The number of the last call, 0 if there was none.
    pub const fn last(&self) -> u64 {
        self.next - 1
    }

    /// The calls that fit, oldest first.
    pub fn select<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = &'a Entry> {
        let since = filter.since.unwrap_or(0);
        let first = self.entries.partition_point(|entry| entry.n <= since);
        self.entries.range(first..).filter(|entry| filter.fits(entry))
    }

    /// Forgets all calls; numbers go on.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

impl Filter {
    fn fits(&self, entry: &Entry) -> bool {
        self.bot.is_none_or(|bot| bot == entry.bot)
            && self.method.as_ref().is_none_or(|method| method.eq_ignore_ascii_case(entry.method))
            && self.chat.is_none_or(|chat| Some(chat) == entry.chat)
            && self.outcome.is_none_or(|outcome| outcome == entry.outcome)
            && self.call.is_none_or(|call| Some(call) == entry.call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bot: i64, method: &'static str, call: Option<u64>) -> Entry {
        let truth = Truth { truth: "delivered", limit: None, wait_us: None, in_penalty: false, taken: 1 };
        let (outcome, chat) = (Outcome::Ok, Some(7));
        Entry { n: 0, arrived_us: 1, at_us: 2, bot, method, chat, outcome, truth, early: false, call }
    }

    #[test]
    fn the_oldest_make_room_and_numbers_go_on() {
        let mut journal = Journal::new(2);
        let numbers = [1, 2, 3].map(|bot| journal.add(entry(bot, "getMe", None)));
        assert_eq!((numbers, journal.last()), ([1, 2, 3], 3));
        let bots = |filter: &Filter| journal.select(filter).map(|e| (e.n, e.bot)).collect::<Vec<_>>();
        assert_eq!(bots(&Filter::default()), [(2, 2), (3, 3)]);
        assert_eq!(bots(&Filter { since: Some(2), ..Filter::default() }), [(3, 3)]);
        assert_eq!(bots(&Filter { since: Some(9), ..Filter::default() }), []);
    }

    #[test]
    fn filters_are_all_to_be_met() {
        let mut journal = Journal::new(9);
        journal.add(entry(1, "sendMessage", Some(40)));
        journal.add(entry(1, "getMe", None));
        journal.add(entry(2, "sendMessage", Some(41)));
        let count = |filter: &str| {
            let filter: Filter = serde_json::from_str(filter).expect(filter);
            journal.select(&filter).count()
        };
        assert_eq!(count(r#"{"method":"SENDMESSAGE"}"#), 2);
        assert_eq!(count(r#"{"method":"sendMessage","bot":2}"#), 1);
        assert_eq!(count(r#"{"call":40}"#), 1);
        assert_eq!(count(r#"{"outcome":"refused"}"#), 0);
        assert_eq!(count(r#"{"chat":7}"#), 3);
    }

    #[test]
    fn an_entry_is_flat_json() {
        let text = serde_json::to_string(&entry(1, "getMe", Some(4))).expect("JSON");
        let expected = r#"{"n":0,"arrived_us":1,"at_us":2,"bot":1,"method":"getMe","chat":7,"outcome":"ok","truth":"delivered","in_penalty":false,"taken":1,"early":false,"call":4}"#;
        assert_eq!(text, expected);
    }
}
