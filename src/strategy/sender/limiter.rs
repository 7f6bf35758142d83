//! What a sender may send, and when.

use fake_telegram::bucket::TokenBucket;
use fake_telegram::time::Duration;
use fake_telegram::units::{Rate, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::asked::{Count, Slow, Take, take};
use super::lua;
use super::place::{Keep, Place};
use crate::env::{Env, StoreError};
use crate::limiter::budget::Budget;
use crate::limiter::ramp::Ramp;
use crate::limiter::window_counter::{KeyedBy, Windows};
use crate::store::command::{Command, Reply};
use crate::strategy::composition::NoParameters;
use crate::strategy::{ParameterError, at_least_one, bucket};

/// What a sender may send, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Limiter {
    /// Everything, at once.
    None(NoParameters),
    /// What a token bucket lets through: a level and when it was taken, not a window.
    TokenBucket(TokenBucketLimiter),
    /// What a counter in the store lets through in each window (S7).
    WindowCounter(WindowCounter),
}

/// [`Limiter::TokenBucket`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenBucketLimiter {
    /// Its refill: below the documented 30/s, so that jitter on the wire is not punished.
    pub rate: Rate,
    /// Its size.
    pub burst: u32,
    /// One in each process, or one for all.
    pub keep: Keep,
    /// Whose clock a bucket in the store goes by. Default: the store's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// What a sender does that cannot reach it.
    pub when_unreachable: Unreachable,
    /// How it goes on after a refusal. At once at its whole rate without it (S5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<RampSettings>,
}

/// Whose clock a bucket in the store goes by (S17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The store's own.
    Store,
    /// That of whoever asks.
    Callers,
}

/// What a sender does that cannot reach its limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unreachable {
    /// It waits and asks again: fails closed.
    Wait,
    /// It sends as if it had been allowed to: fails open.
    Send,
}

/// How a sender goes on after a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RampSettings {
    /// At which share of the rate that it had.
    pub resume: Share,
    /// How much it gains every second.
    pub step: Rate,
}

/// [`Limiter::WindowCounter`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WindowCounter {
    /// How many in each window.
    pub limit: u32,
    /// How long a window is, from 1 ms to 366 days.
    pub window: Duration,
    /// What the counter's key is made of.
    pub keyed_by: KeyedBy,
    /// Which commands count.
    pub form: WindowForm,
    /// What a sender does that cannot reach it.
    pub when_unreachable: Unreachable,
}

/// How a counter is counted up and given its time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowForm {
    /// `INCR`, and `EXPIRE` by whoever got 1: a process that dies in between leaves a counter that lives for ever.
    IncrExpire,
    /// `SET key 1 EX window NX`, and `INCR` where there was one: it may expire in between, and `INCR` makes one that
    /// lives for ever.
    SetIncr,
    /// One script.
    Script,
}

impl Default for TokenBucketLimiter {
    fn default() -> Self {
        Self {
            rate: Rate::per_second(28),
            burst: 20,
            keep: Keep::Store,
            clock: None,
            when_unreachable: Unreachable::Wait,
            ramp: None,
        }
    }
}

impl Default for RampSettings {
    fn default() -> Self {
        Self { resume: Share::from_ppm(250_000), step: Rate::per_second(1) }
    }
}

impl Default for WindowCounter {
    fn default() -> Self {
        Self {
            limit: 30,
            window: Duration::from_secs(1),
            keyed_by: KeyedBy::Window,
            form: WindowForm::IncrExpire,
            when_unreachable: Unreachable::Wait,
        }
    }
}

impl TokenBucketLimiter {
    /// The bucket of the process' token: one, whoever asks it.
    fn place(&self, env: &Env) -> Place<Budget> {
        let initial = self.clone();
        Place::new(env, self.keep, &name(env), move || initial.budget())
    }

    /// A full bucket; `checked` first.
    pub(super) fn budget(&self) -> Budget {
        let bucket = TokenBucket::new(self.rate, self.burst.into());
        match self.clock {
            Some(Clock::Callers) => Budget::on_callers_clocks(bucket),
            Some(Clock::Store) | None => {
                let ramp = self.ramp.as_ref().map(|ramp| Ramp::new(self.rate, ramp.resume, ramp.step));
                Budget::new(bucket, ramp)
            }
        }
    }

