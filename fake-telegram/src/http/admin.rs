//! The control of the server, under `/__admin/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::fault::{Fault, FaultKind, Phase};
use crate::http::deeds;
use crate::http::journal::Filter;
use crate::http::metrics;
use crate::http::peers::{ChatId, ChatType};
use crate::http::people::act::Act;
use crate::http::reply::Reply;
use crate::http::state::{BotState, Fated, State};
use crate::profile::{LimitSettings, Profile, ServerSettings};
use crate::time::{Duration, Time};
use crate::units::Share;

/// Why there is nothing to answer: a status and a text that names the way out.
type Refused = (u16, String);

/// All there is, for whoever asks for something else.
const PATHS: &str = "state, verdict, health, metrics, reset, profile, limits, faults, chats, users, journal, journal/count, clock, shutdown";

/// Answers a request to `/__admin/PATH`.
pub(super) async fn answer(
    state: &Arc<State>,
    method: &Method,
    path: &str,
    query: &str,
    body: &[u8],
) -> Reply {
    let is_get = method == Method::GET || method == Method::HEAD;
    let is_put = method == Method::PUT || method == Method::POST;
    let answer = match path {
        "" | "state" if is_get => Ok(self::state(state)),
        "verdict" if is_get => Ok(verdict(state)),
        "health" if is_get => Ok(health(state)),
        "metrics" if is_get => return Reply::raw(200, metrics::CONTENT_TYPE, metrics::text(state)),
        "reset" if is_put => reset(state, body),
        "profile" if is_get => Ok(json!(state.core().profile())),
        "profile" if is_put => set_profile(state, body),
        "limits" if is_get => Ok(json!(ServerSettings::from(state.core().profile()).limit)),
        "limits" if is_put => set_limits(state, body),
        "faults" if is_get => Ok(json!(state.core().faults())),
        "faults" if is_put => add_faults(state, body),
        "faults" if method == Method::DELETE => set_faults(state, Vec::new()),
        "chats" if is_put => declare_chats(state, body),
        "users" if is_put => users(state, body),
        "journal" if is_get => journal(state, query),
        "journal/count" if is_get => count(state, query),
        "clock" if is_get => Ok(clock(state)),
        "clock" if is_put => set_clock(state, body),
        "shutdown" if is_put => {
            state.close();
            Ok(json!({ "ok": true }))
        }
        _ if PATHS.split(", ").any(|known| known == path) => {
            let takes = match path {
                "state" | "verdict" | "health" | "metrics" | "journal" | "journal/count" => "GET",
                "reset" | "chats" | "users" | "shutdown" => "POST or PUT",
                "faults" => "GET, POST, PUT or DELETE",
                _ => "GET, POST or PUT",
            };
            Err((405, format!("`{path}` does not take {method}; it takes {takes}")))
        }
        _ => Err((404, format!("there is no `{path}` under /__admin/; there are {PATHS}"))),
    };
    match answer {
        Ok(value) => Reply::json(200, &value),
        Err((status, error)) => Reply::json(status, &json!({ "error": error })),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| (400, format!("the body cannot be read: {error}")))
}

fn health(state: &State) -> Value {
    let reading = state.clock.read();
    json!({
        "name": "fake-telegram",
        "version": env!("CARGO_PKG_VERSION"),
        "profile": state.core().profile().name,
        "seed": state.options.seed,
        "now_us": reading.now.as_micros(),
        "speed": reading.speed,
    })
}

fn state(state: &State) -> Value {
    let bots: Vec<Value> = state.bots().into_iter().map(|(_, bot)| of_bot(&bot)).collect();
    json!({
        "server": health(state),
        "clock": clock(state),
        "connections": state.connections.load(Ordering::Relaxed),
        "held": state.core().held(),
        "calls": state.journal().last(),
        "bots": bots,
    })
}

fn of_bot(bot: &BotState) -> Value {
    let (pending, dropped) = bot.inbox.pending_and_dropped();
    let chats = bot.inner().chats.len();
    json!({
        "id": bot.bot.id,
        "chats": chats,
        "in_flight": bot.in_flight.load(Ordering::Relaxed),
        "pending_updates": pending,
        "dropped_updates": dropped,
        "webhook": bot.inbox.webhook_info()["url"],
    })
}

