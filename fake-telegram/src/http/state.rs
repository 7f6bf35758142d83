//! Everything that the server knows: bots, their chats, the model, the journal.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use tokio::sync::{Notify, watch};

use crate::api::{ChatIndex, ChatKind, TokenIndex};
use crate::chat::Action;
use crate::http::clock::Clock;
use crate::http::contents::{Capacity, Contents};
use crate::http::core::Core;
use crate::http::failure::Failure;
use crate::http::inbox::Inbox;
use crate::http::journal::Journal;
use crate::http::known::{Known, KnownChats};
use crate::http::methods::Methods;
use crate::http::options::Options;
use crate::http::params::Params;
use crate::http::peers::{Bot, Chat, ChatId, ChatType};
use crate::http::verdict::{Counts, Verdict};
use crate::http::written::Written;
use crate::model::Model;
use crate::time::Time;

/// The server, as all connections see it.
#[derive(Debug)]
pub struct State {
    pub(super) options: Options,
    pub(super) clock: Arc<Clock>,
    pub(super) methods: Methods,
    pub(super) webhooks: reqwest::Client,
    core: Mutex<Core>,
    journal: Mutex<Journal>,
    bots: RwLock<IndexMap<Box<str>, Arc<BotState>, FxBuildHasher>>,
    /// What was said of chats, whichever bot writes to them.
    declared: Mutex<FxHashMap<ChatId, Declared>>,
    /// When the first bot came into being.
    pub(super) born: watch::Sender<Option<Time>>,
    /// Told when something will happen by itself: a call that is held goes on, a chat dies.
    pub(super) wakes: Notify,
    /// Whether the server is to end.
    pub(super) closing: watch::Sender<bool>,
    /// The same, for calls, which look at it each time.
    is_closing: AtomicBool,
    pub(super) connections: AtomicUsize,
}

/// What was said of a chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) r#type: Option<ChatType>,
    pub(super) fate: Fated,
    pub(super) migrated_to: Option<ChatId>,
}

/// What has happened to a chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fated {
    #[default]
    Alive,
    Blocked,
    Deactivated,
    Deleted,
}

/// A bot.
#[derive(Debug)]
pub struct BotState {
    pub(super) bot: Bot,
    pub(super) token: TokenIndex,
    /// What its calls about no chat are about.
    pub(super) nowhere: ChatIndex,
    pub(super) inbox: Arc<Inbox>,
    /// Calls that are not answered yet.
    pub(super) in_flight: AtomicU32,
    inner: Mutex<Inner>,
}

/// What changes with every call of a bot.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) chats: KnownChats,
    pub(super) contents: Contents,
    pub(super) counts: Counts,
    last_message_id: i64,
    last_query_id: u64,
    /// Results by idempotency key, where the profile knows such keys.
    pub(super) replays: FxHashMap<u32, Written>,
}

/// No chat of the model: calls about it are answered with 400.
pub(super) const NO_CHAT: ChatIndex = ChatIndex(u32::MAX);

/// So many bots at most: a client can invent any.
const BOTS_MAX: usize = 50_000;

impl State {
    /// As the options say.
    ///
    /// # Errors
    /// If the faults are impossible, or the host has no sound TLS set-up.
    pub fn new(options: Options) -> anyhow::Result<Self> {
        let clock = Arc::new(Clock::new(options.speed, options.frozen));
        let core = Core::new(
            options.profile.clone(),
            options.faults.clone(),
            options.chats(),
            options.seed,
            options.speed,
        )?;
        Ok(Self {
            clock,
            methods: Methods::load(),
            webhooks: crate::http::webhook::client(options.webhooks_anywhere)?,
            core: Mutex::new(core),
            journal: Mutex::new(Journal::new(options.journal)),
            bots: RwLock::default(),
            declared: Mutex::default(),
            born: watch::Sender::new(None),
            wakes: Notify::new(),
            closing: watch::Sender::new(false),
            is_closing: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            options,
        })
    }

