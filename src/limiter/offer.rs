//! What queues hand out, and how fast each kind of chat is written to.

use fake_telegram::api::ChatKind;
use fake_telegram::bucket::TokenBucket;
use fake_telegram::time::{Duration, Time};

use crate::world::Message;

/// A message to be sent now, in flight until its queue is told what became of it or its lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The message.
    pub message: Message,
    /// Attempts so far after which nobody knows whether it arrived.
    pub tries: u8,
    /// Refusals so far.
    pub refusals: u8,
    /// Until when it is in flight, on the queue's clock.
    pub(super) leased_until: Time,
    /// Which offer of its queue it is, from 1: one whose lease has ended is told from the next for the same message.
    pub(super) ticket: u32,
    /// Where the queue keeps it.
    pub(super) slot: u32,
}

impl Offer {
    /// How much of its lease is left at `now` on the queue's clock.
    pub fn lease_left(&self, now: Time) -> Duration {
        self.leased_until.saturating_since(now)
    }
}

/// Why a message in flight waits again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Postponed {
    /// It was refused.
    Refused,
    /// Nobody knows whether it arrived.
    InVain,
    /// It was not sent: its sender pauses.
    HeldBack,
}

/// How fast each kind of chat is written to.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Private chats.
    pub private: TokenBucket,
    /// Groups.
    pub group: TokenBucket,
    /// Channels.
    pub channel: TokenBucket,
}

impl Postponed {
    pub(super) const fn count(self, tries: &mut u8, refusals: &mut u8) {
        match self {
            Self::Refused => *refusals = refusals.saturating_add(1),
            Self::InVain => *tries = tries.saturating_add(1),
            Self::HeldBack => {}
        }
    }
}

impl Pace {
    pub(super) const fn of(&self, kind: ChatKind) -> &TokenBucket {
        match kind {
            ChatKind::Private => &self.private,
            ChatKind::Group => &self.group,
            ChatKind::Channel => &self.channel,
        }
    }
}
