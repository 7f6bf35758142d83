//! Limits as data: what is limited, whose budget it is, by which algorithm and with which penalty.
//!
//! A call must fit all limits that apply to it; it is checked against all, then taken from all (`budgets`).

mod budgets;
mod cells;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::budgets::{Budgets, Call, Refusal};
use crate::api::{ChatKind, Method};
use crate::bucket::{BucketError, TokenBucket};
use crate::penalty::PenaltyRule;
use crate::time::Duration;
use crate::units::Rate;
use crate::window::FixedWindow;

/// The most limits that a profile may have; far more than any API has, and few enough for 8-bit indices.
pub const LIMITS_MAX: usize = 64;

/// One rule of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What reports call it.
    pub name: String,
    /// Whose budget it is.
    pub key: Key,
    /// The kinds of chat that it applies to; empty for all.
    pub kinds: Vec<ChatKind>,
    /// The methods that it applies to; empty for all that [spend](Method::spends).
    pub methods: Vec<Method>,
    /// How it counts.
    pub algorithm: Algorithm,
    /// What a call takes, at least 1. Default 1.
    pub cost: u32,
    /// What a refusal leads to; without one the answer is the wait in whole seconds and nothing is remembered.
    pub penalty: Option<PenaltyRule>,
}

/// What has a budget of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// Nobody: one budget for everything, whatever the token (a limit by address or account).
    Host,
    /// Each token.
    Token,
    /// Each method of a token (incident T9: limits that hang on a path).
    Method,
    /// Each chat, for each token (two bots in one chat do not share a budget: `telegram.md` 5.6).
    Chat,
}

/// How a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Up to `burst` at once, regained evenly at `rate`.
    TokenBucket {
        /// How fast tokens come back.
        rate: Rate,
        /// How many there are at most.
        burst: u64,
    },
    /// At most `limit` in any stretch of `window`.
    SlidingWindow {
        /// How many.
        limit: u32,
        /// The stretch.
        window: Duration,
    },
    /// At most `limit` in each window; windows are aligned to absolute time.
    FixedWindow {
        /// How many.
        limit: u32,
        /// The length of each.
        window: Duration,
    },
}

/// An algorithm's name, as in TOML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmKind {
    /// [`Algorithm::TokenBucket`]: `rate`, `burst`.
    TokenBucket,
    /// [`Algorithm::SlidingWindow`]: `limit`, `window`.
    SlidingWindow,
    /// [`Algorithm::FixedWindow`]: `limit`, `window`.
    FixedWindow,
}

/// What a limit still allows, in micro-tokens, with all that it takes to compute what it will have allowed later:
/// `available + rate x time`, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Micro-tokens that are there now.
    pub available: u64,
    /// Micro-tokens that are there at most.
    pub capacity: u64,
    /// How fast they come: a bucket's refill, or a window's limit in its length.
    pub rate: Rate,
}

/// Why a limit is impossible; which limit is said by whoever has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The bucket is.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// A call costs nothing, or more than there can ever be.
    #[error("`cost` is {cost}; it must be 1 to {most}, which is all that the limit holds")]
    Cost {
        /// The cost.
        cost: u32,
        /// The burst or the limit.
        most: u64,
    },
    /// The window's limit is 0 or too large.
    #[error("`limit` is {0}; it must be 1 to {max}", max = FixedWindow::LIMIT_MAX)]
    Count(u32),
    /// The window is too short or too long.
    #[error("`window` is {0}; it must be 1ms to 366d")]
    Window(Duration),
}

impl Limit {
    /// Whether the limit applies to `method` in a chat of `kind`.
    pub fn applies(&self, kind: ChatKind, method: Method) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&kind))
            && if self.methods.is_empty() { method.spends() } else { self.methods.contains(&method) }
    }

    /// Whether it is a budget of the token alone, which every call spends that spends anything.
    pub fn is_token_wide(&self) -> bool {
        self.key == Key::Token && self.kinds.is_empty() && self.methods.is_empty()
    }

    /// Whether it can work.
    ///
    /// # Errors
    /// See [`LimitError`].
    pub fn check(&self) -> Result<(), LimitError> {
        let most = match self.algorithm {
            Algorithm::TokenBucket { rate, burst } => TokenBucket::checked(rate, burst)?.burst(),
            Algorithm::SlidingWindow { limit, window } | Algorithm::FixedWindow { limit, window } => {
                if limit == 0 || limit > FixedWindow::LIMIT_MAX {
                    return Err(LimitError::Count(limit));
                }
                if window < FixedWindow::WINDOW_MIN || window > Duration::from_hours(366 * 24) {
                    return Err(LimitError::Window(window));
                }
                u64::from(limit)
            }
        };
        if self.cost == 0 || u64::from(self.cost) > most {
            return Err(LimitError::Cost { cost: self.cost, most });
        }
        Ok(())
    }
}

impl Algorithm {
    /// Its name.
    pub const fn kind(&self) -> AlgorithmKind {
        match self {
            Self::TokenBucket { .. } => AlgorithmKind::TokenBucket,
            Self::SlidingWindow { .. } => AlgorithmKind::SlidingWindow,
            Self::FixedWindow { .. } => AlgorithmKind::FixedWindow,
        }
    }

    /// The long-term rate that it lets through.
    pub const fn rate(&self) -> Rate {
        match *self {
            Self::TokenBucket { rate, .. } => rate,
            Self::SlidingWindow { limit, window } | Self::FixedWindow { limit, window } => {
                Rate { count: limit as u64, period: window }
            }
        }
    }

    /// How many tokens there are at most.
    pub const fn capacity(&self) -> u64 {
        match *self {
            Self::TokenBucket { burst, .. } => burst,
            Self::SlidingWindow { limit, .. } | Self::FixedWindow { limit, .. } => limit as u64,
        }
    }
}

impl Level {
    /// `available` micro-tokens of a limit with this algorithm.
    pub(crate) const fn of(algorithm: &Algorithm, available: u64) -> Self {
        Self { available, capacity: algorithm.capacity().saturating_mul(1_000_000), rate: algorithm.rate() }
    }
}
