//! Quantities as people write them: `10s`, `30/s`, `20/min`, `100k`, `5%`.
//!
//! A bare number where a unit matters is an error that names the fix. Everything is kept in integers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::Duration;

/// Why a text is not a quantity; the message names the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

/// A rate: `count` events in every `period`, written `30/s`, `20/min`, `1.5/s` or `20/90s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Events in a period.
    pub count: u64,
    /// The period, at least 1 us.
    pub period: Duration,
}

/// A number of things, written `300000`, `300k` or `1.5M`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// A share in parts per million, 0 to 1,000,000, written `5%` or `0.05%`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Rate {
    /// `count` events a second.
    pub const fn per_second(count: u64) -> Self {
        Self { count, period: Duration::from_secs(1) }
    }

    /// `count` events a minute.
    pub const fn per_minute(count: u64) -> Self {
        Self { count, period: Duration::from_mins(1) }
    }
}

impl Share {
    /// Everything.
    pub const ALL: Self = Self(1_000_000);

    /// A share of `ppm` parts per million.
    ///
    /// # Panics
    /// Above 1,000,000.
    pub const fn from_ppm(ppm: u32) -> Self {
        assert!(ppm <= 1_000_000, "a share is at most 100%");
        Self(ppm)
    }

    /// Parts per million, 0 to 1,000,000.
    pub const fn as_ppm(self) -> u32 {
        self.0
    }

    /// This share of `total`, rounded down.
    pub const fn of(self, total: u64) -> u64 {
        (total as u128 * self.0 as u128 / 1_000_000) as u64
    }
}

/// Splits `text` into a decimal number in millionths and what follows it.
fn decimal(text: &str) -> Option<(u128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty())
        || whole.len() > 19
        || fraction.len() > 6
        || fraction.contains('.')
    {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u128 = format!("{fraction:0<6}").parse().ok()?;
    Some((whole * 1_000_000 + fraction, rest.trim()))
}

fn unit_micros(unit: &str) -> Option<u128> {
    Some(match unit {
        "us" | "µs" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "min" | "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        "w" => 604_800_000_000,
        _ => return None,
    })
}

impl FromStr for Duration {
    type Err = UnitError;

    /// Reads one or more of `7us`, `35ms`, `1.5s`, `20min`, `2h`, `3d`, `1w`, added up (`1h30min`).
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || {
            UnitError(format!(
                "`{text}` is not a duration; write it with a unit, as in `35ms`, `10s`, `20min`, `2h`"
            ))
        };
        let mut rest = text.trim();
        let mut micros = 0u128;
        loop {
            let (millionths, after) = decimal(rest).ok_or_else(wrong)?;
            let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, next) = after.split_at(end);
            if unit.trim().is_empty() {
                if millionths == 0 && next.is_empty() && micros == 0 {
                    return Ok(Self::ZERO);
                }
                return Err(UnitError(format!(
                    "`{text}` has no unit; write `{rest}s` for seconds, `{rest}ms` for milliseconds"
                )));
            }
            let size = unit_micros(unit.trim()).ok_or_else(wrong)?;
            micros += millionths * size / 1_000_000;
            if next.is_empty() {
                break;
            }
            rest = next;
        }
        u64::try_from(micros).map(Self::from_micros).map_err(|_| UnitError(format!("`{text}` is too long")))
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError(format!("`{text}` is not a rate; write it as `30/s`, `20/min` or `1.5/s`"));
        let Some((count, period)) = text.split_once('/') else {
            return Err(match decimal(text.trim()) {
                Some((_, "")) => UnitError(format!("`{text}` has no unit; write `{text}/s` or `{text}/min`")),
                _ => wrong(),
            });
        };
        let (millionths, suffix) = decimal(count.trim()).ok_or_else(wrong)?;
        let scale = scale(suffix).ok_or_else(wrong)?;
        let period = period.trim();
        let period = match unit_micros(period) {
            Some(us) => us as u64,
            None => period.parse::<Duration>().map_err(|_| wrong())?.as_micros(),
        };
        if period == 0 {
            return Err(wrong());
        }
        // As written where the count is whole; otherwise over a longer period in which it is.
        let (mut count, mut period) = (millionths * scale, u128::from(period) * 1_000_000);
        let divisor = if count.is_multiple_of(1_000_000) { 1_000_000 } else { gcd(count, period) };
        (count, period) = (count / divisor, period / divisor);
        match (u64::try_from(count), u64::try_from(period)) {
            (Ok(count), Ok(period)) => Ok(Self { count, period: Duration::from_micros(period) }),
            _ => Err(wrong()),
        }
    }
}

