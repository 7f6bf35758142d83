//! A scenario: the experiment as data, every default filled in.

use fake_telegram::time::Duration;

use crate::strategy::Configured;

/// How long a call takes and when a client gives up on it.
#[derive(Debug, Clone)]
pub struct Wire {
    /// The median call time (request leg plus reply leg).
    pub median: Duration,
    /// Its 99th percentile; equal to the median = constant.
    pub p99: Duration,
    /// The client's time-out.
    pub timeout: Duration,
}

/// What is compared: process groups, each with a strategy.
#[derive(Debug)]
pub struct Design {
    /// Its name in tables and reports.
    pub name: String,
    /// Its process groups.
    pub groups: Vec<Group>,
}

/// Processes that run the same strategy.
#[derive(Debug)]
pub struct Group {
    /// What each worker runs.
    pub strategy: Box<dyn Configured>,
    /// How many processes.
    pub processes: u32,
    /// Workers in each.
    pub workers: u32,
    /// The token that they send with (an index into the scenario's tokens).
    pub token: u16,
    /// The workloads routed to it (indices); empty = all.
    pub workloads: Vec<usize>,
}
