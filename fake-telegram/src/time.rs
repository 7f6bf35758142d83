//! Integer time: a point ([`Time`]) and a distance ([`Duration`]), both whole microseconds.
//!
//! Time is passed in by whoever drives the model; nothing here reads a clock.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// A point in virtual time: microseconds from the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A distance in time: whole microseconds, never negative.
///
/// In TOML and on the command line it is written with a unit: `"35ms"`, `"1.5s"`, `"2h"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Time {
    /// The start of every run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `us` microseconds after the start.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// The point `seconds` seconds after the start.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * SECOND)
    }

    /// Microseconds from the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The distance from `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The later point, at most [`Time::MAX`].
    pub const fn saturating_add(self, distance: Duration) -> Self {
        Self(self.0.saturating_add(distance.0))
    }
}

impl Duration {
    /// No distance.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000)
    }

    /// `seconds` seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * SECOND)
    }

    /// `minutes` minutes.
    pub const fn from_mins(minutes: u64) -> Self {
        Self(minutes * 60 * SECOND)
    }

    /// `hours` hours.
    pub const fn from_hours(hours: u64) -> Self {
        Self(hours * 3_600 * SECOND)
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Seconds, rounded up: what a `retry_after` that must suffice says.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(SECOND)
    }

    /// Seconds as a float, for display only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Whether this is no distance at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The longer distance, at most [`Duration::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The distance `factor` times as long, at most [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// What a sum that leaves the 584,000 years of a run breaks; sums with what people write saturate.
const FINITE: &str = "time is finite";

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, distance: Duration) -> Self {
        Self(self.0.checked_add(distance.0).expect(FINITE))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, distance: Duration) {
        *self = *self + distance;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, distance: Duration) -> Self {
        Self(self.0.checked_sub(distance.0).expect("nothing was before the start"))
    }
}

/// The distance between two points.
///
/// # Panics
/// If `earlier` is later: a backward difference is a defect ([`Time::saturating_since`] is the explicit exception).
impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0.checked_sub(earlier.0).expect("time runs forward"))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect(FINITE))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("durations are not negative"))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.checked_mul(factor).expect(FINITE))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

/// How many times `other` fits, rounded down.
impl Div for Duration {
    type Output = u64;
    fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

/// Exact and re-readable: the largest unit in which the value is whole, or has at most three decimals: `1.5s`, `250ms`, `2h`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 5] = [
            ("d", 86_400 * SECOND),
            ("h", 3_600 * SECOND),
            ("min", 60 * SECOND),
            ("s", SECOND),
            ("ms", 1_000),
        ];
        for (unit, size) in UNITS {
            if self.0 != 0 && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
            if (unit == "s" || unit == "ms") && self.0 > size {
                let thousandths = self.0 % size * 1_000 / size;
                if thousandths * size / 1_000 == self.0 % size {
                    let decimals = format!("{thousandths:03}");
                    return write!(f, "{}.{}{unit}", self.0 / size, decimals.trim_end_matches('0'));
                }
            }
        }
        if self.0 == 0 { f.write_str("0s") } else { write!(f, "{}us", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_largest_unit_that_stays_exact() {
        let check = |us, expected: &str| assert_eq!(Duration::from_micros(us).to_string(), expected);
        check(0, "0s");
        check(7, "7us");
        check(250_000, "250ms");
        check(1_500_000, "1.5s");
        check(1_500_001, "1500.001ms");
        check(90_000_000, "90s");
        check(120_000_000, "2min");
        check(7_200_000_000, "2h");
    }

    #[test]
    fn rounds_a_wait_up_to_whole_seconds() {
        assert_eq!(Duration::from_micros(1).as_secs_ceil(), 1);
        assert_eq!(Duration::from_secs(3).as_secs_ceil(), 3);
    }

    #[test]
    #[should_panic(expected = "time runs forward")]
    fn a_backward_difference_panics() {
        let _ = Time::ZERO - Time::from_secs(1);
    }
}
