//! A call of the Bot API, from its parameters to its answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::api::{Answer, Decision, Forbidden, LimitIndex, Method, Request, Truth};
use crate::hint::RetryHint;
use crate::http::answers::{self, Call, Scene};
use crate::http::core::{Arrival, Fate};
use crate::http::failure::Failure;
use crate::http::inbox::Inbox;
use crate::http::journal::{self, Entry, Outcome};
use crate::http::known::Known;
use crate::http::params::Params;
use crate::http::peers::ChatType;
use crate::http::reply::Reply;
use crate::http::state::{BotState, InFlight, NO_CHAT, State};
use crate::http::updates::Change;
use crate::http::webhook;
use crate::time::{Duration, Time};

/// What a client of our own says beside a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Aside {
    /// Its number for the call: it wants to know the truth.
    pub(super) call: Option<u64>,
    /// Its draw for faults.
    pub(super) draw: Option<u32>,
    /// Its idempotency key.
    pub(super) idempotency: Option<u32>,
}

/// A call that somebody waits for. It holds nothing that all calls share: to count who holds it costs each core a look
/// at what another has just written.
struct Job {
    bot: InFlight,
    /// Its index.
    method: usize,
    params: Params,
    chat: Option<Known>,
    from: Option<Known>,
    items: u32,
    aside: Aside,
    /// When it arrived; not read before it is known who answers.
    arrived: Time,
    early: Option<LimitIndex>,
}

/// Answers a call of `method`, in any case, by the bot with `token`.
pub(super) async fn call(
    state: &Arc<State>,
    token: &str,
    method: &str,
    params: Params,
    aside: Aside,
) -> Reply {
    if state.is_closing() {
        return Reply::failure(&Failure::new(500, "Internal Server Error: restart"));
    }
    let bot = match state.bot(token) {
        Ok(bot) => bot,
        Err(failure) => return Reply::failure(&failure),
    };
    let named = if method.is_empty() { params.text("method") } else { Some(method.into()) };
    let Some(method) = named.and_then(|name| state.methods.find(&name)) else {
        return Reply::failure(&Failure::new(404, "Not Found: method not found"));
    };
    let chat = method.chat.as_ref().and_then(|name| state.chat(&bot, &params, name));
    let from = method.from.as_ref().and_then(|name| state.chat(&bot, &params, name));
    let items = answers::items(method, &params);
    let (bot, arrived) = (bot.enter(), Time::ZERO);
    let mut job = Job { bot, method: method.index, params, chat, from, items, aside, arrived, early: None };
    if let Some(reply) = job.answered_locally(state) {
        job.arrived = state.clock.now();
        return job.note(state, reply, Outcome::Rejected);
    }
    if job.is_too_much(state) {
        job.arrived = state.clock.now();
        return Box::pin(go_on(job.overload(state.clone()))).await;
    }
    let request = Request {
        token: job.bot.token,
        chat: job.chat.as_ref().map_or(job.bot.nowhere, |known| known.index),
        method: method.family,
        idempotency: aside.idempotency,
        items: u16::try_from(items).unwrap_or(u16::MAX),
    };
    let Arrival { at, early, is_repeatable, fate } = state.core().arrive(&state.clock, request, aside.draw);
    (job.arrived, job.early) = (at, early);
    job.aside.idempotency = aside.idempotency.filter(|_| is_repeatable);
    match fate {
        Fate::Decided(decision) => job.finish(state, decision).await,
        Fate::Held(decision) => {
            state.wakes.notify_one();
            let state = state.clone();
            let held = async move {
                let mut closing = state.closing.subscribe();
                let decision = tokio::select! {
                    biased;
                    decision = decision => decision.ok(),
                    _ = closing.wait_for(|closing| *closing) => None,
                };
                match decision {
                    Some(decision) => job.finish(&state, decision).await,
                    None => job.restarts(&state),
                }
            };
            Box::pin(go_on(held)).await
        }
    }
}

