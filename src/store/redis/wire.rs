//! Commands as Redis reads them, and its answers as we do.

use fake_telegram::time::Duration;
use redis::{Cmd, Script, Value, cmd};
use rustc_hash::FxHashMap;

use crate::store::command::{Command, CommandError, End, Reply, SCORE_MAX};
use crate::store::script::{Eval, Name};

/// What a script is told first: what time it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    /// The instant, in microseconds.
    Virtual(u64),
    /// When the run began on the server's clock, in microseconds.
    Real(u64),
}

/// What scripts are called on a server: the SHA-1 of each, by the address of its source, since sources are constants.
#[derive(Debug, Default)]
pub(super) struct Scripts(FxHashMap<usize, String>);

impl Scripts {
    pub(super) fn sha(&mut self, source: &'static str) -> &str {
        let sha = || Script::new(source).get_hash().to_owned();
        self.0.entry(source.as_ptr() as usize).or_insert_with(sha)
    }
}

/// A key as the server knows it.
pub(super) fn key(prefix: &str, name: &Name) -> String {
    match name {
        Name::Ordinary(name) => ordinary(prefix, name),
        Name::Object(name) => format!("{prefix}object:{name}"),
    }
}

pub(super) fn ordinary(prefix: &str, name: &str) -> String {
    format!("{prefix}key:{name}")
}

/// `EVALSHA`.
pub(super) fn evalsha(prefix: &str, sha: &str, clock: Clock, eval: &Eval) -> Cmd {
    called(cmd("EVALSHA").arg(sha), prefix, clock, eval)
}

/// `EVAL`, for a server that does not know the script: it loads it and runs it at once, so that nobody can make it forget
/// in between.
pub(super) fn eval(prefix: &str, clock: Clock, eval: &Eval) -> Cmd {
    called(cmd("EVAL").arg(eval.source), prefix, clock, eval)
}

/// Whether an error is that of a server that does not know a script.
pub(super) fn is_unknown_script(error: &str) -> bool {
    error.starts_with("NOSCRIPT")
}

/// Errors of a server that will not execute a call for now, and has executed nothing of it: a script hears of them before its
/// first write, and none of ours goes on then.
const PASSING: [&str; 9] =
    ["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN"];

/// Whether an error is that of a server that may execute the same call another time.
pub(super) fn is_passing(error: &str) -> bool {
    error.split_whitespace().next().is_some_and(|code| PASSING.contains(&code))
}

/// Deletes all keys below `prefix` at once: no call of the run comes in between.
pub(super) fn flush(prefix: &str) -> Cmd {
    cmd("EVAL").arg(FLUSH).arg(0).arg(format!("{prefix}*")).clone()
}

const FLUSH: &str = "
local cursor = '0'
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
  cursor = page[1]
  if #page[2] > 0 then redis.call('UNLINK', unpack(page[2])) end
until cursor == '0'
return 1
";

fn called(command: &mut Cmd, prefix: &str, clock: Clock, eval: &Eval) -> Cmd {
    command.arg(eval.keys.len());
    for name in &eval.keys {
        command.arg(key(prefix, name));
    }
    match clock {
        Clock::Virtual(at) => command.arg("virtual").arg(at),
        Clock::Real(begin) => command.arg("real").arg(begin),
    };
    command.arg(eval.args.as_slice()).clone()
}

/// Why a command is not even sent: Redis would round a score.
pub(super) fn refused(command: &Command) -> Option<CommandError> {
    match command {
        Command::Set { ttl: Some(Duration::ZERO), .. } => Some(CommandError::InvalidExpireTime),
        Command::ZAdd { score, .. } if score.unsigned_abs() > SCORE_MAX.unsigned_abs() => {
            Some(CommandError::ScoreOutOfRange)
        }
        _ => None,
    }
}

