//! Real time: calls are futures, and the server's clock and times to live count.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fake_telegram::time::Duration;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, Value, cmd};

use super::Broken;
use super::wire::{self, Clock, Scripts};
use crate::store::StoreError;
use crate::store::command::{Command, CommandError, Reply};
use crate::store::script::{Answer, Eval, Request};
use crate::store::url::StoreUrl;

/// A real Redis in real time ([`Redis::in_real_time`](super::Redis::in_real_time)). Cheap to clone; all clones have one
/// connection, which is made again when it breaks.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

struct Shared {
    url: StoreUrl,
    client: Client,
    prefix: String,
    /// What a call takes at most, with connecting and all.
    timeout: std::time::Duration,
    /// When the run began on the server's clock, in microseconds.
    begin: AtomicU64,
    scripts: Mutex<Scripts>,
    link: Mutex<Link>,
    /// What the server said last that nobody expects.
    unexpected: Mutex<Option<String>>,
}

/// The connection, if there is one, and which it is.
#[derive(Default)]
struct Link {
    number: u64,
    connection: Option<Connecting>,
}

/// A connection that is being made or is there; whoever needs it waits for the same.
type Connecting = futures::future::Shared<BoxFuture<'static, Result<MultiplexedConnection, StoreError>>>;

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
        let shared = Shared {
            url: url.clone(),
            client: Client::open(url.secret())?,
            prefix,
            timeout: std::time::Duration::from_micros(timeout.as_micros()),
            begin: AtomicU64::new(begin),
            scripts: Mutex::default(),
            link: Mutex::default(),
            unexpected: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Before all keys of this run.
    pub fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    /// The run begins now, by the server's clock. The future needs tokio.
    ///
    /// # Errors
    /// If the server does not tell the time.
    pub async fn begin(&self) -> Result<(), Broken> {
        let within = self.shared.timeout.max(TO_BEGIN);
        let said = self.shared.call(within, |on| async move { on.reply(&cmd("TIME")).await }).await;
        let number = |reply: &Reply| match reply {
            Reply::Bytes(text) => str::from_utf8(text).ok()?.parse::<u64>().ok(),
            _ => None,
        };
        let time = match said {
            Ok(Ok(Reply::Array(time))) => match time.as_slice() {
                [seconds, micros] => number(seconds).zip(number(micros)),
                _ => None,
            },
            Err(error) => return Err(Broken::new(&self.shared.url, error.to_string())),
            Ok(_) => None,
        };
        let Some((seconds, micros)) = time else {
            return Err(Broken::new(&self.shared.url, "it does not say what time it is"));
        };
        self.shared.begin.store(seconds * 1_000_000 + micros, Ordering::Relaxed);
        Ok(())
    }

    /// Makes a call, which takes the time-out at most; calls leave in the order in which their futures are first polled.
    /// The future needs tokio.
    ///
    /// It gives [`StoreError::Refused`] if the call was not made or the server would not execute it for now,
    /// [`StoreError::TimedOut`] if nobody knows whether it was heard, and [`StoreError::Unexpected`] if the answer makes no
    /// sense ([`unexpected`](Self::unexpected) has it).
    pub fn start(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Answer, StoreError>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move {
            shared
                .call(shared.timeout, |on| async move {
                    match &request {
                        Request::Commands(commands) => on.commands(commands).await,
                        Request::Eval(eval) => on.eval(eval).await.map(|reply| vec![reply]),
                        Request::Flush => on.flush().await.map(|reply| vec![reply]),
                    }
                })
                .await
        }
    }

    /// What the server said last that nobody expects, if it did.
    pub fn unexpected(&self) -> Option<String> {
        lock(&self.shared.unexpected).clone()
    }
}

impl Shared {
    /// What `call` gives on the connection, unless it takes longer than `within`.
    async fn call<'a, T, F: Future<Output = Result<T, StoreError>>>(
        &'a self,
        within: std::time::Duration,
        call: impl FnOnce(On<'a>) -> F,
    ) -> Result<T, StoreError> {
        let (number, connection) = self.connect();
        let said = async {
            match connection.await {
                Ok(connection) => call(On { shared: self, connection }).await.map_err(Failed::Call),
                Err(error) => Err(Failed::Connect(error)),
            }
        };
        let said = tokio::time::timeout(within, said).await;
        let error = match said {
            Ok(Ok(said)) => return Ok(said),
            Ok(Err(Failed::Call(
                error @ (StoreError::Refused | StoreError::Unexpected | StoreError::Command(_)),
            ))) => {
                return Err(error);
            }
            Ok(Err(Failed::Call(error) | Failed::Connect(error))) => error,
            Err(_) => StoreError::TimedOut,
        };
        // After a time-out too: whoever is behind a connection that is dead without a word would never be heard again. Calls
        // that are still on it keep it.
        let mut link = lock(&self.link);
        if link.number == number {
            link.connection = None;
        }
        Err(error)
    }

