//! The worst windows of a run.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The worst windows of one run, for conditions with `over`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Windows {
    /// The metric's name.
    pub metric: String,
    /// The labels that select samples.
    pub r#where: IndexMap<String, String>,
    /// Which summary of it, as a condition writes it; empty for the plain value.
    pub aggregate: String,
    /// The width of a window.
    pub over_us: u64,
    /// The window with the largest value (a lower bound is larger than anything else); `null` if none has samples.
    pub largest: Option<WindowValue>,
    /// The window with the smallest.
    pub smallest: Option<WindowValue>,
}

/// The value of one window: `numerator / denominator`, in microseconds or wholes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowValue {
    /// When the window begins.
    pub from_us: u64,
    /// The value, above the line.
    pub numerator: u64,
    /// Below it; at least 1.
    pub denominator: u64,
    /// Whether the truth may be larger.
    pub lower_bound: bool,
}
