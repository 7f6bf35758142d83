//! The line to the server: carries the calls of a run over HTTP, and keeps what is known of them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use fake_telegram::api::{Answer, ChatIndex, ChatKind, Decision, Method, TokenIndex};
use fake_telegram::http::options::chat_id;
use fake_telegram::http::peers::ChatType;
use fake_telegram::limits::{Level, Limit};
use fake_telegram::time::{Duration, Time};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client::{Call, Client, Failure, Heard};
use super::clock::Clock;
use super::known::Known;
use super::target::Target;
use super::truth::{Word, believed, told};
use crate::executor::Handle;
use crate::metrics::Penalties;
use crate::outcome::{Live, LiveCalls};
use crate::sim::{Carrier, News, Outgoing};
use crate::world::Message;

/// The line of one run. Cheap to clone: all clones are one line.
#[derive(Clone)]
pub struct Line(pub(super) Rc<Shared>);

pub(super) struct Shared {
    pub(super) clock: Cell<Clock>,
    /// When the run is over.
    pub(super) end: Cell<Time>,
    handle: Handle,
    target: Target,
    /// By process.
    clients: Vec<Client>,
    known: RefCell<Known>,
    limits: Vec<Limit>,
    /// News that was announced and not fetched.
    inbox: RefCell<VecDeque<Letter>>,
    /// Told when there is news.
    pub(super) came: Notify,
    /// Calls without a decision, by their number on the wire.
    open: RefCell<BTreeMap<u32, Open>>,
    /// Calls without an answer, and questions to the journal.
    pub(super) waiting: Cell<u32>,
    /// Those of them that are calls to a real store, which have a time-out.
    pub(super) asking: Cell<u32>,
    /// The number of the next call. A server may have heard of other runs, so they begin with the time of day.
    next: Cell<u64>,
    /// By chat: the id of the latest message in it, for what edits or forwards one.
    latest: RefCell<BTreeMap<ChatIndex, u32>>,
    pub(super) tally: RefCell<LiveCalls>,
    /// The least that an answer arrived after its decision, on the two clocks: how far the server's is behind.
    behind_us: Cell<Option<i64>>,
}

/// News that was announced.
#[derive(Debug, Clone, Copy)]
struct Letter {
    /// The call's number on the wire.
    wire: u32,
    token: TokenIndex,
    news: News,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// Its number in the run.
    number: u64,
    sent: Time,
    process: usize,
    token: TokenIndex,
    method: Method,
    chat: ChatIndex,
    /// What its client got, once it got something.
    answer: Option<Answer>,
}

impl Line {
    /// A line to `target` for so many processes; a call is given up after `timeout`.
    ///
    /// # Errors
    /// If the system gives no HTTP client.
    pub(super) fn new(
        target: Target,
        known: Known,
        processes: usize,
        timeout: Duration,
        handle: Handle,
    ) -> reqwest::Result<Self> {
        let clients = (0..processes).map(|_| target.client(timeout)).collect::<reqwest::Result<_>>()?;
        let clock = Clock::start();
        Ok(Self(Rc::new(Shared {
            clock: Cell::new(clock),
            end: Cell::new(Time::MAX),
            handle,
            target,
            clients,
            limits: known.limits.clone(),
            known: RefCell::new(known),
            inbox: RefCell::default(),
            came: Notify::new(),
            open: RefCell::default(),
            waiting: Cell::new(0),
            asking: Cell::new(0),
            next: Cell::new(clock.unix_us()),
            latest: RefCell::default(),
            tally: RefCell::default(),
            behind_us: Cell::new(None),
        })))
    }

    /// What is known of it before the run.
    pub(super) fn live(&self) -> Live {
        let Target { base, ours, .. } = &self.0.target;
        Live { url: base.clone(), server: ours.clone(), told_truth: ours.is_some(), ..Live::default() }
    }

