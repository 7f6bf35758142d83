//! With a queue: what has fallen due is brought to the queue, and what it offers is tried once.
//!
//! One worker of a process at a time asks the queue and brings along what has fallen due; the rest wait their turn. So
//! a message costs the store one call to get and one to finish, and a token that becomes free wakes one worker a
//! process, not all of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fake_telegram::time::{Duration, Time};

use super::limiter::{Admission, STORE_PAUSE, clock};
use super::pause::Brake;
use super::place::Place;
use super::queue::Mark;
use super::retry::{Release, Retry};
use super::{Answers, DeadChats, Sender, Verdict};
use crate::env::{Dice, Env, StoreError};
use crate::limiter::budget::Budget;
use crate::limiter::offer::{Offer, Postponed};
use crate::limiter::queue::Queue;
use crate::strategy::sender::retry::Postpone;
use crate::world::{Belief, GiveUp, Message};

pub(super) async fn run(sender: &Sender, env: &Env) {
    let worker = Worker::new(sender, env);
    while let Some(offer) = worker.next().await {
        worker.attempt(&offer).await;
    }
}

struct Worker<'a> {
    env: &'a Env,
    policy: Policy<'a>,
    shared: Place<Shared>,
    desk: Rc<Desk>,
    /// The limiter, if the queue's script cannot ask it itself.
    admission: Option<Admission>,
    brake: Brake,
    dice: Dice,
}

/// What lies beside each other, in the store or in a process.
struct Shared {
    budget: Option<Budget>,
    queue: Queue,
}

/// What the scripts have to know.
struct Policy<'a> {
    sender: &'a Sender,
    /// By class.
    ranks: Vec<usize>,
    at_most_once: Vec<bool>,
    release: Option<&'a Release>,
    callers_clock: bool,
}

/// What a process knows of its queue.
#[derive(Debug)]
struct Desk {
    /// When it pays to ask.
    ask: Cell<Ask>,
    /// What has fallen due and is on its way to the queue.
    inbox: RefCell<Vec<Message>>,
}

/// When it pays to ask the queue again, on the clock of the process.
#[derive(Debug, Clone, Copy)]
enum Ask {
    /// Nothing is there: when something falls due.
    WhenDue,
    /// At this instant, or when something falls due.
    At(Time),
    /// At this instant and no earlier: nothing may be sent before, due or not.
    NotBefore(Time),
}

/// The queue's answer.
struct Grant {
    /// What to send now.
    offer: Option<Offer>,
    /// What is done with, unsent.
    out: Vec<(Message, Out)>,
    ask: AskIn,
}

/// As [`Ask`], from now on: the queue's clock is another one.
#[derive(Clone, Copy)]
enum AskIn {
    WhenDue,
    At(Duration),
    NotBefore(Duration),
}

/// How a message leaves the queue unsent.
#[derive(Clone, Copy)]
enum Out {
    GivenUp(GiveUp),
    Unknown,
}

/// What becomes of a message in flight.
#[derive(Clone, Copy)]
enum Ending {
    Done,
    ChatDead,
    Waits(Duration, Postponed),
}

/// Where a message has moved.
enum Move {
    ToStore,
    ToProcess,
}

impl Default for Desk {
    fn default() -> Self {
        // What lies in the store, nobody knows who has just begun.
        Self { ask: Cell::new(Ask::At(Time::ZERO)), inbox: RefCell::default() }
    }
}

impl<'a> Worker<'a> {
    fn new(sender: &'a Sender, env: &'a Env) -> Self {
        let (queue, limiter) = (&sender.queue.0, &sender.limiter.0);
        let keep = queue.keep().expect("the skeleton is chosen by the queue");
        let (initial_queue, initial_limiter) = (queue.clone(), limiter.clone());
        let initial =
            move || Shared { budget: initial_limiter.beside_queue(Some(keep)), queue: initial_queue.start() };
        let classes = env.classes();
        Self {
            env,
            policy: Policy {
                sender,
                ranks: classes.iter().map(|class| queue.rank(class)).collect(),
                at_most_once: sender.doubt.0.at_most_once(&classes),
                release: match &sender.retry.0 {
                    Retry::Release(release) => Some(release),
                    _ => None,
                },
                callers_clock: limiter.is_on_callers_clocks(),
            },
            shared: Place::new(env, keep, &format!("queue/{}", env.token().0), initial),
            desk: env.memory(Desk::default),
            admission: limiter.beside_queue(Some(keep)).is_none().then(|| limiter.admission(env)),
            brake: sender.pause.0.brake(env),
            dice: env.dice("sender"),
        }
    }

