//! The server as a command: `fake-telegram`, and `floodlab serve`.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::fault::{Fault, Faults};
use crate::http::admin::short_fault;
use crate::http::gate::{Gate, Judged};
use crate::http::options::Options;
use crate::http::people::act::Act;
use crate::http::server;
use crate::http::state::{State, is_token};
use crate::http::verdict::Verdict;
use crate::limits::{Algorithm, Limit};
use crate::profile::{LimitSettings, Profile, ServerSettings};
use crate::time::Duration;

/// The flags of the server.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "port")]
    addr: Option<SocketAddr>,
    /// The port on 127.0.0.1
    #[arg(long, short, visible_alias = "http-port", default_value_t = 8081)]
    port: u16,
    /// The rules: telegram, telegram-observed, market, unlimited [default: telegram]
    #[arg(long)]
    profile: Option<String>,
    /// A rule of one limit: NAME:off, or NAME:KEY=VALUE,... as below [server.limit.NAME] of a scenario
    #[arg(long = "limit", value_name = "NAME:KEY=VALUE")]
    limits: Vec<String>,
    /// Refusals are waits and nothing more: no penalties
    #[arg(long)]
    no_penalties: bool,
    /// A fault: CODE:RATE[:before|after|instead-of-429], as 502:10%:after; codes are those of [[fault]]
    #[arg(long = "fault", value_name = "CODE:RATE[:PHASE]")]
    faults: Vec<String>,
    /// Server seconds in a real one: limits, penalties and holds run so much faster, and retry_after says so
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    speed: u32,
    /// The clock stands until POST /__admin/clock moves it
    #[arg(long)]
    frozen: bool,
    /// The seed of its draws
    #[arg(long, default_value_t = Options::default().seed, env = "FLOODLAB_SEED")]
    pub seed: u64,
    /// Know only the tokens given with --token; others get 401
    #[arg(long)]
    strict: bool,
    /// A bot that exists from the start
    #[arg(long = "token", value_name = "ID:SECRET")]
    tokens: Vec<String>,
    /// Only chats exist that were declared (POST /__admin/chats); others are not found
    #[arg(long)]
    declared_chats: bool,
    /// What people do by themselves: a JSON list of acts
    #[arg(long, value_name = "FILE")]
    people: Option<PathBuf>,
    /// How long a bot may take to answer a query, in its own time
    #[arg(long, value_name = "DURATION", default_value_t = Options::default().queries_live)]
    queries_live: Duration,
    /// Deliver updates to webhooks on other hosts, too
    #[arg(long)]
    allow_webhooks_anywhere: bool,
    /// 429 without the header Retry-After
    #[arg(long)]
    no_retry_after_header: bool,
    /// Calls that the journal keeps
    #[arg(long, default_value_t = Options::default().journal)]
    journal: usize,
    /// Connections at a time; more are closed at once
    #[arg(long, default_value_t = Options::default().connections_max)]
    max_connections: usize,
    /// A condition on the verdict at the end, as 'early_retries == 0' or 'throttled: rate < 1%'; a failed one exits with 99
    #[arg(long = "gate", value_name = "CONDITION")]
    gates: Vec<String>,
    /// Where to write the verdict as JSON at the end; `-` is standard output
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// A failed gate does not change the exit code
    #[arg(long)]
    no_fail: bool,
    /// No banner and no verdict, only the address
    #[arg(long, short)]
    quiet: bool,
    /// Ignored, as the Bot API's local server has it
    #[arg(long, hide = true)]
    local: bool,
    /// Ignored
    #[arg(long, hide = true, value_name = "ID")]
    api_id: Option<String>,
    /// Ignored
    #[arg(long, hide = true, value_name = "HASH")]
    api_hash: Option<String>,
    /// Ignored
    #[arg(long, hide = true, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As it should; all gates passed.
    Well,
    /// A gate failed.
    GateFailed,
    /// There are gates, and nobody called.
    Nothing,
}

/// A flag that means nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

