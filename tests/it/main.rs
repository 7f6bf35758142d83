//! One test binary: links once.

mod lab;
mod recount;

mod ci;
mod cli;
mod compare;
mod determinism;
mod docs;
mod gates;
mod layers;
mod ledger;
#[cfg(feature = "live")]
mod live;
mod lives;
mod pairing;
#[cfg(feature = "redis")]
mod redis;
mod refusals;
mod reports;
mod scenario_errors;
mod scenarios;
mod senders;
#[cfg(feature = "live")]
mod teloxide;
mod theory;
#[cfg(feature = "live")]
mod windows;
mod worlds;
