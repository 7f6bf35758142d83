//! What methods mean, against the documentation and the texts of the open server.

use fake_telegram::http::answers::{Call, Scene, check, check_messages, items, perform};
use fake_telegram::http::contents::{Capacity, Contents, Query};
use fake_telegram::http::failure::Failure;
use fake_telegram::http::methods::{MethodInfo, Methods};
use fake_telegram::http::objects::{Message, User};
use fake_telegram::http::params::{Params, Upload};
use fake_telegram::http::peers::{Bot, Chat, ChatId, ChatType};
use fake_telegram::http::written::Written;
use proptest::prelude::*;
use serde_json::{Value, json};

const PRIVATE: i64 = 7;
const GROUP: i64 = -7;
const CHANNEL: i64 = -1_000_000_000_007;

/// A bot, what it knows, and the next id.
struct World {
    methods: Methods,
    bot: Bot,
    contents: Contents,
    next_id: i64,
    date: i64,
}

impl World {
    fn new() -> Self {
        Self::with(Capacity::default())
    }

    fn with(capacity: Capacity) -> Self {
        let bot = Bot::new(110);
        let contents = Contents::new(&bot, capacity);
        Self { methods: Methods::load(), bot, contents, next_id: 1, date: 1_700_000_000 }
    }

    fn call(&mut self, name: &str, params: &Value) -> Result<Value, Failure> {
        self.call_with(name, &with(params))
    }

    fn call_with(&mut self, name: &str, params: &Params) -> Result<Value, Failure> {
        let method = self.methods.find(name).expect("a method").clone();
        let chat = peer(&method.chat, params);
        let from = peer(&method.from, params);
        let call = Call { method: &method, params, chat: chat.as_ref(), from: from.as_ref() };
        check(&call)?;
        check_messages(&call, &self.contents)?;
        let message_id = self.next_id;
        self.next_id += i64::from(items(&method, params));
        let mut scene = Scene { bot: &self.bot, message_id, date: self.date, contents: &mut self.contents };
        let result = perform(&call, &mut scene)?;
        Ok(serde_json::from_slice(&result.result()).expect("JSON"))
    }

    fn send(&mut self, chat_id: i64, text: &str) -> i64 {
        let message = self.call("sendMessage", &json!({ "chat_id": chat_id, "text": text })).expect("sent");
        message["message_id"].as_i64().expect("an id")
    }

    /// What the bot is told when a call fails.
    fn refusal(&mut self, name: &str, params: &Value) -> String {
        let failure = self.call(name, params).expect_err("refused");
        assert_eq!(failure.code, 400);
        failure.description.into_owned()
    }
}

