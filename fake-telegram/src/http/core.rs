//! The model and those who wait for it: the one place that all calls of all bots pass through.

use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::api::{Answer, CallId, ChatIndex, Decision, Draws, LimitIndex, Request, TokenIndex, Truth};
use crate::chat::{Action, Chats};
use crate::draw::draw;
use crate::early::{Called, EarlyRetries};
use crate::fault::{Fault, FaultError, Faults};
use crate::http::clock::Clock;
use crate::model::Model;
use crate::profile::Profile;
use crate::time::Time;

/// The model behind the server.
#[derive(Debug)]
pub(super) struct Core {
    model: Model,
    profile: Profile,
    faults: Vec<Fault>,
    /// Calls that are held, by number.
    held: FxHashMap<CallId, Held>,
    early: EarlyRetries,
    key: u64,
    calls: u64,
    tokens: u16,
}

#[derive(Debug)]
struct Held {
    client: oneshot::Sender<Decision>,
    called: Called,
}

/// What comes of a call that arrives.
#[derive(Debug)]
pub(super) struct Arrival {
    /// When.
    pub(super) at: Time,
    /// The limit for which its caller should have waited.
    pub(super) early: Option<LimitIndex>,
    pub(super) fate: Fate,
}

#[derive(Debug)]
pub(super) enum Fate {
    Decided(Decision),
    /// To be decided; fails if the server ends before.
    Held(oneshot::Receiver<Decision>),
}

impl Core {
    pub(super) fn new(
        profile: Profile,
        faults: Vec<Fault>,
        chats: Chats,
        key: u64,
    ) -> Result<Self, FaultError> {
        let compiled = Faults::new(&faults)?;
        let early = EarlyRetries::new(&profile.limits, 0);
        let model = Model::new(&profile, compiled, chats, 0);
        Ok(Self { model, profile, faults, held: FxHashMap::default(), early, key, calls: 0, tokens: 0 })
    }

    /// A token of its own for another bot; `None` if there are as many as there can be.
    pub(super) fn new_token(&mut self) -> Option<TokenIndex> {
        let token = TokenIndex(self.tokens);
        self.tokens = self.tokens.checked_add(1)?;
        Some(token)
    }

    /// The rules in force.
    pub(super) const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The faults in force.
    pub(super) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many calls are held.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Other rules from now on, and all budgets full; what is held is answered as at a restart.
    pub(super) fn set_profile(&mut self, profile: Profile) {
        let chats = std::mem::take(self.model.chats());
        let faults = Faults::new(&self.faults).expect("they were sound before");
        self.model = Model::new(&profile, faults, chats, self.tokens);
        self.early = EarlyRetries::new(&profile.limits, 0);
        self.profile = profile;
        self.held.clear();
    }

    /// Other faults from now on.
    pub(super) fn set_faults(&mut self, faults: Vec<Fault>) -> Result<(), FaultError> {
        self.model.set_faults(Faults::new(&faults)?);
        self.faults = faults;
        Ok(())
    }

    /// Nobody waits for a decision any more.
    pub(super) fn let_go(&mut self) {
        self.held.clear();
    }

    /// Begins again, with these chats.
    pub(super) fn reset(&mut self, chats: Chats) {
        *self.model.chats() = chats;
        self.set_profile(self.profile.clone());
        self.tokens = 0;
    }

    /// The chats.
    pub(super) const fn chats(&mut self) -> &mut Chats {
        self.model.chats()
    }

    /// Something happens to a chat.
    pub(super) fn happens(&mut self, clock: &Clock, chat: ChatIndex, action: Action) {
        let now = clock.now();
        self.advance(now);
        self.model.chats().happens(chat, action, now);
    }

    /// The user of a chat writes.
    pub(super) fn wrote(&mut self, clock: &Clock, chat: ChatIndex) {
        let now = clock.now();
        self.advance(now);
        self.model.wrote(chat, now);
    }

    /// A call arrives. `fault` is its draw, if its client brings one.
    pub(super) fn arrive(&mut self, clock: &Clock, request: Request, fault: Option<u32>) -> Arrival {
        // Read inside, so that time only goes forward.
        let at = clock.now();
        self.advance(at);
        let call = CallId(self.calls as u32);
        let fault = fault.unwrap_or_else(|| (draw(self.key, self.calls, 0) >> 32) as u32);
        self.calls += 1;
        let Request { token, chat, method, .. } = request;
        let called = Called { token, chat, method, process: None };
        let early = self.early.early(at, called);
        self.model.handle(at, call, request, Draws { fault });
        let decided = self.tell(Some((call, called)));
        let fate = decided.map_or_else(
            || {
                let (client, decision) = oneshot::channel();
                self.held.insert(call, Held { client, called });
                Fate::Held(decision)
            },
            Fate::Decided,
        );
        Arrival { at, early, fate }
    }

    /// Lets everything happen that is due; when the next thing is.
    pub(super) fn catch_up(&mut self, clock: &Clock) -> Option<Time> {
        self.advance(clock.now());
        self.model.next_timeout()
    }

    fn advance(&mut self, now: Time) {
        self.model.advance(now);
        self.tell(None);
    }

    /// Tells those who wait what was decided; that of the call `mine` comes back.
    fn tell(&mut self, mine: Option<(CallId, Called)>) -> Option<Decision> {
        let mut decided = None;
        while let Some(decision) = self.model.poll() {
            let (called, client) = match mine {
                Some((call, called)) if call == decision.call => (called, None),
                _ => match self.held.remove(&decision.call) {
                    Some(Held { client, called }) => (called, Some(client)),
                    None => continue,
                },
            };
            self.note(called, &decision);
            match client {
                // Whoever made it may be gone; its effect is somebody else's business, who is not.
                Some(client) => drop(client.send(decision)),
                None => decided = Some(decision),
            }
        }
        decided
    }

    fn note(&mut self, called: Called, decision: &Decision) {
        if let (Truth::Refused { limit, .. }, Answer::TooManyRequests { .. }) =
            (decision.truth, decision.answer)
            && let Some(wait) = decision.answer.retry_after(decision.at)
        {
            self.early.refused(decision.at, called, limit, decision.at.saturating_add(wait));
        }
    }
}
