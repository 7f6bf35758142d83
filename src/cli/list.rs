//! `floodlab list`.

use std::path::{Path, PathBuf};

use anstyle::Style;
use fake_telegram::profile::Profile;
use serde::Serialize;

use super::exit::{Exit, Invalid};
use crate::gate::METRICS;
use crate::registry::Registry;
use crate::scenario::{Scenario, ScenarioError};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// What to list.
    what: What,
    /// Where scenarios lie.
    #[arg(long, value_name = "DIR", default_value = SCENARIOS)]
    directory: PathBuf,
    /// For people or for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// Where scenarios lie, from the working directory.
pub(super) const SCENARIOS: &str = "scenarios";

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    Strategies,
    Workloads,
    Profiles,
    Metrics,
    Scenarios,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// One line of a list.
#[derive(Debug, Serialize)]
struct Item {
    name: String,
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    covers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
}

impl Item {
    fn new(name: &str, summary: &str) -> Self {
        Self { name: name.to_owned(), summary: summary.to_owned(), covers: None, file: None }
    }
}

pub(super) fn list(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let mut exit = Exit::Passed;
    let items = match arguments.what {
        What::Strategies => registry.strategies().iter().map(|s| Item::new(s.kind, s.summary)).collect(),
        What::Workloads => registry.workloads().iter().map(|w| Item::new(w.kind, w.summary)).collect(),
        What::Profiles => Profile::ALL.iter().map(|(name, summary)| Item::new(name, summary)).collect(),
        What::Metrics => METRICS.iter().map(|metric| Item::new(metric.name, metric.doc)).collect(),
        What::Scenarios => {
            let mut items = Vec::new();
            for scenario in scenarios(&arguments.directory, registry)? {
                match scenario {
                    Ok(scenario) => items.push(Item {
                        name: scenario.name,
                        summary: scenario.summary,
                        covers: Some(scenario.covers),
                        file: Some(scenario.file),
                    }),
                    Err(error) => {
                        super::complain(&error.into());
                        exit = Exit::Invalid;
                    }
                }
            }
            items
        }
    };
    super::print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&items)?,
        Format::Text => text(&items, super::width()),
    })?;
    Ok(exit)
}

/// The scenarios of a directory, by name of file.
fn scenarios(directory: &Path, registry: &Registry) -> anyhow::Result<Vec<Result<Scenario, ScenarioError>>> {
    let files = files(directory).map_err(|error| {
        let directory = directory.display();
        Invalid(format!("cannot list the scenarios of {directory} (--directory names another): {error}"))
    })?;
    Ok(files.iter().map(|file| Scenario::load(file, registry)).collect())
}

/// The scenario files of a directory, in order.
pub(super) fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    let is_scenario = |file: &PathBuf| file.extension().is_some_and(|e| e == "toml" || e == "json");
    let mut files: Vec<PathBuf> = entries.filter(is_scenario).collect();
    files.sort();
    Ok(files)
}

/// Names, and beside them their summaries in lines that fit into `width`; the rows that a scenario covers come last.
fn text(items: &[Item], width: usize) -> String {
    let bold = Style::new().bold();
    let names = items.iter().map(|item| item.name.chars().count()).max().unwrap_or_default();
    let indent = format!("\n{:names$}  ", "");
    let item = |item: &Item| {
        let rows = item.covers.as_deref().filter(|rows| !rows.is_empty());
        let rows = rows.map(|rows| format!(" [{}]", rows.join(", "))).unwrap_or_default();
        let lines = lines(&format!("{}{rows}", item.summary), width.saturating_sub(names + 2));
        format!("{bold}{:names$}{bold:#}  {}\n", item.name, lines.join(&indent))
    };
    items.iter().map(item).collect()
}

/// A text broken at its spaces; a word that is longer than a line has one to itself.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
