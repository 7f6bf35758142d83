//! One design of a scenario in virtual time: sets the world up, lets it run, closes the books.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use fake_telegram::api::TokenIndex;
use fake_telegram::draw::exponential;
use fake_telegram::fault::Faults;
use fake_telegram::model::Model;
use fake_telegram::time::{Duration, Time};
use rand_chacha::rand_core::Rng;

use super::RunError;
use crate::check::EarlyRetries;
use crate::env::{Env, Process};
use crate::event::{EventHash, Observer};
use crate::executor::{Executor, Stalled};
use crate::gate;
use crate::ledger::Ledger;
use crate::metrics::{Ending, Metrics, Steps};
use crate::observers::Observers;
use crate::outcome::Outcome;
use crate::rng::latency::Latency;
use crate::rng::{key, stream};
use crate::scenario::{Design, Scenario};
use crate::sim::{self, Launch, Route, Server, Setup, Sim, StoreLine, Way};
use crate::store::Store;
use crate::store::plan::Plan;
#[cfg(feature = "redis")]
use crate::store::redis::Redis;
use crate::strategy::Configured;
use crate::world::{Change, KillPoint, Kills, ProcessIndex};

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

/// Runs one design; a broken invariant is an error, not the end of the program.
///
/// # Errors
/// As `run`, and [`RunError::Invariant`] for a panic.
pub(super) fn or_say<R>(
    simulation: &Simulation<'_>,
    run: impl FnOnce() -> Result<R, RunError>,
) -> Result<R, RunError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
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
    let mut executor = Executor::new(simulation.shuffle_ties.map(|shuffle| key(shuffle, "ties")));
    let server = Server::Modelled {
        model: Box::new(model(scenario, seed)),
        latency: Latency::new(scenario.wire.median, scenario.wire.p99),
    };
    let store = open_store(simulation)?;
    let sim = prepare(simulation, observers, Ends { server, store, store_line: None }, &executor);
    let horizon = Time::ZERO + scenario.horizon();
    for pause in 1..=PAUSES {
        let until = Time::from_micros(
            (u128::from(horizon.as_micros()) * u128::from(pause) / u128::from(PAUSES)) as u64,
        );
        executor.run(&*sim, until).map_err(|source| stalled(simulation, source))?;
        if !go_on(until) {
            return Ok(None);
        }
    }
    let Closed { outcome, .. } = close(simulation, &sim, executor, horizon)?;
    missed(simulation, &sim)?;
    Ok(Some(outcome))
}

/// What the senders of a run call.
pub(super) struct Ends {
    pub(super) server: Server,
    pub(super) store: Store,
    /// Who carries calls to the store, in real time.
    pub(super) store_line: Option<Box<dyn StoreLine>>,
}

/// The world at its start.
pub(super) fn prepare(
    simulation: &Simulation<'_>,
    observers: Vec<Box<dyn Observer>>,
    Ends { server, store: data, store_line }: Ends,
    executor: &Executor,
) -> Rc<Sim> {
    let Simulation { scenario, seed, .. } = *simulation;
    let design = &scenario.designs[simulation.design];
    let steps = Steps::new(scenario.horizon());
    let chats = scenario.population.kinds().len();
    let limits = &scenario.server.limits;
    let tokens: Vec<TokenIndex> =
        processes(design).map(|(_, group, _)| TokenIndex(design.groups[group].token)).collect();
    let mut used = tokens.clone();
    used.sort_unstable();
    used.dedup();
    let observers = Observers {
        hash: EventHash::default(),
        ledger: Ledger::new(chats, scenario.classes.len(), scenario.tokens.len()),
        early_retries: EarlyRetries::new(limits, tokens),
        metrics: Metrics::new(limits, chats, steps),
        asked_for: observers,
    };
    let (outboxes, routes) = routes(scenario, design);
    let processes = processes(design).count();
    let store = &scenario.store;
    let setup = Setup {
        seed,
        server,
        arrivals: Box::new(scenario.arrivals(seed)),
        routes,
        classes: scenario.classes.as_slice().into(),
        tokens: used,
        outboxes: outboxes.len(),
        timeout: scenario.wire.timeout,
        processes,
        steps: lives(design, seed, Time::ZERO + scenario.horizon()),
        kill_points: kill_points(design),
        launch: launch(design, &outboxes),
        store: data,
        store_line,
        way: Way::new(
            store.round_trip,
            store.round_trip_p99(),
            store.timeout,
            processes,
            key(seed, "store/round-trip"),
        ),
        sample: steps.sample(),
        cuts: cuts(scenario),
        observers,
    };
    Sim::new(setup, executor.handle().clone())
}