    /// The run is over at `end`: asks the journal once more for what is not decided, so that what the server did by then
    /// is in the books, and waits for the answers of a real store, which are booked when they come. The numbers of the calls
    /// of which there is news that was not fetched.
    pub(super) async fn settle(&self, end: Time) -> Vec<u32> {
        let shared = &self.0;
        shared.end.set(end);
        // What the store does to a message counts, whether anybody hears of it or not.
        while shared.asking.get() > 0 {
            shared.came.notified().await;
        }
        let open: Vec<(u32, Open)> = shared.open.borrow().iter().map(|(wire, open)| (*wire, *open)).collect();
        let words = RefCell::new(BTreeMap::new());
        if shared.target.ours.is_some() {
            let asked = stream::iter(&open).for_each_concurrent(AT_ONCE, async |(wire, open)| {
                let word = shared.clients[open.process].journal(open.number).await;
                words.borrow_mut().extend(word.map(|word| (*wire, word)));
            });
            // What it has not said by then, it does not say.
            drop(tokio::time::timeout(LAST_WORD, asked).await);
        }
        let mut words = words.into_inner();
        for (wire, open) in open {
            match (words.remove(&wire), open.answer) {
                (Some(word), answer) => shared.learn(wire, &word, answer.unwrap_or(Answer::TimedOut)),
                // It was given up, and nothing is known to have come of it.
                (None, Some(answer)) => {
                    let decision = believed(open.sent, answer, open.method, &shared.limits).0;
                    shared.decide(wire, decision);
                }
                // It is on the wire.
                (None, None) => {}
            }
        }
        let mut inbox = shared.inbox.borrow_mut();
        inbox.retain(|letter| letter.news.decision.is_none_or(|decision| decision.at < end));
        inbox.iter().map(|letter| letter.wire).collect()
    }
}

/// How long the journal may take for its last words.
const LAST_WORD: std::time::Duration = std::time::Duration::from_secs(5);
/// How many questions it gets at a time.
const AT_ONCE: usize = 64;

impl Shared {
    /// There is news of a call.
    fn announce(&self, wire: u32, token: TokenIndex, news: News) {
        self.inbox.borrow_mut().push_back(Letter { wire, token, news });
        self.handle.set(self.clock.get().now(), wire);
        self.came.notify_one();
    }

    fn decide(&self, wire: u32, decision: Decision) {
        let open = self.open.borrow_mut().remove(&wire);
        if let Some(Open { token, .. }) = open {
            self.announce(wire, token, News { answer: None, decision: Some(decision) });
        }
    }

    /// A call has come back, or failed.
    fn hear(&self, wire: u32, heard: &Heard) {
        let now = self.clock.get().now();
        let answer = heard.answer;
        self.count(heard.failure);
        let mut calls = self.open.borrow_mut();
        let Some(open) = calls.get_mut(&wire) else { return };
        open.answer = Some(answer);
        if let Answer::Message { message_id } = answer {
            self.latest.borrow_mut().insert(open.chat, message_id);
        }
        let failed = matches!(heard.failure, Some(Failure::Lost | Failure::TimedOut));
        let (decision, elsewhere) = match &heard.truth {
            Some(word) => {
                if !failed {
                    let behind = now.as_micros() as i64 - word.at_us as i64;
                    self.behind_us.set(Some(self.behind_us.get().map_or(behind, |least| least.min(behind))));
                }
                // An answer that is under way when the run ends tells of what happened before.
                let is_late = failed || now >= self.end.get();
                let at = if is_late { self.at(word, open.sent, now) } else { now };
                told(word, at, answer, &self.limits)
            }
            None => believed(now, answer, open.method, &self.limits),
        };
        let token = open.token;
        // Only the journal knows.
        let unknown = heard.truth.is_none() && failed && self.target.ours.is_some();
        if !unknown {
            calls.remove(&wire);
            self.tally.borrow_mut().refused_elsewhere += u64::from(elsewhere);
        }
        let decision = (!unknown).then_some(decision);
        self.announce(wire, token, News { answer: Some(answer), decision });
    }

    /// The journal has told what happened to a call whose answer did not come.
    fn learn(&self, wire: u32, word: &Word, answer: Answer) {
        let Some(open) = self.open.borrow().get(&wire).copied() else { return };
        let at = self.at(word, open.sent, self.clock.get().now());
        let (decision, elsewhere) = told(word, at, answer, &self.limits);
        self.tally.borrow_mut().refused_elsewhere += u64::from(elsewhere);
        self.decide(wire, decision);
    }

    /// When something was decided, in the run's time: as the two clocks are known to differ, and between the call's
    /// leaving and now in any case.
    fn at(&self, word: &Word, sent: Time, now: Time) -> Time {
        let behind = self.behind_us.get().unwrap_or(0);
        let at = (word.at_us as i64).saturating_add(behind).max(0) as u64;
        Time::from_micros(at).clamp(sent, now)
    }

