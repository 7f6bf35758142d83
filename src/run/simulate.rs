//! One design of a scenario in virtual time: sets the world up, lets it run, closes the books.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fake_telegram::api::{LimitIndex, TokenIndex};
use fake_telegram::fault::Faults;
use fake_telegram::model::Model;
use fake_telegram::time::Time;

use super::RunError;
use crate::check::EarlyRetries;
use crate::env::{Env, Process};
use crate::event::{EventHash, Observer};
use crate::executor::Executor;
use crate::ledger::Ledger;
use crate::metrics::{Ending, Metrics, Steps};
use crate::observers::Observers;
use crate::outcome::Outcome;
use crate::rng::key;
use crate::rng::latency::Latency;
use crate::scenario::{Design, Scenario};
use crate::sim::{Route, Setup, Sim};
use crate::world::ProcessIndex;

/// Pauses a run makes to say how far it is and to ask whether it may go on.
const PAUSES: u64 = 200;

/// What to simulate: the whole input of a run.
#[derive(Debug, Clone, Copy)]
pub struct Simulation<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Which of its designs, as an index.
    pub design: usize,
    /// The seed.
    pub seed: u64,
    /// [`super::Options::shuffle_ties`].
    pub shuffle_ties: Option<u64>,
}

/// Simulates one design, as [`simulate`] does; a broken invariant is an error, not the end of the program.
///
/// # Errors
/// As [`simulate`], and [`RunError::Invariant`] for a panic.
pub(super) fn simulate_or_say(
    simulation: &Simulation<'_>,
    go_on: impl FnMut(Time) -> bool,
) -> Result<Option<Outcome>, RunError> {
    let run = AssertUnwindSafe(|| simulate(simulation, Vec::new(), go_on));
    catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let design = simulation.scenario.designs[simulation.design].name.clone();
        Err(RunError::Invariant { design, what: format!("panicked: {text}") })
    })
}

/// Simulates one design, with `observers` beside the usual ones. `go_on` is asked now and then, with the virtual time,
/// whether to go on; `None` if it said no.
///
/// # Errors
/// If the strategy stalls, or if our own books do not balance.
pub fn simulate(
    simulation: &Simulation<'_>,
    observers: Vec<Box<dyn Observer>>,
    mut go_on: impl FnMut(Time) -> bool,
) -> Result<Option<Outcome>, RunError> {
    let Simulation { scenario, seed, .. } = *simulation;
    let design = &scenario.designs[simulation.design];
    let steps = Steps::new(scenario.horizon());
    let chats = scenario.population.kinds().len();
    let limits = &scenario.server.limits;
    let tokens: Vec<TokenIndex> =
        processes(design).map(|(_, group)| TokenIndex(design.groups[group].token)).collect();
    let mut used = tokens.clone();
    used.sort_unstable();
    used.dedup();
    let observers = Observers {
        hash: EventHash::default(),
        ledger: Ledger::new(chats),
        early_retries: EarlyRetries::new(limits, tokens),
        metrics: Metrics::new(limits, chats, steps),
        asked_for: observers,
    };
    let mut executor = Executor::new(simulation.shuffle_ties.map(|shuffle| key(shuffle, "ties")));
    let (outboxes, routes) = routes(scenario, design);
    let setup = Setup {
        seed,
        model: model(scenario, seed),
        arrivals: Box::new(scenario.arrivals(seed)),
        routes,
        classes: scenario.classes.as_slice().into(),
        tokens: used,
        outboxes: outboxes.len(),
        latency: Latency::new(scenario.wire.median, scenario.wire.p99),
        timeout: scenario.wire.timeout,
        round_trip: scenario.store.round_trip,
        sample: steps.sample(),
        observers,
    };
    let sim = Sim::new(setup, executor.handle().clone());
    for (index, group) in processes(design) {
        let group = &design.groups[group];
        let outbox =
            outboxes.iter().position(|set| *set == group.workloads).expect("every set has its outbox");
        let process = Process::new(index, TokenIndex(group.token), outbox);
        for worker in 0..group.workers {
            let env = Env::simulated(sim.clone(), process.clone(), worker);
            let name = format!("{}: worker {worker} of process {}", group.strategy.kind(), index.0);
            executor.handle().spawn(name, group.strategy.start(env));
        }
    }
    let horizon = Time::ZERO + scenario.horizon();
    for pause in 1..=PAUSES {
        let until = Time::from_micros(
            (u128::from(horizon.as_micros()) * u128::from(pause) / u128::from(PAUSES)) as u64,
        );
        executor
            .run(&*sim, until)
            .map_err(|source| RunError::Stalled { design: design.name.clone(), source })?;
        if !go_on(until) {
            return Ok(None);
        }
    }
    let ending = |model: &Model| Ending {
        horizon,
        penalties: (0..limits.len())
            .map(|limit| model.penalty_time(LimitIndex(limit as u8), horizon))
            .collect(),
        classes: scenario.classes.clone(),
    };
    let (outcome, deliveries) = sim.finish(|model, observers| {
        let Observers { hash, ledger, early_retries, metrics, .. } = observers;
        let outcome = metrics.outcome(&design.name, *hash, ledger, early_retries.count, &ending(model));
        (outcome, metrics.deliveries())
    });
    executor.clear();
    balance(&outcome, deliveries)?;
    Ok(Some(outcome))
}

/// The books balance, and they agree with what the server counted.
fn balance(outcome: &Outcome, deliveries: u64) -> Result<(), RunError> {
    let metrics = &outcome.metrics;
    let sum =
        metrics.delivered + metrics.dead + metrics.expired + metrics.dropped + metrics.pending + metrics.lost;
    let what = if sum != metrics.due {
        format!("the ledger does not balance: {} messages were due and {sum} are accounted for", metrics.due)
    } else if metrics.delivered + metrics.duplicated != deliveries {
        let known = metrics.delivered + metrics.duplicated;
        format!("the server delivered {deliveries} times and the ledger knows of {known}")
    } else {
        return Ok(());
    };
    Err(RunError::Invariant { design: outcome.name.clone(), what })
}

fn model(scenario: &Scenario, seed: u64) -> Model {
    let faults = Faults::new(&scenario.faults).expect("the scenario was checked");
    let tokens = scenario.tokens.len() as u16;
    Model::new(&scenario.server, faults, scenario.chats(seed), tokens)
}

/// The processes of a design, each with its group.
fn processes(design: &Design) -> impl Iterator<Item = (ProcessIndex, usize)> {
    let groups = design.groups.iter().enumerate();
    let groups = groups.flat_map(|(index, group)| std::iter::repeat_n(index, group.processes as usize));
    groups.enumerate().map(|(index, group)| (ProcessIndex(index as u16), group))
}

/// One outbox for each set of workloads that some group takes, and the way of each workload.
fn routes(scenario: &Scenario, design: &Design) -> (Vec<Vec<usize>>, Vec<Route>) {
    let mut outboxes: Vec<Vec<usize>> = Vec::new();
    for group in &design.groups {
        if !outboxes.contains(&group.workloads) {
            outboxes.push(group.workloads.clone());
        }
    }
    let routes = scenario.workloads.iter().enumerate().map(|(index, workload)| {
        let outbox =
            outboxes.iter().position(|set| set.contains(&index)).expect("every workload has a group");
        Route {
            class: workload.class,
            deadline: workload.deadline,
            method: workload.method,
            from_user: workload.from_user,
            outbox,
        }
    });
    let routes = routes.collect();
    (outboxes, routes)
}
