//! What a 429 says about the wait: in seconds, as a date, or nothing; true or not (incident T8).
//!
//! A rule is a pure function from the true wait to the hint. Whatever is said, the limit and its penalty are what they
//! are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::{Duration, Time};
use crate::units::Share;

/// What a 429 says about the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryHint {
    /// So many seconds, from when the answer is read.
    Seconds(u32),
    /// A date: this many whole seconds after the start of the run.
    Date(u32),
    /// Nothing.
    Absent,
}

/// How a server chooses what to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HintRule {
    /// The wait in whole seconds, rounded up: waiting so long is enough.
    #[default]
    Exact,
    /// The same as an HTTP-date: the end of the wait, rounded up to a whole second.
    Date,
    /// Nothing at all.
    Absent,
    /// Always this many seconds, whatever the state.
    Constant(u32),
    /// This share of the exact seconds, rounded down: a lie, down to zero.
    Short(Share),
}

/// What a server says of the wait: a rule's name, as in TOML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HintKind {
    /// The wait in whole seconds.
    Exact,
    /// The same as an HTTP-date.
    Date,
    /// Nothing.
    Absent,
    /// Always `after`, whatever the state.
    Constant,
    /// A `share` of the wait: a lie.
    Short,
}

impl RetryHint {
    /// How long it asks a client to wait that reads it at `now`, and understands both forms; `None` if it asks for
    /// nothing. A date that is over asks for no time at all.
    pub const fn wait(self, now: Time) -> Option<Duration> {
        match self {
            Self::Seconds(seconds) => Some(Duration::from_secs(seconds as u64)),
            Self::Date(at) => Some(Time::from_secs(at as u64).saturating_since(now)),
            Self::Absent => None,
        }
    }

    /// The value of the header `Retry-After` (RFC 9110, 10.2.3), `None` without one.
    ///
    /// The model has no wall clock: a date is written as if the run had begun at the Unix epoch.
    pub fn header(self) -> Option<String> {
        match self {
            Self::Seconds(seconds) => Some(seconds.to_string()),
            Self::Date(at) => Some(http_date(at)),
            Self::Absent => None,
        }
    }
}

impl HintRule {
    /// What is said of a refusal at `at` that lasts `wait`.
    pub fn say(self, at: Time, wait: Duration) -> RetryHint {
        let narrow = |seconds| u32::try_from(seconds).unwrap_or(u32::MAX);
        let seconds = wait.as_secs_ceil();
        match self {
            Self::Exact => RetryHint::Seconds(narrow(seconds)),
            Self::Date => {
                RetryHint::Date(narrow(at.saturating_add(wait).saturating_since(Time::ZERO).as_secs_ceil()))
            }
            Self::Absent => RetryHint::Absent,
            Self::Constant(seconds) => RetryHint::Seconds(seconds),
            Self::Short(share) => RetryHint::Seconds(narrow(share.of(seconds))),
        }
    }

    /// Its name.
    pub const fn kind(self) -> HintKind {
        match self {
            Self::Exact => HintKind::Exact,
            Self::Date => HintKind::Date,
            Self::Absent => HintKind::Absent,
            Self::Constant(_) => HintKind::Constant,
            Self::Short(_) => HintKind::Short,
        }
    }
}

/// An IMF-fixdate (RFC 9110, 5.6.7), so many seconds after the Unix epoch, which was a Thursday.
fn http_date(seconds: u32) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u32| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut year, mut month, mut day) = (1970, 0, days);
    while day >= 365 + u32::from(is_leap(year)) {
        day -= 365 + u32::from(is_leap(year));
        year += 1;
    }
    let length = |month: usize| match month {
        1 => 28 + u32::from(is_leap(year)),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    };
    while day >= length(month) {
        day -= length(month);
        month += 1;
    }
    let (weekday, month) = (DAYS[days as usize % 7], MONTHS[month]);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 9.4 s from second 20.5 on.
    fn said(rule: HintRule) -> RetryHint {
        rule.say(Time::from_micros(20_500_000), Duration::from_millis(9_400))
    }

    #[test]
    fn each_dialect_says_the_wait_in_its_own_way() {
        assert_eq!(said(HintRule::Exact), RetryHint::Seconds(10));
        assert_eq!(said(HintRule::Date), RetryHint::Date(30));
        assert_eq!(said(HintRule::Absent), RetryHint::Absent);
        assert_eq!(said(HintRule::Constant(3)), RetryHint::Seconds(3));
        assert_eq!(said(HintRule::Short(Share::from_ppm(250_000))), RetryHint::Seconds(2));
    }

    #[test]
    fn a_date_shrinks_as_time_goes_by_and_seconds_do_not() {
        let wait = |hint: RetryHint| [20, 29, 31].map(|t| hint.wait(Time::from_secs(t)));
        assert_eq!(wait(RetryHint::Date(30)), [10, 1, 0].map(|s| Some(Duration::from_secs(s))));
        assert_eq!(wait(RetryHint::Seconds(10)), [Some(Duration::from_secs(10)); 3]);
        assert_eq!(wait(RetryHint::Absent), [None; 3]);
    }

    /// Dates from `date -u -d @N "+%a, %d %b %Y %H:%M:%S GMT"`; the second is the example of RFC 9110.
    #[test]
    fn a_date_is_written_as_http_wants_it() {
        let header = |at| RetryHint::Date(at).header().expect("a date has a header");
        assert_eq!(header(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(header(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(header(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(header(1_735_689_599), "Tue, 31 Dec 2024 23:59:59 GMT");
        assert_eq!(header(u32::MAX), "Sun, 07 Feb 2106 06:28:15 GMT");
        assert_eq!(RetryHint::Seconds(35).header().as_deref(), Some("35"));
        assert_eq!(RetryHint::Absent.header(), None);
    }
}
