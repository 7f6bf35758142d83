//! teloxide, unmodified, against the server: requests, its throttle, errors as it types them, and a dispatcher.
//!
//! What is expected is the profile `telegram` (`docs/server.md`): 5 messages at once into a private chat and then one a
//! second.

use std::net::SocketAddr;
use std::time::Duration;

use fake_telegram::http::options::Options;
use fake_telegram::http::server::Server;
use reqwest::Client;
use serde_json::{Value, json};
use teloxide::adaptors::throttle::Limits;
use teloxide::net::Download;
use teloxide::prelude::*;
use teloxide::types::{InputFile, MessageKind, Seconds, UpdateKind};
use teloxide::{ApiError, RequestError};

const TOKEN: &str = "110:teloxide";

/// A server and its control.
struct Fake {
    server: Server,
    http: Client,
}

impl Fake {
    fn start() -> Self {
        let addr: SocketAddr = ([127, 0, 0, 1], 0).into();
        let server = Server::start(Options { addr, ..Options::default() }).expect("a free port");
        Self { server, http: Client::new() }
    }

    fn bot(&self) -> Bot {
        self.bot_of(TOKEN)
    }

    fn bot_of(&self, token: &str) -> Bot {
        let url = format!("http://{}", self.server.addr());
        Bot::new(token).set_api_url(url.parse().expect("a URL"))
    }

    async fn post(&self, path: &str, body: Value) {
        let url = format!("http://{}/__admin/{path}", self.server.addr());
        let response = self.http.post(url).json(&body).send().await.expect("an answer");
        assert!(response.status().is_success(), "{path}: {}", response.text().await.expect("a text"));
    }

    async fn verdict(&self) -> Value {
        let url = format!("http://{}/__admin/verdict", self.server.addr());
        let verdict: Value = self.http.get(url).send().await.expect("an answer").json().await.expect("JSON");
        verdict["all"].clone()
    }
}

#[tokio::test]
async fn a_burst_is_refused_and_typed() {
    let fake = Fake::start();
    // The clock stands: no budget comes back while the test runs, however slow it is.
    fake.post("clock", json!({ "frozen": true })).await;
    let bot = fake.bot();
    assert_eq!(bot.get_me().await.expect("a bot").id, UserId(110));
    for number in 1..=5 {
        let text = format!("number {number}");
        let sent = bot.send_message(ChatId(7), &text).await.expect("within the burst");
        assert_eq!((sent.text(), sent.chat.id), (Some(&*text), ChatId(7)));
    }
    let refused = bot.send_message(ChatId(7), "one more").await.expect_err("the burst is over");
    assert!(
        matches!(&refused, RequestError::RetryAfter(wait) if *wait == Seconds::from_seconds(1)),
        "{refused:?}"
    );
    fake.post("clock", json!({ "advance": "1s" })).await;
    bot.send_message(ChatId(7), "one more").await.expect("who waits is heard");
    let verdict = fake.verdict().await;
    let counts = ["delivered", "duplicates", "early_retries"].map(|name| verdict[name].clone());
    assert_eq!((counts, &verdict["throttled"]), ([json!(6), json!(0), json!({})], &json!({ "chat": 1 })));
}

#[tokio::test]
async fn its_throttle_keeps_the_limits() {
    let fake = Fake::start();
    let bot = fake.bot().throttle(Limits::default());
    let mut sends = tokio::task::JoinSet::new();
    for chat in 1..=3 {
        for number in 1..=3 {
            let send = bot.send_message(ChatId(chat), format!("number {number}"));
            sends.spawn(async move { send.await });
        }
    }
    while let Some(sent) = sends.join_next().await {
        sent.expect("no panic").expect("sent");
    }
    let verdict = fake.verdict().await;
    assert_eq!((&verdict["delivered"], &verdict["throttled"]), (&json!(9), &json!({})));
}