/// Whether its client waits or not, the call goes on, and is in flight until it is answered.
async fn go_on(answer: impl Future<Output = Reply> + Send + 'static) -> Reply {
    tokio::spawn(answer).await.unwrap_or_else(|_| Reply::cut())
}

impl Job {
    fn as_call<'a>(&'a self, state: &'a State) -> Call<'a> {
        Call {
            method: state.methods.at(self.method),
            params: &self.params,
            chat: self.chat.as_ref().map(|known| &known.chat),
            from: self.from.as_ref().map(|known| &known.chat),
        }
    }

    /// What needs no limits and no effect: the server finds it out by itself.
    fn answered_locally(&self, state: &State) -> Option<Reply> {
        if let Some(to) = self.chat.as_ref().and_then(|known| known.migrated_to) {
            return Some(Reply::migrated(to.0));
        }
        if self.chat.as_ref().is_some_and(|known| known.index == NO_CHAT) {
            // The model says so, and counts it.
            return None;
        }
        let call = self.as_call(state);
        let checked = answers::check(&call).and_then(|()| match answers::is_about_messages(&call) {
            true => answers::check_messages(&call, &self.bot.inner().contents),
            false => Ok(()),
        });
        checked.err().map(|failure| Reply::failure(&failure))
    }

    /// The open server's own limit on calls in flight (`telegram.md` 3.4): only where the profile holds calls as it does.
    fn is_too_much(&self, state: &State) -> bool {
        self.bot.in_flight.load(Ordering::Relaxed) > IN_FLIGHT_MAX && state.core().profile().hold.is_some()
    }

    /// What it leads to.
    async fn overload(self, state: Arc<State>) -> Reply {
        let mut closing = state.closing.subscribe();
        tokio::select! {
            () = state.clock.sleep_until(self.arrived.saturating_add(OVERLOAD_HOLD)) => {}
            _ = closing.wait_for(|closing| *closing) => return self.restarts(&state),
        }
        let failure = Failure::retry_after(seconds(&state, OVERLOAD_WAIT));
        self.note(&state, Reply::failure(&failure), Outcome::Refused)
    }

    /// The answer to a call that was decided, and its effect.
    async fn finish(self, state: &Arc<State>, decision: Decision) -> Reply {
        let phantom = decision.truth == Truth::Nothing && matches!(decision.answer, Answer::Message { .. });
        let reply = match decision.truth {
            Truth::Delivered => self.perform(state, decision).await,
            Truth::Nothing if phantom => self.perform(state, decision).await,
            Truth::Replayed => self.replay(),
            _ => Ok(Reply::ok(())),
        };
        let said = |status| Reply::raw(status, decision.answer.content_type(), decision.answer.body());
        let (mut reply, outcome) = match decision.answer {
            Answer::Message { .. } | Answer::Nothing => match reply {
                Ok(reply) => (reply, Outcome::Ok),
                Err(failure) if failure.code == 429 => (Reply::failure(&failure), Outcome::Refused),
                Err(failure) => (Reply::failure(&failure), Outcome::Rejected),
            },
            Answer::TooManyRequests { hint } => {
                (too_many_requests(state, hint, decision.at), Outcome::Refused)
            }
            Answer::Forbidden(why) => (Reply::failure(&self.forbidden(why)), Outcome::Forbidden),
            Answer::ChatNotFound => {
                (Reply::failure(&Failure::new(400, "Bad Request: chat not found")), Outcome::Rejected)
            }
            Answer::Rejected { status } => (said(status), Outcome::Rejected),
            Answer::ServerError { status, .. } => (said(status), Outcome::Failed),
            Answer::Garbage(_) => (said(200), Outcome::Garbage),
            Answer::ConnectionLost | Answer::TimedOut | Answer::Unreachable => (Reply::cut(), Outcome::Lost),
        };
        let truth = truth(state, &decision);
        if self.aside.call.is_some() {
            reply.truth = serde_json::to_string(&Told { truth: &truth, at_us: decision.at.as_micros() }).ok();
        }
        self.record(state, decision.at, truth, outcome);
        reply
    }

