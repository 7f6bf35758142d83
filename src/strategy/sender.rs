//! A sender made of parts, each of which can be replaced in the scenario: what it may send and when (`limiter`), what a
//! refusal stops (`pause`), where messages wait (`queue`), what becomes of a refused one (`retry`) and of one of which
//! nobody knows whether it arrived (`doubt`), and what it makes of answers.
//!
//! The named compositions differ in nothing but their parts. There are two skeletons: without a queue a worker keeps a
//! message in its hands until it is done with it (`direct`), with one it takes, tries once and puts back (`queued`).

mod asked;
mod count;
mod direct;
mod doubt;
mod limiter;
mod lua;
mod pause;
mod place;
mod queue;
mod queued;
mod retry;
mod scripts;
mod stored;

use std::future::Future;

use fake_telegram::api::Answer;
use fake_telegram::hint::RetryHint;
use futures::future::Either;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::composition::Named;
use super::{CallNames, ParameterError, Shares, Surroundings};
use crate::env::Env;
use crate::limiter::hint::Hint;

pub use direct::Cache;
pub use doubt::{Doubt, RetryDoubt};
pub use limiter::{Clock, Limiter, RampSettings, TokenBucketLimiter, Unreachable, WindowCounter, WindowForm};
pub use pause::{Pause, SharedPause};
pub use place::Keep;
pub use queue::{Fifo, Lanes, Mark, PaceSettings, Queue};
pub use retry::{Backoff, Postpone, Release, Retry};

/// The parts of a sender, every one of them chosen.
#[derive(Debug, Clone, Serialize)]
pub struct Sender {
    /// What it may send, and when.
    pub limiter: Named<Limiter>,
    /// What a refusal stops beside its message.
    pub pause: Named<Pause>,
    /// Where messages wait.
    pub queue: Named<Queue>,
    /// What becomes of a refused message.
    pub retry: Named<Retry>,
    /// How long a refusal lasts.
    pub hint: Hint,
    /// What becomes of a message of which nobody knows whether it arrived.
    pub doubt: Named<Doubt>,
    /// What it looks at in an answer.
    pub answers: Answers,
    /// What it remembers of chats that cannot receive.
    pub dead_chats: DeadChats,
    /// Whether it gives up messages whose deadline is over.
    pub deadlines: bool,
    /// Answers to questions that are used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
}

/// What a sender looks at in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// Nothing: whatever was sent is believed to be delivered (incident S1).
    Unread,
    /// The status: any 200 is a delivery (incident S12).
    Status,
    /// The shape: a 200 is a delivery if it holds a message.
    Shape,
}

/// What a sender remembers of chats that cannot receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeadChats {
    /// Nothing: it finds out again with every message (incident S11).
    Forget,
    /// Them, for ever.
    Remember,
    /// Them, until their user writes.
    Revive,
}

/// The parts that a scenario writes; each replaces the whole part of the composition that it is written for.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Parts")]
pub struct Parts {
    /// What it may send, and when.
    limiter: Option<Named<Limiter>>,
    /// What a refusal stops beside its message.
    pause: Option<Named<Pause>>,
    /// Where messages wait.
    queue: Option<Named<Queue>>,
    /// What becomes of a refused message.
    retry: Option<Named<Retry>>,
    /// How long a refusal lasts.
    hint: Option<Hint>,
    /// What becomes of a message of which nobody knows whether it arrived.
    doubt: Option<Named<Doubt>>,
    /// What it looks at in an answer.
    answers: Option<Answers>,
    /// What it remembers of chats that cannot receive.
    dead_chats: Option<DeadChats>,
    /// Whether it gives up messages whose deadline is over.
    deadlines: Option<bool>,
    /// Answers to questions that are used again.
    cache: Option<Cache>,
}

/// What an answer tells a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Delivered,
    /// A question, and there is nothing to tell.
    Nothing,
    Refused(RetryHint),
    ChatDead,
    Rejected,
    /// It may have arrived.
    Doubt,
}

