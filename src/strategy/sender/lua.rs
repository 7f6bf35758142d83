//! The scripts as a real Redis has them, and what they are told: settings as JSON, in integers that a double holds.
//!
//! Each is made of pieces in `lua/`, which say what they do; those that have a counterpart in Rust name it.

use fake_telegram::bucket::TokenBucket;
use fake_telegram::time::Duration;
use serde_json::{Value, json};

use super::DeadChats;
use super::doubt::{Doubt, RetryDoubt};
use super::limiter::{Clock, TokenBucketLimiter};
use super::queue::{Mark, Queue};
use super::scripts::Policy;
use crate::limiter::pause::{Pause, PauseKey};
use crate::limiter::ramp::Ramp;
use crate::limiter::text::{self, NEVER};
use crate::store::Key;
use crate::store::command::Reply;
use crate::store::script::{Name, Names};
use crate::world::Message;

macro_rules! script {
    ($($piece:literal),+) => { concat!($(include_str!(concat!("lua/", $piece, ".lua")), "\n"),+) };
}

pub(super) const TAKE: &str = script!("clock", "bucket", "budget", "take");
pub(super) const SLOW: &str = script!("clock", "bucket", "budget", "slow");
pub(super) const COUNT: &str = script!("clock", "count");
pub(super) const PAUSED: &str = script!("clock", "pause", "paused");
pub(super) const REFUSE: &str = script!("clock", "pause", "refuse");

const FIFO_EXCHANGE: &str =
    script!("clock", "bucket", "budget", "pause", "message", "queue", "leases", "fifo", "exchange");
const FIFO_FINISH: &str =
    script!("clock", "bucket", "budget", "pause", "message", "queue", "leases", "fifo", "finish");
const LANES_EXCHANGE: &str =
    script!("clock", "bucket", "budget", "pause", "message", "queue", "leases", "lanes", "exchange");
const LANES_FINISH: &str =
    script!("clock", "bucket", "budget", "pause", "message", "queue", "leases", "lanes", "finish");

/// The scripts of a kind of queue.
pub(super) struct QueueScripts {
    pub(super) exchange: &'static str,
    pub(super) finish: &'static str,
    /// The parts of the queue's object, in the order of `KEYS`.
    pub(super) parts: &'static [&'static str],
}

impl QueueScripts {
    pub(super) const fn of(queue: &Queue) -> Self {
        match queue {
            Queue::None(_) | Queue::Fifo(_) => Self {
                exchange: FIFO_EXCHANGE,
                finish: FIFO_FINISH,
                parts: &[
                    "meta", "messages", "leases", "answers", "slots", "free", "waiting", "buckets", "dead",
                ],
            },
            Queue::Lanes(_) => Self {
                exchange: LANES_EXCHANGE,
                finish: LANES_FINISH,
                parts: &[
                    "meta", "messages", "leases", "answers", "lanes", "next", "blocked", "closing", "ready0",
                    "ready1", "ready2", "ready3",
                ],
            },
        }
    }
}

/// What the scripts of a queue have to know.
pub(super) fn settings(policy: &Policy<'_>, pause: Option<PauseKey>) -> Value {
    let sender = policy.sender;
    let mut settings = json!({
        "revive": sender.dead_chats == DeadChats::Revive,
        "mark_before": sender.queue.0.mark() == Mark::Before,
        "callers": policy.callers_clock,
        "ranks": policy.ranks,
        "once": policy.at_most_once,
        "lease": text::distance(sender.queue.0.lease()),
    });
    let mut add = |key: &str, value: Value| settings[key] = value;
    if let Some(release) = policy.release {
        let delay = text::distance(release.delay);
        add("release", json!({ "delay": delay, "attempts": release.attempts }));
    }
    if let Some(limiter) = sender.limiter.0.bucket_beside(sender.queue.0.keep()) {
        add("budget", budget(limiter));
    }
    if let Some(pause) = pause {
        add("pause", pause_kind(pause).into());
    }
    if let Some(pace) = sender.queue.0.pace() {
        add("pace", json!([bucket(&pace.private), bucket(&pace.group), bucket(&pace.channel)]));
    }
    if let Doubt::Retry(RetryDoubt { attempts, pause, .. }) = &sender.doubt.0 {
        let mut doubt = json!({ "pause": text::distance(*pause) });
        if let Some(attempts) = attempts {
            doubt["attempts"] = (*attempts).into();
        }
        add("doubt", doubt);
    }
    settings
}

/// What a budget's scripts have to know; its parameters were checked.
pub(super) fn budget(limiter: &TokenBucketLimiter) -> Value {
    let TokenBucketLimiter { rate, burst, clock, ramp, .. } = limiter;
    let period = rate.period.as_micros();
    match clock {
        Some(Clock::Callers) => {
            let capacity = u64::from(*burst).saturating_mul(period).min(LONG);
            json!({ "level": { "count": rate.count, "token": period, "capacity": capacity } })
        }
        Some(Clock::Store) | None => {
            let mut budget = json!({ "bucket": bucket(&TokenBucket::new(*rate, (*burst).into())) });
            if let Some(ramp) = ramp {
                let (full, step, resume) = Ramp::new(*rate, ramp.resume, ramp.step).parameters();
                budget["ramp"] =
                    json!({ "full": full.min(LONG), "step": step.min(LONG), "resume": resume.as_ppm() });
            }
            budget
        }
    }
}

/// A bucket on a clock that ticks `ticks` times a microsecond: what one token costs and what is there beside it in a full
/// bucket, each in whole microseconds and ticks.
fn bucket(bucket: &TokenBucket) -> Value {
    let (count, period) = (bucket.rate().count, bucket.rate().period.as_micros());
    let divisor = gcd(count, period);
    let (ticks, cost) = (count / divisor, period / divisor);
    let spare = cost.saturating_mul(bucket.burst() - 1);
    let pair = |all: u64| json!([(all / ticks).min(LONG), all % ticks]);
    json!({ "ticks": ticks, "cost": pair(cost), "spare": pair(spare) })
}

/// A bucket that takes longer to fill than 142 years is never seen full, and might as well be this large.
const LONG: u64 = NEVER / 2;

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A pause's kind, and whom a call concerns.
pub(super) fn paused(key: PauseKey, message: &Message) -> [String; 3] {
    let method = message.method as u8;
    [pause_kind(key).to_owned(), message.chat.0.to_string(), method.to_string()]
}

/// The keys of a pause.
pub(super) fn pause_keys(names: Names<'_>, pause: Key<Pause>) -> [Name; 2] {
    [names.whole(pause), names.part(pause, "parts")]
}

const fn pause_kind(key: PauseKey) -> &'static str {
    match key {
        PauseKey::Learned => "learned",
        PauseKey::Chat => "chat",
        PauseKey::Method => "method",
        PauseKey::Token => "token",
        PauseKey::Host => "host",
    }
}

pub(super) fn read_distance(reply: &Reply) -> Option<Duration> {
    match reply {
        Reply::Integer(us) => Some(text::read_distance(u64::try_from(*us).ok()?)),
        _ => None,
    }
}

pub(super) fn read_text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Bytes(bytes) => str::from_utf8(bytes).ok(),
        _ => None,
    }
}
