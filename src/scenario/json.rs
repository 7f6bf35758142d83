//! JSON as if it were TOML: the same spanned tree, so that everything after it, errors included, is the same.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// What is wrong, and where.
pub(super) struct JsonError {
    pub(super) offset: usize,
    pub(super) message: String,
}

/// Reads an object.
pub(super) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, JsonError> {
    let raw = serde_json::from_str(text).map_err(|error| {
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        // "... at line 3 column 7": the position is shown anyway.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let offset = line_start + error.column().saturating_sub(1);
        JsonError { offset, message: format!("not JSON: {message}") }
    })?;
    let value = Reader { text }.value(raw)?;
    let span = value.span();
    match value.into_inner() {
        DeValue::Table(table) => Ok(Spanned::new(span, table)),
        _ => Err(JsonError { offset: span.start, message: "a scenario is an object".to_owned() }),
    }
}

struct Reader<'i> {
    text: &'i str,
}

impl<'i> Reader<'i> {
    /// Where a part of the text begins: raw values are borrowed from it.
    fn offset(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.text.as_ptr() as usize
    }

    fn value(&self, raw: &'i RawValue) -> Result<Spanned<DeValue<'i>>, JsonError> {
        let json = raw.get();
        let offset = self.offset(json);
        let wrong = |message: &str| JsonError { offset, message: message.to_owned() };
        let value = match json.as_bytes()[0] {
            b'{' => DeValue::Table(self.table(serde_json::from_str(json).expect("already checked"))?),
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(json).expect("already checked");
                let mut array = DeArray::new();
                for item in items {
                    array.push(self.value(item)?);
                }
                DeValue::Array(array)
            }
            b'"' => {
                DeValue::String(serde_json::from_str::<String>(json).map_err(|_| wrong("not a text"))?.into())
            }
            b't' | b'f' => DeValue::Boolean(json == "true"),
            b'n' => return Err(wrong("`null` is no value; leave the key out")),
            // Numbers of JSON are numbers of TOML.
            _ => DeValue::parse(json).map_err(|_| wrong("not a number"))?.into_inner(),
        };
        Ok(Spanned::new(offset..offset + json.len(), value))
    }

    fn table(&self, Object(entries): Object<'i>) -> Result<DeTable<'i>, JsonError> {
        let mut table = DeTable::new();
        for (key, raw) in entries {
            let value = self.value(raw)?;
            // The key ends before the colon before the value.
            let before = self.text[..value.span().start].trim_end().trim_end_matches(':').trim_end();
            let span = before.len().saturating_sub(key.len() + 2)..before.len();
            let offset = span.start;
            let message = format!("duplicate key `{key}`");
            if table.insert(Spanned::new(span, key.into()), value).is_some() {
                return Err(JsonError { offset, message });
            }
        }
        Ok(table)
    }
}

/// The entries of an object in their order.
struct Object<'i>(Vec<(String, &'i RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
