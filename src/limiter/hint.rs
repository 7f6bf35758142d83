//! What a sender makes of a 429: the wait that it asks for, or a guess where it says nothing (incident S18).

use fake_telegram::hint::RetryHint;
use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Share;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which forms of a wait a sender can read (RFC 9110, 10.2.3 has two).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// Seconds and dates.
    #[default]
    Both,
    /// Seconds alone: a date is taken for nothing.
    Seconds,
    /// None.
    Nothing,
}

/// How long to wait after a 429.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hint {
    /// Which forms it reads.
    pub reads: Reads,
    /// Added to what it reads; never taken away.
    pub margin: Duration,
    /// The wait after a 429 that says nothing, doubled with each further refusal of the message.
    pub fallback: Duration,
    /// The longest such wait, jitter apart.
    pub fallback_max: Duration,
    /// Up to this share of such a wait is added to it, at random, so that those who guess do not guess alike.
    pub fallback_jitter: Share,
    /// No wait is shorter: for servers that say too little.
    pub at_least: Duration,
    /// No wait is longer, whatever was asked for: for servers that say too much. For ever without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Duration>,
}

impl Default for Hint {
    fn default() -> Self {
        Self {
            reads: Reads::Both,
            margin: Duration::from_millis(50),
            fallback: Duration::from_secs(1),
            fallback_max: Duration::from_mins(1),
            fallback_jitter: Share::from_ppm(500_000),
            at_least: Duration::ZERO,
            at_most: None,
        }
    }
}

impl Hint {
    /// How long to wait from `now` after the `refusals`-th refusal in a row (from 1); `draw` gives uniform numbers and
    /// is asked only for a guess.
    pub fn wait(&self, hint: RetryHint, now: Time, refusals: u32, draw: impl FnOnce() -> u32) -> Duration {
        let read = match (self.reads, hint) {
            (Reads::Nothing, _) | (Reads::Seconds, RetryHint::Date(_)) => None,
            _ => hint.wait(now),
        };
        let wait = match read {
            Some(wait) => wait.saturating_add(self.margin),
            None => {
                let doublings = refusals.saturating_sub(1).min(63);
                let guess = self.fallback.saturating_mul(1 << doublings).min(self.fallback_max);
                let most = u128::from(self.fallback_jitter.of(guess.as_micros()));
                guess.saturating_add(Duration::from_micros(((most * u128::from(draw())) >> 32) as u64))
            }
        };
        wait.max(self.at_least).min(self.at_most.unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(100);

    fn wait(hint: &Hint, said: RetryHint) -> u64 {
        hint.wait(said, NOW, 1, || 0).as_micros() / 1_000
    }

    #[test]
    fn reads_what_it_can_and_adds_its_margin() {
        let both = Hint::default();
        assert_eq!(wait(&both, RetryHint::Seconds(7)), 7_050);
        assert_eq!(wait(&both, RetryHint::Date(109)), 9_050);
        assert_eq!(wait(&both, RetryHint::Absent), 1_000);
        let seconds = Hint { reads: Reads::Seconds, ..Hint::default() };
        assert_eq!(wait(&seconds, RetryHint::Seconds(7)), 7_050);
        assert_eq!(wait(&seconds, RetryHint::Date(109)), 1_000);
        let nothing = Hint { reads: Reads::Nothing, ..both };
        assert_eq!(wait(&nothing, RetryHint::Seconds(7)), 1_000);
    }

    #[test]
    fn a_guess_doubles_up_to_its_ceiling_and_jitter_only_adds() {
        let hint = Hint::default();
        let guess = |refusals, draw| hint.wait(RetryHint::Absent, NOW, refusals, || draw).as_micros();
        assert_eq!([1, 2, 3, 6, 7, 99].map(|n| guess(n, 0) / 1_000_000), [1, 2, 4, 32, 60, 60]);
        assert_eq!(guess(1, 1 << 31), 1_250_000);
        assert!((1_499_999..1_500_000).contains(&guess(1, u32::MAX)));
    }

    #[test]
    fn bounds_hold_whatever_is_said() {
        let hint = Hint {
            at_least: Duration::from_secs(5),
            at_most: Some(Duration::from_secs(60)),
            ..Hint::default()
        };
        assert_eq!(wait(&hint, RetryHint::Seconds(1)), 5_000);
        assert_eq!(wait(&hint, RetryHint::Seconds(86_400)), 60_000);
        assert_eq!(wait(&hint, RetryHint::Absent), 5_000);
    }
}