    /// The connection and its number; a new one if the last is broken.
    fn connect(&self) -> (u64, Connecting) {
        let mut link = lock(&self.link);
        if let Some(connection) = &link.connection {
            return (link.number, connection.clone());
        }
        let client = self.client.clone();
        // Whoever calls has a time-out for the whole.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connecting = async move {
            let connection = client.get_multiplexed_async_connection_with_config(&config).await;
            connection.map_err(|error| match error.is_timeout() {
                true => StoreError::TimedOut,
                // Whatever it is, nobody has heard of the call.
                false => StoreError::Refused,
            })
        };
        let connecting = connecting.boxed().shared();
        link.number += 1;
        link.connection = Some(connecting.clone());
        (link.number, connecting)
    }
}

/// How long the time of a run's beginning may take, however short the time-out is.
const TO_BEGIN: std::time::Duration = std::time::Duration::from_secs(5);

/// Where a call failed.
enum Failed {
    Connect(StoreError),
    Call(StoreError),
}

/// A call on a connection.
struct On<'a> {
    shared: &'a Shared,
    connection: MultiplexedConnection,
}

impl On<'_> {
    async fn commands(&self, commands: &[Command]) -> Result<Answer, StoreError> {
        let calls = commands.iter().map(async |command| match wire::refused(command) {
            Some(error) => Err(error),
            None => Ok(self.value(&wire::encode(&self.shared.prefix, command, true)).await),
        });
        let mut answers = Vec::with_capacity(commands.len());
        for (command, sent) in commands.iter().zip(join_all(calls).await) {
            answers.push(match sent {
                Err(error) => Err(error),
                Ok(value) => wire::decode(command, value?).map_err(|what| {
                    match self.failed(command.name(), &what) {
                        // The others may have been executed.
                        StoreError::Refused if commands.len() > 1 => StoreError::TimedOut,
                        error => error,
                    }
                })?,
            });
        }
        Ok(answers)
    }

    async fn eval(&self, eval: &Eval) -> Result<Result<Reply, CommandError>, StoreError> {
        let Shared { prefix, begin, scripts, .. } = self.shared;
        let sha = lock(scripts).sha(eval.source).to_owned();
        let clock = Clock::Real(begin.load(Ordering::Relaxed));
        let mut answer = self.reply(&wire::evalsha(prefix, &sha, clock, eval)).await?;
        if matches!(&answer, Err(error) if wire::is_unknown_script(error)) {
            answer = self.reply(&wire::eval(prefix, clock, eval)).await?;
        }
        self.answered("EVALSHA", answer)
    }

    async fn flush(&self) -> Result<Result<Reply, CommandError>, StoreError> {
        let answer = self.reply(&wire::flush(&self.shared.prefix)).await?;
        self.answered("EVAL", answer)
    }

    fn answered(
        &self,
        name: &str,
        answer: Result<Reply, String>,
    ) -> Result<Result<Reply, CommandError>, StoreError> {
        match answer {
            Ok(reply) => Ok(Ok(reply)),
            Err(error) => match wire::command_error(&error) {
                Some(error) => Ok(Err(error)),
                None => Err(self.failed(name, &error)),
            },
        }
    }

    /// What one command answers, or the text of its error.
    async fn reply(&self, command: &Cmd) -> Result<Result<Reply, String>, StoreError> {
        self.value(command).await.map(wire::read)
    }

    async fn value(&self, command: &Cmd) -> Result<Value, StoreError> {
        let value = self.connection.clone().send_packed_command(command).await;
        value.map_err(|error| match error.is_io_error() {
            true => StoreError::TimedOut,
            false => self.wonder("an answer", &error),
        })
    }

    /// The server answers a call with an error that commands do not have.
    fn failed(&self, what: &str, error: &String) -> StoreError {
        if wire::is_passing(error) { StoreError::Refused } else { self.wonder(what, error) }
    }

    fn wonder(&self, what: &str, said: &impl fmt::Debug) -> StoreError {
        *lock(&self.shared.unexpected) = Some(format!("{what}: {said:?}"));
        StoreError::Unexpected
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
