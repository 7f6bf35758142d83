//! Which strategies and workloads there are: a value, passed down.

use crate::names::hint;
use crate::strategy::{Strategy, StrategyKind};
use crate::workload::{self, Workload, WorkloadKind};

/// The strategies and workloads that scenarios can name.
///
/// ```no_run
/// # use floodlab::{Env, Registry, Strategy};
/// # #[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Mine {}
/// # impl Strategy for Mine {
/// #     const KIND: &'static str = "mine";
/// #     const SUMMARY: &'static str = "";
/// #     async fn run(self, _env: Env) {}
/// # }
/// fn main() -> std::process::ExitCode {
///     floodlab::cli::main(&Registry::builtin().with_strategy::<Mine>())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Registry {
    strategies: Vec<StrategyKind>,
    workloads: Vec<WorkloadKind>,
}

/// A scenario names a kind that is not in the registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`{}", hint(name, known.iter().copied()))]
pub struct UnknownKind {
    /// `strategy` or `workload`.
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// The names that there are.
    pub known: Vec<&'static str>,
}

impl Registry {
    /// What comes with floodlab.
    pub fn builtin() -> Self {
        Self { strategies: crate::strategy::builtin(), workloads: workload::builtin() }
    }

    /// Adds a strategy.
    ///
    /// # Panics
    /// If there is one of its kind.
    #[must_use]
    pub fn with_strategy<S: Strategy>(mut self) -> Self {
        assert!(self.strategy(S::KIND).is_err(), "there are two strategies `{}`", S::KIND);
        self.strategies.push(StrategyKind::of::<S>());
        self
    }

    /// Adds a workload.
    ///
    /// # Panics
    /// If there is one of its kind.
    #[must_use]
    pub fn with_workload<W: Workload>(mut self) -> Self {
        assert!(self.workload(W::KIND).is_err(), "there are two workloads `{}`", W::KIND);
        self.workloads.push(WorkloadKind::of::<W>());
        self
    }

    /// The strategies, in the order in which they were added.
    pub fn strategies(&self) -> &[StrategyKind] {
        &self.strategies
    }

    /// The workloads, in the order in which they were added.
    pub fn workloads(&self) -> &[WorkloadKind] {
        &self.workloads
    }

    /// The strategy of this kind.
    ///
    /// # Errors
    /// If there is none; the text names the nearest.
    pub fn strategy(&self, kind: &str) -> Result<&StrategyKind, UnknownKind> {
        self.strategies.iter().find(|known| known.kind == kind).ok_or_else(|| UnknownKind {
            what: "strategy",
            name: kind.to_owned(),
            known: self.strategies.iter().map(|known| known.kind).collect(),
        })
    }

    /// The workload of this kind.
    ///
    /// # Errors
    /// If there is none; the text names the nearest.
    pub fn workload(&self, kind: &str) -> Result<&WorkloadKind, UnknownKind> {
        self.workloads.iter().find(|known| known.kind == kind).ok_or_else(|| UnknownKind {
            what: "workload",
            name: kind.to_owned(),
            known: self.workloads.iter().map(|known| known.kind).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_the_nearest_name_and_a_stranger_all_of_them() {
        let registry = Registry::builtin();
        let text = |kind: &str| registry.workload(kind).map(|_| ()).expect_err("unknown").to_string();
        assert_eq!(text("posson"), "unknown workload `posson`; did you mean `poisson`?");
        assert_eq!(text("xyz"), "unknown workload `xyz`; known are poisson, broadcast, trace");
    }
}
