//! The totals of a part of a run: of all of it, of what follows the warm-up, of a window.
//!
//! What is counted as it happens is noted at every cut ([`Counters`]), and the difference of two notes is what happened
//! between them. Messages belong to the part in which they fell due.

use fake_telegram::limits::Level;
use fake_telegram::time::Time;
use indexmap::IndexMap;

use crate::ledger::{Fate, Line};
use crate::outcome::{ClassOutcome, Lag, Metrics};
use crate::world::Belief;

use super::Penalties;
use super::budget::utilisation_ppm;

/// What has been counted until an instant.
#[derive(Debug, Clone)]
pub(super) struct Counters {
    pub(super) at: Time,
    /// What the token-wide limit allows then.
    pub(super) level: Option<Level>,
    pub(super) requests: u64,
    pub(super) calls_in_penalty: u64,
    pub(super) early_retries: u64,
    pub(super) spent_on_dead: u64,
    pub(super) kills: u64,
    pub(super) reordered: u64,
    pub(super) reused: u64,
    /// Tokens of the token-wide limit.
    pub(super) taken: u64,
    /// By limit.
    pub(super) throttled: Vec<u64>,
    /// By class.
    pub(super) duplicated: Vec<u64>,
    /// By limit; empty if nobody knows them.
    pub(super) penalties: Vec<Penalties>,
    /// Since the cut before.
    pub(super) queue_depth_max: u64,
    /// Since the cut before.
    pub(super) calls_per_ms_max: u64,
}

/// A stretch of a run between two cuts.
pub(super) struct Part<'a> {
    from: &'a Counters,
    to: &'a Counters,
    /// The cuts after its beginning.
    inside: &'a [Counters],
}

impl Counters {
    /// Those of the beginning.
    pub(super) fn start(level: Option<Level>, limits: usize, classes: usize) -> Self {
        Self {
            at: Time::ZERO,
            level,
            requests: 0,
            calls_in_penalty: 0,
            early_retries: 0,
            spent_on_dead: 0,
            kills: 0,
            reordered: 0,
            reused: 0,
            taken: 0,
            throttled: vec![0; limits],
            duplicated: vec![0; classes],
            penalties: vec![Penalties::default(); limits],
            queue_depth_max: 0,
            calls_per_ms_max: 0,
        }
    }
}

impl<'a> Part<'a> {
    /// From the first of these cuts to the last.
    pub(super) fn new(cuts: &'a [Counters]) -> Self {
        let (from, inside) = cuts.split_first().expect("a run has a beginning");
        Self { from, to: inside.last().expect("a run has an end"), inside }
    }

    /// All that has a meaning for a part, overall and by class; `lines` are the messages that fell due in it, `lag`
    /// summarises theirs, of all classes or of one.
    pub(super) fn totals<'l>(
        &self,
        limits: &[String],
        classes: &[String],
        lines: impl Iterator<Item = &'l Line>,
        lag: impl Fn(Option<usize>) -> Lag,
    ) -> (Metrics, IndexMap<String, ClassOutcome>) {
        let Self { from, to, .. } = self;
        let (fates, beliefs) = count(lines, classes.len());
        let duplicated: Vec<u64> = differences(&from.duplicated, &to.duplicated).collect();
        let by_class = classes.iter().zip(&fates).zip(&duplicated).enumerate();
        let by_class = by_class.map(|(index, ((class, fates), duplicated))| {
            let outcome = ClassOutcome {
                due: fates.due,
                delivered: fates.delivered,
                dead: fates.dead,
                expired: fates.expired,
                dropped: fates.dropped,
                pending: fates.pending,
                lost: fates.lost,
                duplicated: *duplicated,
                believed_unknown: fates.unknown,
                lag_us: lag(Some(index)),
                lag_p99_us: Vec::new(),
            };
            (class.clone(), outcome)
        });
        let classes = by_class.collect();
        let sum = |read: fn(&Fates) -> u64| fates.iter().map(read).sum::<u64>();
        let by_limit = |values: &mut dyn Iterator<Item = u64>| limits.iter().cloned().zip(values).collect();
        let (due, requests) = (sum(|f| f.due), to.requests - from.requests);
        let penalties = |read: fn(&Penalties) -> u64| {
            by_limit(&mut to.penalties.iter().zip(&from.penalties).map(|(to, from)| read(to) - read(from)))
        };
        let metrics = Metrics {
            due,
            delivered: sum(|f| f.delivered),
            dead: sum(|f| f.dead),
            expired: sum(|f| f.expired),
            dropped: sum(|f| f.dropped),
            pending: sum(|f| f.pending),
            lost: sum(|f| f.lost),
            duplicated: duplicated.iter().sum(),
            reordered: to.reordered - from.reordered,
            believed_delivered: beliefs.delivered,
            believed_unknown: sum(|f| f.unknown),
            requests,
            calls_in_penalty: to.calls_in_penalty - from.calls_in_penalty,
            early_retries: to.early_retries - from.early_retries,
            amplification_ppm: (requests * 1_000_000).checked_div(due).unwrap_or(0),
            throttled: by_limit(&mut differences(&from.throttled, &to.throttled)),
            spent_on_dead: to.spent_on_dead - from.spent_on_dead,
            penalty_us: penalties(|all| all.time.as_micros()),
            budget_utilisation_ppm: utilisation_ppm(from.level, to.at - from.at, to.taken - from.taken),
            queue_depth_max: self.inside.iter().map(|cut| cut.queue_depth_max).max().unwrap_or(0),
            lag_us: lag(None),
            believed_falsely: beliefs.falsely,
            reused: to.reused - from.reused,
            penalties: penalties(|all| all.count),
            calls_per_ms_max: self.inside.iter().map(|cut| cut.calls_per_ms_max).max().unwrap_or(0),
            kills: to.kills - from.kills,
            ..Metrics::default()
        };
        (metrics, classes)
    }
}

fn differences(from: &[u64], to: &[u64]) -> impl Iterator<Item = u64> {
    to.iter().zip(from).map(|(to, from)| to - from)
}

/// How many messages met each fate.
#[derive(Debug, Default, Clone)]
struct Fates {
    due: u64,
    delivered: u64,
    dead: u64,
    expired: u64,
    dropped: u64,
    pending: u64,
    lost: u64,
    /// Beside these: of how many the sender says that it does not know.
    unknown: u64,
}

/// What the sender believes at the end.
#[derive(Debug, Default)]
struct Beliefs {
    delivered: u64,
    falsely: u64,
}

/// Fates by class, and beliefs over all.
fn count<'l>(lines: impl Iterator<Item = &'l Line>, classes: usize) -> (Vec<Fates>, Beliefs) {
    let mut counts = vec![Fates::default(); classes];
    let mut beliefs = Beliefs::default();
    for line in lines {
        let fate = line.fate();
        let counts = &mut counts[usize::from(line.class.0)];
        counts.due += 1;
        *match fate {
            Fate::Delivered => &mut counts.delivered,
            Fate::Dead => &mut counts.dead,
            Fate::Expired => &mut counts.expired,
            Fate::Dropped => &mut counts.dropped,
            Fate::Pending => &mut counts.pending,
            Fate::Lost => &mut counts.lost,
        } += 1;
        match line.belief() {
            Some(Belief::Delivered) => {
                beliefs.delivered += 1;
                beliefs.falsely += u64::from(fate != Fate::Delivered);
            }
            Some(Belief::Unknown) => counts.unknown += 1,
            None => {}
        }
    }
    (counts, beliefs)
}