    fn check(&self) -> Result<(), ParameterError> {
        bucket(("limiter.rate", self.rate), ("limiter.burst", self.burst))?;
        let wrong = |key, message: &str| Err(ParameterError { key, message: message.to_owned() });
        if self.clock.is_some() && self.keep == Keep::Process {
            return wrong(
                "limiter.clock",
                "a bucket in a process has no other clock than its own; leave it out",
            );
        }
        if self.when_unreachable == Unreachable::Send && self.keep == Keep::Process {
            return wrong(
                "limiter.when_unreachable",
                "\"send\" does nothing for a bucket in a process, which can always be reached; leave it out",
            );
        }
        if self.clock == Some(Clock::Callers) && self.ramp.is_some() {
            return wrong("limiter.ramp", "a ramp needs one clock; use `clock = \"store\"`");
        }
        match &self.ramp {
            Some(ramp) if ramp.step.count == 0 => {
                wrong("limiter.ramp", "a ramp with a `step` of 0 never ends")
            }
            _ => Ok(()),
        }
    }
}

impl Limiter {
    pub(crate) const fn none() -> Self {
        Self::None(NoParameters {})
    }

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        match self {
            Self::None(_) => Ok(()),
            Self::TokenBucket(limiter) => limiter.check(),
            Self::WindowCounter(counter) => {
                at_least_one("limiter.limit", counter.limit)?;
                let message = match counter.window {
                    window if window < WINDOW_MIN => format!("{window} is no window; at least {WINDOW_MIN}"),
                    window if window > WINDOW_MAX => {
                        format!("{window} is longer than a window can be; at most {WINDOW_MAX}")
                    }
                    _ => return Ok(()),
                };
                Err(ParameterError { key: "limiter.window", message })
            }
        }
    }

    /// The budget, if it is kept at the place of a queue that is kept at `queue`: the queue's script asks it.
    pub(super) fn budget_beside(&self, env: &Env, queue: Keep) -> Option<Place<Budget>> {
        match self {
            Self::TokenBucket(limiter) if self.is_beside(queue) => Some(limiter.place(env)),
            _ => None,
        }
    }

    /// The bucket of such a budget, if a queue is kept at `queue`.
    pub(super) fn bucket_beside(&self, queue: Option<Keep>) -> Option<&TokenBucketLimiter> {
        match self {
            Self::TokenBucket(limiter) if Some(limiter.keep) == queue => Some(limiter),
            _ => None,
        }
    }

    /// Whether there is such a budget.
    pub(super) fn is_beside(&self, queue: Keep) -> bool {
        matches!(self, Self::TokenBucket(limiter) if limiter.keep == queue)
    }

    /// Whether callers say what time it is.
    pub(super) const fn is_on_callers_clocks(&self) -> bool {
        matches!(self, Self::TokenBucket(TokenBucketLimiter { clock: Some(Clock::Callers), .. }))
    }

    /// Where it is kept.
    pub(super) const fn keep(&self) -> Option<Keep> {
        match self {
            Self::None(_) => None,
            Self::TokenBucket(limiter) => Some(limiter.keep),
            Self::WindowCounter(_) => Some(Keep::Store),
        }
    }

    /// Whether somebody who cannot reach it sends all the same.
    pub(super) const fn sends_when_unreachable(&self) -> bool {
        match self {
            Self::None(_) => false,
            Self::TokenBucket(TokenBucketLimiter { when_unreachable, .. })
            | Self::WindowCounter(WindowCounter { when_unreachable, .. }) => {
                matches!(when_unreachable, Unreachable::Send)
            }
        }
    }

    pub(super) fn calls(&self, queue: Option<Keep>) -> Vec<&'static str> {
        match self {
            Self::None(_) => Vec::new(),
            Self::TokenBucket(limiter) if queue == Some(limiter.keep) || limiter.keep == Keep::Process => {
                Vec::new()
            }
            Self::TokenBucket(limiter) if limiter.ramp.is_some() => vec!["take", "slow"],
            Self::TokenBucket(_) => vec!["take"],
            Self::WindowCounter(counter) => match counter.form {
                WindowForm::IncrExpire => vec!["incr", "expire"],
                WindowForm::SetIncr => vec!["set", "incr"],
                WindowForm::Script => vec!["count"],
            },
        }
    }

    /// The limiter for a worker that asks it before every message.
    pub(super) fn admission(&self, env: &Env) -> Admission {
        let (asks, unreachable) = match self {
            Self::None(_) => (Asks::Nobody, Unreachable::Send),
            Self::TokenBucket(limiter) => {
                let asks = Asks::Bucket {
                    place: limiter.place(env),
                    settings: lua::budget(limiter).to_string(),
                    callers_clock: self.is_on_callers_clocks(),
                    has_ramp: limiter.ramp.is_some(),
                };
                (asks, limiter.when_unreachable)
            }
            Self::WindowCounter(counter) => {
                let windows = Windows { length: counter.window, keyed_by: counter.keyed_by };
                let asks = Asks::Counter {
                    name: name(env),
                    windows,
                    limit: counter.limit.into(),
                    form: counter.form,
                };
                (asks, counter.when_unreachable)
            }
        };
        Admission { asks, unreachable }
    }
}

