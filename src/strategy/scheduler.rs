//! The scheduler: the design that holds. A refusal is not an error but a date.
//!
//! - One bucket in the store, run slightly below the documented rate, so that all spenders share one budget.
//! - A lane per chat with its own pace and its own ready-at; strictly first in, first out inside a chat. Lanes that
//!   are ready go by the highest class that waits in them, then in rotation. A limited chat holds up nobody else.
//! - A refused message stays at the head of its lane until `now + retry_after + margin`. When a second chat is refused
//!   meanwhile, the whole token pauses.
//! - The first 403 marks the chat: it is not written to again.
//! - An answer counts only if its shape does. Whatever leaves doubt is tried again a few times, then settled as
//!   unknown.
//! - What is past its deadline is not sent.

use std::cell::Cell;

use fake_telegram::api::Answer;
use fake_telegram::bucket::{BucketState, TokenBucket};
use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::desk::{Ask, Desk, Grant};
use super::{ParameterError, Strategy, at_least_one, bucket};
use crate::env::Env;
use crate::limiter::lanes::{Lanes, Offer, Pace, RANKS};
use crate::limiter::pause::Pause;
use crate::world::{Belief, GiveUp, Message};

/// A shared bucket, a lane per chat, priorities by class, and refusals as dates.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// The shared bucket's refill: below the documented 30/s, so that jitter on the wire is not punished.
    pub rate: Rate,
    /// The shared bucket's size.
    pub burst: u32,
    /// How fast one private chat is written to.
    pub chat_rate: Rate,
    /// How many messages in a row a private chat gets.
    pub chat_burst: u32,
    /// How fast one group or channel is written to; with the burst at most 20 in any minute.
    pub group_rate: Rate,
    /// How many messages in a row a group or channel gets.
    pub group_burst: u32,
    /// Classes, first things first; all others come last.
    pub priority: Vec<String>,
    /// Added to the wait after every 429, never taken away.
    pub margin: Duration,
    /// The wait after a 429 that says nothing about it.
    pub fallback: Duration,
    /// The wait after an answer that leaves doubt.
    pub doubt_pause: Duration,
    /// Calls that left doubt before a message is settled as unknown.
    pub doubt_attempts: u8,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            rate: Rate::per_second(28),
            burst: 20,
            chat_rate: Rate::per_second(1),
            chat_burst: 3,
            group_rate: Rate::per_minute(15),
            group_burst: 5,
            priority: ["reply", "notification", "broadcast"].map(str::to_owned).to_vec(),
            margin: Duration::from_millis(50),
            fallback: Duration::from_secs(1),
            doubt_pause: Duration::from_secs(1),
            doubt_attempts: 3,
        }
    }
}

/// What is in the store.
struct Shared {
    limit: TokenBucket,
    bucket: BucketState,
    lanes: Lanes,
    pause: Pause,
}

/// What a call taught.
#[derive(Clone, Copy)]
enum Verdict {
    Delivered,
    /// Not before this instant.
    Refused(Time),
    ChatDead,
    Rejected,
    /// It may have arrived: once more at this instant, or never if it was tried often enough.
    Doubt(Option<Time>),
    /// It was not sent, since the token pauses until this instant.
    HeldBack(Time),
}

impl Strategy for Scheduler {
    const KIND: &'static str = "scheduler";
    const SUMMARY: &'static str =
        "a shared bucket, a lane per chat, priorities; a refusal is a date, not an error";

    fn check(&self) -> Result<(), ParameterError> {
        self.limit()?;
        self.pace()?;
        if self.priority.len() > RANKS {
            let message =
                format!("{} classes are listed; at most {RANKS} ranks are told apart", self.priority.len());
            return Err(ParameterError { key: "priority", message });
        }
        at_least_one("doubt_attempts", self.doubt_attempts.into())
    }

    fn calls(&self) -> Vec<&'static str> {
        vec!["send", "exchange", "finish"]
    }

    async fn run(self, env: Env) {
        let ranks: Vec<usize> = env.classes().iter().map(|class| self.rank(class)).collect();
        let settings = self.clone();
        let shared = env.key(&format!("scheduler/{}", env.token().0), move || settings.shared());
        let desk = env.memory(Desk::default);
        let pause = env.memory(Cell::<Pause>::default);
        let exchange = |now, shared: &mut Shared, due: &mut Vec<Message>| shared.exchange(&ranks, now, due);
        while let Some(Offer { message, tries }) = desk.next(&env, shared, exchange).await {
            // This process may know of a refusal that the store did not when it granted the message.
            let paused_until = pause.get().until();
            let verdict = if paused_until > env.now() {
                Verdict::HeldBack(paused_until)
            } else {
                let answer = env.send(&message).await.read();
                self.judge(answer, env.now(), tries)
            };
            match verdict {
                Verdict::Delivered => env.settle(&message, Belief::Delivered),
                Verdict::Doubt(None) => env.settle(&message, Belief::Unknown),
                Verdict::ChatDead => env.give_up(&message, GiveUp::ChatDead),
                Verdict::Rejected => env.give_up(&message, GiveUp::Rejected),
                Verdict::Refused(until) => {
                    let mut known = pause.get();
                    known.refuse(env.now(), message.chat, until);
                    pause.set(known);
                }
                Verdict::Doubt(Some(_)) | Verdict::HeldBack(_) => {}
            }
            let (behind, next_at) =
                env.script(shared, |now, shared| shared.finish(now, &message, verdict)).await;
            for message in behind {
                env.give_up(&message, GiveUp::ChatDead);
            }
            desk.note(&env, next_at);
        }
    }
}