fn verdict(state: &State) -> Value {
    let (bots, all) = state.verdicts();
    json!({ "all": all, "bots": bots })
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Reset {
    token: Option<String>,
}

fn reset(state: &State, body: &[u8]) -> Result<Value, Refused> {
    let Reset { token } = if body.is_empty() { Reset::default() } else { read(body)? };
    state.reset(token.as_deref());
    Ok(json!({ "ok": true }))
}

/// A profile by its name, or settings as below `[server]`.
fn set_profile(state: &State, body: &[u8]) -> Result<Value, Refused> {
    let settings: ServerSettings = match read::<Value>(body)? {
        Value::String(name) => ServerSettings { profile: Some(name), ..ServerSettings::default() },
        settings => serde_json::from_value(settings).map_err(|error| (400, error.to_string()))?,
    };
    apply(state, &settings)
}

/// Limits by name, as below `[server.limit]`; what is not said of a limit stays.
fn set_limits(state: &State, body: &[u8]) -> Result<Value, Refused> {
    let changes: BTreeMap<String, LimitSettings> = read(body)?;
    let mut settings = ServerSettings::from(state.core().profile());
    for (name, change) in changes {
        settings.change(&name, change);
    }
    apply(state, &settings)
}

fn apply(state: &State, settings: &ServerSettings) -> Result<Value, Refused> {
    let profile: Profile = settings.resolve().map_err(|error| (400, error.to_string()))?;
    state.core().set_profile(profile.clone());
    Ok(json!(profile))
}

/// Faults that are added to those in force: one or a list, each as below `[[fault]]`, where `from` counts from now, or in
/// short as `CODE:RATE[:before|after]`.
fn add_faults(state: &State, body: &[u8]) -> Result<Value, Refused> {
    let added = match read::<Value>(body)? {
        Value::Array(list) => list,
        one => vec![one],
    };
    let now = state.clock.now() - Time::ZERO;
    let mut faults = state.core().faults().to_vec();
    for fault in added {
        let mut fault = match fault {
            Value::String(short) => short_fault(&short).map_err(|error| (400, error))?,
            fault => serde_json::from_value(fault).map_err(|error| (400, error.to_string()))?,
        };
        fault.from = fault.from.saturating_add(now);
        faults.push(fault);
    }
    set_faults(state, faults)
}

fn set_faults(state: &State, faults: Vec<Fault>) -> Result<Value, Refused> {
    let mut core = state.core();
    core.set_faults(faults).map_err(|error| (400, error.to_string()))?;
    Ok(json!(core.faults()))
}

/// A fault in short: `502:10%`, `lost:5%:after`.
pub(super) fn short_fault(text: &str) -> Result<Fault, String> {
    let wrong = |what: String| {
        format!(
            "fault `{text}`: {what}; write it as CODE:RATE[:before|after|instead-of-429], as in `502:10%:after`"
        )
    };
    let mut parts = text.split(':');
    let (Some(kind), Some(rate), phase, None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong("it has other parts".to_owned()));
    };
    let kind: FaultKind = serde_json::from_value(kind.into()).map_err(|error| wrong(error.to_string()))?;
    let rate: Share = rate.parse().map_err(|error| wrong(format!("{error}")))?;
    let phase: Phase = match phase {
        Some(phase) => serde_json::from_value(phase.into()).map_err(|error| wrong(error.to_string()))?,
        None => Phase::default(),
    };
    Ok(Fault { kind, phase, rate, from: Duration::ZERO, r#for: None })
}

/// What is said of a chat, whichever bot writes to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatChange {
    chat: i64,
    #[serde(default)]
    action: ChatAction,
    r#type: Option<ChatType>,
    to: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ChatAction {
    /// It exists.
    #[default]
    Declare,
    Block,
    Unblock,
    Deactivate,
    Delete,
    Migrate,
}

fn declare_chats(state: &State, body: &[u8]) -> Result<Value, Refused> {
    let changes: Vec<ChatChange> = match read::<Value>(body)? {
        list @ Value::Array(_) => serde_json::from_value(list),
        one => serde_json::from_value(one).map(|change| vec![change]),
    }
    .map_err(|error| (400, error.to_string()))?;
    for ChatChange { chat, action, to, .. } in &changes {
        let wrong = match (action, to) {
            (ChatAction::Migrate, None) => "`migrate` needs `to`, the id of the supergroup",
            (ChatAction::Migrate, Some(to)) if *chat >= 0 || *to >= 0 || to == chat => {
                "`migrate` turns a group into another, and both ids are negative"
            }
            (ChatAction::Migrate, Some(_)) | (_, None) => continue,
            (_, Some(_)) => "`to` belongs to `migrate`",
        };
        return Err((400, format!("chat {chat}: {wrong}")));
    }
    for ChatChange { chat, action, r#type, to } in &changes {
        state.declare(ChatId(*chat), |declared| {
            declared.r#type = r#type.or(declared.r#type);
            declared.fate = match action {
                ChatAction::Declare if declared.fate == Fated::Deleted => Fated::Alive,
                ChatAction::Declare | ChatAction::Migrate => declared.fate,
                ChatAction::Block => Fated::Blocked,
                ChatAction::Unblock => Fated::Alive,
                ChatAction::Deactivate => Fated::Deactivated,
                ChatAction::Delete => Fated::Deleted,
            };
            // Whoever says what a chat is says that it is no longer another.
            declared.migrated_to = to.map(ChatId);
            !matches!(action, ChatAction::Declare | ChatAction::Migrate)
        });
        if let Some(to) = to {
            state.declare(ChatId(*to), |declared| {
                declared.r#type = Some(ChatType::Supergroup);
                false
            });
        }
    }
    Ok(json!({ "chats": changes.len() }))
}

/// People act: one act or a list; `token` says to which bot, where there is more than one.
fn users(state: &State, body: &[u8]) -> Result<Value, Refused> {
    let acts = match read::<Value>(body)? {
        Value::Array(list) => list,
        one => vec![one],
    };
    let deeds = acts.into_iter().map(|act| deed(state, act)).collect::<Result<Vec<_>, _>>()?;
    let mut ids = Vec::new();
    for (bot, act) in deeds {
        ids.extend(deeds::act(state, &bot, &act).map_err(|error| (404, error))?);
    }
    Ok(json!({ "update_ids": ids }))
}

fn deed(state: &State, mut act: Value) -> Result<(Arc<BotState>, Act), Refused> {
    let token = act.as_object_mut().and_then(|act| act.remove("token"));
    let bot = match token {
        Some(Value::String(token)) => state.bot(&token).map_err(|_| {
            let what = "is no token that this server knows; write it as `123456:SECRET`";
            (400, format!("`{token}` {what}"))
        })?,
        Some(_) => return Err((400, "`token` is a text".to_owned())),
        None => only_bot(state)?,
    };
    let act: Act = serde_json::from_value(act).map_err(|error| (400, error.to_string()))?;
    if act.at.is_some() || act.every.is_some() {
        let problem = "acts that come later or again are for `--people FILE`; leave `at` and `every` out";
        return Err((400, problem.to_owned()));
    }
    Ok((bot, act))
}

fn only_bot(state: &State) -> Result<Arc<BotState>, Refused> {
    let mut bots = state.bots();
    match (bots.pop(), bots.is_empty()) {
        (Some((_, bot)), true) => Ok(bot),
        (None, _) => Err((400, "no bot has called yet; say whom with \"token\": \"123:abc\"".to_owned())),
        _ => Err((400, "there are several bots; say whom with \"token\": \"123:abc\"".to_owned())),
    }
}

/// A query as JSON: numbers where they are numbers.
fn filter(query: &str) -> Result<Filter, Refused> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let number = value.parse::<i64>().map(Value::from);
        fields.insert(name.into_owned(), number.unwrap_or_else(|_| Value::String(value.into_owned())));
    }
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| (400, format!("the query cannot be read: {error}")))
}

