//! What is done to a store, wherever its data are: in the run, or on a real Redis.

use fake_telegram::time::{Duration, Time};

use super::command::{self, Command, CommandError};
use super::keyspace::Keyspace;
use super::script::{Answer, Names, Request};

/// Hears a real Redis' answer. Whether that makes sense.
pub type Booking = Box<dyn FnOnce(&Answer) -> bool>;

/// What is done to a store at once and alone, wherever its data are.
pub trait Operation {
    /// What it gives.
    type Reply;

    /// Does it to the simulated store at the store's instant `now`.
    fn simulated(self, now: Time, keyspace: &mut Keyspace) -> Self::Reply;

    /// How a real Redis is asked for it; `names` has the objects' names.
    ///
    /// # Errors
    /// If it is not written for a real Redis: its name.
    fn request(&self, names: Names<'_>) -> Result<Request, &'static str>;

    /// What keeps the books of it, if anybody does: hears the answer of a real Redis before [`reply`](Self::reply), as soon as
    /// it arrives, whether or not whoever asked is still there.
    fn booking(&self) -> Option<Booking> {
        None
    }

    /// What a real Redis' answer means. Ordinary keys that a script has made are appended to `expires`, with how long they
    /// live: in virtual time Redis does not know. `None` if it makes no sense.
    fn reply(self, answer: Answer, expires: &mut Vec<(String, Duration)>) -> Option<Self::Reply>;
}

impl Operation for &Command {
    type Reply = Result<command::Reply, CommandError>;

    fn simulated(self, now: Time, keyspace: &mut Keyspace) -> Self::Reply {
        keyspace.execute(now, self)
    }

    fn request(&self, _: Names<'_>) -> Result<Request, &'static str> {
        Ok(Request::Commands(vec![(*self).clone()]))
    }

    fn reply(self, mut answer: Answer, _: &mut Vec<(String, Duration)>) -> Option<Self::Reply> {
        answer.pop()
    }
}

/// Commands in order.
impl Operation for &[Command] {
    type Reply = Vec<Result<command::Reply, CommandError>>;

    fn simulated(self, now: Time, keyspace: &mut Keyspace) -> Self::Reply {
        self.iter().map(|command| keyspace.execute(now, command)).collect()
    }

    fn request(&self, _: Names<'_>) -> Result<Request, &'static str> {
        Ok(Request::Commands(self.to_vec()))
    }

    fn reply(self, answer: Answer, _: &mut Vec<(String, Duration)>) -> Option<Self::Reply> {
        Some(answer)
    }
}
