//! The answer to a call, and whether somebody looks at it.

use fake_telegram::api::Answer;

use super::Env;
use crate::world::{Belief, Message};

/// The answer to a call. One that is dropped unread counts as a delivery in the sender's books: nobody looked.
#[derive(Debug)]
#[must_use = "an answer that nobody reads is believed to be a delivery; say so with `let _ =`"]
pub struct Reply<'a> {
    env: &'a Env,
    message: Message,
    answer: Answer,
    read: bool,
}

impl<'a> Reply<'a> {
    pub(super) const fn new(env: &'a Env, message: Message, answer: Answer) -> Self {
        Self { env, message, answer, read: false }
    }

    /// What came back. The sender has looked: from here on it is for the sender to [`Env::settle`] the message,
    /// to [give it up](Env::give_up) or to send it again.
    pub fn read(mut self) -> Answer {
        self.read = true;
        self.answer
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if !self.read {
            self.env.settle(&self.message, Belief::Delivered);
        }
    }
}
