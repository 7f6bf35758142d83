//! What a refusal stops beside its message: a sender's "not before".

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use fake_telegram::time::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::asked::{Paused, Refuse};
use super::place::Keep;
use crate::env::{Dice, Env};
use crate::limiter::pause::{self, PauseKey};
use crate::store::Key;
use crate::strategy::composition::NoParameters;
use crate::world::Message;

/// What a refusal stops beside its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Pause {
    /// Nothing.
    None(NoParameters),
    /// The workers of its process.
    Process(SharedPause),
    /// The workers of all processes that share the store: one 429, one pause.
    Store(SharedPause),
}

/// [`Pause::Process`] and [`Pause::Store`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SharedPause {
    /// Which of their calls.
    pub key: PauseKey,
    /// Each worker that a pause has stopped waits up to this long after its end, at random (S4). It only adds. With
    /// a queue workers wake one by one and there is none, but for a pause in the store with a queue in the process.
    pub jitter: Duration,
}

impl Pause {
    pub(crate) const fn none() -> Self {
        Self::None(NoParameters {})
    }

    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None(_))
    }

    pub(super) const fn is_shared(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// Whose calls it concerns, if it is kept in the store.
    pub(super) const fn shared_key(&self) -> Option<PauseKey> {
        match self {
            Self::Store(pause) => Some(pause.key),
            Self::None(_) | Self::Process(_) => None,
        }
    }

    /// How long workers wait at most after its end.
    pub(super) const fn jitter(&self) -> Duration {
        match self {
            Self::None(_) => Duration::ZERO,
            Self::Process(pause) | Self::Store(pause) => pause.jitter,
        }
    }

    /// With a queue in the store its scripts ask and tell the pause on the way.
    pub(super) fn calls(&self, queue: Option<Keep>) -> &'static [&'static str] {
        match self {
            Self::Store(_) if queue != Some(Keep::Store) => &["paused", "refuse"],
            Self::None(_) | Self::Process(_) | Self::Store(_) => &[],
        }
    }

    /// The pause as a worker sees it.
    pub(super) fn brake(&self, env: &Env) -> Brake {
        let (settings, keep) = match self {
            Self::None(_) => return Brake { settings: SharedPause::default(), places: None },
            Self::Process(settings) => (settings, Keep::Process),
            Self::Store(settings) => (settings, Keep::Store),
        };
        let key = settings.key;
        // A process knows of its own refusals before the store does.
        let known = env.memory(|| RefCell::new(pause::Pause::new(key)));
        let shared = (keep == Keep::Store).then(|| {
            let name = match key {
                PauseKey::Host => "pause".to_owned(),
                _ => format!("pause/{}", env.token().0),
            };
            env.key(&name, move || pause::Pause::new(key))
        });
        Brake { settings: settings.clone(), places: Some((known, shared)) }
    }
}

/// A pause as a worker sees it.
pub(super) struct Brake {
    settings: SharedPause,
    places: Option<Places>,
}

/// What a process knows, and what all know.
type Places = (Rc<RefCell<pause::Pause>>, Option<Key<pause::Pause>>);

impl Brake {
    /// Until when this process knows that nothing at all is to be sent.
    pub(super) fn known_until(&self) -> Time {
        self.places.as_ref().map_or(Time::ZERO, |(known, _)| known.borrow().until())
    }

    /// Until when this process knows that `message` is not to be sent.
    pub(super) fn known_until_for(&self, now: Time, message: &Message) -> Time {
        let Some((known, _)) = &self.places else { return Time::ZERO };
        known.borrow().until_for(now, message.chat, message.method)
    }

    /// What this process knows.
    pub(super) fn known(&self) -> Option<RefMut<'_, pause::Pause>> {
        self.places.as_ref().map(|(known, _)| known.borrow_mut())
    }

    /// Which refusal in a row this is: of a pause for all that its key covers, else of the message, `of_message`.
    pub(super) fn refusals(&self, env: &Env, of_message: u32) -> u32 {
        let known = self.places.as_ref().and_then(|(known, _)| known.borrow().next_refusal(env.now()));
        known.unwrap_or(of_message)
    }

    /// A message was delivered.
    pub(super) fn succeeded(&self) {
        if let Some((known, _)) = &self.places {
            known.borrow_mut().succeed();
        }
    }

    /// Where all processes see it.
    pub(super) fn shared(&self) -> Option<Key<pause::Pause>> {
        self.places.as_ref().and_then(|(_, shared)| *shared)
    }

    /// Completes when `message` may be sent, after having asked the store. Whether it had to wait.
    pub(super) async fn pass(&self, env: &Env, dice: &Dice, message: &Message) -> bool {
        let mut waited = false;
        loop {
            let mut wait = self.known_until_for(env.now(), message).saturating_since(env.now());
            if let Some(shared) = self.shared() {
                let asked = env.run(Paused { pause: shared, key: self.settings.key, message });
                // One that cannot be reached holds nobody up.
                wait = wait.max(asked.await.unwrap_or(Duration::ZERO));
            }
            if wait.is_zero() {
                return waited;
            }
            waited = true;
            env.sleep(wait.saturating_add(dice.up_to(self.settings.jitter))).await;
        }
    }

    /// `message` was refused, for `wait`; this process knows.
    pub(super) fn note(&self, env: &Env, message: &Message, wait: Duration) {
        if let Some((known, _)) = &self.places {
            let now = env.now();
            known.borrow_mut().refuse(now, message.chat, message.method, now.saturating_add(wait));
        }
    }

    /// The store is told as well.
    pub(super) async fn tell(&self, env: &Env, message: &Message, wait: Duration) {
        if let Some(shared) = self.shared() {
            // Whoever is refused next tells it again.
            let _ = env.run(Refuse { pause: shared, key: self.settings.key, message, wait }).await;
        }
    }
}
