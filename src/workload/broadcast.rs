//! The same notice to many chats at a time.

use fake_telegram::api::ChatIndex;
use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audience::{Audience, pick_next};
use super::{Arrival, Site, Source, Workload, WorkloadError};
use crate::one_or_many::OneOrMany;
use crate::rng;

/// The same notice to many chats at a time, to each at most once a broadcast. Each broadcast draws its own chats, or
/// goes to a list that only grows.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {
    /// When it starts, or a list.
    #[serde(default = "at_the_start")]
    pub at: OneOrMany<Duration>,
    /// All of them again and again at this distance, until the workloads end; once without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// To whom.
    #[serde(default)]
    pub chats: Audience,
    /// Each broadcast after the first reaches so many chats more: subscribers in order of their index, from the first
    /// on, instead of chats that each broadcast draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grow: Option<Count>,
    /// Evenly over this time; all at once at zero.
    #[serde(default)]
    pub spread: Duration,
}

impl Workload for Broadcast {
    const KIND: &'static str = "broadcast";
    const SUMMARY: &'static str = "N chats at a time, at once or spread, once or again and again";

    fn prepare(self, site: &mut Site<'_>) -> Result<Source, WorkloadError> {
        let end = Time::ZERO + site.duration;
        let (every, spread) = (self.every, self.spread);
        let starts = self.starts(site.duration)?;
        let (chats, first) = self.audience(site, starts.len() as u64)?;
        let grow = self.grow.map(|Count(grow)| grow);
        let purpose = site.purpose();
        Ok(Box::new(move |seed| {
            let mut stream = rng::stream(seed, &purpose);
            let mut chats = chats.clone();
            let starts = starts.clone();
            let rounds = std::iter::successors(Some(Duration::ZERO), move |round| Some(*round + every?));
            let broadcasts = rounds
                .flat_map(move |round| starts.clone().into_iter().map(move |start| start + round))
                .take_while(move |start| *start < end);
            let arrivals = broadcasts.zip(0..).flat_map(move |(start, occasion): (Time, u64)| {
                let count = first + grow.unwrap_or(0) * occasion;
                (0..count).map(move |sent| (start, sent, count))
            });
            let arrivals = arrivals.map(move |(start, sent, count)| {
                if grow.is_none() {
                    // Any order is a fair one to start from, so the next broadcast goes on from where this one left it.
                    pick_next(&mut stream, &mut chats, sent as usize);
                }
                let offset = u128::from(spread.as_micros()) * u128::from(sent) / u128::from(count);
                let due = start + Duration::from_micros(offset as u64);
                Arrival { due, chat: ChatIndex(chats[sent as usize]) }
            });
            Box::new(arrivals.take_while(move |arrival| arrival.due < end))
        }))
    }
}

impl Broadcast {
    /// The chats to take from, and how many the first broadcast reaches; `starts` is how many there are in a round.
    fn audience(&self, site: &Site<'_>, starts: u64) -> Result<(Vec<u32>, u64), WorkloadError> {
        let Some(Count(grow)) = self.grow else {
            let blocks = self.chats.blocks(site)?;
            let count = blocks.iter().map(|block| u64::from(block.picked)).sum();
            return Ok((blocks.into_iter().flat_map(|block| block.chats).collect(), count));
        };
        let (chats, count) = self.chats.in_order(site)?;
        let rounds = |every: Duration| {
            let begun = |at: &Duration| (site.duration - *at).as_micros().div_ceil(every.as_micros());
            self.at.0.iter().map(begun).sum()
        };
        let occasions = self.every.map_or(starts, rounds);
        let last = u128::from(count) + u128::from(grow) * u128::from(occasions - 1);
        if last > chats.len() as u128 {
            let message = format!(
                "the last of {occasions} broadcasts would reach {last} chats, and the scenario declares {} of these \
                 kinds; let it grow less, or declare more in [chats]",
                chats.len()
            );
            return Err(WorkloadError::new("grow", message));
        }
        Ok((chats, count))
    }