fn journal(state: &State, query: &str) -> Result<Value, Refused> {
    let filter = filter(query)?;
    let journal = state.journal();
    let entries: Vec<_> = journal.select(&filter).take(filter.limit.unwrap_or(1_000)).collect();
    Ok(json!({ "entries": entries, "last": journal.last() }))
}

fn count(state: &State, query: &str) -> Result<Value, Refused> {
    let filter = filter(query)?;
    Ok(json!({ "count": state.journal().select(&filter).count() }))
}

fn clock(state: &State) -> Value {
    let reading = state.clock.read();
    json!({
        "now_us": reading.now.as_micros(),
        "unix": state.clock.unix(reading.now),
        "speed": reading.speed,
        "frozen": reading.frozen,
    })
}

/// What is done to the clock, in this order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockChange {
    frozen: Option<bool>,
    advance: Option<Duration>,
}

fn set_clock(state: &State, body: &[u8]) -> Result<Value, Refused> {
    let ClockChange { frozen, advance } = read(body)?;
    match frozen {
        Some(true) => state.clock.freeze(),
        Some(false) => state.clock.resume(),
        None => {}
    }
    if let Some(by) = advance {
        state.clock.advance(by);
        // What is due by then has happened when this is answered.
        deeds::catch_up(state);
    }
    Ok(clock(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_short_says_code_rate_and_phase() {
        let fault = short_fault("502:10%").expect("a fault");
        assert_eq!(
            (fault.kind, fault.phase, fault.rate),
            (FaultKind::Status502, Phase::Before, Share::from_ppm(100_000))
        );
        let fault = short_fault("lost:0.5%:after").expect("a fault");
        assert_eq!(
            (fault.kind, fault.phase, fault.rate),
            (FaultKind::Lost, Phase::After, Share::from_ppm(5_000))
        );
        for wrong in ["502", "502:10", "999:10%", "502:10%:between", "502:10%:after:x"] {
            let error = short_fault(wrong).expect_err(wrong);
            assert!(error.contains("CODE:RATE"), "{error}");
        }
    }
}
