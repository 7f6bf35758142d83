//! Virtual time: calls block, and the caller says what time it is.

use std::collections::BTreeMap;
use std::fmt;

use fake_telegram::time::{Duration, Time};
use redis::{Client, Cmd, Connection, ConnectionLike, RedisError, RedisResult, Value, cmd};

use super::live::RedisStore;
use super::wire::{self, Clock, Scripts};
use super::{Broken, check_version, prefix};
use crate::store::Operation;
use crate::store::command::{Command, CommandError, Reply};
use crate::store::script::{Eval, Name, Names, Request};
use crate::store::url::StoreUrl;

type Result<T, E = Broken> = std::result::Result<T, E>;

/// A real Redis in virtual time.
///
/// It knows nothing of the wall clock: what lives for a time is kept here, with its deadline in virtual time, and deleted
/// before the next command that would find it. So a run on it is the run on the simulated store.
pub struct Redis {
    url: StoreUrl,
    client: Client,
    /// How long connecting takes at most.
    timeout: Duration,
    connection: Connection,
    prefix: String,
    scripts: Scripts,
    /// When ordinary keys that have a TTL are gone.
    deadlines: BTreeMap<String, Time>,
    broken: Option<Broken>,
    /// Whether the run goes on in real time, by calls that are not made here.
    is_live: bool,
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis({}, {})", self.url, self.prefix)
    }
}

impl Redis {
    /// Connects within `timeout`. Answers are waited for that long and at least a minute: how long they take does not
    /// matter in virtual time.
    ///
    /// # Errors
    /// If nobody is there, or no Redis that is new enough.
    pub fn open(url: &StoreUrl, timeout: Duration) -> Result<Self> {
        let failed = |error: RedisError| Broken::of(url, &error);
        let client = Client::open(url.secret()).map_err(failed)?;
        let mut connection = connect(&client, timeout, PATIENCE).map_err(failed)?;
        let info: String = cmd("INFO").arg("server").query(&mut connection).map_err(failed)?;
        check_version(url, &info)?;
        // Unlike any other run's, without a clock or dice of our own.
        let id: u64 = cmd("CLIENT").arg("ID").query(&mut connection).map_err(failed)?;
        let mut redis = Self {
            url: url.clone(),
            client,
            timeout,
            connection,
            prefix: String::new(),
            scripts: Scripts::default(),
            deadlines: BTreeMap::new(),
            broken: None,
            is_live: false,
        };
        redis.prefix = prefix(&format!("{}-{id}", redis.clock()?));
        Ok(redis)
    }

