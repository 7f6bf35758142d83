//! Faults: answers that are lost, broken or lies, by rate and by time.
//!
//! One draw decides which fault hits a call, if any. What a fault does depends on its phase:
//!
//! - `before`: the call has no effect, takes no budget and is not seen by limits; the client gets the fault.
//! - `after`: the call goes its way; whatever it is answered, other than 429, is replaced by the fault. So a
//!   message may be delivered and its sender not know.
//! - `instead-of-429`: as if 429 did not exist: a call that a limit refuses gets the fault (incident T7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Answer, Garbage};
use crate::draw::draw;
use crate::time::{Duration, Time};
use crate::units::Share;

/// One kind of fault, how often, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What the client gets.
    pub kind: FaultKind,
    /// Where it strikes.
    #[serde(default)]
    pub phase: Phase,
    /// The share of calls that it hits; of refused calls with `phase = "instead-of-429"`.
    pub rate: Share,
    /// From when on, counted from the start of the run.
    #[serde(default)]
    pub from: Duration,
    /// For how long; to the end if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#for: Option<Duration>,
}

/// What the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The connection is reset: no answer.
    Lost,
    /// Internal Server Error.
    #[serde(rename = "500")]
    Status500,
    /// Bad Gateway.
    #[serde(rename = "502")]
    Status502,
    /// Bad Gateway, as a page of the proxy in front.
    #[serde(rename = "502-html")]
    Page502,
    /// Gateway Time-out, as a page.
    #[serde(rename = "504")]
    Status504,
    /// 200 with an HTML page (C46, C48).
    Html,
    /// 200 with nothing (C49).
    Empty,
    /// 200 with JSON that ends in the middle.
    Truncated,
    /// 200 with `ok: true` and a result without `message_id`.
    NoMessageId,
    /// 200 with a list that is cut after its first 20 entries (T7).
    CutList,
    /// 200 with a perfect answer to a message that is never delivered; never `after`.
    Phantom,
}

/// Where a fault strikes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before the call has any effect.
    #[default]
    Before,
    /// After the effect.
    After,
    /// In the place of a 429.
    #[serde(rename = "instead-of-429")]
    InsteadOf429,
}

/// Why a list of faults is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// Rates add up to more than everything.
    #[error("faults that are active at {0} add up to {1} of all calls; lower a `rate` or move a `from`")]
    TooMany(Duration, String),
    /// A phantom with an effect is no phantom.
    #[error(
        "a `phantom` is a message that is not delivered; use `phase = \"before\"` or `\"instead-of-429\"`"
    )]
    Phantom,
}

/// Compiled faults: which one hits a call. The default has none.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Stretches of time in which the same faults are active, in order.
    stretches: Vec<Stretch>,
    /// How many stretches have begun.
    begun: usize,
    /// When the next one begins.
    next_at: Option<Time>,
}

/// A fault that hit a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) kind: FaultKind,
    pub(crate) phase: Phase,
}

#[derive(Debug, Clone, Default)]
struct Stretch {
    from: Time,
    /// Before and after, then those instead of 429.
    tables: [Vec<(u64, Hit)>; 2],
}

impl Faults {
    /// Compiles `faults`.
    ///
    /// # Errors
    /// If at some time rates add up to more than 100%, or a phantom comes `after`.
    pub fn new(faults: &[Fault]) -> Result<Self, FaultError> {
        if faults.iter().any(|fault| fault.kind == FaultKind::Phantom && fault.phase == Phase::After) {
            return Err(FaultError::Phantom);
        }
        let mut changes: Vec<Duration> =
            faults.iter().flat_map(|fault| [Some(fault.from), fault.until()]).flatten().collect();
        changes.sort_unstable();
        changes.dedup();
        let stretches: Vec<Stretch> =
            changes.into_iter().map(|from| Stretch::new(faults, from)).collect::<Result<_, _>>()?;
        let next_at = stretches.first().map(|stretch| stretch.from);
        Ok(Self { stretches, begun: 0, next_at })
    }

    /// The fault that hits a call at `now`, by its draw. Time only goes forward.
    #[inline]
    pub(crate) fn hit(&mut self, now: Time, draw: u32) -> Option<Hit> {
        if self.stretches.is_empty() {
            return None;
        }
        self.active(now, 0, draw)
    }

    /// The fault that takes the place of a 429 at `now`. Its draw is made of the call's: the call was not hit, so the
    /// draw itself is no longer uniform.
    pub(crate) fn instead_of_429(&mut self, now: Time, of_call: u32) -> Option<Hit> {
        self.active(now, 1, (draw(INSTEAD_OF_429, of_call.into(), 0) >> 32) as u32)
    }

