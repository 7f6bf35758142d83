//! A server in real time: the model behind wiremock, which tells the truth as the real one does.

#![expect(clippy::disallowed_methods, reason = "it answers in real time")]

use std::sync::Mutex;
use std::time::Instant;

use fake_telegram::api::{CallId, ChatIndex, Draws, Method, Request, TokenIndex, Truth};
use fake_telegram::fault::Faults;
use fake_telegram::model::Model;
use fake_telegram::time::Time;
use floodlab::live::Target;
use floodlab::scenario::Scenario;
use serde_json::{Value, json};
use wiremock::{MockServer, Respond, ResponseTemplate};

/// A server that listens until it is dropped.
pub(crate) struct Stub {
    server: MockServer,
    tokens: Vec<String>,
}

struct Answers {
    started: Instant,
    limits: Vec<String>,
    inner: Mutex<Inner>,
}

struct Inner {
    model: Model,
    calls: u32,
    /// What was decided, by the client's number.
    journal: Vec<(u64, Value)>,
}

impl Stub {
    /// The scenario's server, with all its chats alive.
    pub(crate) fn start(scenario: &Scenario, seed: u64) -> Self {
        let faults = Faults::new(&scenario.faults).expect("the scenario was checked");
        let tokens = scenario.tokens.len() as u16;
        let model = Model::new(&scenario.server, faults, scenario.chats(seed), tokens);
        let answers = Answers {
            started: Instant::now(),
            limits: scenario.server.limits.iter().map(|limit| limit.name.clone()).collect(),
            inner: Mutex::new(Inner { model, calls: 0, journal: Vec::new() }),
        };
        let server = serve(answers);
        Self { server, tokens: (1..=tokens).map(|bot| format!("{bot}:secret")).collect() }
    }

    pub(crate) fn url(&self) -> String {
        self.server.uri()
    }

    pub(crate) fn target(&self) -> Target {
        Target::resolve(&self.url(), self.tokens.clone()).expect("wiremock has a URL")
    }
}

/// A server on a thread of its own that answers everything in the same way.
pub(crate) fn serve(answers: impl Respond + 'static) -> MockServer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = MockServer::start().await;
        wiremock::Mock::given(wiremock::matchers::any()).respond_with(answers).mount(&server).await;
        server
    })
}

impl Respond for Answers {
    fn respond(&self, request: &wiremock::Request) -> ResponseTemplate {
        let path = request.url.path();
        if path == "/__admin/health" {
            return ResponseTemplate::new(200).set_body_json(json!({ "name": "fake-telegram", "version": "stub" }));
        }
        let mut inner = self.inner.lock().expect("nobody panics here");
        if path == "/__admin/journal" {
            let (_, number) = request.url.query_pairs().find(|(key, _)| key == "call").expect("which call");
            let number: u64 = number.parse().expect("a number");
            let entries = inner.journal.iter().filter(|(call, _)| *call == number).map(|(_, entry)| entry);
            return ResponseTemplate::new(200).set_body_json(json!({ "entries": entries.collect::<Vec<_>>() }));
        }
        let header = |name: &str| request.headers.get(name).map(|value| value.to_str().expect("text").to_owned());
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let bot: u16 = path.trim_start_matches("/bot").split(':').next().and_then(|id| id.parse().ok()).expect(path);
        let call = Request {
            token: TokenIndex(bot - 1),
            chat: index(body["chat_id"].as_i64().expect("a chat")),
            method: Method::SendMessage,
            idempotency: header("idempotency-key").map(|key| key.parse().expect("a number")),
            items: 1,
        };
        let fault = header("x-floodlab-draw").map_or(u32::MAX, |draw| draw.parse().expect("a draw"));
        let now = Time::from_micros(self.started.elapsed().as_micros() as u64);
        inner.calls += 1;
        let id = CallId(inner.calls);
        inner.model.handle(now, id, call, Draws { fault });
        let decision = inner.model.poll().expect("this server holds no calls");
        let (truth, limit, wait) = match decision.truth {
            Truth::Delivered => ("delivered", None, None),
            Truth::Replayed => ("replayed", None, None),
            Truth::Refused { limit, wait } => {
                ("refused", Some(&self.limits[usize::from(limit.0)]), Some(wait.as_micros()))
            }
            Truth::Dead => ("dead", None, None),
            Truth::Unknown => ("unknown", None, None),
            Truth::Nothing => ("nothing", None, None),
        };
        let mut told = json!({
            "truth": truth, "in_penalty": decision.in_penalty, "taken": decision.taken, "at_us": now.as_micros(),
        });
        if let (Some(limit), Some(wait)) = (limit, wait) {
            told["limit"] = json!(limit);
            told["wait_us"] = json!(wait);
        }
        let status = decision.answer.status().expect("this server loses no answers");
        let mut response = ResponseTemplate::new(status).set_body_string(decision.answer.body());
        if let Some(hint) = decision.answer.retry_after_header() {
            response = response.insert_header("retry-after", hint);
        }
        if let Some(number) = header("x-floodlab-call") {
            response = response.insert_header("x-floodlab-truth", told.to_string());
            inner.journal.push((number.parse().expect("a number"), told));
        }
        response
    }
}

/// A chat's index, by the rule of `docs/drive.md`.
fn index(id: i64) -> ChatIndex {
    let number = match id {
        1.. => id - 1_000_000_000,
        -1_000_999_999_999.. => -id - 1_000_000_000,
        _ => -id - 1_001_000_000_000,
    };
    ChatIndex(u32::try_from(number).expect("a chat of the scenario"))
}
