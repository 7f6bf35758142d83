//! With a queue: what has fallen due is brought to the queue, and what it offers is tried once.
//!
//! One worker of a process at a time asks the queue and brings along what has fallen due; the rest wait their turn. So
//! a message costs the store one call to get and one to finish, and a token that becomes free wakes one worker a
//! process, not all of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fake_telegram::time::{Duration, Time};

use super::limiter::{Admission, STORE_PAUSE};
use super::pause::Brake;
use super::place::{Keep, Place};
use super::scripts::{AskIn, Asker, Beside, Ending, Grant, News, Policy, Shared, Told};
use super::stored::{Exchange, Finish, Stored};
use super::{Answers, DeadChats, Sender, Verdict};
use crate::env::{Dice, Env, StoreError};
use crate::limiter::budget::Budget;
use crate::limiter::offer::{Offer, Postponed};
use crate::store::Key;
use crate::world::{Belief, GiveUp, Message};

pub(super) async fn run(sender: Sender, env: Env) {
    let worker = Worker::new(&sender, &env);
    while let Some((offer, until)) = worker.next().await {
        worker.attempt(&offer, until).await;
    }
}

struct Worker<'a> {
    env: &'a Env,
    policy: Policy<'a>,
    queue: Place<Shared>,
    /// The budget, if it is kept at the place of the queue: then the queue's script asks it.
    budget: Option<Place<Budget>>,
    /// The limiter otherwise.
    admission: Option<Admission>,
    brake: Brake,
    desk: Rc<Desk>,
    dice: Dice,
}

/// What a process knows of its queue.
#[derive(Debug)]
struct Desk {
    /// When it pays to ask, as the queue said.
    ask: Cell<Ask>,
    /// When it pays to ask, as this process has learnt since it last asked.
    noted: Cell<Time>,
    /// Whether the last question had no answer: it may have been heard.
    is_open: Cell<bool>,
    /// Whether something waits in the queue, as far as this process knows.
    more: Cell<bool>,
    /// What has fallen due and is on its way to the queue.
    inbox: RefCell<Vec<Message>>,
    /// Whether a token was taken for the next message.
    has_token: Cell<bool>,
    /// The number of the next question.
    question: Cell<u32>,
    /// Whether somebody looks after what nobody tells.
    is_minded: Cell<bool>,
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

impl Default for Desk {
    fn default() -> Self {
        // What lies in the store, nobody knows who has just begun.
        Self {
            ask: Cell::new(Ask::At(Time::ZERO)),
            noted: Cell::new(Time::MAX),
            is_open: Cell::new(false),
            more: Cell::new(true),
            inbox: RefCell::default(),
            has_token: Cell::new(false),
            question: Cell::new(0),
            is_minded: Cell::new(false),
        }
    }
}

impl<'a> Worker<'a> {
    fn new(sender: &'a Sender, env: &'a Env) -> Self {
        let (queue, limiter) = (&sender.queue.0, &sender.limiter.0);
        let keep = queue.keep().expect("the skeleton is chosen by the queue");
        let (name, initial) = (format!("queue/{}", env.token().0), queue.clone());
        let place = match keep {
            Keep::Process => Place::new(env, keep, &name, move || Shared::new(&initial)),
            Keep::Store => Place::Store(env.holder(&name, move || Shared::new(&initial))),
        };
        let desk = env.memory(Desk::default);
        if keep == Keep::Store && !desk.is_minded.replace(true) {
            env.spawn("the minder", mind(env.clone(), desk.clone(), queue.lease().min(STAND_BY)));
        }
        let budget = limiter.budget_beside(env, keep);
        Self {
            env,
            policy: Policy::new(sender, &env.classes()),
            queue: place,
            admission: budget.is_none().then(|| limiter.admission(env)),
            budget,
            brake: sender.pause.0.brake(env),
            desk,
            dice: env.dice("sender"),
        }
    }

