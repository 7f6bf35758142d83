//! A program with a sender of its own beside the built-in ones: all of `floodlab`, and `fixed-gap`.
//!
//! Save this scenario as `gap.toml`:
//!
//! ```toml
//! # 10,000 chats at once, one call every 40 ms: 25 a second fit the token's 30. A second process makes it 50.
//! duration = "10min"
//! chats = { count = "10k" }
//!
//! [workload.announcement]
//! kind = "broadcast"
//! class = "broadcast"
//!
//! [[design]]
//! name = "one-process"
//! strategy = { kind = "fixed-gap", gap = "40ms" }
//!
//! [[design]]
//! name = "two-processes"
//! strategy = { kind = "fixed-gap", gap = "40ms" }
//! processes = 2
//! ```
//!
//! and run it:
//!
//! ```sh
//! cargo run --release --example own_strategy -- run gap.toml
//! cargo run --release --example own_strategy -- list strategies
//! ```

use std::cell::Cell;
use std::process::ExitCode;

use fake_telegram::api::Answer;
use floodlab::world::{Belief, GiveUp};
use floodlab::{Duration, Env, Registry, Strategy, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call after the other with a gap between them; a refusal makes the whole process wait.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedGap {
    /// From one call of a process to its next.
    gap: Duration,
}

/// When this process may call next, in the memory that its workers share.
struct FreeAt(Cell<Time>);

impl Strategy for FixedGap {
    const KIND: &'static str = "fixed-gap";
    const SUMMARY: &'static str = "one call every so often in each process; waits out what it is refused";

    async fn run(self, env: Env) {
        let FreeAt(free_at) = &*env.memory(|| FreeAt(Cell::new(Time::ZERO)));
        while let Some(message) = env.next().await {
            loop {
                let turn = env.turn().await; // one worker of the process at a time
                while env.now() < free_at.get() {
                    env.sleep_until(free_at.get()).await;
                }
                free_at.set(env.now() + self.gap);
                drop(turn);
                match env.send(&message).await.read() {
                    Answer::Message { .. } => break env.settle(&message, Belief::Delivered),
                    Answer::TooManyRequests { hint } => {
                        let wait = hint.wait(env.now()).unwrap_or(Duration::from_secs(1));
                        free_at.set(free_at.get().max(env.now() + wait));
                    }
                    Answer::Forbidden(_) => break env.give_up(&message, GiveUp::ChatDead),
                    _ => break env.settle(&message, Belief::Unknown),
                }
            }
        }
    }
}

fn main() -> ExitCode {
    floodlab::cli::main(&Registry::builtin().with_strategy::<FixedGap>())
}