    /// The next message to send; `None` when nothing is left.
    async fn next(&self) -> Option<Offer> {
        let (env, desk) = (self.env, &*self.desk);
        let _turn = env.turn().await;
        loop {
            match desk.ask.get() {
                Ask::WhenDue if env.is_over() => return None,
                Ask::WhenDue => env.idle_until(Time::MAX).await,
                Ask::At(at) if at > env.now() => env.idle_until(at).await,
                Ask::NotBefore(at) if at > env.now() => env.sleep_until(at).await,
                Ask::At(_) | Ask::NotBefore(_) => {}
            }
            if env.is_leaving() && matches!(self.shared, Place::Store(_)) {
                return None;
            }
            let paused_until = self.brake.known_until();
            if paused_until > env.now() {
                env.sleep_until(paused_until).await;
            }
            let mut due = desk.inbox.take();
            due.extend(std::iter::from_fn(|| env.try_next()));
            let grant = self.exchange(&mut due).await;
            desk.inbox.replace(due);
            let Ok(grant) = grant else {
                desk.ask.set(Ask::NotBefore(env.now() + STORE_PAUSE));
                continue;
            };
            desk.ask.set(match grant.ask {
                AskIn::WhenDue => Ask::WhenDue,
                AskIn::At(wait) => Ask::At(env.now().saturating_add(wait)),
                AskIn::NotBefore(wait) => Ask::NotBefore(env.now().saturating_add(wait)),
            });
            for (message, out) in grant.out {
                match out {
                    Out::GivenUp(why) => env.give_up(&message, why),
                    Out::Unknown => env.settle(&message, Belief::Unknown),
                }
            }
            if grant.offer.is_some() {
                return grant.offer;
            }
        }
    }

    /// Hands over what has fallen due and asks for a message.
    async fn exchange(&self, due: &mut Vec<Message>) -> Result<Grant, StoreError> {
        let (policy, own) = (&self.policy, self.env.now());
        match &self.shared {
            Place::Process(shared) => {
                Ok(policy.exchange(own, own, &mut shared.borrow_mut(), due, Time::ZERO, |_, _| {}))
            }
            Place::Store(shared) => {
                let pause = self.brake.shared();
                let script = self.env.script("exchange", |call| {
                    let now = call.now();
                    let paused_until = pause.map_or(Time::ZERO, |pause| call.object(pause).until());
                    let (shared, mut moves) = call.object_and_moves(*shared);
                    policy.exchange(now, own, shared, due, paused_until, |message, to| match to {
                        Move::ToStore => moves.stored(message),
                        Move::ToProcess => moves.taken(message),
                    })
                });
                script.await
            }
        }
    }

