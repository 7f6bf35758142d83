//! What Redis can be asked, and what it answers: commands as values.
//!
//! A command takes one key and one item, also where Redis takes several; a script that needs more executes more, and
//! nothing comes between. Keys are text; fields, values and members are bytes.

use fake_telegram::time::Duration;

/// A command. What it answers is a [`Reply`]; a command that fails changes nothing.
///
/// Every command on a value of another type fails with [`CommandError::WrongType`], except for `Set`, which overwrites,
/// and those that look at no value: `Expire`, `Persist`, `Ttl`, `Exists`, `Del`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The text under a key, or `Nil`.
    Get {
        /// Where it is.
        key: String,
    },
    /// Puts a text under a key, whatever was there, and answers `Ok`. What TTL the key had is gone.
    Set {
        /// Where to.
        key: String,
        /// The text.
        value: Vec<u8>,
        /// `NX`: only if there is no such key, of any type; if there is one, the answer is `Nil` and nothing changes.
        only_if_absent: bool,
        /// `PX`: how long the key lives; for ever without it. Zero is an error.
        ttl: Option<Duration>,
    },
    /// Adds 1 to the whole number under a key and answers the sum. No key is 0; the TTL stays as it was.
    Incr {
        /// Where it is.
        key: String,
    },
    /// As `Incr`, by any number.
    IncrBy {
        /// Where it is.
        key: String,
        /// What to add; may be negative.
        by: i64,
    },
    /// Lets a key live so long from now on, and answers 1; 0 if there is no such key.
    Expire {
        /// Which.
        key: String,
        /// How long; zero stands for all that Redis takes as past, and deletes the key.
        ttl: Duration,
    },
    /// Takes a key's TTL away and answers 1; 0 if there is no such key or it has none.
    Persist {
        /// Which.
        key: String,
    },
    /// `PTTL`: how long a key has to live, in milliseconds, rounded up; -1 if it has no TTL, -2 if there is no such key.
    Ttl {
        /// Which.
        key: String,
    },
    /// 1 if there is such a key, else 0.
    Exists {
        /// Which.
        key: String,
    },
    /// Deletes a key and answers 1; 0 if there is no such key.
    Del {
        /// Which.
        key: String,
    },
    /// Sets a field of a hash and answers 1 if it is new, else 0.
    HSet {
        /// The hash.
        key: String,
        /// Which field.
        field: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// The value of a field of a hash, or `Nil`.
    HGet {
        /// The hash.
        key: String,
        /// Which field.
        field: Vec<u8>,
    },
    /// Deletes a field of a hash and answers 1; 0 if there is none. A hash without fields vanishes.
    HDel {
        /// The hash.
        key: String,
        /// Which field.
        field: Vec<u8>,
    },
    /// Adds to the whole number in a field of a hash and answers the sum. No field is 0.
    HIncrBy {
        /// The hash.
        key: String,
        /// Which field.
        field: Vec<u8>,
        /// What to add; may be negative.
        by: i64,
    },
    /// All fields of a hash, each followed by its value. In order of the fields' bytes; Redis promises no order.
    HGetAll {
        /// The hash.
        key: String,
    },
    /// How many fields a hash has.
    HLen {
        /// The hash.
        key: String,
    },
    /// Appends to the right end of a list and answers its length.
    RPush {
        /// The list.
        key: String,
        /// What to append.
        value: Vec<u8>,
    },
    /// Puts before the left end of a list and answers its length.
    LPush {
        /// The list.
        key: String,
        /// What to put there.
        value: Vec<u8>,
    },
    /// Takes from the left end of a list, or `Nil`. An empty list vanishes.
    LPop {
        /// The list.
        key: String,
    },
    /// Takes from the right end of a list, or `Nil`. An empty list vanishes.
    RPop {
        /// The list.
        key: String,
    },
    /// How long a list is.
    LLen {
        /// The list.
        key: String,
    },
    /// The part of a list from `start` to `stop`, both included. Negative indices count from the right, -1 is the last
    /// item; what lies outside is left out.
    LRange {
        /// The list.
        key: String,
        /// The first index.
        start: i64,
        /// The last index.
        stop: i64,
    },
    /// Moves an item from one list to another, or round in one, and answers it; `Nil` if the source is empty.
    /// `RPOPLPUSH` is from the right to the left.
    LMove {
        /// The list that loses it.
        source: String,
        /// The list that gets it.
        destination: String,
        /// Which end of the source.
        from: End,
        /// Which end of the destination.
        to: End,
    },
    /// Sets a member's score and answers 1 if the member is new, else 0.
    ZAdd {
        /// The sorted set.
        key: String,
        /// `NX`: a member that is there keeps its score.
        only_if_absent: bool,
        /// Its score, within +-[`SCORE_MAX`].
        score: i64,
        /// Who.
        member: Vec<u8>,
    },
    /// Takes the members with the lowest scores, each followed by its score; of equal scores by their bytes.
    ZPopMin {
        /// The sorted set.
        key: String,
        /// How many at most.
        count: u64,
    },
    /// The members with a score from `min` to `max`, both included, lowest first; of equal scores by their bytes.
    ZRangeByScore {
        /// The sorted set.
        key: String,
        /// The lowest score; `i64::MIN` is Redis' `-inf`.
        min: i64,
        /// The highest score; `i64::MAX` is Redis' `+inf`.
        max: i64,
        /// `LIMIT 0 n`: how many at most; all without it.
        limit: Option<u64>,
    },
    /// Removes a member and answers 1; 0 if it is not there. A sorted set without members vanishes.
    ZRem {
        /// The sorted set.
        key: String,
        /// Who.
        member: Vec<u8>,
    },
    /// How many members a sorted set has.
    ZCard {
        /// The sorted set.
        key: String,
    },
    /// A member's score, or `Nil`.
    ZScore {
        /// The sorted set.
        key: String,
        /// Who.
        member: Vec<u8>,
    },
}

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where index 0 is.
    Left,
    /// Where index -1 is.
    Right,
}

