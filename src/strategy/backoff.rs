//! Exponential back-off that does not read `retry_after` (incident S2).

use fake_telegram::time::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ParameterError, Strategy, at_least_one};
use crate::env::Env;
use crate::world::{Belief, GiveUp, Message};

/// Retries what did not work after 1, 2, 4, 8 s, whatever the server asked for, a limited number of times.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Backoff {
    /// The first wait; each further one is twice as long.
    pub first: Duration,
    /// Calls for a message, the first included, before it is dropped.
    pub attempts: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), attempts: 5 }
    }
}

impl Strategy for Backoff {
    const KIND: &'static str = "backoff";
    const SUMMARY: &'static str = "retries after 1, 2, 4, 8 s and does not read retry_after";

    fn check(&self) -> Result<(), ParameterError> {
        at_least_one("attempts", self.attempts)
    }

    async fn run(self, env: Env) {
        while let Some(message) = env.next().await {
            self.deliver(&env, &message).await;
        }
    }
}

impl Backoff {
    async fn deliver(&self, env: &Env, message: &Message) {
        let mut wait = self.first;
        for attempt in 1..=self.attempts {
            match env.send(message).await.read().status() {
                Some(200) => return env.settle(message, Belief::Delivered),
                Some(403) => return env.give_up(message, GiveUp::ChatDead),
                Some(400) => return env.give_up(message, GiveUp::Rejected),
                // 429, 5xx and no answer at all are one to it: something to try again.
                _ if attempt < self.attempts => env.sleep(wait).await,
                _ => {}
            }
            wait = wait.saturating_mul(2);
        }
        env.give_up(message, GiveUp::Attempts);
    }
}
