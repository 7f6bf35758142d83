//! What a queue and the budget beside it do as one: the scripts of a sender with a queue, pure functions of their state.

use std::cell::OnceCell;

use fake_telegram::time::{Duration, Time};

use super::lua::{self, QueueScripts};
use super::queue::{self as sender, Mark};
use super::retry::{Release, Retry};
use super::{DeadChats, Sender};
use crate::limiter::budget::Budget;
use crate::limiter::offer::{Offer, Postponed};
use crate::limiter::pause::{Pause, PauseKey};
use crate::limiter::queue::Queue;
use crate::store::Holds;
use crate::world::{GiveUp, Message};

/// The queue, and what was last said to whom.
pub(super) struct Shared {
    queue: Queue,
    /// By process: its last exchange. Whoever did not hear the answer asks again and gets it again.
    answers: Vec<Option<Answered>>,
}

#[derive(Debug, Clone, Copy)]
struct Answered {
    asker: Asker,
    grant: Grant,
}

/// Who asks, and which of its questions it is; one that is asked again has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) process: u16,
    pub(super) life: u32,
    pub(super) question: u32,
    /// Whether it can send a message: it has a token, or needs none.
    pub(super) can_send: bool,
    /// Its clock.
    pub(super) now: Time,
}

/// What lies beside a queue, and is asked with it.
pub(super) struct Beside<'a> {
    pub(super) budget: Option<&'a mut Budget>,
    pub(super) pause: Option<&'a mut Pause>,
}

/// What the scripts have to know.
pub(super) struct Policy<'a> {
    pub(super) sender: &'a Sender,
    /// By class.
    pub(super) ranks: Vec<usize>,
    pub(super) at_most_once: Vec<bool>,
    most: Vec<Option<u8>>,
    pub(super) release: Option<&'a Release>,
    pub(super) callers_clock: bool,
    pause: Option<PauseKey>,
    /// All of this for a real Redis, once somebody asks.
    settings: OnceCell<String>,
}

/// The queue's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    /// How many messages the question brought when it was first heard: so many of those that have fallen due are the
    /// queue's.
    pub(super) brought: u32,
    /// What to send now.
    pub(super) offer: Option<Offer>,
    pub(super) ask: AskIn,
    /// Whether another message waits, for a token or for its date.
    pub(super) more: bool,
    /// How much of the offer's lease is left.
    pub(super) lease_left: Duration,
}

/// When it pays to ask again, from now on: the clock of whoever asks is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskIn {
    /// When something falls due.
    WhenDue,
    /// After this time, or when something falls due.
    At(Duration),
    /// After this time and no earlier.
    NotBefore(Duration),
}

/// What becomes of a message in flight.
#[derive(Clone, Copy)]
pub(super) enum Ending {
    Done,
    ChatDead,
    Waits(Duration, Postponed),
}

/// What a sender has to tell of an offer.
#[derive(Clone, Copy)]
pub(super) struct News<'a> {
    pub(super) offer: &'a Offer,
    pub(super) ending: Ending,
    /// For how long it was refused.
    pub(super) refused: Option<Duration>,
    /// Whether it may have been told before.
    pub(super) is_again: bool,
}

/// What a script does to a message beside its queue; it is so from that instant on, whether anybody hears of it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The queue holds it.
    Stored(Message),
    /// Whoever runs the script holds it.
    Taken(Message),
    /// It was not sent, and will not be.
    GivenUp(Message, GiveUp),
    /// Nobody knows whether it arrived, and it is not sent again.
    Unknown(Message),
}

impl Shared {
    /// The empty queue.
    pub(super) fn new(queue: &sender::Queue) -> Self {
        Self { queue: queue.start(), answers: Vec::new() }
    }
}

impl Holds for Shared {
    fn held(&self) -> Vec<u32> {
        self.queue.held()
    }
}

impl Beside<'_> {
    /// How long until the budget has a token; no time at all without one.
    fn free_in(&self, now: Time) -> Duration {
        self.budget.as_ref().map_or(Duration::ZERO, |budget| budget.wait(now))
    }
}

impl<'a> Policy<'a> {
    /// What the parts of `sender` say about messages of these classes.
    pub(super) fn new(sender: &'a Sender, classes: &[String]) -> Self {
        Self {
            sender,
            ranks: classes.iter().map(|class| sender.queue.0.rank(class)).collect(),
            at_most_once: sender.doubt.0.at_most_once(classes),
            most: sender.retry.0.most(classes),
            release: match &sender.retry.0 {
                Retry::Release(release) => Some(release),
                _ => None,
            },
            callers_clock: sender.limiter.0.is_on_callers_clocks(),
            pause: sender.pause.0.shared_key(),
            settings: OnceCell::new(),
        }
    }