fn peer(parameter: &Option<String>, params: &Params) -> Option<Chat> {
    let id = params.integer(parameter.as_ref()?)?;
    let r#type = if id == CHANNEL { ChatType::Channel } else { ChatId(id).guess() };
    Some(Chat { id: ChatId(id), r#type, username: None })
}

fn with(values: &Value) -> Params {
    let mut params = Params::default();
    for (name, value) in values.as_object().expect("an object") {
        params.set(name.as_str(), value.clone());
    }
    params
}

fn upload(bytes: &[u8]) -> Upload {
    Upload { file_name: Some("a.png".to_owned()), content_type: None, bytes: bytes.to_vec().into() }
}

/// Texts: `tdlib/telegram-bot-api` at 01a3679 and `tdlib/td` at 022d602; teloxide-core 0.13 `errors.rs`.
#[test]
fn what_cannot_be_sent_is_refused_in_the_servers_words() {
    let mut world = World::new();
    let id = world.send(PRIVATE, "there");
    let photo = world.call("sendPhoto", &json!({ "chat_id": PRIVATE, "photo": "known" })).expect("sent");
    let photo = &photo["message_id"];
    let long = "я".repeat(4_097);
    let items = |count: usize, r#type: &str| vec![json!({ "type": r#type, "media": "known" }); count];
    let mixed = [items(1, "photo"), items(1, "document")].concat();
    let refusals = [
        ("sendMessage", json!({ "text": "a" }), "chat_id is empty"),
        ("sendMessage", json!({ "chat_id": 7 }), "message text is empty"),
        ("sendMessage", json!({}), "message text is empty"),
        ("sendMessage", json!({ "chat_id": 7, "text": " \n" }), "text must be non-empty"),
        ("sendMessage", json!({ "chat_id": 7, "text": long }), "message is too long"),
        (
            "sendMessage",
            json!({ "chat_id": 7, "text": "a", "parse_mode": "bbcode" }),
            "unsupported parse_mode",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 7, "text": "a", "reply_to_message_id": 99 }),
            "message to be replied not found",
        ),
        (
            "sendMessage",
            json!({ "chat_id": 7, "text": "a", "reply_parameters": "{\"message_id\": 99}" }),
            "message to be replied not found",
        ),
        ("sendPhoto", json!({ "chat_id": 7 }), "there is no photo in the request"),
        ("sendPhoto", json!({ "chat_id": 7, "photo": "no id" }), "wrong file identifier/HTTP URL specified"),
        (
            "sendPhoto",
            json!({ "chat_id": 7, "photo": "known", "caption": "a".repeat(1_025) }),
            "message caption is too long",
        ),
        ("sendMediaGroup", json!({ "chat_id": 7, "media": [] }), "there are no messages to send"),
        ("sendMediaGroup", json!({ "chat_id": 7 }), "there are no messages to send"),
        (
            "sendMediaGroup",
            json!({ "chat_id": 7, "media": items(11, "photo") }),
            "too many messages to send as an album",
        ),
        (
            "sendMediaGroup",
            json!({ "chat_id": 7, "media": mixed }),
            "can't use the media of the specified type in the album",
        ),
        ("sendChatAction", json!({ "chat_id": 7, "action": "sleep" }), "wrong parameter action in request"),
        ("sendContact", json!({ "chat_id": 7, "first_name": "A" }), "parameter \"phone_number\" is required"),
        ("editMessageText", json!({ "chat_id": 7, "text": "a" }), "message identifier is not specified"),
        ("editMessageText", json!({ "message_id": 1, "text": "a" }), "chat_id is empty"),
        (
            "editMessageText",
            json!({ "chat_id": 7, "message_id": 99, "text": "a" }),
            "message to edit not found",
        ),
        (
            "editMessageText",
            json!({ "chat_id": 7, "message_id": photo, "text": "a" }),
            "there is no text in the message to edit",
        ),
        (
            "editMessageCaption",
            json!({ "chat_id": 7, "message_id": id, "caption": "a" }),
            "there is no caption in the message to edit",
        ),
        (
            "editMessageText",
            json!({ "chat_id": 7, "message_id": id, "text": "there" }),
            "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
        ),
        ("deleteMessage", json!({ "chat_id": 7, "message_id": 99 }), "message to delete not found"),
        (
            "deleteMessages",
            json!({ "chat_id": 7, "message_ids": [] }),
            "message identifiers are not specified",
        ),
        (
            "forwardMessage",
            json!({ "chat_id": 7, "from_chat_id": -7, "message_id": id }),
            "message to forward not found",
        ),
        (
            "copyMessage",
            json!({ "chat_id": 7, "from_chat_id": -7, "message_id": id }),
            "message to copy not found",
        ),
        (
            "forwardMessages",
            json!({ "chat_id": 7, "from_chat_id": 7, "message_ids": [98, 99] }),
            "messages can't be forwarded",
        ),
        ("pinChatMessage", json!({ "chat_id": 7, "message_id": 99 }), "message to pin not found"),
        ("setMessageReaction", json!({ "chat_id": 7, "message_id": 99 }), "message to react not found"),
        ("stopPoll", json!({ "chat_id": 7, "message_id": 99 }), "message with poll to stop not found"),
        ("stopPoll", json!({ "chat_id": 7, "message_id": id }), "message is not a poll"),
        ("getFile", json!({}), "file_id not specified"),
        ("getFile", json!({ "file_id": "unknown" }), "invalid file_id"),
        ("getChatMember", json!({ "chat_id": 7 }), "invalid user_id specified"),
        ("getChatAdministrators", json!({ "chat_id": 7 }), "there are no administrators in the private chat"),
        (
            "answerCallbackQuery",
            json!({ "callback_query_id": "1" }),
            "query is too old and response timeout expired or query id is invalid",
        ),
        (
            "answerInlineQuery",
            json!({ "inline_query_id": "1", "results": [] }),
            "query is too old and response timeout expired or query id is invalid",
        ),
        (
            "sendMediaGroup",
            json!({ "chat_id": 7, "media": [{ "type": "photo", "media": "AgACAg" }, { "type": "photo" }] }),
            "wrong file identifier/HTTP URL specified",
        ),
        (
            "sendMediaGroup",
            json!({ "chat_id": 7, "media": [{ "type": "photo", "media": "attach://nope" }] }),
            "wrong file identifier/HTTP URL specified",
        ),
        (
            "editMessageMedia",
            json!({ "chat_id": 7, "message_id": id, "media": { "type": "photo", "media": "attach://nope" } }),
            "wrong file identifier/HTTP URL specified",
        ),
        (
            "sendPoll",
            json!({ "chat_id": 7, "question": "?", "options": "x" }),
            "can't parse options JSON object",
        ),
        (
            "sendPoll",
            json!({ "chat_id": 7, "question": "?", "options": { "text": "x" } }),
            "expected an Array of InputPollOption",
        ),
        (
            "sendPoll",
            json!({ "chat_id": 7, "question": "?", "options": ["x", {}] }),
            "can't parse InputPollOption: Can't find field \"text\"",
        ),
        (
            "sendPoll",
            json!({ "chat_id": 7, "question": "?", "options": [1] }),
            "can't parse InputPollOption: Expected InputPollOption to be an Object",
        ),
    ];
    for (method, params, description) in refusals {
        assert_eq!(world.refusal(method, &params), format!("Bad Request: {description}"), "{method}");
    }
}

