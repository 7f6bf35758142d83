//! An entry of a timeline by itself: one when and one what that fit together.

use std::collections::BTreeSet;

use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Count;

use super::{Frame, Wrong};
use crate::names::hint;
use crate::one_or_many::OneOrMany;
use crate::scenario::settings::Entry;

/// When something happens.
pub(super) enum When<'a> {
    At(Time),
    After { call: &'a str, count: u32 },
    Every(Duration),
}

/// What happens.
pub(super) enum What<'a> {
    Add(u32),
    Leave(u32),
    Kill(&'a [u32]),
    Restart(&'a [u32]),
}

/// An entry and what it is held against.
pub(super) struct Reading<'a> {
    pub(super) entry: &'a Entry,
    pub(super) index: usize,
    pub(super) frame: &'a Frame<'a>,
}

impl<'a> Reading<'a> {
    /// When and what; everything that does not depend on other entries is right.
    pub(super) fn read(&self) -> Result<(When<'a>, What<'a>), Wrong> {
        let Entry { at, after, count, every, add, leave, kill, restart, restart_after } = self.entry;
        let whens = [("at", at.is_some()), ("after", after.is_some()), ("every", every.is_some())];
        let when = self.one(&whens, "when", "when it happens: write `at`, `after` or `every`")?;
        let whats = [
            ("add", add.is_some()),
            ("leave", leave.is_some()),
            ("kill", kill.is_some()),
            ("restart", restart.is_some()),
        ];
        let what = self.one(&whats, "what", "what happens: write `add`, `leave`, `kill` or `restart`")?;
        if when != "at" && what != "kill" {
            return Err(self.wrong(what, format!("goes with `at`; what goes with `{when}` is `kill`")));
        }
        if count.is_some() && when != "after" {
            return Err(self.wrong("count", "goes with `after`; leave it out"));
        }
        if restart_after.is_some() && what != "kill" {
            return Err(self.wrong("restart_after", "goes with `kill`; leave it out"));
        }
        let when = match (at, after, every) {
            (Some(at), ..) => self.at(Time::ZERO + *at)?,
            (_, Some(call), _) => self.after(call)?,
            (.., every) => self.every(every.expect("there is one when"))?,
        };
        let what = match (add, leave, kill, restart) {
            (Some(0), ..) | (_, Some(0), ..) => {
                return Err(self.wrong(what, "0 processes; write at least 1"));
            }
            (Some(count), ..) => What::Add(*count),
            (_, Some(count), ..) => What::Leave(*count),
            (.., Some(processes), _) => What::Kill(self.named(what, processes)?),
            (.., restart) => What::Restart(self.named(what, restart.as_ref().expect("there is one what"))?),
        };
        Ok((when, what))
    }

    /// The one key that is given; `lacks` says what is not there without any.
    fn one(&self, keys: &[(&'static str, bool)], of: &str, lacks: &str) -> Result<&'static str, Wrong> {
        let given: Vec<&'static str> = keys.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
        match given.as_slice() {
            [] => Err(Wrong { entry: self.index, key: None, message: format!("lacks {lacks}") }),
            [one] => Ok(*one),
            [first, second, ..] => {
                let message = format!("an entry has one {of}, and here is `{first}` too; write two entries");
                Err(self.wrong(second, message))
            }
        }
    }

    fn at(&self, at: Time) -> Result<When<'a>, Wrong> {
        if at >= self.frame.horizon {
            let message = format!("{}, so it never comes", self.frame.too_late(at));
            return Err(self.wrong("at", message));
        }
        self.back(at)?;
        Ok(When::At(at))
    }

    fn after(&self, call: &'a str) -> Result<When<'a>, Wrong> {
        let calls = self.frame.strategy.calls();
        if call != ANY && !calls.contains(&call) {
            let kind = self.frame.strategy.kind();
            let hint = hint(call, calls.into_iter().chain([ANY]));
            return Err(self.wrong("after", format!("strategy `{kind}` never calls `{call}`{hint}")));
        }
        let Count(count) = self.entry.count.unwrap_or(ONCE);
        self.back(Time::ZERO)?;
        match u32::try_from(count) {
            Ok(0) => Err(self.wrong("count", "0 calls; the first one is 1")),
            Ok(count) => Ok(When::After { call, count }),
            Err(_) => Err(self.wrong("count", format!("{count} calls; at most {} are counted", u32::MAX))),
        }
    }

    fn every(&self, every: Duration) -> Result<When<'a>, Wrong> {
        if every.is_zero() {
            let message = "0s is no life; write how long a process lives on average, as in `2min`";
            return Err(self.wrong("every", message));
        }
        self.back(Time::ZERO)?;
        Ok(When::Every(every))
    }

    /// Whoever is killed at `at` or later can come back before the end.
    fn back(&self, at: Time) -> Result<(), Wrong> {
        let back = self.entry.restart_after.map_or(at, |pause| at.saturating_add(pause));
        if back < self.frame.horizon {
            return Ok(());
        }
        let message = format!("{}, so nobody comes back; leave it out", self.frame.too_late(back));
        Err(self.wrong("restart_after", message))
    }

    fn named(&self, key: &'static str, processes: &'a OneOrMany<u32>) -> Result<&'a [u32], Wrong> {
        let OneOrMany(processes) = processes;
        let mut seen = BTreeSet::new();
        if processes.is_empty() {
            return Err(self.wrong(key, "an empty list; write numbers of processes"));
        }
        match processes.iter().find(|process| !seen.insert(**process)) {
            Some(twice) => Err(self.wrong(key, format!("process {twice} is there twice"))),
            None => Ok(processes),
        }
    }

    fn wrong(&self, key: &'static str, message: impl Into<String>) -> Wrong {
        Wrong { entry: self.index, key: Some(key), message: message.into() }
    }
}

/// The name of every call.
const ANY: &str = "any";

/// What `count` is unless somebody says otherwise.
pub(super) const ONCE: Count = Count(1);
