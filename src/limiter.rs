//! What a sender may send, and when: plain structs with `now` as an argument, no async, shared by strategies.
//!
//! The token bucket is the server model's own ([`fake_telegram::bucket`]).

pub mod hint;
pub mod pause;
pub mod ramp;
pub mod level_bucket;
pub mod window_counter;
pub mod budget;
pub mod offer;
pub mod text;
mod leases;
pub mod lanes;
pub mod fifo;
pub mod queue;