    /// Tries to send what the queue has offered, once.
    async fn attempt(&self, offer: &Offer) {
        let (env, sender, message) = (self.env, self.policy.sender, &offer.message);
        if let Some(admission) = &self.admission {
            admission.admit(env).await;
        }
        if matches!(self.shared, Place::Process(_)) && self.brake.shared().is_some() {
            self.brake.pass(env, &self.dice, message).await;
        }
        // This process may know of a refusal that the queue did not when it offered the message.
        let paused = self.brake.known_until_for(env.now(), message).saturating_since(env.now());
        if !paused.is_zero() {
            return self.finish(offer, Ending::Waits(paused, Postponed::HeldBack), None).await;
        }
        if message.deadline < env.now() {
            env.give_up(message, GiveUp::Expired);
            return self.finish(offer, Ending::Done, None).await;
        }
        let reply = env.send_with(message, sender.doubt.0.has_key()).await;
        if sender.answers == Answers::Unread {
            drop(reply);
            return self.finish(offer, Ending::Done, None).await;
        }
        let (ending, refused) = match sender.judge(reply.read()) {
            Verdict::Delivered | Verdict::Nothing => {
                env.settle(message, Belief::Delivered);
                (Ending::Done, None)
            }
            Verdict::Rejected => {
                env.give_up(message, GiveUp::Rejected);
                (Ending::Done, None)
            }
            Verdict::ChatDead => {
                env.give_up(message, GiveUp::ChatDead);
                let forgets = sender.dead_chats == DeadChats::Forget;
                (if forgets { Ending::Done } else { Ending::ChatDead }, None)
            }
            Verdict::Refused(hint) => {
                let refusals = u32::from(offer.refusals) + 1;
                let wait = sender.hint.wait(hint, env.now(), refusals, || self.dice.draw());
                self.brake.note(env, message, wait);
                let waits = self.policy.after_refusal(offer, wait);
                if waits.is_none() {
                    env.give_up(message, GiveUp::Attempts);
                }
                (waits.map_or(Ending::Done, |wait| Ending::Waits(wait, Postponed::Refused)), Some(wait))
            }
            Verdict::Doubt => match self.policy.again(offer) {
                Some(wait) => (Ending::Waits(wait, Postponed::InVain), None),
                None => {
                    env.settle(message, Belief::Unknown);
                    (Ending::Done, None)
                }
            },
        };
        self.finish(offer, ending, refused).await;
        if let Some(wait) = refused {
            if matches!(self.shared, Place::Process(_)) {
                self.brake.tell(env, message, wait).await;
            }
            if let Some(admission) = &self.admission {
                admission.refused(env, wait).await;
            }
        }
    }

    /// Tells the queue what became of a message in flight, and for how long it was refused.
    async fn finish(&self, offer: &Offer, ending: Ending, refused: Option<Duration>) {
        let (env, policy) = (self.env, &self.policy);
        let finished = loop {
            let finished = match &self.shared {
                Place::Process(shared) => {
                    Ok(policy.finish(env.now(), &mut shared.borrow_mut(), offer, ending, refused, |_| {}))
                }
                Place::Store(shared) => {
                    let pause = self.brake.shared();
                    let script = env.script("finish", |call| {
                        let now = call.now();
                        let mut paused_until = Time::ZERO;
                        if let Some(pause) = pause {
                            let (pause, message) = (call.object(pause), &offer.message);
                            if let Some(wait) = refused {
                                pause.refuse(now, message.chat, message.method, now.saturating_add(wait));
                            }
                            paused_until = pause.until();
                        }
                        let (shared, mut moves) = call.object_and_moves(*shared);
                        let (behind, wait) = policy
                            .finish(now, shared, offer, ending, refused, |message| moves.stored(message));
                        (behind, wait.max(paused_until.saturating_since(now)))
                    });
                    script.await
                }
            };
            match finished {
                Ok(finished) => break finished,
                // Nobody else knows what became of it.
                Err(_) => env.sleep(STORE_PAUSE).await,
            }
        };
        let (behind, wait) = finished;
        for message in behind {
            env.give_up(&message, GiveUp::ChatDead);
        }
        self.desk.note(env, env.now().saturating_add(wait));
    }
}

