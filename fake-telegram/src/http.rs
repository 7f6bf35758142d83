//! The model over HTTP: a Bot API server that unmodified bots talk to.
//!
//! Whatever decides is pure and stands below; here requests are read, decisions wait for their clients, and answers are
//! written.
//!
//! Modules bottom up; each uses only those listed above it.

pub mod clock;
pub mod params;
pub mod peers;
mod known;
pub mod failure;
pub mod request;
pub mod methods;
pub mod written;
pub mod contents;
pub mod objects;
pub mod answers;
pub mod kinds;
pub mod updates;
pub mod inbox;
pub mod webhook;
pub mod people;
pub mod journal;
pub mod verdict;
pub mod gate;
mod core;
pub mod options;
pub mod state;
pub mod reply;
mod call;
mod deeds;
mod metrics;
mod admin;
mod service;
mod workers;
pub mod server;
pub mod cli;
