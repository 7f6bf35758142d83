//! What a sender may send, and when: plain structs with `now` as an argument, no async, shared by strategies.
//!
//! The token bucket is the server model's own ([`fake_telegram::bucket`]).

pub mod lanes;
pub mod pause;