    /// The same keys for a run in real time, which begins now by the server's clock; connecting and every answer take
    /// `timeout` at most. This one stays for what is no call, and deletes the keys at the end.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn in_real_time(&mut self, timeout: Duration) -> Result<RedisStore> {
        self.is_live = true;
        let begin = self.clock()?;
        let prefix = self.prefix.clone();
        RedisStore::new(&self.url, prefix, begin, timeout).map_err(|error| Broken::of(&self.url, &error))
    }

    /// Before all keys of this run.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Does something, unless something has failed before: after that nothing is as it should be.
    pub(in crate::store) fn attempt<R>(&mut self, run: impl FnOnce(&mut Self) -> Result<R>) -> Option<R> {
        if self.broken.is_some() {
            return None;
        }
        run(self).map_err(|error| self.broken = Some(error)).ok()
    }

    /// Whether the calls of the run are made elsewhere.
    pub(in crate::store) const fn is_live(&self) -> bool {
        self.is_live
    }

    /// What has failed.
    pub(in crate::store) fn failure(&self) -> Option<String> {
        self.broken.as_ref().map(ToString::to_string)
    }

    /// The error that it makes no sense what this server says or is asked.
    fn broken(&self, what: String) -> Broken {
        Broken::new(&self.url, what)
    }

    /// Does something at `now`.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and if it is not written for a real Redis.
    pub(in crate::store) fn perform<O: Operation>(
        &mut self,
        now: Time,
        operation: O,
        names: Names<'_>,
    ) -> Result<O::Reply> {
        let unwritten = |name| self.broken(format!("the script `{name}` is not written for a real Redis"));
        let answer = match operation.request(names).map_err(unwritten)? {
            Request::Commands(commands) => {
                commands.iter().map(|command| self.execute(now, command)).collect::<Result<_>>()?
            }
            Request::Eval(eval) => vec![self.eval(now, &eval)?],
            Request::Flush => {
                self.flush()?;
                Vec::new()
            }
        };
        let nonsense = || self.broken(format!("it answers with something that makes no sense: {answer:?}"));
        if operation.booking().is_some_and(|booking| !booking(&answer)) {
            return Err(nonsense());
        }
        let mut expires = Vec::new();
        let reply = operation.reply(answer.clone(), &mut expires).ok_or_else(nonsense)?;
        for (key, ttl) in expires {
            self.deadlines.insert(key, now.saturating_add(ttl));
        }
        Ok(reply)
    }

    /// Executes a command at `now`, which never runs backward.
    ///
    /// # Errors
    /// If the server cannot be reached or says what nobody expects. What the simulated store would answer with an error too
    /// is the inner one.
    pub fn execute(&mut self, now: Time, command: &Command) -> Result<Result<Reply, CommandError>> {
        let (key, other) = command.keys();
        for key in [Some(key), other].into_iter().flatten() {
            self.forget_expired(now, key)?;
        }
        if let Some(error) = wire::refused(command) {
            return Ok(Err(error));
        }
        match command {
            Command::Expire { key, ttl } if ttl.is_zero() => {
                self.deadlines.remove(key);
                self.send(&Command::Del { key: key.clone() })
            }
            Command::Expire { key, ttl } => {
                let is_there = self.exists(key)?;
                if is_there {
                    self.deadlines.insert(key.clone(), now.saturating_add(*ttl));
                }
                Ok(Ok(is_there.into()))
            }
            Command::Persist { key } => {
                Ok(Ok((self.exists(key)? && self.deadlines.remove(key).is_some()).into()))
            }
            Command::Ttl { key } => Ok(Ok(Reply::Integer(match self.deadlines.get(key).copied() {
                _ if !self.exists(key)? => GONE,
                None => FOR_EVER,
                // Rounded up, as the simulated store does.
                Some(at) => at.saturating_since(now).as_micros().div_ceil(1_000) as i64,
            }))),
            Command::Set { key, ttl, .. } => {
                let reply = self.send(command)?;
                if reply == Ok(Reply::Ok) {
                    match ttl {
                        Some(ttl) => self.deadlines.insert(key.clone(), now.saturating_add(*ttl)),
                        None => self.deadlines.remove(key),
                    };
                }
                Ok(reply)
            }
            _ => {
                let reply = self.send(command)?;
                // A collection vanishes with its last item, and its TTL with it.
                if self.deadlines.contains_key(key) && !self.exists(key)? {
                    self.deadlines.remove(key);
                }
                Ok(reply)
            }
        }
    }

    /// Runs a script at `now`.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); the inner error is that of a command that the script hands on.
    pub fn eval(&mut self, now: Time, eval: &Eval) -> Result<Result<Reply, CommandError>> {
        for name in &eval.keys {
            if let Name::Ordinary(key) = name {
                self.forget_expired(now, key)?;
            }
        }
        let clock = Clock::Virtual(now.as_micros());
        let call = wire::evalsha(&self.prefix, self.scripts.sha(eval.source), clock, eval);
        let mut answer = self.answer(&call)?;
        if matches!(&answer, Err(error) if wire::is_unknown_script(error)) {
            answer = self.answer(&wire::eval(&self.prefix, clock, eval))?;
        }
        match answer {
            Ok(reply) => Ok(Ok(reply)),
            Err(error) => wire::command_error(&error).map(Err).ok_or_else(|| Broken::new(&self.url, error)),
        }
    }

    /// Deletes all keys of this run.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn flush(&mut self) -> Result<()> {
        self.deadlines.clear();
        for keys in self.scan("*")?.chunks(1_000) {
            self.query(cmd("UNLINK").arg(keys))?;
        }
        Ok(())
    }

    /// The numbers of the messages under these keys.
    pub(crate) fn held(&mut self, holders: impl Iterator<Item = Name>) -> Result<Vec<u32>> {
        self.come_back()?;
        let mut held = Vec::new();
        for holder in holders {
            let key = wire::key(&self.prefix, &holder);
            let Reply::Array(messages) = self.query(cmd("HVALS").arg(key))? else { continue };
            held.extend(messages.iter().filter_map(|message| match message {
                Reply::Bytes(text) => str::from_utf8(text).ok()?.split(':').next()?.parse::<u32>().ok(),
                _ => None,
            }));
        }
        Ok(held)
    }

    /// How many ordinary keys there are at `now`, and how many of them have no TTL.
    pub(in crate::store) fn keys(&mut self, now: Time) -> Result<(usize, usize)> {
        self.come_back()?;
        let (mut live, mut without_ttl) = (0, 0);
        let prefix = wire::ordinary(&self.prefix, "");
        for key in self.scan("key:*")? {
            if self.is_live {
                let Reply::Integer(left) = self.query(cmd("PTTL").arg(&key))? else { continue };
                live += usize::from(left != GONE);
                without_ttl += usize::from(left == FOR_EVER);
                continue;
            }
            let deadline =
                str::from_utf8(&key).ok().and_then(|key| self.deadlines.get(key.strip_prefix(&prefix)?));
            live += usize::from(deadline.is_none_or(|at| now < *at));
            without_ttl += usize::from(deadline.is_none());
        }
        Ok((live, without_ttl))
    }

    /// In real time nothing is asked here for the length of a run, and the connection may have broken meanwhile.
    fn come_back(&mut self) -> Result<()> {
        if self.is_live { self.reconnect() } else { Ok(()) }
    }

    fn reconnect(&mut self) -> Result<()> {
        let patience = if self.is_live { PATIENCE_LIVE } else { PATIENCE };
        let connection = connect(&self.client, self.timeout, patience);
        self.connection = connection.map_err(|error| Broken::of(&self.url, &error))?;
        Ok(())
    }

    /// The keys of this run that match.
    fn scan(&mut self, pattern: &str) -> Result<Vec<Vec<u8>>> {
        let pattern = format!("{}{pattern}", self.prefix);
        let mut command = cmd("SCAN");
        let command = command.cursor_arg(0).arg("MATCH").arg(pattern).arg("COUNT").arg(1_000);
        let failed = |error: RedisError| Broken::of(&self.url, &error);
        let found = command.clone().iter::<Vec<u8>>(&mut self.connection).map_err(failed)?;
        let mut keys = found.collect::<std::result::Result<Vec<_>, _>>().map_err(failed)?;
        // A key may be found twice.
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// What time it is on the server, in microseconds.
    fn clock(&mut self) -> Result<u64> {
        let failed = |error: RedisError| Broken::of(&self.url, &error);
        let (seconds, micros): (u64, u64) = cmd("TIME").query(&mut self.connection).map_err(failed)?;
        Ok(seconds * 1_000_000 + micros)
    }

    fn forget_expired(&mut self, now: Time, key: &str) -> Result<()> {
        if self.deadlines.get(key).is_some_and(|at| *at <= now) {
            self.deadlines.remove(key);
            self.query(cmd("UNLINK").arg(wire::ordinary(&self.prefix, key)))?;
        }
        Ok(())
    }

    fn exists(&mut self, key: &str) -> Result<bool> {
        Ok(self.query(cmd("EXISTS").arg(wire::ordinary(&self.prefix, key)))? == Reply::Integer(1))
    }

    fn send(&mut self, command: &Command) -> Result<Result<Reply, CommandError>> {
        let value = self.value(&wire::encode(&self.prefix, command, false))?;
        wire::decode(command, value).map_err(|what| Broken::new(&self.url, what))
    }

    /// A command that does not fail.
    fn query(&mut self, command: &Cmd) -> Result<Reply> {
        self.answer(command)?.map_err(|what| Broken::new(&self.url, what))
    }

    /// What a command answers, or the text of its error.
    fn answer(&mut self, command: &Cmd) -> Result<std::result::Result<Reply, String>> {
        self.value(command).map(wire::read)
    }

    fn value(&mut self, command: &Cmd) -> Result<Value> {
        let value = self.connection.req_packed_command(&command.get_packed_command());
        value.map_err(|error| Broken::of(&self.url, &error))
    }
}

/// What `PTTL` answers if there is no such key.
const GONE: i64 = -2;
/// What it answers if the key has no TTL.
const FOR_EVER: i64 = -1;

/// Nothing of a run stays, however it ended.
impl Drop for Redis {
    fn drop(&mut self) {
        // A server that is gone has taken them with it, or keeps what nobody can delete.
        if self.broken.is_some() || self.flush().is_err() {
            let _ = self.reconnect().and_then(|()| self.flush());
        }
    }
}

/// How long an answer takes at most in virtual time, and at the end of a run in real time; or the time-out, if that is longer.
const PATIENCE: Duration = Duration::from_mins(1);
const PATIENCE_LIVE: Duration = Duration::from_secs(5);

fn connect(client: &Client, timeout: Duration, patience: Duration) -> RedisResult<Connection> {
    let wall = |duration: Duration| std::time::Duration::from_micros(duration.as_micros());
    let connection = client.get_connection_with_timeout(wall(timeout))?;
    let patience = Some(wall(timeout.max(patience)));
    connection.set_read_timeout(patience)?;
    connection.set_write_timeout(patience)?;
    Ok(connection)
}
