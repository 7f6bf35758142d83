//! What people do, done: the model changes, and the bot gets an update.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::api::ChatIndex;
use crate::chat::{Action as Fate, Happening};
use crate::http::contents::Query;
use crate::http::known::Known;
use crate::http::objects::OWNER;
use crate::http::peers::{Chat, ChatType};
use crate::http::people::act::{Act, Action};
use crate::http::people::{Event, Membership, Scene};
use crate::http::state::{BotState, Fated, NO_CHAT, State};
use crate::http::written::Written;
use crate::time::Time;

/// Does it, to one bot; the ids of the updates that it gets.
///
/// # Errors
/// If the chat does not exist.
pub(super) fn act(state: &State, bot: &BotState, act: &Act) -> Result<Vec<u32>, String> {
    let known = state.known(bot, act.chat, None);
    if known.index == NO_CHAT {
        return Err(format!("chat {} does not exist; declare it first", act.chat.0));
    }
    let now = state.clock.now();
    let scene = Scene { bot: &bot.bot, chat: &known.chat, date: state.clock.unix(now) };
    // Bots are no faster on a fast server.
    let answerable = state.options.queries_live.saturating_mul(state.clock.read().speed.into());
    let answerable_until = state.clock.unix(now.saturating_add(answerable));
    let events = match &act.action {
        Action::Write { user, text } => {
            state.core().wrote(&state.clock, known.index);
            let mut inner = bot.inner();
            let id = inner.new_message_ids(1);
            let event = scene.write(*user, id as u32, text);
            // A bot may reply to it, forward it, react to it.
            inner.contents.put(known.chat.id, id, Written::new(&event.payload).result());
            vec![event]
        }
        Action::Tap { user, message_id, data } => {
            let mut inner = bot.inner();
            let query = inner.new_query_id();
            inner.contents.add_query(query.to_string(), Query::Callback, answerable_until);
            let message = inner.contents.fields(known.chat.id, i64::from(*message_id));
            vec![scene.tap(*user, query, *message_id, message.map(Into::into), data)]
        }
        Action::InlineQuery { user, query } => {
            let mut inner = bot.inner();
            let id = inner.new_query_id();
            inner.contents.add_query(id.to_string(), Query::Inline, answerable_until);
            vec![scene.inline_query(*user, id, query)]
        }
        Action::Block => changes(state, &scene, &known, known.chat.id.0, Fate::Die),
        Action::Unblock => changes(state, &scene, &known, known.chat.id.0, Fate::Revive),
        Action::AddBot { user } => changes(state, &scene, &known, *user, Fate::Revive),
        Action::RemoveBot { user } => changes(state, &scene, &known, *user, Fate::Die),
        Action::Migrate { to } => {
            state.declare(known.chat.id, |declared| {
                declared.migrated_to = Some(*to);
                false
            });
            state.declare(*to, |declared| {
                declared.r#type = Some(ChatType::Supergroup);
                false
            });
            let new = state.known(bot, *to, None);
            let first = bot.inner().new_message_ids(2) as u32;
            scene.migrate(&new.chat, first, first + 1).into()
        }
    };
    Ok(events.into_iter().filter_map(|Event { kind, payload }| bot.inbox.push(kind, payload)).collect())
}

/// Lets everything happen that is due, and tells the bots that know the chats; when the next thing is due.
///
/// That an account is gone nobody tells.
pub(super) fn catch_up(state: &State) -> Option<Time> {
    let (happened, next) = state.core().catch_up(&state.clock);
    if happened.is_empty() {
        return next;
    }
    let happened = happened.into_iter().filter(|happening| !happening.is_about_an_account());
    let mut by_chat: FxHashMap<ChatIndex, Vec<Happening>> = FxHashMap::default();
    happened.for_each(|happening| by_chat.entry(happening.chat).or_default().push(happening));
    for (_, bot) in state.bots() {
        let mut concerned: Vec<(Time, Chat, bool)> = Vec::new();
        for known in bot.inner().chats.of(|index| by_chat.contains_key(&index)) {
            let happened = by_chat.get(&known.index).into_iter().flatten();
            concerned.extend(happened.map(|it| (it.at, known.chat.clone(), it.after.is_some())));
        }
        // In an order that is always the same; of one chat, as it happened.
        concerned.sort_by_key(|(at, chat, _)| (*at, chat.id));
        for (at, chat, dies) in concerned {
            let user = if chat.r#type == ChatType::Private { chat.id.0 } else { OWNER };
            let scene = Scene { bot: &bot.bot, chat: &chat, date: state.clock.unix(at) };
            let Event { kind, payload } = changed(&scene, user, dies);
            bot.inbox.push(kind, payload);
        }
    }
    next
}

/// The bot is blocked, thrown out, let in again.
fn changes(state: &State, scene: &Scene<'_>, known: &Known, user: i64, fate: Fate) -> Vec<Event> {
    state.core().happens(&state.clock, known.index, fate);
    vec![changed(scene, user, fate != Fate::Revive)]
}

fn changed(scene: &Scene<'_>, user: i64, dies: bool) -> Event {
    let (old, new) = match dies {
        false => (Membership::Kicked, Membership::Member),
        true => (Membership::Member, Membership::Kicked),
    };
    scene.membership(user, old, new)
}

/// Does it to all bots that there are, when it is time, and again if it is done again. Time counts from the first bot on:
/// before, there is nobody to whom anything could be done. What becomes of a chat holds for bots that come later, too.
pub(super) async fn again_and_again(state: Arc<State>, deed: Act) {
    let (mut closing, mut born) = (state.closing.subscribe(), state.born.subscribe());
    let born = tokio::select! {
        born = born.wait_for(Option::is_some) => born.ok().and_then(|born| *born),
        _ = closing.wait_for(|closing| *closing) => return,
    };
    let Some(born) = born else { return };
    let mut at = born.saturating_add(deed.at.unwrap_or_default());
    let mut times = 0_u64;
    let first = at;
    loop {
        tokio::select! {
            () = state.clock.sleep_until(at) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        for (_, bot) in state.bots() {
            // A chat that does not exist for one bot may for another.
            drop(act(&state, &bot, &deed));
        }
        let fate = match deed.action {
            Action::Block | Action::RemoveBot { .. } => Some(Fated::Blocked),
            Action::Unblock | Action::AddBot { .. } => Some(Fated::Alive),
            _ => None,
        };
        if let Some(fate) = fate {
            state.declare(deed.chat, |declared| {
                declared.fate = fate;
                false
            });
        }
        let Some(every) = deed.every.filter(|every| every.count > 0) else { return };
        times += 1;
        // From the first on, so that no rounding adds up.
        let passed = u128::from(times) * u128::from(every.period.as_micros()) / u128::from(every.count);
        at = first
            .saturating_add(crate::time::Duration::from_micros(u64::try_from(passed).unwrap_or(u64::MAX)));
    }
}
