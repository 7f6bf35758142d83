//! A correct token bucket in each process (incident S6): right alone, wrong together.

use fake_telegram::units::Rate;

use super::composition::{Composition, Named};
use super::sender::{Doubt, Keep, Limiter, Retry, RetryDoubt, Sender, TokenBucketLimiter};

/// A token bucket that the workers of one process share; a refused call waits its `retry_after` and tries again.
#[derive(Debug)]
pub struct ProcessBucket;

impl Composition for ProcessBucket {
    const KIND: &'static str = "process-bucket";
    const SUMMARY: &'static str = "a token bucket in each process; honours retry_after per request";

    fn parts() -> Sender {
        let limiter = TokenBucketLimiter {
            rate: Rate::per_second(29),
            keep: Keep::Process,
            ..TokenBucketLimiter::default()
        };
        Sender {
            limiter: Named(Limiter::TokenBucket(limiter)),
            retry: Named(Retry::wait()),
            doubt: Named(Doubt::Retry(RetryDoubt { attempts: Some(5), ..RetryDoubt::default() })),
            ..Sender::bare()
        }
    }
}
