//! The server from outside: over HTTP, as bots, their users and their operators meet it.
//!
//! Expected values are Telegram's (texts and statuses as bots have seen them), the rules of the default profile, or
//! counted by hand. Time stands unless a test is about time that runs: the clock is moved through the admin API.

#![cfg(feature = "http")]

mod binary;
mod bots;
mod crowds;
mod ends;
mod failures;
mod fake;
mod files;
mod limits;
mod malformed;
mod people;
mod polls;
mod properties;
mod scenarios;
mod verdicts;
mod webhooks;
