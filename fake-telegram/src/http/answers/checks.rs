//! What the server finds out by itself, before anything goes upstream.

use serde_json::Value;

use super::text::{check_caption, check_text};
use super::{
    ALBUM_MAX, CHAT_ID_EMPTY, COPY_NOT_FOUND, Call, DELETE_NOT_FOUND, EDIT_NOT_FOUND, FORWARD_NOT_FOUND,
    Failure, POLL_NOT_FOUND, album, message_id, message_ids, reply,
};
use crate::api::Method;
use crate::http::contents::Contents;
use crate::http::methods::{Content, Effect, Part, Touch};
use crate::http::params::Params;
use crate::http::peers::ChatId;

/// Checks what a call says by itself: first what is to be sent, then where to.
///
/// # Errors
///
/// The call would fail, and costs nothing.
pub fn check(call: &Call<'_>) -> Result<(), Failure> {
    check_content(call)?;
    check_required(call)?;
    if call.chat.is_none() && call.method.needs_chat() {
        return Err(CHAT_ID_EMPTY);
    }
    Ok(())
}

/// Whether a call is about messages that there are already, or should be.
pub fn is_about_messages(call: &Call<'_>) -> bool {
    let is_new = matches!(call.method.effect, Effect::Send(_) | Effect::Album | Effect::None);
    !is_new || reply(call).is_some()
}

fn check_content(call: &Call<'_>) -> Result<(), Failure> {
    let params = call.params;
    match call.method.effect {
        Effect::Send(Content::Text) => check_text(params),
        Effect::Edit(Part::Text) if params.get("rich_message").is_none() => check_text(params),
        Effect::Send(content) => {
            if content == Content::Poll {
                check_poll(params)?;
            }
            if let Some((field, missing)) = file_of(content) {
                check_file(params, field, missing)?;
            }
            check_caption(params)
        }
        Effect::Edit(Part::Caption) | Effect::Copy => check_caption(params),
        Effect::Edit(Part::Media) => match params.json("media").as_deref() {
            Some(medium @ Value::Object(_)) => check_medium(&super::medium(params, medium)),
            _ => Err(Failure::bad_request("Bad Request: can't parse media JSON object")),
        },
        Effect::Album => check_album(&album(params)),
        Effect::None if call.method.family == Method::SendChatAction => check_action(params),
        Effect::GetFile if params.text("file_id").unwrap_or_default().is_empty() => {
            Err(Failure::bad_request("Bad Request: file_id not specified"))
        }
        _ => Ok(()),
    }
}

/// The parameter with the file of a message, and what is said when it is absent.
const fn file_of(content: Content) -> Option<(&'static str, Failure)> {
    let (field, missing) = match content {
        Content::Photo => ("photo", "Bad Request: there is no photo in the request"),
        Content::LivePhoto => ("live_photo", "Bad Request: there is no live photo in the request"),
        Content::Audio => ("audio", "Bad Request: there is no audio in the request"),
        Content::Document => ("document", "Bad Request: there is no document in the request"),
        Content::Video => ("video", "Bad Request: there is no video in the request"),
        Content::Animation => ("animation", "Bad Request: there is no animation in the request"),
        Content::Voice => ("voice", "Bad Request: there is no voice in the request"),
        Content::VideoNote => ("video_note", "Bad Request: there is no video note in the request"),
        Content::Sticker => ("sticker", "Bad Request: there is no sticker in the request"),
        _ => return None,
    };
    Some((field, Failure::bad_request(missing)))
}

/// Any file id may be one that another server gave: only what cannot be one is refused.
fn check_file(params: &Params, field: &str, missing: Failure) -> Result<(), Failure> {
    if params.file(field).is_some() {
        return Ok(());
    }
    let name = params.text(field).unwrap_or_default();
    let is_url = name.starts_with("http://") || name.starts_with("https://") || name.starts_with("file://");
    if name.is_empty() {
        Err(missing)
    } else if is_url || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    {
        Ok(())
    } else {
        Err(WRONG_FILE)
    }
}

const WRONG_FILE: Failure = Failure::bad_request("Bad Request: wrong file identifier/HTTP URL specified");

fn check_album(items: &[Params]) -> Result<(), Failure> {
    if items.is_empty() {
        return Err(Failure::bad_request("Bad Request: there are no messages to send"));
    }
    if items.len() > ALBUM_MAX {
        return Err(Failure::bad_request("Bad Request: too many messages to send as an album"));
    }
    // Documents and audio files stay among themselves (core.telegram.org/bots/api#sendmediagroup).
    let types = items.iter().map(|item| item.get("type").and_then(Value::as_str).unwrap_or_default());
    let album_of = |r#type| match r#type {
        "photo" | "video" | "live_photo" => Some("visual"),
        "document" | "audio" => Some(r#type),
        _ => None,
    };
    let albums: Vec<_> = types.map(album_of).collect();
    if albums.iter().any(|album| album.is_none() || *album != albums[0]) {
        return Err(Failure::bad_request(
            "Bad Request: can't use the media of the specified type in the album",
        ));
    }
    items.iter().try_for_each(check_medium)
}

