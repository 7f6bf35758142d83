//! Real time: the same world, with HTTP at the other end of its wire and a real clock over it.
//!
//! The executor runs by turns on a tokio runtime of one thread. A turn lets everything happen that is due by the clock; then
//! the thread waits for the next instant at which something is due, or for news of a call. What differs from virtual time
//! is here and nowhere else.
//!
//! Modules bottom up.

mod clock;
mod answer;
mod truth;
mod client;
mod target;
mod known;
mod line;
mod stored;

use std::io;

use fake_telegram::time::{Duration, Time};
use hdrhistogram::Histogram;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, yield_now};

use crate::executor::{Executor, Stalled};
use crate::outcome::{Late, Live};
use crate::sim::Sim;
use crate::store::redis::{Broken, RedisStore};

pub use known::Known;
pub use line::Line;
pub use stored::StoreLink;
pub use target::{Target, TargetError};

/// Real time for one run after the other, on this thread.
#[derive(Debug)]
pub struct RealTime {
    runtime: Runtime,
    timeout: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// When.
    pub at: Time,
    /// What real time brought.
    pub live: Live,
    /// How long it took.
    pub took: Duration,
}

/// Between two questions whether to go on.
const TICK: Duration = Duration::from_millis(100);

impl RealTime {
    /// Real time in which a call is given up after `timeout`.
    ///
    /// # Errors
    /// If the system gives no runtime.
    pub fn new(timeout: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, timeout })
    }

    /// Finds out whether `target` is a server of ours: if so, it will be asked for the truth.
    ///
    /// # Errors
    /// If nothing answers there.
    pub fn meet(&self, target: &mut Target) -> Result<(), TargetError> {
        self.runtime.block_on(target.meet(self.timeout))
    }

    /// Lets a server of ours forget what was sent to it before; does nothing to another.
    ///
    /// # Errors
    /// If it does not.
    pub fn reset(&self, target: &Target) -> Result<(), TargetError> {
        match target.ours {
            Some(_) => self.runtime.block_on(target.reset(self.timeout)),
            None => Ok(()),
        }
    }

    /// A line to `target` for a run of so many processes on `executor`.
    ///
    /// # Errors
    /// If the system gives no HTTP client.
    pub fn line(
        &self,
        target: &Target,
        known: Known,
        processes: usize,
        executor: &Executor,
    ) -> Result<Line, TargetError> {
        let line = Line::new(target.clone(), known, processes, self.timeout, executor.handle().clone());
        line.map_err(|source| TargetError::Silent { base: target.base.clone(), source })
    }

    /// The run begins now, by the clock of a real store, and in a moment by ours.
    ///
    /// # Errors
    /// If the store does not tell the time.
    pub fn begin(&self, store: &RedisStore) -> Result<(), Broken> {
        self.runtime.block_on(store.begin())
    }

    /// Runs until `horizon`, until nothing is left to do, or until `go_on` says no, which is asked a few times a second.
    ///
    /// # Errors
    /// [`Stalled`], as in virtual time.
    pub fn run(
        &self,
        executor: &mut Executor,
        sim: &Sim,
        line: &Line,
        horizon: Time,
        go_on: impl FnMut(Time) -> bool,
    ) -> Result<Ended, Stalled> {
        let world = LocalSet::new();
        world.block_on(&self.runtime, run(executor, sim, line, horizon, go_on))
    }
}

async fn run(
    executor: &mut Executor,
    sim: &Sim,
    line: &Line,
    horizon: Time,
    mut go_on: impl FnMut(Time) -> bool,
) -> Result<Ended, Stalled> {
    let shared = &line.0;
    // Two digits are enough to blame a machine.
    let mut late = Histogram::<u64>::new(2).expect("two digits are a precision");
    // Nothing happens at the horizon or after.
    let last = Time::from_micros(horizon.as_micros().saturating_sub(1));
    let clock = clock::Clock::start();
    shared.clock.set(clock);
    shared.end.set(horizon);
    let interrupted = loop {
        let now = clock.now().min(last);
        let next = executor.turn(sim, now, |by| late.record(by.as_micros()).expect("it grows"))?;
        if !go_on(now) {
            break Some(clock.now().min(last));
        }
        if clock.now() >= horizon {
            break None;
        }
        if next == Time::MAX && shared.waiting.get() == 0 {
            match executor.deadlock() {
                Some(stalled) => return Err(stalled),
                // Nothing is left to do: nobody waits for the end.
                None => break None,
            }
        }
        // What carries the calls runs in between.
        yield_now().await;
        tokio::select! {
            () = clock.sleep_until(next.min(horizon).min(now + TICK)) => {}
            () = shared.came.notified() => {}
        }
    };
    let (end, took) = (interrupted.unwrap_or(horizon), clock.now() - Time::ZERO);
    executor.advance(end);
    let news = line.settle(end).await;
    for call in news {
        crate::executor::Source::external(sim, call);
    }
    let calls = shared.tally.borrow().clone();
    let late = Late { events: late.len(), p99: late.value_at_quantile(0.99), max: late.max() };
    let live = Live { interrupted_us: interrupted.map(Time::as_micros), late_us: late, calls, ..line.live() };
    Ok(Ended { at: end, live, took })
}
