//! What becomes of a message of which nobody knows whether it arrived: its answer timed out, was lost, said 5xx or made
//! no sense, or its process died with it in flight (incidents S13, S16).

use fake_telegram::time::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{self, CALLS_MAX};
use crate::strategy::composition::NoParameters;
use crate::strategy::{ParameterError, Surroundings};

/// What becomes of a message of which nobody knows whether it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Doubt {
    /// Nothing: it is settled as unknown. At most once: some are lost.
    Never(NoParameters),
    /// It is sent again. At least once: some arrive twice.
    Retry(RetryDoubt),
    /// The same as of a refused one: a sender that cannot tell them apart.
    AsRefused(NoParameters),
}

/// [`Doubt::Retry`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryDoubt {
    /// Calls that left doubt, the first included, before the message is settled as unknown; at most 255, without end
    /// if absent.
    #[serde(deserialize_with = "count::read_some::<CALLS_MAX, _>", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub attempts: Option<u8>,
    /// The wait before the next.
    pub pause: Duration,
    /// Classes that are never sent again: for them a loss is better than a duplicate.
    pub at_most_once: Vec<String>,
    /// Sends the message's number along as an idempotency key; Telegram ignores it (`[server] idempotency_keys`).
    pub idempotency_key: bool,
}

impl Default for RetryDoubt {
    fn default() -> Self {
        Self {
            attempts: None,
            pause: Duration::from_secs(1),
            at_most_once: Vec::new(),
            idempotency_key: false,
        }
    }
}

impl Doubt {
    pub(crate) const fn never() -> Self {
        Self::Never(NoParameters {})
    }

    pub(crate) const fn as_refused() -> Self {
        Self::AsRefused(NoParameters {})
    }

    pub(super) const fn is_as_refused(&self) -> bool {
        matches!(self, Self::AsRefused(_))
    }

    /// Whether its calls carry an idempotency key.
    pub(super) const fn has_key(&self) -> bool {
        matches!(self, Self::Retry(RetryDoubt { idempotency_key: true, .. }))
    }

    /// By class: how long to wait before a message is sent again that was tried `tries` times in vain before this
    /// call; `None` if it is not sent again.
    pub(super) fn again(&self, at_most_once: bool, tries: u8) -> Option<Duration> {
        match self {
            Self::Retry(RetryDoubt { attempts, pause, .. }) if !at_most_once => {
                attempts.is_none_or(|attempts| tries.saturating_add(1) < attempts).then_some(*pause)
            }
            _ => None,
        }
    }

    /// By class, in the order of `classes`: whether its messages are never sent again.
    pub(super) fn at_most_once(&self, classes: &[String]) -> Vec<bool> {
        let listed = match self {
            Self::Retry(retry) => retry.at_most_once.as_slice(),
            Self::Never(_) | Self::AsRefused(_) => &[],
        };
        classes.iter().map(|class| listed.contains(class)).collect()
    }

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        match self {
            Self::Retry(retry) => count::check_some("doubt.attempts", retry.attempts, CALLS_MAX),
            Self::Never(_) | Self::AsRefused(_) => Ok(()),
        }
    }

    /// Whether it can work with these classes.
    pub(super) fn check_at(&self, at: &Surroundings<'_>) -> Result<(), ParameterError> {
        match self {
            Self::Retry(retry) => at.check_classes("doubt.at_most_once", &retry.at_most_once),
            Self::Never(_) | Self::AsRefused(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_tried_as_often_as_it_says_and_some_classes_once() {
        let bills_once = RetryDoubt { at_most_once: vec!["bill".to_owned()], ..RetryDoubt::default() };
        let doubt = Doubt::Retry(RetryDoubt { attempts: Some(3), ..bills_once.clone() });
        let again = |doubt: &Doubt, once| [0, 1, 2, 255].map(|tries| doubt.again(once, tries).is_some());
        assert_eq!((again(&doubt, false), again(&doubt, true)), ([true, true, false, false], [false; 4]));
        let without_end = Doubt::Retry(bills_once);
        assert_eq!((again(&without_end, false), again(&without_end, true)), ([true; 4], [false; 4]));
        assert_eq!(doubt.at_most_once(&["reply".to_owned(), "bill".to_owned()]), [false, true]);
        assert_eq!(Doubt::never().again(false, 0), None);
    }
}
