//! The four dials and what stands beside them, folded from the event stream.
//!
//! What has to be counted as it happens is counted here; everything about lag is read off the ledger at the end.

mod budget;
mod depth;
mod lag;
mod pooled;
mod series;

use fake_telegram::api::{LimitIndex, Truth};
use fake_telegram::limits::Limit;
use fake_telegram::model::Model;
use fake_telegram::time::{Duration, Time};
use indexmap::IndexMap;

use crate::event::{Event, EventHash, Observer};
use crate::ledger::{Fate, Ledger};
use crate::outcome;
use crate::world::Belief;

pub use pooled::{Pooled, PooledQuantile};
pub use series::Steps;

use budget::Budget;
use depth::Depth;

/// Counts as the run goes.
#[derive(Debug)]
pub struct Metrics {
    limits: Vec<String>,
    steps: Steps,
    requests: u64,
    /// The millisecond of the last call that left, calls in it, and the most that ever were in one.
    calls_in_ms: (u64, u64),
    calls_per_ms_max: u64,
    kills: u64,
    /// Deliveries as the server counts them: the ledger has to agree.
    deliveries: u64,
    calls_in_penalty: u64,
    spent_on_dead: u64,
    throttled: Vec<u64>,
    /// By limit, by sample: refusals.
    throttled_by_sample: Vec<Vec<u32>>,
    budget: Budget,
    depth: Depth,
}

/// What is known only once a run is over, and not from its events.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The end of the run.
    pub horizon: Time,
    /// Penalties, by limit; empty if nobody knows them.
    pub penalties: Vec<Penalties>,
    /// Ordinary keys in the store, and those of them that will never expire.
    pub store_keys: (usize, usize),
    /// The names of the classes.
    pub classes: Vec<String>,
}

/// The penalties of a limit, over all its keys.
#[derive(Debug, Clone, Copy)]
pub struct Penalties {
    /// How many began.
    pub count: u64,
    /// Their time, summed.
    pub time: Duration,
    /// The longest of them.
    pub longest: Duration,
}

impl Penalties {
    /// Those of a server until `until`, by limit.
    pub fn of(model: &Model, until: Time) -> Vec<Self> {
        let of = |limit| Self {
            count: model.penalties(limit),
            time: model.penalty_time(limit, until),
            longest: model.penalty_longest(limit, until),
        };
        (0..model.limits().len() as u8).map(|limit| of(LimitIndex(limit))).collect()
    }
}

impl Metrics {
    /// Counters for `limits`, over chats with indices below `chats`.
    pub fn new(limits: &[Limit], chats: usize, steps: Steps) -> Self {
        Self {
            limits: limits.iter().map(|limit| limit.name.clone()).collect(),
            steps,
            requests: 0,
            calls_in_ms: (0, 0),
            calls_per_ms_max: 0,
            kills: 0,
            deliveries: 0,
            calls_in_penalty: 0,
            spent_on_dead: 0,
            throttled: vec![0; limits.len()],
            throttled_by_sample: vec![Vec::new(); limits.len()],
            budget: Budget::default(),
            depth: Depth::new(chats),
        }
    }

