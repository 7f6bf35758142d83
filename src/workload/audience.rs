//! Which of the declared chats a workload writes to.

use fake_telegram::api::ChatKind;
use fake_telegram::units::{Count, Share};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::population::{KINDS, Population};
use super::{Site, WorkloadError};

/// A part of the declared chats: all of them unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audience {
    /// Of these kinds.
    pub kinds: Vec<ChatKind>,
    /// So many of them, picked by the seed; instead of `share`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// This share of them, picked by the seed; everybody without `share` and `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Default for Audience {
    fn default() -> Self {
        Self { kinds: KINDS.to_vec(), count: None, share: None }
    }
}

/// The chats of one kind that an audience is picked from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: ChatKind,
    /// The candidates.
    pub(super) chats: std::ops::Range<u32>,
    /// How many of them belong to the audience.
    pub(super) picked: u32,
}

impl Audience {
    /// The blocks that the audience is picked from, kind by kind, none of them empty.
    pub(super) fn blocks(&self, site: &Site<'_>) -> Result<Vec<Block>, WorkloadError> {
        let candidates = self.candidates(site.chats);
        let (count, total) = self.sizes(&candidates)?;
        // Each kind gets its part, rounded so that the parts add up: what is left is spread over what is left.
        let (mut left, mut of) = (count, total);
        let blocks = candidates.into_iter().map(|block| {
            let size = u64::from(block.picked);
            let picked = (u128::from(left) * u128::from(size)).div_ceil(u128::from(of)) as u64;
            let picked = picked.min(size).min(left);
            (left, of) = (left - picked, of - size);
            Block { picked: picked as u32, ..block }
        });
        Ok(blocks.filter(|block| block.picked > 0).collect())
    }

    /// The candidates in order of their index, and how many of them, from the first on, are the audience.
    pub(super) fn in_order(&self, site: &Site<'_>) -> Result<(Vec<u32>, u64), WorkloadError> {
        let candidates = self.candidates(site.chats);
        let (count, _) = self.sizes(&candidates)?;
        Ok((candidates.into_iter().flat_map(|block| block.chats).collect(), count))
    }

    /// How many chats are the audience, at least 1, and of how many.
    fn sizes(&self, candidates: &[Block]) -> Result<(u64, u64), WorkloadError> {
        let wrong = |message: String| Err(WorkloadError::new("chats", message));
        if self.count.is_some() && self.share.is_some() {
            return wrong("give `count` or `share`, not both".to_owned());
        }
        let total: u64 = candidates.iter().map(|block| u64::from(block.picked)).sum();
        let count = match (self.count, self.share) {
            (Some(Count(count)), _) if count > total => {
                return wrong(format!(
                    "{count} chats are asked for and the scenario declares {total} of these kinds"
                ));
            }
            (Some(Count(count)), _) => count,
            (None, share) => share.unwrap_or(Share::ALL).of(total),
        };
        if count == 0 {
            return wrong(format!(
                "no chat is left: the scenario declares {total} of these kinds; see `[chats]`"
            ));
        }
        Ok((count, total))
    }

    fn candidates(&self, chats: &Population) -> Vec<Block> {
        let wanted = KINDS.into_iter().filter(|kind| self.kinds.contains(kind));
        let blocks = wanted.map(|kind| {
            let chats = chats.declared(kind);
            Block { kind, picked: chats.end - chats.start, chats }
        });
        blocks.filter(|block| block.picked > 0).collect()
    }
}

/// Moves `count` items, picked at random, to the front in random order (the first steps of Fisher and Yates' shuffle).
pub(super) fn pick<T>(rng: &mut ChaCha8Rng, items: &mut [T], count: usize) {
    for i in 0..count {
        pick_next(rng, items, i);
    }
}

/// One step of [`pick`]: settles which item stands at `place`, out of those from there on.
pub(super) fn pick_next<T>(rng: &mut ChaCha8Rng, items: &mut [T], place: usize) {
    items.swap(place, place + below(rng, (items.len() - place) as u32) as usize);
}

/// A uniform number below `bound`, biased by less than 2^-32 (Lemire 2019, arXiv:1805.10941, without rejection).
pub(super) fn below(rng: &mut ChaCha8Rng, bound: u32) -> u32 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::rng;
    use fake_telegram::time::Duration;

    fn blocks(audience: Audience) -> Result<Vec<Block>, WorkloadError> {
        let mut chats = Population::new(900, 90, 10);
        let directory = Path::new("");
        let site = Site {
            name: "w",
            duration: Duration::from_secs(1),
            chats: &mut chats,
            directory,
            files: Vec::new(),
        };
        audience.blocks(&site)
    }

    #[test]
    fn parts_of_the_kinds_add_up() {
        for count in [1, 2, 7, 99, 500, 999, 1_000] {
            let blocks = blocks(Audience { count: Some(Count(count)), ..Audience::default() }).expect("fits");
            assert_eq!(blocks.iter().map(|b| u64::from(b.picked)).sum::<u64>(), count);
        }
    }

    #[test]
    fn more_chats_than_there_are_is_an_error() {
        let groups = Audience { kinds: vec![ChatKind::Group], count: Some(Count(91)), share: None };
        assert_eq!(
            blocks(groups).expect_err("too many").to_string(),
            "chats: 91 chats are asked for and the scenario declares 90 of these kinds"
        );
    }

    #[test]
    fn picks_every_chat_equally_often() {
        let mut counts = [0u32; 10];
        let mut rng = rng::stream(1, "test");
        for _ in 0..10_000 {
            let mut chats: Vec<usize> = (0..10).collect();
            pick(&mut rng, &mut chats, 3);
            chats[..3].iter().for_each(|chat| counts[*chat] += 1);
        }
        // Binomial with p = 0.3: standard deviation 46.
        assert!(counts.iter().all(|count| count.abs_diff(3_000) < 200), "{counts:?}");
    }
}
