//! Renderers: pure functions from a [`Report`] to bytes. They read nothing else, know no day and no machine, and so
//! give the same bytes for the same result.
//!
//! Two reports beside each other are rendered by `compare`, from a [`Comparison`](crate::compare::Comparison).
//!
//! A new file in the report folder is one module here and one line in `RENDERERS`.

mod comment;
mod compare;
mod human;
mod json;
mod junit;
mod live;
mod markdown;
mod plots;
mod provenance;
mod replications;
mod sheet;
mod table;
mod verdicts;

use crate::outcome::Report;

pub use comment::comment;
pub use compare::{comparison_markdown, comparison_table};
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use plots::{Plot, names as plot_names, plots};
pub use table::table;

/// A file of the report folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Everything that the report folder holds.
pub fn files(report: &Report) -> Vec<File> {
    RENDERERS.iter().flat_map(|render| render(report)).collect()
}

fn text(name: &str, text: String) -> Vec<File> {
    vec![File { name: name.to_owned(), bytes: text.into_bytes() }]
}

/// What each renderer puts into the folder.
const RENDERERS: &[fn(&Report) -> Vec<File>] = &[
    |report| text("report.json", json(report)),
    |report| text("report.md", markdown(report)),
    |report| text("comment.md", comment(report)),
    |report| plots(report).into_iter().flat_map(Plot::into_files).collect(),
];
