//! The other end of the wire, when it is not the model: a server that somebody else calls, in real time.

use fake_telegram::api::{Answer, ChatIndex, ChatKind, Decision, TokenIndex};
use fake_telegram::limits::Level;
use fake_telegram::time::Time;

use crate::metrics::Penalties;
use crate::world::{Message, ProcessIndex};

/// Carries calls to a server and brings news of them.
///
/// News of call `number` is announced with [`Handle::set`](crate::executor::Handle::set) and fetched with
/// [`receive`](Carrier::receive), once for each time. A number is free for another call when its decision has come.
pub trait Carrier {
    /// A call leaves.
    fn send(&mut self, call: Outgoing);
    /// The oldest news that was not fetched: of which call, and what.
    fn receive(&mut self) -> (u32, News);
    /// A message for `chat` falls due, `from_user` or not: what kind of chat it is and whether it can receive.
    fn look(&mut self, chat: ChatIndex, from_user: bool) -> (ChatKind, bool);
    /// What the token-wide limit allows at `at`; `None` if there is none.
    fn level(&self, token: TokenIndex, at: Time) -> Option<Level>;
    /// The penalties so far, by limit; empty if nobody knows them.
    fn penalties(&self) -> Vec<Penalties>;
}

/// A call that leaves.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// Its number on the wire.
    pub number: u32,
    /// What for.
    pub message: Message,
    /// From whom.
    pub process: ProcessIndex,
    /// With which token.
    pub token: TokenIndex,
    /// With which idempotency key.
    pub key: Option<u32>,
    /// Decides which fault hits it, as in virtual time.
    pub fault: u32,
}

/// What is new of a call.
#[derive(Debug, Clone, Copy)]
pub struct News {
    /// What the client gets, if that is news.
    pub answer: Option<Answer>,
    /// What happened in truth, if that is known by now.
    pub decision: Option<Decision>,
}
