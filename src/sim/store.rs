//! Calls to the store: the way there, the way back, and what a caller learns when it is away.

use std::cell::Cell;
use std::rc::Rc;

use fake_telegram::api::TokenIndex;
use fake_telegram::time::{Duration, Time};
use futures::future::LocalBoxFuture;

use super::Sim;
use crate::event::Event;
use crate::executor::{Bell, Sleep};
use crate::rng::draw;
use crate::rng::latency::Latency;
use crate::store::script::{Answer, Request};
use crate::store::{Booking, Operation, StoreError, Unavailable};
use crate::world::ProcessIndex;

/// Carries calls to a real store in real time.
pub trait StoreLine {
    /// A call leaves, now; the answer to it, or what its caller learns instead. It wakes its task from wherever it
    /// likes. `booking` hears the answer first and as soon as it is there, whether or not somebody waits for it.
    fn call(
        &self,
        request: Request,
        booking: Option<Booking>,
    ) -> LocalBoxFuture<'static, Result<Answer, StoreError>>;
}

/// The way to the store.
///
/// Every call is there after half of the median round trip, so calls are executed in the order in which they leave; all
/// that varies is the way back. That is why a call may be executed when it leaves, at the instant of its arrival: nobody
/// can come in between, and whoever dies meanwhile has sent it.
#[derive(Debug)]
pub struct Way {
    there: Duration,
    round_trip: Latency,
    timeout: Duration,
    key: u64,
    /// By process: calls so far.
    calls: Vec<Cell<u64>>,
}

/// Numbers of external events from here on are announcements of processes; calls on the wire are numbered below.
pub(super) const ANNOUNCEMENT: u32 = 1 << 25;

impl Way {
    /// A way for `processes` processes with this median round trip; its draws have the key `key`.
    pub fn new(median: Duration, p99: Duration, timeout: Duration, processes: usize, key: u64) -> Self {
        Self {
            there: median / 2,
            round_trip: Latency::new(median, p99),
            timeout,
            key,
            calls: vec![Cell::new(0); processes],
        }
    }

    /// How long the next call of `process` takes until it is back; never less than the way there.
    #[inline]
    fn next(&self, process: ProcessIndex) -> Duration {
        let calls = &self.calls[usize::from(process.0)];
        calls.set(calls.get() + 1);
        self.round_trip.draw_with(|| draw(self.key, process.0.into(), calls.get())).max(self.there)
    }
}

impl Sim {
    /// Makes a call to the store: what it gives, and the wait until that is back.
    pub fn call_store<O: Operation>(
        &self,
        process: ProcessIndex,
        operation: O,
    ) -> (Result<O::Reply, StoreError>, Sleep) {
        let way = &self.way;
        let arrival = self.handle.now() + way.there;
        self.advance_store(arrival);
        let round_trip = way.next(process);
        let result = match self.store.execute(arrival, operation) {
            Ok(_) if round_trip > way.timeout => Err(StoreError::TimedOut),
            Ok(result) => Ok(result),
            Err(Unavailable::Refused) => Err(StoreError::Refused),
            Err(Unavailable::Hangs) => Err(StoreError::TimedOut),
        };
        let back = if matches!(result, Err(StoreError::TimedOut)) { way.timeout } else { round_trip };
        (result, self.handle.wait_for("the answer of the store", back))
    }

    /// Who carries calls to the store, if it is a real one in real time.
    #[inline]
    pub fn store_line(&self) -> Option<&dyn StoreLine> {
        self.store_line.as_deref()
    }

    /// Makes a call to a real store in real time, by `line`. What happens to the store by plan happens here.
    ///
    /// # Errors
    /// As anywhere; and [`StoreError::Unexpected`] for what is not written for a real store.
    pub async fn carry_to_store<O: Operation>(
        &self,
        line: &dyn StoreLine,
        process: ProcessIndex,
        operation: O,
    ) -> Result<O::Reply, StoreError> {
        const WAITING: &str = "the answer of the store";
        let now = self.handle.now();
        self.advance_store(now);
        let request = match self.store.request(now, &operation) {
            Ok(request) => request.map_err(|_| StoreError::Unexpected)?,
            Err(Unavailable::Refused) => {
                self.handle.wait_for(WAITING, self.way.next(process)).await;
                return Err(StoreError::Refused);
            }
            Err(Unavailable::Hangs) => {
                self.handle.wait_for(WAITING, self.way.timeout).await;
                return Err(StoreError::TimedOut);
            }
        };
        let answer = line.call(request, operation.booking()).await?;
        operation.reply(answer, &mut Vec::new()).ok_or(StoreError::Unexpected)
    }

    /// `process` has something to tell the others of its token; they hear of it when it has been there and back.
    pub fn announce(&self, process: ProcessIndex) {
        if self.bells.borrow().len() > 1 {
            self.handle.set(self.handle.now() + self.way.there * 2, ANNOUNCEMENT | u32::from(process.0));
        }
    }

    /// The others of the token of `process` hear of it.
    #[cold]
    pub(super) fn hear(&self, process: u32) {
        let bells = self.bells.borrow();
        let token = |process: u32| bells[process as usize].as_ref().map(|(token, _)| *token);
        let of = token(process);
        for (index, bell) in bells.iter().enumerate() {
            if let Some((token, bell)) = bell
                && index != process as usize
                && Some(*token) == of
            {
                bell.ring(&self.handle);
            }
        }
    }

    /// A process has begun; `bell` is what it listens to.
    pub fn listens(&self, process: ProcessIndex, token: TokenIndex, bell: &Rc<Bell>) {
        self.bells.borrow_mut()[usize::from(process.0)] = Some((token, bell.clone()));
    }

    /// Lets happen to the store what is due by `at`.
    #[inline]
    pub(super) fn advance_store(&self, at: Time) {
        if self.store.next_event_at() <= at {
            self.change_store(at);
        }
    }

    #[cold]
    fn change_store(&self, at: Time) {
        if self.store.advance(at) {
            self.record(&Event::Flushed);
        }
        if let Some(line) = self.store_line() {
            for request in self.store.wishes() {
                let booking = (request == Request::Flush).then(|| self.flushed());
                // Nobody waits for it.
                drop(line.call(request, booking));
            }
        }
        self.plan();
    }

    /// Books that all data of a real store are gone.
    fn flushed(&self) -> Booking {
        let sim = self.me.clone();
        Box::new(move |_| {
            sim.upgrade().inspect(|sim| sim.record(&Event::Flushed));
            true
        })
    }
}
