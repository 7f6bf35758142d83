//! The messages of a bot's chats.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::http::peers::ChatId;

/// The last messages, by id. A bot's ids rise, whatever the chat: a new message is the last one.
#[derive(Debug, Clone)]
pub(super) struct Messages {
    messages: VecDeque<Message>,
    capacity: usize,
}

#[derive(Debug, Clone)]
struct Message {
    id: i64,
    chat: ChatId,
    /// `None` once it is deleted: it keeps its place until its turn to go has come.
    json: Option<Bytes>,
}

impl Messages {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { messages: VecDeque::new(), capacity }
    }

    /// Adds one, or puts it in the place of the one with that id. One that is older than the last and was never there is not
    /// kept.
    pub(super) fn put(&mut self, chat: ChatId, id: i64, json: Bytes) {
        let message = Message { id, chat, json: Some(json) };
        if self.messages.back().is_none_or(|last| last.id < id) {
            self.messages.push_back(message);
            if self.messages.len() > self.capacity {
                self.messages.pop_front();
            }
        } else if let Some(place) = self.place(id) {
            self.messages[place] = message;
        }
    }

    pub(super) fn get(&self, chat: ChatId, id: i64) -> Option<&Bytes> {
        let message = &self.messages[self.place(id)?];
        message.json.as_ref().filter(|_| message.chat == chat)
    }

    /// Whether there was one.
    pub(super) fn delete(&mut self, chat: ChatId, id: i64) -> bool {
        let Some(place) = self.place(id) else { return false };
        let message = &mut self.messages[place];
        message.chat == chat && message.json.take().is_some()
    }

    fn place(&self, id: i64) -> Option<usize> {
        self.messages.binary_search_by_key(&id, |message| message.id).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ChatId = ChatId(7);
    const THERE: ChatId = ChatId(8);

    fn json(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn a_change_keeps_its_place_and_chats_are_told_apart() {
        let mut messages = Messages::new(3);
        messages.put(HERE, 1, json("a"));
        messages.put(THERE, 3, json("b"));
        messages.put(HERE, 1, json("c"));
        assert_eq!(messages.get(HERE, 1), Some(&json("c")));
        assert_eq!((messages.get(HERE, 2), messages.get(HERE, 3)), (None, None));
        assert!(!messages.delete(HERE, 3) && messages.delete(THERE, 3) && !messages.delete(THERE, 3));
        for nowhere in [0, -1, 5, i64::MIN, i64::MAX] {
            assert_eq!(messages.get(HERE, nowhere), None);
            assert!(!messages.delete(HERE, nowhere));
        }
    }

    /// Many ids are of no message: those of reactions, say.
    #[test]
    fn the_oldest_goes_first_and_gaps_cost_nothing() {
        let mut messages = Messages::new(2);
        for id in [1, 1_000_000, i64::MAX] {
            messages.put(HERE, id, json("a"));
        }
        assert_eq!((messages.get(HERE, 1), messages.get(HERE, 1_000_000)), (None, Some(&json("a"))));
        messages.put(HERE, 1, json("b"));
        assert_eq!(messages.get(HERE, 1), None, "it is too old");
    }
}