    /// The totals, the classes, the series and the distribution of one design.
    pub fn outcome(
        &self,
        name: &str,
        hash: EventHash,
        ledger: &Ledger,
        early_retries: u64,
        ending: &Ending,
    ) -> outcome::Outcome {
        let lags = lag::Lags::new(ledger, ending.horizon, ending.classes.len());
        let (lag_p99_us, mut classes_p99_us) = lags.p99_over_time(self.steps);
        let (classes, beliefs) = Fates::count(ledger, ending.classes.len());
        let totals = Fates::sum(&classes);
        let metrics = outcome::Metrics {
            due: totals.due,
            delivered: totals.delivered,
            dead: totals.dead,
            expired: totals.expired,
            dropped: totals.dropped,
            pending: totals.pending,
            lost: totals.lost,
            duplicated: ledger.duplicated.iter().sum(),
            reordered: ledger.reordered,
            believed_delivered: beliefs.delivered,
            believed_unknown: totals.unknown,
            requests: self.requests,
            calls_in_penalty: self.calls_in_penalty,
            early_retries,
            amplification_ppm: (self.requests * 1_000_000).checked_div(totals.due).unwrap_or(0),
            throttled: self.by_limit(self.throttled.iter().copied()),
            spent_on_dead: self.spent_on_dead,
            penalty_us: self.by_limit(ending.penalties.iter().map(|penalties| penalties.time.as_micros())),
            budget_utilisation_ppm: self.budget.total_ppm(ending.horizon),
            queue_depth_max: self.depth.max_ever().into(),
            lag_us: lags.summary(None),
            believed_falsely: beliefs.falsely,
            reused: ledger.reused,
            penalties: self.by_limit(ending.penalties.iter().map(|penalties| penalties.count)),
            penalty_max_us: self
                .by_limit(ending.penalties.iter().map(|penalties| penalties.longest.as_micros())),
            calls_per_ms_max: self.calls_per_ms_max,
            kills: self.kills,
            store_keys: ending.store_keys.0 as u64,
            store_keys_without_ttl: ending.store_keys.1 as u64,
        };
        let classes = ending.classes.iter().zip(&classes).enumerate().map(|(index, (class, fates))| {
            let outcome = outcome::ClassOutcome {
                due: fates.due,
                delivered: fates.delivered,
                dead: fates.dead,
                expired: fates.expired,
                dropped: fates.dropped,
                pending: fates.pending,
                lost: fates.lost,
                lag_us: lags.summary(Some(index)),
                lag_p99_us: std::mem::take(&mut classes_p99_us[index]),
                duplicated: ledger.duplicated[index],
                believed_unknown: fates.unknown,
            };
            (class.clone(), outcome)
        });
        outcome::Outcome {
            name: name.to_owned(),
            event_hash: format!("{:016x}", hash.value()),
            metrics,
            classes: classes.collect(),
            series: outcome::Series {
                step_us: self.steps.step().as_micros(),
                budget_utilisation_ppm: self.steps.fold_option(&self.budget.samples_ppm(ending.horizon)),
                lag_p99_us,
                queue_depth_max: self.steps.fold(&self.depth.samples),
                throttled: self
                    .by_limit(self.throttled_by_sample.iter().map(|samples| self.steps.fold(samples))),
            },
            lag_distribution: lags.distribution(),
            windows: Vec::new(),
            lag_counts: lags.counts(&ending.classes),
            host: outcome::DesignHost::default(),
            live: None,
        }
    }

    /// Deliveries as the server counts them, duplicates included.
    pub const fn deliveries(&self) -> u64 {
        self.deliveries
    }

    fn by_limit<T>(&self, values: impl Iterator<Item = T>) -> IndexMap<String, T> {
        self.limits.iter().cloned().zip(values).collect()
    }
}

impl Observer for Metrics {
    #[inline(always)]
    fn observe(&mut self, at: Time, event: &Event) {
        match *event {
            Event::Due { message, .. } => self.depth.joins(message.chat),
            Event::Settled { message, .. } | Event::GivenUp { message, .. } | Event::Reused { message } => {
                self.depth.leaves(message.number, message.chat);
            }
            Event::Sent { .. } => {
                self.requests += 1;
                let ms = at.as_micros() / 1_000;
                let (latest, calls) = self.calls_in_ms;
                self.calls_in_ms = (ms, if ms == latest { calls + 1 } else { 1 });
                self.calls_per_ms_max = self.calls_per_ms_max.max(self.calls_in_ms.1);
            }
            Event::Killed { .. } => self.kills += 1,
            Event::Decided { decision, .. } => {
                self.calls_in_penalty += u64::from(decision.in_penalty);
                self.budget.take(decision.taken);
                match decision.truth {
                    Truth::Refused { limit, .. } => {
                        let limit = usize::from(limit.0);
                        self.throttled[limit] += 1;
                        *self.throttled_by_sample[limit].last_mut().expect("the first sample is at zero") +=
                            1;
                    }
                    Truth::Dead => self.spent_on_dead += u64::from(decision.taken),
                    Truth::Delivered => self.deliveries += 1,
                    Truth::Replayed | Truth::Unknown | Truth::Nothing => {}
                }
            }
            Event::Sample { level } => {
                if Duration::from_micros(at.as_micros()) < self.steps.horizon() {
                    self.throttled_by_sample.iter_mut().for_each(|samples| samples.push(0));
                    self.depth.sample();
                }
                self.budget.sample(at, level);
            }
            Event::Taken { .. }
            | Event::Vanished { .. }
            | Event::Stored { .. }
            | Event::Answered { .. }
            | Event::Started { .. }
            | Event::Flushed => {}
        }
    }
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

impl Fates {
    /// Fates by class, and beliefs over all.
    fn count(ledger: &Ledger, classes: usize) -> (Vec<Self>, Beliefs) {
        let mut counts = vec![Self::default(); classes];
        let mut beliefs = Beliefs::default();
        for line in ledger.lines() {
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

    fn sum(classes: &[Self]) -> Self {
        classes.iter().fold(Self::default(), |sum, class| Self {
            due: sum.due + class.due,
            delivered: sum.delivered + class.delivered,
            dead: sum.dead + class.dead,
            expired: sum.expired + class.expired,
            dropped: sum.dropped + class.dropped,
            pending: sum.pending + class.pending,
            lost: sum.lost + class.lost,
            unknown: sum.unknown + class.unknown,
        })
    }
}
