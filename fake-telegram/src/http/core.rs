//! The model and those who wait for it: the one place that all calls of all bots pass through.

use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::api::{
    Answer, CallId, ChatIndex, ChatKind, Decision, Draws, LimitIndex, Request, TokenIndex, Truth,
};
use crate::chat::{Action, Chats, Happening};
use crate::draw::draw;
use crate::early::{COMMON_KNOWLEDGE, Called, EarlyRetries};
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
    /// Tokens that nobody has any more.
    free: Vec<TokenIndex>,
    /// Server seconds in one of its clients.
    speed: u32,
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
    /// Whether the same call may come again, and is then told what this one is.
    pub(super) is_repeatable: bool,
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
        speed: u32,
    ) -> Result<Self, FaultError> {
        let compiled = Faults::new(&faults)?;
        let early = early(&profile, speed);
        let model = model(&profile, speed, compiled, chats);
        let (held, free) = (FxHashMap::default(), Vec::new());
        Ok(Self { model, profile, faults, held, early, key, calls: 0, tokens: 0, free, speed })
    }

    /// A token of its own for another bot, and the chat that its calls about no chat are about: it is always there. `None`
    /// if there are as many as there can be.
    pub(super) fn new_token(&mut self) -> Option<(TokenIndex, ChatIndex)> {
        let token = match self.free.pop() {
            Some(token) => token,
            None => {
                let token = TokenIndex(self.tokens);
                self.tokens = self.tokens.checked_add(1)?;
                token
            }
        };
        Some((token, self.model.chats().add_lasting(ChatKind::Private)))
    }

    /// A bot is gone: what it spent is forgotten, and another may have its token.
    pub(super) fn free_token(&mut self, clock: &Clock, token: TokenIndex) {
        let now = clock.now();
        self.advance(now);
        self.held.retain(|_, held| held.called.token != token);
        self.model.forget(token, now);
        self.early.forget(token);
        self.free.push(token);
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
        self.model = model(&profile, self.speed, faults, chats);
        self.early = early(&profile, self.speed);
        self.profile = profile;
        self.held.clear();
    }

    /// Other faults from now on.
    pub(super) fn set_faults(&mut self, faults: Vec<Fault>) -> Result<(), FaultError> {
        self.model.set_faults(Faults::new(&faults)?);
        self.faults = faults;
        Ok(())
    }

    /// Begins again, with these chats.
    pub(super) fn reset(&mut self, chats: Chats) {
        *self.model.chats() = chats;
        self.tokens = 0;
        self.free.clear();
        // The same faults hit the same calls again.
        self.calls = 0;
        self.set_profile(self.profile.clone());
    }

    /// A chat of its own for one bot: the copy of a scenario's, or one of `kind`. Whether something will happen to it
    /// sooner than whatever anybody waits for.
    pub(super) fn add_chat(
        &mut self,
        clock: &Clock,
        of: Option<ChatIndex>,
        kind: ChatKind,
    ) -> (ChatIndex, bool) {
        let now = clock.now();
        self.advance(now);
        let chats = self.model.chats();
        let before = chats.next_change();
        let index = match of {
            Some(of) => chats.copy(of, now),
            None => chats.add(kind, 1),
        };
        (index, chats.next_change() != before)
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
        Arrival { at, early, is_repeatable: self.profile.idempotency_keys, fate }
    }

    /// Shows the model as it is now.
    pub(super) fn look<R>(&mut self, clock: &Clock, look: impl FnOnce(&mut Model, Time) -> R) -> R {
        let now = clock.now();
        self.advance(now);
        look(&mut self.model, now)
    }

    /// Lets everything happen that is due: what happened to chats by itself since this was last asked, and when the next
    /// thing is due.
    pub(super) fn catch_up(&mut self, clock: &Clock) -> (Vec<Happening>, Option<Time>) {
        self.advance(clock.now());
        let next = [self.model.next_timeout(), self.model.chats().next_change()];
        (self.model.chats().take_happened(), next.into_iter().flatten().min())
    }

    fn advance(&mut self, now: Time) {
        self.model.advance(now);
        self.model.chats().follow(now);
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

/// The model of a server that is `speed` times as fast as the profile; all chats are a bot's own.
fn model(profile: &Profile, speed: u32, faults: Faults, chats: Chats) -> Model {
    Model::new(&profile.at_speed(speed), faults, chats, 0).with_own_chats()
}

/// Early retries by the clock of a server that is `speed` times as fast as its clients and their network.
fn early(profile: &Profile, speed: u32) -> EarlyRetries {
    let after = COMMON_KNOWLEDGE.saturating_mul(speed.into());
    EarlyRetries::new(&profile.limits, 0).with_common_after(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Method;
    use crate::fault::{FaultKind, Phase};
    use crate::hint::RetryHint;
    use crate::time::Duration;
    use crate::units::Share;

    const GROUP: ChatIndex = ChatIndex(0);

    fn chats() -> Chats {
        Chats::of(ChatKind::Group, 1)
    }

    /// On a clock that stands.
    fn core(faults: Vec<Fault>, speed: u32) -> (Core, Clock) {
        let core = Core::new(Profile::telegram(), faults, chats(), 7, speed).expect("sound");
        (core, Clock::new(speed, true))
    }

    fn send(core: &mut Core, clock: &Clock, (token, nowhere): (TokenIndex, ChatIndex)) -> Answer {
        arrive(core, clock, token, nowhere).0
    }

    /// The answer, and whether the call was early.
    fn arrive(core: &mut Core, clock: &Clock, token: TokenIndex, chat: ChatIndex) -> (Answer, bool) {
        let request = Request { token, chat, method: Method::SendMessage, idempotency: None, items: 1 };
        let Arrival { early, fate, .. } = core.arrive(clock, request, None);
        let Fate::Decided(decision) = fate else { panic!("nobody holds") };
        (decision.answer, early.is_some())
    }

    fn is_refused(answer: Answer) -> bool {
        matches!(answer, Answer::TooManyRequests { .. })
    }

    #[test]
    fn a_token_that_is_free_is_given_again_and_has_spent_nothing() {
        let (mut core, clock) = core(Vec::new(), 1);
        let [one, other] = [(); 2].map(|()| core.new_token().expect("there are many"));
        for bot in [one, other] {
            let refused: Vec<bool> = (0..6).map(|_| is_refused(send(&mut core, &clock, bot))).collect();
            assert_eq!(refused, [false, false, false, false, false, true]);
        }
        core.free_token(&clock, one.0);
        let again = core.new_token().expect("one is free");
        assert_eq!(again.0, one.0);
        for _ in 0..5 {
            assert!(!is_refused(send(&mut core, &clock, again)));
        }
        assert!(is_refused(send(&mut core, &clock, other)), "nobody else's penalty is over");
    }

    #[test]
    fn after_a_reset_the_same_faults_hit_the_same_calls() {
        let half = Share::from_ppm(500_000);
        let fault = Fault {
            kind: FaultKind::Status502,
            phase: Phase::Before,
            rate: half,
            from: Duration::ZERO,
            r#for: None,
        };
        let (mut core, clock) = core(vec![fault], 1);
        let mut run = || {
            let bot = core.new_token().expect("there are many");
            let answers: Vec<Answer> = (0..64).map(|_| send(&mut core, &clock, bot)).collect();
            core.reset(chats());
            answers
        };
        assert_eq!(run(), run());
    }

    /// Within 500 ms of its own a client's calls were on the wire, and within a second all its processes know. Refused for
    /// a minute of the server's, 20 messages of one instant later; the penalty doubles to two.
    #[test]
    fn the_network_is_not_sped_up() {
        let after = |speed, millis| {
            let (mut core, clock) = core(Vec::new(), speed);
            let (token, _) = core.new_token().expect("there are many");
            for _ in 0..20 {
                arrive(&mut core, &clock, token, GROUP);
            }
            assert!(is_refused(arrive(&mut core, &clock, token, GROUP).0));
            clock.advance(Duration::from_millis(millis).saturating_mul(speed.into()));
            let (answer, early) = arrive(&mut core, &clock, token, GROUP);
            let Answer::TooManyRequests { hint: RetryHint::Seconds(wait) } = answer else {
                panic!("{answer:?}")
            };
            (wait, early)
        };
        assert_eq!([1, 10].map(|speed| after(speed, 400)), [(60, false), (56, false)]);
        assert_eq!([1, 10].map(|speed| after(speed, 900)), [(120, false), (120, false)]);
        assert_eq!([1, 10].map(|speed| after(speed, 1_100)), [(120, true), (120, true)]);
    }
}
