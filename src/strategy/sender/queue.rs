//! Where messages wait.

use fake_telegram::time::Duration;
use fake_telegram::units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::place::Keep;
use crate::limiter::lanes::RANKS;
use crate::limiter::offer::Pace;
use crate::limiter::{fifo, lanes, queue};
use crate::strategy::composition::NoParameters;
use crate::strategy::{ParameterError, Surroundings, bucket};

/// Where messages wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Queue {
    /// Nowhere: a worker takes a due message and keeps it until it is done with it.
    None(NoParameters),
    /// In one queue, first come, first served.
    Fifo(Fifo),
    /// In a queue for each chat.
    Lanes(Lanes),
}

/// [`Queue::Fifo`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fifo {
    /// One in each process, or one for all that outlives them.
    pub keep: Keep,
    /// When a message leaves it.
    pub mark: Mark,
    /// How long a message may be in flight before its sender is taken to be dead. In the store longer than any call
    /// takes.
    pub lease: Duration,
    /// How fast each chat is written to. As fast as messages come without it; with it everybody waits behind a chat
    /// that is limited (S10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<PaceSettings>,
}

/// [`Queue::Lanes`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lanes {
    /// One set of lanes in each process, or one for all that outlives them.
    pub keep: Keep,
    /// When a message leaves its lane.
    pub mark: Mark,
    /// How long a message may be in flight before its sender is taken to be dead. In the store longer than any call
    /// takes.
    pub lease: Duration,
    /// How fast each chat is written to.
    pub pace: PaceSettings,
    /// Classes of the scenario, first things first; all others come last.
    pub priority: Vec<String>,
}

/// When a message leaves its queue: what is lost or comes twice if its sender dies in between (S16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Before it is sent: a death loses it.
    Before,
    /// After its answer has come: a death leaves it in flight, and when its lease is over it is in doubt.
    After,
}

/// How fast each kind of chat is written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PaceSettings {
    /// How fast one private chat is written to.
    pub chat_rate: Rate,
    /// How many messages in a row a private chat gets.
    pub chat_burst: u32,
    /// How fast one group or channel is written to; with the burst at most 20 in any minute.
    pub group_rate: Rate,
    /// How many messages in a row a group or channel gets.
    pub group_burst: u32,
}

/// Longer than the time-out of a call, 30 s by default.
const LEASE: Duration = Duration::from_mins(1);

impl Default for Fifo {
    fn default() -> Self {
        Self { keep: Keep::Store, mark: Mark::After, lease: LEASE, pace: None }
    }
}

/// What scenarios call what they send; a scenario need not have all of them.
const PRIORITY: [&str; 3] = ["reply", "notification", "broadcast"];

impl Default for Lanes {
    fn default() -> Self {
        Self {
            keep: Keep::Store,
            mark: Mark::After,
            lease: LEASE,
            pace: PaceSettings::default(),
            priority: PRIORITY.map(str::to_owned).to_vec(),
        }
    }
}

impl Default for PaceSettings {
    fn default() -> Self {
        Self {
            chat_rate: Rate::per_second(1),
            chat_burst: 3,
            group_rate: Rate::per_minute(15),
            group_burst: 5,
        }
    }
}

impl PaceSettings {
    fn pace(&self) -> Result<Pace, ParameterError> {
        let private =
            bucket(("queue.pace.chat_rate", self.chat_rate), ("queue.pace.chat_burst", self.chat_burst))?;
        let group =
            bucket(("queue.pace.group_rate", self.group_rate), ("queue.pace.group_burst", self.group_burst))?;
        Ok(Pace { private, group, channel: group })
    }
}