/// Serves until it is interrupted, terminated or shut down, then says its verdict. What the flags do not say is as `base` has
/// it.
///
/// # Errors
/// [`Invalid`] for flags that mean nothing, else if it cannot listen or write.
pub fn run(serve: &Serve, base: Options) -> anyhow::Result<Ended> {
    let options = serve.options(base)?;
    let gates: Vec<Gate> =
        serve.gates.iter().map(|gate| gate.parse()).collect::<Result<_, _>>().map_err(invalid)?;
    gates.iter().try_for_each(|gate| gate.check(&options.profile.limits)).map_err(invalid)?;
    if let Some(path) = &serve.summary {
        check_folder(path)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let state = runtime.block_on(async {
        // Whoever has read the banner may send a signal.
        let ended = ended()?;
        let open = server::open(options).await?;
        let state = open.state().clone();
        banner(serve, &state, open.addr())?;
        let told = state.clone();
        tokio::spawn(async move {
            ended.await;
            told.close();
        });
        open.serve().await;
        anyhow::Ok(state)
    })?;
    runtime.shutdown_background();
    let (bots, all) = state.verdicts();
    let judged: Vec<Judged> = gates.iter().map(|gate| gate.judge(&all)).collect();
    let is_stdout = serve.summary.as_deref() == Some(Path::new("-"));
    if !serve.quiet && !is_stdout {
        farewell(&bots, &all, &judged)?;
    }
    if let Some(path) = &serve.summary {
        let summary = json!({
            "schema_version": SUMMARY_VERSION,
            "tool": concat!("fake-telegram ", env!("CARGO_PKG_VERSION")),
            "profile": state.core().profile().name,
            "seed": state.options.seed,
            "all": all,
            "bots": bots,
            "gates": judged,
        });
        let mut text = serde_json::to_vec_pretty(&summary)?;
        text.push(b'\n');
        if is_stdout { anstream::stdout().write_all(&text)? } else { write(path, &text)? }
    }
    Ok(if serve.no_fail {
        Ended::Well
    } else if judged.iter().any(|judged| judged.passed == Some(false)) {
        Ended::GateFailed
    } else if judged.iter().any(|judged| judged.passed.is_none()) {
        Ended::Nothing
    } else {
        Ended::Well
    })
}

impl Serve {
    fn options(&self, base: Options) -> anyhow::Result<Options> {
        let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port);
        let more = self.faults.iter().map(|fault| short_fault(fault).map_err(Invalid));
        let mut faults = base.faults.clone();
        faults.extend(more.collect::<Result<Vec<Fault>, _>>()?);
        Faults::new(&faults).map_err(invalid)?;
        if let Some(wrong) = self.tokens.iter().find(|token| !is_token(token)) {
            return Err(invalid(format!("`{wrong}` is no token; write it as `123456:SECRET`")).into());
        }
        Ok(Options {
            addr: self.addr.unwrap_or(local),
            profile: self.profile(&base.profile)?,
            faults,
            speed: self.speed,
            frozen: self.frozen,
            seed: self.seed,
            strict: self.strict,
            tokens: self.tokens.clone(),
            declared_chats_only: self.declared_chats,
            webhooks_anywhere: self.allow_webhooks_anywhere,
            retry_after_header: !self.no_retry_after_header,
            journal: self.journal,
            queries_live: self.queries_live,
            connections_max: self.max_connections,
            people: self.people.as_deref().map(people).transpose()?.unwrap_or_default(),
            ..base
        })
    }

    fn profile(&self, base: &Profile) -> anyhow::Result<Profile> {
        let mut settings = match &self.profile {
            Some(name) => ServerSettings { profile: Some(name.clone()), ..ServerSettings::default() },
            None => ServerSettings::from(base),
        };
        settings.penalties = if self.no_penalties { Some(false) } else { settings.penalties };
        for limit in &self.limits {
            let (name, change) = limit_settings(limit).map_err(Invalid)?;
            settings.change(&name, change);
        }
        Ok(settings.resolve().map_err(invalid)?)
    }
}

/// Whether a file can be there: nobody waits for a verdict that is lost.
fn check_folder(path: &Path) -> Result<(), Invalid> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or_else(|| Path::new("."));
    if folder.is_dir() && !path.is_dir() {
        return Ok(());
    }
    let what = if path.is_dir() {
        "is a folder; name a file in it"
    } else {
        "is in no folder that there is; make it first"
    };
    Err(Invalid(format!("--summary {}: {what}", path.display())))
}

/// Of the shape of the summary.
const SUMMARY_VERSION: u32 = 1;

fn invalid(error: impl ToString) -> Invalid {
    Invalid(error.to_string())
}

/// `token:rate=25/s,burst=10`, `group:off`.
fn limit_settings(text: &str) -> Result<(String, LimitSettings), String> {
    let wrong = |what: &str| {
        format!(
            "limit `{text}`: {what}; write it as NAME:off or NAME:KEY=VALUE,KEY=VALUE, as in `token:rate=25/s`"
        )
    };
    let (name, rest) = text.split_once(':').ok_or_else(|| wrong("there is no colon"))?;
    let mut settings = Map::new();
    for pair in rest.split(',') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
        let number = value.parse::<u64>().map(Value::from);
        let value = match value {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => number.unwrap_or_else(|_| text.into()),
        };
        settings.insert(key.trim().to_owned(), value);
    }
    let settings =
        serde_json::from_value(Value::Object(settings)).map_err(|error| wrong(&error.to_string()))?;
    Ok((name.to_owned(), settings))
}

fn people(path: &Path) -> anyhow::Result<Vec<Act>> {
    let text = fs::read_to_string(path).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    let acts = serde_json::from_str(&text);
    Ok(acts.map_err(|error| invalid(format!("{}: {error}; it is a JSON list of acts", path.display())))?)
}

/// Completes when the process is interrupted or terminated, counted from this call on.
fn ended() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}

