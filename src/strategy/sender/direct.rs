//! Without a queue: a worker takes a due message and keeps it in its hands until it is done with it.

use std::cell::RefCell;
use std::rc::Rc;

use fake_telegram::api::{ChatIndex, Method};
use fake_telegram::hint::RetryHint;
use fake_telegram::time::{Duration, Time};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limiter::Admission;
use super::pause::Brake;
use super::retry::{Backoff, Retry};
use super::{Answers, Sender, Verdict};
use crate::env::{Dice, Env};
use crate::world::{Belief, GiveUp, Message};

/// How long an answer to a question is used again (S14), in the memory of its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Where there was something to tell.
    pub found: Duration,
    /// Where there was nothing: a negative cache. Not at all at zero.
    pub nothing: Duration,
}

/// Half an hour for prices, as in the field notes of incident T9, and nothing remembered of nothing.
impl Default for Cache {
    fn default() -> Self {
        Self { found: Duration::from_mins(30), nothing: Duration::ZERO }
    }
}

/// Until when the answer about each chat and method is used again.
type Known = FxHashMap<(ChatIndex, Method), Time>;

struct Worker<'a> {
    sender: &'a Sender,
    env: &'a Env,
    admission: Admission,
    brake: Brake,
    at_most_once: Vec<bool>,
    known: Rc<RefCell<Known>>,
    dice: Dice,
}

pub(super) async fn run(sender: Sender, env: Env) {
    let (sender, env) = (&sender, &env);
    let worker = Worker {
        sender,
        env,
        admission: sender.limiter.0.admission(env),
        brake: sender.pause.0.brake(env),
        at_most_once: sender.doubt.0.at_most_once(&env.classes()),
        known: env.memory(RefCell::<Known>::default),
        dice: env.dice("sender"),
    };
    while let Some(message) = env.next().await {
        worker.deliver(&message).await;
    }
}

impl Worker<'_> {
    async fn deliver(&self, message: &Message) {
        let (sender, env) = (self.sender, self.env);
        let (mut refusals, mut tries) = (0, 0_u8);
        loop {
            if self.is_known(message) {
                return env.reuse(message);
            }
            // A pause that begins while the limiter lets others go first counts as well.
            self.brake.pass(env, &self.dice, message).await;
            self.admission.admit(env).await;
            while self.brake.pass(env, &self.dice, message).await {
                self.admission.admit(env).await;
            }
            if sender.deadlines && message.deadline < env.now() {
                return env.give_up(message, GiveUp::Expired);
            }
            let reply = env.send_with(message, sender.doubt.0.has_key()).await;
            if sender.answers == Answers::Unread {
                return;
            }
            let mut verdict = sender.judge(reply.read());
            if verdict == Verdict::Doubt && sender.doubt.0.is_as_refused() {
                verdict = Verdict::Refused(RetryHint::Absent);
            }
            match verdict {
                Verdict::Delivered | Verdict::Nothing => {
                    self.brake.succeeded();
                    self.remember(message, verdict);
                    return env.settle(message, Belief::Delivered);
                }
                Verdict::ChatDead => return env.give_up(message, GiveUp::ChatDead),
                Verdict::Rejected => return env.give_up(message, GiveUp::Rejected),
                Verdict::Refused(hint) => {
                    refusals += 1;
                    let in_a_row = self.brake.refusals(env, refusals);
                    let wait = sender.hint.wait(hint, env.now(), in_a_row, || self.dice.draw());
                    self.brake.note(env, message, wait);
                    self.brake.tell(env, message, wait).await;
                    self.admission.refused(env, wait).await;
                    match &sender.retry.0 {
                        Retry::Wait(_) => env.sleep(wait).await,
                        Retry::Backoff(Backoff { first, attempts }) if refusals < *attempts => {
                            env.sleep(first.saturating_mul(1 << (refusals - 1).min(62))).await;
                        }
                        _ => return env.give_up(message, GiveUp::Attempts),
                    }
                }
                Verdict::Doubt => {
                    match sender.doubt.0.again(self.at_most_once[usize::from(message.class.0)], tries) {
                        Some(pause) => env.sleep(pause).await,
                        None => return env.settle(message, Belief::Unknown),
                    }
                    tries = tries.saturating_add(1);
                }
            }
        }
    }

    /// Whether the message asks what was answered before.
    fn is_known(&self, message: &Message) -> bool {
        self.sender.cache.is_some()
            && message.method.is_question()
            && self
                .known
                .borrow()
                .get(&(message.chat, message.method))
                .is_some_and(|until| self.env.now() < *until)
    }

    fn remember(&self, message: &Message, verdict: Verdict) {
        let Some(cache) = self.sender.cache.as_ref().filter(|_| message.method.is_question()) else { return };
        let kept = if verdict == Verdict::Nothing { cache.nothing } else { cache.found };
        self.known.borrow_mut().insert((message.chat, message.method), self.env.now().saturating_add(kept));
    }
}
