//! The methods there are, as data: `data/methods.json`.

use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::api;

/// All methods of the Bot API.
#[derive(Debug, Clone)]
pub struct Methods {
    list: Vec<MethodInfo>,
    /// By name and by lower-case name.
    by_name: FxHashMap<String, usize>,
}

/// One method.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodInfo {
    /// Where it is among all: what [`Methods::at`] takes.
    #[serde(skip)]
    pub index: usize,
    /// Its name, as the documentation writes it.
    pub name: &'static str,
    /// What it was called before.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What the limits take it for.
    pub family: api::Method,
    /// The parameter that names its chat.
    #[serde(default)]
    pub chat: Option<String>,
    /// The parameter that names the chat from which it takes messages.
    #[serde(default)]
    pub from: Option<String>,
    /// Parameters that must be there.
    pub required: Vec<String>,
    /// The type of its result; `[]` at the end makes it a list.
    pub result: String,
    /// What it does.
    #[serde(default)]
    pub effect: Effect,
    /// A result of its type, where what it does makes none: for lists one without items.
    #[serde(skip)]
    pub sample: Value,
}

/// What a method does to what the server knows, as far as this one knows anything of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Nothing; it answers with its sample.
    #[default]
    None,
    /// Sends a message.
    Send(Content),
    /// Sends several messages as one.
    Album,
    /// Forwards messages.
    Forward,
    /// Sends messages once more.
    Copy,
    /// Changes a message of the bot.
    Edit(Part),
    /// Closes a poll.
    StopPoll,
    /// Deletes messages.
    Delete,
    /// Needs a message, and does nothing to it that is kept.
    Touch(Touch),
    /// Answers a tap on a button.
    AnswerCallbackQuery,
    /// Answers what somebody typed after its name.
    AnswerInlineQuery,
    /// Keeps a value.
    Set(Setting),
    /// Tells a value that was kept.
    Get(Setting),
    /// Forgets a value, by the name of its setting.
    Unset(String),
    /// Tells where to download a file.
    GetFile,
    /// Uploads a file.
    UploadFile,
    /// Tells who the bot is.
    GetMe,
    /// Tells what there is to know of a chat.
    GetChat,
    /// Tells what somebody is in a chat.
    GetChatMember,
    /// Tells who runs a chat.
    GetChatAdministrators,
    /// Tells how many there are in a chat.
    GetChatMemberCount,
    /// Opens a topic.
    CreateForumTopic,
}

/// What is in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the API's own names")]
pub enum Content {
    Text,
    Photo,
    LivePhoto,
    Audio,
    Document,
    Video,
    Animation,
    Voice,
    VideoNote,
    Sticker,
    PaidMedia,
    Location,
    Venue,
    Contact,
    Poll,
    Dice,
    Game,
    Invoice,
    Checklist,
    RichMessage,
}

/// What of a message is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The text.
    Text,
    /// The caption.
    Caption,
    /// The file.
    Media,
    /// The buttons alone.
    ReplyMarkup,
    /// Where somebody is.
    Location,
    /// Where somebody is, for the last time.
    StopLocation,
    /// The tasks.
    Checklist,
    /// A score that the message does not show.
    Score,
}

/// What a message is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Touch {
    /// It is pinned.
    Pin,
    /// It is reacted to.
    React,
}

/// A value that one method sets and another gets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name.
    pub setting: String,
    /// The parameter that has it; to a getter: that its result is the value itself, not an object with the value.
    #[serde(default)]
    pub value: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "api_version")]
    _api_version: &'static str,
    #[serde(rename = "source")]
    _source: String,
    samples: IndexMap<String, Value>,
    methods: Vec<MethodInfo>,
}