/// What a command answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing is there.
    Nil,
    /// It is done.
    Ok,
    /// A number. Scores too, which Redis sends as decimal text (RESP2) or as doubles (RESP3).
    Integer(i64),
    /// A text, a field, a member.
    Bytes(Vec<u8>),
    /// Several.
    Array(Vec<Self>),
}

/// Why a command failed, in Redis' own words; it has changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The key has a value of another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// What is under the key is no whole number of 64 bits in its shortest form.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// What is in the field is no whole number of 64 bits in its shortest form.
    #[error("ERR hash value is not an integer")]
    HashValueNotAnInteger,
    /// The sum does not fit into 64 bits.
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    /// A `Set` with a TTL of zero.
    #[error("ERR invalid expire time in 'set' command")]
    InvalidExpireTime,
    /// The score is none that a double holds exactly. Redis would round it without a word; so these words are ours.
    #[error("ERR score is not within +-9007199254740992; Redis would round it")]
    ScoreOutOfRange,
}

impl Command {
    /// The names of all commands, in the order of the variants.
    pub const NAMES: [&str; 28] = [
        "get",
        "set",
        "incr",
        "incrby",
        "expire",
        "persist",
        "pttl",
        "exists",
        "del",
        "hset",
        "hget",
        "hdel",
        "hincrby",
        "hgetall",
        "hlen",
        "rpush",
        "lpush",
        "lpop",
        "rpop",
        "llen",
        "lrange",
        "lmove",
        "zadd",
        "zpopmin",
        "zrangebyscore",
        "zrem",
        "zcard",
        "zscore",
    ];

    /// Its name in Redis, in lower case.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Get { .. } => "get",
            Self::Set { .. } => "set",
            Self::Incr { .. } => "incr",
            Self::IncrBy { .. } => "incrby",
            Self::Expire { .. } => "expire",
            Self::Persist { .. } => "persist",
            Self::Ttl { .. } => "pttl",
            Self::Exists { .. } => "exists",
            Self::Del { .. } => "del",
            Self::HSet { .. } => "hset",
            Self::HGet { .. } => "hget",
            Self::HDel { .. } => "hdel",
            Self::HIncrBy { .. } => "hincrby",
            Self::HGetAll { .. } => "hgetall",
            Self::HLen { .. } => "hlen",
            Self::RPush { .. } => "rpush",
            Self::LPush { .. } => "lpush",
            Self::LPop { .. } => "lpop",
            Self::RPop { .. } => "rpop",
            Self::LLen { .. } => "llen",
            Self::LRange { .. } => "lrange",
            Self::LMove { .. } => "lmove",
            Self::ZAdd { .. } => "zadd",
            Self::ZPopMin { .. } => "zpopmin",
            Self::ZRangeByScore { .. } => "zrangebyscore",
            Self::ZRem { .. } => "zrem",
            Self::ZCard { .. } => "zcard",
            Self::ZScore { .. } => "zscore",
        }
    }

    /// The key that a command works on, and the second if it has two.
    pub(super) fn keys(&self) -> (&str, Option<&str>) {
        match self {
            Self::LMove { source, destination, .. } => (source, Some(destination)),
            Self::Get { key }
            | Self::Set { key, .. }
            | Self::Incr { key }
            | Self::IncrBy { key, .. }
            | Self::Expire { key, .. }
            | Self::Persist { key }
            | Self::Ttl { key }
            | Self::Exists { key }
            | Self::Del { key }
            | Self::HSet { key, .. }
            | Self::HGet { key, .. }
            | Self::HDel { key, .. }
            | Self::HIncrBy { key, .. }
            | Self::HGetAll { key }
            | Self::HLen { key }
            | Self::RPush { key, .. }
            | Self::LPush { key, .. }
            | Self::LPop { key }
            | Self::RPop { key }
            | Self::LLen { key }
            | Self::LRange { key, .. }
            | Self::ZAdd { key, .. }
            | Self::ZPopMin { key, .. }
            | Self::ZRangeByScore { key, .. }
            | Self::ZRem { key, .. }
            | Self::ZCard { key }
            | Self::ZScore { key, .. } => (key, None),
        }
    }
}

impl From<Option<Vec<u8>>> for Reply {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        bytes.map_or(Self::Nil, Self::Bytes)
    }
}

impl From<bool> for Reply {
    /// As Redis has no truth values: 1 or 0.
    fn from(truth: bool) -> Self {
        Self::Integer(truth.into())
    }
}

/// The largest score: 2^53, up to which a double, as Redis and Lua have them, holds every whole number.
pub const SCORE_MAX: i64 = 1 << 53;
