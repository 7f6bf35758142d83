//! How often something may happen to one message: queues count it in 8 bits and stop at the end.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::strategy::ParameterError;

/// The most that a parameter may say that is reached when so many calls were made: the last number that is counted.
pub(super) const CALLS_MAX: u8 = u8::MAX;

/// The most that a parameter may say that is reached when one more was made.
pub(super) const AGAIN_MAX: u8 = CALLS_MAX - 1;

/// Reads a number from 1 to `MOST`; what is in 8 bits and not among them is for [`check`].
pub(super) fn read<'de, const MOST: u8, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let number = i64::deserialize(deserializer)?;
    u8::try_from(number).map_err(|_| D::Error::custom(outside(number, MOST)))
}

/// The same for a number without which there is no end.
pub(super) fn read_some<'de, const MOST: u8, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u8>, D::Error> {
    let number = i64::deserialize(deserializer)?;
    u8::try_from(number).map(Some).map_err(|_| D::Error::custom(outside(number, MOST) + NO_END))
}

/// Whether a number is from 1 to `most`.
pub(super) fn check(key: &'static str, number: u8, most: u8) -> Result<(), ParameterError> {
    if (1..=most).contains(&number) {
        return Ok(());
    }
    Err(ParameterError { key, message: outside(number.into(), most) })
}

/// The same for a number without which there is no end.
pub(super) fn check_some(key: &'static str, number: Option<u8>, most: u8) -> Result<(), ParameterError> {
    number.map_or(Ok(()), |number| check(key, number, most)).map_err(|mut error| {
        error.message += NO_END;
        error
    })
}

fn outside(number: i64, most: u8) -> String {
    format!("{number} is not from 1 to {most}, and more is not counted of a message")
}

const NO_END: &str = "; leave it out, and there is no end";
