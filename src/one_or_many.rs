//! A list that may be written without brackets when it has one item.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer};
use serde::{Serialize, Serializer};

/// A list; in a file one item may stand without brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

struct Visitor<T>(PhantomData<T>);

/// Not serde's `untagged`: an error inside an item must stay that error.
impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one item or a list")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(OneOrMany)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, item: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(item)).map(|item| OneOrMany(vec![item]))
    }

    fn visit_str<E: de::Error>(self, item: &str) -> Result<Self::Value, E> {
        T::deserialize(item.into_deserializer()).map(|item| OneOrMany(vec![item]))
    }

    fn visit_i64<E: de::Error>(self, item: i64) -> Result<Self::Value, E> {
        T::deserialize(item.into_deserializer()).map(|item| OneOrMany(vec![item]))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one.clone(), { "type": "array", "items": one }] })
    }
}
