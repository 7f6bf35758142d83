//! `floodlab serve`: the fake Telegram, as the binary `fake-telegram` has it.

use fake_telegram::http::cli::{self, Ended, Serve};

use super::exit::Exit;

/// Serves until it is ended, and judges whoever called.
pub(super) fn serve(arguments: &Serve) -> anyhow::Result<Exit> {
    Ok(match cli::run(arguments)? {
        Ended::Well => Exit::Passed,
        Ended::Nothing => Exit::Nothing,
        Ended::GateFailed => Exit::GateFailed,
    })
}
