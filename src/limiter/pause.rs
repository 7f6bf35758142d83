//! A sender's "not before", for the whole token.

use fake_telegram::api::ChatIndex;
use fake_telegram::time::Time;

/// Tells a chat's refusal from the token's: a 429 does not say which limit it hit.
///
/// The first refused chat is that chat's own affair. When a second chat is refused while the first is still refused,
/// the token is taken to be limited, until the later of both.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pause {
    until: Time,
    refused: Option<(ChatIndex, Time)>,
}

impl Pause {
    /// Nothing is to be sent before this instant.
    pub const fn until(&self) -> Time {
        self.until
    }

    /// A call to `chat` was refused at `now`, until `until`.
    pub fn refuse(&mut self, now: Time, chat: ChatIndex, until: Time) {
        match self.refused {
            Some((first, first_until)) if now < first_until => {
                if first != chat {
                    self.until = self.until.max(first_until).max(until);
                }
                self.refused = Some((first, first_until.max(until)));
            }
            _ => self.refused = Some((chat, until)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn one_chat_is_its_own_affair_and_two_are_the_tokens() {
        let mut pause = Pause::default();
        pause.refuse(s(0), ChatIndex(1), s(10));
        pause.refuse(s(2), ChatIndex(1), s(12));
        assert_eq!(pause.until(), Time::ZERO);
        pause.refuse(s(11), ChatIndex(2), s(15));
        assert_eq!(pause.until(), s(15));
    }

    #[test]
    fn a_refusal_that_is_over_is_forgotten() {
        let mut pause = Pause::default();
        pause.refuse(s(0), ChatIndex(1), s(10));
        pause.refuse(s(10), ChatIndex(2), s(15));
        assert_eq!(pause.until(), Time::ZERO);
    }
}
