//! Real time: calls are futures, and the server's clock and times to live count.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use fake_telegram::time::Duration;
use futures::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, Script, Value, cmd};

use super::wire::{self, Clock};
use super::{Broken, check_version, prefix};
use crate::store::StoreError;
use crate::store::command::{Command, CommandError, Reply};
use crate::store::script::Eval;
use crate::store::url::StoreUrl;

/// A call to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Commands in one round trip, in order.
    Commands(Vec<Command>),
    /// A script.
    Eval(Eval),
}

/// What was answered: by command, or of a script one.
pub type Answer = Vec<Result<Reply, CommandError>>;

/// A real Redis in real time. Cheap to clone; all clones have one connection, which is made again when it breaks.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

struct Shared {
    url: StoreUrl,
    client: Client,
    config: AsyncConnectionConfig,
    prefix: String,
    /// When the run began on the server's clock, in microseconds.
    begin: u64,
    connection: tokio::sync::Mutex<Link>,
    /// What the server said last that nobody expects.
    unexpected: Mutex<Option<String>>,
}

/// The connection, if there is one, and which it is.
#[derive(Default)]
struct Link {
    number: u64,
    connection: Option<MultiplexedConnection>,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({}, {})", self.shared.url, self.shared.prefix)
    }
}

impl RedisStore {
    /// Connects; connecting and every answer take `timeout` at most. The run begins now, on the server's clock.
    ///
    /// # Errors
    /// If nobody is there, or no Redis that is new enough.
    pub async fn open(url: &StoreUrl, timeout: Duration) -> Result<Self, Broken> {
        let failed = |error: RedisError| Broken::of(url, &error);
        let timeout = Some(std::time::Duration::from_micros(timeout.as_micros()));
        let client = Client::open(url.secret()).map_err(failed)?;
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(timeout).set_response_timeout(timeout);
        let mut connection =
            client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)?;
        let info: String = cmd("INFO").arg("server").query_async(&mut connection).await.map_err(failed)?;
        check_version(url, &info)?;
        let id: u64 = cmd("CLIENT").arg("ID").query_async(&mut connection).await.map_err(failed)?;
        let (seconds, micros): (u64, u64) =
            cmd("TIME").query_async(&mut connection).await.map_err(failed)?;
        let shared = Shared {
            url: url.clone(),
            client,
            config,
            prefix: prefix(&format!("{seconds}-{micros}-{id}")),
            begin: seconds * 1_000_000 + micros,
            connection: tokio::sync::Mutex::new(Link { number: 0, connection: Some(connection) }),
            unexpected: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Before all keys of this run.
    pub fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    /// Makes a call; calls leave in the order in which their futures are first polled. The future needs tokio.
    ///
    /// It gives [`StoreError::Refused`] if the call was not made, [`StoreError::TimedOut`] if nobody knows whether it was
    /// heard, and [`StoreError::Unexpected`] if the answer makes no sense ([`unexpected`](Self::unexpected) has it).
    pub fn start(&self, request: Request) -> impl Future<Output = Result<Answer, StoreError>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move {
            match request {
                Request::Commands(commands) => shared.commands(&commands).await,
                Request::Eval(eval) => shared.eval(&eval).await.map(|reply| vec![reply]),
            }
        }
    }

    /// What the server said last that nobody expects, if it did.
    pub fn unexpected(&self) -> Option<String> {
        self.shared.unexpected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Deletes all keys of this run.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn flush(&self) -> Result<(), StoreError> {
        let pattern = format!("{}*", self.shared.prefix);
        let mut cursor = b"0".to_vec();
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(1_000);
            let reply = self.shared.reply(&scan).await?;
            let Ok(Reply::Array(mut parts)) = reply else { return Err(self.shared.wonder("SCAN", &reply)) };
            let keys = parts.pop();
            if let Some(Reply::Array(keys)) = keys
                && !keys.is_empty()
            {
                let mut unlink = cmd("UNLINK");
                for key in keys {
                    if let Reply::Bytes(key) = key {
                        unlink.arg(key);
                    }
                }
                self.shared.reply(&unlink).await?.map_err(|error| self.shared.wonder("UNLINK", &error))?;
            }
            match parts.pop() {
                Some(Reply::Bytes(next)) if next != b"0" => cursor = next,
                _ => return Ok(()),
            }
        }
    }
}

impl Shared {
    async fn commands(&self, commands: &[Command]) -> Result<Answer, StoreError> {
        let (number, connection) = self.connect().await?;
        let calls = commands.iter().map(|command| {
            let mut connection = connection.clone();
            async move {
                let command = wire::encode(&self.prefix, command, true);
                connection.send_packed_command(&command).await
            }
        });
        let mut answers = Vec::with_capacity(commands.len());
        for (command, value) in commands.iter().zip(join_all(calls).await) {
            let value = self.came(number, value).await?;
            answers.push(wire::decode(command, value).map_err(|what| self.wonder(command.name(), &what))?);
        }
        Ok(answers)
    }

    async fn eval(&self, eval: &Eval) -> Result<Result<Reply, CommandError>, StoreError> {
        let script = Script::new(eval.source);
        let call = wire::evalsha(&self.prefix, script.get_hash(), Clock::Real(self.begin), eval);
        let mut answer = self.reply(&call).await?;
        if matches!(&answer, Err(error) if error.starts_with("NOSCRIPT")) {
            let loaded = self.reply(cmd("SCRIPT").arg("LOAD").arg(eval.source)).await?;
            loaded.map_err(|error| self.wonder("SCRIPT LOAD", &error))?;
            answer = self.reply(&call).await?;
        }
        match answer {
            Ok(reply) => Ok(Ok(reply)),
            Err(error) => match wire::command_error(&error) {
                Some(error) => Ok(Err(error)),
                None => Err(self.wonder("EVALSHA", &error)),
            },
        }
    }

    /// What one command answers, or the text of its error.
    async fn reply(&self, command: &Cmd) -> Result<Result<Reply, String>, StoreError> {
        let (number, mut connection) = self.connect().await?;
        let value = connection.send_packed_command(command).await;
        self.came(number, value).await.map(wire::read)
    }

    /// The connection; a new one if the last is broken.
    async fn connect(&self) -> Result<(u64, MultiplexedConnection), StoreError> {
        let mut link = self.connection.lock().await;
        if let Some(connection) = &link.connection {
            return Ok((link.number, connection.clone()));
        }
        let connection = self.client.get_multiplexed_async_connection_with_config(&self.config).await;
        let connection = connection.map_err(|error| match error.is_timeout() {
            true => StoreError::TimedOut,
            // Whatever it is, nobody has heard of the call.
            false => StoreError::Refused,
        })?;
        link.number += 1;
        link.connection = Some(connection.clone());
        Ok((link.number, connection))
    }

    /// What came of a command on connection `number`.
    async fn came(&self, number: u64, value: Result<Value, RedisError>) -> Result<Value, StoreError> {
        let error = match value {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !error.is_io_error() {
            return Err(self.wonder("an answer", &error));
        }
        // What comes late on a connection is not mixed up with other answers, so it stays.
        if !error.is_timeout() {
            let mut link = self.connection.lock().await;
            if link.number == number {
                link.connection = None;
            }
        }
        Err(StoreError::TimedOut)
    }

    fn wonder(&self, what: &str, said: &impl fmt::Debug) -> StoreError {
        let text = format!("{what}: {said:?}");
        *self.unexpected.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        StoreError::Unexpected
    }
}
