//! What a server adds for calls made too early: the pause after a refusal, and how it grows.
//!
//! A rule is a pure function: the penalty before, the instant and the wait of the limit give the penalty after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::{Duration, Time};

/// How refusals turn into penalties; for each limit and key on its own.
///
/// While a penalty runs, calls are refused without asking the limit, and every answer carries the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PenaltyRule {
    /// Early calls double it (incident T3; the numbers are invented, hence parameters).
    ///
    /// The first refusal of an episode sets N = the limit's wait in whole seconds and the deadline N later. A call
    /// before the deadline, and later than `grace` after the refusal that last *set* the deadline, is early:
    /// N := min(2N, `cap`), deadline := min(its arrival + N, first refusal + `cap`). N is remembered: the next episode
    /// begins at no less than N / 2^q, q = how often `halve_every` fits since the last deadline.
    EarlyRetry {
        /// Calls this soon after the refusal were on the wire already: not early. Default 500 ms; sweep 0-2 s.
        grace: Duration,
        /// The shortest N. Default 1 s; minutes make a ban.
        minimum: Duration,
        /// The longest N, and the longest episode, hammered or not. Default 1 h; sweep 1 min-1 d.
        cap: Duration,
        /// Good behaviour this long halves the remembered N; zero forgets it at once. Default 10 min; sweep 1 min-1 d.
        halve_every: Duration,
    },
    /// The deadline is fixed, and each new offence doubles the next one (`telegram.md` 5.2: three logs show fixed
    /// deadlines, others long memory; the shape is invented).
    ///
    /// An offence is a refusal that is *answered* while no penalty runs. N = the limit's wait in whole seconds x
    /// 2^level, at most `cap`.
    Reoffence {
        /// An offence this soon after the last deadline raises the level by one. Default 10 min; sweep 1 min-1 d.
        within: Duration,
        /// The shortest N. Default 1 s.
        minimum: Duration,
        /// The longest N. Default 3 h (`telegram.md` 5.1: 10,072 s seen).
        cap: Duration,
        /// Quiet this long after the last deadline lowers the level by one; zero forgets it at once. Default 30 min.
        forgive_every: Duration,
    },
}

/// A penalty rule's name, as in TOML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PenaltyKind {
    /// [`PenaltyRule::EarlyRetry`].
    EarlyRetry,
    /// [`PenaltyRule::Reoffence`].
    Reoffence,
}

/// The penalty of one key of one limit, running or over (then it is what is remembered).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Penalty {
    /// From when on calls are heard again.
    pub deadline: Time,
    /// The refusal that last set the deadline.
    pub set_at: Time,
    /// The first refusal of the episode.
    pub first_at: Time,
    /// N: how long the penalty was when it was last set, whole seconds.
    pub length: Duration,
    /// How often it was doubled for offending again ([`PenaltyRule::Reoffence`]), at most [`LEVEL_MAX`].
    pub level: u32,
}

impl PenaltyRule {
    /// [`PenaltyRule::EarlyRetry`] with its defaults.
    pub const EARLY_RETRY: Self = Self::EarlyRetry {
        grace: Duration::from_millis(500),
        minimum: Duration::from_secs(1),
        cap: Duration::from_hours(1),
        halve_every: Duration::from_mins(10),
    };
    /// [`PenaltyRule::Reoffence`] with its defaults.
    pub const REOFFENCE: Self = Self::Reoffence {
        within: Duration::from_mins(10),
        minimum: Duration::from_secs(1),
        cap: Duration::from_hours(3),
        forgive_every: Duration::from_mins(30),
    };

    /// The penalty after a call was refused at `now`: `before` is the key's last one, `wait` what the limit asks for
    /// (not looked at while a penalty runs).
    ///
    /// Never ends before `now + wait` nor before a deadline that was already given.
    pub fn refuse(&self, before: Option<Penalty>, now: Time, wait: Duration) -> Penalty {
        match before {
            Some(penalty) if penalty.runs(now) => self.call_early(penalty, now),
            _ => {
                let (length, level) = self.begin(before, now, wait);
                let deadline = now.saturating_add(length);
                Penalty { deadline, set_at: now, first_at: now, length, level }
            }
        }
    }

    /// Length and level of a new episode.
    fn begin(&self, last: Option<Penalty>, now: Time, wait: Duration) -> (Duration, u32) {
        let quiet = |last: Penalty| now.saturating_since(last.deadline);
        match *self {
            Self::EarlyRetry { minimum, halve_every, .. } => {
                let remembered = last.map_or(Duration::ZERO, |last| {
                    let halvings = periods(quiet(last), halve_every).min(63);
                    Duration::from_micros(last.length.as_micros() >> halvings)
                });
                (whole_seconds(wait.max(remembered).max(minimum)), 0)
            }
            Self::Reoffence { within, minimum, cap, forgive_every } => {
                let level = last.map_or(0, |last| {
                    let forgiven = periods(quiet(last), forgive_every).min(u64::from(LEVEL_MAX)) as u32;
                    let again = u32::from(quiet(last) <= within);
                    (last.level.saturating_sub(forgiven) + again).min(LEVEL_MAX)
                });
                let base = whole_seconds(wait.max(minimum));
                (base.saturating_mul(1 << level).min(cap).max(base), level)
            }
        }
    }

