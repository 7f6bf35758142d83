//! Where results are written: files appear whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;

use super::exit::Invalid;
use crate::names::hint;
use crate::outcome::Report;
use crate::report::{self, File};

/// A file, or standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Stdout,
    File(PathBuf),
}

/// A plot and where to write it: `[PLOT=]FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlotTarget {
    /// Which; the first one if it is not said.
    plot: Option<String>,
    file: PathBuf,
}

/// What is printed of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A table.
    Text,
    /// All of it as data: what --export-json writes.
    Json,
    /// What --export-md writes.
    Md,
    /// Nothing.
    Quiet,
}

impl Format {
    /// Ends the program if more than one document would be printed; `exported` go to standard output anyway.
    pub(super) fn check_alone(self, exported: usize) {
        let printed = usize::from(matches!(self, Self::Json | Self::Md));
        if exported + printed > 1 {
            super::usage("only one document can go to standard output; export the others to files");
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Exports {
    /// Write the result as JSON to this file as well (`-`: standard output); repeatable, like all exports.
    #[arg(long, value_name = "FILE")]
    export_json: Vec<Target>,
    /// Write the result as Markdown.
    #[arg(long, value_name = "FILE")]
    export_md: Vec<Target>,
    /// Write the verdicts on the gates as JUnit XML.
    #[arg(long, value_name = "FILE")]
    export_junit: Vec<Target>,
    /// Write a plot as SVG; PLOT is the name of its file in the report folder.
    #[arg(long, value_name = "[PLOT=]FILE")]
    export_svg: Vec<PlotTarget>,
    /// Write a plot as PNG.
    #[arg(long, value_name = "[PLOT=]FILE")]
    export_png: Vec<PlotTarget>,
}

impl FromStr for Target {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) })
    }
}

impl FromStr for PlotTarget {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (plot, file) = match text.split_once('=') {
            Some((plot, file)) => (Some(plot.to_owned()), file),
            None => (None, text),
        };
        match file {
            "" => Err("FILE is missing"),
            "-" => Err("plots are not for standard output; name a file"),
            file => Ok(Self { plot, file: file.into() }),
        }
    }
}

impl Exports {
    pub(super) fn is_empty(&self) -> bool {
        self.export_json.is_empty()
            && self.export_md.is_empty()
            && self.export_junit.is_empty()
            && self.export_svg.is_empty()
            && self.export_png.is_empty()
    }

    /// How many documents go to standard output.
    pub(super) fn to_stdout(&self) -> usize {
        self.documents().filter(|target| **target == Target::Stdout).count()
    }

    /// Finds what cannot be written, before hours are spent on what would be written.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for PlotTarget { plot, .. } in self.plots() {
            let known = || report::plot_names().map(|(name, _)| name);
            if let Some(name) = plot.as_deref().filter(|name| known().all(|known| known != *name)) {
                return Err(Invalid(format!("unknown plot `{name}`{}", hint(name, known()))).into());
            }
        }
        let documents = self.documents().filter_map(|target| match target {
            Target::Stdout => None,
            Target::File(file) => Some(file),
        });
        for file in documents.chain(self.plots().map(|target| &target.file)) {
            check_file(file, "cannot export to")?;
        }
        Ok(())
    }

    fn documents(&self) -> impl Iterator<Item = &Target> {
        self.export_json.iter().chain(&self.export_md).chain(&self.export_junit)
    }

    fn plots(&self) -> impl Iterator<Item = &PlotTarget> {
        self.export_svg.iter().chain(&self.export_png)
    }

    /// Writes what was asked for and was checked; `files` is the report folder's content.
    pub(super) fn write(&self, report: &Report, files: &[File]) -> anyhow::Result<()> {
        for target in &self.export_json {
            target.write(&report::json(report))?;
        }
        for target in &self.export_md {
            target.write(&report::markdown(report))?;
        }
        for target in &self.export_junit {
            target.write(&report::junit(report))?;
        }
        for (extension, targets) in [(".svg", &self.export_svg), (".png", &self.export_png)] {
            for PlotTarget { plot, file } in targets {
                let plots = || {
                    files.iter().filter_map(|file| Some((file.name.strip_suffix(extension)?, &file.bytes)))
                };
                let wanted = plots().find(|(name, _)| plot.as_deref().is_none_or(|plot| plot == *name));
                let (_, bytes) = wanted.expect("names were checked before the run");
                write(file, bytes)?;
            }
        }
        Ok(())
    }
}

impl Target {
    pub(super) fn write(&self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout => super::print(text),
            Self::File(file) => write(file, text.as_bytes()),
        }
    }
}

/// Finds out whether the report folder can be written. Leaves nothing behind.
pub(super) fn check_folder(folder: &Path) -> anyhow::Result<()> {
    let context =
        || format!("cannot write the report into {} (--output names another folder)", folder.display());
    probe(folder).with_context(context)
}

/// Finds out whether a file can be written; `what` begins the error. Leaves nothing behind.
pub(super) fn check_file(file: &Path, what: &str) -> anyhow::Result<()> {
    let probed = if file.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { probe(parent(file)) };
    probed.with_context(|| format!("{what} {} (name another file)", file.display()))
}

/// Writes a file where the first of these folders is that is there; the others would be made below it.
fn probe(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or_else(|| Path::new("."));
    let draft = tempfile::Builder::new().prefix(".floodlab").tempfile_in(there);
    // Without the name of the draft, which says nothing to anybody.
    draft.map(drop).map_err(|error| error.kind().into())
}

fn parent(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Writes the report folder.
pub(super) fn write_folder(folder: &Path, files: &[File]) -> anyhow::Result<()> {
    files.iter().try_for_each(|file| write(&folder.join(&file.name), &file.bytes))
}

/// Writes beside the file and renames, so that nobody ever reads half of it.
pub(super) fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = parent(file);
    let write = || {
        fs::create_dir_all(folder)?;
        let mut draft = tempfile::Builder::new().prefix(".floodlab").tempfile_in(folder)?;
        draft.write_all(bytes)?;
        // A temporary file is for its owner only, a report for whoever may read the folder.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            draft.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        draft.persist(file).map(|_| ()).map_err(|error| error.error)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
