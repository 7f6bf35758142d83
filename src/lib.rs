//! floodlab: a deterministic simulator and load-testing harness for senders behind rate limits.
//!
//! A run is a pure function of (scenario, design, seed).
//!
//! The modules are listed bottom up; a module uses only those listed above it, and `tests/it/layers.rs` holds it to
//! that. So the list is the architecture.

pub(crate) mod names;
pub mod one_or_many;
pub mod stats;
pub mod rng;
pub mod executor;
pub mod world;
pub mod limiter;
pub mod event;
pub mod outcome;
pub mod ledger;
pub mod check;
pub mod metrics;
pub mod observers;
pub mod store;
pub mod sim;
#[cfg(feature = "live")]
pub mod live;
pub mod env;
pub mod strategy;
pub mod workload;
pub mod gate;
pub mod compare;
pub mod registry;
pub mod scenario;
pub mod run;
pub mod report;
pub mod cli;

pub use fake_telegram::time::{Duration, Time};
pub use {env::Env, registry::Registry, strategy::Strategy, workload::Workload, world::Message};
