//! The data of a simulated Redis, and what commands do to it: one at a time, each as a whole.
//!
//! The semantics are those of Redis 7 (<https://redis.io/docs/latest/commands/>). Two things differ:
//!
//! - Time has steps of a microsecond, not of a millisecond, and a key is gone *at* the instant `now + ttl`. In Redis it
//!   lives to the end of that millisecond (`keyIsExpired` in its `db.c`).
//! - Where Redis promises no order, there is one here.

mod value;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use std::cell::RefMut;
use std::collections::BTreeMap;

use fake_telegram::time::{Duration, Time};

use self::value::{Collection, Hash, List, SortedSet, Value};
use super::command::{Command, CommandError, End, Reply, SCORE_MAX};
use super::object::{Holds, Key, Objects};

/// All that is in a store: ordinary keys, which commands work on, and [objects](Keyspace::object).
///
/// The two do not see each other: an object has no TTL, no command reaches it, and it may have an ordinary key's name.
#[derive(Debug, Default)]
pub struct Keyspace {
    entries: BTreeMap<String, Entry>,
    objects: Objects,
}

/// An ordinary key's value, and when it is gone. It stays until somebody asks for it.
#[derive(Debug)]
struct Entry {
    value: Value,
    expires_at: Option<Time>,
}

type Result<T, E = CommandError> = std::result::Result<T, E>;

impl Keyspace {
    /// Executes a command at `now`, which never runs backward.
    ///
    /// # Errors
    /// As Redis answers; then nothing has changed.
    pub fn execute(&mut self, now: Time, command: &Command) -> Result<Reply> {
        self.forget_expired(now, command);
        Ok(match command {
            Command::Get { key } => self.text(key)?.cloned().into(),
            Command::Set { key, value, only_if_absent, ttl } => {
                self.set(now, key, value, *only_if_absent, *ttl)?
            }
            Command::Incr { key } => self.increase(key, 1)?,
            Command::IncrBy { key, by } => self.increase(key, *by)?,
            Command::Expire { key, ttl } => self.expire(now, key, *ttl).into(),
            Command::Persist { key } => {
                self.entries.get_mut(key).is_some_and(|entry| entry.expires_at.take().is_some()).into()
            }
            Command::Ttl { key } => Reply::Integer(self.ttl_ms(now, key)),
            Command::Exists { key } => self.entries.contains_key(key).into(),
            Command::Del { key } => self.entries.remove(key).is_some().into(),

            Command::HSet { key, field, value } => self
                .change(key, |hash: &mut Hash| hash.insert(field.clone(), value.clone()).is_none())?
                .into(),
            Command::HGet { key, field } => {
                self.look(key, |hash: &Hash| hash.get(field).cloned())?.flatten().into()
            }
            Command::HDel { key, field } => {
                self.change(key, |hash: &mut Hash| hash.remove(field).is_some())?.into()
            }
            Command::HIncrBy { key, field, by } => {
                self.change(key, |hash: &mut Hash| increase_field(hash, field, *by))??
            }
            Command::HGetAll { key } => Reply::Array(self.look(key, pairs)?.unwrap_or_default()),
            Command::HLen { key } => self.length::<Hash>(key)?,

            Command::RPush { key, value } => self.push(key, End::Right, value.clone())?,
            Command::LPush { key, value } => self.push(key, End::Left, value.clone())?,
            Command::LPop { key } => self.pop(key, End::Left)?.into(),
            Command::RPop { key } => self.pop(key, End::Right)?.into(),
            Command::LLen { key } => self.length::<List>(key)?,
            Command::LRange { key, start, stop } => {
                let range = self.look(key, |list| value::range(list, *start, *stop))?;
                range.unwrap_or(Reply::Array(Vec::new()))
            }
            Command::LMove { source, destination, from, to } => {
                self.move_item(source, destination, *from, *to)?.into()
            }

            Command::ZAdd { score, .. } if score.unsigned_abs() > SCORE_MAX.unsigned_abs() => {
                return Err(CommandError::ScoreOutOfRange);
            }
            Command::ZAdd { key, only_if_absent, score, member } => {
                self.change(key, |set: &mut SortedSet| set.add(member, *score, *only_if_absent))?.into()
            }
            Command::ZPopMin { key, count } => Reply::Array(self.change(key, |set| pop_min(set, *count))?),
            Command::ZRangeByScore { key, min, max, limit } => {
                let limit = limit.map_or(usize::MAX, count);
                let members = self.look(key, |set: &SortedSet| {
                    let members = set.between(*min, *max).take(limit);
                    members.map(|member| Reply::Bytes(member.to_vec())).collect()
                })?;
                Reply::Array(members.unwrap_or_default())
            }
            Command::ZRem { key, member } => {
                self.change(key, |set: &mut SortedSet| set.remove(member))?.into()
            }
            Command::ZCard { key } => self.length::<SortedSet>(key)?,
            Command::ZScore { key, member } => {
                let score = self.look(key, |set: &SortedSet| set.score(member))?.flatten();
                score.map_or(Reply::Nil, Reply::Integer)
            }
        })
    }

