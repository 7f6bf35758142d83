//! Real time: calls are futures, and the server's clock and times to live count.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use fake_telegram::time::Duration;
use futures::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, Value};

use super::wire::{self, Clock, Scripts};
use crate::store::StoreError;
use crate::store::command::{Command, CommandError, Reply};
use crate::store::script::{Answer, Eval, Request};
use crate::store::url::StoreUrl;

/// A real Redis in real time ([`Redis::in_real_time`](super::Redis::in_real_time)). Cheap to clone; all clones have one connection, which is made again when it breaks.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    config: AsyncConnectionConfig,
    prefix: String,
    /// When the run began on the server's clock, in microseconds.
    begin: u64,
    scripts: Mutex<Scripts>,
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
        write!(f, "RedisStore({})", self.shared.prefix)
    }
}

impl RedisStore {
    pub(super) fn new(
        url: &StoreUrl,
        prefix: String,
        begin: u64,
        timeout: Duration,
    ) -> Result<Self, RedisError> {
        let timeout = Some(std::time::Duration::from_micros(timeout.as_micros()));
        let shared = Shared {
            client: Client::open(url.secret())?,
            config: AsyncConnectionConfig::new()
                .set_connection_timeout(timeout)
                .set_response_timeout(timeout),
            prefix,
            begin,
            scripts: Mutex::default(),
            connection: tokio::sync::Mutex::default(),
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
    pub fn start(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Answer, StoreError>> + Send + 'static {
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
}

impl Shared {
    async fn commands(&self, commands: &[Command]) -> Result<Answer, StoreError> {
        let (number, connection) = self.connect().await?;
        let calls = commands.iter().map(|command| {
            let mut connection = connection.clone();
            async move {
                match wire::refused(command) {
                    Some(error) => Err(error),
                    None => {
                        Ok(connection.send_packed_command(&wire::encode(&self.prefix, command, true)).await)
                    }
                }
            }
        });
        let mut answers = Vec::with_capacity(commands.len());
        for (command, sent) in commands.iter().zip(join_all(calls).await) {
            answers.push(match sent {
                Err(error) => Err(error),
                Ok(value) => {
                    let value = self.came(number, value).await?;
                    wire::decode(command, value).map_err(|what| self.wonder(command.name(), &what))?
                }
            });
        }
        Ok(answers)
    }

    async fn eval(&self, eval: &Eval) -> Result<Result<Reply, CommandError>, StoreError> {
        let sha = self.scripts.lock().unwrap_or_else(PoisonError::into_inner).sha(eval.source).to_owned();
        let clock = Clock::Real(self.begin);
        let mut answer = self.reply(&wire::evalsha(&self.prefix, &sha, clock, eval)).await?;
        if matches!(&answer, Err(error) if wire::is_unknown_script(error)) {
            answer = self.reply(&wire::eval(&self.prefix, clock, eval)).await?;
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
        // After a time-out too: whoever is behind a connection that is dead without a word would never be heard again. Calls
        // that are still on it keep it.
        let mut link = self.connection.lock().await;
        if link.number == number {
            link.connection = None;
        }
        Err(StoreError::TimedOut)
    }

    fn wonder(&self, what: &str, said: &impl fmt::Debug) -> StoreError {
        let text = format!("{what}: {said:?}");
        *self.unexpected.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        StoreError::Unexpected
    }
}
