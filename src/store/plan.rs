//! What happens to the store in a run, as data: outages, flushes, restarts, somebody who deletes a key.

use std::fmt;

use fake_telegram::time::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Unavailable;

/// `[[store.event]]`: something happens to the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StoreEvent")]
pub struct Event {
    /// When, counted from the start of the run.
    pub at: Duration,
    /// What.
    pub action: Action,
    /// How long the store is away: from `at` on, until just before `at` + `for`. Of `fail` and `hang`, to the end if
    /// absent; `restart` needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#for: Option<Duration>,
    /// Whether a `restart` finds the data again; else it begins empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub persistent: bool,
    /// The key that a `delete` deletes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What happens to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "StoreAction")]
pub enum Action {
    /// Calls are refused at once.
    Fail,
    /// Calls get no answer and are not executed; their client times out.
    Hang,
    /// All data are gone; an outage does not keep it off.
    Flush,
    /// Its process dies and is back after `for`; until then calls are refused. Unless `persistent`, all data are gone.
    Restart,
    /// Somebody deletes an ordinary key; objects are not affected. An outage does not keep it off.
    Delete,
}

/// Events that can happen, in order of time; of one instant in the order of the list. The default: nothing happens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    events: Vec<Event>,
}

/// Why a list of events is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An outage begins before the one before it is over.
    #[error("{}", overlap(first, second))]
    Overlap {
        /// The outage that is on.
        first: Box<Event>,
        /// The outage that begins too early.
        second: Box<Event>,
    },
    /// An outage without length.
    #[error("{0} lasts no time; give `for` a length as in `30s`, or leave the event out")]
    NoTime(Box<Event>),
    /// A key that the action needs.
    #[error("{event} lacks `{key}`; write it as in `{example}`")]
    Lack {
        /// Where.
        event: Box<Event>,
        /// Which.
        key: &'static str,
        /// What it could look like.
        example: &'static str,
    },
    /// A key that the action has no use for.
    #[error("{event} has no use for `{key}`; leave it out")]
    Unused {
        /// Where.
        event: Box<Event>,
        /// Which.
        key: &'static str,
    },
}

impl Plan {
    /// The plan of these events, which may come in any order.
    ///
    /// # Errors
    /// If an event lacks a key or has one too many, an outage lasts no time, or two overlap. One may begin at the
    /// instant at which another ends.
    pub fn new(mut events: Vec<Event>) -> Result<Self, PlanError> {
        events.iter().try_for_each(Event::check)?;
        events.sort_by_key(|event| event.at);
        let outages: Vec<_> =
            events.iter().filter_map(|event| event.outage().map(|outage| (event, outage.until))).collect();
        for pair in outages.windows(2) {
            let ((first, until), (second, _)) = (pair[0], pair[1]);
            if second.starts_at() < until {
                return Err(PlanError::Overlap {
                    first: first.clone().into(),
                    second: second.clone().into(),
                });
            }
        }
        Ok(Self { events })
    }

    /// The events, in order of time.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }
}

/// Calls get no reply before `until`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    pub(super) until: Time,
    pub(super) how: Unavailable,
}

impl Event {
    /// When it happens.
    pub fn starts_at(&self) -> Time {
        Time::ZERO + self.at
    }

    /// Whether all data are gone by it.
    pub fn loses_data(&self) -> bool {
        match self.action {
            Action::Flush => true,
            Action::Restart => !self.persistent,
            Action::Fail | Action::Hang | Action::Delete => false,
        }
    }

    /// The outage that it begins.
    pub(super) fn outage(&self) -> Option<Outage> {
        let how = match self.action {
            Action::Fail | Action::Restart => Unavailable::Refused,
            Action::Hang => Unavailable::Hangs,
            Action::Flush | Action::Delete => return None,
        };
        let until = self.r#for.map_or(Time::MAX, |length| self.starts_at().saturating_add(length));
        Some(Outage { until, how })
    }

    fn check(&self) -> Result<(), PlanError> {
        let event = || Box::new(self.clone());
        let lack = |key, example| Err(PlanError::Lack { event: event(), key, example });
        let unused = |key| Err(PlanError::Unused { event: event(), key });
        let is = |action| self.action == action;
        if self.r#for.is_some() && (is(Action::Flush) || is(Action::Delete)) {
            return unused("for");
        }
        if self.persistent && !is(Action::Restart) {
            return unused("persistent");
        }
        if self.key.is_some() && !is(Action::Delete) {
            return unused("key");
        }
        if self.key.is_none() && is(Action::Delete) {
            return lack("key", "key = \"lock\"");
        }
        if self.r#for.is_none() && is(Action::Restart) {
            return lack("for", "for = \"5s\"");
        }
        if self.r#for.is_some_and(Duration::is_zero) {
            return Err(PlanError::NoTime(event()));
        }
        Ok(())
    }
}

