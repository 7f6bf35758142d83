//! The tests from outside, one binary.

mod cli;
mod scenario_errors;