/// An item of an album, or what takes the place of a file: each needs a file.
fn check_medium(item: &Params) -> Result<(), Failure> {
    let field = item.text("type").unwrap_or_default();
    check_file(item, &field, WRONG_FILE)?;
    check_caption(item)
}

/// tdlib/telegram-bot-api `Client.cpp`, get_input_poll_options: a list whose options are texts or objects with one.
fn check_poll(params: &Params) -> Result<(), Failure> {
    let options = params.json("options");
    let Some(options) = options.as_deref() else {
        return Err(Failure::bad_request("Bad Request: can't parse options JSON object"));
    };
    let Value::Array(options) = options else {
        return Err(Failure::bad_request("Bad Request: expected an Array of InputPollOption"));
    };
    for option in options {
        match option {
            Value::String(_) => {}
            Value::Object(fields) if fields.contains_key("text") => {}
            Value::Object(_) => {
                return Err(Failure::bad_request(
                    "Bad Request: can't parse InputPollOption: Can't find field \"text\"",
                ));
            }
            _ => {
                return Err(Failure::bad_request(
                    "Bad Request: can't parse InputPollOption: Expected InputPollOption to be an Object",
                ));
            }
        }
    }
    Ok(())
}

fn check_action(params: &Params) -> Result<(), Failure> {
    const ACTIONS: [&str; 16] = [
        "cancel",
        "typing",
        "record_video",
        "upload_video",
        "record_audio",
        "record_voice",
        "upload_audio",
        "upload_voice",
        "upload_photo",
        "upload_document",
        "choose_sticker",
        "find_location",
        "pick_up_location",
        "record_video_note",
        "upload_video_note",
        "choose_contact",
    ];
    // Drafts have no action.
    if params.get("draft_id").is_some() {
        return Ok(());
    }
    let action = params.text("action").unwrap_or_default().to_ascii_lowercase();
    if ACTIONS.contains(&action.as_str()) {
        Ok(())
    } else {
        Err(Failure::bad_request("Bad Request: wrong parameter action in request"))
    }
}

fn check_required(call: &Call<'_>) -> Result<(), Failure> {
    let said_elsewhere = ["message_id", "message_ids"];
    for name in &call.method.required {
        let is_there = call.params.get(name).is_some() || call.params.file(name).is_some();
        if is_there || call.method.chat.as_ref() == Some(name) || said_elsewhere.contains(&name.as_str()) {
            continue;
        }
        return Err(match name.as_str() {
            "user_id" => Failure::bad_request("Bad Request: invalid user_id specified"),
            "from_chat_id" => CHAT_ID_EMPTY,
            _ => Failure::new(400, format!("Bad Request: parameter \"{name}\" is required")),
        });
    }
    Ok(())
}

/// Checks the messages that a call is about, once it is [checked](check) itself.
///
/// # Errors
///
/// As [`check`].
pub fn check_messages(call: &Call<'_>, contents: &Contents) -> Result<(), Failure> {
    let exists = |missing: Failure| match call.chat {
        None => Err(CHAT_ID_EMPTY),
        Some(chat) => contents.message(chat.id, message_id(call.params)?).map(drop).ok_or(missing),
    };
    match call.method.effect {
        Effect::Edit(_) if call.params.get("inline_message_id").is_some() => return Ok(()),
        Effect::Edit(_) => {
            message_id(call.params)?;
            exists(EDIT_NOT_FOUND)?;
        }
        Effect::StopPoll => exists(POLL_NOT_FOUND)?,
        Effect::Touch(Touch::Pin) => exists(Failure::bad_request("Bad Request: message to pin not found"))?,
        Effect::Touch(Touch::React) => {
            exists(Failure::bad_request("Bad Request: message to react not found"))?
        }
        Effect::Delete if !call.method.takes_messages() => exists(DELETE_NOT_FOUND)?,
        Effect::Delete => drop(message_ids(call.params)?),
        Effect::Forward | Effect::Copy if call.method.takes_messages() => drop(message_ids(call.params)?),
        Effect::Forward | Effect::Copy => {
            let missing = if call.method.effect == Effect::Copy { COPY_NOT_FOUND } else { FORWARD_NOT_FOUND };
            contents.message(from(call)?, message_id(call.params)?).ok_or(missing)?;
        }
        _ => {}
    }
    check_reply(call, contents)
}

fn check_reply(call: &Call<'_>, contents: &Contents) -> Result<(), Failure> {
    let (Some(reply), Some(chat)) = (reply(call), call.chat) else {
        return Ok(());
    };
    if reply.is_optional || reply.is_elsewhere || contents.message(chat.id, reply.message_id).is_some() {
        return Ok(());
    }
    Err(Failure::bad_request("Bad Request: message to be replied not found"))
}

/// Where the messages of a call come from.
///
/// # Errors
///
/// It does not say.
pub(super) fn from(call: &Call<'_>) -> Result<ChatId, Failure> {
    let id = call.from.map(|chat| chat.id);
    id.or_else(|| call.params.integer("from_chat_id").map(ChatId)).ok_or(CHAT_ID_EMPTY)
}
