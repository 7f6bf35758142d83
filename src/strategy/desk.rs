//! How workers get their next message from a queue in the store: one worker of a process at a time asks, brings what
//! has fallen due along, and the rest wait their turn. So a message costs the store one call to get and one to
//! finish, and a token that becomes free wakes one worker a process, not all of them.

use std::cell::Cell;

use fake_telegram::time::Time;

use crate::env::Env;
use crate::store::Key;
use crate::world::{GiveUp, Message};

/// What a process knows of the queue in the store.
#[derive(Debug)]
pub(super) struct Desk {
    /// When it pays to ask.
    ask: Cell<Ask>,
}

/// When it pays to ask the store again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask {
    /// Nothing is there: when something falls due.
    WhenDue,
    /// At this instant, or when something falls due.
    At(Time),
    /// At this instant and no earlier: nothing may be sent before, due or not.
    NotBefore(Time),
}

/// The store's answer.
#[derive(Debug)]
pub(super) struct Grant<M> {
    /// What to send now.
    pub(super) message: Option<M>,
    /// What is to be given up.
    pub(super) given_up: Vec<(Message, GiveUp)>,
    /// When it pays to ask again.
    pub(super) ask: Ask,
}

impl Default for Desk {
    fn default() -> Self {
        Self { ask: Cell::new(Ask::WhenDue) }
    }
}

impl Desk {
    /// The next message to send; `None` when nothing is left. `exchange` hands over what has fallen due and asks.
    pub(super) async fn next<V: 'static, M>(
        &self,
        env: &Env,
        queue: Key<V>,
        exchange: impl Fn(Time, &mut V, Vec<Message>) -> Grant<M>,
    ) -> Option<M> {
        let _turn = env.turn().await;
        loop {
            match self.ask.get() {
                Ask::WhenDue => {
                    if env.is_over() {
                        return None;
                    }
                    env.idle_until(Time::MAX).await;
                }
                Ask::At(at) => {
                    if at > env.now() {
                        env.idle_until(at).await;
                    }
                }
                Ask::NotBefore(at) => {
                    if at > env.now() {
                        env.sleep_until(at).await;
                    }
                }
            }
            let due: Vec<Message> = std::iter::from_fn(|| env.try_next()).collect();
            let grant = env.script(queue, |now, value| exchange(now, value, due)).await;
            self.ask.set(grant.ask);
            for (message, why) in grant.given_up {
                env.give_up(&message, why);
            }
            if grant.message.is_some() {
                return grant.message;
            }
        }
    }

    /// Something in the queue can be sent from `at` on: whoever waits in this process hears of it.
    pub(super) fn note(&self, env: &Env, at: Time) {
        let sooner = match self.ask.get() {
            Ask::WhenDue => at < Time::MAX,
            Ask::At(known) => at < known,
            Ask::NotBefore(_) => false,
        };
        if sooner {
            self.ask.set(Ask::At(at));
            env.nudge();
        }
    }
}
