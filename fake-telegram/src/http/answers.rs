//! What a call means: what the server refuses by itself, what it does to what the bot's chats contain, and the result.
//!
//! Knows nothing of limits and of time: when a call has its effect is decided elsewhere. The texts of failures are those
//! of `tdlib/telegram-bot-api` and `tdlib/td`, and of teloxide-core 0.13 `errors.rs` where these have none.

mod checks;
mod content;
mod edits;
mod effects;
mod text;

pub use checks::{check, check_messages, is_about_messages};
pub use effects::perform;

use serde_json::Value;

use crate::http::contents::Contents;
use crate::http::failure::Failure;
use crate::http::methods::{Effect, MethodInfo};
use crate::http::params::Params;
use crate::http::peers::{Bot, Chat};

/// A call of a method.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Which.
    pub method: &'a MethodInfo,
    /// With what.
    pub params: &'a Params,
    /// The chat that [`MethodInfo::chat`] names; `None` if the parameter is absent or there is none.
    pub chat: Option<&'a Chat>,
    /// The chat that [`MethodInfo::from`] names.
    pub from: Option<&'a Chat>,
}

/// What a call acts on.
#[derive(Debug)]
pub struct Scene<'a> {
    /// Who calls.
    pub bot: &'a Bot,
    /// The first of the ids of as many messages as the call [sends](items), from 1.
    pub message_id: i64,
    /// Unix time, in seconds, above 0.
    pub date: i64,
    /// What the bot's chats contain.
    pub contents: &'a mut Contents,
}

/// How many messages a call sends: the items of an album, the messages of a list; one otherwise.
pub fn items(method: &MethodInfo, params: &Params) -> u32 {
    let list = match method.effect {
        Effect::Album => "media",
        Effect::Forward | Effect::Copy if method.takes_messages() => "message_ids",
        _ => return 1,
    };
    match params.json(list).as_deref() {
        Some(Value::Array(items)) => u32::try_from(items.len()).unwrap_or(u32::MAX).max(1),
        _ => 1,
    }
}

/// The message that a call is about.
///
/// # Errors
///
/// It names none.
fn message_id(params: &Params) -> Result<i64, Failure> {
    params
        .integer("message_id")
        .filter(|id| *id > 0)
        .ok_or(Failure::bad_request("Bad Request: message identifier is not specified"))
}

/// The messages that a call is about, at most [`MESSAGES_MAX`].
///
/// # Errors
///
/// They are none, too many, or no numbers.
fn message_ids(params: &Params) -> Result<Vec<i64>, Failure> {
    const NONE: Failure = Failure::bad_request("Bad Request: message identifiers are not specified");
    let list = params.json("message_ids");
    let Some(Value::Array(ids)) = list.as_deref() else {
        return Err(NONE);
    };
    match ids.len() {
        0 => Err(NONE),
        1..=MESSAGES_MAX => ids
            .iter()
            .map(|id| id.as_i64().or_else(|| id.as_str()?.parse().ok()))
            .collect::<Option<_>>()
            .ok_or(Failure::bad_request("Bad Request: invalid message identifier specified")),
        _ => Err(Failure::bad_request("Bad Request: too many message identifiers specified")),
    }
}

/// The message to which a call replies.
struct Reply {
    message_id: i64,
    /// Whether it is in another chat than the one the call is about.
    is_elsewhere: bool,
    /// Whether the call means to be sent without it as well.
    is_optional: bool,
}

fn reply(call: &Call<'_>) -> Option<Reply> {
    let params = call.params;
    if let Some(reply) = params.json("reply_parameters") {
        let chat_id = reply.get("chat_id");
        return Some(Reply {
            message_id: reply.get("message_id")?.as_i64()?,
            is_elsewhere: chat_id.is_some_and(|id| id.as_i64() != call.chat.map(|chat| chat.id.0)),
            is_optional: reply.get("allow_sending_without_reply") == Some(&Value::Bool(true)),
        });
    }
    Some(Reply {
        message_id: params.integer("reply_to_message_id").filter(|id| *id > 0)?,
        is_elsewhere: false,
        is_optional: params.is_true("allow_sending_without_reply"),
    })
}

/// The items of an album, each as parameters of the method that would send it alone.
fn album(params: &Params) -> Vec<Params> {
    match params.json("media").as_deref() {
        Some(Value::Array(items)) => items.iter().map(|item| medium(params, item)).collect(),
        _ => Vec::new(),
    }
}

/// An `InputMedia` as parameters of the method that would send it.
fn medium(params: &Params, medium: &Value) -> Params {
    let mut single = Params::default();
    for (name, value) in medium.as_object().into_iter().flatten() {
        single.set(name.as_str(), value.clone());
    }
    let part = medium["type"].as_str().unwrap_or_default();
    for (field, part) in [("media", part), ("photo", "photo")] {
        if let Some(reference) = medium.get(field).and_then(Value::as_str) {
            single.set(part, reference.into());
            if let Some(upload) = params.attachment(reference) {
                single.attach(part, upload.clone());
            }
        }
    }
    single
}

/// At most so many messages in a list (core.telegram.org/bots/api#deletemessages).
const MESSAGES_MAX: usize = 100;
/// At most so many items in an album.
const ALBUM_MAX: usize = 10;

const CHAT_ID_EMPTY: Failure = Failure::bad_request("Bad Request: chat_id is empty");
const EDIT_NOT_FOUND: Failure = Failure::bad_request("Bad Request: message to edit not found");
const DELETE_NOT_FOUND: Failure = Failure::bad_request("Bad Request: message to delete not found");
const FORWARD_NOT_FOUND: Failure = Failure::bad_request("Bad Request: message to forward not found");
const COPY_NOT_FOUND: Failure = Failure::bad_request("Bad Request: message to copy not found");
const POLL_NOT_FOUND: Failure = Failure::bad_request("Bad Request: message with poll to stop not found");
