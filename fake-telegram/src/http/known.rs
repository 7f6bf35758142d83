//! The chats that a bot knows.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::api::ChatIndex;
use crate::http::peers::{Chat, ChatId, ChatType};

/// A chat, as a bot knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) index: ChatIndex,
    pub(super) chat: Chat,
    pub(super) migrated_to: Option<ChatId>,
    /// Whether it is a group that was deleted: nobody can be in it.
    pub(super) is_deleted: bool,
}

/// The chats that a bot knows, by id: 24 bytes each, since there may be a million of them, and every call looks for one.
#[derive(Debug, Default)]
pub(super) struct KnownChats {
    chats: FxHashMap<ChatId, Kept>,
}

#[derive(Debug)]
struct Kept {
    index: ChatIndex,
    r#type: ChatType,
    rare: Option<Box<Rare>>,
}

/// What few chats have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rare {
    username: Option<Arc<str>>,
    migrated_to: Option<ChatId>,
    is_deleted: bool,
}

impl KnownChats {
    pub(super) fn get(&self, id: ChatId) -> Option<Known> {
        self.chats.get(&id).map(|kept| kept.known(id))
    }

    /// Adds a chat, or replaces it.
    pub(super) fn insert(&mut self, known: Known) {
        let Known { index, chat: Chat { id, r#type, username }, migrated_to, is_deleted } = known;
        let rare = Rare { username, migrated_to, is_deleted };
        let rare = (rare != Rare::default()).then(|| Box::new(rare));
        self.chats.insert(id, Kept { index, r#type, rare });
    }

    pub(super) fn remove(&mut self, id: ChatId) {
        self.chats.remove(&id);
    }

    pub(super) fn len(&self) -> usize {
        self.chats.len()
    }

    /// Those that are `wanted`, in any order.
    pub(super) fn of(&self, wanted: impl Fn(ChatIndex) -> bool) -> impl Iterator<Item = Known> {
        let wanted = self.chats.iter().filter(move |(_, kept)| wanted(kept.index));
        wanted.map(|(id, kept)| kept.known(*id))
    }
}

impl Kept {
    fn known(&self, id: ChatId) -> Known {
        let Self { index, r#type, ref rare } = *self;
        let Rare { username, migrated_to, is_deleted } =
            rare.as_deref().map_or_else(Rare::default, Rare::clone);
        Known { index, chat: Chat { id, r#type, username }, migrated_to, is_deleted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_found_as_it_was_put_and_is_small() {
        let mut chats = KnownChats::default();
        let chat = |id, username: Option<&str>| Chat {
            id: ChatId(id),
            r#type: ChatType::Channel,
            username: username.map(Into::into),
        };
        let known =
            |chat, migrated_to, is_deleted| Known { index: ChatIndex(7), chat, migrated_to, is_deleted };
        let all = [
            known(chat(7, None), None, false),
            known(chat(8, Some("news")), None, false),
            known(chat(9, None), Some(ChatId(-9)), false),
            known(chat(10, None), None, true),
        ];
        for known in all {
            chats.insert(known.clone());
            assert_eq!(chats.get(known.chat.id), Some(known));
        }
        assert_eq!((chats.len(), chats.of(|index| index == ChatIndex(7)).count()), (4, 4));
        assert_eq!(chats.of(|index| index == ChatIndex(8)).count(), 0);
        chats.remove(ChatId(8));
        assert_eq!(chats.get(ChatId(8)), None);
        assert_eq!(size_of::<(ChatId, Kept)>(), 24);
    }
}
