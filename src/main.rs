//! The `floodlab` command.

use std::process::ExitCode;

use floodlab::{Registry, cli};

fn main() -> ExitCode {
    cli::main(&Registry::builtin())
}
