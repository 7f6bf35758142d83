//! `floodlab` with nothing behind it.

use std::path::Path;

use anstyle::Style;

use super::exit::Exit;
use super::list::{SCENARIOS, files};
use crate::registry::Registry;

/// Says what to type first.
pub(super) fn welcome(registry: &Registry) -> anyhow::Result<Exit> {
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let scenarios = files(Path::new(SCENARIOS)).unwrap_or_default();
    let preferred =
        scenarios.iter().find(|file| file.ends_with("platform-day.toml")).or_else(|| scenarios.first());
    let first = preferred.map_or_else(|| "SCENARIO.toml".to_owned(), |file| file.display().to_string());
    let mut text = format!(
        "floodlab {} simulates senders behind rate limits: who was late, why, and what the budget was spent on.\n\n\
         Start with\n\n    {bold}floodlab run {first}{bold:#}\n\n",
        env!("CARGO_PKG_VERSION")
    );
    if !scenarios.is_empty() {
        text += &format!("Scenarios here {dim}(floodlab list scenarios){dim:#}\n");
        let shown = scenarios.iter().take(SHOWN).map(|file| format!("    {}\n", file.display()));
        text.extend(shown);
        if scenarios.len() > SHOWN {
            text += &format!("    {dim}and {} more{dim:#}\n", scenarios.len() - SHOWN);
        }
        text.push('\n');
    }
    let strategies: Vec<&str> = registry.strategies().iter().map(|strategy| strategy.kind).collect();
    if !strategies.is_empty() {
        text += &format!("Strategies: {}\n", strategies.join(", "));
    }
    text += "All commands: floodlab --help\n";
    super::print(&text)?;
    Ok(Exit::Passed)
}

/// How many scenarios fit a first screen.
const SHOWN: usize = 8;
