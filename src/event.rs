//! What happens in a run, recorded once and read by many: metrics, ledger, checks and the run's hash are observers.

use fake_telegram::api::{Answer, Decision, TokenIndex, Truth};
use fake_telegram::hint::RetryHint;
use fake_telegram::limits::Level;
use fake_telegram::time::Time;

use crate::world::{Belief, GiveUp, Message, ProcessIndex};

/// One thing that happened. Both truths are in the stream: what the server decided, and what the sender believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A message fell due.
    Due {
        /// The message.
        message: Message,
        /// Whether its chat could receive at that instant.
        alive: bool,
    },
    /// A process holds it: the outbox handed it over, or it left the store.
    Taken {
        /// The message's number.
        message: u32,
        /// To whom.
        process: ProcessIndex,
    },
    /// It left the store for a process that had died before the answer came: nobody holds it. In real time alone.
    Vanished {
        /// The message's number.
        message: u32,
    },
    /// The store holds it: whoever held it before no longer has to live.
    Stored {
        /// The message's number.
        message: u32,
    },
    /// It asks what was answered before, and the answer was used again.
    Reused {
        /// The message.
        message: Message,
    },
    /// A process begins, with nothing in its memory.
    Started {
        /// Which.
        process: ProcessIndex,
    },
    /// A process is gone, and what it held with it.
    Killed {
        /// Which.
        process: ProcessIndex,
    },
    /// What was in the store is gone.
    Flushed,
    /// A call for it left a process.
    Sent {
        /// The message.
        message: Message,
        /// From whom.
        process: ProcessIndex,
        /// Which call for this message, from 1.
        attempt: u16,
    },
    /// The server decided on a call, which may have arrived earlier.
    Decided {
        /// The message.
        message: Message,
        /// Which bot called.
        token: TokenIndex,
        /// What it decided.
        decision: Decision,
    },
    /// The answer, or the lack of one, reached the process.
    Answered {
        /// The message.
        message: Message,
        /// Whom it reached.
        process: ProcessIndex,
        /// What the sender got.
        answer: Answer,
        /// What happened in truth, as far as it was decided by then. Not for the sender.
        decision: Option<Decision>,
    },
    /// The sender is done with the message and believes something about it.
    Settled {
        /// The message.
        message: Message,
        /// What it believes.
        belief: Belief,
    },
    /// The sender gave the message up.
    GivenUp {
        /// The message.
        message: Message,
        /// Why.
        why: GiveUp,
    },
    /// A point of the series begins.
    Sample {
        /// What the token-wide limit allows, summed over the tokens in use; `None` without such a limit.
        level: Option<Level>,
    },
}

/// Reads the events of a run, in order.
pub trait Observer {
    /// `event` happened at `at`; time never goes back.
    fn observe(&mut self, at: Time, event: &Event);
}

/// The hash of all events of a run: equal runs have equal hashes, on every machine.
///
/// A multiply-and-rotate hash over what happened, to which message, by whom and when; not cryptographic.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventHash(u64);

impl EventHash {
    /// The hash so far.
    pub const fn value(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }

