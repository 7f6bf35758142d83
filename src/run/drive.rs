//! Drives a scenario: the same designs and the same world in real time, against a server over HTTP.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use fake_telegram::http::options::Options;
use fake_telegram::time::Time;

use super::reproduce::{command, owned, quoted};
use super::simulate::{self, Closed, Ends, Simulation};
use super::{Failed, Finished, Progress, RunError, Saved, report};
use crate::event::Observer;
use crate::executor::Executor;
use crate::gate;
use crate::live::{Ended, Known, RealTime, StoreLink, Target, TargetError};
use crate::outcome::{LiveStore, Outcome, Report, Runs};
use crate::scenario::Scenario;
use crate::sim::{Server, StoreLine};
use crate::store::redis::RedisStore;

/// How to drive a scenario.
pub struct Drive<'a> {
    /// The seed: of arrivals, of the senders' own draws and of the faults of a server of ours.
    pub seed: u64,
    /// The designs, as indices into the scenario's, one after the other.
    pub designs: Vec<usize>,
    /// Against which server, with a token for each of the scenario's; `None`: for each design one of our own, with the
    /// scenario's rules, faults and chats.
    pub target: Option<Target>,
    /// The saved result that conditions refer to.
    pub baseline: Option<&'a Saved>,
    /// Whether to judge what the scenario is known to show: in virtual time, that is.
    pub judge: bool,
    /// Whether somebody wants it to end: what happened until then is the result.
    pub interrupted: &'a AtomicBool,
}

impl fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drive(seed {}, designs {:?}, {:?})", self.seed, self.designs, self.target)
    }
}

/// Drives the chosen designs, one after the other. No workload of the scenario asks questions, which have no method of
/// the Bot API.
///
/// Interrupted, the report holds the designs so far; the last of them says when it was interrupted.
///
/// # Errors
/// If something goes wrong with a design; the results of the others are in the error.
pub fn drive(
    scenario: &Scenario,
    drive: &Drive<'_>,
    progress: &dyn Fn(Progress),
    mut observers: impl FnMut(usize) -> Vec<Box<dyn Observer>>,
) -> Result<Report, Failed> {
    let mut results = Vec::new();
    for design in &drive.designs {
        let simulation = Simulation { scenario, design: *design, seed: drive.seed, shuffle_ties: None };
        let result = if drive.interrupted.load(Ordering::Relaxed) {
            Ok(None)
        } else {
            let one = || one(&simulation, drive, progress, observers(*design));
            simulate::or_say(&simulation, one).map(Some)
        };
        results.push(Finished { seed: None, design: *design, result });
    }
    let mut reproduce = command("drive", scenario, &drive.designs, &[drive.seed]);
    reproduce.extend(scenario.asked_gates.iter().map(|gate| format!(" --gate {}", quoted(gate))));
    if let Some(saved) = drive.baseline {
        reproduce += &format!(" --baseline {}", quoted(&saved.file));
    }
    if let Some(target) = &drive.target {
        reproduce += &format!(" --url {}", quoted(target.url()));
        reproduce += &" --token …".repeat(scenario.tokens.len());
    }
    reproduce += owned(scenario, drive.target.as_ref().is_none_or(Target::is_loopback));
    let (mut report, finished, errors) = report(scenario, drive.seed, results, reproduce);
    report.designs = finished.into_iter().map(|(_, outcome)| outcome).collect();
    let saved = drive.baseline.map(|saved| Runs::of(&saved.report)).unwrap_or_default();
    report.gates = gate::judge(&scenario.gates, &Runs::of(&report), &saved);
    if drive.judge {
        report.expectations = gate::judge(&scenario.expectations, &Runs::of(&report), &saved);
    }
    report.baseline = drive.baseline.map(Saved::info);
    report.host.wall_ms = report.designs.iter().map(|design| design.host.wall_ms).sum();
    if errors.is_empty() { Ok(report) } else { Err(Failed { report: Box::new(report), errors }) }
}