impl Scheduler {
    fn limit(&self) -> Result<TokenBucket, ParameterError> {
        bucket(("rate", self.rate), ("burst", self.burst))
    }

    fn pace(&self) -> Result<Pace, ParameterError> {
        let private = bucket(("chat_rate", self.chat_rate), ("chat_burst", self.chat_burst))?;
        let group = bucket(("group_rate", self.group_rate), ("group_burst", self.group_burst))?;
        Ok(Pace { private, group, channel: group })
    }

    fn rank(&self, class: &str) -> usize {
        let rank = self.priority.iter().position(|known| known == class);
        rank.unwrap_or(self.priority.len()).min(RANKS - 1)
    }

    fn shared(&self) -> Shared {
        let (limit, pace) = (self.limit(), self.pace());
        Shared {
            limit: limit.expect("the parameters were checked"),
            bucket: BucketState::default(),
            lanes: Lanes::new(pace.expect("the parameters were checked")),
            pause: Pause::default(),
        }
    }

    /// Only the right shape is a delivery.
    fn judge(&self, answer: Answer, now: Time, tries: u8) -> Verdict {
        match answer {
            Answer::Message { .. } | Answer::Nothing => Verdict::Delivered,
            Answer::TooManyRequests { hint } => {
                Verdict::Refused(now + hint.wait(now).unwrap_or(self.fallback) + self.margin)
            }
            Answer::Forbidden(_) => Verdict::ChatDead,
            Answer::ChatNotFound => Verdict::Rejected,
            Answer::ServerError { .. } | Answer::Garbage(_) | Answer::ConnectionLost | Answer::TimedOut => {
                Verdict::Doubt((tries + 1 < self.doubt_attempts).then(|| now + self.doubt_pause))
            }
        }
    }
}

/// The scripts.
impl Shared {
    /// What has fallen due joins its lanes; if the budget allows, the next message leaves.
    fn exchange(&mut self, ranks: &[usize], now: Time, due: &mut Vec<Message>) -> Grant<Offer> {
        let mut given_up = Vec::new();
        for message in due.drain(..) {
            let rejected = self.lanes.push(message, ranks[usize::from(message.class.0)], now);
            given_up.extend(rejected.map(|message| (message, GiveUp::ChatDead)));
        }
        self.lanes.promote(now);
        let mut offer = None;
        if self.free_at(now) <= now {
            let mut expired = Vec::new();
            offer = self.lanes.pop(now, &mut expired);
            given_up.extend(expired.into_iter().map(|message| (message, GiveUp::Expired)));
            if offer.is_some() {
                self.limit.take(&mut self.bucket, now);
            }
        }
        let ask = match self.lanes.next_at() {
            _ if self.lanes.is_ready() => Ask::NotBefore(self.free_at(now)),
            Time::MAX => Ask::WhenDue,
            at => Ask::At(at.max(self.free_at(now))),
        };
        Grant { message: offer, given_up, ask }
    }

    /// The message in flight is done with, or waits for its date. Returns what waited behind it in a dead chat, and
    /// when something can be sent next.
    fn finish(&mut self, now: Time, message: &Message, verdict: Verdict) -> (Vec<Message>, Time) {
        let chat = message.chat;
        let mut behind = Vec::new();
        match verdict {
            Verdict::Delivered | Verdict::Rejected | Verdict::Doubt(None) => self.lanes.finish(chat, now),
            Verdict::Refused(until) => {
                self.pause.refuse(now, chat, until);
                self.lanes.postpone(chat, now, until, false);
            }
            Verdict::HeldBack(until) => self.lanes.postpone(chat, now, until, false),
            Verdict::Doubt(Some(at)) => self.lanes.postpone(chat, now, at, true),
            Verdict::ChatDead => behind = self.lanes.close(chat),
        }
        let next_at = if self.lanes.is_ready() { now } else { self.lanes.next_at() };
        (behind, next_at.max(self.free_at(now)))
    }

    /// When the token may send next.
    fn free_at(&self, now: Time) -> Time {
        self.pause.until().max(now + self.limit.wait(self.bucket, now))
    }
}