    /// The starts of the first round, in order, each broadcast over before the next begins.
    fn starts(&self, duration: Duration) -> Result<Vec<Time>, WorkloadError> {
        let wrong = |key, message: String| Err(WorkloadError::new(key, message));
        let mut starts = self.at.0.clone();
        starts.sort_unstable();
        let (Some(first), Some(last)) = (starts.first().copied(), starts.last().copied()) else {
            return wrong("at", "an empty list: there is no broadcast".to_owned());
        };
        if last >= duration {
            return wrong("at", format!("{last} is not before the end of the workloads at {duration}"));
        }
        let next_round = self.every.map(|every| first.saturating_add(every));
        let shortest = Duration::from_micros(1).max(self.spread);
        for (this, next) in starts.iter().zip(starts.iter().copied().skip(1).chain(next_round)) {
            if next < this.saturating_add(shortest) {
                let message = format!(
                    "the broadcast at {this} goes on until {}, and the next begins at {next}",
                    this.saturating_add(self.spread)
                );
                return wrong(if self.spread.is_zero() { "every" } else { "spread" }, message);
            }
        }
        Ok(starts.into_iter().map(|start| Time::ZERO + start).collect())
    }
}

fn at_the_start() -> OneOrMany<Duration> {
    OneOrMany(vec![Duration::ZERO])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workload::tests::{arrivals, prepare};

    #[test]
    fn reaches_each_chat_at_most_once_a_broadcast() {
        let toml =
            r#"at = "1h", every = "2h", spread = "1min", chats = { count = "1k", kinds = ["private"] }"#;
        let all = arrivals::<Broadcast>(toml, 1);
        assert_eq!(all.len(), 12_000, "12 broadcasts in 24 h");
        let sets: Vec<BTreeSet<u32>> =
            all.chunks(1_000).map(|b| b.iter().map(|a| a.chat.0).collect()).collect();
        assert!(sets.iter().all(|set| set.len() == 1_000));
        assert!(sets[0] != sets[1], "each broadcast draws its own chats");
        assert_eq!(all[0].due, Time::from_secs(3_600));
        assert_eq!(all[500].due, Time::from_secs(3_630), "evenly over the minute");
        assert!(all.is_sorted_by_key(|arrival| arrival.due));
    }

    #[test]
    fn a_list_of_subscribers_that_grows() {
        let toml = r#"every = "6h", chats = { count = 2, kinds = ["group"] }, grow = 3, spread = "1min""#;
        let all = arrivals::<Broadcast>(toml, 1);
        let mut left = all.as_slice();
        for (hour, count) in [(0, 2), (6, 5), (12, 8), (18, 11)] {
            let (broadcast, rest) = left.split_at(count);
            assert!(broadcast.iter().map(|arrival| arrival.chat.0).eq(9_700..9_700 + count as u32));
            assert_eq!(broadcast[0].due, Time::ZERO + Duration::from_hours(hour));
            let last = Duration::from_micros(60_000_000 * (count as u64 - 1) / count as u64);
            assert_eq!(broadcast[count - 1].due, broadcast[0].due + last, "evenly over the minute");
            left = rest;
        }
        assert!(left.is_empty());
        assert_eq!(arrivals::<Broadcast>(toml, 2), all, "nothing is drawn");
    }

    #[test]
    fn a_list_never_outgrows_the_chats() {
        let told = |toml: &str| match prepare::<Broadcast>(toml) {
            Ok(source) => source(1).count().to_string(),
            Err(error) => error.to_string(),
        };
        // At 1h, 9h, 17h and 2h, 10h, 18h; the last is the 6th.
        let six = r#"at = ["1h", "2h"], every = "8h", chats = { count = 100 }, grow"#;
        assert_eq!(told(&format!("{six} = 1980")), (6 * 100 + 15 * 1_980).to_string());
        assert_eq!(
            told(&format!("{six} = 1981")),
            "grow: the last of 6 broadcasts would reach 10005 chats, and the scenario declares 10000 of these kinds; \
             let it grow less, or declare more in [chats]"
        );
        assert_eq!(told(r#"at = ["1h", "2h"], chats = { share = "50%" }, grow = "5k""#), "15000");
    }

    #[test]
    fn several_a_day() {
        let toml = r#"at = ["18h", "9h"], every = "1d", chats = { count = 1 }"#;
        let hours = arrivals::<Broadcast>(toml, 1)
            .iter()
            .map(|a| a.due.as_micros() / 3_600_000_000)
            .collect::<Vec<_>>();
        assert_eq!(hours, [9, 18]);
    }

    #[test]
    fn a_share_of_all_at_once() {
        let all = arrivals::<Broadcast>(r#"chats = { share = "50%" }"#, 1);
        assert_eq!(all.len(), 5_000);
        assert!(all.iter().all(|arrival| arrival.due == Time::ZERO));
    }
}