impl Queue {
    pub(crate) const fn none() -> Self {
        Self::None(NoParameters {})
    }

    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None(_))
    }

    /// Where it is kept.
    pub(super) const fn keep(&self) -> Option<Keep> {
        match self {
            Self::None(_) => None,
            Self::Fifo(fifo) => Some(fifo.keep),
            Self::Lanes(lanes) => Some(lanes.keep),
        }
    }

    /// How long a message may be in flight.
    pub(super) const fn lease(&self) -> Duration {
        match self {
            // Workers do not die alone, and nobody else has the queue of a process.
            Self::None(_)
            | Self::Fifo(Fifo { keep: Keep::Process, .. })
            | Self::Lanes(Lanes { keep: Keep::Process, .. }) => Duration::MAX,
            Self::Fifo(fifo) => fifo.lease,
            Self::Lanes(lanes) => lanes.lease,
        }
    }

    /// When a message leaves it.
    pub(super) const fn mark(&self) -> Mark {
        match self {
            Self::None(_) => Mark::Before,
            Self::Fifo(fifo) => fifo.mark,
            Self::Lanes(lanes) => lanes.mark,
        }
    }

    pub(super) fn check(&self) -> Result<(), ParameterError> {
        let (pace, lease) = match self {
            Self::None(_) => return Ok(()),
            Self::Fifo(fifo) => (fifo.pace.as_ref(), fifo.lease),
            Self::Lanes(lanes) => {
                if lanes.priority.len() > RANKS {
                    let listed = lanes.priority.len();
                    let message =
                        format!("{listed} classes are listed; at most {RANKS} ranks are told apart");
                    return Err(ParameterError { key: "queue.priority", message });
                }
                (Some(&lanes.pace), lanes.lease)
            }
        };
        if lease.is_zero() {
            let message = "with a lease of no time every message is in doubt at once; write it as in `1min`";
            return Err(ParameterError { key: "queue.lease", message: message.to_owned() });
        }
        pace.map_or(Ok(()), |pace| pace.pace().map(|_| ()))
    }

    /// Whether it can work with these classes and calls.
    pub(super) fn check_at(&self, at: &Surroundings<'_>) -> Result<(), ParameterError> {
        let (lease, timeout) = (self.lease(), at.call_timeout);
        if self.keep() == Some(Keep::Store) && lease <= timeout {
            let message = format!(
                "{lease} is not longer than a call may take (`timeout` in [wire], {timeout}), so messages would be in doubt that are still on the wire; make it longer"
            );
            return Err(ParameterError { key: "queue.lease", message });
        }
        match self {
            Self::Lanes(Lanes { priority, .. }) if *priority != PRIORITY => {
                at.check_classes("queue.priority", priority)
            }
            _ => Ok(()),
        }
    }

    pub(super) const fn calls(&self) -> &'static [&'static str] {
        match self.keep() {
            Some(Keep::Store) => &["exchange", "finish"],
            Some(Keep::Process) | None => &[],
        }
    }

    /// Of a class: 0 goes first.
    pub(super) fn rank(&self, class: &str) -> usize {
        match self {
            Self::None(_) | Self::Fifo(_) => 0,
            Self::Lanes(lanes) => {
                let rank = lanes.priority.iter().position(|known| known == class);
                rank.unwrap_or(lanes.priority.len()).min(RANKS - 1)
            }
        }
    }

    /// How fast it writes to each chat, if it looks at that; the parameters were checked.
    pub(super) fn pace(&self) -> Option<Pace> {
        let pace = match self {
            Self::None(_) => None,
            Self::Fifo(fifo) => fifo.pace.as_ref(),
            Self::Lanes(lanes) => Some(&lanes.pace),
        };
        pace.map(|pace| pace.pace().expect("the parameters were checked"))
    }

    /// The empty queue; the parameters were checked, and there is one.
    pub(super) fn start(&self) -> queue::Queue {
        match (self, self.pace()) {
            (Self::Fifo(_), pace) => queue::Queue::Fifo(fifo::Fifo::new(pace, self.lease())),
            (Self::Lanes(_), Some(pace)) => queue::Queue::Lanes(lanes::Lanes::new(pace, self.lease())),
            (Self::None(_) | Self::Lanes(_), _) => panic!("a sender without a queue asks for none"),
        }
    }
}
