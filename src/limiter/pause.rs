//! A sender's "not before", and whom a refusal concerns (incidents S3, S15).

use fake_telegram::api::{ChatIndex, Method};
use fake_telegram::time::Time;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom a refusal concerns. A 429 does not say which limit it hit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PauseKey {
    /// First its chat alone. When a second chat is refused while the first still is, the token is taken to be limited,
    /// until the later of both.
    #[default]
    Learned,
    /// Its chat.
    Chat,
    /// All calls of its method with its token.
    Method,
    /// All calls with its token.
    Token,
    /// All calls, whatever the token.
    Host,
}

/// Which calls are not to be made, and until when.
#[derive(Debug, Clone, Default)]
pub struct Pause {
    key: PauseKey,
    /// For everything that the key covers.
    until: Time,
    /// By chat or by method.
    parts: FxHashMap<u32, Time>,
    /// The last of these.
    parts_until: Time,
    /// The first chat that is refused, and until when it or another is.
    refused: Option<(ChatIndex, Time)>,
    /// Refusals in a row of all that a token's or a host's pause covers; those of one pause are one.
    in_a_row: u32,
}

/// Above so many entries those that are over are thrown away.
const PARTS_MAX: usize = 1_024;

impl Pause {
    /// No pause yet.
    pub fn new(key: PauseKey) -> Self {
        Self { key, ..Self::default() }
    }

    /// Nothing at all is to be sent before this instant.
    pub const fn until(&self) -> Time {
        self.until
    }

    /// A call with `method` to `chat` is not to be made before this instant.
    pub fn until_for(&self, now: Time, chat: ChatIndex, method: Method) -> Time {
        if self.parts_until <= now {
            return self.until;
        }
        let part = self.parts.get(&self.part(chat, method)).copied().unwrap_or(Time::ZERO);
        self.until.max(part)
    }

    /// Which refusal in a row one at `now` would be, from 1; `None` where the key is not for everything alike.
    pub fn next_refusal(&self, now: Time) -> Option<u32> {
        match self.key {
            PauseKey::Token | PauseKey::Host => Some((self.in_a_row + u32::from(now >= self.until)).max(1)),
            PauseKey::Learned | PauseKey::Chat | PauseKey::Method => None,
        }
    }

    /// A call was not refused.
    pub const fn succeed(&mut self) {
        self.in_a_row = 0;
    }

    /// A call with `method` to `chat` was refused at `now`, until `until`.
    pub fn refuse(&mut self, now: Time, chat: ChatIndex, method: Method, until: Time) {
        match self.key {
            PauseKey::Token | PauseKey::Host => {
                self.in_a_row = self.next_refusal(now).unwrap_or(0);
                self.until = self.until.max(until);
            }
            PauseKey::Chat | PauseKey::Method => self.refuse_part(now, self.part(chat, method), until),
            PauseKey::Learned => {
                self.refuse_part(now, self.part(chat, method), until);
                self.learn(now, chat, until);
            }
        }
    }

    fn learn(&mut self, now: Time, chat: ChatIndex, until: Time) {
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

    fn refuse_part(&mut self, now: Time, part: u32, until: Time) {
        if self.parts.len() >= PARTS_MAX {
            self.parts.retain(|_, until| now < *until);
        }
        let known = self.parts.entry(part).or_default();
        *known = until.max(*known);
        self.parts_until = self.parts_until.max(until);
    }

    const fn part(&self, chat: ChatIndex, method: Method) -> u32 {
        match self.key {
            PauseKey::Method => method as u32,
            _ => chat.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    /// Refusals of (at, chat, until), all with sendMessage.
    fn after(key: PauseKey, refusals: &[(u64, u32, u64)]) -> Pause {
        let mut pause = Pause::new(key);
        for (at, chat, until) in refusals {
            pause.refuse(s(*at), ChatIndex(*chat), Method::SendMessage, s(*until));
        }
        pause
    }

    fn until(pause: &Pause, chat: u32, method: Method) -> Time {
        pause.until_for(s(0), ChatIndex(chat), method)
    }

    #[test]
    fn one_chat_is_its_own_affair_and_two_are_the_tokens() {
        let mut pause = after(PauseKey::Learned, &[(0, 1, 10), (2, 1, 12)]);
        assert_eq!((pause.until(), until(&pause, 1, Method::SendMessage)), (Time::ZERO, s(12)));
        pause.refuse(s(11), ChatIndex(2), Method::SendMessage, s(15));
        assert_eq!(pause.until(), s(15));
    }

    #[test]
    fn a_refusal_that_is_over_is_forgotten() {
        let pause = after(PauseKey::Learned, &[(0, 1, 10), (10, 2, 15)]);
        assert_eq!(pause.until(), Time::ZERO);
    }

    #[test]
    fn a_key_covers_what_it_says_and_nothing_else() {
        let covered = |key| {
            let pause = after(key, &[(0, 1, 10)]);
            [(1, Method::SendMessage), (2, Method::SendMessage), (1, Method::SendPhoto)]
                .map(|(chat, method)| until(&pause, chat, method) == s(10))
        };
        assert_eq!(covered(PauseKey::Chat), [true, false, true]);
        assert_eq!(covered(PauseKey::Method), [true, true, false]);
        assert_eq!(covered(PauseKey::Token), [true; 3]);
        assert_eq!(covered(PauseKey::Host), [true; 3]);
    }

    #[test]
    fn a_later_refusal_never_shortens_a_pause() {
        for key in [PauseKey::Learned, PauseKey::Chat, PauseKey::Method, PauseKey::Token, PauseKey::Host] {
            let pause = after(key, &[(0, 1, 10), (1, 1, 5)]);
            assert_eq!(until(&pause, 1, Method::SendMessage), s(10));
        }
    }

    #[test]
    fn refusals_in_a_row_are_counted_by_pause_and_not_by_call() {
        let mut pause = after(PauseKey::Token, &[(0, 1, 10), (1, 2, 11)]);
        assert_eq!([pause.next_refusal(s(2)), pause.next_refusal(s(11))], [Some(1), Some(2)]);
        pause.refuse(s(11), ChatIndex(3), Method::SendMessage, s(20));
        assert_eq!(pause.next_refusal(s(20)), Some(3));
        pause.succeed();
        assert_eq!(pause.next_refusal(s(20)), Some(1));
        assert_eq!(after(PauseKey::Learned, &[(0, 1, 10)]).next_refusal(s(11)), None);
    }

    #[test]
    fn what_is_over_is_thrown_away() {
        let refusals: Vec<_> = (0..5_000).map(|i| (u64::from(i), i, u64::from(i) + 10)).collect();
        assert!(after(PauseKey::Chat, &refusals).parts.len() <= PARTS_MAX);
    }
}
