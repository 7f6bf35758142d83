//! The scripts of what does not lie beside a queue: a budget, a counter, a pause.

use fake_telegram::time::{Duration, Time};

use super::lua;
use crate::env::{After, Script, StoreScript};
use crate::limiter::budget::Budget;
use crate::limiter::pause::{Pause, PauseKey};
use crate::limiter::text;
use crate::store::Key;
use crate::store::command::{Command, CommandError, Reply};
use crate::store::script::{Eval, Name, Names};
use crate::world::Message;

/// How long until a message may go. The token for it is taken now, if need be on credit; on the clocks of callers, of
/// which this one says `own`, it is taken only if it is there.
pub(super) struct Take<'a> {
    pub(super) budget: Key<Budget>,
    pub(super) own: Option<Time>,
    /// As [`lua::budget`] writes them.
    pub(super) settings: &'a str,
}

/// What [`Take`] does.
pub(super) fn take(now: Time, own: Option<Time>, budget: &mut Budget) -> Duration {
    match own {
        None => budget.reserve(now),
        Some(own) => budget.take(own),
    }
}

impl StoreScript for Take<'_> {
    type Reply = Duration;

    fn name(&self) -> &'static str {
        "take"
    }

    #[inline]
    fn run(self, store: &mut Script<'_>) -> Duration {
        take(store.now(), self.own, &mut store.object(self.budget))
    }

    fn eval(&self, names: Names<'_>) -> Option<Eval> {
        let own = self.own.map_or_else(|| "reserve".to_owned(), |own| text::instant(own).to_string());
        let args = vec![self.settings.to_owned(), own];
        Some(Eval { source: lua::TAKE, keys: vec![names.whole(self.budget)], args })
    }

    fn read(self, reply: Result<Reply, CommandError>, _: &mut After<'_>) -> Option<Duration> {
        lua::read_distance(&reply.ok()?)
    }
}

/// A call was refused, for `wait`: the budget's ramp begins anew.
pub(super) struct Slow<'a> {
    pub(super) budget: Key<Budget>,
    pub(super) wait: Duration,
    /// As [`lua::budget`] writes them.
    pub(super) settings: &'a str,
}

impl StoreScript for Slow<'_> {
    type Reply = ();

    fn name(&self) -> &'static str {
        "slow"
    }

    #[inline]
    fn run(self, store: &mut Script<'_>) {
        let now = store.now();
        store.object(self.budget).refuse(now, now.saturating_add(self.wait));
    }

    fn eval(&self, names: Names<'_>) -> Option<Eval> {
        let args = vec![self.settings.to_owned(), text::distance(self.wait).to_string()];
        Some(Eval { source: lua::SLOW, keys: vec![names.whole(self.budget)], args })
    }

    fn read(self, reply: Result<Reply, CommandError>, _: &mut After<'_>) -> Option<()> {
        reply.is_ok().then_some(())
    }
}

/// Counts a message in the window whose counter is under `key`; how many there are now.
pub(super) struct Count {
    pub(super) key: String,
    /// How long a counter lives.
    pub(super) ttl: Duration,
}

impl StoreScript for Count {
    type Reply = Result<i64, CommandError>;

    fn name(&self) -> &'static str {
        "count"
    }

    fn run(self, store: &mut Script<'_>) -> Self::Reply {
        let Self { key, ttl } = self;
        let Reply::Integer(counted) = store.execute(&Command::Incr { key: key.clone() })? else {
            return Err(CommandError::NotAnInteger);
        };
        if counted == 1 {
            store.execute(&Command::Expire { key, ttl })?;
        }
        Ok(counted)
    }

    fn eval(&self, _: Names<'_>) -> Option<Eval> {
        let ttl_ms = self.ttl.as_micros().div_ceil(1_000);
        let keys = vec![Name::Ordinary(self.key.clone())];
        Some(Eval { source: lua::COUNT, keys, args: vec![ttl_ms.to_string()] })
    }

    fn read(self, reply: Result<Reply, CommandError>, after: &mut After<'_>) -> Option<Self::Reply> {
        let Self { key, ttl } = self;
        match reply {
            Ok(Reply::Integer(counted)) => {
                if counted == 1 {
                    after.expires(key, ttl);
                }
                Some(Ok(counted))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// For how long `message` is not to be sent.
pub(super) struct Paused<'a> {
    pub(super) pause: Key<Pause>,
    pub(super) key: PauseKey,
    pub(super) message: &'a Message,
}

impl StoreScript for Paused<'_> {
    type Reply = Duration;

    fn name(&self) -> &'static str {
        "paused"
    }

    #[inline]
    fn run(self, store: &mut Script<'_>) -> Duration {
        let (now, Message { chat, method, .. }) = (store.now(), *self.message);
        store.object(self.pause).until_for(now, chat, method).saturating_since(now)
    }

    fn eval(&self, names: Names<'_>) -> Option<Eval> {
        let args = lua::paused(self.key, self.message).into();
        Some(Eval { source: lua::PAUSED, keys: lua::pause_keys(names, self.pause).into(), args })
    }

    fn read(self, reply: Result<Reply, CommandError>, _: &mut After<'_>) -> Option<Duration> {
        lua::read_distance(&reply.ok()?)
    }
}

/// `message` was refused, for `wait`.
pub(super) struct Refuse<'a> {
    pub(super) pause: Key<Pause>,
    pub(super) key: PauseKey,
    pub(super) message: &'a Message,
    pub(super) wait: Duration,
}

impl StoreScript for Refuse<'_> {
    type Reply = ();

    fn name(&self) -> &'static str {
        "refuse"
    }

    #[inline]
    fn run(self, store: &mut Script<'_>) {
        let (now, Message { chat, method, .. }) = (store.now(), *self.message);
        store.object(self.pause).refuse(now, chat, method, now.saturating_add(self.wait));
    }

    fn eval(&self, names: Names<'_>) -> Option<Eval> {
        let mut args: Vec<String> = lua::paused(self.key, self.message).into();
        args.push(text::distance(self.wait).to_string());
        Some(Eval { source: lua::REFUSE, keys: lua::pause_keys(names, self.pause).into(), args })
    }

    fn read(self, reply: Result<Reply, CommandError>, _: &mut After<'_>) -> Option<()> {
        reply.is_ok().then_some(())
    }
}
