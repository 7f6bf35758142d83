//! What crosses the seam between a strategy and the world that it runs in.

use fake_telegram::api::{ChatIndex, ChatKind, Method};
use fake_telegram::time::{Duration, Time};

/// A class of messages (`reply`, `notification`, `broadcast`, ...), as an index into the scenario's list, in order of
/// first appearance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassIndex(pub u8);

/// A message that is due: the logical notice, whatever number of calls it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its number in the run, from 0, in order of due instants.
    pub number: u32,
    /// Where it goes.
    pub chat: ChatIndex,
    /// When it fell due.
    pub due: Time,
    /// After this instant nobody wants it any more; [`Time::MAX`] without a deadline.
    pub deadline: Time,
    /// Its class.
    pub class: ClassIndex,
    /// The kind of its chat (a client reads it off the chat id's sign and prefix).
    pub kind: ChatKind,
    /// The method that it is sent with.
    pub method: Method,
    /// It answers what the user has just written: a user who had blocked the bot has unblocked it.
    pub from_user: bool,
}

/// A sender process, as an index into the design's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessIndex(pub u16);

/// What happens to a process. Each does nothing to a process that it does not fit, since chance may have been there
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It starts with empty memory, unless it runs.
    Start,
    /// It takes nothing new and finishes what it holds. Only a later [`Start`](Self::Start) brings it back: if it is
    /// dead, or dies while it leaves, no `restart_after` does.
    Leave,
    /// It is gone at once, and so is all that it held; also while it leaves.
    Kill,
}

/// A change at a known instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Time,
    /// To which process, by its number in the group.
    pub process: u32,
    /// What.
    pub change: Change,
}

/// A death between two calls: the answer to one has come back, and the next has not been made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillPoint {
    /// Whose death, by its number in the group.
    pub process: u32,
    /// The name of the call after which it dies, or `any`.
    pub after: String,
    /// How many calls of this name it makes before, over all its lives; at least 1.
    pub count: u32,
    /// How long it is away; for good without it.
    pub restart_after: Option<Duration>,
}

/// Deaths at random instants: exponential gaps, drawn from the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kills {
    /// Whose deaths, by its number in the group.
    pub process: u32,
    /// How long it lives, on average; above zero.
    pub every: Duration,
    /// How long it is away each time; for good without it.
    pub restart_after: Option<Duration>,
}

/// What a sender believes of a message when it is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// It is in the chat.
    Delivered,
    /// It may be or not: the answer was lost, or made no sense.
    Unknown,
}

/// Why a sender gives a message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// Its deadline is over.
    Expired,
    /// Its chat cannot receive.
    ChatDead,
    /// The server will not have it (an unknown chat, a malformed request).
    Rejected,
    /// It was tried often enough.
    Attempts,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outboxes and lanes hold millions of them: two to a cache line.
    #[test]
    fn a_message_has_32_bytes() {
        assert_eq!(size_of::<Message>(), 32);
    }
}
