//! The totals of runs, wherever they are kept: what conditions and comparisons read.

use indexmap::IndexMap;

use super::{
    ClassOutcome, DesignHost, Distribution, Host, LagCounts, Metrics, Outcome, Replication, Report, Series,
    Windows,
};

/// The totals of one run, wherever they are kept: all that a condition on the whole run reads.
#[derive(Debug, Clone, Copy)]
pub struct Totals<'a> {
    /// Over all messages.
    pub metrics: &'a Metrics,
    /// By class.
    pub classes: &'a IndexMap<String, ClassOutcome>,
    /// The worst windows, where a condition asks for them.
    pub windows: &'a [Windows],
}

/// The runs of a design: one, or one for each seed.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    /// The design's name.
    pub design: &'a str,
    /// Its runs, in the order of seeds; at least one.
    pub runs: Vec<Run<'a>>,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Its seed.
    pub seed: u64,
    /// Its totals.
    pub totals: Totals<'a>,
    /// Its lags by class, if they were kept.
    pub lags: Option<&'a IndexMap<String, LagCounts>>,
}

impl<'a> Runs<'a> {
    /// Those of each design of a report, in the order in which it names them.
    pub fn of(report: &'a Report) -> Vec<Self> {
        match &report.replications {
            Some(all) => Self::by_design(all.runs.iter().map(|run| {
                let Replication { seed, design, .. } = run;
                (design.as_str(), Run { seed: *seed, totals: run.totals(), lags: None })
            })),
            None => Self::by_design(report.designs.iter().map(|outcome| {
                (outcome.name.as_str(), Run { seed: report.seed, totals: outcome.totals(), lags: None })
            })),
        }
    }

    /// Runs with their designs, put together by design in the order of first appearance.
    pub fn by_design(runs: impl Iterator<Item = (&'a str, Run<'a>)>) -> Vec<Self> {
        let mut designs: IndexMap<&'a str, Vec<Run<'a>>> = IndexMap::new();
        for (design, run) in runs {
            designs.entry(design).or_default().push(run);
        }
        designs.into_iter().map(|(design, runs)| Self { design, runs }).collect()
    }
}

impl Outcome {
    /// Its totals.
    pub fn totals(&self) -> Totals<'_> {
        Totals { metrics: &self.metrics, classes: &self.classes, windows: &self.windows }
    }

    /// Forgets what it was over time, and its distribution: totals, windows and counted lags stay.
    fn keep_totals(&mut self) {
        self.series = Series::default();
        self.lag_distribution = Distribution::default();
        self.classes.values_mut().for_each(|class| class.lag_p99_us = Vec::new());
    }
}

impl Replication {
    /// The totals of a run under `seed`.
    pub fn of(seed: u64, outcome: &Outcome) -> Self {
        let mut classes = outcome.classes.clone();
        classes.values_mut().for_each(|class| class.lag_p99_us = Vec::new());
        Self {
            seed,
            design: outcome.name.clone(),
            event_hash: outcome.event_hash.clone(),
            metrics: outcome.metrics.clone(),
            classes,
            windows: outcome.windows.clone(),
        }
    }

    /// Its totals.
    pub fn totals(&self) -> Totals<'_> {
        Totals { metrics: &self.metrics, classes: &self.classes, windows: &self.windows }
    }
}

impl Report {
    /// Its seeds.
    pub fn seeds(&self) -> &[u64] {
        self.replications.as_ref().map_or_else(|| std::slice::from_ref(&self.seed), |all| &all.seeds)
    }

    /// What a later run is compared with: all totals, and nothing of the machine or over time.
    pub fn baseline(&self) -> Self {
        let mut baseline = Self {
            gates: Vec::new(),
            expectations: Vec::new(),
            baseline: None,
            host: Host::default(),
            ..self.clone()
        };
        for outcome in &mut baseline.designs {
            outcome.keep_totals();
            outcome.host = DesignHost::default();
        }
        if let Some(replications) = &mut baseline.replications {
            replications.estimates = Vec::new();
            replications.differences = Vec::new();
        }
        baseline
    }
}