    /// What a real Redis runs.
    pub(super) const fn lua(&self) -> QueueScripts {
        QueueScripts::of(&self.sender.queue.0)
    }

    /// What it has to know.
    pub(super) fn settings(&self) -> &str {
        self.settings.get_or_init(|| lua::settings(self, self.pause).to_string())
    }

    /// A message as the queue keeps it: without its deadline if nobody looks at that.
    #[inline]
    pub(super) const fn as_wanted(&self, message: &Message) -> Message {
        let deadline = if self.sender.deadlines { message.deadline } else { Time::MAX };
        Message { deadline, ..*message }
    }
}

/// The scripts: `now` is the clock of the queue's place, `own` that of whoever asks.
impl Policy<'_> {
    /// What has fallen due joins the queue; if pause and budget allow, the next message leaves.
    pub(super) fn exchange(
        &self,
        now: Time,
        asker: Asker,
        shared: &mut Shared,
        beside: &mut Beside<'_>,
        due: &[Message],
        told: &mut impl FnMut(Told),
    ) -> Grant {
        let process = usize::from(asker.process);
        if shared.answers.len() <= process {
            shared.answers.resize(process + 1, None);
        }
        if let Some(Answered { asker: before, grant }) = &shared.answers[process]
            && (before.life, before.question) == (asker.life, asker.question)
        {
            let lease_left = grant.offer.map_or(Duration::MAX, |offer| offer.lease_left(now));
            return Grant { lease_left, ..*grant };
        }
        let grant = self.answer(now, asker, &mut shared.queue, beside, due, told);
        shared.answers[process] = Some(Answered { asker, grant });
        grant
    }

    fn answer(
        &self,
        now: Time,
        asker: Asker,
        queue: &mut Queue,
        beside: &mut Beside<'_>,
        due: &[Message],
        told: &mut impl FnMut(Told),
    ) -> Grant {
        let revives = self.sender.dead_chats == DeadChats::Revive;
        for message in due {
            let message = self.as_wanted(message);
            told(Told::Stored(message));
            let rank = self.ranks[usize::from(message.class.0)];
            if let Some(dead) = queue.push(message, rank, now, revives) {
                told(Told::GivenUp(dead, GiveUp::ChatDead));
            }
        }
        while let Some(offer) = queue.overdue(now) {
            self.recover(queue, &offer, now, told);
        }
        let paused =
            beside.pause.as_ref().map_or(Duration::ZERO, |pause| pause.until().saturating_since(now));
        // By their own clocks callers learn only by asking, and a framework's worker takes the job first and asks then.
        let mut wait = paused.max(if self.release.is_none() { beside.free_in(now) } else { Duration::ZERO });
        let mut offer = None;
        if wait.is_zero() && asker.can_send {
            (offer, wait) = self.pop(now, asker, queue, beside, told);
        }
        if let Some(offer) = &offer
            && self.sender.queue.0.mark() == Mark::Before
        {
            told(Told::Taken(offer.message));
        }
        let next_at = queue.next_at(now);
        let ask = if next_at <= now {
            AskIn::NotBefore(wait)
        } else {
            match next_at {
                Time::MAX => AskIn::WhenDue,
                at => AskIn::At(at.saturating_since(now).max(wait)),
            }
        };
        let lease_left = offer.map_or(Duration::MAX, |offer| offer.lease_left(now));
        Grant { brought: due.len() as u32, offer, ask, more: next_at < Time::MAX, lease_left }
    }

    /// The next message that may go, with a token, and how long until another may; messages of what pauses on the way
    /// wait for its end.
    fn pop(
        &self,
        now: Time,
        asker: Asker,
        queue: &mut Queue,
        beside: &mut Beside<'_>,
        told: &mut impl FnMut(Told),
    ) -> (Option<Offer>, Duration) {
        let mut left = Vec::new();
        let mut found = (None, Duration::ZERO);
        let asks_first = self.callers_clock && self.release.is_none() && queue.next_at(now) <= now;
        if asks_first && let Some(budget) = &mut beside.budget {
            let wait = budget.take(asker.now);
            if !wait.is_zero() {
                return (None, wait);
            }
        }
        while let Some(next) = queue.pop(now, &mut left) {
            let Message { chat, method, .. } = next.message;
            let until = beside.pause.as_ref().map_or(Time::ZERO, |pause| pause.until_for(now, chat, method));
            if until > now {
                queue.postpone(&next, now, until, Postponed::HeldBack);
                continue;
            }
            let clock = if self.callers_clock { asker.now } else { now };
            let wait = match &mut beside.budget {
                Some(budget) if !asks_first => budget.take(clock),
                _ => Duration::ZERO,
            };
            match self.release {
                _ if wait.is_zero() => {
                    let next_in = if self.release.is_none() { beside.free_in(now) } else { Duration::ZERO };
                    found = (Some(next), next_in);
                    break;
                }
                Some(release) if next.refusals.saturating_add(1) < release.attempts => {
                    queue.postpone(&next, now, now.saturating_add(release.delay), Postponed::Refused);
                }
                Some(_) => {
                    queue.finish(&next, now);
                    told(Told::GivenUp(next.message, GiveUp::Attempts));
                }
                None => unreachable!("a budget on one clock was asked before"),
            }
        }
        if asks_first
            && found.0.is_none()
            && let Some(budget) = &mut beside.budget
        {
            budget.put_back();
        }
        left.into_iter().for_each(|message| told(Told::GivenUp(message, unsent(&message, now))));
        found
    }

    /// The message in flight is done with, or waits for its date. Returns how long until something can be sent next.
    pub(super) fn finish(
        &self,
        now: Time,
        Shared { queue, .. }: &mut Shared,
        beside: &mut Beside<'_>,
        News { offer, ending, refused, is_again }: News<'_>,
        told: &mut impl FnMut(Told),
    ) -> Duration {
        if let Some(wait) = refused {
            let (until, message) = (now.saturating_add(wait), &offer.message);
            if let Some(pause) = &mut beside.pause {
                pause.refuse(now, message.chat, message.method, until);
            }
            if let Some(budget) = &mut beside.budget {
                budget.refuse(now, until);
            }
        }
        match ending {
            Ending::Done => queue.finish(offer, now),
            Ending::ChatDead => queue.close(offer, now, self.sender.dead_chats == DeadChats::Revive),
            Ending::Waits(wait, why) => {
                let waits = queue.postpone(offer, now, now.saturating_add(wait), why);
                if let (true, Postponed::HeldBack, Some(budget)) = (waits, why, &mut beside.budget) {
                    budget.put_back();
                }
                // Before it was sent it had left the queue, so nobody else has it, whatever became of its offer: unless
                // this was told and done before.
                if self.sender.queue.0.mark() == Mark::Before && (waits || !is_again) {
                    let rank = self.ranks[usize::from(offer.message.class.0)];
                    let dead = if waits { None } else { queue.push(offer.message, rank, now, false) };
                    told(match dead {
                        None => Told::Stored(offer.message),
                        Some(message) => Told::GivenUp(message, GiveUp::ChatDead),
                    });
                }
            }
        }
        let paused =
            beside.pause.as_ref().map_or(Duration::ZERO, |pause| pause.until().saturating_since(now));
        match queue.next_at(now) {
            Time::MAX => Duration::MAX,
            at => at.saturating_since(now).max(beside.free_in(now)).max(paused),
        }
    }

    /// The lease of a message in flight is over: its sender is taken to be dead, and the message is in doubt, unless it
    /// left the queue with it.
    fn recover(&self, queue: &mut Queue, offer: &Offer, now: Time, told: &mut impl FnMut(Told)) {
        match (self.sender.queue.0.mark(), self.again(offer)) {
            (Mark::Before, _) => queue.finish(offer, now),
            (Mark::After, Some(wait)) => {
                queue.postpone(offer, now, now.saturating_add(wait), Postponed::InVain);
            }
            (Mark::After, None) => {
                queue.finish(offer, now);
                told(Told::Unknown(offer.message));
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
            Retry::Postpone(_) => {
                let most = self.most[usize::from(offer.message.class.0)];
                most.is_none_or(|most| refusals <= most).then_some(wait)
            }
            Retry::Release(release) => (refusals < release.attempts).then_some(release.delay),
            Retry::Drop(_) | Retry::Wait(_) | Retry::Backoff(_) => None,
        }
    }
}

/// Why a message left the queue that was not sent.
fn unsent(message: &Message, now: Time) -> GiveUp {
    if message.deadline < now { GiveUp::Expired } else { GiveUp::ChatDead }
}

#[cfg(test)]
mod tests;
