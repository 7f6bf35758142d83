//! How one design differs from another.

use crate::gate::Better;
use crate::outcome::{Difference, Finding};
use crate::stats;

use super::{Runs, Sample, Subject, values, whole};

/// How many pairs it takes to say anything.
pub const PAIRS_MIN: u64 = 5;

/// How `design` differs from `against` in everything that both have values of, pairwise by seed.
///
/// If they have no seed in common, there are no pairs: the interval is Welch's, and `pairs`, `won` and `lost` are 0. If
/// they have some, the others are left out.
///
/// One principle decides about lower bounds, as in gates: *a difference is claimed, and a pair won or lost, only if that is
/// so whatever the true values behind the lower bounds are*. So with a lower bound in `to` nothing has become smaller, and with
/// one in `from` nothing larger: there the finding is that no difference was detected. Equal is what was recorded: equal
/// values, and the same of them lower bounds.
pub fn differences(design: &Runs<'_>, against: &Runs<'_>) -> Vec<Difference> {
    let subjects = Subject::all(&[against, design]);
    subjects.iter().filter_map(|subject| difference(subject, design, against)).collect()
}

fn difference(subject: &Subject<'_>, design: &Runs<'_>, against: &Runs<'_>) -> Option<Difference> {
    let common = |seed: u64, runs: &Runs<'_>| runs.runs.iter().any(|run| run.seed == seed);
    let paired = design.runs.iter().any(|run| common(run.seed, against));
    let (mut to, mut from) = (subject.samples(design), subject.samples(against));
    if paired {
        from.retain(|sample| to.iter().any(|other| other.seed == sample.seed));
        to = from.iter().filter_map(|a| to.iter().find(|b| a.seed == b.seed).copied()).collect();
    }
    if to.is_empty() || from.is_empty() {
        return None;
    }
    let (to_values, from_values) = (values(&to), values(&from));
    let unpaired = stats::welch(&to_values, &from_values).map(outwards);
    let interval = if paired { stats::paired(&to_values, &from_values).map(outwards) } else { unpaired };
    let (to_mean, from_mean) = (stats::mean(&to_values), stats::mean(&from_values));
    let pairs: Vec<(Sample, Sample)> =
        if paired { from.iter().copied().zip(to.iter().copied()).collect() } else { Vec::new() };
    let fewest = to.len().min(from.len()) as u64;
    let same = |(from, to): &(Sample, Sample)| from.value == to.value && from.lower_bound == to.lower_bound;
    let change = Change {
        better: subject.metric.better,
        from: from_mean,
        interval,
        equal: if paired {
            pairs.iter().all(same)
        } else {
            from.iter().all(|from| to.iter().all(|to| same(&(*from, *to))))
        },
        from_bound: from.iter().any(|sample| sample.lower_bound),
        to_bound: to.iter().any(|sample| sample.lower_bound),
        seeds: fewest,
    };
    let ahead = |smaller_is: Better, larger_is: Better| {
        let better = subject.metric.better;
        let wins = |&&(from, to): &&(Sample, Sample)| {
            let smaller = to.value < from.value && !to.lower_bound && better == smaller_is;
            let larger = to.value > from.value && !from.lower_bound && better == larger_is;
            smaller || larger
        };
        pairs.iter().filter(wins).count() as u64
    };
    Some(Difference {
        design: design.design.to_owned(),
        against: against.design.to_owned(),
        metric: subject.metric.name.to_owned(),
        r#where: subject.labels(),
        aggregate: subject.aggregate.name().to_owned(),
        unit: subject.unit().to_owned(),
        from: whole(from_mean),
        to: whole(to_mean),
        change: (to_mean - from_mean).round() as i64,
        interval,
        unpaired,
        pairs: pairs.len() as u64,
        won: ahead(Better::Less, Better::More),
        lost: ahead(Better::More, Better::Less),
        finding: change.finding(),
        lower_bound: change.from_bound || change.to_bound,
    })
}

/// What a finding depends on.
struct Change {
    better: Better,
    from: f64,
    interval: Option<[i64; 2]>,
    /// Whether all pairs are equal; of unpaired seeds, whether all values are.
    equal: bool,
    from_bound: bool,
    to_bound: bool,
    /// Pairs; of unpaired seeds those of the side that has fewer.
    seeds: u64,
}

impl Change {
    fn finding(&self) -> Finding {
        if self.equal {
            return Finding::Equal;
        }
        let Some([low, high]) = self.interval.filter(|_| self.seeds >= PAIRS_MIN) else {
            return Finding::TooFew;
        };
        let (smaller, larger) = (high < 0 && !self.to_bound, low > 0 && !self.from_bound);
        if !smaller && !larger {
            return Finding::NoDifference;
        }
        // Criterion's default, and as it does: the whole interval has to be beyond (`noise_threshold`,
        // https://bheisler.github.io/criterion.rs/book/analysis.html).
        let noise = self.from / 100.0;
        if low as f64 <= noise && high as f64 >= -noise {
            return Finding::WithinNoise;
        }
        match (self.better, smaller) {
            (Better::Neither, _) => Finding::Changed,
            (Better::Less, true) | (Better::More, false) => Finding::Improved,
            (Better::Less, false) | (Better::More, true) => Finding::Regressed,
        }
    }
}

/// The ends as whole numbers.
fn outwards(interval: stats::Interval) -> [i64; 2] {
    [interval.low.floor() as i64, interval.high.ceil() as i64]
}
