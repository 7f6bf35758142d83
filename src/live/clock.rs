//! The wall clock of a run in real time.

#![expect(clippy::disallowed_methods, reason = "this is where real time comes in")]

use std::time::{Instant, SystemTime};

use fake_telegram::hint::RetryHint;
use fake_telegram::time::Time;

/// Real time, counted from the start of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
    /// What day it was then.
    day: SystemTime,
}

impl Clock {
    /// It is [`Time::ZERO`] now.
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), day: SystemTime::now() }
    }

    /// The instant that it is.
    pub(super) fn now(&self) -> Time {
        Time::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// What time of day the run started: Unix time, in microseconds.
    pub(super) fn unix_us(&self) -> u64 {
        let since = self.day.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// Waits until it is `deadline`: what runs in between runs meanwhile. As exact as tokio's timer, which ticks once a
    /// millisecond and is never early.
    pub(super) async fn sleep_until(&self, deadline: Time) {
        let deadline = self.start + std::time::Duration::from_micros(deadline.as_micros());
        tokio::time::sleep_until(deadline.into()).await;
    }

    /// What a date says of the wait: whole seconds from the start of the run, rounded up so that nobody is early.
    pub(super) fn hint(&self, date: SystemTime) -> RetryHint {
        let since = date.duration_since(self.day).unwrap_or_default();
        let seconds = since.as_secs() + u64::from(since.subsec_nanos() > 0);
        RetryHint::Date(u32::try_from(seconds).unwrap_or(u32::MAX))
    }
}
