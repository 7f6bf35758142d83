//! The JSON Schema of a scenario's file, made of the types that read it and of the registry.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use fake_telegram::fault::Fault;
use fake_telegram::profile::ServerSettings;

use super::settings::{GroupSettings, Settings, WorkloadSettings};
use crate::gate::Written;
use crate::registry::Registry;

/// The JSON Schema (2020-12) of a scenario's file with the strategies and workloads of `registry`.
pub fn schema(registry: &Registry) -> Schema {
    let generator = &mut SchemaGenerator::default();
    let workloads: Vec<Value> = registry
        .workloads()
        .iter()
        .map(|workload| {
            let own = (workload.schema)(generator);
            let mut table = object::<WorkloadSettings>(generator);
            extend(&mut table, resolve(generator, &own));
            table["properties"]["kind"] = json!({ "const": workload.kind });
            table["description"] = workload.summary.into();
            table
        })
        .collect();
    let strategies: Vec<Value> = registry
        .strategies()
        .iter()
        .map(|strategy| {
            let own = (strategy.schema)(generator);
            let mut table = resolve(generator, &own);
            extend(
                &mut table,
                json!({ "properties": { "kind": { "const": strategy.kind } }, "required": ["kind"] }),
            );
            table["description"] = strategy.summary.into();
            table
        })
        .collect();
    let kinds: Vec<Value> = registry.strategies().iter().map(|strategy| strategy.kind.into()).collect();
    let strategy = json!({
        "description": "A strategy: its kind, or a table with its kind and parameters.",
        "anyOf": [{ "enum": kinds }, { "oneOf": strategies }],
    });

    let mut group = object::<GroupSettings>(generator);
    extend(
        &mut group,
        json!({ "properties": { "strategy": { "$ref": "#/$defs/strategy" } }, "required": ["strategy"] }),
    );
    let mut design = object::<GroupSettings>(generator);
    extend(
        &mut design,
        json!({ "properties": {
        "strategy": { "$ref": "#/$defs/strategy" },
        "group": { "description": "Process groups, instead of one `strategy`.", "type": "array", "items": group },
    } }),
    );
    design["oneOf"] = json!([{ "required": ["strategy"] }, { "required": ["group"] }]);

    let mut server = object::<ServerSettings>(generator);
    let fault = generator.subschema_for::<Fault>();
    extend(
        &mut server,
        json!({ "properties": { "fault": {
        "description": "What goes wrong beside the limits.", "type": "array", "items": fault,
    } } }),
    );

    let mut scenario = object::<Settings>(generator);
    let expect = generator.subschema_for::<Written>();
    extend(
        &mut scenario,
        json!({
            "properties": {
                "server": server,
                "workload": {
                    "description": "What there is to send.", "type": "object", "minProperties": 1,
                    "additionalProperties": { "oneOf": workloads },
                },
                "design": { "description": "What is compared.", "type": "array", "minItems": 1, "items": design },
                "gate": { "description": "What designs must pass.", "type": "array", "items": expect },
                "expect": { "description": "What the scenario is known to show.", "type": "array", "items": expect },
            },
            "required": ["workload", "design"],
        }),
    );
    scenario["description"] = "An experiment: docs/scenario.md.".into();
    let mut definitions: Map<String, Value> = generator.take_definitions(true);
    definitions.insert("strategy".to_owned(), strategy);
    definitions.sort_keys();
    let mut schema = json_schema!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "floodlab scenario" });
    for (key, value) in scenario.as_object().expect("an object") {
        schema.insert(key.clone(), value.clone());
    }
    schema.insert("$defs".to_owned(), definitions.into());
    schema
}

/// The schema of a struct, in place.
fn object<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

/// What a schema refers to, if it is a reference to a definition; the definition stands in place then.
fn resolve(generator: &mut SchemaGenerator, schema: &Schema) -> Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.rsplit('/').next());
    match name.and_then(|name| generator.definitions_mut().remove(name)) {
        Some(definition) => definition,
        None => schema.clone().to_value(),
    }
}

/// Adds the properties and required keys of `more`.
fn extend(object: &mut Value, more: Value) {
    let object = object.as_object_mut().expect("the schema of a struct");
    for (key, value) in more.as_object().into_iter().flatten() {
        match (object.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new.clone()),
            (Some(Value::Array(old)), Value::Array(new)) => old.extend(new.iter().cloned()),
            _ => {
                object.insert(key.clone(), value.clone());
            }
        }
    }
}
