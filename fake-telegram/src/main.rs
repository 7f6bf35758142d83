//! The fake Telegram as a program: the same as `floodlab serve`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use fake_telegram::http::cli::{self, Ended, Invalid, Serve};
use fake_telegram::http::options::Options;

/// Much of what a server does is to allocate and free.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Bot API server that limits, punishes and fails as Telegram does, on this machine.
///
/// Exit codes: 0 all gates passed, 1 unexpected error, 2 usage, 4 gates and nobody called, 99 a gate failed, 104 a flag
/// that means nothing.
#[derive(Debug, Parser)]
#[command(name = "fake-telegram", version)]
struct Cli {
    #[command(flatten)]
    serve: Serve,
}

fn main() -> ExitCode {
    match cli::run(&Cli::parse().serve, Options::default()) {
        Ok(Ended::Well) => ExitCode::SUCCESS,
        Ok(Ended::Nothing) => 4.into(),
        Ok(Ended::GateFailed) => 99.into(),
        Err(error) => {
            // Where even this cannot be said, the code says it.
            drop(writeln!(anstream::stderr(), "error: {error:#}"));
            if error.is::<Invalid>() { 104.into() } else { 1.into() }
        }
    }
}
