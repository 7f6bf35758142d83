//! Changes to messages.

use serde_json::{Value, json};

use super::content::{caption, content, copy, copy_texts, location};
use super::effects::{inline_keyboard, put};
use super::{CHAT_ID_EMPTY, Call, EDIT_NOT_FOUND, Failure, POLL_NOT_FOUND, Scene, medium, message_id};
use crate::http::methods::{Content, Part};
use crate::http::objects::{Fields, OWNER, User};
use crate::http::peers::ChatType;
use crate::http::written::Written;

/// What a message keeps whatever becomes of its content.
const FRAME: [&str; 14] = [
    "message_id",
    "message_thread_id",
    "is_topic_message",
    "from",
    "sender_chat",
    "chat",
    "date",
    "forward_origin",
    "reply_to_message",
    "media_group_id",
    "has_protected_content",
    "effect_id",
    "edit_date",
    "reply_markup",
];

/// Changes a message; the result is the message.
///
/// # Errors
///
/// It is gone, it is not the bot's, it has no such part, or it is what it should become already.
pub(super) fn edit(part: Part, call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Written, Failure> {
    let params = call.params;
    let chat = call.chat.ok_or(CHAT_ID_EMPTY)?;
    let id = message_id(params)?;
    let before = scene.contents.fields(chat.id, id).ok_or(EDIT_NOT_FOUND)?;
    if !is_own(&before, scene) {
        return Err(Failure::bad_request("Bad Request: message can't be edited"));
    }
    let mut after = before.clone();
    match part {
        Part::Text if params.get("rich_message").is_some() => {
            after.retain(|name, _| FRAME.contains(&name.as_str()));
            after.extend(content(Content::RichMessage, params, id, scene.contents));
        }
        Part::Text => {
            if !before.contains_key("text") && !before.contains_key("rich_message") {
                return Err(Failure::bad_request("Bad Request: there is no text in the message to edit"));
            }
            after.retain(|name, _| FRAME.contains(&name.as_str()));
            copy_texts(&mut after, params, &["text"]);
            copy(&mut after, params, &["entities", "link_preview_options"]);
        }
        Part::Caption => {
            const CAPTIONED: [&str; 8] =
                ["photo", "live_photo", "video", "animation", "document", "audio", "voice", "paid_media"];
            if !CAPTIONED.iter().any(|name| before.contains_key(*name)) {
                return Err(Failure::bad_request("Bad Request: there is no caption in the message to edit"));
            }
            for name in ["caption", "caption_entities", "show_caption_above_media"] {
                after.shift_remove(name);
            }
            caption(&mut after, params);
        }
        Part::Media => {
            let single = params.json("media").map(|value| medium(params, &value)).unwrap_or_default();
            let kind = match single.text("type").as_deref() {
                Some("video") => Content::Video,
                Some("animation") => Content::Animation,
                Some("audio") => Content::Audio,
                Some("document") => Content::Document,
                Some("live_photo") => Content::LivePhoto,
                _ => Content::Photo,
            };
            after.retain(|name, _| FRAME.contains(&name.as_str()));
            after.extend(content(kind, &single, id, scene.contents));
        }
        Part::Location => drop(after.insert("location".to_owned(), location(params))),
        Part::StopLocation => {
            if let Some(Value::Object(location)) = after.get_mut("location") {
                location.shift_remove("live_period");
            }
        }
        Part::Checklist => after.extend(content(Content::Checklist, params, id, scene.contents)),
        Part::ReplyMarkup | Part::Score => {}
    }
    if part != Part::Score {
        // Whoever edits without buttons takes the buttons away.
        match inline_keyboard(params) {
            Some(buttons) => drop(after.insert("reply_markup".to_owned(), buttons.into_owned())),
            None => drop(after.shift_remove("reply_markup")),
        }
        if after == before {
            return Err(Failure::bad_request(
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
            ));
        }
        after.insert("edit_date".to_owned(), scene.date.into());
    }
    Ok(put(scene.contents, chat.id, id, &after))
}

/// Closes a poll; the result is the poll.
///
/// # Errors
///
/// There is no such message, it is no poll, or it is closed.
pub(super) fn stop_poll(call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Value, Failure> {
    let chat = call.chat.ok_or(CHAT_ID_EMPTY)?;
    let id = message_id(call.params)?;
    let mut message = scene.contents.fields(chat.id, id).ok_or(POLL_NOT_FOUND)?;
    let Some(Value::Object(poll)) = message.get_mut("poll") else {
        return Err(Failure::bad_request("Bad Request: message is not a poll"));
    };
    if poll.insert("is_closed".to_owned(), true.into()) == Some(Value::Bool(true)) {
        return Err(Failure::bad_request("Bad Request: poll has already been closed"));
    }
    let poll = Value::Object(poll.clone());
    put(scene.contents, chat.id, id, &message);
    Ok(poll)
}

/// What a message says when it is passed on; where it came from is `forward_origin`, of whoever wrote it first.
pub(super) fn passed_on(mut message: Fields, with_origin: bool) -> Fields {
    let origin =
        with_origin.then(|| message.get("forward_origin").cloned().unwrap_or_else(|| origin(&message)));
    message.retain(|name, _| !FRAME.contains(&name.as_str()));
    if let Some(origin) = origin {
        message.insert("forward_origin".to_owned(), origin);
    }
    message
}

/// A `MessageOrigin`.
fn origin(message: &Fields) -> Value {
    let (r#type, names) = if message.contains_key("sender_chat") {
        ("channel", &[("chat", "chat"), ("message_id", "message_id")][..])
    } else {
        ("user", &[("from", "sender_user")][..])
    };
    let mut origin = Fields::from_iter([("type".to_owned(), r#type.into())]);
    origin.insert("date".to_owned(), message.get("date").cloned().unwrap_or_else(|| 1.into()));
    for (from, to) in names {
        if let Some(value) = message.get(*from) {
            origin.insert((*to).to_owned(), value.clone());
        }
    }
    if r#type == "user" && !origin.contains_key("sender_user") {
        origin.insert("type".to_owned(), "hidden_user".into());
        origin.insert("sender_user_name".to_owned(), json!(User::person(OWNER).first_name));
    }
    origin.into()
}

/// Whether the bot wrote a message: all that is in a channel counts as written by whoever may write there.
fn is_own(message: &Fields, scene: &Scene<'_>) -> bool {
    let is_channel = message.get("chat").is_some_and(|chat| chat["type"] == json!(ChatType::Channel));
    is_channel || message.get("from").is_some_and(|from| from["id"] == scene.bot.id)
}
