//! What a call does, and its result.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::checks::from;
use super::content::{content, copy_texts};
use super::edits::{edit, passed_on, stop_poll};
use super::{
    CHAT_ID_EMPTY, COPY_NOT_FOUND, Call, DELETE_NOT_FOUND, FORWARD_NOT_FOUND, Failure, Scene, album,
    message_id, message_ids, reply,
};
use crate::http::contents::{Contents, File, FileKind, Query};
use crate::http::methods::{Content, Effect, Setting};
use crate::http::objects::{Fields, Message, OWNER, User, chat_full_info, me, member};
use crate::http::params::Params;
use crate::http::peers::{Bot, Chat, ChatId, ChatType};
use crate::http::written::Written;

/// Does what a call does, now that it has its effect. The result is what the client gets as `result`.
///
/// # Errors
///
/// What only turns out upstream, or has changed since the call was [checked](super::check).
pub fn perform(call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Written, Failure> {
    let params = call.params;
    let method = call.method;
    let value = match &method.effect {
        Effect::Send(content) => return send(*content, call, scene),
        Effect::Album => return send_album(call, scene),
        Effect::Forward | Effect::Copy if method.takes_messages() => return pass_on_all(call, scene),
        Effect::Forward | Effect::Copy => return pass_on_one(call, scene),
        Effect::Edit(_) if params.get("inline_message_id").is_some() => Value::Bool(true),
        Effect::Edit(part) => return edit(*part, call, scene),
        Effect::StopPoll => stop_poll(call, scene)?,
        Effect::Delete => delete(call, scene)?,
        Effect::AnswerCallbackQuery => answer_query(params, "callback_query_id", Query::Callback, scene)?,
        Effect::AnswerInlineQuery => answer_query(params, "inline_query_id", Query::Inline, scene)?,
        Effect::Set(setting) => set(setting, call, scene.contents)?,
        Effect::Unset(name) => {
            scene.contents.set(setting_key(name, call), None);
            Value::Bool(true)
        }
        Effect::Get(setting) => get(setting, call, scene),
        Effect::GetFile => get_file(params, scene.contents)?,
        Effect::UploadFile => upload_file(params, scene.contents),
        Effect::GetMe => me(scene.bot),
        Effect::GetChat => get_chat(call, scene.contents)?,
        Effect::GetChatMember => {
            member(scene.bot, call.chat.ok_or(CHAT_ID_EMPTY)?, params.integer("user_id").unwrap_or(OWNER))
        }
        Effect::GetChatAdministrators => administrators(scene.bot, call.chat.ok_or(CHAT_ID_EMPTY)?)?,
        Effect::GetChatMemberCount => {
            let is_private = call.chat.is_none_or(|chat| chat.r#type == ChatType::Private);
            json!(if is_private { 2 } else { 100 })
        }
        Effect::CreateForumTopic => {
            let mut topic = sample(call);
            topic["message_thread_id"] = scene.message_id.into();
            topic
        }
        Effect::Touch(_) | Effect::None => sample(call),
    };
    Ok(Written::new(&value))
}

/// Keeps a message, and hands it back.
pub(super) fn put(contents: &mut Contents, chat: ChatId, id: i64, message: &impl Serialize) -> Written {
    let message = Written::new(message);
    contents.put(chat, id, message.result());
    message
}

/// The buttons under a message. Other keyboards belong to the chat, and are not in the message.
pub(super) fn inline_keyboard(params: &Params) -> Option<Cow<'_, Value>> {
    params.json("reply_markup").filter(|markup| {
        markup.get("inline_keyboard").and_then(Value::as_array).is_some_and(|rows| !rows.is_empty())
    })
}

/// A message of the bot in the chat of the call, with all but its content.
fn new_message<'a>(message_id: i64, call: &Call<'a>, scene: &Scene<'a>) -> Result<Message<'a>, Failure> {
    let params = call.params;
    let chat = call.chat.ok_or(CHAT_ID_EMPTY)?;
    let mut message = Message::new(message_id, chat, scene.date).sent_by(User::bot(scene.bot));
    message.message_thread_id = params.integer("message_thread_id");
    if message.message_thread_id.is_some() && chat.r#type == ChatType::Supergroup {
        message.content.insert("is_topic_message".to_owned(), true.into());
    }
    if params.is_true("protect_content") {
        message.content.insert("has_protected_content".to_owned(), true.into());
    }
    if params.get("message_effect_id").is_some() {
        copy_texts(&mut message.content, params, &["message_effect_id"]);
        if let Some(effect) = message.content.shift_remove("message_effect_id") {
            message.content.insert("effect_id".to_owned(), effect);
        }
    }
    message.reply_to_message = reply(call)
        .filter(|reply| !reply.is_elsewhere)
        .and_then(|reply| scene.contents.fields(chat.id, reply.message_id))
        .map(|mut replied| {
            // Replies do not nest (core.telegram.org/bots/api#message).
            replied.shift_remove("reply_to_message");
            replied
        });
    message.reply_markup = inline_keyboard(params);
    Ok(message)
}

