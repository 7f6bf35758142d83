//! What people do, and the updates that bots get of it.
//!
//! Pure: ids and dates are arguments, and what an act changes (a blocked chat answers 403 from then on) is somebody
//! else's. `act` is how acts are written by people who make people act.

pub mod act;

use serde_json::{Map, Value, json};

use crate::http::kinds::Kind;
use crate::http::peers::{Bot, Chat, ChatType};

/// An update before it has an id.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What it tells of.
    pub kind: Kind,
    /// The object under that key.
    pub payload: Value,
}

/// Where and when something happens.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The bot that is told.
    pub bot: &'a Bot,
    /// The chat.
    pub chat: &'a Chat,
    /// Unix time, in seconds, above 0.
    pub date: i64,
}

/// What a bot is in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It is there; in a private chat: its user has not blocked it.
    Member,
    /// It never was there, or went by itself.
    Left,
    /// It was thrown out; in a private chat: blocked.
    Kicked,
}

impl Scene<'_> {
    /// A user writes `text`. Commands in it are marked (core.telegram.org/bots/api#messageentity, `bot_command`).
    pub fn write(&self, user: i64, message_id: u32, text: &str) -> Event {
        let mut message = self.message(message_id);
        message.insert("from".into(), self::user(user));
        message.insert("text".into(), text.into());
        let commands = commands(text);
        if !commands.is_empty() {
            message.insert("entities".into(), commands.into());
        }
        Event { kind: Kind::Message, payload: message.into() }
    }

    /// A user taps the button with `data` below a message. `query_id` is what the bot answers by; `message` is the message
    /// if it is known, otherwise the bot gets one that it cannot access (core.telegram.org/bots/api#inaccessiblemessage).
    pub fn tap(
        &self,
        user: i64,
        query_id: u64,
        message_id: u32,
        message: Option<Value>,
        data: &str,
    ) -> Event {
        let message = message
            .unwrap_or_else(|| json!({ "message_id": message_id, "date": 0, "chat": chat(self.chat) }));
        let payload = json!({
            "id": query_id.to_string(),
            "from": self::user(user),
            "message": message,
            // Any text that is the chat's own (core.telegram.org/bots/api#callbackquery).
            "chat_instance": self.chat.id.0.to_string(),
            "data": data,
        });
        Event { kind: Kind::CallbackQuery, payload }
    }

    /// A user changes what the bot is in the chat: blocks or unblocks it, adds it to a group or throws it out.
    pub fn membership(&self, user: i64, old: Membership, new: Membership) -> Event {
        let payload = json!({
            "chat": chat(self.chat),
            "from": self::user(user),
            "date": self.date,
            "old_chat_member": old.of(self.bot),
            "new_chat_member": new.of(self.bot),
        });
        Event { kind: Kind::MyChatMember, payload }
    }

    /// A user types the bot's name and `query` into a chat. `query_id` is what the bot answers by.
    pub fn inline_query(&self, user: i64, query_id: u64, query: &str) -> Event {
        // In its own chat with the bot a user is the "sender" (core.telegram.org/bots/api#inlinequery).
        let place = match self.chat.r#type {
            ChatType::Private => json!("sender"),
            other => json!(other),
        };
        let payload = json!({
            "id": query_id.to_string(),
            "from": self::user(user),
            "query": query,
            "offset": "",
            "chat_type": place,
        });
        Event { kind: Kind::InlineQuery, payload }
    }

    /// The group becomes the supergroup `new`: what the bot is told in the old chat, and then in the new one, as a
    /// service message each.
    pub fn migrate(&self, new: &Chat, old_message_id: u32, new_message_id: u32) -> [Event; 2] {
        let mut from = self.message(old_message_id);
        from.insert("migrate_to_chat_id".into(), new.id.0.into());
        let mut to = Scene { chat: new, ..*self }.message(new_message_id);
        to.insert("migrate_from_chat_id".into(), self.chat.id.0.into());
        [from, to].map(|message| Event { kind: Kind::Message, payload: message.into() })
    }

    fn message(&self, message_id: u32) -> Map<String, Value> {
        let mut message = Map::new();
        message.insert("message_id".into(), message_id.into());
        message.insert("date".into(), self.date.into());
        message.insert("chat".into(), chat(self.chat));
        message
    }
}

impl Membership {
    /// A `ChatMember` of the bot.
    fn of(self, bot: &Bot) -> Value {
        let user = json!({
            "id": bot.id,
            "is_bot": true,
            "first_name": bot.first_name(),
            "username": bot.username(),
        });
        match self {
            Self::Member => json!({ "user": user, "status": "member" }),
            Self::Left => json!({ "user": user, "status": "left" }),
            // For ever (core.telegram.org/bots/api#chatmemberbanned).
            Self::Kicked => json!({ "user": user, "status": "kicked", "until_date": 0 }),
        }
    }
}

/// The `User` with that id, who is called after it.
pub fn user(id: i64) -> Value {
    json!({
        "id": id,
        "is_bot": false,
        "first_name": format!("User {id}"),
        "username": format!("user_{id}"),
        "language_code": "en",
    })
}

/// A `Chat`. Whoever has no name yet is called after the id.
pub fn chat(chat: &Chat) -> Value {
    let id = chat.id.0;
    let mut object = Map::new();
    object.insert("id".into(), id.into());
    object.insert("type".into(), json!(chat.r#type));
    let username = match chat.r#type {
        ChatType::Private => {
            object.insert("first_name".into(), format!("User {id}").into());
            Some(chat.username.clone().unwrap_or_else(|| format!("user_{id}")))
        }
        _ => {
            object.insert("title".into(), format!("Chat {id}").into());
            chat.username.clone()
        }
    };
    if let Some(username) = username {
        object.insert("username".into(), username.into());
    }
    object.into()
}

/// The commands in a text, as entities with offset and length in UTF-16 units: `/word` or `/word@name_of_a_bot`, with up
/// to 64 and 3 to 32 letters, digits and underscores, between characters that belong to no word (td `MessageEntity.cpp`,
/// match_bot_commands).
fn commands(text: &str) -> Vec<Value> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let divides = |c: Option<char>| c.is_none_or(|c| !in_word(c) && !matches!(c, '/' | '<' | '>'));
    let word =
        |text: &str| text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let mut commands = Vec::new();
    for (at, _) in text.match_indices('/') {
        let (before, rest) = (&text[..at], &text[at + 1..]);
        let name = word(rest);
        let mention = rest[name..].strip_prefix('@').map(word).filter(|length| (3..=32).contains(length));
        let end = name + mention.map_or(0, |length| 1 + length);
        if (1..=64).contains(&name)
            && divides(before.chars().next_back())
            && divides(rest[end..].chars().next())
        {
            let offset = before.encode_utf16().count();
            commands.push(json!({ "type": "bot_command", "offset": offset, "length": 1 + end }));
        }
    }
    commands
}

#[cfg(test)]
mod tests;