#[tokio::test]
async fn errors_have_types() {
    let fake = Fake::start();
    let chats = json!([
        { "chat": 1, "action": "block" },
        { "chat": 2, "action": "delete" },
        { "chat": -3, "action": "migrate", "to": -1_000_000_000_003_i64 },
        { "chat": 4, "action": "deactivate" },
    ]);
    fake.post("chats", chats).await;
    let bot = fake.bot();
    let error = async |chat| bot.send_message(ChatId(chat), "hi").await.expect_err("no such luck");
    assert!(matches!(error(1).await, RequestError::Api(ApiError::BotBlocked)));
    assert!(matches!(error(2).await, RequestError::Api(ApiError::ChatNotFound)));
    assert!(matches!(error(-3).await, RequestError::MigrateToChatId(ChatId(-1_000_000_000_003))));
    assert!(matches!(error(4).await, RequestError::Api(ApiError::UserDeactivated)));
    let nobody = fake.bot_of("no token").get_me().await.expect_err("a malformed token");
    assert!(matches!(nobody, RequestError::Api(ApiError::InvalidToken)), "{nobody:?}");
}

#[tokio::test]
async fn a_file_comes_back_as_it_went() {
    let fake = Fake::start();
    let bot = fake.bot();
    let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    let file = InputFile::memory(bytes.clone()).file_name("numbers.bin");
    let sent = bot.send_document(ChatId(7), file).await.expect("sent");
    let document = sent.document().expect("a document");
    assert_eq!((document.file_name.as_deref(), document.file.size), (Some("numbers.bin"), 100_000));
    let file = bot.get_file(document.file.id.clone()).await.expect("it is there");
    let mut back = Vec::new();
    bot.download_file(&file.path, &mut back).await.expect("it comes");
    assert_eq!(back, bytes);
}

#[tokio::test]
async fn a_dispatcher_answers_who_writes() {
    let fake = Fake::start();
    let bot = fake.bot();
    let handler = Update::filter_message().endpoint(|bot: Bot, message: Message| async move {
        let text = format!("you said {}", message.text().unwrap_or_default());
        bot.send_message(message.chat.id, text).await.map(|_| ())
    });
    let mut dispatcher = Dispatcher::builder(bot, handler).build();
    let stop = dispatcher.shutdown_token();
    let running = tokio::spawn(async move { dispatcher.dispatch().await });
    for chat in [7, 8] {
        fake.post(
            "users",
            json!({ "token": TOKEN, "chat": chat, "action": "write", "text": format!("hi from {chat}") }),
        )
        .await;
    }
    // Long polls end at once when there is something; the rest is for a slow machine.
    for _ in 0..600 {
        if fake.verdict().await["delivered"] == json!(2) {
            break;
        }
        #[expect(clippy::disallowed_methods, reason = "real time")]
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(fake.verdict().await["delivered"], json!(2));
    stop.shutdown().expect("it runs").await;
    running.await.expect("it ends");
}

#[tokio::test]
async fn updates_are_typed() {
    let fake = Fake::start();
    let bot = fake.bot();
    let sent = bot.send_message(ChatId(7), "tap").await.expect("sent");
    let acts = json!([
        { "token": TOKEN, "chat": 7, "action": "write", "text": "hi" },
        { "token": TOKEN, "chat": 7, "action": "tap", "message_id": sent.id.0, "data": "yes" },
        { "token": TOKEN, "chat": 7, "action": "block" },
    ]);
    fake.post("users", acts).await;
    let updates = bot.get_updates().await.expect("updates");
    assert_eq!(updates.len(), 3);
    assert!(matches!(&updates[0].kind, UpdateKind::Message(message) if message.text() == Some("hi")
            && matches!(message.kind, MessageKind::Common(_))));
    let UpdateKind::CallbackQuery(query) = &updates[1].kind else { panic!("{:?}", updates[1]) };
    assert_eq!(query.data.as_deref(), Some("yes"));
    bot.answer_callback_query(query.id.clone()).await.expect("it is answered");
    let UpdateKind::MyChatMember(change) = &updates[2].kind else { panic!("{:?}", updates[2]) };
    assert!(change.new_chat_member.kind.is_banned());
}