    /// The next message to send, and until when it is ours on this process' clock; `None` when nothing is left.
    async fn next(&self) -> Option<(Offer, Time)> {
        let (env, desk) = (self.env, &*self.desk);
        let turn = env.turn().await;
        loop {
            match desk.next_ask() {
                Ask::WhenDue if env.is_over() && !self.is_shared() => return None,
                Ask::WhenDue => env.idle_until(Time::MAX).await,
                Ask::At(at) if at > env.now() => env.idle_until(at).await,
                Ask::NotBefore(at) if at > env.now() => env.sleep_until(at).await,
                Ask::At(_) | Ask::NotBefore(_) => {}
            }
            if env.is_leaving() && self.is_shared() && desk.has_nothing() {
                // Who stays looks after what this process knew to wait.
                env.announce();
                return None;
            }
            let paused_until = self.brake.known_until();
            if paused_until > env.now() {
                env.sleep_until(paused_until).await;
            }
            // The token before the message: who waits for one with a message in hand may wait longer than its lease.
            if let Some(admission) = &self.admission
                && !desk.has_token.get()
                && (desk.more.get() || env.is_due() || !desk.inbox.borrow().is_empty())
            {
                admission.admit(env).await;
                desk.has_token.set(true);
            }
            let mut due = desk.inbox.take();
            due.extend(std::iter::from_fn(|| env.try_next()));
            let asked_at = env.now();
            desk.noted.set(Time::MAX);
            let grant = self.exchange(&due).await;
            if let Ok(grant) = &grant {
                due.drain(..due.len().min(grant.brought as usize));
            }
            let is_left = !due.is_empty();
            desk.inbox.replace(due);
            let Ok(grant) = grant else {
                desk.is_open.set(true);
                desk.ask.set(Ask::NotBefore(env.now() + STORE_PAUSE));
                continue;
            };
            desk.question.set(desk.question.get().wrapping_add(1));
            desk.more.set(grant.more);
            desk.ask.set(match grant.ask {
                // An answer to what was asked before knows nothing of what has fallen due since, nor what time it is.
                _ if desk.is_open.take() || is_left => Ask::At(env.now()),
                AskIn::WhenDue => Ask::WhenDue,
                AskIn::At(wait) => Ask::At(env.now().saturating_add(wait)),
                AskIn::NotBefore(wait) => Ask::NotBefore(env.now().saturating_add(wait)),
            });
            let Some(offer) = grant.offer else {
                if let Some(admission) = &self.admission
                    && desk.has_token.get()
                    && admission.put_back()
                {
                    desk.has_token.set(false);
                }
                continue;
            };
            desk.has_token.set(false);
            // Who of this process could ask for the next? If nobody, others should know that it waits.
            if grant.more && !turn.others_wait() && self.is_shared() {
                env.announce();
            }
            return Some((offer, asked_at.saturating_add(grant.lease_left)));
        }
    }

    /// Whether other processes have the same queue.
    const fn is_shared(&self) -> bool {
        matches!(self.queue, Place::Store(_))
    }

    /// Brings what has fallen due and asks for a message.
    async fn exchange(&self, due: &[Message]) -> Result<Grant, StoreError> {
        let Self { env, policy, .. } = self;
        let asker = Asker {
            process: env.process().0,
            life: env.life(),
            question: self.desk.question.get(),
            can_send: self.admission.is_none() || self.desk.has_token.get(),
            now: env.now(),
        };
        match &self.queue {
            Place::Process(queue) => Ok(self.with_known(|beside| {
                policy.exchange(asker.now, asker, &mut queue.borrow_mut(), beside, due, &mut |told| {
                    env.tell(told)
                })
            })),
            Place::Store(queue) => env.run(Exchange { policy, at: self.stored(*queue), asker, due }).await,
        }
    }

