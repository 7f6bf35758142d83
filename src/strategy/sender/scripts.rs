//! What a queue and the budget beside it do as one: the scripts of a sender with a queue, pure functions of their state.

use fake_telegram::time::{Duration, Time};

use super::limiter::Limiter;
use super::queue::{self as sender, Mark};
use super::retry::{Postpone, Release, Retry};
use super::{DeadChats, Sender};
use crate::limiter::budget::Budget;
use crate::limiter::offer::{Offer, Postponed};
use crate::limiter::pause::Pause;
use crate::limiter::queue::Queue;
use crate::world::{GiveUp, Message};

/// What lies beside each other, in the store or in a process.
pub(super) struct Shared {
    pub(super) budget: Option<Budget>,
    pub(super) queue: Queue,
}

/// What the scripts have to know.
pub(super) struct Policy<'a> {
    pub(super) sender: &'a Sender,
    /// By class.
    pub(super) ranks: Vec<usize>,
    pub(super) at_most_once: Vec<bool>,
    pub(super) release: Option<&'a Release>,
    pub(super) callers_clock: bool,
}

/// The queue's answer.
pub(super) struct Grant {
    /// What to send now.
    pub(super) offer: Option<Offer>,
    /// What is done with, unsent.
    pub(super) out: Vec<(Message, Out)>,
    pub(super) ask: AskIn,
    /// Whether another message waits, for a token or for its date.
    pub(super) more: bool,
}

/// When it pays to ask again, from now on: the clock of whoever asks is another one.
#[derive(Clone, Copy)]
pub(super) enum AskIn {
    /// When something falls due.
    WhenDue,
    /// After this time, or when something falls due.
    At(Duration),
    /// After this time and no earlier.
    NotBefore(Duration),
}

/// How a message leaves the queue unsent.
#[derive(Clone, Copy)]
pub(super) enum Out {
    GivenUp(GiveUp),
    Unknown,
}

/// What becomes of a message in flight.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    Done,
    ChatDead,
    Waits(Duration, Postponed),
}

/// Where a message has moved.
pub(super) enum Move {
    ToStore,
    ToProcess,
}

impl Shared {
    /// The empty queue, and the full budget if it is kept at the same place.
    pub(super) fn new(limiter: &Limiter, queue: &sender::Queue) -> Self {
        Self { budget: limiter.beside_queue(queue.keep()), queue: queue.start() }
    }
}

impl<'a> Policy<'a> {
    /// What the parts of `sender` say about messages of these classes.
    pub(super) fn new(sender: &'a Sender, classes: &[String]) -> Self {
        Self {
            sender,
            ranks: classes.iter().map(|class| sender.queue.0.rank(class)).collect(),
            at_most_once: sender.doubt.0.at_most_once(classes),
            release: match &sender.retry.0 {
                Retry::Release(release) => Some(release),
                _ => None,
            },
            callers_clock: sender.limiter.0.is_on_callers_clocks(),
        }
    }
}

