//! Where a part keeps what it knows: in the memory of each process, or in the store that all share.

use std::cell::RefCell;
use std::rc::Rc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::store::Key;

/// Where something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// In the memory of each process: gone with it, and nobody else sees it.
    Process,
    /// In the store: one for all processes.
    Store,
}

/// A value at its place.
pub(super) enum Place<T> {
    Process(Rc<RefCell<T>>),
    Store(Key<T>),
}

impl<T: 'static> Place<T> {
    /// The value called `name`, which begins as `initial()`.
    pub(super) fn new(env: &Env, keep: Keep, name: &str, initial: impl Fn() -> T + 'static) -> Self {
        match keep {
            Keep::Process => Self::Process(env.memory(|| RefCell::new(initial()))),
            Keep::Store => Self::Store(env.key(name, initial)),
        }
    }
}