/// The books of a run.
pub(super) struct Closed {
    pub(super) outcome: Outcome,
    /// Messages that are lost because a real store in real time should have had them and had not.
    pub(super) missing: u64,
}

/// The run is over at `end`: closes the books.
///
/// # Errors
/// If our own books do not balance.
pub(super) fn close(
    simulation: &Simulation<'_>,
    sim: &Sim,
    mut executor: Executor,
    end: Time,
) -> Result<Closed, RunError> {
    let Simulation { scenario, .. } = *simulation;
    let design = &scenario.designs[simulation.design];
    let ending = |penalties| Ending {
        horizon: end,
        penalties,
        store_keys: sim.store().keys(end),
        classes: scenario.classes.clone(),
        warm_up: Time::ZERO + scenario.warm_up,
    };
    let finished = sim.finish(|penalties, observers, missing| {
        let Observers { hash, ledger, early_retries, metrics, .. } = observers;
        let (ending, early) = (ending(penalties), early_retries.count);
        let mut outcome = metrics.outcome(&design.name, *hash, ledger, early, &ending);
        for width in gate::widths(scenario.rules()) {
            let windows = metrics.windows(width, ledger, early, &ending);
            outcome.windows.extend(gate::worst(scenario.rules(), width, &windows));
        }
        let delivered = ledger.lines().iter().filter(|line| line.delivered < Time::MAX).count() as u64;
        let known = delivered + ledger.duplicated.iter().sum::<u64>();
        (Closed { outcome, missing }, known, metrics.deliveries() + ledger.reused)
    });
    // In real time the report says so.
    #[cfg(feature = "redis")]
    if sim.store_line().is_none()
        && let Some(what) = sim.store().failure()
    {
        executor.clear();
        return Err(RunError::Store { design: design.name.clone(), what });
    }
    let (closed, known, deliveries) = finished.map_err(|message| RunError::Invariant {
        design: design.name.clone(),
        what: format!("message {message} should be in the store, and is in no queue there"),
    })?;
    executor.clear();
    balance(&closed.outcome, known, deliveries)?;
    Ok(closed)
}

/// Whether every kill point came.
///
/// # Errors
/// If one did not: which.
pub(super) fn missed(simulation: &Simulation<'_>, sim: &Sim) -> Result<(), RunError> {
    let design = || simulation.scenario.designs[simulation.design].name.clone();
    match sim.missed_kill_points().into_iter().next() {
        Some((process, after, left)) => Err(RunError::Missed { design: design(), process, after, left }),
        None => Ok(()),
    }
}

pub(super) fn stalled(simulation: &Simulation<'_>, source: Stalled) -> RunError {
    RunError::Stalled { design: simulation.scenario.designs[simulation.design].name.clone(), source }
}

/// The store of a design: simulated, or on the scenario's Redis.
///
/// # Errors
/// If that cannot be used.
pub(super) fn open_store(simulation: &Simulation<'_>) -> Result<Store, RunError> {
    let Simulation { scenario, design, .. } = *simulation;
    let design = &scenario.designs[design];
    let settings = &scenario.store;
    let plan = Plan::new(settings.events.clone()).expect("the scenario was checked");
    let Some(url) = &settings.url else { return Ok(Store::new(plan)) };
    let wrong = |what| RunError::Store { design: design.name.clone(), what };
    if let Some((strategy, script)) = scenario.unwritten_script() {
        let what = format!("the script `{script}` of strategy `{strategy}` is not written for a real Redis");
        return Err(wrong(format!("{what}, so it cannot run on {url}; leave `url` in [store] out")));
    }
    if scenario.horizon() > LONGEST_ON_REDIS {
        return Err(wrong(format!("on a real Redis a run lasts at most {LONGEST_ON_REDIS}")));
    }
    #[cfg(feature = "redis")]
    return match Redis::open(url, settings.timeout) {
        Ok(redis) => Ok(Store::on_redis(plan, redis)),
        Err(error) => Err(wrong(error.to_string())),
    };
    #[cfg(not(feature = "redis"))]
    Err(wrong(format!("{url} cannot be used: this floodlab was built without its feature `redis`")))
}

/// Lua's numbers are exact up to 2^53 microseconds, 285 years.
const LONGEST_ON_REDIS: Duration = Duration::from_hours(100 * 365 * 24);

/// The books balance, and they agree with what the server counted and what was used again.
fn balance(outcome: &Outcome, known: u64, deliveries: u64) -> Result<(), RunError> {
    let metrics = &outcome.metrics;
    let sum =
        metrics.delivered + metrics.dead + metrics.expired + metrics.dropped + metrics.pending + metrics.lost;
    let what = if sum != metrics.due {
        format!("the ledger does not balance: {} messages were due and {sum} are accounted for", metrics.due)
    } else if known != deliveries {
        format!("there were {deliveries} deliveries and the ledger knows of {known}")
    } else {
        return Ok(());
    };
    Err(RunError::Invariant { design: outcome.name.clone(), what })
}

