//! `floodlab compare`.

use std::path::PathBuf;

use super::exit::{Exit, Invalid};
use super::export::{Format, Target};
use super::saved;
use crate::compare::Comparison;
use crate::report;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The older result: a report.json, or the folder with it.
    #[arg(value_name = "A")]
    from: PathBuf,
    /// The newer result.
    #[arg(value_name = "B")]
    to: PathBuf,
    /// Compare only these designs.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    design: Vec<String>,
    /// Show every metric, not only the most telling ones.
    #[arg(long)]
    all: bool,
    /// What to print; an export to standard output is printed alone.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Write the comparison as JSON, with every metric, to this file as well (`-`: standard output); repeatable.
    #[arg(long, value_name = "FILE")]
    export_json: Vec<Target>,
    /// Write the comparison as Markdown, as for a pull request.
    #[arg(long, value_name = "FILE")]
    export_md: Vec<Target>,
}

pub(super) fn compare(arguments: &Arguments) -> anyhow::Result<Exit> {
    let exports = || arguments.export_json.iter().chain(&arguments.export_md);
    let exported = exports().filter(|target| **target == Target::Stdout).count();
    arguments.format.check_alone(exported);
    let ((from_file, from), (to_file, to)) = (saved::load(&arguments.from)?, saved::load(&arguments.to)?);
    let (from_name, to_name) = (from_file.display().to_string(), to_file.display().to_string());
    let comparison = Comparison::new((&from_name, &from), (&to_name, &to), &arguments.design)
        .map_err(|error| Invalid(error.to_string()))?;
    let markdown = || report::comparison_markdown(&comparison, arguments.all);
    for target in &arguments.export_json {
        target.write(&report::json(&comparison))?;
    }
    for target in &arguments.export_md {
        target.write(&markdown())?;
    }
    match arguments.format {
        // Whoever reads the export wants nothing else.
        Format::Text if exported > 0 => {}
        Format::Text => {
            super::print(&report::comparison_table(&comparison, arguments.all, true, super::width()))?;
        }
        Format::Json => super::print(&report::json(&comparison))?,
        Format::Md => super::print(&markdown())?,
        Format::Quiet => {}
    }
    Ok(Exit::Passed)
}