    fn count(&self, failure: Option<Failure>) {
        let mut tally = self.tally.borrow_mut();
        *match failure {
            None => &mut tally.answered,
            Some(Failure::Unconnected) => &mut tally.unconnected,
            Some(Failure::Unsent) => &mut tally.unsent,
            Some(Failure::Lost) => &mut tally.lost,
            Some(Failure::TimedOut) => &mut tally.timed_out,
        } += 1;
    }

    async fn carry(self: Rc<Self>, call: Outgoing, number: u64, body: Value) {
        let Outgoing { message: Message { method, .. }, token, process, key, fault, .. } = call;
        let client = &self.clients[usize::from(process.0)];
        let told = self.target.ours.is_some().then_some((number, fault));
        let token = &self.target.tokens[usize::from(token.0)];
        let request = Call { token, method, body, idempotency: key, told };
        let heard = client.call(request, &self.clock.get()).await;
        self.hear(call.number, &heard);
        let open = self.open.borrow().get(&call.number).is_some_and(|open| open.number == number);
        // It may be decided by now, or be held; at the end of the run it is asked for again.
        if open && let Some(word) = client.journal(number).await {
            self.learn(call.number, &word, heard.answer);
        }
        self.waiting.set(self.waiting.get() - 1);
        self.came.notify_one();
    }

    /// What a message looks like on the wire. Its text names it, and nothing else in the run has that text.
    fn body(&self, message: &Message) -> Value {
        let chat_id = id(message.kind, message.chat);
        let text = format!("message {}", message.number);
        let latest = || self.latest.borrow().get(&message.chat).copied().unwrap_or(1);
        match message.method {
            Method::SendPhoto => {
                json!({ "chat_id": chat_id, "photo": "https://example.com/1.jpg", "caption": text })
            }
            Method::EditMessageText => json!({ "chat_id": chat_id, "message_id": latest(), "text": text }),
            Method::ForwardMessage => {
                json!({ "chat_id": chat_id, "from_chat_id": chat_id, "message_id": latest() })
            }
            Method::SendChatAction => json!({ "chat_id": chat_id, "action": "typing" }),
            Method::EditForumTopic => json!({ "chat_id": chat_id, "message_thread_id": 1, "name": text }),
            Method::GetMe => json!({}),
            Method::SendMessage | Method::Search | Method::GetPrice => {
                json!({ "chat_id": chat_id, "text": text })
            }
        }
    }
}

impl Carrier for Line {
    fn send(&mut self, call: Outgoing) {
        let shared = &self.0;
        let number = shared.next.get();
        shared.next.set(number + 1);
        let Outgoing { message: Message { method, chat, .. }, process, token, .. } = call;
        let open = Open {
            number,
            sent: shared.clock.get().now(),
            process: usize::from(process.0),
            token,
            method,
            chat,
            answer: None,
        };
        shared.open.borrow_mut().insert(call.number, open);
        shared.waiting.set(shared.waiting.get() + 1);
        let body = shared.body(&call.message);
        tokio::task::spawn_local(Rc::clone(shared).carry(call, number, body));
    }

    fn receive(&mut self) -> (u32, News) {
        let shared = &self.0;
        let letter = shared.inbox.borrow_mut().pop_front();
        let Letter { wire, token, news } = letter.expect("news is announced once it is there");
        if let Some(Decision { taken: 1.., .. }) = news.decision {
            shared.known.borrow_mut().spend(shared.handle.now(), token);
        }
        (wire, news)
    }

    fn look(&mut self, chat: ChatIndex, from_user: bool) -> (ChatKind, bool) {
        self.0.known.borrow().look(chat, from_user)
    }

    fn level(&self, token: TokenIndex, at: Time) -> Option<Level> {
        self.0.known.borrow().level(token, at)
    }

    fn penalties(&self) -> Vec<Penalties> {
        self.0.known.borrow().penalties()
    }
}

/// What a server of ours calls a scenario's chat.
const fn id(kind: ChatKind, chat: ChatIndex) -> i64 {
    let kind = match kind {
        ChatKind::Private => ChatType::Private,
        ChatKind::Group => ChatType::Group,
        ChatKind::Channel => ChatType::Channel,
    };
    chat_id(chat, kind).0
}
