//! The parameters of a call, wherever they came from: query, form, JSON or multipart (`telegram.md` 2.1).

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// The parameters of a call: query and body, merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params {
    fields: Fields,
    uploads: IndexMap<String, Upload, FxBuildHasher>,
}

/// Values by name, in the order in which they came; of one name the last one counts. A call has a handful, which are
/// compared sooner than hashed; of more than [`FIELDS_MAX`] the rest is not read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields(Vec<(String, Value)>);

/// An uploaded file: a part of a multipart body with a file name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upload {
    /// What its client calls it.
    pub file_name: Option<String>,
    /// Its media type, as its client has it.
    pub content_type: Option<String>,
    /// What is in it.
    pub bytes: Bytes,
}

impl Params {
    /// Sets a parameter, whatever was said before.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        self.fields.push((name.into(), value));
    }

    /// Sets many.
    pub(super) fn merge(&mut self, fields: Fields) {
        if self.fields.0.is_empty() {
            self.fields = fields;
        } else {
            fields.0.into_iter().for_each(|field| self.fields.push(field));
        }
    }

    /// Takes a parameter out, as [`Params::get`] has it.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let taken = self.get(name).cloned();
        self.fields.0.retain(|(known, _)| known != name);
        taken
    }

    /// Adds the file of the part `part`.
    pub fn attach(&mut self, part: impl Into<String>, upload: Upload) {
        self.uploads.insert(part.into(), upload);
    }

    /// A parameter as it came: from JSON a value of any type, from elsewhere text.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// A parameter as text; numbers and truth values are written out.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.get(name)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            other => Some(Cow::Owned(other.to_string())),
        }
    }

    /// A parameter as a whole number, written as a number or as text.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Whether a parameter is true, as any client writes it.
    pub fn is_true(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Bool(truth)) => *truth,
            Some(Value::String(text)) => {
                matches!(text.to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "y" | "t")
            }
            Some(Value::Number(number)) => number.as_i64() == Some(1),
            _ => false,
        }
    }

    /// A parameter that is a structure: a nested value of a JSON body, or JSON text from elsewhere. `None` if it is
    /// absent, empty or no JSON.
    pub fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        match self.get(name)? {
            Value::String(text) => serde_json::from_str(text).ok().map(Cow::Owned),
            value => Some(Cow::Borrowed(value)),
        }
    }

    /// The file of a parameter: the part of that name, or the one that the parameter names as `attach://PART`.
    pub fn file(&self, name: &str) -> Option<&Upload> {
        self.uploads.get(name).or_else(|| self.attachment(self.fields.get(name)?.as_str()?))
    }

    /// The file that `attach://PART` names.
    pub fn attachment(&self, reference: &str) -> Option<&Upload> {
        self.uploads.get(reference.strip_prefix("attach://")?)
    }
}

/// No method has more than a few dozen parameters.
const FIELDS_MAX: usize = 1_000;

impl Fields {
    fn push(&mut self, field: (String, Value)) {
        if self.0.len() < FIELDS_MAX {
            self.0.push(field);
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().rfind(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(field) = object.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(value: Value) -> Params {
        let mut params = Params::default();
        params.set("it", value);
        params
    }

    #[test]
    fn numbers_and_truths_come_in_any_form() {
        for value in [json!(-100_123), json!("-100123"), json!(" -100123 ")] {
            assert_eq!(with(value).integer("it"), Some(-100_123));
        }
        for value in [json!(true), json!("True"), json!("true"), json!(1), json!("1")] {
            assert!(with(value).is_true("it"));
        }
        for value in [json!(false), json!("False"), json!(0), json!("no"), json!(null)] {
            assert!(!with(value).is_true("it"));
        }
        assert_eq!(with(json!(7)).text("it").as_deref(), Some("7"));
        assert_eq!(with(json!(1.5)).integer("it"), None);
    }

    #[test]
    fn of_one_name_the_last_counts() {
        let mut params = with(json!(1));
        params.merge(serde_json::from_str(r#"{"it":2,"other":0,"it":3}"#).expect("an object"));
        assert_eq!(params.integer("it"), Some(3));
        params.set("it", Value::Null);
        assert_eq!(params.get("it"), None);
        params.set("it", json!(4));
        assert_eq!((params.take("it"), params.get("it")), (Some(json!(4)), None));
    }

    #[test]
    fn a_flood_of_parameters_is_not_read() {
        let mut params = with(json!(1));
        for number in 0..2 * FIELDS_MAX {
            params.set(number.to_string(), Value::Null);
        }
        assert_eq!((params.fields.0.len(), params.integer("it")), (FIELDS_MAX, Some(1)));
    }

    #[test]
    fn structures_come_nested_or_as_text() {
        for value in [json!(["message"]), json!("[\"message\"]")] {
            assert_eq!(with(value).json("it").as_deref(), Some(&json!(["message"])));
        }
        assert_eq!(with(json!("[")).json("it"), None);
    }

    #[test]
    fn a_file_is_a_part_of_that_name_or_a_named_one() {
        let upload = Upload { bytes: Bytes::from_static(b"x"), ..Upload::default() };
        let mut params = with(json!("attach://part"));
        params.attach("part", upload.clone());
        assert_eq!(params.file("it"), Some(&upload));
        params.set("photo", json!(""));
        params.attach("photo", upload.clone());
        assert_eq!(params.file("photo"), Some(&upload), "an upload beats an empty text");
        assert_eq!(params.file("other"), None);
    }
}