/// What a token's limiter is called, wherever it is kept.
fn name(env: &Env) -> String {
    format!("limiter/{}", env.token().0)
}

/// How a worker asks before every message.
pub(super) struct Admission {
    asks: Asks,
    unreachable: Unreachable,
}

enum Asks {
    Nobody,
    Bucket { place: Place<Budget>, settings: String, callers_clock: bool, has_ramp: bool },
    Counter { name: String, windows: Windows, limit: i64, form: WindowForm },
}

impl Admission {
    /// Completes when a message may go.
    pub(super) async fn admit(&self, env: &Env) {
        loop {
            let wait = match &self.asks {
                Asks::Nobody => return,
                Asks::Bucket { place, settings, callers_clock, .. } => {
                    let own = callers_clock.then(|| env.now());
                    let wait = match place {
                        Place::Process(budget) => Ok(take(env.now(), own, &mut budget.borrow_mut())),
                        Place::Store(budget) => env.run(Take { budget: *budget, own, settings }).await,
                    };
                    match (wait, own) {
                        // The token is taken, if need be on credit: so workers wait in line and wake one by one.
                        (Ok(wait), None) => return env.sleep(wait).await,
                        (wait, _) => wait,
                    }
                }
                Asks::Counter { name, windows, limit, form } => {
                    let now = env.now();
                    match count(env, *form, &windows.key(name, now), windows.time_to_live()).await {
                        Ok(counted) if counted > *limit => Ok(windows.rest(env.now())),
                        Ok(_) => Ok(Duration::ZERO),
                        Err(error) => Err(error),
                    }
                }
            };
            match (wait, self.unreachable) {
                (Ok(Duration::ZERO), _) | (Err(_), Unreachable::Send) => return,
                (Ok(wait), _) => env.sleep(wait).await,
                (Err(_), Unreachable::Wait) => env.sleep(STORE_PAUSE).await,
            }
        }
    }

    /// Puts a token back that nobody needed; whether that was possible without a call.
    pub(super) fn put_back(&self) -> bool {
        match &self.asks {
            Asks::Nobody => true,
            Asks::Bucket { place: Place::Process(budget), .. } => {
                budget.borrow_mut().put_back();
                true
            }
            Asks::Bucket { .. } | Asks::Counter { .. } => false,
        }
    }

    /// A call was refused, for `wait`.
    pub(super) async fn refused(&self, env: &Env, wait: Duration) {
        let Asks::Bucket { place, settings, has_ramp: true, .. } = &self.asks else { return };
        match place {
            Place::Process(budget) => budget.borrow_mut().refuse(env.now(), env.now().saturating_add(wait)),
            Place::Store(budget) => {
                // A ramp that cannot be reached hears of the next refusal.
                let _ = env.run(Slow { budget: *budget, wait, settings }).await;
            }
        }
    }
}

/// Counts a message; how many there are in its window now.
async fn count(env: &Env, form: WindowForm, key: &str, ttl: Duration) -> Result<i64, StoreError> {
    let key = || key.to_owned();
    match form {
        WindowForm::IncrExpire => {
            let counted = integer(env.call(Command::Incr { key: key() }).await?);
            if counted == 1 {
                env.call(Command::Expire { key: key(), ttl }).await?;
            }
            Ok(counted)
        }
        WindowForm::SetIncr => {
            let set = Command::Set { key: key(), value: b"1".to_vec(), only_if_absent: true, ttl: Some(ttl) };
            match env.call(set).await? {
                Reply::Ok => Ok(1),
                _ => Ok(integer(env.call(Command::Incr { key: key() }).await?)),
            }
        }
        WindowForm::Script => env.run(Count { key: key(), ttl }).await?.map_err(StoreError::Command),
    }
}

fn integer(reply: Reply) -> i64 {
    match reply {
        Reply::Integer(integer) => integer,
        other => panic!("INCR of a counter answers with a number, not {other:?}"),
    }
}

/// Shorter ones count nothing: two calls to the store take longer.
const WINDOW_MIN: Duration = Duration::from_millis(1);

/// A year, a leap year too. Longer ones are a slip of the keyboard.
const WINDOW_MAX: Duration = Duration::from_hours(366 * 24);

/// How long a sender waits that cannot reach the store, before it tries again.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(1);
