//! How a rate varies over the day.

use std::borrow::Cow;
use std::fmt;

use fake_telegram::time::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::factor::Factor;

/// Minutes in a day.
pub(super) const MINUTES: usize = 24 * 60;

/// How a rate varies over the day; the run starts at midnight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Profile {
    /// The weight of each hour.
    Hours([u32; 24]),
    /// One wave a day.
    Wave(Wave),
}

/// One wave a day: a cosine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wave {
    /// When it is highest, from midnight.
    pub peak: Duration,
    /// The highest rate per lowest rate, at least 1 (measured over hours: 3.2 to 3.5 in a world-wide community).
    pub busiest_over_quietest: Factor,
}

impl Profile {
    /// The weight of each minute of the day in Q32, 1 on average. `None` if all weights are zero.
    pub(super) fn minutes(&self) -> Option<Vec<u64>> {
        let weights: Vec<u64> = match self {
            Self::Hours(hours) => (0..MINUTES).map(|minute| u64::from(hours[minute / 60])).collect(),
            Self::Wave(wave) => wave.minutes(),
        };
        let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        let scale = |weight| ((u128::from(weight) * MINUTES as u128) << 32) / total;
        (total > 0).then(|| weights.into_iter().map(|weight| scale(weight) as u64).collect())
    }
}

impl Wave {
    fn minutes(&self) -> Vec<u64> {
        let ratio = i128::from(self.busiest_over_quietest.as_millionths());
        let one = i128::from(Factor::ONE.as_millionths());
        let peak = (self.peak.as_micros() / Duration::from_mins(1).as_micros()) as usize % MINUTES;
        let weights: Vec<u64> = cosines()
            .map(|cosine| {
                // 1 + (ratio - 1) / (ratio + 1) cos, in Q32.
                (((1i128 << 62) + cosine * (ratio - one) / (ratio + one)) >> 30) as u64
            })
            .collect();
        (0..MINUTES).map(|minute| weights[(minute + MINUTES - peak) % MINUTES]).collect()
    }
}

/// cos(2 pi k / [`MINUTES`]) in Q62 for k = 0, 1, ..., by cos((k + 1) a) = 2 cos(a) cos(k a) - cos((k - 1) a): integers
/// only, so that no day depends on a machine's `libm`.
fn cosines() -> impl Iterator<Item = i128> {
    /// cos(2 pi / 1440) x 2^62.
    const STEP: i128 = 4_611_642_118_500_293_615;
    let pairs = std::iter::successors(Some((1i128 << 62, STEP)), |(this, next)| {
        Some((*next, ((STEP * next) >> 61) - this))
    });
    pairs.map(|(cosine, _)| cosine).take(MINUTES)
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Hours(hours) => hours.serialize(serializer),
            Self::Wave(wave) => wave.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Profile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("24 hourly weights or `{ peak = \"19h\", busiest_over_quietest = 3.3 }`")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, hours: A) -> Result<Profile, A::Error> {
                let hours = <Vec<u32>>::deserialize(SeqAccessDeserializer::new(hours))?;
                let wrong = |hours: Vec<u32>| {
                    let message = format!("{} weights; write one for each of the 24 hours", hours.len());
                    A::Error::custom(message)
                };
                hours.try_into().map_err(wrong).map(Profile::Hours)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, wave: A) -> Result<Profile, A::Error> {
                Wave::deserialize(MapAccessDeserializer::new(wave)).map(Profile::Wave)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Profile {
    fn schema_name() -> Cow<'static, str> {
        "Profile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (hours, wave) = (generator.subschema_for::<[u32; 24]>(), generator.subschema_for::<Wave>());
        json_schema!({ "description": "How a rate varies over the day", "anyOf": [hours, wave] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_are_cosines() {
        for (k, cosine) in cosines().enumerate() {
            let expected = (std::f64::consts::TAU * k as f64 / MINUTES as f64).cos();
            assert!((cosine as f64 / (1u64 << 62) as f64 - expected).abs() < 1e-10, "{k}");
        }
    }

    #[test]
    fn a_day_of_weights_is_one_on_average() {
        let wave = Wave {
            peak: Duration::from_hours(19),
            busiest_over_quietest: Factor::from_millionths(3_300_000),
        };
        let mut hours = [1; 24];
        hours[19] = 25;
        for profile in [Profile::Hours(hours), Profile::Wave(wave.clone())] {
            let minutes = profile.minutes().expect("not all zero");
            let mean = minutes.iter().sum::<u64>() as f64 / MINUTES as f64 / (1u64 << 32) as f64;
            assert!((mean - 1.0).abs() < 1e-6, "{mean}");
        }
        let minutes = wave.minutes();
        let (highest, lowest) = (minutes[19 * 60], minutes[7 * 60]);
        assert!((highest as f64 / lowest as f64 - 3.3).abs() < 1e-6);
        assert_eq!(Profile::Hours([0; 24]).minutes(), None);
    }
}
