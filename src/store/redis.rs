//! The store on a real Redis 7.
//!
//! [`Redis`] is for virtual time: it blocks on the real round trip, says to each script what time it is, and keeps times to
//! live itself. [`RedisStore`] is for real time: its calls are futures, and the server's clock and times to live count.
//!
//! All keys of a run begin with `floodlab:{RUN}:`, where RUN is unlike that of any other run; they are one hash slot, and
//! are deleted at the end. Nothing else on the server is touched.

mod wire;
mod live;
mod blocking;

pub use blocking::Redis;
pub use live::RedisStore;

use ::redis::{ErrorKind, RedisError};

use super::StoreError;
use super::url::StoreUrl;

/// A real Redis that cannot be used, or said what nobody expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store at {url}: {what}")]
pub struct Broken {
    url: StoreUrl,
    what: String,
    /// As a strategy hears of it.
    kind: StoreError,
}

impl Broken {
    fn new(url: &StoreUrl, what: impl Into<String>) -> Self {
        Self { url: url.clone(), what: what.into(), kind: StoreError::Unexpected }
    }

    fn of(url: &StoreUrl, error: &RedisError) -> Self {
        let kind = match error.kind() {
            ErrorKind::Io if error.is_connection_refusal() => StoreError::Refused,
            // It may have been heard.
            ErrorKind::Io => StoreError::TimedOut,
            _ => StoreError::Unexpected,
        };
        let what = match kind {
            StoreError::Refused => {
                let way_out = "start a Redis there, or leave the store simulated";
                format!("{error}; {way_out} (`scripts/with-redis` starts one for a command)")
            }
            StoreError::TimedOut if error.is_timeout() => {
                "no answer; is it the right address, and a Redis that answers?".to_owned()
            }
            StoreError::TimedOut | StoreError::Unexpected | StoreError::Command(_) => error.to_string(),
        };
        Self { url: url.clone(), what, kind }
    }

    /// As a strategy hears of it.
    pub const fn kind(&self) -> StoreError {
        self.kind
    }
}

/// Before all keys of the run called `run`; also what deletes them matches, so no name of a run has a special character.
fn prefix(run: &str) -> String {
    format!("floodlab:{{{run}}}:")
}

/// The oldest Redis that has all that scripts need (`ZADD GT` and `LMOVE` are older; function semantics are those of 7).
const VERSION_MIN: u64 = 7;

/// Whether the text that `INFO server` answers is that of a server that is new enough.
fn check_version(url: &StoreUrl, info: &str) -> Result<(), Broken> {
    let version =
        info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap_or("unknown").trim();
    match version.split('.').next().and_then(|major| major.parse::<u64>().ok()) {
        Some(VERSION_MIN..) => Ok(()),
        _ => Err(Broken::new(
            url,
            format!(
                "its version is {version}, and scripts need Redis {VERSION_MIN} or newer; use another server"
            ),
        )),
    }
}

/// A connection to the Redis of the tests.
///
/// # Panics
/// If there is none.
#[cfg(test)]
pub(crate) fn for_tests() -> Redis {
    let url = std::env::var("FLOODLAB_REDIS_URL").unwrap_or_else(|_| {
        panic!("this test needs a Redis: run `scripts/with-redis cargo test`, or set FLOODLAB_REDIS_URL")
    });
    let url = url.parse().unwrap_or_else(|error| panic!("FLOODLAB_REDIS_URL: {error}"));
    let timeout = fake_telegram::time::Duration::from_secs(5);
    Redis::open(&url, timeout).unwrap_or_else(|error| panic!("FLOODLAB_REDIS_URL: {error}"))
}