fn send(what: Content, call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Written, Failure> {
    let mut message = new_message(scene.message_id, call, scene)?;
    if what == Content::Text {
        message.text = call.params.text("text");
    }
    message.content.extend(content(what, call.params, scene.message_id, scene.contents));
    Ok(put(scene.contents, ChatId(message.chat.id), message.message_id, &message))
}

fn send_album(call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Written, Failure> {
    let items = album(call.params);
    let mut messages = Vec::with_capacity(items.len());
    for (id, item) in (scene.message_id..).zip(&items) {
        let mut message = new_message(id, call, scene)?;
        // One message has no group.
        if items.len() > 1 {
            message.content.insert("media_group_id".to_owned(), format!("13{:016}", scene.message_id).into());
        }
        let what = match item.text("type").as_deref() {
            Some("video") => Content::Video,
            Some("live_photo") => Content::LivePhoto,
            Some("document") => Content::Document,
            Some("audio") => Content::Audio,
            _ => Content::Photo,
        };
        message.content.extend(content(what, item, id, scene.contents));
        messages.push(put(scene.contents, ChatId(message.chat.id), id, &message));
    }
    Ok(Written::list(&messages))
}

/// Forwards or copies a message as the message `id`.
///
/// # Errors
///
/// `missing`, if it is gone; it is protected.
fn pass_on(
    source: i64,
    id: i64,
    missing: Failure,
    call: &Call<'_>,
    scene: &mut Scene<'_>,
) -> Result<Written, Failure> {
    let original = scene.contents.fields(from(call)?, source).ok_or(missing)?;
    if original.contains_key("has_protected_content") {
        return Err(Failure::bad_request(
            "Bad Request: message has protected content and can't be forwarded",
        ));
    }
    let is_copy = call.method.effect == Effect::Copy;
    let mut message = new_message(id, call, scene)?;
    message.content.extend(passed_on(original, !is_copy));
    if is_copy && call.params.get("caption").is_some() {
        message.content.shift_remove("caption");
        message.content.shift_remove("caption_entities");
        super::content::caption(&mut message.content, call.params);
    }
    Ok(put(scene.contents, ChatId(message.chat.id), id, &message))
}

fn pass_on_one(call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Written, Failure> {
    let is_copy = call.method.effect == Effect::Copy;
    let missing = if is_copy { COPY_NOT_FOUND } else { FORWARD_NOT_FOUND };
    let message = pass_on(message_id(call.params)?, scene.message_id, missing, call, scene)?;
    Ok(if is_copy { Written::new(&json!({ "message_id": scene.message_id })) } else { message })
}

/// Those that are gone are skipped (core.telegram.org/bots/api#forwardmessages).
fn pass_on_all(call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Written, Failure> {
    const NONE: Failure = Failure::bad_request("Bad Request: messages can't be forwarded");
    let mut ids = Vec::new();
    for source in message_ids(call.params)? {
        let id = scene.message_id + ids.len() as i64;
        if pass_on(source, id, NONE, call, scene).is_ok() {
            ids.push(json!({ "message_id": id }));
        }
    }
    if ids.is_empty() { Err(NONE) } else { Ok(Written::new(&ids)) }
}

fn delete(call: &Call<'_>, scene: &mut Scene<'_>) -> Result<Value, Failure> {
    let chat = call.chat.ok_or(CHAT_ID_EMPTY)?;
    if call.method.takes_messages() {
        // Those that are gone are skipped (core.telegram.org/bots/api#deletemessages).
        for id in message_ids(call.params)? {
            scene.contents.delete(chat.id, id);
        }
    } else if !scene.contents.delete(chat.id, message_id(call.params)?) {
        return Err(DELETE_NOT_FOUND);
    }
    Ok(Value::Bool(true))
}

/// The server writes `query ID`, or has written `query id`: teloxide 0.17 (`errors.rs`) knows the latter to the letter.
fn answer_query(params: &Params, id: &str, query: Query, scene: &Scene<'_>) -> Result<Value, Failure> {
    if scene.contents.may_answer(&params.text(id).unwrap_or_default(), query, scene.date) {
        return Ok(Value::Bool(true));
    }
    Err(Failure::bad_request(
        "Bad Request: query is too old and response timeout expired or query id is invalid",
    ))
}

/// Whom a setting is for: values differ by scope, language and chat.
fn setting_key(name: &str, call: &Call<'_>) -> String {
    let params = call.params;
    let scope = params.json("scope").filter(|scope| scope["type"] != "default");
    let scope = scope.map(|scope| scope.to_string()).unwrap_or_default();
    let language = params.text("language_code").unwrap_or_default();
    let chat = call.chat.map(|chat| chat.id.0).unwrap_or_default();
    format!("{name} {scope} {language} {chat} {}", params.is_true("for_channels"))
}

/// A setting is an object with the parameter that sets it.
fn set(setting: &Setting, call: &Call<'_>, contents: &mut Contents) -> Result<Value, Failure> {
    let params = call.params;
    let name = setting.value.as_deref().unwrap_or_default();
    let key = setting_key(&setting.setting, call);
    let value = params.json(name).filter(|value| value.is_array() || value.is_object());
    let value = value.map(Cow::into_owned).or_else(|| Some(params.text(name)?.into()));
    let value = value.filter(|value| *value != "").map(|value| json!({ name: value }));
    if setting.setting == "chatDescription" && contents.setting(&key) == value.as_ref() {
        return Err(Failure::bad_request("Bad Request: chat description is not modified"));
    }
    contents.set(key, value);
    Ok(Value::Bool(true))
}

fn get(setting: &Setting, call: &Call<'_>, scene: &Scene<'_>) -> Value {
    let mut result = call.method.sample.clone();
    if setting.setting == "myName" {
        result["name"] = scene.bot.first_name.as_str().into();
    }
    let kept = scene.contents.setting(&setting_key(&setting.setting, call));
    let value = kept.and_then(|kept| setting.value.as_ref().map_or(Some(kept), |name| kept.get(name)));
    match (&mut result, value) {
        (Value::Object(fields), Some(Value::Object(kept))) => fields.extend(kept.clone()),
        (_, Some(kept)) => result = kept.clone(),
        (_, None) => {}
    }
    result
}

fn file_fields(file: &File, id: &str) -> Fields {
    Fields::from_iter([
        ("file_id".to_owned(), id.into()),
        ("file_unique_id".to_owned(), file.unique_id(0).into()),
        ("file_size".to_owned(), file.size().into()),
    ])
}

fn get_file(params: &Params, contents: &Contents) -> Result<Value, Failure> {
    /// core.telegram.org/bots/api#getfile.
    const DOWNLOAD_MAX: usize = 20 << 20;
    let id = params.text("file_id").unwrap_or_default();
    let file = contents.file(&id).ok_or(Failure::bad_request("Bad Request: invalid file_id"))?;
    if file.size() > DOWNLOAD_MAX {
        return Err(Failure::bad_request("Bad Request: file is too big"));
    }
    let mut fields = file_fields(file, &id);
    fields.insert("file_path".to_owned(), file.path().into());
    Ok(fields.into())
}

fn upload_file(params: &Params, contents: &mut Contents) -> Value {
    let upload = params.file("sticker").cloned().unwrap_or_default();
    let file = contents.upload(File::uploaded(FileKind::Sticker, &upload));
    file_fields(file, &file.id(0)).into()
}

fn get_chat(call: &Call<'_>, contents: &Contents) -> Result<Value, Failure> {
    let mut info = chat_full_info(call.chat.ok_or(CHAT_ID_EMPTY)?);
    for name in ["chatTitle", "chatDescription", "chatPermissions"] {
        if let (Value::Object(fields), Some(Value::Object(kept))) =
            (&mut info, contents.setting(&setting_key(name, call)))
        {
            fields.extend(kept.clone());
        }
    }
    Ok(info)
}

fn administrators(bot: &Bot, chat: &Chat) -> Result<Value, Failure> {
    if chat.r#type == ChatType::Private {
        return Err(Failure::bad_request("Bad Request: there are no administrators in the private chat"));
    }
    Ok([member(bot, chat, OWNER), member(bot, chat, bot.id)].into_iter().collect())
}

/// The sample of a method, with what the call says of its simple fields.
fn sample(call: &Call<'_>) -> Value {
    let mut sample = call.method.sample.clone();
    for (name, value) in sample.as_object_mut().into_iter().flatten() {
        if call.params.get(name).is_none() {
            continue;
        }
        let said = match value {
            Value::String(_) => call.params.text(name).map(Into::into),
            Value::Number(_) => call.params.integer(name).map(Into::into),
            Value::Bool(_) => Some(call.params.is_true(name).into()),
            _ => None,
        };
        if let Some(said) = said {
            *value = said;
        }
    }
    sample
}
