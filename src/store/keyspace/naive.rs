//! Redis once more, in the dumbest way: what the real keyspace is held against.
//!
//! It shares no code with it. Whatever is late leaves at once, all is looked for from the front, all is sorted when
//! somebody looks.

mod tests;

use fake_telegram::time::Time;

use crate::store::command::{Command, CommandError, End, Reply};

/// Keys, values, deadlines.
#[derive(Debug, Default)]
pub(super) struct Naive {
    rows: Vec<(String, Value, Option<Time>)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(Vec<u8>),
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    List(Vec<Vec<u8>>),
    Sorted(Vec<(i64, Vec<u8>)>),
}

/// The row's part that is of the wanted type, or the answer if there is none.
macro_rules! part {
    ($self:ident, $key:ident, $kind:ident, $absent:expr) => {
        match $self.value($key) {
            None => return Ok($absent),
            Some(Value::$kind(part)) => part,
            Some(_) => return Err(CommandError::WrongType),
        }
    };
}

impl Naive {
    pub(super) fn live_keys(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn keys_without_ttl(&self) -> usize {
        self.rows.iter().filter(|(.., deadline)| deadline.is_none()).count()
    }

    /// Time passes.
    pub(super) fn pass(&mut self, now: Time) {
        self.rows.retain(|(.., deadline)| match deadline {
            Some(deadline) => *deadline > now,
            None => true,
        });
    }

    pub(super) fn execute(&mut self, now: Time, command: &Command) -> Result<Reply, CommandError> {
        let result = self.attempt(now, command);
        self.rows.retain(|(_, value, _)| match value {
            Value::Text(_) => true,
            Value::Hash(items) => !items.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Sorted(items) => !items.is_empty(),
        });
        result
    }

    fn value(&mut self, wanted: &str) -> Option<&mut Value> {
        self.rows.iter_mut().find(|(key, ..)| key == wanted).map(|(_, value, _)| value)
    }

    fn deadline(&mut self, wanted: &str) -> Option<&mut Option<Time>> {
        self.rows.iter_mut().find(|(key, ..)| key == wanted).map(|(.., deadline)| deadline)
    }

    fn create(&mut self, key: &str, value: Value) {
        if self.value(key).is_none() {
            self.rows.push((key.to_owned(), value, None));
        }
    }

    fn delete(&mut self, wanted: &str) -> i64 {
        let before = self.rows.len();
        self.rows.retain(|(key, ..)| key != wanted);
        (before - self.rows.len()) as i64
    }

    fn attempt(&mut self, now: Time, command: &Command) -> Result<Reply, CommandError> {
        Ok(match command {
            Command::Get { key } => Reply::Bytes(part!(self, key, Text, Reply::Nil).clone()),
            Command::Set { key, value, only_if_absent, ttl } => {
                if matches!(ttl, Some(ttl) if ttl.as_micros() == 0) {
                    return Err(CommandError::InvalidExpireTime);
                }
                if *only_if_absent && self.value(key).is_some() {
                    return Ok(Reply::Nil);
                }
                self.delete(key);
                self.rows.push((key.clone(), Value::Text(value.clone()), ttl.map(|ttl| now + ttl)));
                Reply::Ok
            }
            Command::Incr { key } => {
                return self.attempt(now, &Command::IncrBy { key: key.clone(), by: 1 });
            }
            Command::IncrBy { key, by } => {
                self.create(key, Value::Text(b"0".to_vec()));
                let text = part!(self, key, Text, Reply::Nil);
                let sum = wide(text).ok_or(CommandError::NotAnInteger)? + i128::from(*by);
                Reply::Integer(put(text, sum)?)
            }
            Command::Expire { key, ttl } => match self.deadline(key) {
                None => Reply::Integer(0),
                Some(_) if ttl.as_micros() == 0 => Reply::Integer(self.delete(key)),
                Some(deadline) => {
                    *deadline = Some(now + *ttl);
                    Reply::Integer(1)
                }
            },
            Command::Persist { key } => {
                let deadline = self.deadline(key);
                Reply::Integer(if deadline.is_some_and(|deadline| deadline.take().is_some()) { 1 } else { 0 })
            }
            Command::Ttl { key } => Reply::Integer(match self.deadline(key) {
                None => -2,
                Some(None) => -1,
                Some(Some(deadline)) => ((*deadline - now).as_micros() as i64 + 999) / 1_000,
            }),
            Command::Exists { key } => Reply::Integer(i64::from(self.value(key).is_some())),
            Command::Del { key } => Reply::Integer(self.delete(key)),

            Command::HSet { key, field, value } => {
                self.create(key, Value::Hash(Vec::new()));
                let hash = part!(self, key, Hash, Reply::Nil);
                let before = hash.len();
                hash.retain(|(known, _)| known != field);
                let new = before == hash.len();
                hash.push((field.clone(), value.clone()));
                Reply::Integer(i64::from(new))
            }
            Command::HGet { key, field } => {
                let hash = part!(self, key, Hash, Reply::Nil);
                let found = hash.iter().find(|(known, _)| known == field);
                found.map_or(Reply::Nil, |(_, value)| Reply::Bytes(value.clone()))
            }
            Command::HDel { key, field } => {
                let hash = part!(self, key, Hash, Reply::Integer(0));
                let before = hash.len();
                hash.retain(|(known, _)| known != field);
                Reply::Integer((before - hash.len()) as i64)
            }
            Command::HIncrBy { key, field, by } => {
                self.create(key, Value::Hash(Vec::new()));
                let hash = part!(self, key, Hash, Reply::Nil);
                let place = hash.iter().position(|(known, _)| known == field);
                let mut text = place.map_or_else(|| b"0".to_vec(), |place| hash[place].1.clone());
                let sum = wide(&text).ok_or(CommandError::HashValueNotAnInteger)? + i128::from(*by);
                let sum = put(&mut text, sum)?;
                hash.retain(|(known, _)| known != field);
                hash.push((field.clone(), text));
                Reply::Integer(sum)
            }
            Command::HGetAll { key } => {
                let mut hash = part!(self, key, Hash, Reply::Array(Vec::new())).clone();
                hash.sort();
                let mut all = Vec::new();
                for (field, value) in hash {
                    all.push(Reply::Bytes(field));
                    all.push(Reply::Bytes(value));
                }
                Reply::Array(all)
            }
            Command::HLen { key } => Reply::Integer(part!(self, key, Hash, Reply::Integer(0)).len() as i64),

            Command::RPush { key, value } => {
                self.create(key, Value::List(Vec::new()));
                let list = part!(self, key, List, Reply::Nil);
                list.push(value.clone());
                Reply::Integer(list.len() as i64)
            }
            Command::LPush { key, value } => {
                self.create(key, Value::List(Vec::new()));
                let list = part!(self, key, List, Reply::Nil);
                list.insert(0, value.clone());
                Reply::Integer(list.len() as i64)
            }
            Command::LPop { key } => Reply::Bytes(part!(self, key, List, Reply::Nil).remove(0)),
            Command::RPop { key } => {
                Reply::Bytes(part!(self, key, List, Reply::Nil).pop().expect("it has not vanished"))
            }
            Command::LLen { key } => Reply::Integer(part!(self, key, List, Reply::Integer(0)).len() as i64),
            Command::LRange { key, start, stop } => {
                let list = part!(self, key, List, Reply::Array(Vec::new()));
                let length = list.len() as i128;
                let (mut start, mut stop) = (i128::from(*start), i128::from(*stop));
                if start < 0 {
                    start += length;
                }
                if stop < 0 {
                    stop += length;
                }
                let inside = |index: i128| start <= index && index <= stop;
                let items = list.iter().zip(0..).filter(|(_, index)| inside(*index));
                Reply::Array(items.map(|(item, _)| Reply::Bytes(item.clone())).collect())
            }
            Command::LMove { source, destination, from, to } => {
                let items = part!(self, source, List, Reply::Nil).len();
                self.create(destination, Value::List(Vec::new()));
                part!(self, destination, List, Reply::Nil);
                let list = part!(self, source, List, Reply::Nil);
                let item = list.remove(if *from == End::Left { 0 } else { items - 1 });
                let list = part!(self, destination, List, Reply::Nil);
                list.insert(if *to == End::Left { 0 } else { list.len() }, item.clone());
                Reply::Bytes(item)
            }

            Command::ZAdd { key, only_if_absent, score, member } => {
                if *score > 9_007_199_254_740_992 || *score < -9_007_199_254_740_992 {
                    return Err(CommandError::ScoreOutOfRange);
                }
                self.create(key, Value::Sorted(Vec::new()));
                let set = part!(self, key, Sorted, Reply::Nil);
                let known = set.iter().any(|(_, known)| known == member);
                if !(known && *only_if_absent) {
                    set.retain(|(_, known)| known != member);
                    set.push((*score, member.clone()));
                    set.sort();
                }
                Reply::Integer(i64::from(!known))
            }
            Command::ZPopMin { key, count } => {
                let set = part!(self, key, Sorted, Reply::Array(Vec::new()));
                let mut popped = Vec::new();
                for _ in 0..*count {
                    if !set.is_empty() {
                        let (score, member) = set.remove(0);
                        popped.push(Reply::Bytes(member));
                        popped.push(Reply::Integer(score));
                    }
                }
                Reply::Array(popped)
            }
            Command::ZRangeByScore { key, min, max, limit } => {
                let mut set = part!(self, key, Sorted, Reply::Array(Vec::new())).clone();
                set.retain(|(score, _)| min <= score && score <= max);
                if let Some(limit) = limit {
                    set.truncate(*limit as usize);
                }
                Reply::Array(set.into_iter().map(|(_, member)| Reply::Bytes(member)).collect())
            }
            Command::ZRem { key, member } => {
                let set = part!(self, key, Sorted, Reply::Integer(0));
                let before = set.len();
                set.retain(|(_, known)| known != member);
                Reply::Integer((before - set.len()) as i64)
            }
            Command::ZCard { key } => {
                Reply::Integer(part!(self, key, Sorted, Reply::Integer(0)).len() as i64)
            }
            Command::ZScore { key, member } => {
                let set = part!(self, key, Sorted, Reply::Nil);
                let found = set.iter().find(|(_, known)| known == member);
                found.map_or(Reply::Nil, |(score, _)| Reply::Integer(*score))
            }
        })
    }
}

/// A whole number of 64 bits, digit by digit.
fn wide(text: &[u8]) -> Option<i128> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && text.len() > 1) {
        return None;
    }
    let mut number = 0_i128;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i128::from(digit - b'0');
    }
    i64::try_from(sign * number).ok().map(i128::from)
}

fn put(text: &mut Vec<u8>, sum: i128) -> Result<i64, CommandError> {
    let sum = i64::try_from(sum).map_err(|_| CommandError::Overflow)?;
    *text = format!("{sum}").into_bytes();
    Ok(sum)
}
