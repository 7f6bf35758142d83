//! Quantiles of a sample that comes in clusters: values within a cluster are alike, the clusters are independent.

/// Counted values by cluster, and all of them together.
#[derive(Debug, Clone)]
pub struct Clusters {
    /// `(value, how many)`, rising, of each cluster that has any.
    clusters: Vec<Vec<(u64, u64)>>,
    pooled: Vec<(u64, u64)>,
    samples: u64,
}

/// A quantile of all values together, and the ends of its interval: values of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile {
    /// The quantile.
    pub value: u64,
    /// The ends; `None` if only one cluster has values.
    pub interval: Option<(u64, u64)>,
}

impl Clusters {
    /// Each cluster as `(value, how many)` in any order; a value may occur more than once.
    pub fn new(clusters: impl IntoIterator<Item = Vec<(u64, u64)>>) -> Self {
        let mut clusters: Vec<_> = clusters.into_iter().map(merged).collect();
        clusters.retain(|cluster| !cluster.is_empty());
        let pooled = merged(clusters.concat());
        let samples = count(&pooled);
        Self { clusters, pooled, samples }
    }

    /// The quantile at `ppm` parts per million; `None` without values.
    ///
    /// The interval is Woodruff's: the share of values at or below the quantile is a [`ratio`](super::ratio) over clusters
    /// and has an interval; the quantiles at its ends are the ends. Source: Woodruff, *Confidence intervals for medians
    /// and other position measures*, Journal of the American Statistical Association 47 (1952).
    pub fn quantile(&self, ppm: u32) -> Option<Quantile> {
        if self.samples == 0 {
            return None;
        }
        let value = self.at_rank(rank(self.samples, ppm));
        let share = |to: u64| {
            let shares: Vec<_> =
                self.clusters.iter().map(|cluster| (count_to(cluster, to), count(cluster))).collect();
            super::ratio(&shares).map(|share| share.high - share.value)
        };
        // Where many values are equal, the share below them is another than that up to them: the less certain one counts.
        let halves = share(value).zip(share(value.saturating_sub(1)));
        let interval = halves.map(|(to, below)| {
            let (asked, half, samples) = (f64::from(ppm) / 1e6, to.max(below), self.samples as f64);
            let (low, high) = ((asked - half) * samples, (asked + half) * samples);
            (self.at_rank(low.floor() as u64), self.at_rank(high.ceil() as u64))
        });
        Some(Quantile { value, interval })
    }

    /// The value at a rank, from 1; ranks outside of the sample are those of its ends.
    fn at_rank(&self, rank: u64) -> u64 {
        let mut passed = 0;
        let found = self.pooled.iter().find(|(_, count)| {
            passed += count;
            passed >= rank
        });
        found.or_else(|| self.pooled.last()).map_or(0, |(value, _)| *value)
    }
}

/// The smallest rank, from 1, at which at least `ppm` of `samples` are reached.
pub fn rank(samples: u64, ppm: u32) -> u64 {
    let rank = (u128::from(samples) * u128::from(ppm)).div_ceil(1_000_000) as u64;
    rank.clamp(1, samples.max(1))
}

/// Rising, each value once.
fn merged(mut counts: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    counts.retain(|(_, count)| *count > 0);
    counts.sort_unstable();
    counts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    counts
}

fn count(counts: &[(u64, u64)]) -> u64 {
    counts.iter().map(|(_, count)| count).sum()
}

fn count_to(counts: &[(u64, u64)], value: u64) -> u64 {
    count(&counts[..counts.partition_point(|(other, _)| *other <= value)])
}
