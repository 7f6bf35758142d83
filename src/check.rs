//! Findings about the sender, from the event stream.

use fake_telegram::api::{Answer, TokenIndex, Truth};
use fake_telegram::early::{self, Called};
use fake_telegram::limits::Limit;
use fake_telegram::time::Time;

use crate::event::{Event, Observer};
use crate::world::{Message, ProcessIndex};

/// Counts [early retries](early): calls sent although the sender knew of a refusal whose `retry_after` was not over.
#[derive(Debug, Default)]
pub struct EarlyRetries {
    /// How many there were.
    pub count: u64,
    refusals: early::EarlyRetries,
    /// Which token each process sends with.
    tokens: Vec<TokenIndex>,
}

impl EarlyRetries {
    /// Counts for the limits of a profile; `tokens` says which token each process sends with.
    pub fn new(limits: &[Limit], tokens: Vec<TokenIndex>) -> Self {
        let count = tokens.iter().map(|token| usize::from(token.0) + 1).max().unwrap_or(0);
        Self { count: 0, refusals: early::EarlyRetries::new(limits, count), tokens }
    }

    #[inline(always)]
    fn called(&self, message: &Message, process: ProcessIndex) -> Called {
        let token = self.tokens[usize::from(process.0)];
        Called { token, chat: message.chat, method: message.method, process: Some(process.0) }
    }
}

impl Observer for EarlyRetries {
    #[inline(always)]
    fn observe(&mut self, at: Time, event: &Event) {
        match *event {
            Event::Sent { message, process, .. } => {
                let called = self.called(&message, process);
                self.count += u64::from(self.refusals.early(at, called).is_some());
            }
            Event::Answered {
                message,
                process,
                answer: answer @ Answer::TooManyRequests { .. },
                decision: Some(decision),
            } => {
                let Truth::Refused { limit, .. } = decision.truth else { return };
                let Some(wait) = answer.retry_after(decision.at) else { return };
                let called = self.called(&message, process);
                self.refusals.refused(at, called, limit, decision.at.saturating_add(wait));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fake_telegram::api::{CallId, ChatIndex, ChatKind, Decision, LimitIndex, Method};
    use fake_telegram::hint::RetryHint;
    use fake_telegram::profile::Profile;
    use fake_telegram::time::Duration;

    use super::*;
    use crate::world::ClassIndex;

    const CHAT: LimitIndex = LimitIndex(1);

    fn message(chat: u32) -> Message {
        let (due, deadline, class) = (Time::ZERO, Time::MAX, ClassIndex(0));
        Message {
            number: 0,
            chat: ChatIndex(chat),
            due,
            deadline,
            class,
            kind: ChatKind::Private,
            method: Method::SendMessage,
            from_user: false,
        }
    }

    /// A refusal of 10 s, decided and answered at 0 to process 0.
    fn refused(check: &mut EarlyRetries, limit: LimitIndex, chat: u32) {
        refused_with(check, RetryHint::Seconds(10), limit, chat);
    }

    fn refused_with(check: &mut EarlyRetries, hint: RetryHint, limit: LimitIndex, chat: u32) {
        let answer = Answer::TooManyRequests { hint };
        let truth = Truth::Refused { limit, wait: Duration::from_secs(10) };
        let decision =
            Decision { call: CallId(0), at: Time::ZERO, answer, truth, in_penalty: false, taken: 0 };
        let (message, process) = (message(chat), ProcessIndex(0));
        check.observe(Time::ZERO, &Event::Answered { message, process, answer, decision: Some(decision) });
    }

    fn is_early(check: &mut EarlyRetries, at_ms: u64, process: u16, chat: u32) -> bool {
        let before = check.count;
        let event = Event::Sent { message: message(chat), process: ProcessIndex(process), attempt: 1 };
        check.observe(Time::ZERO + Duration::from_millis(at_ms), &event);
        check.count > before
    }

    #[test]
    fn who_was_answered_knows_at_once_and_others_a_second_later() {
        let mut check = EarlyRetries::new(&Profile::telegram().limits, vec![TokenIndex(0); 2]);
        refused(&mut check, CHAT, 7);
        assert!(is_early(&mut check, 1, 0, 7), "the same process knows at once");
        assert!(!is_early(&mut check, 1_000, 1, 7), "another does not, within a second");
        assert!(is_early(&mut check, 1_001, 1, 7));
        assert!(!is_early(&mut check, 5_000, 0, 8), "another chat");
        assert!(is_early(&mut check, 9_999, 0, 7));
        assert!(!is_early(&mut check, 10_000, 0, 7), "retry_after is over");
    }

    #[test]
    fn what_the_server_said_counts_and_not_how_long_it_lasts() {
        let early_at = |hint, at_ms| {
            let mut check = EarlyRetries::new(&Profile::telegram().limits, vec![TokenIndex(0)]);
            refused_with(&mut check, hint, CHAT, 7);
            is_early(&mut check, at_ms, 0, 7)
        };
        assert!(early_at(RetryHint::Date(3), 2_999) && !early_at(RetryHint::Date(3), 3_000));
        assert!(early_at(RetryHint::Seconds(3), 2_999) && !early_at(RetryHint::Seconds(3), 3_000));
        assert!(!early_at(RetryHint::Absent, 1), "nobody was told to wait");
    }
}
