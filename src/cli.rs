//! The command line: parse into ready values, act, print. Printing happens only here.
//!
//! A verb is a file; [`exit`] has the exit codes.

mod baseline;
mod check;
mod compare;
mod completions;
#[cfg(feature = "live")]
mod drive;
pub mod exit;
mod export;
mod job;
mod list;
mod progress;
mod run;
mod saved;
mod schema;
mod seeds;
#[cfg(feature = "live")]
mod serve;
mod welcome;

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use self::exit::Exit;
use crate::registry::Registry;
use crate::scenario::{Excerpt, ScenarioError};

/// A deterministic simulator and load-testing harness for senders behind rate limits.
#[derive(Debug, Parser)]
#[command(name = "floodlab", version, max_term_width = 100, after_help = exit::help())]
struct Cli {
    /// When to use colours [default: on a terminal; NO_COLOR is respected].
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_default_value = true)]
    color: Color,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run scenarios and report who was late and what the budget was spent on.
    Run(Box<run::Arguments>),
    /// Drive a scenario in real time, over HTTP, against a Bot API server.
    #[cfg(feature = "live")]
    Drive(Box<drive::Arguments>),
    /// Serve the fake Telegram to real bots, and judge them.
    #[cfg(feature = "live")]
    Serve(Box<serve::Arguments>),
    /// Compare two saved results: how the newer one, B, differs from A.
    Compare(compare::Arguments),
    /// Validate scenarios and print them with every default filled in.
    Check(check::Arguments),
    /// List what there is.
    List(list::Arguments),
    /// Print a JSON Schema.
    Schema(schema::Arguments),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
}

/// The whole program: reads the process's arguments, acts, and says how it ended.
pub fn main(registry: &Registry) -> ExitCode {
    let cli = Cli::parse();
    let choice = match cli.color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
    let done = match cli.verb {
        None => welcome::welcome(registry),
        Some(Verb::Run(arguments)) => run::run(&arguments, registry),
        #[cfg(feature = "live")]
        Some(Verb::Drive(arguments)) => drive::drive(&arguments, registry),
        #[cfg(feature = "live")]
        Some(Verb::Serve(arguments)) => serve::serve(&arguments, registry),
        Some(Verb::Compare(arguments)) => compare::compare(&arguments),
        Some(Verb::Check(arguments)) => check::check(&arguments, registry),
        Some(Verb::List(arguments)) => list::list(&arguments, registry),
        Some(Verb::Schema(arguments)) => schema::schema(&arguments, registry),
        Some(Verb::Completions(arguments)) => completions::completions(&arguments),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            complain(&error);
            Exit::of(&error).into()
        }
    }
}

/// Writes to standard output; colours go where there is a terminal. Whoever reads us (`| head`) may have seen enough:
/// that is no error, and the work goes on.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    let written = [text, end].iter().try_for_each(|part| out.write_all(part.as_bytes()));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Ends the program: the command line is wrong.
fn usage(message: &str) -> ! {
    Cli::command().error(clap::error::ErrorKind::ValueValidation, message).exit()
}

/// How wide standard output is, in columns; at most 100, which is what a reader's eye can follow.
fn width() -> usize {
    const WIDEST: usize = 100;
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(WIDEST, |(width, _)| usize::from(width.0).min(WIDEST))
}

/// Writes a line to standard error.
fn tell(text: &str) {
    // Nobody is left to be told if standard error is closed.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes an error to standard error, with the line that is wrong below it.
fn complain(error: &anyhow::Error) {
    let bold = AnsiColor::Red.on_default().bold();
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{bold}error{bold:#}: {error:#}");
    if let Some(excerpt) = error.downcast_ref::<ScenarioError>().and_then(ScenarioError::excerpt) {
        let _ = err.write_all(underlined(excerpt).as_bytes());
    }
}

/// The line as a compiler shows it, with a dim gutter.
fn underlined(Excerpt { line, text, column, width }: &Excerpt) -> String {
    let (dim, mark) = (Style::new().dimmed(), AnsiColor::Red.on_default());
    let number = line.to_string();
    let gutter = " ".repeat(number.len());
    // Tabs stay tabs, so that the mark stands below what it marks.
    let indent: String = text.chars().take(*column).map(|c| if c == '\t' { c } else { ' ' }).collect();
    let carets = "^".repeat(*width);
    format!(
        "{dim}{gutter} |{dim:#}\n{dim}{number} |{dim:#} {text}\n{dim}{gutter} |{dim:#} {indent}{mark}{carets}{mark:#}\n"
    )
}
