//! What was delivered under a client's key, so that a repetition changes nothing (incident S13).

use rustc_hash::FxHashMap;

use crate::api::{Answer, Request, TokenIndex};

/// The answers of what was delivered, by token and key; never forgotten. Only of servers that know keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Replays {
    /// Looked up, never iterated.
    delivered: Option<FxHashMap<u64, Answer>>,
}

impl Replays {
    pub(super) fn new(on: bool) -> Self {
        Self { delivered: on.then(FxHashMap::default) }
    }

    /// The answer of the call that this one repeats, if that was delivered.
    #[inline(always)]
    pub(super) fn answer(&self, request: Request) -> Option<Answer> {
        self.delivered.as_ref()?.get(&key(request)?).copied()
    }

    /// Forgets what a token's calls were answered.
    pub(super) fn forget(&mut self, token: TokenIndex) {
        if let Some(delivered) = &mut self.delivered {
            delivered.retain(|key, _| key >> 32 != u64::from(token.0));
        }
    }

    /// A call is delivered.
    #[inline(always)]
    pub(super) fn remember(&mut self, request: Request, answer: Answer) {
        if let (Some(delivered), Some(key)) = (&mut self.delivered, key(request)) {
            delivered.insert(key, answer);
        }
    }
}

fn key(request: Request) -> Option<u64> {
    request.idempotency.map(|key| u64::from(request.token.0) << 32 | u64::from(key))
}
