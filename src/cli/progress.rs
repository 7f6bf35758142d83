//! How far a run is, on standard error and only on a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::run::Progress;
use crate::scenario::Scenario;

/// A bar for each design.
pub(super) struct Bars(Vec<ProgressBar>);

impl Bars {
    /// Bars for the designs of a scenario, each of which is run so many times; indicatif hides them where standard error is
    /// no terminal.
    pub(super) fn new(scenario: &Scenario, runs: u64) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{msg} {wide_bar:.cyan/dim} {percent:>3}%")
            .expect("a valid template");
        let width = scenario.designs.iter().map(|design| design.name.len()).max().unwrap_or_default();
        let bar = |name: &str| {
            let bar =
                all.add(ProgressBar::new(scenario.horizon().as_micros() * runs).with_style(style.clone()));
            bar.with_message(format!("{name:width$}"))
        };
        Self(scenario.designs.iter().map(|design| bar(&design.name)).collect())
    }

    pub(super) fn show(&self, progress: Progress) {
        self.0[progress.design].inc(progress.by.as_micros());
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}