    /// Ends the server.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.closing.send_replace(true);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().expect("the model does not panic")
    }

    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().expect("the journal does not panic")
    }

    /// The bot with that token; it comes into being when somebody first uses it.
    ///
    /// # Errors
    /// 404 if that is no token (as the public service has it), 401 if the server is strict and does not know it, or has
    /// no room for another.
    pub(super) fn bot(&self, token: &str) -> Result<Arc<BotState>, Failure> {
        if let Some(bot) = self.bots.read().expect("bots do not panic").get(token) {
            return Ok(bot.clone());
        }
        let id = bot_id(token).ok_or_else(|| Failure::new(404, "Not Found"))?;
        let unauthorized = || Failure::new(401, "Unauthorized");
        if self.options.strict && !self.options.tokens.iter().any(|known| known == token) {
            return Err(unauthorized());
        }
        let mut bots = self.bots.write().expect("bots do not panic");
        if bots.len() >= BOTS_MAX && !bots.contains_key(token) {
            return Err(unauthorized());
        }
        if let Some(bot) = bots.get(token) {
            return Ok(bot.clone());
        }
        let (index, nowhere) = self.core().new_token().ok_or_else(unauthorized)?;
        let who = Bot::new(id);
        let inner = Inner {
            chats: KnownChats::default(),
            contents: Contents::new(&who, Capacity::default()),
            counts: Counts::default(),
            last_message_id: 0,
            last_query_id: 0,
            replays: FxHashMap::default(),
        };
        let bot = Arc::new(BotState {
            bot: who,
            token: index,
            nowhere,
            inbox: Arc::new(Inbox::new(self.clock.clone())),
            in_flight: AtomicU32::new(0),
            inner: Mutex::new(inner),
        });
        bots.insert(token.into(), bot.clone());
        let now = self.clock.now();
        self.born.send_if_modified(|born| born.is_none() && born.replace(now).is_none());
        Ok(bot)
    }

    /// Shows the model as it is now to whoever runs the server in its own program. Bots have their tokens' indices in the
    /// order of [`Options::tokens`], then of their first calls.
    pub fn look<R>(&self, look: impl FnOnce(&mut Model, Time) -> R) -> R {
        self.core().look(&self.clock, look)
    }

    /// All bots that somebody has used, in the order of their first calls, with their tokens.
    pub(super) fn bots(&self) -> Vec<(Box<str>, Arc<BotState>)> {
        let bots = self.bots.read().expect("bots do not panic");
        bots.iter().map(|(token, bot)| (token.clone(), bot.clone())).collect()
    }

    /// The chat that a parameter names, to a bot.
    pub(super) fn chat(&self, bot: &BotState, params: &Params, parameter: &str) -> Option<Known> {
        let (id, username) = chat_id(params, parameter)?;
        Some(self.known(bot, id, username))
    }

    /// A chat, to a bot: one that nobody has declared comes into being, unless only declared ones do.
    pub(super) fn known(&self, bot: &BotState, id: ChatId, username: Option<Arc<str>>) -> Known {
        if let Some(known) = bot.inner().chats.get(id) {
            return known;
        }
        let declared = self.declared().get(&id).copied();
        let guess = if username.is_some() { ChatType::Channel } else { id.guess() };
        let r#type = declared.and_then(|declared| declared.r#type).unwrap_or(guess);
        let chat = Chat { id, r#type, username };
        let migrated_to = declared.and_then(|declared| declared.migrated_to);
        let is_deleted = declared.is_some_and(|declared| declared.fate == Fated::Deleted);
        // Nobody has the id 0. Of what was deleted only groups are still known.
        let is_unknown = id == ChatId(0)
            || declared.is_none() && self.options.declared_chats_only
            || is_deleted && r#type != ChatType::Group;
        let index = match self.options.index_of(id) {
            _ if is_unknown => NO_CHAT,
            of => self.new_chat(of, r#type.kind(), declared.map_or(Fated::Alive, |declared| declared.fate)),
        };
        let known = Known { index, chat, migrated_to, is_deleted };
        // What is unknown today may be declared tomorrow.
        if index == NO_CHAT {
            return known;
        }
        let mut inner = bot.inner();
        // Two calls at once may both have found nothing.
        if let Some(known) = inner.chats.get(id) {
            return known;
        }
        inner.chats.insert(known.clone());
        known
    }

    /// A chat of its own for a bot, so that what people do to one does not concern the others; `of` is the chat of the
    /// scenario that it is.
    fn new_chat(&self, of: Option<ChatIndex>, kind: ChatKind, fate: Fated) -> ChatIndex {
        let mut core = self.core();
        let (index, is_next) = core.add_chat(&self.clock, of, kind);
        if is_next {
            self.wakes.notify_one();
        }
        if let Some(action) = fate.action() {
            core.happens(&self.clock, index, action);
        }
        index
    }

    /// Something is said of a chat, whichever bot writes to it; `change` says whether it happens to the chat now.
    pub(super) fn declare(&self, id: ChatId, change: impl Fn(&mut Declared) -> bool) {
        let (declared, happens) = {
            let mut all = self.declared();
            let declared = all.entry(id).or_default();
            let happens = change(declared);
            (*declared, happens)
        };
        for (_, bot) in self.bots() {
            self.apply(&bot, id, declared, happens);
        }
    }

    /// A bot learns what was said of a chat that it knows.
    fn apply(&self, bot: &BotState, id: ChatId, declared: Declared, happens: bool) {
        let mut inner = bot.inner();
        let Some(mut known) = inner.chats.get(id) else { return };
        known.migrated_to = declared.migrated_to;
        known.is_deleted = false;
        let (index, fate) = (known.index, declared.fate);
        let is_other = declared.r#type.is_some_and(|r#type| r#type != known.chat.r#type);
        if fate == Fated::Deleted || is_other {
            // The next call finds it as it is now.
            inner.chats.remove(id);
            return;
        }
        inner.chats.insert(known);
        drop(inner);
        if happens {
            self.core().happens(&self.clock, index, fate.action().unwrap_or(Action::Revive));
        }
    }

    /// Forgets what bots did, all or one of them; what was declared stays.
    pub(super) fn reset(&self, token: Option<&str>) {
        let mut bots = self.bots.write().expect("bots do not panic");
        match token {
            Some(token) => {
                if let Some(bot) = bots.shift_remove(token) {
                    bot.inbox.reset();
                    self.core().free_token(&self.clock, bot.token);
                }
            }
            None => {
                bots.drain(..).for_each(|(_, bot)| bot.inbox.reset());
                self.core().reset(self.options.chats());
                self.journal().clear();
            }
        }
        drop(bots);
        self.make_bots();
    }

    /// The bots that exist from the start.
    pub(super) fn make_bots(&self) {
        for token in &self.options.tokens {
            // They were sound when the server began.
            drop(self.bot(token));
        }
    }

    /// The token of a bot, unless it was reset.
    pub(super) fn token_of(&self, bot: &Arc<BotState>) -> Option<Box<str>> {
        let bots = self.bots.read().expect("bots do not panic");
        bots.iter().find(|(_, known)| Arc::ptr_eq(known, bot)).map(|(token, _)| token.clone())
    }

    /// The verdict on each bot, and on all of them.
    pub fn verdicts(&self) -> (Vec<Verdict>, Verdict) {
        let limits = self.core().profile().limits.clone();
        let now = self.clock.now();
        let each: Vec<Verdict> =
            self.bots().iter().map(|(_, bot)| bot.inner().counts.verdict(bot.bot.id, &limits, now)).collect();
        let sum = Verdict::sum(&each);
        (each, sum)
    }

    fn declared(&self) -> MutexGuard<'_, FxHashMap<ChatId, Declared>> {
        self.declared.lock().expect("declarations do not panic")
    }
}

