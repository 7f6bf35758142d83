//! The four dials and what stands beside them, folded from the event stream.
//!
//! What has to be counted as it happens is counted here; everything about lag is read off the ledger at the end.

mod budget;
mod depth;
mod lag;
mod pooled;
mod series;
mod part;

use fake_telegram::api::{LimitIndex, Truth};
use fake_telegram::limits::{Level, Limit};
use fake_telegram::model::Model;
use fake_telegram::time::{Duration, Time};
use indexmap::IndexMap;

use crate::event::{Event, EventHash, Observer};
use crate::ledger::Ledger;
use crate::outcome;

pub use pooled::{Pooled, PooledQuantile};
pub use series::Steps;

use budget::Budget;
use depth::Depth;
use part::{Counters, Part};

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
    /// What there was at each cut.
    cuts: Vec<Counters>,
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
    /// Totals begin here; a cut, if it is not the beginning.
    pub warm_up: Time,
}

/// The penalties of a limit, over all its keys.
#[derive(Debug, Clone, Copy, Default)]
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
            cuts: Vec::new(),
        }
    }

    /// Totals are cut at `at`: notes what there is so far, with what the token-wide limit allows now.
    pub fn cut(
        &mut self,
        at: Time,
        level: Option<Level>,
        penalties: Vec<Penalties>,
        ledger: &Ledger,
        early_retries: u64,
    ) {
        let counters = self.counters(at, level, penalties, ledger, early_retries);
        self.cuts.push(counters);
        self.depth.cut();
        self.calls_per_ms_max = 0;
    }

    fn counters(
        &self,
        at: Time,
        level: Option<Level>,
        penalties: Vec<Penalties>,
        ledger: &Ledger,
        early_retries: u64,
    ) -> Counters {
        Counters {
            at,
            level,
            requests: self.requests,
            calls_in_penalty: self.calls_in_penalty,
            early_retries,
            spent_on_dead: self.spent_on_dead,
            kills: self.kills,
            reordered: ledger.reordered,
            reused: ledger.reused,
            taken: self.budget.taken(),
            throttled: self.throttled.clone(),
            duplicated: ledger.duplicated.clone(),
            penalties,
            queue_depth_max: self.depth.max_since().into(),
            calls_per_ms_max: self.calls_per_ms_max,
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
        let lags = lag::Lags::new(ledger, ending.warm_up..ending.horizon, ending.classes.len());
        let (lag_p99_us, classes_p99_us) = lags.p99_over_time(self.steps);
        let cuts = self.all_cuts(ledger, early_retries, ending);
        let first = cuts.iter().position(|cut| cut.at == ending.warm_up).unwrap_or(0);
        let part = Part::new(&cuts[first..]);
        let lines = ledger.lines().iter().filter(|line| line.due >= ending.warm_up);
        let (mut metrics, mut classes) =
            part.totals(&self.limits, &ending.classes, lines, |class| lags.summary(class));
        metrics.penalty_max_us = self.by_limit(ending.penalties.iter().map(|all| all.longest.as_micros()));
        metrics.store_keys = ending.store_keys.0 as u64;
        metrics.store_keys_without_ttl = ending.store_keys.1 as u64;
        for (class, over_time) in classes.values_mut().zip(classes_p99_us) {
            class.lag_p99_us = over_time;
        }
        outcome::Outcome {
            name: name.to_owned(),
            event_hash: format!("{:016x}", hash.value()),
            metrics,
            classes,
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

    /// The totals of each window of this width from the warm-up on, with the instant at which it begins. What is known for a
    /// whole run only is zero in them: `penalty_max`, and what is in the store.
    pub fn windows(
        &self,
        width: Duration,
        ledger: &Ledger,
        early_retries: u64,
        ending: &Ending,
    ) -> Vec<(Time, outcome::Metrics, IndexMap<String, outcome::ClassOutcome>)> {
        let cuts = self.all_cuts(ledger, early_retries, ending);
        let edges: Vec<usize> = (0..cuts.len())
            .filter(|index| {
                let at = cuts[*index].at;
                let is_edge = (at - Time::ZERO).as_micros().is_multiple_of(width.as_micros());
                at >= ending.warm_up && (is_edge || *index + 1 == cuts.len())
            })
            .collect();
        let mut lines = ledger.lines();
        let windows = edges.windows(2).map(|edge| {
            let (from, to) = (cuts[edge[0]].at, cuts[edge[1]].at);
            let begin = lines.partition_point(|line| line.due < from);
            let end = lines.partition_point(|line| line.due < to);
            let (window, rest) = (&lines[begin..end], &lines[end..]);
            lines = rest;
            let lag = |class| lag::exact(window, ending.horizon, class);
            let part = Part::new(&cuts[edge[0]..=edge[1]]);
            let (metrics, classes) = part.totals(&self.limits, &ending.classes, window.iter(), lag);
            (from, metrics, classes)
        });
        windows.collect()
    }

    /// The cuts of a run that is over, its beginning and its end among them.
    fn all_cuts(&self, ledger: &Ledger, early_retries: u64, ending: &Ending) -> Vec<Counters> {
        let (limits, classes) = (self.limits.len(), ending.classes.len());
        let start = Counters::start(self.budget.full(), limits, classes);
        let end = self.counters(ending.horizon, None, ending.penalties.clone(), ledger, early_retries);
        [start].into_iter().chain(self.cuts.iter().cloned()).chain([end]).collect()
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