    /// What lies beside a queue in the process: the budget, if it is there, and what the process knows of a pause.
    fn with_known<R>(&self, run: impl FnOnce(&mut Beside<'_>) -> R) -> R {
        let mut budget = match &self.budget {
            Some(Place::Process(budget)) => Some(budget.borrow_mut()),
            _ => None,
        };
        let mut pause = self.brake.known();
        run(&mut Beside { budget: budget.as_deref_mut(), pause: pause.as_deref_mut() })
    }

    /// A queue in the store, with what lies beside it.
    fn stored(&self, queue: Key<Shared>) -> Stored {
        let budget = match self.budget {
            Some(Place::Store(budget)) => Some(budget),
            _ => None,
        };
        Stored { queue, budget, pause: self.brake.shared() }
    }

    /// Tries to send what the queue has offered, once; it is ours `until` then.
    async fn attempt(&self, offer: &Offer, until: Time) {
        let (env, sender, message) = (self.env, self.policy.sender, &offer.message);
        if !self.is_shared() && self.brake.shared().is_some() {
            self.brake.pass(env, &self.dice, message).await;
        }
        // Whoever has waited may have waited too long: less is left than a call takes, and soon somebody else has the
        // message.
        let is_late = until < Time::MAX && until.saturating_since(env.now()) < env.call_timeout();
        // This process may know of a refusal that the queue did not when it offered the message.
        let paused = self.brake.known_until_for(env.now(), message).saturating_since(env.now());
        if is_late || !paused.is_zero() {
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
                self.brake.succeeded();
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
                let refusals = self.brake.refusals(env, u32::from(offer.refusals) + 1);
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
            if !self.is_shared() {
                self.brake.tell(env, message, wait).await;
            }
            if let Some(admission) = &self.admission {
                admission.refused(env, wait).await;
            }
        }
    }

    /// Tells the queue what became of a message in flight, and for how long it was refused.
    async fn finish(&self, offer: &Offer, ending: Ending, refused: Option<Duration>) {
        let Self { env, policy, .. } = self;
        let mut news = News { offer, ending, refused, is_again: false };
        if let (Ending::Waits(_, Postponed::HeldBack), Some(_)) = (ending, &self.admission) {
            // The token is still there for the next message.
            self.desk.has_token.set(true);
        }
        let wait = loop {
            let finished = match &self.queue {
                Place::Process(queue) => Ok(self.with_known(|beside| {
                    policy
                        .finish(env.now(), &mut queue.borrow_mut(), beside, news, &mut |told| env.tell(told))
                })),
                Place::Store(queue) => env.run(Finish { policy, at: self.stored(*queue), news }).await,
            };
            match finished {
                Ok(wait) => break wait,
                // Nobody else knows what became of it.
                Err(error) => {
                    news.is_again |= error == StoreError::TimedOut;
                    env.sleep(STORE_PAUSE).await;
                }
            }
        };
        self.desk.note(env, env.now().saturating_add(wait));
    }
}

/// Looks into a queue that other processes share: what they leave behind when they die, nobody tells. Once in a lease
/// at most, and at least this often.
async fn mind(env: Env, desk: Rc<Desk>, every: Duration) {
    loop {
        env.sleep(every).await;
        desk.note(&env, env.now());
    }
}

/// How often a process looks into a queue that it shares although it knows of nothing there.
const STAND_BY: Duration = Duration::from_mins(1);

impl Desk {
    /// When it pays to ask.
    fn next_ask(&self) -> Ask {
        let noted = self.noted.get();
        match self.ask.get() {
            Ask::WhenDue if noted < Time::MAX => Ask::At(noted),
            Ask::At(at) => Ask::At(at.min(noted)),
            ask => ask,
        }
    }

    /// Whether this process has nothing on its way to the queue or back.
    fn has_nothing(&self) -> bool {
        self.inbox.borrow().is_empty() && !self.is_open.get()
    }

    /// Something in the queue can be sent from `at` on: whoever waits in this process hears of it.
    fn note(&self, env: &Env, at: Time) {
        if at == Time::MAX {
            return;
        }
        self.more.set(true);
        if at < self.noted.get() {
            self.noted.set(at);
        }
        let is_news = match self.ask.get() {
            Ask::WhenDue => true,
            Ask::At(known) => at < known,
            Ask::NotBefore(_) => false,
        };
        if is_news {
            env.nudge();
        }
    }
}

impl Env {
    /// What a queue in the process does to a message, in the books.
    fn tell(&self, told: Told) {
        match told {
            // It is in the hands of this process all the time.
            Told::Stored(_) | Told::Taken(_) => {}
            Told::GivenUp(message, why) => self.give_up(&message, why),
            Told::Unknown(message) => self.settle(&message, Belief::Unknown),
        }
    }
}
