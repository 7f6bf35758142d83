//! `floodlab schema`.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};

use super::exit::{Exit, Invalid};
use crate::compare::Comparison;
use crate::outcome::Report;
use crate::registry::Registry;
use crate::scenario;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Of a scenario's file.
    Scenario,
    /// Of `report.json`.
    Report,
    /// Of what `compare --format json` prints.
    Comparison,
    /// Of the parameters of a strategy.
    Strategy {
        /// The strategy: `floodlab list strategies`.
        kind: String,
    },
    /// Of the parameters of a workload.
    Workload {
        /// The workload: `floodlab list workloads`.
        kind: String,
    },
}

pub(super) fn schema(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let invalid = |error: crate::registry::UnknownKind| Invalid(error.to_string());
    let schema = match &arguments.what {
        What::Scenario => scenario::schema(registry),
        What::Report => generator().into_root_schema_for::<Report>(),
        What::Comparison => generator().into_root_schema_for::<Comparison>(),
        What::Strategy { kind } => root(registry.strategy(kind).map_err(invalid)?.schema),
        What::Workload { kind } => root(registry.workload(kind).map_err(invalid)?.schema),
    };
    super::print(&serde_json::to_string_pretty(&schema)?)?;
    Ok(Exit::Passed)
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}

/// The schema as a document of its own.
fn root(schema: fn(&mut SchemaGenerator) -> Schema) -> Schema {
    let mut generator = generator();
    let mut root = schema(&mut generator);
    let reference = root.get("$ref").and_then(|reference| reference.as_str()).map(str::to_owned);
    let mut definitions = generator.take_definitions(true);
    let own = reference.as_deref().and_then(|reference| reference.rsplit('/').next());
    if let Some(own) = own.and_then(|own| definitions.remove(own)) {
        root = own.try_into().expect("a definition is a schema");
    }
    let dialect = generator.settings().meta_schema.as_deref().unwrap_or_default();
    root.insert("$schema".to_owned(), dialect.into());
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), definitions.into());
    }
    root
}
