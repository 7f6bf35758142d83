//! What one bot has sent, got, uploaded and set; all of it bounded, the oldest is forgotten.

mod bounded;
mod files;
mod messages;

pub use files::{File, FileKind};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::http::peers::{Bot, ChatId};
use bounded::Bounded;
use files::Files;
use messages::Messages;

/// How much of one bot is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Messages; as many queries, settings and files.
    pub entries: usize,
    /// The bytes of all files together.
    pub file_bytes: usize,
}

/// What somebody asks a bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Query {
    /// By a tap on a button.
    Callback,
    /// By what follows its name.
    Inline,
}

/// What one bot has sent, got, uploaded and set.
#[derive(Debug, Clone)]
pub struct Contents {
    messages: Messages,
    files: Files,
    /// Until when each may be answered, by its id.
    queries: Bounded<String, (Query, i64)>,
    settings: Bounded<String, Value>,
}

impl Default for Capacity {
    /// 10,000 entries, some 3 MB of texts; 64 MiB of files.
    fn default() -> Self {
        Self { entries: 10_000, file_bytes: 64 << 20 }
    }
}

impl Contents {
    /// Those of a bot that has done nothing yet.
    pub fn new(bot: &Bot, capacity: Capacity) -> Self {
        Self {
            messages: Messages::new(capacity.entries),
            files: Files::new(bot, capacity),
            queries: Bounded::new(capacity.entries),
            settings: Bounded::new(capacity.entries),
        }
    }

    /// Puts a message into a chat, the bot's own or somebody else's, as JSON. Its id is the bot's next, or that of a
    /// message that it replaces.
    pub fn put(&mut self, chat: ChatId, message_id: i64, message: Bytes) {
        self.messages.put(chat, message_id, message);
    }

    /// A message, as JSON.
    pub fn message(&self, chat: ChatId, message_id: i64) -> Option<&Bytes> {
        self.messages.get(chat, message_id)
    }

    /// A message, as its fields.
    pub fn fields(&self, chat: ChatId, message_id: i64) -> Option<Map<String, Value>> {
        serde_json::from_slice(self.message(chat, message_id)?).ok()
    }

    /// Deletes a message; whether there was one.
    pub fn delete(&mut self, chat: ChatId, message_id: i64) -> bool {
        self.messages.delete(chat, message_id)
    }

    /// Somebody asks something that may be answered up to `until`, Unix time in seconds.
    pub fn add_query(&mut self, id: impl Into<String>, query: Query, until: i64) {
        self.queries.insert(id.into(), (query, until));
    }

    /// Whether it may be answered at `date`.
    pub fn may_answer(&self, id: &str, query: Query, date: i64) -> bool {
        self.queries.get(id).is_some_and(|(asked, until)| *asked == query && date <= *until)
    }

    /// Keeps a value under a key, or forgets it.
    pub fn set(&mut self, key: String, value: Option<Value>) {
        match value {
            Some(value) => self.settings.insert(key, value),
            None => drop(self.settings.remove(key.as_str())),
        }
    }

    /// The value under a key.
    pub fn setting(&self, key: &str) -> Option<&Value> {
        self.settings.get(key)
    }

    /// Keeps a file.
    pub fn upload(&mut self, file: File) -> &File {
        self.files.add(file)
    }

    /// A file, by its id; by that of any of its sizes.
    pub fn file(&self, file_id: &str) -> Option<&File> {
        self.files.by_id(file_id)
    }

    /// A file, by the path that `getFile` told: what is downloaded from `/file/bot<token>/<path>`.
    pub fn file_at(&self, path: &str) -> Option<&File> {
        self.files.by_path(path)
    }
}