    /// What a call does to a penalty that runs.
    fn call_early(&self, penalty: Penalty, now: Time) -> Penalty {
        match *self {
            Self::EarlyRetry { grace, cap, .. } if now > penalty.set_at.saturating_add(grace) => {
                let length = penalty.length.saturating_mul(2).min(cap).max(penalty.length);
                let last = penalty.first_at.saturating_add(cap);
                let deadline = now.saturating_add(length).min(last).max(penalty.deadline);
                Penalty { deadline, set_at: now, length, ..penalty }
            }
            _ => penalty,
        }
    }

    /// Its name.
    pub const fn kind(&self) -> PenaltyKind {
        match self {
            Self::EarlyRetry { .. } => PenaltyKind::EarlyRetry,
            Self::Reoffence { .. } => PenaltyKind::Reoffence,
        }
    }
}

impl Penalty {
    /// Whether calls at `now` are refused unheard; at the deadline itself they are heard.
    pub fn runs(&self, now: Time) -> bool {
        now < self.deadline
    }
}

/// The highest level of [`PenaltyRule::Reoffence`]: a million times the wait.
pub const LEVEL_MAX: u32 = 20;

/// How often `period` fits into `time`; a period of zero fits without end.
fn periods(time: Duration, period: Duration) -> u64 {
    if period.is_zero() { u64::MAX } else { time / period }
}

/// `time`, rounded up to whole seconds.
pub(crate) fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(1).saturating_mul(time.as_secs_ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    /// Refusals at these seconds, each with this wait of the limit; the last penalty.
    fn refuse_at(rule: PenaltyRule, times: &[u64], wait: u64) -> Penalty {
        times
            .iter()
            .fold(None, |before, &t| Some(rule.refuse(before, s(t), Duration::from_secs(wait))))
            .expect("at least one refusal")
    }

    /// The check of `design.md`.
    #[test]
    fn a_pause_of_32_s_met_with_back_off_ends_at_527_s() {
        assert_eq!(refuse_at(PenaltyRule::EARLY_RETRY, &[0, 1, 3, 7, 15], 32).deadline, s(527));
    }

    #[test]
    fn a_fixed_deadline_stays_at_32_s() {
        assert_eq!(refuse_at(PenaltyRule::REOFFENCE, &[0, 1, 3, 7, 15], 32).deadline, s(32));
    }

    #[test]
    fn calls_within_the_grace_change_nothing() {
        let rule = PenaltyRule::EARLY_RETRY;
        let first = rule.refuse(None, s(10), Duration::from_secs(4));
        let at = |us| rule.refuse(Some(first), Time::from_micros(us), Duration::ZERO);
        assert_eq!(at(10_500_000), first);
        assert_eq!(at(10_500_001).deadline, Time::from_micros(18_500_001));
    }

    #[test]
    fn an_episode_ends_after_its_cap_however_hammered() {
        let every_second: Vec<u64> = (0..3_600).collect();
        let penalty = refuse_at(PenaltyRule::EARLY_RETRY, &every_second, 1);
        assert_eq!(penalty.deadline, s(3_600));
        assert!(!penalty.runs(s(3_600)));
    }

    #[test]
    fn n_is_remembered_and_halves_every_ten_minutes() {
        let rule = PenaltyRule::EARLY_RETRY;
        // 8 s, one early call at 1 s: N = 16, deadline 17.
        let last = refuse_at(rule, &[0, 1], 8);
        let next = |t| rule.refuse(Some(last), s(t), Duration::from_millis(1)).length.as_secs_ceil();
        assert_eq!(last.deadline, s(17));
        assert_eq!([17, 616, 617, 1_217, 6_017].map(next), [16, 16, 8, 4, 1]);
    }

    #[test]
    fn offending_again_doubles_and_quiet_forgives() {
        let rule = PenaltyRule::REOFFENCE;
        let wait = Duration::from_secs(10);
        let first = rule.refuse(None, s(0), wait);
        let second = rule.refuse(Some(first), s(10 + 600), wait);
        assert_eq!((second.length, second.level), (Duration::from_secs(20), 1));
        // Later than ten minutes: no further doubling; after half an hour a step is forgiven.
        let third =
            |quiet| rule.refuse(Some(second), second.deadline + Duration::from_secs(quiet), wait).level;
        assert_eq!([600, 601, 1_799, 1_800, 9_999].map(third), [2, 1, 1, 0, 0]);
    }

    #[test]
    fn no_penalty_is_shorter_than_the_limit_asks() {
        for rule in [PenaltyRule::EARLY_RETRY, PenaltyRule::REOFFENCE] {
            let wait = Duration::from_hours(30);
            assert_eq!(rule.refuse(None, s(5), wait).deadline, s(5) + wait);
        }
    }
}
