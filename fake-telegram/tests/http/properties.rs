//! Whatever anybody sends: the server lives, and every body says `ok`.

use std::sync::{Arc, OnceLock};

use fake_telegram::http::methods::Methods;
use fake_telegram::http::options::Options;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::fake::{Answer, BOT, Fake};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Any JSON, with what calls are made of.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-20_i64..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(7001)),
        Just(json!(-5001)),
        Just(json!("@name")),
        Just(json!("attach://file")),
        Just(json!("photo")),
        Just(json!("http://127.0.0.1:9/")),
        "[ -~]{0,12}".prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{1,10}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

const NAMES: [&str; 34] = [
    "chat_id",
    "from_chat_id",
    "text",
    "caption",
    "message_id",
    "message_ids",
    "media",
    "photo",
    "document",
    "question",
    "options",
    "reply_parameters",
    "reply_to_message_id",
    "reply_markup",
    "parse_mode",
    "entities",
    "offset",
    "limit",
    "allowed_updates",
    "url",
    "secret_token",
    "max_connections",
    "callback_query_id",
    "file_id",
    "user_id",
    "action",
    "latitude",
    "phone_number",
    "emoji",
    "name",
    "commands",
    "scope",
    "inline_message_id",
    "method",
];

fn any_params() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    prop::collection::vec((prop::sample::select(&NAMES[..]), any_json()), 0..8)
}

/// Any method with any parameters, as JSON and as a form.
#[test]
fn every_call_gets_an_answer() {
    static METHODS: OnceLock<Vec<String>> = OnceLock::new();
    let methods =
        METHODS.get_or_init(|| Methods::load().iter().map(|method| method.name.to_owned()).collect());
    let runtime = runtime();
    // No limits, so that calls get as far as they can; and no time that is worth a word, where calls are held.
    let profile = fake_telegram::profile::Profile::unlimited();
    let fake =
        runtime.block_on(async { Fake::with(Options { profile, speed: 1_000, ..Options::default() }) });
    let cases = (prop::sample::select(&methods[..]), any_params(), any::<bool>());
    let ran = TestRunner::new(config(1_500)).run(&cases, |(method, params, as_form)| {
        let answer = runtime.block_on(async {
            let request = fake.client().post(format!("{}/bot{BOT}/{method}", fake.base()));
            let request = if as_form {
                let fields: Vec<(&str, String)> = params
                    .iter()
                    .map(|(name, value)| {
                        (*name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                    })
                    .collect();
                request
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish())
            } else {
                request.json(
                    &params
                        .iter()
                        .cloned()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect::<serde_json::Map<_, _>>(),
                )
            };
            // Polls would wait for 50 s.
            let request = request.timeout(std::time::Duration::from_secs(20));
            match request.send().await {
                Ok(response) => Some(Answer::of(response).await),
                Err(_) => None,
            }
        });
        let Some(answer) = answer else {
            return Err(TestCaseError::fail(format!("{method}: no answer")));
        };
        prop_assert_eq!(&answer.body["ok"], &json!(answer.status == 200), "{}", answer.text);
        prop_assert!(answer.status < 500, "{}", answer.text);
        Ok(())
    });
    ran.expect("it holds");
    runtime.block_on(fake.health());
}

