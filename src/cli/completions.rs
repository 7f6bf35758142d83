//! `floodlab completions`.

use clap::CommandFactory;

use super::{Cli, exit::Exit};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The shell.
    shell: clap_complete::Shell,
}

pub(super) fn completions(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "floodlab", &mut script);
    super::print(&String::from_utf8(script)?)?;
    Ok(Exit::Passed)
}
