//! Exit codes: few, and the same in every verb.

use std::process::ExitCode;

use crate::run::RunError;
use crate::scenario::ScenarioError;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// All went well, and all gates passed.
    Passed = 0,
    /// An unexpected error, such as a full disk.
    Unexpected = 1,
    /// The command line is wrong (clap's own code).
    Usage = 2,
    /// Nothing to run, or a gate without samples.
    Nothing = 4,
    /// An invariant of floodlab broke: our bug.
    Invariant = 97,
    /// Two equal runs differ: our bug, or a strategy that is not deterministic.
    NotDeterministic = 98,
    /// A gate failed.
    GateFailed = 99,
    /// A scenario, gate or name is invalid, wherever it was given; a missing scenario file too.
    Invalid = 104,
    /// Interrupted; what was finished is written.
    Interrupted = 105,
}

/// All of them, with one line each.
pub const ALL: [(Exit, &str); 9] = [
    (Exit::Passed, "all gates passed"),
    (Exit::Unexpected, "unexpected error"),
    (Exit::Usage, "wrong command line"),
    (Exit::Nothing, "nothing to run, or a gate without samples"),
    (Exit::Invariant, "an invariant of floodlab broke (our bug)"),
    (Exit::NotDeterministic, "not deterministic"),
    (Exit::GateFailed, "a gate failed"),
    (Exit::Invalid, "invalid scenario, gate or name; missing scenario file"),
    (Exit::Interrupted, "interrupted; what was finished is written"),
];

/// A name on the command line that nothing has.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Invalid(pub(super) String);

impl Exit {
    /// The code of an error.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        if error.is::<ScenarioError>() || error.is::<Invalid>() {
            return Self::Invalid;
        }
        #[cfg(feature = "live")]
        if error.is::<fake_telegram::http::cli::Invalid>() {
            return Self::Invalid;
        }
        match error.downcast_ref() {
            Some(RunError::NotDeterministic { .. }) => Self::NotDeterministic,
            Some(RunError::Invariant { .. }) => Self::Invariant,
            // The run is right and the scenario is not.
            Some(RunError::Missed { .. }) => Self::Invalid,
            _ => Self::Unexpected,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table for `--help`.
pub(super) fn help() -> String {
    let rows: Vec<String> = ALL.iter().map(|(exit, what)| format!("  {:>3}  {what}", *exit as u8)).collect();
    format!("Exit codes:\n{}", rows.join("\n"))
}