fn scale(suffix: &str) -> Option<u128> {
    Some(match suffix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        _ => return None,
    })
}

const fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl FromStr for Count {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError(format!("`{text}` is not a number; write it as `300000`, `300k` or `1.5M`"));
        let (millionths, suffix) = decimal(text.trim()).ok_or_else(wrong)?;
        let value = millionths * scale(suffix).ok_or_else(wrong)?;
        if !value.is_multiple_of(1_000_000) {
            return Err(UnitError(format!("`{text}` is not a whole number")));
        }
        u64::try_from(value / 1_000_000).map(Self).map_err(|_| wrong())
    }
}

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong =
            || UnitError(format!("`{text}` is not a share; write it in per cent, as in `5%` or `0.05%`"));
        let (millionths, unit) = decimal(text.trim()).ok_or_else(wrong)?;
        if unit != "%" {
            return Err(match unit {
                "" => UnitError(format!("`{text}` has no unit; write a share in per cent, as in `5%`")),
                _ => wrong(),
            });
        }
        let ppm = millionths / 100;
        if ppm > 1_000_000 {
            return Err(UnitError(format!("`{text}` is more than 100%")));
        }
        Ok(Self(ppm as u32))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.period.as_micros() {
            1_000_000 => write!(f, "{}/s", self.count),
            60_000_000 => write!(f, "{}/min", self.count),
            3_600_000_000 => write!(f, "{}/h", self.count),
            _ => write!(f, "{}/{}", self.count, self.period),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000 && n.is_multiple_of(100_000) => write!(f, "{}M", n as f64 / 1e6),
            n if n >= 1_000 && n.is_multiple_of(100) => write!(f, "{}k", n as f64 / 1e3),
            n => write!(f, "{n}"),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 1e4)
    }
}

/// Gives a quantity its serde form (a text with a unit; whole numbers too where `number` allows) and its JSON Schema.
macro_rules! quantity {
    ($type:ident, $what:literal, $pattern:literal, number: $number:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                if $number {
                    json_schema!({ "type": ["string", "integer"], "description": $what, "pattern": $pattern })
                } else {
                    json_schema!({ "type": "string", "description": $what, "pattern": $pattern })
                }
            }
        }
    };
}

quantity!(Duration, "a duration with its unit, as in `35ms`, `10s`, `20min`, `2h`", r"^([0-9._]+\s*(us|µs|ms|s|min|m|h|d|w))+$|^0$", number: false);
quantity!(Rate, "a rate with its unit, as in `30/s` or `20/min`", r"^[0-9._]+[kM]?/[0-9._]*(us|ms|s|min|m|h|d|w)$", number: false);
quantity!(Count, "a whole number, as in `300000`, `300k` or `1.5M`", r"^[0-9._]+[kM]?$", number: true);
quantity!(Share, "a share in per cent, as in `5%`", r"^[0-9._]+\s*%$", number: false);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("1h30min".parse(), Ok(Duration::from_mins(90)));
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1_500)));
        assert_eq!("30/s".parse(), Ok(Rate::per_second(30)));
        assert_eq!("20/min".parse(), Ok(Rate::per_minute(20)));
        assert_eq!("1.5/s".parse(), Ok(Rate { count: 3, period: Duration::from_secs(2) }));
        assert_eq!("300k".parse(), Ok(Count(300_000)));
        assert_eq!("0.05%".parse(), Ok(Share::from_ppm(500)));
    }

    #[test]
    fn a_bare_number_is_told_what_to_write() {
        let text = "10".parse::<Duration>().map_err(|e| e.to_string());
        assert_eq!(
            text,
            Err("`10` has no unit; write `10s` for seconds, `10ms` for milliseconds".to_owned())
        );
        assert!("30".parse::<Rate>().is_err_and(|e| e.to_string().contains("`30/s`")));
        assert!("5".parse::<Share>().is_err_and(|e| e.to_string().contains("`5%`")));
        assert!("1.5".parse::<Count>().is_err());
    }

    #[test]
    fn what_is_shown_reads_back() {
        for text in ["30/s", "20/min", "1/s", "7/90s"] {
            let rate: Rate = text.parse().expect("a rate");
            assert_eq!(rate.to_string().parse(), Ok(rate), "{text} shown as {rate}");
        }
        for us in [0, 1, 999, 1_000, 1_001, 1_500_001, 86_400_000_000, 123_456_789] {
            let duration = Duration::from_micros(us);
            assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
