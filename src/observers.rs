//! Everything that reads the events of a run, in one place.
//!
//! The world names the event where it happens, so each of these reads only the kinds that concern it, without a
//! call: that is why they are one concrete type and inlined. Observers that somebody asked for come last and cost
//! nothing when there are none.

use std::fmt;

use fake_telegram::limits::Level;
use fake_telegram::time::Time;

use crate::check::EarlyRetries;
use crate::event::{Event, EventHash, Observer};
use crate::ledger::Ledger;
use crate::metrics::{Metrics, Penalties};

/// The observers of one run.
pub struct Observers {
    /// The hash of all events.
    pub hash: EventHash,
    /// The two truths.
    pub ledger: Ledger,
    /// A finding about the sender.
    pub early_retries: EarlyRetries,
    /// The dials.
    pub metrics: Metrics,
    /// Whoever else wants to see the events.
    pub asked_for: Vec<Box<dyn Observer>>,
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({:?})", self.hash)
    }
}

impl Observer for Observers {
    #[inline(always)]
    fn observe(&mut self, at: Time, event: &Event) {
        self.hash.observe(at, event);
        self.ledger.observe(at, event);
        self.early_retries.observe(at, event);
        self.metrics.observe(at, event);
        if !self.asked_for.is_empty() {
            self.tell(at, event);
        }
    }
}

impl Observers {
    /// Totals are cut at `at`: what is there so far, what the token-wide limit allows, and what penalties there were.
    pub fn cut(&mut self, at: Time, level: Option<Level>, penalties: Vec<Penalties>) {
        self.metrics.cut(at, level, penalties, &self.ledger, self.early_retries.count);
    }

    #[cold]
    fn tell(&mut self, at: Time, event: &Event) {
        for observer in &mut self.asked_for {
            observer.observe(at, event);
        }
    }
}
