//! The types of values, each as plain data.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use crate::store::command::{End, Reply};

/// What is under a key.
#[derive(Debug)]
pub(super) enum Value {
    Text(Vec<u8>),
    Hash(Hash),
    List(List),
    Sorted(SortedSet),
}

/// A type that holds items: it comes into being with the first and vanishes with the last.
pub(super) trait Collection: Default {
    fn of(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
    fn len(&self) -> usize;
}

pub(super) type Hash = BTreeMap<Vec<u8>, Vec<u8>>;
pub(super) type List = VecDeque<Vec<u8>>;

/// Members by who they are and by score.
#[derive(Debug, Default)]
pub(super) struct SortedSet {
    scores: BTreeMap<Vec<u8>, i64>,
    order: BTreeSet<(i64, Vec<u8>)>,
}

impl Collection for Hash {
    fn of(value: &mut Value) -> Option<&mut Self> {
        if let Value::Hash(hash) = value { Some(hash) } else { None }
    }

    fn into_value(self) -> Value {
        Value::Hash(self)
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl Collection for List {
    fn of(value: &mut Value) -> Option<&mut Self> {
        if let Value::List(list) = value { Some(list) } else { None }
    }

    fn into_value(self) -> Value {
        Value::List(self)
    }

    fn len(&self) -> usize {
        self.len()
    }
}

impl Collection for SortedSet {
    fn of(value: &mut Value) -> Option<&mut Self> {
        if let Value::Sorted(set) = value { Some(set) } else { None }
    }

    fn into_value(self) -> Value {
        Value::Sorted(self)
    }

    fn len(&self) -> usize {
        self.scores.len()
    }
}

impl SortedSet {
    /// Whether the member is new.
    pub(super) fn add(&mut self, member: &[u8], score: i64, only_if_absent: bool) -> bool {
        match self.scores.get_mut(member) {
            Some(_) if only_if_absent => false,
            Some(known) => {
                let mut place = (mem::replace(known, score), member.to_vec());
                self.order.remove(&place);
                place.0 = score;
                self.order.insert(place);
                false
            }
            None => {
                self.scores.insert(member.to_vec(), score);
                self.order.insert((score, member.to_vec()));
                true
            }
        }
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let Some((member, score)) = self.scores.remove_entry(member) else { return false };
        self.order.remove(&(score, member))
    }

    pub(super) fn pop_min(&mut self) -> Option<(Vec<u8>, i64)> {
        let (score, member) = self.order.pop_first()?;
        self.scores.remove(&member);
        Some((member, score))
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<i64> {
        self.scores.get(member).copied()
    }

    /// Those with a score from `min` to `max`, in order.
    pub(super) fn between(&self, min: i64, max: i64) -> impl Iterator<Item = &[u8]> {
        // Not `range(from..=to)`: there is no last member of a score, and `range` panics if `min` is above `max`.
        let from = self.order.range((min, Vec::new())..);
        from.take_while(move |(score, _)| *score <= max).map(|(_, member)| member.as_slice())
    }
}

pub(super) fn push(list: &mut List, end: End, value: Vec<u8>) -> usize {
    match end {
        End::Left => list.push_front(value),
        End::Right => list.push_back(value),
    }
    list.len()
}

pub(super) fn pop(list: &mut List, end: End) -> Option<Vec<u8>> {
    match end {
        End::Left => list.pop_front(),
        End::Right => list.pop_back(),
    }
}

/// The items from `start` to `stop`, both included; see [`crate::store::command::Command::LRange`].
pub(super) fn range(list: &List, start: i64, stop: i64) -> Reply {
    let length = list.len() as i64;
    let from_left = |index: i64| if index < 0 { index + length } else { index };
    let (start, stop) = (from_left(start).max(0), from_left(stop).min(length - 1));
    if start > stop {
        return Reply::Array(Vec::new());
    }
    Reply::Array(list.range(start as usize..=stop as usize).cloned().map(Reply::Bytes).collect())
}
