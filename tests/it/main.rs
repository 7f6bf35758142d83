//! One test binary: links once.

mod lab;
mod recount;

mod cli;
mod determinism;
mod docs;
mod layers;
mod ledger;
mod lives;
mod pairing;
#[cfg(feature = "redis")]
mod redis;
mod refusals;
mod reports;
mod scenario_errors;
mod scenarios;
mod senders;
mod theory;
