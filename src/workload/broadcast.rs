//! The same notice to many chats at a time.

use fake_telegram::api::ChatIndex;
use fake_telegram::time::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audience::{Audience, pick_next};
use super::{Arrival, Site, Source, Workload, WorkloadError};
use crate::one_or_many::OneOrMany;
use crate::rng;

/// The same notice to many chats at a time; each broadcast draws its own chats and reaches each at most once.
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
        let blocks = self.chats.blocks(site)?;
        let count = blocks.iter().map(|block| u64::from(block.picked)).sum();
        let chats: Vec<u32> = blocks.into_iter().flat_map(|block| block.chats).collect();
        let purpose = site.purpose();
        Ok(Box::new(move |seed| {
            let mut stream = rng::stream(seed, &purpose);
            let mut chats = chats.clone();
            let starts = starts.clone();
            let rounds = std::iter::successors(Some(Duration::ZERO), move |round| Some(*round + every?));
            let broadcasts = rounds
                .flat_map(move |round| starts.clone().into_iter().map(move |start| start + round))
                .take_while(move |start| *start < end);
            let arrivals = broadcasts.flat_map(move |start| (0..count).map(move |sent| (start, sent)));
            let arrivals = arrivals.map(move |(start, sent)| {
                // Any order is a fair one to start from, so the next broadcast goes on from where this one left it.
                pick_next(&mut stream, &mut chats, sent as usize);
                let offset = u128::from(spread.as_micros()) * u128::from(sent) / u128::from(count);
                let due = start + Duration::from_micros(offset as u64);
                Arrival { due, chat: ChatIndex(chats[sent as usize]) }
            });
            Box::new(arrivals.take_while(move |arrival| arrival.due < end))
        }))
    }
}

impl Broadcast {
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
    use crate::workload::tests::arrivals;

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
