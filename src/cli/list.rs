//! `floodlab list`.

use std::path::{Path, PathBuf};

use anstyle::Style;
use fake_telegram::profile::Profile;
use serde::Serialize;

use super::exit::{Exit, Invalid};
use crate::gate::{Better, METRICS, Metric, Unit};
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
    #[serde(flatten)]
    measure: Option<Measure>,
}

/// All that a gate needs to know of a metric.
#[derive(Debug, Serialize)]
struct Measure {
    /// `duration`, `share`, `ratio` or `count`: how quantities are written.
    unit: &'static str,
    /// `us`, `ppm` or `count`: what verdicts are in.
    reported_in: &'static str,
    /// The labels that select a part of it.
    r#where: Vec<&'static str>,
    /// Its summaries, as a condition writes them; `value` may be left out.
    summaries: Vec<&'static str>,
    /// `less`, `more`, or `neither` if nobody can say.
    better: &'static str,
}

impl Measure {
    fn new(metric: &'static Metric) -> Self {
        let plain = |name: &&'static str| if name.is_empty() { "value" } else { *name };
        Self {
            unit: match metric.unit {
                Unit::Duration => "duration",
                Unit::Share => "share",
                Unit::Ratio => "ratio",
                Unit::Count => "count",
            },
            reported_in: metric.unit.suffix(),
            r#where: metric.label.map(|label| label.name()).into_iter().collect(),
            summaries: metric.aggregates().iter().map(plain).collect(),
            better: match metric.better {
                Better::Less => "less",
                Better::More => "more",
                Better::Neither => "neither",
            },
        }
    }
}

impl Item {
    fn new(name: &str, summary: &str) -> Self {
        Self { name: name.to_owned(), summary: summary.to_owned(), covers: None, file: None, measure: None }
    }
}

pub(super) fn list(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let mut exit = Exit::Passed;
    let items = match arguments.what {
        What::Strategies => registry.strategies().iter().map(|s| Item::new(s.kind, s.summary)).collect(),
        What::Workloads => registry.workloads().iter().map(|w| Item::new(w.kind, w.summary)).collect(),
        What::Profiles => Profile::ALL.iter().map(|(name, summary)| Item::new(name, summary)).collect(),
        What::Metrics => {
            let item = |metric: &'static Metric| Item {
                measure: Some(Measure::new(metric)),
                ..Item::new(metric.name, metric.doc)
            };
            METRICS.iter().map(item).collect()
        }
        What::Scenarios => {
            let mut items = Vec::new();
            for scenario in scenarios(&arguments.directory, registry)? {
                match scenario {
                    Ok(scenario) => items.push(Item {
                        name: scenario.name,
                        summary: scenario.summary,
                        covers: Some(scenario.covers),
                        file: Some(scenario.file),
                        measure: None,
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
        Format::Text if matches!(arguments.what, What::Metrics) => metrics(&items, super::width()),
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

/// A line for each metric with what a gate needs, what it is below, and how to write one.
fn metrics(items: &[Item], width: usize) -> String {
    let bold = Style::new().bold();
    let cells = |item: &Item| {
        let measure = item.measure.as_ref();
        let cells = measure.map(|measure| {
            [measure.unit.to_owned(), measure.r#where.join(", "), measure.summaries.join(", ")]
        });
        cells.unwrap_or_default()
    };
    let heads = ["unit", "where", "summaries"].map(str::to_owned);
    let name = items.iter().map(|item| item.name.len()).max().unwrap_or_default();
    let widest = |column: usize| {
        let all = items.iter().map(cells).chain([heads.clone()]);
        all.map(|cells| cells[column].len()).max().unwrap_or_default()
    };
    let [unit, label] = [0, 1].map(widest);
    let line = |title: &str, [a, b, c]: [String; 3]| {
        format!("{bold}{title:name$}{bold:#}  {a:unit$}  {b:label$}  {c}\n")
    };
    let mut text = line("metric", heads.clone());
    for item in items {
        text += &line(&item.name, cells(item));
        for part in lines(&item.summary, width.saturating_sub(INDENT.len())) {
            text += &format!("{INDENT}{part}\n");
        }
    }
    for paragraph in GATE {
        text.push('\n');
        for part in lines(paragraph, width.saturating_sub(INDENT.len())) {
            text += &format!("{INDENT}{part}\n");
        }
    }
    text
}

const INDENT: &str = "  ";

/// How a gate is written with that.
const GATE: [&str; 3] = [
    "A gate is a metric, what selects a part of it, and conditions of a summary, an operator and a quantity:",
    "floodlab run SCENARIO --gate 'lag{class:reply}: p(99) <= 5s' --gate 'lost: == 0'",
    "A duration is written 250ms, 5s or 2h, a share or a rate 1.5%, a ratio 1.05, a count 0 or 300k.",
];

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
