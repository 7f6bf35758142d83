//! Strategies that are nothing but a choice of parts, and parts that are written by name or as a table.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::sender::{Parts, Sender};
use super::{CallNames, ParameterError, Shares, Strategy, Surroundings};
use crate::env::Env;

/// A choice of parts with a name.
pub trait Composition: Send + Sync + 'static {
    /// Its name in a scenario, kebab-case.
    const KIND: &'static str;
    /// One line for `floodlab list strategies`.
    const SUMMARY: &'static str;

    /// Its parts.
    fn parts() -> Sender;
}

/// A [`Composition`] as a strategy, with the parts that a scenario writes in the place of its own.
pub struct Composed<C> {
    sender: Sender,
    composition: PhantomData<fn() -> C>,
}

/// A part by its name, as in `"wait"`, or as a table with its `kind` and parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<T>(pub T);

/// Of a part that has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParameters {}

impl<C: Composition> Strategy for Composed<C> {
    const KIND: &'static str = C::KIND;
    const SUMMARY: &'static str = C::SUMMARY;

    fn check(&self, at: &Surroundings<'_>) -> Result<(), ParameterError> {
        self.sender.check()?;
        self.sender.check_at(at)
    }

    fn calls(&self) -> CallNames {
        self.sender.calls()
    }

    fn shares(&self) -> Shares {
        self.sender.shares()
    }

    fn scripts(&self) -> CallNames {
        Sender::SCRIPTS.to_vec()
    }

    fn run(self, env: Env) -> impl Future<Output = ()> + 'static {
        self.sender.run(env)
    }
}

impl<C> Clone for Composed<C> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), composition: PhantomData }
    }
}

impl<C> fmt::Debug for Composed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sender.fmt(f)
    }
}

impl<C> Serialize for Composed<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.sender.serialize(serializer)
    }
}

impl<'de, C: Composition> Deserialize<'de> for Composed<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sender = Parts::deserialize(deserializer)?.over(C::parts());
        Ok(Self { sender, composition: PhantomData })
    }
}

impl<C> JsonSchema for Composed<C> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Parts::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Parts::json_schema(generator)
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName<T>(PhantomData<T>);

        impl<'de, T: DeserializeOwned> Visitor<'de> for ByName<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, or a table with its `kind`")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                let table = MapDeserializer::new(std::iter::once(("kind", name)));
                T::deserialize(table).map(Named)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(table)).map(Named)
            }
        }

        deserializer.deserialize_any(ByName(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "type": "string" }, table] })
    }
}