/// What the admin API takes, and anything else.
fn any_order() -> impl Strategy<Value = Value> {
    let names = [
        "chat",
        "action",
        "type",
        "to",
        "token",
        "user",
        "text",
        "message_id",
        "data",
        "advance",
        "frozen",
        "profile",
        "penalties",
        "limit",
        "group",
        "chat",
        "rate",
        "burst",
        "window",
        "off",
        "algorithm",
        "kind",
        "phase",
        "from",
        "for",
        "hold",
        "cost",
        "key",
    ];
    let words = [
        "write",
        "tap",
        "block",
        "unblock",
        "migrate",
        "delete",
        "declare",
        "0/s",
        "1/s",
        "18446744073709551615/us",
        "10s",
        "18446744073709551615us",
        "100%",
        "0.0001%",
        "502",
        "lost",
        "html",
        "after",
        "instead-of-429",
        "telegram",
        "market",
        "sliding-window",
        "token-bucket",
        "502:50%:after",
        "1h",
        "0s",
        BOT,
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(Value::from);
    let leaf = prop_oneof![3 => word, 1 => any_json(), 1 => any::<u64>().prop_map(Value::from)];
    let table = move |inner: BoxedStrategy<Value>| {
        prop::collection::vec((prop::sample::select(names.to_vec()), inner), 1..5).prop_map(|fields| {
            Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
    };
    let flat = table(leaf.clone().boxed()).boxed();
    let deep = table(prop_oneof![leaf.clone(), flat.clone()].boxed());
    prop_oneof![1 => leaf, 3 => flat, 3 => deep]
}

/// Whatever its operator orders, it can be asked and called afterwards.
#[test]
fn no_order_kills_it() {
    let runtime = runtime();
    // Calls may be ordered to be held: for 8 s of its own, which are over at once.
    let fake = runtime.block_on(async { Fake::with(Options { speed: 100_000, ..Options::default() }) });
    let paths = ["profile", "limits", "faults", "chats", "users", "clock", "reset"];
    let cases = (prop::sample::select(paths.to_vec()), any_order());
    let ran = TestRunner::new(config(600)).run(&cases, |(path, order)| {
        runtime.block_on(async {
            let answer = fake.admin(reqwest::Method::POST, path, Some(order)).await;
            prop_assert!(matches!(answer.status, 200 | 400 | 404), "{}: {}", path, answer.text);
            // The clock may have been stopped, and a fault ordered that leaves calls without an answer.
            fake.tell("clock", json!({ "frozen": false })).await;
            fake.admin(reqwest::Method::DELETE, "faults", None).await.ok();
            let sent = fake.call("sendMessage", json!({ "chat_id": 7001, "text": "x" })).await;
            prop_assert!(matches!(sent.status, 200 | 400 | 403 | 429), "{}", sent.text);
            fake.look("verdict").await;
            fake.look("limits").await;
            Ok(())
        })
    });
    ran.expect("it holds");
}

/// A request whose parts are any bytes.
fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    let noise = bytes(200);
    let method = prop::sample::select(vec!["GET", "POST", "PUT", "get", "", "\0"]);
    let path = prop_oneof![
        Just(format!("/bot{BOT}/sendMessage?chat_id=7001&text=%D1%8F")),
        Just(format!("/bot{BOT}/getMe")),
        Just("/__admin/users".to_owned()),
        Just("/__admin/limits".to_owned()),
        "/bot[0-9:a-z]{0,9}/[a-zA-Z]{0,9}",
        "/[!-~]{0,30}",
    ];
    let content_type = prop::sample::select(vec![
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=X",
        "multipart/form-data; boundary=\"",
    ]);
    let body = prop_oneof![
        bytes(120),
        any_params()
            .prop_map(|params| json!(params.into_iter().collect::<Vec<_>>()).to_string().into_bytes()),
        bytes(60).prop_map(|bytes| [
            b"--X\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n",
            &bytes[..],
            b"\r\n--X--"
        ]
        .concat()),
    ];
    let length_error = prop_oneof![8 => Just(0_usize), 1 => Just(1), 1 => Just(70)];
    let built = (method, path, content_type, body, length_error, bytes(8)).prop_map(
        |(method, path, content_type, body, length_error, noise)| {
            let length = body.len() + length_error;
            let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n");
            [head.as_bytes(), &body, &noise].concat()
        },
    );
    // One byte of a good request is another one.
    let damaged =
        (built.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, at, byte)| {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        });
    prop_oneof![1 => noise, 2 => built, 3 => damaged]
}

/// What comes back for these bytes until nothing more comes: whoever has said too little is waited for by the server.
async fn answers(fake: &Fake, bytes: &[u8]) -> String {
    let mut stream = fake.connect().await;
    drop(stream.write_all(bytes).await);
    let (mut all, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(QUIET, stream.read(&mut buffer)).await {
        all.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

const QUIET: std::time::Duration = std::time::Duration::from_millis(300);

#[test]
fn no_bytes_kill_it() {
    let runtime = runtime();
    let fake = Arc::new(runtime.block_on(async { Fake::frozen() }));
    let many = prop::collection::vec(any_request(), 100);
    let ran = TestRunner::new(Config { max_shrink_iters: 50, ..config(20) }).run(&many, |requests| {
        let all = requests.into_iter().map(|bytes| {
            let fake = fake.clone();
            async move { answers(&fake, &bytes).await }
        });
        for text in runtime.block_on(async { all.collect::<JoinSet<_>>().join_all().await }) {
            for response in text.split("HTTP/1.1 ").skip(1) {
                let Some((_, body)) = response.split_once("\r\n\r\n") else { continue };
                // The admin API has no `ok`.
                let admin = response.starts_with("200") || body.contains("\"error\":");
                prop_assert!(body.is_empty() || body.starts_with("{\"ok\":") || admin, "{}", text);
            }
        }
        Ok(())
    });
    ran.expect("it holds");
    runtime.block_on(async {
        fake.health().await;
        assert!(fake.call("getMe", json!({})).await.body["ok"].is_boolean());
    });
}