/// Where totals are cut: at the end of the warm-up, and at the edges of the windows that rules ask for.
fn cuts(scenario: &Scenario) -> Vec<Time> {
    let end = Time::ZERO + scenario.horizon();
    let edges = gate::widths(scenario.rules()).into_iter().flat_map(|width| {
        std::iter::successors(Some(Time::ZERO + width), move |edge| Some(edge.saturating_add(width)))
            .take_while(|edge| *edge < end)
    });
    let mut cuts: Vec<Time> =
        edges.chain([Time::ZERO + scenario.warm_up]).filter(|cut| *cut > Time::ZERO).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

fn model(scenario: &Scenario, seed: u64) -> Model {
    let faults = Faults::new(&scenario.faults).expect("the scenario was checked");
    let tokens = scenario.tokens.len() as u16;
    Model::new(&scenario.server, faults, scenario.chats(seed), tokens)
}

/// What starts a process: its workers, in a life of its own.
fn launch(design: &Design, outboxes: &[Vec<usize>]) -> Launch {
    struct Launched {
        strategy: Arc<dyn Configured>,
        workers: u32,
        token: TokenIndex,
        outbox: usize,
        skew: Duration,
        is_watched: bool,
    }

    let watched: Vec<u32> = kill_points(design).into_iter().map(|point| point.process).collect();
    let launched: Vec<Launched> = processes(design)
        .map(|(index, group, number)| {
            let group = &design.groups[group];
            let outbox = outboxes.iter().position(|set| *set == group.workloads);
            Launched {
                strategy: group.strategy.clone(),
                workers: group.workers,
                token: TokenIndex(group.token),
                outbox: outbox.expect("every set has its outbox"),
                skew: group.skew[number as usize],
                is_watched: watched.contains(&index.0.into()),
            }
        })
        .collect();
    Box::new(move |sim, index, life| {
        let Launched { strategy, workers, token, outbox, skew, is_watched } = &launched[usize::from(index.0)];
        let process = Process::new(index, life, *token, *outbox, *skew, *is_watched);
        sim.listens(index, *token, process.bell());
        for worker in 0..*workers {
            let env = Env::simulated(sim.clone(), process.clone(), worker);
            let name = format!("{}: worker {worker} of process {}", strategy.kind(), index.0);
            sim.handle().spawn_in(life, name, strategy.start(env));
        }
    })
}

/// What happens to the processes of a design, and when: as the scenario says, and by chance.
///
/// Whoever dies by chance draws from a stream of its own, so that another design with such a process has the same
/// deaths.
fn lives(design: &Design, seed: u64, horizon: Time) -> Vec<(Time, u32, sim::Plan)> {
    let mut steps = Vec::new();
    let mut first = 0;
    for group in &design.groups {
        steps.extend(
            group
                .timeline
                .steps
                .iter()
                .map(|step| (step.at, first + step.process, sim::Plan::Change(step.change))),
        );
        for Kills { process, every, restart_after } in &group.timeline.kills {
            let starts =
                group.timeline.steps.iter().find(|s| s.process == *process && s.change == Change::Start);
            let process = first + *process;
            let mut stream = stream(seed, &format!("kills/{process}"));
            let mut at = starts.map_or(Time::ZERO, |step| step.at);
            loop {
                at = at.saturating_add(exponential(stream.next_u64(), *every));
                if at >= horizon {
                    break;
                }
                steps.push((at, process, sim::Plan::Death));
                let Some(gone) = restart_after else { break };
                at = at.saturating_add(*gone);
                steps.push((at, process, sim::Plan::Return));
            }
        }
        first += group.processes;
    }
    steps
}

/// The kill points of a design; processes are numbered within it.
fn kill_points(design: &Design) -> Vec<KillPoint> {
    let mut points = Vec::new();
    let mut first = 0;
    for group in &design.groups {
        let of_group = group.timeline.kill_points.iter().cloned();
        points.extend(of_group.map(|point| KillPoint { process: first + point.process, ..point }));
        first += group.processes;
    }
    points
}

/// The processes of a design, each with its group and its number in it.
fn processes(design: &Design) -> impl Iterator<Item = (ProcessIndex, usize, u32)> {
    let groups = design.groups.iter().enumerate();
    let processes = groups.flat_map(|(index, group)| (0..group.processes).map(move |number| (index, number)));
    processes.enumerate().map(|(index, (group, number))| (ProcessIndex(index as u16), group, number))
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
            outbox,
            method: workload.method,
            from_user: workload.from_user,
        }
    });
    let routes = routes.collect();
    (outboxes, routes)
}