/// One design. A server elsewhere has a past, and forgets it before each.
fn one(
    simulation: &Simulation<'_>,
    drive: &Drive<'_>,
    progress: &dyn Fn(Progress),
    observers: Vec<Box<dyn Observer>>,
) -> Result<Outcome, RunError> {
    let Simulation { scenario, design, .. } = *simulation;
    let name = || scenario.designs[design].name.clone();
    let failed = |source| RunError::Target { design: name(), source };
    // It ends after all that calls it.
    let own;
    let (mut target, known) = match &drive.target {
        Some(target) => {
            let tokens = scenario.tokens.len() as u16;
            (target.clone(), Known::outside(scenario.population.kinds(), tokens, &scenario.server))
        }
        None => {
            let target;
            (target, own) = Target::start(options(scenario, simulation.seed)).map_err(failed)?;
            (target, Known::inside(&own, &scenario.server))
        }
    };
    let time = RealTime::new(scenario.wire.timeout).map_err(TargetError::System).map_err(failed)?;
    time.meet(&mut target).map_err(failed)?;
    if drive.target.is_some() {
        time.reset(&target).map_err(failed)?;
    }
    let mut executor = Executor::default();
    let processes = scenario.designs[design].groups.iter().map(|group| group.processes as usize).sum();
    let line = time.line(&target, known, processes, &executor).map_err(failed)?;
    let server = Server::Real(Box::new(line.clone()));
    let store = simulate::open_store(simulation)?;
    let broken = |what: String| RunError::Store { design: name(), what };
    let redis = store.in_real_time(scenario.store.timeout).map_err(|error| broken(error.to_string()))?;
    let link = |redis| Box::new(StoreLink::new(redis, line.clone())) as Box<dyn StoreLine>;
    let store_line = redis.clone().map(link);
    let sim = simulate::prepare(simulation, observers, Ends { server, store, store_line }, &executor);
    let horizon = scenario.horizon();
    let mut last = Time::ZERO;
    let go_on = |now| {
        progress(Progress { design, now, by: now - std::mem::replace(&mut last, now) });
        !drive.interrupted.load(Ordering::Relaxed)
    };
    // Deadlines are told by the store's clock and waited for by ours, so both begin together.
    redis.as_ref().map_or(Ok(()), |redis| time.begin(redis)).map_err(|error| broken(error.to_string()))?;
    let ended = time.run(&mut executor, &sim, &line, Time::ZERO + horizon, go_on);
    let Ended { at, mut live, took } = ended.map_err(|source| simulate::stalled(simulation, source))?;
    if let Some(what) = redis.as_ref().and_then(RedisStore::unexpected) {
        return Err(broken(what));
    }
    let Closed { mut outcome, missing } = simulate::close(simulation, &sim, executor, at)?;
    live.store = redis.map(|_| LiveStore { missing, silent: sim.store().failure() });
    if live.interrupted_us.is_none() {
        simulate::missed(simulation, &sim)?;
    }
    outcome.live = Some(live);
    outcome.host.wall_ms = took.as_micros() / 1_000;
    outcome.host.speed_up = horizon.as_micros().checked_div(took.as_micros()).unwrap_or(0);
    Ok(outcome)
}

/// The scenario's server: its rules, faults and chats, which have the ids of
/// [`chat_id`](fake_telegram::http::options::chat_id).
pub fn server(scenario: &Scenario, seed: u64) -> Options {
    Options {
        profile: scenario.server.clone(),
        faults: scenario.faults.clone(),
        chats: Some(scenario.chats(seed)),
        seed,
        ..Options::default()
    }
}

/// The same with a bot for each token.
fn options(scenario: &Scenario, seed: u64) -> Options {
    let tokens = (1..=scenario.tokens.len()).map(|bot| format!("{bot}:drive")).collect();
    Options { tokens, ..server(scenario, seed) }
}
