//! One test binary: links once.

mod cli;
mod docs;
mod reports;
mod scenario_errors;
mod scenarios;
