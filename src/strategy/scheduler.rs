//! The scheduler: the composition that holds everywhere. A refusal is not an error but a date.
//!
//! - One bucket in the store, run slightly below the documented rate, so that all spenders share one budget.
//! - A lane per chat with its own pace and its own ready-at; strictly first in, first out inside a chat. Lanes that
//!   are ready go by the highest class that waits in them, then in rotation. A limited chat holds up nobody else.
//! - A refused message stays at the head of its lane until `now + retry_after + margin`. When a second chat is refused
//!   meanwhile, the whole token pauses.
//! - The first 403 marks the chat: it is not written to again until its user writes.
//! - An answer counts only if its shape does. Whatever leaves doubt is tried again a few times, then settled as
//!   unknown; so is what was in flight in a process that died.
//! - What is past its deadline is not sent.

use super::composition::{Composition, Named};
use super::sender::{
    Answers, DeadChats, Doubt, Lanes, Limiter, Pause, Postpone, Queue, Retry, RetryDoubt, Sender,
    SharedPause, TokenBucketLimiter,
};

/// A shared bucket, a lane per chat, priorities by class, and refusals as dates.
#[derive(Debug)]
pub struct Scheduler;

impl Composition for Scheduler {
    const KIND: &'static str = "scheduler";
    const SUMMARY: &'static str =
        "a shared bucket, a lane per chat, priorities; a refusal is a date, not an error";

    fn parts() -> Sender {
        Sender {
            limiter: Named(Limiter::TokenBucket(TokenBucketLimiter::default())),
            pause: Named(Pause::Store(SharedPause::default())),
            queue: Named(Queue::Lanes(Lanes::default())),
            retry: Named(Retry::Postpone(Postpone::default())),
            doubt: Named(Doubt::Retry(RetryDoubt { attempts: Some(3), ..RetryDoubt::default() })),
            answers: Answers::Shape,
            dead_chats: DeadChats::Revive,
            deadlines: true,
            ..Sender::bare()
        }
    }
}
