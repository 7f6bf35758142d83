//! Bots and chats by what clients call them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::api::ChatKind;

/// A bot, as its token tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bot {
    /// The number before the colon.
    pub id: i64,
    /// Its `@name`, without the `@`.
    pub username: String,
    /// Its name.
    pub first_name: String,
}

/// A chat, as a client names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatId(pub i64);

/// What the Bot API calls a chat's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatType {
    /// One user.
    Private,
    /// A basic group.
    Group,
    /// A supergroup.
    Supergroup,
    /// A channel.
    Channel,
}

/// What is known of a chat beside its budgets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// Its id.
    pub id: ChatId,
    /// Its type.
    pub r#type: ChatType,
    /// Its `@name`, without the `@`, if somebody used it.
    pub username: Option<Arc<str>>,
}

impl Bot {
    /// The bot with that number.
    pub fn new(id: i64) -> Self {
        Self { id, username: format!("fake_{id}_bot"), first_name: format!("Fake bot {id}") }
    }
}

impl ChatType {
    /// What the limits take it for.
    pub const fn kind(self) -> ChatKind {
        match self {
            Self::Private => ChatKind::Private,
            Self::Group | Self::Supergroup => ChatKind::Group,
            Self::Channel => ChatKind::Channel,
        }
    }
}

impl ChatId {
    /// The id of the public chat with that `@name`, without the `@`: always the same, in the range of supergroups and
    /// channels.
    pub fn named(name: &str) -> Self {
        let mut hasher = FxHasher::default();
        name.to_ascii_lowercase().hash(&mut hasher);
        Self(-1_000_000_000_000 - 1 - (hasher.finish() % 900_000_000_000) as i64)
    }

    /// What a chat is taken for whose type nobody has said: positive ids are users, from -10^12 on down supergroups,
    /// other negative ones basic groups (core.telegram.org/api/bots/ids).
    pub const fn guess(self) -> ChatType {
        match self.0 {
            0.. => ChatType::Private,
            -1_000_000_000_000..0 => ChatType::Group,
            _ => ChatType::Supergroup,
        }
    }
}
