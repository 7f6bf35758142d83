//! How a process sends.

pub mod sender;
mod composition;
mod naive_loop;
mod bare;
mod backoff;
mod process_bucket;
mod shared_bucket;
mod scheduler;

use std::future::Future;
use std::pin::Pin;

use fake_telegram::bucket::TokenBucket;
use fake_telegram::time::Duration;
use fake_telegram::units::Rate;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::env::Env;
use crate::names::hint;

pub use composition::{Composed, Composition, Named, NoParameters};
pub use {
    backoff::Backoff, bare::Bare, naive_loop::NaiveLoop, process_bucket::ProcessBucket, scheduler::Scheduler,
    shared_bucket::SharedBucket,
};

/// The strategies that come with floodlab: a new one is a file and a line here.
pub fn builtin() -> Vec<StrategyKind> {
    vec![
        StrategyKind::of::<NaiveLoop>(),
        StrategyKind::of::<Composed<Backoff>>(),
        StrategyKind::of::<Composed<ProcessBucket>>(),
        StrategyKind::of::<Composed<SharedBucket>>(),
        StrategyKind::of::<Composed<Scheduler>>(),
        StrategyKind::of::<Composed<Bare>>(),
    ]
}

/// How a process sends: the struct is its TOML parameters, [`run`](Strategy::run) is one worker.
///
/// ```no_run
/// use floodlab::{Env, Strategy};
///
/// /// Sends all that is due, in a row, and looks at nothing.
/// #[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Mine {}
///
/// impl Strategy for Mine {
///     const KIND: &'static str = "mine";
///     const SUMMARY: &'static str = "sends all that is due, in a row";
///     async fn run(self, _env: Env) {}
/// }
/// ```
pub trait Strategy: Clone + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Its name in a scenario, kebab-case.
    const KIND: &'static str;
    /// One line for `floodlab list strategies`.
    const SUMMARY: &'static str;

    /// Whether the parameters, each right by itself, can work together and in the scenario that they are written in.
    ///
    /// # Errors
    /// Which parameter cannot, and the way out.
    fn check(&self, _at: &Surroundings<'_>) -> Result<(), ParameterError> {
        Ok(())
    }

    /// The names of the calls that it makes: what a scenario can let a process die after. The default is what every
    /// strategy does: `send`.
    fn calls(&self) -> CallNames {
        vec!["send"]
    }

    /// What it keeps in the store for all processes of its token: the name of each thing, and the parameters that all of
    /// them have to agree on.
    fn shares(&self) -> Shares {
        Vec::new()
    }

    /// The names of those of its scripts that are written for a real Redis too ([`StoreScript::eval`]). Who makes another
    /// call to the store, commands of Redis apart, cannot run there.
    ///
    /// [`StoreScript::eval`]: crate::env::StoreScript::eval
    fn scripts(&self) -> CallNames {
        Vec::new()
    }

    /// One worker of one process; the runner starts `processes x workers` of these. It ends when there is nothing
    /// left to send.
    fn run(self, env: Env) -> impl Future<Output = ()> + 'static;
}

/// What a strategy's parameters are held against: the parts of the scenario that they may name or depend on.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The classes of messages that its workloads have, in order of first appearance.
    pub classes: &'a [String],
    /// When a client gives up on a call: no call is on the wire for longer.
    pub call_timeout: Duration,
}

impl Surroundings<'_> {
    /// Whether there are messages of these classes.
    fn check_classes<'a>(
        &self,
        key: &'static str,
        classes: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), ParameterError> {
        let Some(class) = classes.into_iter().find(|class| !self.classes.contains(class)) else {
            return Ok(());
        };
        let known = self.classes.iter().map(String::as_str);
        Err(ParameterError { key, message: format!("unknown class `{class}`{}", hint(class, known)) })
    }
}

/// Names of calls: `send`, commands of Redis in lower case, a strategy's scripts.
pub type CallNames = Vec<&'static str>;

/// See [`Strategy::shares`].
pub type Shares = Vec<(&'static str, String)>;

/// Why a strategy cannot work with a parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct ParameterError {
    /// The parameter's name; of a part's parameter the path, as in `queue.pace.chat_burst`.
    pub key: &'static str,
    /// What is wrong with it; a fragment that names the way out.
    pub message: String,
}

/// The bucket of a rate and a burst, each with its parameter's name.
fn bucket(
    (rate_key, rate): (&'static str, Rate),
    (burst_key, burst): (&'static str, u32),
) -> Result<TokenBucket, ParameterError> {
    TokenBucket::checked(rate, burst.into()).map_err(|error| {
        let key = if burst == 0 && rate.count > 0 { burst_key } else { rate_key };
        ParameterError { key, message: error.to_string() }
    })
}

fn at_least_one(key: &'static str, value: u32) -> Result<(), ParameterError> {
    let message = || "is 0; it must be at least 1".to_owned();
    if value == 0 { Err(ParameterError { key, message: message() }) } else { Ok(()) }
}

/// A strategy with its parameters filled in, its type forgotten.
pub trait Configured: Send + Sync + std::fmt::Debug {
    /// [`Strategy::KIND`].
    fn kind(&self) -> &'static str;
    /// The parameters, every default filled in.
    fn parameters(&self) -> toml::Table;
    /// [`Strategy::check`].
    ///
    /// # Errors
    /// As there.
    fn check(&self, at: &Surroundings<'_>) -> Result<(), ParameterError>;
    /// [`Strategy::calls`].
    fn calls(&self) -> CallNames;
    /// [`Strategy::shares`].
    fn shares(&self) -> Shares;
    /// [`Strategy::scripts`].
    fn scripts(&self) -> CallNames;
    /// Starts one worker.
    fn start(&self, env: Env) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// A [`Strategy`] behind [`Configured`].
struct Holder<S>(S);

impl<S> std::fmt::Debug for Holder<S>
where
    S: Strategy,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", S::KIND, self.parameters())
    }
}

impl<S: Strategy> Configured for Holder<S> {
    fn kind(&self) -> &'static str {
        S::KIND
    }

    fn parameters(&self) -> toml::Table {
        toml::Table::try_from(&self.0).expect("parameters are a table")
    }

    fn check(&self, at: &Surroundings<'_>) -> Result<(), ParameterError> {
        self.0.check(at)
    }

    fn calls(&self) -> CallNames {
        self.0.calls()
    }

    fn shares(&self) -> Shares {
        self.0.shares()
    }

    fn scripts(&self) -> CallNames {
        self.0.scripts()
    }

    fn start(&self, env: Env) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(self.0.clone().run(env))
    }
}

/// What the registry knows of a strategy's type.
#[derive(Debug, Clone, Copy)]
pub struct StrategyKind {
    /// [`Strategy::KIND`].
    pub kind: &'static str,
    /// [`Strategy::SUMMARY`].
    pub summary: &'static str,
    /// Reads the parameters (everything of the table but `kind`).
    pub read: fn(toml::de::ValueDeserializer<'_>) -> Result<Box<dyn Configured>, toml::de::Error>,
    /// The JSON Schema of the parameters.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl StrategyKind {
    /// The entry of strategy `S`.
    pub fn of<S: Strategy>() -> Self {
        Self {
            kind: S::KIND,
            summary: S::SUMMARY,
            read: |parameters| Ok(Box::new(Holder(S::deserialize(parameters)?))),
            schema: |generator| generator.subschema_for::<S>(),
        }
    }
}
