//! A number without a unit, exact.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A positive number with at most six decimals, kept in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u64);

impl Factor {
    /// One.
    pub const ONE: Self = Self(1_000_000);

    /// A factor in millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    /// In millionths.
    pub const fn as_millionths(self) -> u64 {
        self.0
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(Self::ONE.0) {
            serializer.serialize_u64(self.0 / Self::ONE.0)
        } else {
            serializer.serialize_f64(self.0 as f64 / Self::ONE.0 as f64)
        }
    }
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Factor;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a positive number with at most six decimals, as in `2.5`")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Factor, E> {
                self.visit_f64(number as f64)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Factor, E> {
                self.visit_f64(number as f64)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Factor, E> {
                // Rounding and comparing are exact on every machine; a decimal as written is the nearest float.
                let millionths = (number * 1e6).round();
                if !(1.0..=1e15).contains(&millionths) || (millionths / 1e6 - number).abs() > 1e-9 * number {
                    return Err(E::invalid_value(de::Unexpected::Float(number), &self));
                }
                Ok(Factor(millionths as u64))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Factor {
    fn schema_name() -> Cow<'static, str> {
        "Factor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "a positive number with at most six decimals",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_kept_as_written() {
        #[derive(Deserialize)]
        struct One {
            factor: Factor,
        }
        let read = |text: &str| toml::from_str::<One>(&format!("factor = {text}")).map(|one| one.factor);
        assert_eq!(read("10"), Ok(Factor(10_000_000)));
        assert_eq!(read("2.15"), Ok(Factor(2_150_000)));
        assert_eq!(read("0.000001"), Ok(Factor(1)));
        for wrong in ["0", "-1", "1e-7", "nan", "inf", "1e300"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
