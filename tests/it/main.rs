//! One test binary: links once.

mod cli;
mod reports;
mod scenario_errors;
mod scenarios;
