//! What people do, as it is written in a file or sent to the admin API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::peers::ChatId;
use crate::time::Duration;
use crate::units::Rate;

/// Something that somebody does in a chat: `{ "chat": -5001, "user": 7001, "action": "write", "text": "hi" }`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
pub struct Act {
    /// Where.
    pub chat: ChatId,
    /// What.
    pub action: Action,
    /// When first, from the start on; at once if absent.
    pub at: Option<Duration>,
    /// How often from then on; once if absent.
    pub every: Option<Rate>,
}

/// What somebody does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Writes a text.
    Write {
        /// Who.
        user: i64,
        /// 1-4096 characters, if it is to look real.
        text: String,
    },
    /// Taps a button.
    Tap {
        /// Who.
        user: i64,
        /// The message with the button.
        message_id: u32,
        /// The button's `callback_data`.
        data: String,
    },
    /// Types the bot's name and a query.
    InlineQuery {
        /// Who.
        user: i64,
        /// What follows the name.
        query: String,
    },
    /// Blocks the bot: in a private chat.
    Block,
    /// Unblocks it.
    Unblock,
    /// Adds the bot to a group or channel.
    AddBot {
        /// Who.
        user: i64,
    },
    /// Throws it out.
    RemoveBot {
        /// Who.
        user: i64,
    },
    /// A group becomes a supergroup.
    Migrate {
        /// Its id from then on.
        to: ChatId,
    },
}

/// Why an act is none; the message names the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// Something is missing.
    #[error("`{action}` needs `{field}`")]
    Missing {
        /// The action.
        action: &'static str,
        /// The field.
        field: &'static str,
    },
    /// Something is too much.
    #[error("`{action}` has no `{field}`")]
    Surplus {
        /// The action.
        action: &'static str,
        /// The field.
        field: &'static str,
    },
    /// It happens in chats of another type.
    #[error("`{action}` happens in {place}; {chat} is none (users have positive ids, groups negative ones)")]
    Elsewhere {
        /// The action.
        action: &'static str,
        /// Where it happens.
        place: &'static str,
        /// The chat given.
        chat: i64,
    },
    /// Somebody else acts in a user's private chat.
    #[error("in the private chat {chat} nobody acts but its user; `user` is {user}")]
    Stranger {
        /// The chat.
        chat: i64,
        /// The user given.
        user: i64,
    },
}

/// An act as it is written: one action's fields, all others absent.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The chat's id.
    chat: i64,
    /// The user's id; in a private chat it is that of the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<i64>,
    action: Name,
    /// For `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// For `tap`: the button's `callback_data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// For `tap`: the message with the button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_id: Option<u32>,
    /// For `inline-query`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    /// For `migrate`: the supergroup's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
    /// When, from the start on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Duration>,
    /// How often from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<Rate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Write,
    Tap,
    InlineQuery,
    Block,
    Unblock,
    AddBot,
    RemoveBot,
    Migrate,
}

impl TryFrom<Written> for Act {
    type Error = ActError;

    fn try_from(mut written: Written) -> Result<Self, ActError> {
        let (name, chat) = (written.action.text(), written.chat);
        let (private, group) = (chat > 0, chat < 0);
        let missing = |field| ActError::Missing { action: name, field };
        let elsewhere = |place| Err(ActError::Elsewhere { action: name, place, chat });
        if !private && !group {
            return elsewhere("a chat");
        }
        if let Some(user) = written.user.filter(|user| private && *user != chat) {
            return Err(ActError::Stranger { chat, user });
        }
        let user = written.user.filter(|user| *user > 0).or_else(|| private.then_some(chat));
        let user = user.ok_or_else(|| missing("user"));
        let action = match written.action {
            Name::Write => {
                Action::Write { user: user?, text: written.text.take().ok_or_else(|| missing("text"))? }
            }
            Name::Tap => Action::Tap {
                user: user?,
                message_id: written.message_id.take().ok_or_else(|| missing("message_id"))?,
                data: written.data.take().ok_or_else(|| missing("data"))?,
            },
            // An empty query is one.
            Name::InlineQuery => {
                Action::InlineQuery { user: user?, query: written.query.take().unwrap_or_default() }
            }
            Name::Block | Name::Unblock if !private => return elsewhere("private chats"),
            Name::Block => Action::Block,
            Name::Unblock => Action::Unblock,
            Name::AddBot | Name::RemoveBot | Name::Migrate if !group => return elsewhere("groups"),
            Name::AddBot => Action::AddBot { user: user? },
            Name::RemoveBot => Action::RemoveBot { user: user? },
            Name::Migrate => {
                let to = written.to.take().ok_or_else(|| missing("to"))?;
                if to >= 0 {
                    return Err(ActError::Elsewhere { action: name, place: "groups", chat: to });
                }
                Action::Migrate { to: ChatId(to) }
            }
        };
        // What the action did not take does not belong to it.
        let surplus = [
            ("text", written.text.is_some()),
            ("data", written.data.is_some()),
            ("message_id", written.message_id.is_some()),
            ("query", written.query.is_some()),
            ("to", written.to.is_some()),
        ];
        if let Some((field, _)) = surplus.into_iter().find(|(_, there)| *there) {
            return Err(ActError::Surplus { action: name, field });
        }
        Ok(Self { chat: ChatId(chat), action, at: written.at, every: written.every })
    }
}

impl From<Act> for Written {
    fn from(act: Act) -> Self {
        let mut written = Self {
            chat: act.chat.0,
            user: None,
            action: Name::Block,
            text: None,
            data: None,
            message_id: None,
            query: None,
            to: None,
            at: act.at,
            every: act.every,
        };
        let (action, user) = match act.action {
            Action::Write { user, text } => {
                written.text = Some(text);
                (Name::Write, Some(user))
            }
            Action::Tap { user, message_id, data } => {
                (written.message_id, written.data) = (Some(message_id), Some(data));
                (Name::Tap, Some(user))
            }
            Action::InlineQuery { user, query } => {
                written.query = Some(query);
                (Name::InlineQuery, Some(user))
            }
            Action::Block => (Name::Block, None),
            Action::Unblock => (Name::Unblock, None),
            Action::AddBot { user } => (Name::AddBot, Some(user)),
            Action::RemoveBot { user } => (Name::RemoveBot, Some(user)),
            Action::Migrate { to } => {
                written.to = Some(to.0);
                (Name::Migrate, None)
            }
        };
        (written.action, written.user) = (action, user);
        written
    }
}

impl Name {
    const fn text(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Tap => "tap",
            Self::InlineQuery => "inline-query",
            Self::Block => "block",
            Self::Unblock => "unblock",
            Self::AddBot => "add-bot",
            Self::RemoveBot => "remove-bot",
            Self::Migrate => "migrate",
        }
    }
}

#[cfg(test)]
mod tests;