/// The scripts: `now` is the clock of the queue's place, `own` that of whoever asks.
impl Policy<'_> {
    /// What has fallen due joins the queue; if pause and budget allow, the next message leaves.
    pub(super) fn exchange(
        &self,
        (now, own): (Time, Time),
        shared: &mut Shared,
        pause: Option<&Pause>,
        due: &mut Vec<Message>,
        mut moved: impl FnMut(u32, Move),
    ) -> Grant {
        let mut out = Vec::new();
        let revives = self.sender.dead_chats == DeadChats::Revive;
        for mut message in due.drain(..) {
            if !self.sender.deadlines {
                message.deadline = Time::MAX;
            }
            moved(message.number, Move::ToStore);
            let rank = self.ranks[usize::from(message.class.0)];
            let dead = shared.queue.push(message, rank, now, revives);
            out.extend(dead.map(|message| (message, Out::GivenUp(GiveUp::ChatDead))));
        }
        while let Some(offer) = shared.queue.overdue(now) {
            self.recover(&mut shared.queue, &offer, now, &mut out);
        }
        let paused = pause.map_or(Duration::ZERO, |pause| pause.until().saturating_since(now));
        let mut wait = paused.max(self.free_in(shared, now));
        let mut offer = None;
        if wait.is_zero() {
            (offer, wait) = self.pop((now, own), shared, pause, &mut out);
        }
        if let Some(offer) = &offer
            && self.sender.queue.0.mark() == Mark::Before
        {
            moved(offer.message.number, Move::ToProcess);
        }
        let next_at = shared.queue.next_at(now);
        let ask = if next_at <= now {
            AskIn::NotBefore(wait)
        } else {
            match next_at {
                Time::MAX => AskIn::WhenDue,
                at => AskIn::At(at.saturating_since(now).max(wait)),
            }
        };
        Grant { offer, out, ask, more: next_at < Time::MAX }
    }

    /// The next message that may go, with a token, and how long until another may; messages of what pauses on the way
    /// wait for its end.
    fn pop(
        &self,
        (now, own): (Time, Time),
        shared: &mut Shared,
        pause: Option<&Pause>,
        out: &mut Vec<(Message, Out)>,
    ) -> (Option<Offer>, Duration) {
        let mut left = Vec::new();
        let (mut offer, mut wait) = (None, Duration::ZERO);
        while let Some(next) = shared.queue.pop(now, &mut left) {
            let Message { chat, method, .. } = next.message;
            let until = pause.map_or(Time::ZERO, |pause| pause.until_for(now, chat, method));
            if until > now {
                shared.queue.postpone(&next, now, until, Postponed::HeldBack);
                continue;
            }
            let clock = if self.callers_clock { own } else { now };
            wait = shared.budget.as_mut().map_or(Duration::ZERO, |budget| budget.take(clock));
            if wait.is_zero() {
                offer = Some(next);
                wait = self.free_in(shared, now);
                break;
            }
            let Some(release) = self.release else {
                // By its own clock the caller has no token.
                shared.queue.postpone(&next, now, now.saturating_add(wait), Postponed::HeldBack);
                break;
            };
            if next.refusals.saturating_add(1) < release.attempts {
                shared.queue.postpone(&next, now, now.saturating_add(release.delay), Postponed::Refused);
            } else {
                shared.queue.finish(&next, now);
                out.push((next.message, Out::GivenUp(GiveUp::Attempts)));
            }
        }
        out.extend(left.into_iter().map(|message| (message, unsent(&message, now))));
        (offer, wait)
    }

    /// The message in flight is done with, or waits for its date. Returns what waited behind it in a dead chat, and how
    /// long until something can be sent next.
    pub(super) fn finish(
        &self,
        now: Time,
        shared: &mut Shared,
        offer: &Offer,
        ending: Ending,
        refused: Option<Duration>,
        mut stored: impl FnMut(u32),
    ) -> (Vec<Message>, Duration) {
        let Shared { budget, queue } = &mut *shared;
        if let (Some(budget), Some(wait)) = (budget.as_mut(), refused) {
            budget.refuse(now, now.saturating_add(wait));
        }
        let mut behind = Vec::new();
        match ending {
            Ending::Done => queue.finish(offer, now),
            Ending::ChatDead => behind = queue.close(offer),
            Ending::Waits(wait, why) => {
                queue.postpone(offer, now, now.saturating_add(wait), why);
                if self.sender.queue.0.mark() == Mark::Before {
                    stored(offer.message.number);
                }
            }
        }
        let wait = match shared.queue.next_at(now) {
            Time::MAX => Duration::MAX,
            at => at.saturating_since(now).max(self.free_in(shared, now)),
        };
        (behind, wait)
    }

    /// How long until the budget beside the queue has a token. A framework's worker does not wait for one: it takes the
    /// job and asks then.
    fn free_in(&self, shared: &Shared, now: Time) -> Duration {
        match &shared.budget {
            Some(budget) if self.release.is_none() => budget.wait(now),
            _ => Duration::ZERO,
        }
    }

    /// The lease of a message in flight is over: its sender is taken to be dead, and the message is in doubt, unless it
    /// left the queue with it.
    fn recover(&self, queue: &mut Queue, offer: &Offer, now: Time, out: &mut Vec<(Message, Out)>) {
        match (self.sender.queue.0.mark(), self.again(offer)) {
            (Mark::Before, _) => queue.finish(offer, now),
            (Mark::After, Some(wait)) => {
                queue.postpone(offer, now, now.saturating_add(wait), Postponed::InVain);
            }
            (Mark::After, None) => {
                queue.finish(offer, now);
                out.push((offer.message, Out::Unknown));
            }
        }
    }

    /// How long a message waits of which nobody knows whether it arrived; `None` if it is not sent again.
    pub(super) fn again(&self, offer: &Offer) -> Option<Duration> {
        self.sender.doubt.0.again(self.at_most_once[usize::from(offer.message.class.0)], offer.tries)
    }

    /// How long a message waits that was refused for `wait`; `None` if it is given up.
    pub(super) fn after_refusal(&self, offer: &Offer, wait: Duration) -> Option<Duration> {
        let refusals = offer.refusals.saturating_add(1);
        match &self.sender.retry.0 {
            Retry::Requeue(_) => Some(Duration::ZERO),
            Retry::Postpone(Postpone { most }) => most.is_none_or(|most| refusals <= most).then_some(wait),
            Retry::Release(release) => (refusals < release.attempts).then_some(release.delay),
            Retry::Drop(_) | Retry::Wait(_) | Retry::Backoff(_) => None,
        }
    }
}

/// Why a message left the queue that was not sent.
fn unsent(message: &Message, now: Time) -> Out {
    Out::GivenUp(if message.deadline < now { GiveUp::Expired } else { GiveUp::ChatDead })
}

#[cfg(test)]
mod tests;