    #[inline]
    const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Observer for EventHash {
    #[inline(always)]
    fn observe(&mut self, at: Time, event: &Event) {
        let (kind, message, rest) = match *event {
            Event::Due { message, alive } => {
                self.add(message.deadline.as_micros());
                let class = u64::from(message.class.0) << 8 | u64::from(alive);
                let class = class | (message.method as u64) << 16 | u64::from(message.from_user) << 1;
                (1, message.number, u64::from(message.chat.0) << 32 | class)
            }
            Event::Taken { message, process } => (2, message, process.0.into()),
            Event::Sent { message, process, attempt } => {
                (3, message.number, u64::from(process.0) << 32 | u64::from(attempt))
            }
            Event::Decided { message, decision, .. } => (4, message.number, decision_word(&decision)),
            Event::Answered { message, process, answer, .. } => {
                (5, message.number, u64::from(process.0) << 48 | answer_word(answer))
            }
            Event::Settled { message, belief } => (6, message.number, belief as u64),
            Event::GivenUp { message, why } => (7, message.number, why as u64),
            Event::Sample { level } => (8, 0, level.map_or(u64::MAX, |level| level.available)),
            Event::Stored { message } => (9, message, 0),
            Event::Reused { message } => (10, message.number, 0),
            Event::Started { process } => (11, 0, process.0.into()),
            Event::Killed { process } => (12, 0, process.0.into()),
            Event::Flushed => (13, 0, 0),
            Event::Vanished { message } => (14, message, 0),
        };
        self.add(at.as_micros());
        self.add(kind << 32 | u64::from(message));
        self.add(rest);
    }
}

fn decision_word(decision: &Decision) -> u64 {
    let truth = match decision.truth {
        Truth::Delivered => 0,
        Truth::Refused { limit, wait } => {
            1 << 40 | u64::from(limit.0) << 32 | (wait.as_micros() & 0xffff_ffff)
        }
        Truth::Dead => 2 << 40,
        Truth::Unknown => 3 << 40,
        Truth::Nothing => 4 << 40,
        Truth::Replayed => 5 << 40,
    };
    truth ^ answer_word(decision.answer).rotate_left(48) ^ u64::from(decision.in_penalty)
}

fn answer_word(answer: Answer) -> u64 {
    let (kind, value) = match answer {
        Answer::Message { message_id } => (0, message_id),
        Answer::TooManyRequests { hint: RetryHint::Seconds(seconds) } => (1, seconds),
        Answer::TooManyRequests { hint: RetryHint::Date(at) } => (8, at),
        Answer::TooManyRequests { hint: RetryHint::Absent } => (9, 0),
        Answer::Forbidden(why) => (2, why as u32),
        Answer::ChatNotFound => (3, 0),
        Answer::ServerError { status, .. } => (4, status.into()),
        Answer::Garbage(garbage) => (5, garbage as u32),
        Answer::ConnectionLost => (6, 0),
        Answer::TimedOut => (7, 0),
        Answer::Nothing => (10, 0),
        Answer::Unreachable => (11, 0),
        Answer::Rejected { status } => (12, status.into()),
    };
    kind << 32 | u64::from(value)
}

#[cfg(test)]
mod tests {
    use fake_telegram::api::Garbage;

    use super::*;

    #[test]
    fn every_answer_has_a_word_of_its_own() {
        let answers = [
            Answer::Message { message_id: 1 },
            Answer::TooManyRequests { hint: RetryHint::Seconds(1) },
            Answer::TooManyRequests { hint: RetryHint::Date(1) },
            Answer::TooManyRequests { hint: RetryHint::Absent },
            Answer::ChatNotFound,
            Answer::Nothing,
            Answer::ServerError { status: 502, page: false },
            Answer::Garbage(Garbage::Html),
            Answer::Garbage(Garbage::Empty),
            Answer::Garbage(Garbage::CutList),
            Answer::ConnectionLost,
            Answer::TimedOut,
            Answer::Unreachable,
            Answer::Rejected { status: 502 },
        ];
        let mut words: Vec<u64> = answers.into_iter().map(answer_word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), answers.len());
    }

    #[test]
    fn the_hash_depends_on_order_and_time() {
        let hash = |events: &[(u64, u32)]| {
            let mut hash = EventHash::default();
            for (at, message) in events {
                let event = Event::Taken { message: *message, process: ProcessIndex(0) };
                hash.observe(Time::from_micros(*at), &event);
            }
            hash.value()
        };
        assert_ne!(hash(&[(1, 1), (1, 2)]), hash(&[(1, 2), (1, 1)]));
        assert_ne!(hash(&[(1, 1)]), hash(&[(2, 1)]));
        assert_eq!(hash(&[(1, 1)]), hash(&[(1, 1)]));
    }
}