impl Methods {
    /// Reads them from the data file.
    pub fn load() -> Self {
        let file: File =
            serde_json::from_str(include_str!("../../data/methods.json")).expect("the data file is sound");
        let mut methods = Self { list: Vec::new(), by_name: FxHashMap::default() };
        for (index, mut method) in file.methods.into_iter().enumerate() {
            method.sample = match file.samples.get(&method.result) {
                Some(sample) => sample.clone(),
                None if method.result.ends_with("[]") => Value::Array(Vec::new()),
                None => Value::Null,
            };
            for name in [method.name].into_iter().chain(method.aliases.iter().map(String::as_str)) {
                methods.by_name.insert(name.to_ascii_lowercase(), index);
                methods.by_name.insert(name.to_owned(), index);
            }
            method.index = index;
            methods.list.push(method);
        }
        methods
    }

    /// The method of that name, in any case.
    pub fn find(&self, name: &str) -> Option<&MethodInfo> {
        let index =
            self.by_name.get(name).or_else(|| self.by_name.get(name.to_ascii_lowercase().as_str()))?;
        self.list.get(*index)
    }

    /// That with the index `index`.
    ///
    /// # Panics
    /// If there is none.
    pub fn at(&self, index: usize) -> &MethodInfo {
        &self.list[index]
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &MethodInfo> {
        self.list.iter()
    }
}

impl MethodInfo {
    /// Whether it does not work without a chat.
    pub fn needs_chat(&self) -> bool {
        self.chat.as_ref().is_some_and(|chat| self.required.contains(chat))
    }

    /// Whether it takes a list of messages.
    pub fn takes_messages(&self) -> bool {
        self.required.iter().any(|name| name == "message_ids")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        let methods = Methods::load();
        for name in ["sendMessage", "SendMessage", "sendmessage", "SENDMESSAGE"] {
            assert_eq!(methods.find(name).map(|method| method.name), Some("sendMessage"));
        }
        // As node-telegram-bot-api 0.67 writes it.
        assert!(methods.find("setWebHook").is_some());
        assert_eq!(methods.find("kickChatMember").map(|method| method.name), Some("banChatMember"));
        assert!(methods.find("sendNothing").is_none());
        assert!(methods.find("").is_none());
    }

    /// docs of the limits: telegram.md 5.5.
    #[test]
    fn families_are_those_of_the_limits() {
        let methods = Methods::load();
        let family = |name| methods.find(name).expect("a method").family;
        for name in ["sendMessage", "sendPoll", "createForumTopic"] {
            assert_eq!(family(name), api::Method::SendMessage, "{name}");
        }
        for name in ["sendPhoto", "sendDocument", "sendMediaGroup", "sendSticker"] {
            assert_eq!(family(name), api::Method::SendPhoto, "{name}");
        }
        for name in ["editMessageText", "editMessageReplyMarkup", "stopPoll"] {
            assert_eq!(family(name), api::Method::EditMessageText, "{name}");
        }
        for name in ["forwardMessages", "copyMessage"] {
            assert_eq!(family(name), api::Method::ForwardMessage, "{name}");
        }
        for name in ["sendChatAction", "sendMessageDraft"] {
            assert_eq!(family(name), api::Method::SendChatAction, "{name}");
        }
        for name in
            ["editForumTopic", "pinChatMessage", "unpinAllChatMessages", "banChatMember", "setChatTitle"]
        {
            assert_eq!(family(name), api::Method::EditForumTopic, "{name}");
        }
        for name in ["deleteMessage", "deleteMessages", "answerCallbackQuery", "answerInlineQuery", "getChat"]
        {
            assert_eq!(family(name), api::Method::GetMe, "{name}");
        }
    }

    /// Who has neither an effect nor a sample could answer nothing.
    #[test]
    fn every_method_has_an_answer() {
        for method in Methods::load().iter() {
            assert!(method.effect != Effect::None || !method.sample.is_null(), "{}", method.name);
            if let Some(chat) = &method.chat {
                assert!(["chat_id"].contains(&chat.as_str()), "{}", method.name);
            }
        }
    }
}