    /// What the call does, and its result.
    async fn perform(&self, state: &Arc<State>, decision: Decision) -> Result<Reply, Failure> {
        let Self { bot, params, .. } = self;
        let method = state.methods.at(self.method);
        match method.name {
            "getUpdates" => Box::pin(self.updates(state)).await,
            "setWebhook" => {
                let change = bot.inbox.set_webhook(params)?;
                if change == Change::Set {
                    deliver(state, bot);
                }
                Ok(Reply::ok_with(true, Some(change.description())))
            }
            "deleteWebhook" => {
                let change = bot.inbox.delete_webhook(params);
                Ok(Reply::ok_with(true, Some(change.description())))
            }
            "getWebhookInfo" => Ok(Reply::ok(bot.inbox.webhook_info())),
            "close" if decision.at < Time::ZERO + CLOSABLE_AFTER => {
                Err(Failure::retry_after(seconds(state, CLOSABLE_AFTER - (decision.at - Time::ZERO))))
            }
            _ => {
                let mut inner = bot.inner();
                // Other methods put nothing into a chat.
                let family = method.family;
                let ids = if family.is_send() || family == Method::EditForumTopic { self.items } else { 0 };
                let message_id = inner.new_message_ids(ids);
                let date = state.clock.unix(decision.at);
                let mut scene = Scene { bot: &bot.bot, message_id, date, contents: &mut inner.contents };
                let result = answers::perform(&self.as_call(state), &mut scene)?;
                if let Some(key) = self.aside.idempotency {
                    inner.replays.insert(key, result.clone());
                }
                Ok(Reply::written(result))
            }
        }
    }

    /// The updates, as soon as there are some; none if the server ends before.
    async fn updates(&self, state: &State) -> Result<Reply, Failure> {
        let mut closing = state.closing.subscribe();
        tokio::select! {
            updates = self.bot.inbox.get_updates(&self.params) => updates.map(|updates| Reply::ok(&updates)),
            _ = closing.wait_for(|closing| *closing) => Ok(Reply::ok([(); 0])),
        }
    }

    /// The result of the call that this one repeats.
    fn replay(&self) -> Result<Reply, Failure> {
        let inner = self.bot.inner();
        let result = self.aside.idempotency.and_then(|key| inner.replays.get(&key));
        Ok(result.map_or_else(|| Reply::ok(true), |result| Reply::written(result.clone())))
    }

