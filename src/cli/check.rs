//! `floodlab check`.

use std::path::PathBuf;

use super::exit::Exit;
use crate::registry::Registry;
use crate::scenario::Scenario;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Scenario files.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// Print nothing about scenarios that are valid.
    #[arg(long, short)]
    quiet: bool,
}

/// Validates every scenario; all that are invalid are told, and the last error decides.
pub(super) fn check(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let mut exit = Exit::Passed;
    for file in &arguments.scenarios {
        match Scenario::load(file, registry) {
            Ok(_) if arguments.quiet => {}
            Ok(scenario) => {
                super::print(&format!(
                    "# {} (hash {})\n\n{}",
                    file.display(),
                    scenario.hash,
                    scenario.to_toml()
                ))?;
            }
            Err(error) => {
                super::complain(&error.into());
                exit = Exit::Invalid;
            }
        }
    }
    Ok(exit)
}