/// In words, as errors name it: `hang` at 5min.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at {}", self.action.name(), self.at)
    }
}

impl Action {
    /// Its name, as in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Hang => "hang",
            Self::Flush => "flush",
            Self::Restart => "restart",
            Self::Delete => "delete",
        }
    }
}

fn overlap(first: &Event, second: &Event) -> String {
    match first.r#for {
        None => format!("{first} lasts to the end, so {second} cannot begin; give the first a `for`"),
        Some(length) => {
            let until = first.at.saturating_add(length);
            format!(
                "{first} lasts until {until}, so {second} begins too early; shorten the `for` of the first or \
                 move the second"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Serialize)]
    struct File {
        event: Vec<Event>,
    }

    fn read(toml: &str) -> Result<Plan, String> {
        let file: File = toml::from_str(toml).map_err(|error| error.message().to_owned())?;
        Plan::new(file.event).map_err(|error| error.to_string())
    }

    #[test]
    fn is_read_as_it_is_written_and_sorted_by_time() {
        let toml = r#"
            event = [
                { at = "9min", action = "delete", key = "lock" },
                { at = "5min", action = "fail", for = "30s" },
                { at = "9min", action = "flush" },
                { at = "6min", action = "restart", for = "5s", persistent = true },
                { at = "10min", action = "hang" },
            ]
        "#;
        let plan = read(toml).unwrap();
        let names: Vec<String> = plan.events().iter().map(Event::to_string).collect();
        let expected =
            ["`fail` at 5min", "`restart` at 6min", "`delete` at 9min", "`flush` at 9min", "`hang` at 10min"];
        assert_eq!(names, expected);
        let written = toml::to_string(&File { event: plan.events().to_vec() }).unwrap();
        assert_eq!(read(&written), Ok(plan));
        assert_eq!(written.matches("persistent").count(), 1, "{written}");
    }

    #[test]
    fn a_name_is_the_one_in_the_file() {
        for action in [Action::Fail, Action::Hang, Action::Flush, Action::Restart, Action::Delete] {
            assert_eq!(serde_json::to_value(action).unwrap(), action.name());
        }
    }

    #[test]
    fn an_outage_may_begin_when_another_ends() {
        let plan = |second: &str| {
            read(&format!(
                r#"event = [{{ at = "5min", action = "fail", for = "30s" }}, {{ at = "{second}", action = "hang" }}]"#
            ))
        };
        assert!(plan("330s").is_ok());
        assert_eq!(
            plan("329999ms").unwrap_err(),
            "`fail` at 5min lasts until 330s, so `hang` at 329.999s begins too early; shorten the `for` of the \
             first or move the second"
        );
        // Beside an outage, data may go.
        let toml = r#"event = [{ at = "1s", action = "hang" }, { at = "2s", action = "flush" }]"#;
        assert!(read(toml).is_ok());
    }

    #[test]
    fn what_cannot_be_is_an_error_that_names_the_way_out() {
        let check = |event: &str, expected: &str| {
            assert_eq!(read(&format!("event = [{event}]")).unwrap_err(), expected);
        };
        check(
            r#"{ at = "1s", action = "hang" }, { at = "2s", action = "restart", for = "1s" }"#,
            "`hang` at 1s lasts to the end, so `restart` at 2s cannot begin; give the first a `for`",
        );
        check(
            r#"{ at = "1s", action = "fail", for = "0s" }"#,
            "`fail` at 1s lasts no time; give `for` a length as in `30s`, or leave the event out",
        );
        check(
            r#"{ at = "1s", action = "restart" }"#,
            "`restart` at 1s lacks `for`; write it as in `for = \"5s\"`",
        );
        check(
            r#"{ at = "1s", action = "delete" }"#,
            "`delete` at 1s lacks `key`; write it as in `key = \"lock\"`",
        );
        check(
            r#"{ at = "1s", action = "flush", for = "1s" }"#,
            "`flush` at 1s has no use for `for`; leave it out",
        );
        check(
            r#"{ at = "1s", action = "fail", persistent = true }"#,
            "`fail` at 1s has no use for `persistent`; leave it out",
        );
        check(
            r#"{ at = "1s", action = "flush", key = "a" }"#,
            "`flush` at 1s has no use for `key`; leave it out",
        );
        check(
            r#"{ at = "1s", action = "explode" }"#,
            "unknown variant `explode`, expected one of `fail`, `hang`, `flush`, `restart`, `delete`",
        );
    }
}
