//! A pure model of how the Telegram Bot API limits and fails.
//!
//! Sans-IO: no clock, no async, no sockets. Whoever drives it passes the time in ([`model::Model::handle`],
//! [`model::Model::advance`]) and carries the answers out ([`model::Model::poll`]).
//!
//! Modules bottom up; each uses only those listed above it.

pub mod time;
pub mod units;
pub mod hint;
pub mod api;
pub mod draw;
pub mod bucket;
pub mod window;
pub mod penalty;
pub mod limits;
pub mod early;
pub mod fault;
pub mod chat;
pub mod profile;
pub mod model;
#[cfg(feature = "http")]
pub mod http;
