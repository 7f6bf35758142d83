//! Calls that the server keeps open: they sleep, in order, in the chains of their chats (`telegram.md` 3.1, 3.2).
//!
//! A chain is what is waiting of one token, chat and method (texts, media and edits are three chains of td's `ChainId.h`,
//! and each has one method here; a question is nothing that td knows, and a chain of its own). Its head sleeps until a set
//! time; those behind it wait for their turn.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;

use crate::api::{Answer, CallId, Decision, Request, TokenIndex, Truth};
use crate::fault::Hit;
use crate::profile::Hold;
use crate::time::{Duration, Time};

/// A call that is not yet answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) call: CallId,
    pub(super) request: Request,
    /// A fault that strikes after the effect.
    pub(super) hit: Option<Hit>,
    pub(super) fault_draw: u32,
    pub(super) in_penalty: bool,
    /// The waits that it has met so far.
    pub(super) waited: Duration,
}

/// All calls that are held.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds {
    rule: Option<Hold>,
    /// Never empty chains; looked up, never iterated.
    chains: FxHashMap<Chain, VecDeque<Open>>,
    /// When the head of each chain is tried again; ties in the order in which they were set.
    timeouts: BinaryHeap<Reverse<(Time, u64, Chain)>>,
    timeouts_set: u64,
}

/// A chain's name: token, chat and method.
pub(super) type Chain = (u16, u32, u8);

impl Holds {
    pub(super) fn new(rule: Option<Hold>) -> Self {
        Self { rule, ..Self::default() }
    }

    /// Whether calls are ever held.
    pub(super) const fn may_wait(&self) -> bool {
        self.rule.is_some()
    }

    /// Whether a call must queue behind one that sleeps.
    #[inline]
    pub(super) fn is_behind(&self, request: Request) -> bool {
        !self.chains.is_empty() && self.chains.contains_key(&chain(request))
    }

    pub(super) fn queue(&mut self, open: Open) {
        self.chains.entry(chain(open.request)).or_default().push_back(open);
    }

    /// A call that is alone is held until `until`.
    pub(super) fn begin(&mut self, open: Open, until: Time) {
        self.sleep(chain(open.request), VecDeque::from([open]), until);
    }

    /// The head of `queue` sleeps until `until`.
    pub(super) fn sleep(&mut self, chain: Chain, queue: VecDeque<Open>, until: Time) {
        self.chains.insert(chain, queue);
        self.timeouts.push(Reverse((until, self.timeouts_set, chain)));
        self.timeouts_set += 1;
    }

    /// When the first head wakes.
    #[inline]
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.timeouts.peek().map(|&Reverse((at, ..))| at)
    }

    /// Takes out the chain whose head wakes first.
    pub(super) fn wake(&mut self) -> (Chain, VecDeque<Open>) {
        let Reverse((_, _, chain)) = self.timeouts.pop().expect("a head sleeps");
        let queue = self.chains.remove(&chain).expect("a head that sleeps is in its chain");
        (chain, queue)
    }

    /// Whatever is held of a token is nobody's call any more.
    pub(super) fn forget(&mut self, token: TokenIndex) {
        self.chains.retain(|chain, _| chain.0 != token.0);
        self.timeouts.retain(|Reverse((_, _, chain))| chain.0 != token.0);
    }

    /// A call meets a wait; whether that still fits into its budget.
    pub(super) fn wait(&self, open: &mut Open, wait: Duration) -> bool {
        open.waited = open.waited.saturating_add(wait);
        self.rule.is_some_and(|rule| open.waited <= rule.budget_of(open.request.method))
    }

    /// The head of `queue` met a wait: those whom it drives over their budget leave, in order.
    pub(super) fn cascade(&self, queue: &mut VecDeque<Open>, wait: Duration) -> Vec<Open> {
        let mut leaving = Vec::new();
        if self.rule.is_some_and(|rule| rule.cascade) {
            queue.retain_mut(|open| {
                let stays = self.wait(open, wait);
                if !stays {
                    leaving.push(*open);
                }
                stays
            });
        }
        leaving
    }
}

impl Open {
    #[inline]
    pub(super) const fn decision(self, at: Time, answer: Answer, truth: Truth, taken: u32) -> Decision {
        Decision { call: self.call, at, answer, truth, in_penalty: self.in_penalty, taken }
    }
}

const fn chain(request: Request) -> Chain {
    (request.token.0, request.chat.0, request.method as u8)
}