impl Fated {
    const fn action(self) -> Option<Action> {
        match self {
            Self::Alive => None,
            Self::Blocked | Self::Deleted => Some(Action::Die),
            Self::Deactivated => Some(Action::Deactivate),
        }
    }
}

impl BotState {
    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("contents do not panic")
    }

    /// The bot of a call, which counts until it is answered.
    pub(super) fn enter(self: Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }
}

/// The bot of a call that is not answered yet.
#[derive(Debug)]
pub(super) struct InFlight(Arc<BotState>);

impl Deref for InFlight {
    type Target = Arc<BotState>;

    fn deref(&self) -> &Arc<BotState> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// The first of `items` ids of messages.
    pub(super) const fn new_message_ids(&mut self, items: u32) -> i64 {
        let first = self.last_message_id + 1;
        self.last_message_id += items as i64;
        first
    }

    /// The id of a question that somebody asks the bot.
    pub(super) const fn new_query_id(&mut self) -> u64 {
        self.last_query_id += 1;
        self.last_query_id
    }
}

/// Whether it has the form of a token.
pub fn is_token(text: &str) -> bool {
    bot_id(text).is_some()
}

/// The id in a token of good form: `1` to `2^54`, a colon, letters, digits, `_` and `-` (`telegram.md` 2.1; the secret
/// may be shorter here).
fn bot_id(token: &str) -> Option<i64> {
    const ID_MAX: i64 = 1 << 54;
    let (id, secret) = token.split_once(':')?;
    let is_sound = token.len() <= 80
        && !id.starts_with('0')
        && id.bytes().all(|byte| byte.is_ascii_digit())
        && !secret.is_empty()
        && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    id.parse().ok().filter(|id| is_sound && (1..=ID_MAX).contains(id))
}

/// The chat that a parameter names, and its `@name`. What is neither a number of 64 bits nor a name is nobody: 0.
fn chat_id(params: &Params, parameter: &str) -> Option<(ChatId, Option<Arc<str>>)> {
    if let Some(id) = params.integer(parameter) {
        return Some((ChatId(id), None));
    }
    let text = params.text(parameter)?;
    match text.trim() {
        "" => None,
        text => Some(match text.strip_prefix('@') {
            Some(name) => (ChatId::named(name), Some(name.into())),
            None => (ChatId(0), None),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn tokens_are_digits_a_colon_and_a_secret() {
        assert_eq!(bot_id("110000:AAbench"), Some(110_000));
        assert_eq!(bot_id("1:a-_Z9"), Some(1));
        for wrong in
            ["", "1", ":a", "1:", "01:a", "1:a b", "a:b", "-1:a", "1:a:b", "1:é", "99999999999999999999:a"]
        {
            assert_eq!(bot_id(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_chat_is_named_by_number_text_or_name() {
        let id = |value: Value| {
            let mut params = Params::default();
            params.set("chat_id", value);
            chat_id(&params, "chat_id")
        };
        assert_eq!(id((-5).into()), Some((ChatId(-5), None)));
        assert_eq!(id("-5".into()), Some((ChatId(-5), None)));
        let (named, name) = id("@news".into()).expect("a name");
        assert_eq!((named, name.as_deref()), (ChatId::named("news"), Some("news")));
        assert_eq!(named.guess(), ChatType::Supergroup, "and nobody else's id");
        assert_eq!((id("".into()), id(Value::Null)), (None, None));
        for nobody in ["99999999999999999999", "news", "1.5"] {
            assert_eq!(id(nobody.into()), Some((ChatId(0), None)));
        }
    }
}
