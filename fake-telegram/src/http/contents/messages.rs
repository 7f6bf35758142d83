//! The messages of a bot's chats.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::http::peers::ChatId;

/// The last messages by id. A bot's ids rise, whatever the chat, and few of them stay without a message: the id is the
/// place, and there is nothing to look up.
#[derive(Debug, Clone)]
pub(super) struct Messages {
    /// The id of the first place.
    first: i64,
    /// `None` where a message was deleted, or never was one.
    places: VecDeque<Option<Message>>,
    capacity: usize,
}

#[derive(Debug, Clone)]
struct Message {
    chat: ChatId,
    json: Bytes,
}

impl Messages {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { first: 1, places: VecDeque::new(), capacity }
    }

    /// Puts one in its place, or another in the place of one. What is older than all that is kept is not kept.
    pub(super) fn put(&mut self, chat: ChatId, id: i64, json: Bytes) {
        while self.first + self.places.len() as i64 <= id {
            self.places.push_back(None);
            if self.places.len() > self.capacity {
                self.places.pop_front();
                self.first += 1;
            }
        }
        if let Some(place) = self.place(id) {
            *place = Some(Message { chat, json });
        }
    }

    pub(super) fn get(&self, chat: ChatId, id: i64) -> Option<&Bytes> {
        let place = usize::try_from(id.checked_sub(self.first)?).ok()?;
        let message = self.places.get(place)?.as_ref()?;
        (message.chat == chat).then_some(&message.json)
    }

    /// Whether there was one.
    pub(super) fn delete(&mut self, chat: ChatId, id: i64) -> bool {
        let place = self.place(id);
        place.and_then(|place| place.take_if(|message| message.chat == chat)).is_some()
    }

    fn place(&mut self, id: i64) -> Option<&mut Option<Message>> {
        self.places.get_mut(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ChatId = ChatId(7);
    const THERE: ChatId = ChatId(8);

    #[test]
    fn the_oldest_goes_first_and_a_change_keeps_its_place() {
        let mut messages = Messages::new(3);
        let json = |text: &'static str| Bytes::from_static(text.as_bytes());
        messages.put(HERE, 1, json("a"));
        messages.put(THERE, 3, json("b"));
        messages.put(HERE, 1, json("c"));
        assert_eq!(messages.get(HERE, 1), Some(&json("c")));
        assert_eq!((messages.get(HERE, 2), messages.get(HERE, 3)), (None, None));
        assert!(!messages.delete(HERE, 3) && messages.delete(THERE, 3) && !messages.delete(THERE, 3));
        messages.put(HERE, 4, json("d"));
        assert_eq!((messages.get(HERE, 1), messages.get(HERE, 4)), (None, Some(&json("d"))));
        messages.put(HERE, 1, json("e"));
        assert_eq!(messages.get(HERE, 1), None, "it is too old");
        for nowhere in [0, -1, 5, i64::MIN, i64::MAX] {
            assert_eq!(messages.get(HERE, nowhere), None);
            assert!(!messages.delete(HERE, nowhere));
        }
        assert_eq!(messages.places.len(), 3);
    }
}
