//! Exponential back-off that does not read `retry_after` (incident S2).

use super::composition::{Composition, Named};
use super::sender::{Answers, Backoff as Waits, Doubt, Retry, Sender};

/// Retries what did not work after 1, 2, 4, 8 s, whatever the server asked for, a limited number of times. 429, 5xx and
/// no answer at all are one to it.
#[derive(Debug)]
pub struct Backoff;

impl Composition for Backoff {
    const KIND: &'static str = "backoff";
    const SUMMARY: &'static str = "retries after 1, 2, 4, 8 s and does not read retry_after";

    fn parts() -> Sender {
        Sender {
            retry: Named(Retry::Backoff(Waits::default())),
            doubt: Named(Doubt::as_refused()),
            answers: Answers::Status,
            ..Sender::bare()
        }
    }
}
