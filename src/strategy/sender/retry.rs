//! What becomes of a refused message.

use std::collections::BTreeMap;

use fake_telegram::time::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{self, AGAIN_MAX, CALLS_MAX};
use crate::strategy::composition::NoParameters;
use crate::strategy::{ParameterError, Surroundings, at_least_one};

/// What becomes of a refused message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Retry {
    /// It is given up: a 429 is an error, and somebody reads the log.
    Drop(NoParameters),
    /// Its worker waits as long as the refusal asks for and sends it again; other workers know nothing of it (S3).
    Wait(NoParameters),
    /// Its worker waits 1, 2, 4, 8 s, whatever the refusal asks for (S2).
    Backoff(Backoff),
    /// It goes back to the queue at once, behind what waits there: the retry is a second producer (S8).
    Requeue(NoParameters),
    /// It leaves the queue until the refusal is over: a refusal is a date, not an error.
    Postpone(Postpone),
    /// A job of a framework: whether the limiter has no token or the server refuses, the job is released for a fixed
    /// time and has used up an attempt (S19).
    Release(Release),
}

/// [`Retry::Backoff`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Backoff {
    /// The first wait; each further one is twice as long.
    pub first: Duration,
    /// Calls for a message, the first included, before it is dropped.
    pub attempts: u32,
}

/// [`Retry::Postpone`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Postpone {
    /// How often a message may be postponed before it is dropped, at most 254 times; without end if absent.
    #[serde(deserialize_with = "count::read_some::<AGAIN_MAX, _>", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 254))]
    pub most: Option<u8>,
    /// The same for single classes, in the place of `most`: how long a notice is worth sending is for the business to
    /// say.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<String, u8>,
}

/// [`Retry::Release`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Release {
    /// How long a released job waits.
    pub delay: Duration,
    /// How often a job is taken before it fails, sent or not; at most 255 times.
    #[serde(deserialize_with = "count::read::<CALLS_MAX, _>")]
    #[schemars(range(min = 1))]
    pub attempts: u8,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), attempts: 5 }
    }
}

/// A minute and three attempts, as in the reports on Laravel's `RateLimited` middleware (laravel/framework issues 21346,
/// 36250; laravel/ideas issue 2310).
impl Default for Release {
    fn default() -> Self {
        Self { delay: Duration::from_mins(1), attempts: 3 }
    }
}

impl Retry {
    pub(crate) const fn drop() -> Self {
        Self::Drop(NoParameters {})
    }

    pub(crate) const fn wait() -> Self {
        Self::Wait(NoParameters {})
    }

    pub(crate) const fn requeue() -> Self {
        Self::Requeue(NoParameters {})
    }

    pub(super) const fn is_drop(&self) -> bool {
        matches!(self, Self::Drop(_))
    }

    pub(super) const fn needs_queue(&self) -> bool {
        matches!(self, Self::Requeue(_) | Self::Postpone(_) | Self::Release(_))
    }

    pub(super) const fn keeps_in_hand(&self) -> bool {
        matches!(self, Self::Wait(_) | Self::Backoff(_))
    }

    /// By class, in the order of `classes`: how often its messages may be postponed.
    pub(super) fn most(&self, classes: &[String]) -> Vec<Option<u8>> {
        match self {
            Self::Postpone(Postpone { most, by_class }) => {
                classes.iter().map(|class| by_class.get(class).copied().or(*most)).collect()
            }
            _ => vec![None; classes.len()],
        }
    }

    /// Whether the scenario has the classes that it names.
    pub(super) fn check_at(&self, at: &Surroundings<'_>) -> Result<(), ParameterError> {
        match self {
            Self::Postpone(Postpone { by_class, .. }) => at.check_classes("retry.by_class", by_class.keys()),
            _ => Ok(()),
        }
    }

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        match self {
            Self::Backoff(Backoff { attempts, .. }) => at_least_one("retry.attempts", *attempts),
            Self::Release(Release { attempts, .. }) => count::check("retry.attempts", *attempts, CALLS_MAX),
            Self::Postpone(Postpone { most, by_class }) => {
                count::check_some("retry.most", *most, AGAIN_MAX)?;
                by_class.values().try_for_each(|most| count::check("retry.by_class", *most, AGAIN_MAX))
            }
            Self::Drop(_) | Self::Wait(_) | Self::Requeue(_) => Ok(()),
        }
    }
}