/// A command; with `has_ttl` the server keeps times to live, in whole milliseconds, rounded up.
pub(super) fn encode(prefix: &str, command: &Command, has_ttl: bool) -> Cmd {
    let key = |name: &str| ordinary(prefix, name);
    let mut out = cmd(&command.name().to_uppercase());
    let (first, second) = command.keys();
    if let Command::Expire { .. } = command {
        out = cmd("PEXPIRE");
    }
    out.arg(key(first));
    match command {
        Command::Get { .. }
        | Command::Incr { .. }
        | Command::Persist { .. }
        | Command::Ttl { .. }
        | Command::Exists { .. }
        | Command::Del { .. }
        | Command::HGetAll { .. }
        | Command::HLen { .. }
        | Command::LPop { .. }
        | Command::RPop { .. }
        | Command::LLen { .. }
        | Command::ZCard { .. } => {}
        Command::Set { value, only_if_absent, ttl, .. } => {
            out.arg(value);
            if *only_if_absent {
                out.arg("NX");
            }
            if let Some(ttl) = ttl.filter(|_| has_ttl) {
                out.arg("PX").arg(milliseconds(ttl));
            }
        }
        Command::IncrBy { by, .. } => {
            out.arg(by);
        }
        Command::Expire { ttl, .. } => {
            out.arg(milliseconds(*ttl));
        }
        Command::HSet { field, value, .. } => {
            out.arg(field).arg(value);
        }
        Command::HGet { field, .. } | Command::HDel { field, .. } => {
            out.arg(field);
        }
        Command::HIncrBy { field, by, .. } => {
            out.arg(field).arg(by);
        }
        Command::RPush { value, .. } | Command::LPush { value, .. } => {
            out.arg(value);
        }
        Command::LRange { start, stop, .. } => {
            out.arg(start).arg(stop);
        }
        Command::LMove { from, to, .. } => {
            out.arg(key(second.unwrap_or_default())).arg(side(*from)).arg(side(*to));
        }
        Command::ZAdd { only_if_absent, score, member, .. } => {
            if *only_if_absent {
                out.arg("NX");
            }
            out.arg(score).arg(member);
        }
        Command::ZPopMin { count, .. } => {
            out.arg(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        Command::ZRangeByScore { min, max, limit, .. } => {
            out.arg(bound(*min)).arg(bound(*max));
            if let Some(limit) = limit {
                out.arg("LIMIT").arg(0).arg(i64::try_from(*limit).unwrap_or(i64::MAX));
            }
        }
        Command::ZRem { member, .. } | Command::ZScore { member, .. } => {
            out.arg(member);
        }
    }
    out
}

/// What a command answered; `Err` with what is not understood.
pub(super) fn decode(command: &Command, value: Value) -> Result<Result<Reply, CommandError>, String> {
    let reply = match read(value) {
        Ok(reply) => reply,
        Err(error) => return command_error(&error).map(Err).ok_or(error),
    };
    Ok(Ok(match (command, reply) {
        // Redis promises no order; the simulated store has that of the fields.
        (Command::HGetAll { .. }, Reply::Array(items)) => Reply::Array(sorted(items)),
        (Command::ZScore { .. }, Reply::Bytes(score)) => Reply::Integer(number(&score)?),
        (Command::ZPopMin { .. }, Reply::Array(mut items)) => {
            for score in items.iter_mut().skip(1).step_by(2) {
                if let Reply::Bytes(text) = score {
                    *score = Reply::Integer(number(text)?);
                }
            }
            Reply::Array(items)
        }
        (_, reply) => reply,
    }))
}

/// An answer as it is; `Err` with an error's text.
pub(super) fn read(value: Value) -> Result<Reply, String> {
    Ok(match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Integer(number),
        Value::BulkString(bytes) => Reply::Bytes(bytes),
        Value::Array(items) => Reply::Array(items.into_iter().map(read).collect::<Result<_, _>>()?),
        Value::SimpleString(text) => Reply::Bytes(text.into_bytes()),
        Value::Okay => Reply::Ok,
        Value::ServerError(error) => {
            return Err(format!("{} {}", error.code(), error.details().unwrap_or_default()));
        }
        other => return Err(format!("an answer of a kind that is not known: {other:?}")),
    })
}

/// The error of a command that is known.
pub(super) fn command_error(text: &str) -> Option<CommandError> {
    let known = [
        CommandError::WrongType,
        CommandError::NotAnInteger,
        CommandError::HashValueNotAnInteger,
        CommandError::Overflow,
    ];
    let known = known.into_iter().find(|error| text.starts_with(&error.to_string()));
    known.or_else(|| text.contains("invalid expire time").then_some(CommandError::InvalidExpireTime))
}

fn sorted(items: Vec<Reply>) -> Vec<Reply> {
    let mut pairs: Vec<[Reply; 2]> = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(field), Some(value)) = (items.next(), items.next()) {
        pairs.push([field, value]);
    }
    let bytes = |reply: &Reply| if let Reply::Bytes(bytes) = reply { bytes.clone() } else { Vec::new() };
    pairs.sort_by_cached_key(|[field, _]| bytes(field));
    pairs.into_iter().flatten().collect()
}

fn number(text: &[u8]) -> Result<i64, String> {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("a score that is no whole number: {}", String::from_utf8_lossy(text)))
}

const fn side(end: End) -> &'static str {
    match end {
        End::Left => "LEFT",
        End::Right => "RIGHT",
    }
}

fn bound(score: i64) -> String {
    match score {
        i64::MIN => "-inf".to_owned(),
        i64::MAX => "+inf".to_owned(),
        score => score.to_string(),
    }
}

/// Longer ones would overflow the server's clock: for ever, for us.
const TTL_MAX_MS: u64 = 1 << 52;

fn milliseconds(ttl: Duration) -> u64 {
    ttl.as_micros().div_ceil(1_000).min(TTL_MAX_MS)
}
