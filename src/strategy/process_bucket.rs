//! A correct token bucket in each process (incident S6): right alone, wrong together.

use std::cell::Cell;

use fake_telegram::api::Answer;
use fake_telegram::bucket::{BucketState, TokenBucket};
use fake_telegram::time::Duration;
use fake_telegram::units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ParameterError, Strategy, at_least_one, bucket};
use crate::env::Env;
use crate::world::{Belief, GiveUp, Message};

/// A token bucket that the workers of one process share; a refused call waits its `retry_after` and tries again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessBucket {
    /// The bucket's refill.
    pub rate: Rate,
    /// The bucket's size.
    pub burst: u32,
    /// The wait after a 429 that says nothing about it.
    pub fallback: Duration,
    /// The wait after an answer that says nothing: 5xx, or none at all.
    pub pause: Duration,
    /// Calls without such an answer before a message is dropped.
    pub attempts: u32,
}

impl Default for ProcessBucket {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self { rate: Rate::per_second(29), burst: 20, fallback: second, pause: second, attempts: 5 }
    }
}

/// The bucket in the process' memory.
#[derive(Default)]
struct Shared(Cell<BucketState>);

impl Strategy for ProcessBucket {
    const KIND: &'static str = "process-bucket";
    const SUMMARY: &'static str = "a token bucket in each process; honours retry_after per request";

    fn check(&self) -> Result<(), ParameterError> {
        bucket(("rate", self.rate), ("burst", self.burst))?;
        at_least_one("attempts", self.attempts)
    }

    async fn run(self, env: Env) {
        let bucket = TokenBucket::new(self.rate, self.burst.into());
        let shared = env.memory(Shared::default);
        while let Some(message) = env.next().await {
            self.deliver(&env, &message, bucket, &shared).await;
        }
    }
}

impl ProcessBucket {
    async fn deliver(&self, env: &Env, message: &Message, bucket: TokenBucket, shared: &Shared) {
        let mut failed = 0;
        loop {
            // The token is taken now, if need be on credit; so workers wait in line and wake one by one.
            let mut state = shared.0.get();
            let wait = bucket.wait(state, env.now());
            bucket.take(&mut state, env.now());
            shared.0.set(state);
            if !wait.is_zero() {
                env.sleep(wait).await;
            }
            match env.send(message).await.read() {
                Answer::TooManyRequests { hint } => {
                    env.sleep(hint.wait(env.now()).unwrap_or(self.fallback)).await;
                }
                Answer::Forbidden(_) => return env.give_up(message, GiveUp::ChatDead),
                Answer::ChatNotFound => return env.give_up(message, GiveUp::Rejected),
                Answer::Message { .. } | Answer::Nothing | Answer::Garbage(_) => {
                    return env.settle(message, Belief::Delivered);
                }
                Answer::ServerError { .. } | Answer::ConnectionLost | Answer::TimedOut => {
                    failed += 1;
                    if failed == self.attempts {
                        return env.give_up(message, GiveUp::Attempts);
                    }
                    env.sleep(self.pause).await;
                }
            }
        }
    }
}
