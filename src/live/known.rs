//! What is known of a server beside its answers: its chats, its budgets, its penalties.

use std::sync::Arc;

use fake_telegram::api::{CallId, ChatIndex, ChatKind, Draws, Method, Request, TokenIndex};
use fake_telegram::chat::Chats;
use fake_telegram::fault::Faults;
use fake_telegram::http::server::Server;
use fake_telegram::http::state::State;
use fake_telegram::limits::{Level, Limit};
use fake_telegram::model::Model;
use fake_telegram::profile::Profile;
use fake_telegram::time::Time;

use crate::metrics::Penalties;

/// What is known of a server beside its answers.
#[derive(Debug)]
pub struct Known {
    /// The limits that it has, or is taken to have.
    pub(super) limits: Vec<Limit>,
    side: Side,
}

#[derive(Debug)]
enum Side {
    /// It runs in this program, and its model shows everything.
    Inside(Arc<State>),
    /// It runs elsewhere.
    Outside {
        /// What kind of chat each is. All of them can receive, always: nobody knows better.
        kinds: Vec<ChatKind>,
        /// The token-wide limit alone, spent as the answers say that it was.
        budget: Option<Box<Model>>,
    },
}

impl Known {
    /// All of a server in this program.
    pub fn inside(server: &Server, profile: &Profile) -> Self {
        Self { limits: profile.limits.clone(), side: Side::Inside(server.state().clone()) }
    }

    /// Of a server elsewhere: what a scenario says of its chats, its tokens and its rules.
    pub fn outside(kinds: &[ChatKind], tokens: u16, profile: &Profile) -> Self {
        let wide = profile.limits.iter().find(|limit| limit.is_token_wide()).cloned();
        let budget = wide.map(|limit| {
            let profile = Profile { limits: vec![limit], hold: None, ..profile.clone() };
            Box::new(Model::new(&profile, Faults::default(), Chats::of(ChatKind::Private, 1), tokens))
        });
        Self { limits: profile.limits.clone(), side: Side::Outside { kinds: kinds.to_vec(), budget } }
    }

    /// A message for `chat` falls due: what kind of chat it is and whether it can receive. One that comes from the user
    /// brings a chat inside back to life.
    pub(super) fn look(&self, chat: ChatIndex, from_user: bool) -> (ChatKind, bool) {
        let private = ChatKind::Private;
        match &self.side {
            Side::Inside(state) => state.look(|model, now| {
                if from_user {
                    model.wrote(chat, now);
                }
                (model.chat_kind(chat).unwrap_or(private), model.can_receive(chat, now))
            }),
            Side::Outside { kinds, .. } => (kinds.get(chat.0 as usize).copied().unwrap_or(private), true),
        }
    }

    /// A call has taken tokens of the token-wide limit.
    pub(super) fn spend(&mut self, now: Time, token: TokenIndex) {
        let Side::Outside { budget: Some(budget), .. } = &mut self.side else { return };
        let (chat, method) = (ChatIndex(0), Method::SendMessage);
        let request = Request { token, chat, method, idempotency: None, items: 1 };
        budget.handle(now, CallId(0), request, Draws { fault: 0 });
        budget.poll();
    }

    /// What the token-wide limit allows at `at`, or inside now; `None` if there is none.
    pub(super) fn level(&self, token: TokenIndex, at: Time) -> Option<Level> {
        match &self.side {
            Side::Inside(state) => state.look(|model, now| model.token_level(token, now)),
            Side::Outside { budget, .. } => budget.as_ref()?.token_level(token, at),
        }
    }

    /// The penalties so far, by limit; empty for a server elsewhere.
    pub(super) fn penalties(&self) -> Vec<Penalties> {
        match &self.side {
            Side::Inside(state) => state.look(|model, now| Penalties::of(model, now)),
            Side::Outside { .. } => Vec::new(),
        }
    }
}
