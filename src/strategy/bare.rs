//! A sender to build up part by part.

use super::composition::Composition;
use super::sender::Sender;

/// Takes what is due, sends it once, reads the status, and that is all: every part is for the scenario to add.
#[derive(Debug)]
pub struct Bare;

impl Composition for Bare {
    const KIND: &'static str = "bare";
    const SUMMARY: &'static str =
        "no part but those that the scenario adds: limiter, pause, queue, retry, ...";

    fn parts() -> Sender {
        Sender::bare()
    }
}
