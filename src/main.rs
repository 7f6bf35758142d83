//! The `floodlab` command.

use std::process::ExitCode;

use floodlab::{Registry, cli};

/// Much of a run and of a server is allocated and freed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main(&Registry::builtin())
}
