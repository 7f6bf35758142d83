//! Which seeds a scenario is run under.

use std::str::FromStr;

/// More replications than anybody waits for; a guard against a slip of the keyboard.
const SEEDS_MAX: u64 = 10_000;

/// `1..20`, both ends included, or `1,2,5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seeds(Vec<u64>);

#[derive(Debug, clap::Args)]
pub(super) struct Replicate {
    /// Run under N seeds, from the scenario's (or --seed) on, and give intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SEEDS_MAX))]
    replications: Option<u64>,
    /// Run under these seeds and give intervals: `1..20` (both ends included), or `1,2,5`.
    #[arg(long, value_name = "A..B", conflicts_with_all = ["replications", "seed"])]
    seeds: Option<Seeds>,
}

impl Replicate {
    /// The seeds, where one run would have had `seed`.
    pub(super) fn seeds(&self, seed: u64) -> Vec<u64> {
        match (&self.seeds, self.replications) {
            (Some(Seeds(seeds)), _) => seeds.clone(),
            (None, Some(count)) => (0..count).map(|index| seed.wrapping_add(index)).collect(),
            (None, None) => vec![seed],
        }
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seed = |text: &str| {
            let text = text.trim();
            text.parse::<u64>()
                .map_err(|_| format!("`{text}` is no seed; write `1..20` (both ends included) or `1,2,5`"))
        };
        let Some((first, last)) = text.split_once("..") else {
            let seeds = text.split(',').map(seed).collect::<Result<Vec<_>, _>>()?;
            return match (1..seeds.len()).find(|index| seeds[..*index].contains(&seeds[*index])) {
                Some(twice) => {
                    Err(format!("{} is there twice; the same seed gives the same run", seeds[twice]))
                }
                None => Ok(Self(seeds)),
            };
        };
        let (first, last) = (seed(first)?, seed(last.strip_prefix('=').unwrap_or(last))?);
        if first > last {
            return Err(format!("{first} is after {last}; write the smaller first"));
        }
        if last - first >= SEEDS_MAX {
            return Err(format!("more than {SEEDS_MAX} seeds"));
        }
        Ok(Self((first..=last).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_included() {
        let seeds = |text: &str| text.parse::<Seeds>().map(|Seeds(seeds)| seeds);
        assert_eq!(seeds("1..4"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(seeds("7..7"), Ok(vec![7]));
        assert_eq!(seeds("1, 2,5"), Ok(vec![1, 2, 5]));
        for (text, what) in [
            ("4..1", "4 is after 1"),
            ("1..", "`` is no seed"),
            ("a", "`a` is no seed"),
            ("1,2,1", "1 is there twice"),
            ("0..10000", "more than 10000 seeds"),
        ] {
            let error = seeds(text).expect_err(text);
            assert!(error.starts_with(what), "{error}");
        }
    }

    #[test]
    fn replications_begin_at_the_seed() {
        let three = Replicate { replications: Some(3), seeds: None };
        assert_eq!(three.seeds(5), [5, 6, 7]);
        assert_eq!(Replicate { replications: None, seeds: None }.seeds(5), [5]);
    }
}