    /// The object called `name`; it begins as `initial()`, now and after each [flush](Keyspace::flush). Whoever asks for
    /// a name first says as what.
    ///
    /// # Panics
    /// If the object of that name is of another type.
    pub fn key<V: 'static>(&mut self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        self.objects.key(name, initial)
    }

    /// The same for a value that holds messages.
    ///
    /// # Panics
    /// As [`key`](Keyspace::key).
    pub fn holder<V: Holds + 'static>(&mut self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        self.objects.holder(name, initial)
    }

    /// An object. It costs an index and a downcast: no hashing, no allocation.
    ///
    /// # Panics
    /// If the key is another store's, or the object is in use already.
    #[inline]
    pub fn object<V: 'static>(&self, key: Key<V>) -> RefMut<'_, V> {
        self.objects.get(key)
    }

    /// What an object is called.
    pub fn name<V>(&self, key: Key<V>) -> &str {
        self.objects.name(key)
    }

    /// The names of the objects that hold messages.
    pub fn holders(&self) -> impl Iterator<Item = &str> {
        self.objects.holders()
    }

    /// The numbers of all messages in objects that hold some.
    pub fn held(&self) -> Vec<u32> {
        self.objects.held()
    }

    /// Deletes all keys, and lets all objects begin again.
    pub fn flush(&mut self) {
        self.entries.clear();
        self.objects.reset();
    }

    /// How many ordinary keys there are at `now`; it looks at each.
    pub fn live_keys(&self, now: Time) -> usize {
        self.entries.values().filter(|entry| entry.is_live(now)).count()
    }

    /// How many of them nobody has given a TTL: what stays for ever if its owner dies. It looks at each.
    pub fn keys_without_ttl(&self, now: Time) -> usize {
        self.entries.values().filter(|entry| entry.is_live(now) && entry.expires_at.is_none()).count()
    }

    /// Drops what the command would find and must not.
    fn forget_expired(&mut self, now: Time, command: &Command) {
        let (key, other) = command.keys();
        for key in [Some(key), other].into_iter().flatten() {
            if self.entries.get(key).is_some_and(|entry| !entry.is_live(now)) {
                self.entries.remove(key);
            }
        }
    }

    fn text(&mut self, key: &str) -> Result<Option<&mut Vec<u8>>> {
        match self.entries.get_mut(key).map(|entry| &mut entry.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    fn set(
        &mut self,
        now: Time,
        key: &str,
        value: &[u8],
        only_if_absent: bool,
        ttl: Option<Duration>,
    ) -> Result<Reply> {
        if ttl.is_some_and(Duration::is_zero) {
            return Err(CommandError::InvalidExpireTime);
        }
        if only_if_absent && self.entries.contains_key(key) {
            return Ok(Reply::Nil);
        }
        let expires_at = ttl.map(|ttl| now.saturating_add(ttl));
        self.entries.insert(key.to_owned(), Entry { value: Value::Text(value.to_vec()), expires_at });
        Ok(Reply::Ok)
    }

    fn increase(&mut self, key: &str, by: i64) -> Result<Reply> {
        let Some(text) = self.text(key)? else {
            let value = Value::Text(by.to_string().into_bytes());
            self.entries.insert(key.to_owned(), Entry { value, expires_at: None });
            return Ok(Reply::Integer(by));
        };
        let known = integer(text).ok_or(CommandError::NotAnInteger)?;
        let sum = known.checked_add(by).ok_or(CommandError::Overflow)?;
        *text = sum.to_string().into_bytes();
        Ok(Reply::Integer(sum))
    }

    /// Whether there was such a key.
    fn expire(&mut self, now: Time, key: &str, ttl: Duration) -> bool {
        if ttl.is_zero() {
            return self.entries.remove(key).is_some();
        }
        let entry = self.entries.get_mut(key);
        entry.map(|entry| entry.expires_at = Some(now.saturating_add(ttl))).is_some()
    }

    fn ttl_ms(&self, now: Time, key: &str) -> i64 {
        match self.entries.get(key).map(|entry| entry.expires_at) {
            None => -2,
            Some(None) => -1,
            // Rounded up: what is still there has not 0 to live.
            Some(Some(at)) => (at - now).as_micros().div_ceil(1_000) as i64,
        }
    }

    fn push(&mut self, key: &str, end: End, value: Vec<u8>) -> Result<Reply> {
        let length = self.change(key, |list| value::push(list, end, value))?;
        Ok(Reply::Integer(length as i64))
    }

    fn pop(&mut self, key: &str, end: End) -> Result<Option<Vec<u8>>> {
        self.change(key, |list| value::pop(list, end))
    }

    fn move_item(&mut self, source: &str, destination: &str, from: End, to: End) -> Result<Option<Vec<u8>>> {
        let step = |list: &mut List| {
            let item = value::pop(list, from)?;
            value::push(list, to, item.clone());
            Some(item)
        };
        // Between its two ends a list of one item is empty, but does not vanish: its TTL stays.
        if source == destination {
            return self.change(source, step);
        }
        // Redis looks at the destination's type only if there is something to move.
        if self.collection::<List>(source)?.is_none() {
            return Ok(None);
        }
        self.collection::<List>(destination)?;
        let item = self.pop(source, from)?.expect("a list that is there has items");
        self.push(destination, to, item.clone())?;
        Ok(Some(item))
    }

    fn collection<C: Collection>(&mut self, key: &str) -> Result<Option<&mut C>> {
        let Some(entry) = self.entries.get_mut(key) else { return Ok(None) };
        C::of(&mut entry.value).map(Some).ok_or(CommandError::WrongType)
    }

    /// `None` if there is no such key.
    fn look<C: Collection, R>(&mut self, key: &str, look: impl FnOnce(&C) -> R) -> Result<Option<R>> {
        Ok(self.collection(key)?.map(|collection| look(collection)))
    }

    fn length<C: Collection>(&mut self, key: &str) -> Result<Reply> {
        let length = self.look(key, C::len)?.unwrap_or(0);
        Ok(Reply::Integer(length as i64))
    }

    /// Changes a collection, which begins empty and vanishes with its last item. Its TTL stays as it was.
    fn change<C: Collection, R>(&mut self, key: &str, change: impl FnOnce(&mut C) -> R) -> Result<R> {
        let Some(collection) = self.collection::<C>(key)? else {
            let mut collection = C::default();
            let result = change(&mut collection);
            if collection.len() > 0 {
                let entry = Entry { value: collection.into_value(), expires_at: None };
                self.entries.insert(key.to_owned(), entry);
            }
            return Ok(result);
        };
        let result = change(collection);
        if collection.len() == 0 {
            self.entries.remove(key);
        }
        Ok(result)
    }
}

impl Entry {
    fn is_live(&self, now: Time) -> bool {
        self.expires_at.is_none_or(|at| now < at)
    }
}

/// The number that a text is. As in Redis only its shortest form counts: no `+5`, no `007`, no blanks.
fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn increase_field(hash: &mut Hash, field: &[u8], by: i64) -> Result<Reply> {
    let known = match hash.get(field) {
        Some(value) => integer(value).ok_or(CommandError::HashValueNotAnInteger)?,
        None => 0,
    };
    let sum = known.checked_add(by).ok_or(CommandError::Overflow)?;
    hash.insert(field.to_vec(), sum.to_string().into_bytes());
    Ok(Reply::Integer(sum))
}

fn pairs(hash: &Hash) -> Vec<Reply> {
    hash.iter().flat_map(|(field, value)| [field, value]).cloned().map(Reply::Bytes).collect()
}

fn pop_min(set: &mut SortedSet, limit: u64) -> Vec<Reply> {
    let popped = std::iter::from_fn(|| set.pop_min()).take(count(limit));
    popped.flat_map(|(member, score)| [Reply::Bytes(member), Reply::Integer(score)]).collect()
}

fn count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
