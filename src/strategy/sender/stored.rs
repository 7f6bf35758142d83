//! The scripts of a queue in the store, with what lies beside it.

use fake_telegram::time::{Duration, Time};

use super::lua;
use super::scripts::{AskIn, Asker, Beside, Ending, Grant, News, Policy, Shared, Told};
use crate::env::{After, Moves, Script, StoreScript};
use crate::limiter::budget::Budget;
use crate::limiter::offer::Postponed;
use crate::limiter::pause::Pause;
use crate::limiter::text;
use crate::store::Key;
use crate::store::command::{CommandError, Reply};
use crate::store::script::{Eval, Name, Names};
use crate::world::{GiveUp, Message};

/// A queue in the store and what is asked with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) queue: Key<Shared>,
    pub(super) budget: Option<Key<Budget>>,
    pub(super) pause: Option<Key<Pause>>,
}

impl Stored {
    #[inline]
    fn run<R>(
        self,
        store: &Script<'_>,
        run: impl FnOnce(Time, &mut Shared, &mut Beside<'_>, Moves<'_>) -> R,
    ) -> R {
        let (mut queue, moves) = store.holder(self.queue);
        let mut budget = self.budget.map(|budget| store.object(budget));
        let mut pause = self.pause.map(|pause| store.object(pause));
        let mut beside = Beside { budget: budget.as_deref_mut(), pause: pause.as_deref_mut() };
        run(store.now(), &mut queue, &mut beside, moves)
    }

    fn eval(self, names: Names<'_>, policy: &Policy<'_>, source: &'static str, args: Vec<String>) -> Eval {
        // What does not lie there has a key all the same: those of the queue stand behind it.
        let none = || Name::Object("none".to_owned());
        let mut keys = vec![self.budget.map_or_else(none, |budget| names.whole(budget))];
        match self.pause {
            Some(pause) => keys.extend(lua::pause_keys(names, pause)),
            None => keys.extend([none(), none()]),
        }
        keys.extend(policy.lua().parts.iter().map(|part| names.part(self.queue, part)));
        let mut all = vec![policy.settings().to_owned()];
        all.extend(args);
        Eval { source, keys, args: all }
    }
}

/// [`Policy::exchange`].
pub(super) struct Exchange<'a> {
    pub(super) policy: &'a Policy<'a>,
    pub(super) at: Stored,
    pub(super) asker: Asker,
    pub(super) due: &'a [Message],
}

impl StoreScript for Exchange<'_> {
    type Reply = Grant;

    fn name(&self) -> &'static str {
        "exchange"
    }

    #[inline]
    fn run(self, store: &mut Script<'_>) -> Grant {
        let Self { policy, at, asker, due } = self;
        at.run(store, |now, queue, beside, moves| {
            policy.exchange(now, asker, queue, beside, due, &mut |told| tell(moves, told))
        })
    }

    fn eval(&self, names: Names<'_>) -> Option<Eval> {
        let Self { policy, at, asker, due } = self;
        let Asker { process, life, question, can_send, now } = asker;
        let mut args = vec![
            process.to_string(),
            life.to_string(),
            question.to_string(),
            u8::from(*can_send).to_string(),
            text::instant(*now).to_string(),
        ];
        args.extend(due.iter().map(|message| text::write_message(&policy.as_wanted(message))));
        Some(at.eval(names, policy, policy.lua().exchange, args))
    }

    fn tell(reply: &Reply, moves: Moves<'_>) -> Option<()> {
        tell_all(reply, moves)
    }

    fn read(self, reply: Result<Reply, CommandError>, _: &mut After<'_>) -> Option<Grant> {
        read_grant(&reply.ok()?)
    }
}

/// [`Policy::finish`].
pub(super) struct Finish<'a> {
    pub(super) policy: &'a Policy<'a>,
    pub(super) at: Stored,
    pub(super) news: News<'a>,
}