#[test]
fn texts_come_back_as_they_went() {
    let mut world = World::new();
    let longest = "я".repeat(4_096);
    for text in ["👩‍👩‍👧 e\u{301} + & = % ;\n", longest.as_str()] {
        let message = world.call("sendMessage", &json!({ "chat_id": PRIVATE, "text": text })).expect("sent");
        assert_eq!(message["text"], text);
        assert_eq!(message["date"], world.date);
    }
    let markup = json!({ "inline_keyboard": [[{ "text": "a", "callback_data": "b" }]] });
    let entities = json!([{ "type": "bold", "offset": 0, "length": 1 }]);
    let nested = json!({ "chat_id": 7, "text": "a", "reply_markup": markup, "entities": entities });
    let as_text = json!({ "chat_id": "7", "text": "a", "reply_markup": markup.to_string(), "entities": entities.to_string() });
    for params in [nested, as_text] {
        let message = world.call("sendMessage", &params).expect("sent");
        assert_eq!((&message["reply_markup"], &message["entities"]), (&markup, &entities));
    }
    let keyboard = json!({ "keyboard": [[{ "text": "a" }]] });
    let params = json!({ "chat_id": 7, "text": "a", "reply_markup": keyboard });
    let message = world.call("sendMessage", &params).expect("sent");
    assert!(message.get("reply_markup").is_none(), "keyboards belong to the chat");
}

#[test]
fn an_edit_changes_the_message_and_takes_its_buttons() {
    let mut world = World::new();
    let markup = json!({ "inline_keyboard": [[{ "text": "a", "callback_data": "b" }]] });
    let sent = json!({ "chat_id": 7, "text": "before", "reply_markup": markup });
    let sent = world.call("sendMessage", &sent).expect("sent");
    world.date += 60;
    let change = json!({ "chat_id": 7, "message_id": sent["message_id"], "text": "after ✏" });
    let edited = world.call("editMessageText", &change).expect("edited");
    let mut expected = sent.clone();
    expected["text"] = "after ✏".into();
    expected["edit_date"] = world.date.into();
    expected.as_object_mut().expect("an object").remove("reply_markup");
    assert_eq!(edited, expected);
    let forwarded = json!({ "chat_id": GROUP, "from_chat_id": 7, "message_id": sent["message_id"] });
    assert_eq!(world.call("forwardMessage", &forwarded).expect("forwarded")["text"], "after ✏");
    let inline = json!({ "inline_message_id": "x", "text": "a" });
    assert_eq!(world.call("editMessageText", &inline), Ok(Value::Bool(true)));
}

