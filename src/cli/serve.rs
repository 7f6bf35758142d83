//! `floodlab serve`: the fake Telegram, as the binary `fake-telegram` has it, or as a scenario has it.

use std::path::PathBuf;

use fake_telegram::http::cli::{self, Ended, Serve};
use fake_telegram::http::options::Options;

use super::exit::Exit;
use crate::registry::Registry;
use crate::run;
use crate::scenario::Scenario;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Serve this scenario's rules, faults and chats; other flags change them
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    serve: Serve,
}

/// Serves until it is ended, and judges whoever called.
pub(super) fn serve(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let base = match &arguments.scenario {
        Some(file) => run::server(&Scenario::load(file, registry)?, arguments.serve.seed),
        None => Options::default(),
    };
    Ok(match cli::run(&arguments.serve, base)? {
        Ended::Well => Exit::Passed,
        Ended::Nothing => Exit::Nothing,
        Ended::GateFailed => Exit::GateFailed,
    })
}