impl Desk {
    /// Something in the queue can be sent from `at` on: whoever waits in this process hears of it.
    fn note(&self, env: &Env, at: Time) {
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

/// The scripts: `now` is the clock of the queue's place, `own` that of whoever asks.
impl Policy<'_> {
    /// What has fallen due joins the queue; if the budget allows, the next message leaves.
    fn exchange(
        &self,
        now: Time,
        own: Time,
        shared: &mut Shared,
        due: &mut Vec<Message>,
        paused_until: Time,
        mut moved: impl FnMut(u32, Move),
    ) -> Grant {
        let Shared { budget, queue } = shared;
        let mut out = Vec::new();
        let revives = self.sender.dead_chats == DeadChats::Revive;
        for mut message in due.drain(..) {
            if !self.sender.deadlines {
                message.deadline = Time::MAX;
            }
            moved(message.number, Move::ToStore);
            let dead = queue.push(message, self.ranks[usize::from(message.class.0)], now, revives);
            out.extend(dead.map(|message| (message, Out::GivenUp(GiveUp::ChatDead))));
        }
        while let Some(offer) = queue.overdue(now) {
            self.recover(queue, &offer, now, &mut out);
        }
        let mut wait = paused_until.saturating_since(now);
        let mut offer = None;
        let mut left = Vec::new();
        if wait.is_zero() {
            if let Some(release) = self.release {
                offer = self.next_job(release, now, own, budget, queue, &mut out);
            } else if queue.next_at(now) <= now {
                wait = budget
                    .as_mut()
                    .map_or(Duration::ZERO, |budget| budget.take(clock(self.callers_clock, own, now)));
                if wait.is_zero() {
                    offer = queue.pop(now, &mut left);
                    wait = budget.as_ref().map_or(Duration::ZERO, |budget| budget.wait(now));
                }
            }
        }
        out.extend(left.into_iter().map(|message| (message, unsent(&message, now))));
        if let Some(offer) = &offer
            && self.sender.queue.0.mark() == Mark::Before
        {
            moved(offer.message.number, Move::ToProcess);
        }
        let next_at = queue.next_at(now);
        let ask = if next_at <= now {
            AskIn::NotBefore(wait)
        } else {
            match next_at.min(queue.lease_ends_at()) {
                Time::MAX => AskIn::WhenDue,
                at => AskIn::At(at.saturating_since(now).max(wait)),
            }
        };
        Grant { offer, out, ask }
    }

    /// The message in flight is done with, or waits for its date. Returns what waited behind it in a dead chat, and how
    /// long until something can be sent next.
    fn finish(
        &self,
        now: Time,
        shared: &mut Shared,
        offer: &Offer,
        ending: Ending,
        refused: Option<Duration>,
        mut stored: impl FnMut(u32),
    ) -> (Vec<Message>, Duration) {
        let Shared { budget, queue } = shared;
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
        let wait = match queue.next_at(now) {
            Time::MAX => Duration::MAX,
            at => at
                .saturating_since(now)
                .max(budget.as_ref().map_or(Duration::ZERO, |budget| budget.wait(now))),
        };
        (behind, wait)
    }

    /// A framework's worker: it takes jobs one after another, and what the limiter does not let through is released.
    fn next_job(
        &self,
        release: &Release,
        now: Time,
        own: Time,
        budget: &mut Option<Budget>,
        queue: &mut Queue,
        out: &mut Vec<(Message, Out)>,
    ) -> Option<Offer> {
        let mut left = Vec::new();
        let job = loop {
            let Some(offer) = queue.pop(now, &mut left) else { break None };
            let wait = budget
                .as_mut()
                .map_or(Duration::ZERO, |budget| budget.take(clock(self.callers_clock, own, now)));
            if wait.is_zero() {
                break Some(offer);
            }
            if offer.refusals.saturating_add(1) < release.attempts {
                queue.postpone(&offer, now, now.saturating_add(release.delay), Postponed::Refused);
            } else {
                queue.finish(&offer, now);
                out.push((offer.message, Out::GivenUp(GiveUp::Attempts)));
            }
        };
        out.extend(left.into_iter().map(|message| (message, unsent(&message, now))));
        job
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
    fn again(&self, offer: &Offer) -> Option<Duration> {
        self.sender.doubt.0.again(self.at_most_once[usize::from(offer.message.class.0)], offer.tries)
    }

    /// How long a message waits that was refused for `wait`; `None` if it is given up.
    fn after_refusal(&self, offer: &Offer, wait: Duration) -> Option<Duration> {
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