impl Parts {
    /// The composition with what was written in the place of its own.
    pub fn over(self, base: Sender) -> Sender {
        Sender {
            limiter: self.limiter.unwrap_or(base.limiter),
            pause: self.pause.unwrap_or(base.pause),
            queue: self.queue.unwrap_or(base.queue),
            retry: self.retry.unwrap_or(base.retry),
            hint: self.hint.unwrap_or(base.hint),
            doubt: self.doubt.unwrap_or(base.doubt),
            answers: self.answers.unwrap_or(base.answers),
            dead_chats: self.dead_chats.unwrap_or(base.dead_chats),
            deadlines: self.deadlines.unwrap_or(base.deadlines),
            cache: self.cache.or(base.cache),
        }
    }
}

impl Sender {
    /// A sender without any part: it takes what is due, sends it once, reads the status, and that is all.
    pub fn bare() -> Self {
        Self {
            limiter: Named(Limiter::none()),
            pause: Named(Pause::none()),
            queue: Named(Queue::none()),
            retry: Named(Retry::drop()),
            hint: Hint::default(),
            doubt: Named(Doubt::never()),
            answers: Answers::Status,
            dead_chats: DeadChats::Forget,
            deadlines: false,
            cache: None,
        }
    }

    /// Whether the parts, each for itself and together, can work.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.limiter.0.check()?;
        self.queue.0.check()?;
        self.retry.0.check()?;
        self.doubt.0.check()?;
        self.check_hint()?;
        self.check_together()?;
        self.check_effects()
    }

    /// Whether the parts can work in these surroundings.
    pub fn check_at(&self, at: &Surroundings<'_>) -> Result<(), ParameterError> {
        self.queue.0.check_at(at)?;
        self.retry.0.check_at(at)?;
        self.doubt.0.check_at(at)
    }

    fn check_hint(&self) -> Result<(), ParameterError> {
        let Hint { fallback, fallback_max, at_least, at_most, .. } = self.hint;
        if fallback > fallback_max {
            let message = format!(
                "{fallback} is longer than `fallback_max`, {fallback_max}, so no guess is ever so long; raise `fallback_max`"
            );
            return Err(ParameterError { key: "hint.fallback", message });
        }
        match at_most {
            Some(at_most) if at_least > at_most => {
                let message = format!(
                    "{at_least} is longer than `at_most`, {at_most}, and no wait can be both; lower it or raise `at_most`"
                );
                Err(ParameterError { key: "hint.at_least", message })
            }
            _ => Ok(()),
        }
    }

    /// Contradictory compositions.
    fn check_together(&self) -> Result<(), ParameterError> {
        let wrong = |key, message: &str| Err(ParameterError { key, message: message.to_owned() });
        let has_queue = !self.queue.0.is_none();
        if self.answers == Answers::Unread {
            if !self.retry.0.is_drop() {
                return wrong("retry", "with `answers = \"unread\"` no refusal is ever seen; leave it out");
            }
            if !self.pause.0.is_none() {
                return wrong("pause", "with `answers = \"unread\"` no refusal is ever seen; leave it out");
            }
        }
        if self.retry.0.needs_queue() && !has_queue {
            let message = "puts messages back, and there is no queue; add `queue = \"fifo\"` or \"lanes\", or use `retry = \"wait\"`";
            return wrong("retry", message);
        }
        if self.retry.0.keeps_in_hand() && has_queue {
            let message = "keeps the message in the worker's hands, and there is a queue; use `retry = \"postpone\"` or `queue = \"none\"`";
            return wrong("retry", message);
        }
        if self.dead_chats != DeadChats::Forget && !has_queue {
            let message = "the book of dead chats is kept with the queue, and there is none; add `queue = \"fifo\"` or \"lanes\"";
            return wrong("dead_chats", message);
        }
        if self.cache.is_some() && has_queue {
            return wrong("cache", "answers are used again by whoever asks; leave the queue out");
        }
        if self.doubt.0.is_as_refused() && has_queue {
            return wrong(
                "doubt",
                "`as-refused` goes with `retry = \"backoff\"` or \"wait\"; use `\"retry\"`",
            );
        }
        if self.doubt.0.is_as_refused() && self.retry.0.is_drop() {
            return wrong(
                "doubt",
                "`as-refused` and `retry = \"drop\"` drop what may have arrived; use `\"never\"`",
            );
        }
        Ok(())
    }

    /// Parts that would do nothing where they stand.
    fn check_effects(&self) -> Result<(), ParameterError> {
        let wrong = |key, message: String| Err(ParameterError { key, message });
        let Some(queue) = self.queue.0.keep() else { return Ok(()) };
        let jitter = self.pause.0.jitter();
        let is_asked_by_each = queue == Keep::Process && self.pause.0.is_shared();
        if !jitter.is_zero() && !is_asked_by_each {
            let message = format!(
                "{jitter} does nothing with this queue, whose workers wake one by one; leave it out, or use `queue = \"none\"`"
            );
            return wrong("pause.jitter", message);
        }
        let is_beside = self.limiter.0.is_beside(queue);
        if is_beside && queue == Keep::Store && self.limiter.0.sends_when_unreachable() {
            let message = "\"send\" does nothing where the queue is in the store too: without it there is nothing to send; leave it out, or keep the queue in the process";
            return wrong("limiter.when_unreachable", message.to_owned());
        }
        if matches!(self.retry.0, Retry::Release(_)) && !is_beside && self.limiter.0.keep().is_some() {
            let message = "\"release\" burns no attempts by waiting for a limiter that is not beside the queue; use a token bucket with the `keep` of the queue, or `retry = \"postpone\"`";
            return wrong("retry", message.to_owned());
        }
        Ok(())
    }

    /// The names of all scripts; each is written for a real Redis too.
    pub const SCRIPTS: [&'static str; 7] =
        ["take", "slow", "count", "paused", "refuse", "exchange", "finish"];

    /// The names of the calls that it makes: what a kill point can be set after.
    pub fn calls(&self) -> CallNames {
        let mut calls = vec!["send"];
        calls.extend(self.limiter.0.calls(self.queue.0.keep()));
        calls.extend(self.pause.0.calls(self.queue.0.keep()));
        calls.extend(self.queue.0.calls());
        calls
    }

    /// The parts that it keeps in the store.
    pub fn shares(&self) -> Shares {
        let (queue, limiter) = (self.queue.0.keep(), self.limiter.0.keep());
        let kept = [
            ("limiter", limiter == Some(Keep::Store), toml::to_string(&self.limiter)),
            ("pause", self.pause.0.is_shared(), toml::to_string(&self.pause)),
            ("queue", queue == Some(Keep::Store), toml::to_string(&self.queue)),
        ];
        let kept = kept.into_iter().filter(|(_, kept, _)| *kept);
        kept.map(|(part, _, written)| (part, written.expect("a part is a table"))).collect()
    }

    /// One worker.
    pub fn run(self, env: Env) -> impl Future<Output = ()> + 'static {
        if self.queue.0.is_none() {
            Either::Left(direct::run(self, env))
        } else {
            Either::Right(queued::run(self, env))
        }
    }

    /// What an answer that somebody reads tells.
    const fn judge(&self, answer: Answer) -> Verdict {
        match answer {
            Answer::Message { .. } => Verdict::Delivered,
            Answer::Nothing => Verdict::Nothing,
            Answer::Garbage(_) => match self.answers {
                Answers::Shape => Verdict::Doubt,
                Answers::Status | Answers::Unread => Verdict::Delivered,
            },
            Answer::TooManyRequests { hint } => Verdict::Refused(hint),
            // It surely did nothing, so it is safe to send again; for when, nobody has said.
            Answer::Unreachable => Verdict::Refused(RetryHint::Absent),
            Answer::Forbidden(_) => Verdict::ChatDead,
            Answer::ChatNotFound | Answer::Rejected { .. } => Verdict::Rejected,
            Answer::ServerError { .. } | Answer::ConnectionLost | Answer::TimedOut => Verdict::Doubt,
        }
    }
}