impl StoreScript for Finish<'_> {
    type Reply = Duration;

    fn name(&self) -> &'static str {
        "finish"
    }

    #[inline]
    fn run(self, store: &mut Script<'_>) -> Duration {
        let Self { policy, at, news } = self;
        at.run(store, |now, queue, beside, moves| {
            policy.finish(now, queue, beside, news, &mut |told| tell(moves, told))
        })
    }

    fn eval(&self, names: Names<'_>) -> Option<Eval> {
        let News { offer, ending, refused, is_again } = self.news;
        let (ending, wait, why) = match ending {
            Ending::Done => ("done", Duration::ZERO, ""),
            Ending::ChatDead => ("dead", Duration::ZERO, ""),
            Ending::Waits(wait, why) => (
                "waits",
                wait,
                match why {
                    Postponed::Refused => "refused",
                    Postponed::InVain => "in-vain",
                    Postponed::HeldBack => "held-back",
                },
            ),
        };
        let args = vec![
            text::write_offer(offer),
            ending.to_owned(),
            text::distance(wait).to_string(),
            why.to_owned(),
            refused.map(|wait| text::distance(wait).to_string()).unwrap_or_default(),
            u8::from(is_again).to_string(),
        ];
        Some(self.at.eval(names, self.policy, self.policy.lua().finish, args))
    }

    fn tell(reply: &Reply, moves: Moves<'_>) -> Option<()> {
        tell_all(reply, moves)
    }

    fn read(self, reply: Result<Reply, CommandError>, _: &mut After<'_>) -> Option<Duration> {
        read_wait(&reply.ok()?)
    }
}

/// What `lua/exchange.lua` replies.
fn read_grant(reply: &Reply) -> Option<Grant> {
    let Reply::Array(parts) = reply else { return None };
    let [brought, ask, ask_in, more, lease_left, offer, _] = parts.as_slice() else { return None };
    let integer = |reply: &Reply| if let Reply::Integer(number) = reply { Some(*number) } else { None };
    let ask_in = lua::read_distance(ask_in)?;
    Some(Grant {
        brought: u32::try_from(integer(brought)?).ok()?,
        offer: match lua::read_text(offer)? {
            "" => None,
            offer => Some(text::read_offer(offer)?),
        },
        ask: match integer(ask)? {
            0 => AskIn::WhenDue,
            1 => AskIn::At(ask_in),
            _ => AskIn::NotBefore(ask_in),
        },
        more: integer(more)? == 1,
        lease_left: lua::read_distance(lease_left)?,
    })
}

/// What `lua/finish.lua` replies.
fn read_wait(reply: &Reply) -> Option<Duration> {
    let Reply::Array(parts) = reply else { return None };
    let [wait, _] = parts.as_slice() else { return None };
    lua::read_distance(wait)
}

/// What either replies last: what became of messages.
fn read_all_told(reply: &Reply) -> Option<Vec<Told>> {
    let Reply::Array(parts) = reply else { return None };
    let Reply::Array(told) = parts.last()? else { return None };
    told.iter().map(|text| read_told(lua::read_text(text)?)).collect()
}

fn tell_all(reply: &Reply, moves: Moves<'_>) -> Option<()> {
    read_all_told(reply)?.into_iter().for_each(|told| tell(moves, told));
    Some(())
}

/// What a script tells of a message: a letter, and the message.
fn read_told(text: &str) -> Option<Told> {
    let (letter, message) = text.split_at_checked(1)?;
    let message = text::read_message(message)?;
    Some(match letter {
        "S" => Told::Stored(message),
        "T" => Told::Taken(message),
        "U" => Told::Unknown(message),
        "A" => Told::GivenUp(message, GiveUp::Attempts),
        "D" => Told::GivenUp(message, GiveUp::ChatDead),
        "E" => Told::GivenUp(message, GiveUp::Expired),
        _ => return None,
    })
}

#[inline]
fn tell(moves: Moves<'_>, told: Told) {
    match told {
        Told::Stored(message) => moves.stored(&message),
        Told::Taken(message) => moves.taken(&message),
        Told::GivenUp(message, why) => moves.given_up(&message, why),
        Told::Unknown(message) => moves.unknown(&message),
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests;
