//! One bucket where all spenders are visible, one queue, and refused messages go back into it (incidents S8, S10).

use fake_telegram::time::Duration;
use fake_telegram::units::Rate;

use super::composition::{Composition, Named};
use super::sender::{Doubt, Fifo, Limiter, Queue, Retry, RetryDoubt, Sender, TokenBucketLimiter};

/// One token bucket and one first-in-first-out queue in the store. Whatever was not sent goes back to the end of the
/// queue at once: the retry is a second producer.
#[derive(Debug)]
pub struct SharedBucket;

impl Composition for SharedBucket {
    const KIND: &'static str = "shared-bucket";
    const SUMMARY: &'static str =
        "one bucket and one queue in the store; what is refused goes back into the queue";

    fn parts() -> Sender {
        let limiter = TokenBucketLimiter { rate: Rate::per_second(29), ..TokenBucketLimiter::default() };
        let doubt = RetryDoubt { pause: Duration::ZERO, ..RetryDoubt::default() };
        Sender {
            limiter: Named(Limiter::TokenBucket(limiter)),
            queue: Named(Queue::Fifo(Fifo::default())),
            retry: Named(Retry::requeue()),
            doubt: Named(Doubt::Retry(doubt)),
            ..Sender::bare()
        }
    }
}