    fn active(&mut self, now: Time, table: usize, draw: u32) -> Option<Hit> {
        while self.next_at.is_some_and(|at| at <= now) {
            self.begun += 1;
            self.next_at = self.stretches.get(self.begun).map(|stretch| stretch.from);
        }
        let stretch = &self.stretches[..self.begun].last()?;
        stretch.tables[table].iter().find(|&&(below, _)| u64::from(draw) < below).map(|&(_, hit)| hit)
    }
}

impl Fault {
    fn until(&self) -> Option<Duration> {
        self.r#for.map(|length| self.from.saturating_add(length))
    }

    fn active(&self, at: Duration) -> bool {
        self.from <= at && self.until().is_none_or(|until| at < until)
    }
}

impl FaultKind {
    /// What the client gets; a phantom's message has this id.
    pub(crate) const fn answer(self, message_id: u32) -> Answer {
        match self {
            Self::Lost => Answer::ConnectionLost,
            Self::Status500 => Answer::ServerError { status: 500, page: false },
            Self::Status502 => Answer::ServerError { status: 502, page: false },
            Self::Page502 => Answer::ServerError { status: 502, page: true },
            Self::Status504 => Answer::ServerError { status: 504, page: true },
            Self::Html => Answer::Garbage(Garbage::Html),
            Self::Empty => Answer::Garbage(Garbage::Empty),
            Self::Truncated => Answer::Garbage(Garbage::Truncated),
            Self::NoMessageId => Answer::Garbage(Garbage::NoMessageId),
            Self::CutList => Answer::Garbage(Garbage::CutList),
            Self::Phantom => Answer::Message { message_id },
        }
    }
}

impl Stretch {
    fn new(faults: &[Fault], from: Duration) -> Result<Self, FaultError> {
        let mut stretch = Self { from: Time::ZERO + from, ..Self::default() };
        let mut totals = [0u64; 2];
        for fault in faults.iter().filter(|fault| fault.active(from)) {
            let table = usize::from(fault.phase == Phase::InsteadOf429);
            totals[table] += u64::from(fault.rate.as_ppm());
            // Thresholds of the sum, not sums of thresholds: rounding does not add up.
            let below = (totals[table] << 32) / 1_000_000;
            stretch.tables[table].push((below, Hit { kind: fault.kind, phase: fault.phase }));
        }
        match totals.into_iter().max() {
            Some(total) if total > 1_000_000 => {
                Err(FaultError::TooMany(from, format!("{}%", total as f64 / 1e4)))
            }
            _ => Ok(stretch),
        }
    }
}

/// A key for [`Faults::instead_of_429`], any number.
const INSTEAD_OF_429: u64 = 429;

#[cfg(test)]
mod tests {
    use super::*;

    const fn fault(kind: FaultKind, phase: Phase, ppm: u32) -> Fault {
        Fault { kind, phase, rate: Share::from_ppm(ppm), from: Duration::ZERO, r#for: None }
    }

    #[test]
    fn each_fault_has_its_own_part_of_the_draws() {
        let list =
            [fault(FaultKind::Lost, Phase::Before, 250_000), fault(FaultKind::Html, Phase::After, 250_000)];
        let mut faults = Faults::new(&list).expect("half of all");
        let mut kind = |draw| faults.hit(Time::ZERO, draw).map(|hit| hit.kind);
        assert_eq!(kind(0), Some(FaultKind::Lost));
        assert_eq!(kind((1 << 30) - 1), Some(FaultKind::Lost));
        assert_eq!(kind(1 << 30), Some(FaultKind::Html));
        assert_eq!(kind(1 << 31), None);
    }

    #[test]
    fn a_fault_lasts_as_long_as_it_says() {
        let storm = Fault {
            from: Duration::from_secs(10),
            r#for: Some(Duration::from_secs(5)),
            ..fault(FaultKind::Status502, Phase::Before, 1_000_000)
        };
        let mut faults = Faults::new(&[storm]).expect("one fault");
        let hits = [9, 10, 14, 15, 99].map(|t| faults.hit(Time::from_secs(t), u32::MAX).is_some());
        assert_eq!(hits, [false, true, true, false, false]);
    }

    #[test]
    fn impossible_lists_are_told_what_to_do() {
        let most = fault(FaultKind::Lost, Phase::Before, 600_000);
        let error = Faults::new(&[most, most]).expect_err("120%");
        assert_eq!(
            error.to_string(),
            "faults that are active at 0s add up to 120% of all calls; lower a `rate` or move a `from`"
        );
        // Those instead of 429 are a share of other calls.
        assert!(Faults::new(&[most, fault(FaultKind::Html, Phase::InsteadOf429, 600_000)]).is_ok());
        assert!(Faults::new(&[fault(FaultKind::Phantom, Phase::After, 1)]).is_err());
    }
}
