//! Stills of the dials, as SVG and PNG.
//!
//! A plot is a function from a report to a [`Picture`], plain shapes; `paint` alone knows plotters. A new plot is one
//! function and one line in [`PLOTS`].

mod axis;
mod chart;
mod dials;
mod paint;
mod picture;

use crate::outcome::Report;

use picture::Picture;

/// A still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// Its file name without the ending.
    pub name: &'static str,
    /// The drawing.
    pub svg: String,
    /// The same drawing in pixels.
    pub png: Vec<u8>,
}

impl Plot {
    pub(super) fn into_files(self) -> [super::File; 2] {
        let file = |ending: &str, bytes| super::File { name: format!("{}.{ending}", self.name), bytes };
        [file("svg", self.svg.into_bytes()), file("png", self.png)]
    }
}

/// Every plot of `report`.
pub fn plots(report: &Report) -> Vec<Plot> {
    PLOTS
        .iter()
        .map(|(name, title, draw)| {
            let picture = draw(report, title);
            Plot { name, svg: paint::svg(&picture), png: paint::png(&picture) }
        })
        .collect()
}

/// Name and title of each plot.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLOTS.iter().map(|(name, title, _)| (*name, *title))
}

type Draw = fn(&Report, &'static str) -> Picture;

const PLOTS: &[(&str, &str, Draw)] = &[
    ("budget-utilisation", "Share of the token's budget that was used", dials::budget_utilisation),
    ("lag-p99", "Lag that 1 % of messages exceeded, by when they fell due", dials::lag_p99),
    ("lag-distribution", "How many messages were how late", dials::lag_distribution),
    ("throttled", "Calls refused with 429, by the limit that was hit", dials::throttled),
    ("queue-depth", "Longest queue of a single chat", dials::queue_depth),
];
