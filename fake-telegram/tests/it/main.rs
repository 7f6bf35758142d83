//! The model from outside: what it promises for any input, and the incidents that it must reproduce.
//!
//! Expected values come from theory, from the cases' logs, or from a second, naive implementation (`naive`).

#[cfg(feature = "http")]
mod answers;
mod incidents;
mod naive;
mod properties;
mod robustness;

use fake_telegram::api::{
    Answer, CallId, ChatIndex, ChatKind, Decision, Draws, Method, Request, TokenIndex, Truth,
};
use fake_telegram::chat::Chats;
use fake_telegram::fault::Faults;
use fake_telegram::hint::RetryHint;
use fake_telegram::model::Model;
use fake_telegram::profile::{Profile, ServerSettings};
use fake_telegram::time::{Duration, Time};

/// A model and somebody who calls it.
struct Client {
    model: Model,
    now: Time,
    calls: u32,
}

impl Client {
    fn new(profile: &Profile) -> Self {
        Self::with(profile, Faults::default(), chats())
    }

    fn with(profile: &Profile, faults: Faults, chats: Chats) -> Self {
        Self { model: Model::new(profile, faults, chats, 1), now: Time::ZERO, calls: 0 }
    }

    /// Calls at `at` and does not wait.
    fn call(&mut self, at: Time, chat: u32, method: Method) -> CallId {
        let (token, chat) = (TokenIndex(0), ChatIndex(chat));
        self.request(at, Request { token, chat, method, idempotency: None, items: 1 })
    }

    /// As [`Client::call`], with anything.
    fn request(&mut self, at: Time, request: Request) -> CallId {
        let call = CallId(self.calls);
        self.calls += 1;
        self.model.handle(at, call, request, Draws { fault: self.calls.wrapping_mul(0x9E37_79B9) });
        self.now = at;
        call
    }

    /// Everything that is decided by `until`.
    fn decided(&mut self, until: Time) -> Vec<Decision> {
        self.model.advance(until);
        self.now = until;
        std::iter::from_fn(|| self.model.poll()).collect()
    }

    /// Calls at `at` and waits for the answer; other calls must have been answered.
    fn send(&mut self, at: Time, chat: u32) -> Decision {
        let call = self.call(at, chat, Method::SendMessage);
        loop {
            if let Some(decision) = self.model.poll() {
                assert_eq!(decision.call, call);
                return decision;
            }
            self.now = self.model.next_timeout().expect("a call that is not decided is held");
            self.model.advance(self.now);
        }
    }

    /// The name of the limit that refused.
    fn limit(&self, decision: &Decision) -> Option<&str> {
        match decision.truth {
            Truth::Refused { limit, .. } => Some(&self.model.limits()[usize::from(limit.0)].name),
            _ => None,
        }
    }
}

/// Chats 0-3 are private, 4-6 groups, 7 is a channel.
fn chats() -> Chats {
    let mut chats = Chats::of(ChatKind::Private, 4);
    chats.add(ChatKind::Group, 3);
    chats.add(ChatKind::Channel, 1);
    chats
}

const GROUP: u32 = 4;

fn profile(toml: &str) -> Profile {
    let settings: ServerSettings = toml::from_str(toml).expect("settings");
    settings.resolve().expect("a possible profile")
}

fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn retry_after(decision: &Decision) -> Option<u32> {
    match decision.answer {
        Answer::TooManyRequests { hint: RetryHint::Seconds(seconds) } => Some(seconds),
        _ => None,
    }
}

fn is_delivered(decision: &Decision) -> bool {
    decision.truth == Truth::Delivered
}