#[test]
fn messages_of_others_are_there_and_not_the_bots() {
    let mut world = World::new();
    let chat = Chat { id: ChatId(PRIVATE), r#type: ChatType::Private, username: None };
    let mut message = Message::new(50, &chat, world.date).sent_by(User::person(PRIVATE));
    message.text = Some("hello".into());
    world.contents.put(chat.id, 50, Written::new(&message).result());
    world.next_id = 51;
    let change = json!({ "chat_id": 7, "message_id": 50, "text": "a" });
    assert_eq!(world.refusal("editMessageText", &change), "Bad Request: message can't be edited");
    let params = json!({ "chat_id": 7, "text": "a", "reply_parameters": { "message_id": 50 } });
    let first = world.call("sendMessage", &params).expect("sent");
    assert_eq!(first["reply_to_message"]["text"], "hello");
    let params = json!({ "chat_id": 7, "text": "b", "reply_to_message_id": first["message_id"] });
    let second = world.call("sendMessage", &params).expect("sent");
    assert_eq!(second["reply_to_message"]["text"], "a");
    assert!(second["reply_to_message"].get("reply_to_message").is_none(), "replies do not nest");
    let params =
        json!({ "chat_id": 7, "text": "c", "reply_to_message_id": 99, "allow_sending_without_reply": true });
    assert!(world.call("sendMessage", &params).expect("sent").get("reply_to_message").is_none());
}

#[test]
fn an_album_is_so_many_messages_of_one_group() {
    let mut world = World::new();
    let media = json!([
        { "type": "photo", "media": "attach://one", "caption": "first" },
        { "type": "video", "media": "https://example.com/a.mp4?x=1" },
    ]);
    let mut params = with(&json!({ "chat_id": GROUP, "media": media.to_string() }));
    params.attach("one", upload(b"png"));
    let album = world.call_with("sendMediaGroup", &params).expect("sent");
    assert_eq!(items(world.methods.find("sendMediaGroup").expect("a method"), &params), 2);
    assert_eq!((&album[0]["message_id"], &album[1]["message_id"]), (&json!(1), &json!(2)));
    assert_eq!(world.send(GROUP, "next"), 3);
    assert!(album[0]["media_group_id"].is_string());
    assert_eq!(album[0]["media_group_id"], album[1]["media_group_id"]);
    assert_eq!(album[0]["caption"], "first");
    assert_eq!(album[0]["photo"][0]["file_size"], 3);
    assert_eq!(album[1]["video"]["file_name"], "a.mp4");
}

#[test]
fn what_was_uploaded_can_be_downloaded_and_sent_again() {
    let mut world = World::new();
    let mut params = with(&json!({ "chat_id": PRIVATE, "photo": "" }));
    params.attach("photo", upload(b"the picture"));
    let sent = world.call_with("sendPhoto", &params).expect("sent");
    for size in sent["photo"].as_array().expect("sizes") {
        let file = world.call("getFile", &json!({ "file_id": size["file_id"] })).expect("a file");
        assert_eq!(file["file_id"], size["file_id"]);
        let path = file["file_path"].as_str().expect("a path");
        assert_eq!(world.contents.file_at(path).expect("there").bytes, "the picture");
    }
    let again = json!({ "chat_id": PRIVATE, "photo": sent["photo"][0]["file_id"] });
    assert_eq!(world.call("sendPhoto", &again).expect("sent")["photo"], sent["photo"]);

    // core.telegram.org/bots/api#getfile: bots can download up to 20 MB.
    for (size, result) in [(20 << 20, true), ((20 << 20) + 1, false)] {
        let mut params = with(&json!({ "chat_id": PRIVATE }));
        params.attach("document", upload(&vec![0; size]));
        let sent = world.call_with("sendDocument", &params).expect("sent");
        let file = world.call("getFile", &json!({ "file_id": sent["document"]["file_id"] }));
        assert_eq!(file.is_ok(), result);
        if let Err(failure) = file {
            assert_eq!(failure.description, "Bad Request: file is too big");
        }
    }
}

#[test]
fn forwards_say_where_they_are_from_and_copies_do_not() {
    let mut world = World::new();
    let post = world.send(CHANNEL, "news");
    let params = json!({ "chat_id": PRIVATE, "from_chat_id": CHANNEL, "message_id": post });
    let forwarded = world.call("forwardMessage", &params).expect("forwarded");
    let origin = &forwarded["forward_origin"];
    assert_eq!((&origin["type"], &origin["message_id"]), (&json!("channel"), &json!(post)));
    assert_eq!(origin["chat"]["id"], CHANNEL);
    let params = json!({ "chat_id": GROUP, "from_chat_id": PRIVATE, "message_id": forwarded["message_id"] });
    let again = world.call("forwardMessage", &params).expect("forwarded");
    assert_eq!(&again["forward_origin"], origin, "it stays that of the first");
    let copied = world.call("copyMessage", &params).expect("copied");
    assert_eq!(copied.as_object().map(serde_json::Map::len), Some(1), "a MessageId");
    let copy = world.contents.fields(ChatId(GROUP), copied["message_id"].as_i64().expect("an id"));
    let copy = copy.expect("it is there");
    assert_eq!((copy.get("forward_origin"), &copy["text"]), (None, &json!("news")));

    let list = json!({ "chat_id": GROUP, "from_chat_id": CHANNEL, "message_ids": [post, 999, post] });
    let ids = world.call("forwardMessages", &list).expect("forwarded");
    assert_eq!(ids.as_array().map(Vec::len), Some(2), "what is gone is skipped");
    let secret = json!({ "chat_id": CHANNEL, "text": "secret", "protect_content": true });
    let secret = world.call("sendMessage", &secret).expect("sent");
    let params = json!({ "chat_id": GROUP, "from_chat_id": CHANNEL, "message_id": secret["message_id"] });
    let refusal = world.refusal("forwardMessage", &params);
    assert_eq!(refusal, "Bad Request: message has protected content and can't be forwarded");
}

#[test]
fn what_is_deleted_is_gone_and_the_oldest_is_forgotten() {
    let mut world = World::with(Capacity { entries: 3, ..Capacity::default() });
    let id = world.send(PRIVATE, "a");
    let params = json!({ "chat_id": PRIVATE, "message_id": id });
    assert_eq!(world.call("deleteMessage", &params), Ok(Value::Bool(true)));
    assert_eq!(world.refusal("deleteMessage", &params), "Bad Request: message to delete not found");
    let oldest = world.send(PRIVATE, "b");
    for _ in 0..3 {
        world.send(PRIVATE, "c");
    }
    let params = json!({ "chat_id": PRIVATE, "message_ids": [oldest, oldest + 1] });
    assert_eq!(world.call("deleteMessages", &params), Ok(Value::Bool(true)), "what is gone is skipped");
    assert!(world.contents.message(ChatId(PRIVATE), oldest + 1).is_none());
    assert!(world.contents.message(ChatId(PRIVATE), oldest + 2).is_some());
}

#[test]
fn a_poll_closes_once() {
    let mut world = World::new();
    let poll = json!({ "chat_id": GROUP, "question": "Which?", "options": "[\"a\", {\"text\": \"b\"}]" });
    let message = world.call("sendPoll", &poll).expect("sent");
    assert_eq!(message["poll"]["options"][1]["text"], "b");
    let params = json!({ "chat_id": GROUP, "message_id": message["message_id"] });
    let closed = world.call("stopPoll", &params).expect("closed");
    assert_eq!((&closed["id"], &closed["is_closed"]), (&message["poll"]["id"], &json!(true)));
    assert_eq!(world.refusal("stopPoll", &params), "Bad Request: poll has already been closed");
}

#[test]
fn taps_that_the_server_told_of_can_be_answered() {
    let mut world = World::new();
    world.contents.add_query("77", Query::Callback, world.date + 15);
    world.contents.add_query("78", Query::Inline, world.date + 15);
    let callback = json!({ "callback_query_id": "77", "text": "ok" });
    let inline = json!({ "inline_query_id": "78", "results": [] });
    for age in [0, 15] {
        world.date += age;
        assert_eq!(world.call("answerCallbackQuery", &callback), Ok(Value::Bool(true)));
        assert_eq!(world.call("answerInlineQuery", &inline), Ok(Value::Bool(true)));
    }
    world.date += 1;
    let old = "Bad Request: query is too old and response timeout expired or query id is invalid";
    assert_eq!(world.refusal("answerCallbackQuery", &callback), old);
    assert_eq!(world.refusal("answerInlineQuery", &inline), old);
    // Each kind has its own method.
    world.contents.add_query("79", Query::Inline, world.date + 15);
    assert_eq!(world.refusal("answerCallbackQuery", &json!({ "callback_query_id": "79" })), old);
}

#[test]
fn getters_tell_what_setters_set() {
    let mut world = World::new();
    world.call("setChatTitle", &json!({ "chat_id": GROUP, "title": "News" })).expect("set");
    assert_eq!(world.call("getChat", &json!({ "chat_id": GROUP })).expect("known")["title"], "News");
    let commands = json!([{ "command": "start", "description": "Begins" }]);
    let german = json!({ "commands": commands, "language_code": "de", "scope": "{\"type\": \"default\"}" });
    world.call("setMyCommands", &german).expect("set");
    assert_eq!(world.call("getMyCommands", &json!({})), Ok(json!([])));
    assert_eq!(world.call("getMyCommands", &json!({ "language_code": "de" })), Ok(commands));
    world.call("deleteMyCommands", &json!({ "language_code": "de" })).expect("deleted");
    assert_eq!(world.call("getMyCommands", &json!({ "language_code": "de" })), Ok(json!([])));

    assert_eq!(world.call("getMyName", &json!({})), Ok(json!({ "name": "Fake bot 110" })));
    world.call("setMyName", &json!({ "name": "Ann" })).expect("set");
    assert_eq!(world.call("getMyName", &json!({})), Ok(json!({ "name": "Ann" })));

    let button = json!({ "type": "web_app", "text": "Open", "web_app": { "url": "https://example.com/" } });
    world.call("setChatMenuButton", &json!({ "chat_id": PRIVATE, "menu_button": button })).expect("set");
    assert_eq!(world.call("getChatMenuButton", &json!({ "chat_id": PRIVATE })), Ok(button));
    assert_eq!(world.call("getChatMenuButton", &json!({})), Ok(json!({ "type": "default" })));

    world
        .call("setMyDefaultAdministratorRights", &json!({ "rights": { "can_manage_chat": true } }))
        .expect("set");
    let rights = world.call("getMyDefaultAdministratorRights", &json!({})).expect("rights");
    assert_eq!((&rights["can_manage_chat"], &rights["can_change_info"]), (&json!(true), &json!(false)));

    let description = json!({ "chat_id": GROUP, "description": "Of old" });
    world.call("setChatDescription", &description).expect("set");
    assert_eq!(world.call("getChat", &json!({ "chat_id": GROUP })).expect("a chat")["description"], "Of old");
    let refusal = world.refusal("setChatDescription", &description);
    assert_eq!(refusal, "Bad Request: chat description is not modified");
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![
            json!(0),
            json!(-1),
            json!(1),
            json!(i64::MAX),
            json!(1.5),
            json!(u64::MAX)
        ]),
        prop::sample::select(vec!["", "1", "attach://x", "[", "[1]", "{\"type\":\"photo\"}", "🦀", "<b>"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let name =
            prop::sample::select(vec!["type", "media", "message_id", "inline_keyboard", "text", "title"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    /// Whatever a client passes, there is an answer, a refusal is a 400, and no result has a null.
    #[test]
    fn no_parameters_do_harm(
        values in prop::collection::vec(junk(), 8),
        chat_id in prop::sample::select(vec![PRIVATE, GROUP, CHANNEL]),
        message_id in 1..4_i64,
    ) {
        let mut world = World::new();
        let photo = json!({ "chat_id": chat_id, "photo": "known" });
        world.send(chat_id, "one");
        world.call("sendPhoto", &photo).expect("sent");
        let methods: Vec<MethodInfo> = world.methods.iter().cloned().collect();
        for method in methods {
            let mut params = Params::default();
            let more = ["text", "caption", "media", "reply_markup", "reply_parameters", "scope", "message_ids"];
            let names = method.required.iter().map(String::as_str).chain(more);
            for (name, value) in names.zip(values.iter().cycle()) {
                params.set(name, value.clone());
            }
            params.set("chat_id", chat_id.into());
            params.set("from_chat_id", chat_id.into());
            params.set("message_id", message_id.into());
            params.attach("x", upload(b"x"));
            match world.call_with(method.name, &params) {
                Ok(result) => prop_assert!(!has_null(&result), "{}: {result}", method.name),
                Err(failure) => prop_assert_eq!(failure.code, 400),
            }
        }
    }
}
