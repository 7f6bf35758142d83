//! The Bot API's objects as JSON: people, chats, messages. Fields that are absent are left out, never null.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::http::peers::{Bot, Chat, ChatId, ChatType};

/// Fields of an object, in their order.
pub type Fields = Map<String, Value>;

/// A `User`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User<'a> {
    /// Its id, above 0.
    pub id: i64,
    /// Whether it is one.
    pub is_bot: bool,
    /// Its name.
    pub first_name: Cow<'a, str>,
    /// Its `@name`, without the `@`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<Cow<'a, str>>,
}

/// A `Chat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatObject<'a> {
    /// Its id.
    pub id: i64,
    /// Its type.
    pub r#type: ChatType,
    /// What a group or channel is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// What a user is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_name: Option<Cow<'a, str>>,
    /// Its `@name`, without the `@`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<&'a str>,
}

/// A `Message`. Whose `from` and `sender_chat` are both `None` is from nobody, which clients accept.
#[derive(Debug, Clone, Serialize)]
pub struct Message<'a> {
    /// Its number in its chat, from 1; clients expect an `i32`.
    pub message_id: i64,
    /// The topic it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_thread_id: Option<i64>,
    /// Who sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<User<'a>>,
    /// The channel that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_chat: Option<ChatObject<'a>>,
    /// Where it is.
    pub chat: ChatObject<'a>,
    /// Unix time, seconds, above 0: a 0 marks messages that cannot be seen.
    pub date: i64,
    /// The message it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_message: Option<Fields>,
    /// What is in it: `text` apart, which is what most have.
    #[serde(flatten)]
    pub content: Fields,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// Its buttons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_markup: Option<Cow<'a, Value>>,
}

impl<'a> User<'a> {
    /// A person; the id says all there is to know.
    pub fn person(id: i64) -> Self {
        Self { id, is_bot: false, first_name: format!("User {id}").into(), username: None }
    }

    /// A bot.
    pub fn bot(bot: &'a Bot) -> Self {
        Self {
            id: bot.id,
            is_bot: true,
            first_name: bot.first_name.as_str().into(),
            username: Some(bot.username.as_str().into()),
        }
    }
}

impl<'a> From<&'a Chat> for ChatObject<'a> {
    fn from(chat: &'a Chat) -> Self {
        let ChatId(id) = chat.id;
        let (title, first_name) = match chat.r#type {
            ChatType::Private => (None, Some(User::person(id).first_name)),
            ChatType::Group | ChatType::Supergroup => (Some(format!("Group {id}").into()), None),
            ChatType::Channel => (Some(format!("Channel {id}").into()), None),
        };
        Self { id, r#type: chat.r#type, title, first_name, username: chat.username.as_deref() }
    }
}

impl<'a> Message<'a> {
    /// A message from nobody with nothing in it.
    ///
    /// `date` is Unix time in seconds.
    pub fn new(message_id: i64, chat: &'a Chat, date: i64) -> Self {
        Self {
            message_id,
            message_thread_id: None,
            from: None,
            sender_chat: None,
            chat: chat.into(),
            date,
            reply_to_message: None,
            content: Fields::new(),
            text: None,
            reply_markup: None,
        }
    }

    /// The same from `user`; in a channel, from the channel.
    pub fn sent_by(mut self, user: User<'a>) -> Self {
        match self.chat.r#type {
            ChatType::Channel => self.sender_chat = Some(self.chat.clone()),
            _ => self.from = Some(user),
        }
        self
    }
}

/// What `getMe` tells: a `User` with what only a bot has. teloxide insists on each of these fields (`types/me.rs`).
pub fn me(bot: &Bot) -> Value {
    json!({
        "id": bot.id,
        "is_bot": true,
        "first_name": bot.first_name,
        "username": bot.username,
        "can_join_groups": true,
        "can_read_all_group_messages": false,
        "supports_inline_queries": false,
        "can_connect_to_business": false,
        "has_main_web_app": false,
    })
}

/// A `ChatFullInfo`, with the fields that a chat always has.
pub fn chat_full_info(chat: &Chat) -> Value {
    let ChatObject { id, r#type, title, first_name, username } = chat.into();
    let mut info = json!({
        "id": id,
        "type": r#type,
        "accent_color_id": id.unsigned_abs() % 7,
        "max_reaction_count": 11,
        "accepted_gift_types": {
            "unlimited_gifts": true,
            "limited_gifts": true,
            "unique_gifts": true,
            "premium_subscription": true,
            "gifts_from_channels": true,
        },
    });
    for (name, value) in [
        ("title", title.map(Cow::into_owned)),
        ("first_name", first_name.map(Cow::into_owned)),
        ("username", username.map(str::to_owned)),
    ] {
        if let Some(value) = value {
            info[name] = value.into();
        }
    }
    if matches!(chat.r#type, ChatType::Group | ChatType::Supergroup) {
        info["permissions"] = json!({ "can_send_messages": true, "can_invite_users": true });
    }
    info
}

/// A `ChatMember`: the bot runs groups and channels together with their [owner](OWNER); everybody else is in them.
pub fn member(bot: &Bot, chat: &Chat, user_id: i64) -> Value {
    let in_private = chat.r#type == ChatType::Private;
    if user_id == bot.id {
        let user = User::bot(bot);
        if in_private {
            return json!({ "status": "member", "user": user });
        }
        return json!({
            "status": "administrator",
            "user": user,
            "can_be_edited": false,
            "is_anonymous": false,
            "can_manage_chat": true,
            "can_delete_messages": true,
            "can_manage_video_chats": true,
            "can_restrict_members": true,
            "can_promote_members": false,
            "can_change_info": true,
            "can_invite_users": true,
            "can_post_messages": chat.r#type == ChatType::Channel,
            "can_edit_messages": chat.r#type == ChatType::Channel,
            "can_pin_messages": true,
            "can_manage_topics": chat.r#type == ChatType::Supergroup,
            "can_post_stories": false,
            "can_edit_stories": false,
            "can_delete_stories": false,
            "can_send_welcome_messages": false,
        });
    }
    let user = User::person(user_id);
    if user_id == OWNER && !in_private {
        return json!({ "status": "creator", "user": user, "is_anonymous": false });
    }
    json!({ "status": "member", "user": user })
}

/// Who owns every group and channel.
pub const OWNER: i64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(id: i64) -> Chat {
        Chat { id: ChatId(id), r#type: ChatId(id).guess(), username: None }
    }

    /// Message and User as core.telegram.org/bots/api describes them.
    #[test]
    fn a_message_has_what_it_has_and_no_nulls() {
        let chat = chat(7);
        let bot = Bot::new(110);
        let mut message = Message::new(3, &chat, 1_700_000_000).sent_by(User::bot(&bot));
        message.text = Some("hé".into());
        let expected = json!({
            "message_id": 3,
            "from": { "id": 110, "is_bot": true, "first_name": "Fake bot 110", "username": "fake_110_bot" },
            "chat": { "id": 7, "type": "private", "first_name": "User 7" },
            "date": 1_700_000_000,
            "text": "hé",
        });
        assert_eq!(serde_json::to_value(message).expect("JSON"), expected);
    }

    #[test]
    fn channels_speak_for_themselves() {
        let channel = Chat { r#type: ChatType::Channel, username: Some("news".into()), ..chat(-1_001) };
        let message = Message::new(1, &channel, 1).sent_by(User::person(5));
        assert_eq!(message.from, None);
        assert_eq!(message.sender_chat.as_ref(), Some(&message.chat));
        assert_eq!(message.chat.username, Some("news"));
    }
}
