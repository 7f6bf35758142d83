//! One bucket where all spenders are visible, one queue, and refused messages go back into it (incidents S8, S10).

use std::collections::VecDeque;

use fake_telegram::bucket::{BucketState, TokenBucket};
use fake_telegram::time::Time;
use fake_telegram::units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::desk::{Ask, Desk, Grant};
use super::{ParameterError, Strategy, bucket};
use crate::env::Env;
use crate::world::{Belief, GiveUp, Message};

/// One token bucket and one first-in-first-out queue in the store. Whatever was not sent goes back to the end of the
/// queue at once: the retry is a second producer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SharedBucket {
    /// The bucket's refill.
    pub rate: Rate,
    /// The bucket's size.
    pub burst: u32,
}

impl Default for SharedBucket {
    fn default() -> Self {
        Self { rate: Rate::per_second(29), burst: 20 }
    }
}

/// What is in the store.
#[derive(Default)]
struct Shared {
    bucket: BucketState,
    queue: VecDeque<Message>,
}

impl Strategy for SharedBucket {
    const KIND: &'static str = "shared-bucket";
    const SUMMARY: &'static str =
        "one bucket and one queue in the store; what is refused goes back into the queue";

    fn check(&self) -> Result<(), ParameterError> {
        bucket(("rate", self.rate), ("burst", self.burst)).map(|_| ())
    }

    fn calls(&self) -> Vec<&'static str> {
        vec!["send", "exchange", "finish"]
    }

    async fn run(self, env: Env) {
        let bucket = TokenBucket::new(self.rate, self.burst.into());
        let queue = env.key(&format!("shared-bucket/{}", env.token().0), Shared::default);
        let desk = env.memory(Desk::default);
        let exchange = |now, shared: &mut Shared, due: &mut Vec<Message>| shared.exchange(&bucket, now, due);
        while let Some(message) = desk.next(&env, queue, exchange).await {
            match env.send(&message).await.read().status() {
                Some(200) => env.settle(&message, Belief::Delivered),
                Some(403) => env.give_up(&message, GiveUp::ChatDead),
                Some(400) => env.give_up(&message, GiveUp::Rejected),
                _ => {
                    env.script(queue, |_, shared| shared.queue.push_back(message)).await;
                    desk.note(&env, env.now());
                }
            }
        }
    }
}

impl Shared {
    fn exchange(&mut self, bucket: &TokenBucket, now: Time, due: &mut Vec<Message>) -> Grant<Message> {
        self.queue.extend(due.drain(..));
        let mut message = None;
        if bucket.wait(self.bucket, now).is_zero() {
            message = self.queue.pop_front();
            if message.is_some() {
                bucket.take(&mut self.bucket, now);
            }
        }
        let wait = bucket.wait(self.bucket, now);
        let ask = if self.queue.is_empty() { Ask::WhenDue } else { Ask::NotBefore(now + wait) };
        Grant { message, given_up: Vec::new(), ask }
    }
}
