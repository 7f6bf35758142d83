//! A fixed window that counts (incident S7): which counter a call belongs to, and when its window ends.

use fake_telegram::time::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a counter's key is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyedBy {
    /// The number of the window since the epoch: a counter that is left behind is never met again.
    Window,
    /// Its place among the windows of a minute (an hour, if it is a minute or longer): met again a cycle later. Windows
    /// that do not divide it evenly make the cycle shorter.
    Cycle,
    /// Nothing but the limiter's name: there is one counter, and its time to live is the window.
    Name,
}

/// Windows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// How long one is.
    pub length: Duration,
    /// What keys are made of.
    pub keyed_by: KeyedBy,
}

impl Windows {
    /// The key of the counter at `now`.
    pub fn key(&self, name: &str, now: Time) -> String {
        let number = now.as_micros() / self.length.as_micros();
        match self.keyed_by {
            KeyedBy::Window => format!("{name}/{number}"),
            KeyedBy::Cycle => format!("{name}/{}", number % self.cycle()),
            KeyedBy::Name => name.to_owned(),
        }
    }

    /// How long a counter lives: its window, and where the key says which window it is, another one, so that a late
    /// call does not begin it anew. In whole windows.
    pub fn time_to_live(&self) -> Duration {
        match self.keyed_by {
            KeyedBy::Window | KeyedBy::Cycle => self.length.saturating_mul(2),
            KeyedBy::Name => self.length,
        }
    }

    /// How long until the next window. Of a counter by name only itself knows; this is how long to wait before asking
    /// it again.
    pub fn rest(&self, now: Time) -> Duration {
        match self.keyed_by {
            KeyedBy::Window | KeyedBy::Cycle => {
                let length = self.length.as_micros();
                Duration::from_micros(length - now.as_micros() % length)
            }
            KeyedBy::Name => self.length,
        }
    }

    /// Windows in a minute; in an hour, if a window is a minute or longer. At least 1.
    fn cycle(&self) -> u64 {
        let minute = Duration::from_mins(1);
        let whole = if self.length < minute { minute } else { Duration::from_hours(1) };
        (whole / self.length).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_the_window_its_place_in_the_minute_or_nothing() {
        let key = |keyed_by, at_ms: u64| {
            let windows = Windows { length: Duration::from_secs(1), keyed_by };
            windows.key("limit", Time::ZERO + Duration::from_millis(at_ms))
        };
        assert_eq!(key(KeyedBy::Window, 61_999), "limit/61");
        assert_eq!(key(KeyedBy::Window, 62_000), "limit/62");
        assert_eq!(key(KeyedBy::Cycle, 61_999), "limit/1");
        assert_eq!(key(KeyedBy::Name, 61_999), "limit");
    }

    #[test]
    fn the_rest_ends_at_the_edge() {
        let windows = Windows { length: Duration::from_secs(1), keyed_by: KeyedBy::Window };
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        assert_eq!(windows.rest(at(1_999)), Duration::from_millis(1));
        assert_eq!(windows.rest(at(2_000)), Duration::from_secs(1));
    }
}
