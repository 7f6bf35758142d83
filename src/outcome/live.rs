//! What real time brings to a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run in real time: what it ran against, and what may explain its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// The base URL, without tokens; of a server of our own that was started for the run, the one that it had.
    pub url: String,
    /// The server's name, if it says one.
    pub server: Option<String>,
    /// Whether the server told what really happened to each call. Otherwise the answers are taken for the truth: a 200
    /// with a message is a delivery, what was not answered was not delivered, and each 429 counts for the profile's
    /// first limit.
    pub told_truth: bool,
    /// When somebody interrupted it, from its start; `null` if nobody did.
    pub interrupted_us: Option<u64>,
    /// How late things ran that were due in our own program: answers that had come, sleeps that were over, messages
    /// that were to fall due. What is large here is the machine's fault and not a sender's.
    pub late_us: Late,
    /// What became of the calls.
    pub calls: LiveCalls,
    /// How a real store was at the end; absent if it was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<LiveStore>,
}

/// A real store at the end of a run in real time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveStore {
    /// Messages that are lost because they should have been there and were in no queue: with what somebody else deleted, or by
    /// a call whose answer never came.
    pub missing: u64,
    /// Why it could not be asked what is in it, if so: what should be there counts as pending, and `store_keys` is 0.
    pub silent: Option<String>,
}

/// How late things ran, in microseconds; a timer alone takes up to about 2 ms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Late {
    /// How many things ran.
    pub events: u64,
    /// 99th percentile of how late.
    pub p99: u64,
    /// The latest.
    pub max: u64,
}

/// What became of the calls of a run in real time. Calls that were on the wire at its end are in none of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveCalls {
    /// Answered, whatever the answer was.
    pub answered: u64,
    /// No connection, or none in time: nothing was sent.
    pub unconnected: u64,
    /// The connection ended before the request was sent.
    pub unsent: u64,
    /// The connection ended after the request was sent: nobody knows whether it was received.
    pub lost: u64,
    /// No whole answer within the time-out, after the request was sent.
    pub timed_out: u64,
    /// Refused with 429 by a limit that the scenario's profile does not have: counted for its first limit, and for none
    /// if it has none.
    pub refused_elsewhere: u64,
}
