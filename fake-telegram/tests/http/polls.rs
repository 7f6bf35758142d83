//! `getUpdates`, and the calls that are refused for what they are.

use fake_telegram::http::options::Options;
use serde_json::{Value, json};

use crate::fake::{BOT, Fake};

const OTHER: &str =
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
const HOOKED: &str = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";

fn ids(updates: &Value) -> Vec<i64> {
    updates
        .as_array()
        .expect("a list")
        .iter()
        .map(|update| update["update_id"].as_i64().expect("an id"))
        .collect()
}

async fn write(fake: &Fake, text: &str) {
    let act = json!({ "token": BOT, "chat": 7001, "action": "write", "text": text });
    fake.tell("users", act).await;
}

/// telegram.md 2.3: the first conflict is answered at once, further ones within 3 s are held for 3 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_poller_ends_the_first_at_once_and_the_third_the_second_after_its_hold() {
    let fake = Fake::frozen();
    let poll = || fake.call("getUpdates", json!({ "timeout": 50 }));
    let in_flight = |count: u64| move |state: &Value| state["bots"][0]["in_flight"] == count;
    let (first, second, third) = tokio::join!(
        poll(),
        async {
            fake.until("the first polls", in_flight(1)).await;
            poll().await
        },
        async {
            fake.until("the first polls", in_flight(1)).await;
            // The second has come when the first has gone.
            fake.until("the second ended the first", |state| state["calls"] == 1).await;
            let (third, ()) = tokio::join!(poll(), async {
                fake.until("the third polls", in_flight(2)).await;
                fake.advance("2s").await;
                assert_eq!(fake.look("state").await["calls"], 1, "the second is still held");
                fake.advance("1s").await;
                fake.until("the second has its answer", in_flight(1)).await;
                write(&fake, "hello").await;
            });
            third
        }
    );
    assert_eq!(first.failure(), (409, OTHER));
    assert_eq!(second.failure(), (409, OTHER));
    assert_eq!(ids(third.result()), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_polls_beside_a_webhook() {
    let fake = Fake::frozen();
    let set = fake.call("setWebhook", json!({ "url": "http://127.0.0.1:9/" })).await;
    assert_eq!(set.text, r#"{"ok":true,"result":true,"description":"Webhook was set"}"#);
    assert_eq!(fake.call("getUpdates", json!({})).await.failure(), (409, HOOKED));
    let (again, ()) = tokio::join!(fake.call("getUpdates", json!({})), async {
        fake.until("it is held", |state| state["bots"][0]["in_flight"] == 1).await;
        fake.advance("3s").await;
    });
    assert_eq!(again.failure(), (409, HOOKED));
    let gone = fake.call("deleteWebhook", json!({})).await;
    assert_eq!(gone.text, r#"{"ok":true,"result":true,"description":"Webhook was deleted"}"#);
    assert_eq!(ids(fake.call("getUpdates", json!({})).await.result()), [0; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_come_by_offset_and_limit_and_as_soon_as_they_are_there() {
    let fake = Fake::running();
    for text in ["one", "two", "three"] {
        write(&fake, text).await;
    }
    let get = |params: Value| fake.call("getUpdates", params);
    assert_eq!(ids(get(json!({ "limit": 2 })).await.result()), [1, 2]);
    // As text, and in the query, too.
    let by_query = fake.client().get(format!("{}/bot{BOT}/getUpdates?offset=2&limit=1", fake.base()));
    let answer = crate::fake::Answer::of(by_query.send().await.expect("an answer")).await;
    assert_eq!(ids(answer.result()), [2], "1 is confirmed");
    assert_eq!(answer.result()[0]["message"]["text"], "two");
    assert_eq!(ids(get(json!({ "offset": -1 })).await.result()), [3], "the last one");
    let (later, ()) = tokio::join!(get(json!({ "offset": 4, "timeout": 50 })), async {
        fake.until("it polls", |state| state["bots"][0]["in_flight"] == 1).await;
        write(&fake, "four").await;
    });
    assert_eq!(ids(later.result()), [4]);
    assert_eq!(later.result()[0]["message"]["from"]["id"], 7001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bot_gets_the_kinds_that_it_asked_for() {
    let fake = Fake::frozen();
    fake.call("getUpdates", json!({ "allowed_updates": ["callback_query"] })).await.result();
    write(&fake, "not wanted").await;
    let tap = json!({ "token": BOT, "chat": 7001, "action": "tap", "message_id": 1, "data": "yes" });
    assert_eq!(fake.tell("users", tap).await["update_ids"].as_array().map(Vec::len), Some(1));
    let updates = fake.call("getUpdates", json!({})).await;
    assert_eq!(updates.result()[0]["callback_query"]["data"], "yes");
    assert_eq!(updates.result().as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_whose_client_hangs_up_is_no_conflict() {
    let fake = Fake::frozen();
    let url = format!("{}/bot{BOT}/getUpdates?timeout=50", fake.base());
    let poll = tokio::spawn(fake.client().get(url).send());
    fake.until("it polls", |state| state["bots"][0]["in_flight"] == 1).await;
    poll.abort();
    fake.until("the poll has ended", |state| state["bots"][0]["in_flight"] == 0).await;
    write(&fake, "hello").await;
    assert_eq!(ids(fake.call("getUpdates", json!({})).await.result()), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strict_server_knows_only_its_tokens() {
    let fake = Fake::with(Options { strict: true, tokens: vec![BOT.to_owned()], ..Options::default() });
    fake.call("getMe", json!({})).await.result();
    let unknown = fake.call_by("110000:AAother", "getMe", json!({})).await;
    assert_eq!(unknown.text, r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#);
    let file = fake.client().get(format!("{}/file/bot110000:AAother/a", fake.base())).send().await;
    assert_eq!(file.expect("an answer").status(), 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_not_found() {
    let fake = Fake::frozen();
    let get = async |path: &str| {
        let response = fake.client().get(format!("{}{path}", fake.base())).send().await;
        crate::fake::Answer::of(response.expect("an answer")).await
    };
    for path in ["/", "/bot", "/bots", "/bot1/getMe", "/botx:y/getMe", "/bot0:abc/getMe", "/favicon.ico"] {
        assert_eq!(get(path).await.failure(), (404, "Not Found"), "{path}");
    }
    let unknown = get("/bot1:a/sendNothing").await;
    assert_eq!(unknown.failure(), (404, "Not Found: method not found"));
    assert_eq!(get("/bot1:a/").await.failure(), (404, "Not Found: method not found"));
    assert_eq!(get("/bot1:a/?method=getMe").await.result()["id"], 1);
    assert_eq!(get("/bot1:a/test/GETME").await.result()["id"], 1);
    assert_eq!(get("/file/bot1:a/photos/file_0.jpg").await.failure(), (404, "Not Found"));
    let admin = get("/__admin/nothing").await;
    assert_eq!(admin.status, 404);
    assert!(admin.text.contains("journal"), "it says what there is: {}", admin.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_get_telegrams_words() {
    let fake = Fake::with(Options { frozen: true, declared_chats_only: true, ..Options::default() });
    fake.tell("chats", json!([{ "chat": 7001 }])).await;
    let long = "x".repeat(4_097);
    for (method, params, description) in [
        ("sendMessage", json!({ "chat_id": 7001 }), "Bad Request: message text is empty"),
        ("sendMessage", json!({ "text": "x" }), "Bad Request: chat_id is empty"),
        ("sendMessage", json!({ "chat_id": 7002, "text": "x" }), "Bad Request: chat not found"),
        ("sendMessage", json!({ "chat_id": "@nobody", "text": "x" }), "Bad Request: chat not found"),
        ("sendMessage", json!({ "chat_id": 7001, "text": long }), "Bad Request: message is too long"),
        (
            "sendMessage",
            json!({ "chat_id": 7001, "text": "x", "reply_to_message_id": 9 }),
            "Bad Request: message to be replied not found",
        ),
        (
            "editMessageText",
            json!({ "chat_id": 7001, "message_id": 9, "text": "x" }),
            "Bad Request: message to edit not found",
        ),
        (
            "deleteMessage",
            json!({ "chat_id": 7001, "message_id": 9 }),
            "Bad Request: message to delete not found",
        ),
        (
            "sendChatAction",
            json!({ "chat_id": 7001, "action": "dancing" }),
            "Bad Request: wrong parameter action in request",
        ),
        (
            "sendMediaGroup",
            json!({ "chat_id": 7001, "media": [] }),
            "Bad Request: there are no messages to send",
        ),
        ("getFile", json!({}), "Bad Request: file_id not specified"),
        (
            "setWebhook",
            json!({ "url": "http://127.0.0.1/", "secret_token": "not allowed" }),
            "Bad Request: secret token contains unallowed characters",
        ),
    ] {
        let answer = fake.call(method, params.clone()).await;
        assert_eq!(answer.failure(), (400, description), "{method} {params}");
    }
    let id = fake.send(7001, "same").await;
    let same =
        fake.call("editMessageText", json!({ "chat_id": 7001, "message_id": id, "text": "same" })).await;
    let description = "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message";
    assert_eq!(same.failure(), (400, description));
}