fn banner(serve: &Serve, state: &State, addr: SocketAddr) -> anyhow::Result<()> {
    let base = format!("http://{addr}");
    let mut out = anstream::stdout().lock();
    writeln!(out, "fake-telegram listens on {base}")?;
    if !serve.quiet {
        let profile = state.core().profile().clone();
        let token = state.options.tokens.first().map_or("123456:ABC", String::as_str);
        writeln!(
            out,
            "control  {base}/__admin/  (state, faults, chats, users, clock, journal, metrics, ...)"
        )?;
        writeln!(out, "profile  {}, seed {}{}", profile.name, state.options.seed, clock(state))?;
        for limit in &profile.limits {
            writeln!(out, "  {:<16} {}", limit.name, described(limit))?;
        }
        if let Some(hold) = profile.hold {
            writeln!(out, "  calls are held for up to {} before they are refused", hold.budget)?;
        }
        let faults = state.core().faults().len();
        if faults > 0 {
            writeln!(out, "faults   {faults} (GET {base}/__admin/faults)")?;
        }
        if !state.options.people.is_empty() {
            writeln!(out, "people   {} acts, from the first call of a bot on", state.options.people.len())?;
        }
        let bots = if state.options.strict {
            format!("T is one of {}", state.options.tokens.join(", "))
        } else {
            format!("T is any token of the form {token}")
        };
        writeln!(out, "point a bot at it ({bots})")?;
        for (library, line) in CLIENTS {
            writeln!(out, "  {library:<20} {}", line.replace("BASE", &base))?;
        }
        writeln!(out, "Ctrl-C ends it with a verdict on whoever called")?;
    }
    out.flush()?;
    Ok(())
}

/// The line that points a library here (each tried: `docs/bots.md`).
const CLIENTS: [(&str, &str); 9] = [
    (
        "python-telegram-bot",
        "ApplicationBuilder().token(T).base_url(\"BASE/bot\").base_file_url(\"BASE/file/bot\")",
    ),
    ("aiogram", "Bot(T, session=AiohttpSession(api=TelegramAPIServer.from_base(\"BASE\")))"),
    ("pyTelegramBotAPI", "telebot.apihelper.API_URL = \"BASE/bot{0}/{1}\""),
    ("grammY", "new Bot(T, { client: { apiRoot: \"BASE\" } })"),
    ("telegraf", "new Telegraf(T, { telegram: { apiRoot: \"BASE\" } })"),
    ("ntba 2", "new Bot(T, { apiRoot: \"BASE\" })"),
    ("ntba 0", "new TelegramBot(T, { baseApiUrl: \"BASE\" })"),
    ("teloxide", "Bot::new(T).set_api_url(\"BASE\".parse()?)"),
    ("frankenstein", "Bot::new_url(format!(\"BASE/bot{T}\"))"),
];

fn clock(state: &State) -> String {
    let reading = state.clock.read();
    match (reading.frozen, reading.speed) {
        (true, _) => ", the clock stands".to_owned(),
        (false, 1) => String::new(),
        (false, speed) => format!(", {speed} times as fast as real time"),
    }
}

fn described(limit: &Limit) -> String {
    let how = match limit.algorithm {
        Algorithm::TokenBucket { rate, burst } => format!("{rate}, burst {burst}"),
        Algorithm::SlidingWindow { limit, window } => format!("{limit} in any {window}"),
        Algorithm::FixedWindow { limit, window } => format!("{limit} in each {window}"),
    };
    let key = serde_json::to_value(limit.key).ok();
    let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
    format!("{how}, for each {key}")
}

fn farewell(bots: &[Verdict], all: &Verdict, judged: &[Judged]) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out)?;
    if bots.len() > 1 {
        bots.iter().take(BOTS_SHOWN).try_for_each(|verdict| write!(out, "{}", verdict.lines()))?;
        if bots.len() > BOTS_SHOWN {
            writeln!(out, "and {} more bots", bots.len() - BOTS_SHOWN)?;
        }
    }
    write!(out, "{}", if let [only] = bots { only } else { all }.lines())?;
    for judged in judged {
        writeln!(out, "{judged}")?;
    }
    out.flush()?;
    Ok(())
}

const BOTS_SHOWN: usize = 10;

/// As a whole: first beside it, then in its place.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let beside = path.with_added_extension("tmp");
    fs::write(&beside, bytes).with_context(|| format!("cannot write {}", beside.display()))?;
    fs::rename(&beside, path).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_in_one_word() {
        let (name, settings) = limit_settings("token:rate=25/s,burst=10").expect("a limit");
        assert_eq!((name.as_str(), settings.burst.map(|burst| burst.0)), ("token", Some(10)));
        assert_eq!(settings.rate.map(|rate| rate.to_string()).as_deref(), Some("25/s"));
        assert_eq!(limit_settings("group:off").expect("a limit").1.off, Some(true));
        for wrong in ["token", "token:rat=25/s", "token:rate=25"] {
            let error = limit_settings(wrong).expect_err(wrong);
            assert!(error.contains("NAME:KEY=VALUE"), "{error}");
        }
    }
}