    fn forbidden(&self, why: Forbidden) -> Failure {
        if self.chat.as_ref().is_some_and(|known| known.is_deleted) {
            return Failure::new(403, "Forbidden: the group chat was deleted");
        }
        let kind = self.chat.as_ref().map(|known| known.chat.r#type);
        match (why, kind) {
            (Forbidden::Kicked, Some(ChatType::Supergroup)) => {
                Failure::new(403, "Forbidden: bot was kicked from the supergroup chat")
            }
            (Forbidden::Kicked, Some(ChatType::Channel)) => {
                Failure::new(403, "Forbidden: bot was kicked from the channel chat")
            }
            _ => Failure::new(403, why.to_string()),
        }
    }

    /// The server ends, or begins anew, before it has decided.
    fn restarts(&self, state: &State) -> Reply {
        self.note(state, Reply::failure(&Failure::retry_after(RESTART)), Outcome::Refused)
    }

    /// Writes down a call that never got to the limits.
    fn note(&self, state: &State, reply: Reply, outcome: Outcome) -> Reply {
        let truth =
            journal::Truth { truth: "nothing", limit: None, wait_us: None, in_penalty: false, taken: 0 };
        self.record(state, self.arrived, truth, outcome);
        reply
    }

    fn record(&self, state: &State, at: Time, truth: journal::Truth, outcome: Outcome) {
        let method = state.methods.at(self.method);
        let entry = Entry {
            n: 0,
            arrived_us: self.arrived.as_micros(),
            at_us: at.as_micros(),
            bot: self.bot.bot.id,
            method: method.name,
            chat: self.chat.as_ref().map(|known| known.chat.id.0),
            outcome,
            truth,
            early: self.early.is_some(),
            call: self.aside.call,
        };
        let early = self.early.map(|index| limit(state, index));
        let text = method.family.is_send().then(|| self.params.text("text"));
        let text = text.map(Option::unwrap_or_default);
        self.bot.inner().counts.add(&entry, self.items, early.as_deref(), text.as_deref());
        state.journal().add(entry);
    }
}

/// The client's whole seconds for a wait of the server's time.
fn seconds(state: &State, wait: Duration) -> u32 {
    u32::try_from(state.clock.real(wait).as_secs_ceil()).unwrap_or(u32::MAX)
}

fn too_many_requests(state: &State, hint: RetryHint, at: Time) -> Reply {
    let mut reply = match hint {
        RetryHint::Seconds(wait) => {
            let real = seconds(state, Duration::from_secs(wait.into()));
            let description = format!("Too Many Requests: retry after {real}").into();
            Reply::failure(&Failure { code: 429, description, retry_after: Some(real) })
        }
        RetryHint::Date(second) => {
            let wait = Time::from_secs(second.into()).saturating_since(at);
            let wait = std::time::Duration::from_micros(state.clock.real(wait).as_micros());
            let date = httpdate::fmt_http_date(state.clock.wall() + wait);
            Reply { retry_after: Some(date), ..Reply::failure(&Failure::new(429, "Too Many Requests")) }
        }
        RetryHint::Absent => Reply::failure(&Failure::new(429, "Too Many Requests")),
    };
    if !state.options.retry_after_header {
        reply.retry_after = None;
    }
    reply
}

fn truth(state: &State, decision: &Decision) -> journal::Truth {
    let (truth, refused) = match decision.truth {
        Truth::Delivered => ("delivered", None),
        Truth::Replayed => ("replayed", None),
        Truth::Refused { limit, wait } => ("refused", Some((limit, wait))),
        Truth::Dead => ("dead", None),
        Truth::Unknown => ("unknown", None),
        Truth::Nothing => ("nothing", None),
    };
    journal::Truth {
        truth,
        limit: refused.map(|(index, _)| limit(state, index)),
        wait_us: refused.map(|(_, wait)| wait.as_micros()),
        in_penalty: decision.in_penalty,
        taken: decision.taken,
    }
}

fn limit(state: &State, index: LimitIndex) -> Box<str> {
    let core = state.core();
    core.profile().limits.get(usize::from(index.0)).map_or("", |limit| &limit.name).into()
}

/// As the header says it.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    truth: &'a journal::Truth,
    at_us: u64,
}

/// Carries updates to the webhook that was just set.
fn deliver(state: &Arc<State>, bot: &Arc<BotState>) {
    let inbox: Arc<Inbox> = bot.inbox.clone();
    let (client, anywhere) = (state.webhooks.clone(), state.options.webhooks_anywhere);
    let (state, bot) = (Arc::downgrade(state), bot.clone());
    tokio::spawn(webhook::deliver(inbox, client, anywhere, move |method, params| {
        let (state, bot) = (state.upgrade(), bot.clone());
        async move {
            let token = state.as_ref().and_then(|state| state.token_of(&bot));
            if let (Some(state), Some(token)) = (state, token) {
                // Nobody learns what comes of it (`telegram.md` 2.4).
                drop(Box::pin(call(&state, &token, &method, params, Aside::default())).await);
            }
        }
    }));
}

/// More calls of one bot in flight than this and the open server holds back (`telegram.md` 3.4: 1,000 and the updates of
/// the last minute, which are left out here).
const IN_FLIGHT_MAX: u32 = 1_000;
/// For so long, and then it asks for a longer wait.
const OVERLOAD_HOLD: Duration = Duration::from_secs(3);
const OVERLOAD_WAIT: Duration = Duration::from_secs(60);
/// What a held call is told when the server ends, in seconds (`telegram.md` 3.4).
const RESTART: u32 = 5;
/// `close` is refused before (`telegram.md` 3.4).
const CLOSABLE_AFTER: Duration = Duration::from_mins(10);
