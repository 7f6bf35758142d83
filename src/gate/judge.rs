//! Holds rules against results: of one run, of many seeds, against another design or a saved result.
//!
//! With one seed a condition is held against what was measured, in whole numbers. With several:
//!
//! - quantiles, rates, shares and ratios are judged on that end of their 95 % interval that is harder to pass with. Against another
//!   result the interval is that of the difference, pairwise by seed where both have the same seeds;
//! - all else (counts, the largest lag, times, equalities, worst windows) has to hold under every seed.

use crate::metrics::Pooled;
use crate::outcome::{Run, Runs, Verdict, WindowValue, Windows};
use crate::stats;

use super::Rule;
use super::condition::{Aggregate, Bound, Condition, Operator, Reference, Sign};
use super::metric::{Measured, Unit};

/// Holds rules against the runs of designs: a verdict for each rule, design that it applies to, and condition, in this
/// order.
///
/// Where a value has no samples (its own, or that of the result referred to) the verdict has `measured: null` and
/// does not pass. A design that is not among `designs` (not selected with `--design`) gives no verdict, neither for
/// itself nor for a condition that refers to it; nor does a condition on the baseline that is [`lacking`].
pub fn judge(rules: &[Rule], designs: &[Runs<'_>], baseline: &[Runs<'_>]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for rule in rules {
        for runs in designs.iter().filter(|runs| rule.applies_to(runs.design)) {
            for condition in &rule.conditions {
                let reference = match condition.reference() {
                    None => None,
                    Some(Reference::Design(name)) => Some(designs.iter().find(|runs| runs.design == name)),
                    Some(Reference::Baseline) => {
                        let saved = baseline.iter().find(|saved| saved.design == runs.design);
                        Some(saved.filter(|saved| has_windows(rule, condition, saved)))
                    }
                };
                let reference = match reference {
                    Some(None) => continue,
                    found => found.flatten(),
                };
                verdicts.push(Case { rule, condition, runs, reference }.verdict());
            }
        }
    }
    verdicts
}

/// A condition on the baseline that cannot be judged, since the baseline has not what it asks for.
#[derive(Debug, Clone, Copy)]
pub struct Lacking<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// Its condition.
    pub condition: &'a Condition,
    /// The design that it would judge.
    pub design: &'a str,
    /// Whether the baseline has the design, and only not these windows of it: they are saved for the rules that there were.
    pub has_design: bool,
}

/// The conditions on the baseline that [`judge`] leaves out, for designs of these names.
pub fn lacking<'a>(rules: &'a [Rule], designs: &[&'a str], baseline: &[Runs<'_>]) -> Vec<Lacking<'a>> {
    let mut lacking = Vec::new();
    for rule in rules {
        for condition in rule.conditions.iter().filter(|c| c.reference() == Some(&Reference::Baseline)) {
            for design in designs.iter().copied().filter(|design| rule.applies_to(design)) {
                let runs = baseline.iter().find(|runs| runs.design == design);
                if !runs.is_some_and(|runs| has_windows(rule, condition, runs)) {
                    lacking.push(Lacking { rule, condition, design, has_design: runs.is_some() });
                }
            }
        }
    }
    lacking
}

fn has_windows(rule: &Rule, condition: &Condition, runs: &Runs<'_>) -> bool {
    let is_of = |windows: &Windows| windows.is_of(rule, condition.aggregate.name());
    rule.over.is_none() || runs.runs.iter().any(|run| run.totals.windows.iter().any(is_of))
}

/// A condition on a design.
#[derive(Clone, Copy)]
struct Case<'a> {
    rule: &'a Rule,
    condition: &'a Condition,
    runs: &'a Runs<'a>,
    /// What it refers to.
    reference: Option<&'a Runs<'a>>,
}

/// One seed's values; they have samples.
#[derive(Clone, Copy)]
struct Pair {
    seed: u64,
    measured: Measured,
    /// When the window begins that it is of.
    window_us: Option<u64>,
    reference: Option<Measured>,
}

/// What was found out about an interval.
struct Judged {
    /// In the condition's unit.
    measured: f64,
    interval: [f64; 2],
    passed: bool,
    lower_bound: bool,
}

impl Case<'_> {
    fn verdict(self) -> Verdict {
        let Self { rule, condition, runs, .. } = self;
        let pairs = self.pairs();
        let worst =
            pairs.iter().copied().reduce(|worst, pair| if self.is_worse(pair, worst) { pair } else { worst });
        let verdict = Verdict {
            metric: rule.metric.name.to_owned(),
            design: runs.design.to_owned(),
            r#where: rule.r#where.clone(),
            expect: condition.written.clone(),
            unit: condition.unit.suffix().to_owned(),
            over_us: rule.over.map(|over| over.as_micros()),
            ..Verdict::default()
        };
        let Some(worst) = worst else { return verdict };
        let verdict = Verdict {
            seed: (runs.runs.len() > 1).then_some(worst.seed),
            measured: Some(worst.measured.reported(condition.unit)),
            lower_bound: worst.measured.lower_bound,
            passed: pairs.iter().all(|pair| condition.holds(pair.measured, pair.reference)),
            bound: worst.reference.map(|reference| self.bound(Some(reference)).floor() as i64),
            window_us: worst.window_us,
            ..verdict
        };
        if pairs.len() < 2 || !self.has_interval() {
            return verdict;
        }
        let judged = match self.reference {
            None => self.fixed(&pairs),
            Some(_) => self.relative(&pairs),
        };
        Verdict {
            measured: Some(judged.measured.round().max(0.0) as u64),
            interval: Some([judged.interval[0].floor() as i64, judged.interval[1].ceil() as i64]),
            passed: judged.passed,
            lower_bound: judged.lower_bound,
            ..verdict
        }
    }

    /// The seeds that have samples on both sides, where there are two.
    fn pairs(self) -> Vec<Pair> {
        let Self { runs, reference, .. } = self;
        let pair = |run: &Run<'_>| {
            let (measured, window_us) = self.measure(run)?;
            let reference = match reference {
                None => None,
                Some(reference) => Some(self.reference_value(reference, run.seed)?),
            };
            Some(Pair { seed: run.seed, measured, window_us, reference })
        };
        runs.runs.iter().filter_map(pair).collect()
    }

    /// The value of a run that the condition speaks of, and the window that it is of.
    fn measure(self, run: &Run<'_>) -> Option<(Measured, Option<u64>)> {
        let Self { rule, condition, .. } = self;
        if rule.over.is_none() {
            return Some((rule.measure(condition, run.totals)?, None));
        }
        let windows =
            run.totals.windows.iter().find(|windows| windows.is_of(rule, condition.aggregate.name()))?;
        let of = |value: WindowValue| (Measured::from(value), Some(value.from_us));
        let (largest, smallest) = (of(windows.largest?), of(windows.smallest?));
        let is_largest = match condition.operator {
            Operator::AtMost | Operator::Below => true,
            Operator::AtLeast | Operator::Above => false,
            // All are equal to the bound if both ends are.
            Operator::Equal | Operator::Unequal => {
                !matches!(condition.bound, Bound::Fixed(_)) || !condition.holds(largest.0, None)
            }
        };
        Some(if is_largest { largest } else { smallest })
    }

    /// What the reference has under `seed`; if it has other seeds, what it has on average.
    fn reference_value(self, reference: &Runs<'_>, seed: u64) -> Option<Measured> {
        if let Some(run) = reference.runs.iter().find(|run| run.seed == seed) {
            return Some(self.measure(run)?.0);
        }
        let values: Vec<Measured> =
            reference.runs.iter().filter_map(|run| Some(self.measure(run)?.0)).collect();
        let value = |measured: &Measured| measured.value(self.condition.unit);
        let mean = stats::mean(&values.iter().map(value).collect::<Vec<_>>());
        let denominator = match self.condition.unit {
            Unit::Duration | Unit::Count => 1,
            Unit::Share | Unit::Ratio => 1_000_000,
        };
        let lower_bound = values.iter().any(|value| value.lower_bound);
        (!values.is_empty()).then_some(Measured { numerator: mean.round() as u64, denominator, lower_bound })
    }

    /// Whether seeds are judged together.
    fn has_interval(self) -> bool {
        let Condition { aggregate, operator, unit, .. } = self.condition;
        let is_order = !matches!(operator, Operator::Equal | Operator::Unequal);
        let is_estimated = match aggregate {
            Aggregate::Median | Aggregate::P90 | Aggregate::P99 | Aggregate::P999 | Aggregate::Rate => true,
            Aggregate::Value => matches!(unit, Unit::Share | Unit::Ratio),
            Aggregate::Max => false,
        };
        is_order && is_estimated && self.rule.over.is_none()
    }

    /// Whether large values are the bad ones.
    fn is_upper(self) -> bool {
        matches!(
            self.condition.operator,
            Operator::AtMost | Operator::Below | Operator::Equal | Operator::Unequal
        )
    }

    /// Whether `this` is further from what is asked than `that`.
    fn is_worse(self, this: Pair, that: Pair) -> bool {
        let holds = |pair: Pair| self.condition.holds(pair.measured, pair.reference);
        if holds(this) != holds(that) {
            return holds(that);
        }
        let excess = |pair: Pair| pair.measured.value(self.condition.unit) - self.bound(pair.reference);
        match self.condition.operator {
            Operator::AtMost | Operator::Below => {
                (this.measured.lower_bound, excess(this)) > (that.measured.lower_bound, excess(that))
            }
            Operator::AtLeast | Operator::Above => excess(this) < excess(that),
            Operator::Equal => excess(this).abs() > excess(that).abs(),
            Operator::Unequal => excess(this).abs() < excess(that).abs(),
        }
    }

    /// The right-hand side, in the condition's unit.
    fn bound(self, reference: Option<Measured>) -> f64 {
        let unit = self.condition.unit;
        match &self.condition.bound {
            Bound::Fixed(quantity) => quantity.value(),
            Bound::Relative { factor, offset, .. } => {
                let scaled =
                    reference.map_or(0.0, |reference| reference.value(unit)) * (*factor as f64) / 1e6;
                match offset {
                    None => scaled,
                    Some((Sign::Plus, by)) => scaled + by.value(),
                    Some((Sign::Minus, by)) => scaled - by.value(),
                }
            }
        }
    }

    /// Against a quantity: the harder end of the interval of the estimate.
    fn fixed(self, pairs: &[Pair]) -> Judged {
        let Self { condition, .. } = self;
        let (interval, lower_bound) = self.estimate(pairs);
        let [low, high] = interval;
        // Rounded away from what is asked for: a value that is not proven does not pass.
        // A thousandth is far below what is resolved, and above what floating point adds.
        let thousandth = |end: f64| (end * 1e3).round() / 1e3;
        let end = if self.is_upper() { thousandth(high).ceil() } else { thousandth(low.max(0.0)).floor() };
        let passed = match condition.operator {
            Operator::AtMost => end <= self.bound(None) && !lower_bound,
            Operator::Below => end < self.bound(None) && !lower_bound,
            Operator::AtLeast => end >= self.bound(None),
            Operator::Above => end > self.bound(None),
            Operator::Equal | Operator::Unequal => unreachable!("these are judged seed by seed"),
        };
        Judged { measured: end, interval: [low.max(0.0), high], passed, lower_bound }
    }

    /// The interval of the value, and whether it may in truth be larger.
    fn estimate(self, pairs: &[Pair]) -> ([f64; 2], bool) {
        let Self { rule, condition, runs, .. } = self;
        let is_lower_bound = pairs.iter().any(|pair| pair.measured.lower_bound);
        if let Some(ppm) = condition.aggregate.ppm() {
            let class = rule.r#where.values().next().map(String::as_str);
            let pooled = Pooled::of(runs, class).and_then(|pooled| pooled.quantile(ppm));
            if let Some(pooled) = pooled
                && let (Some(low), Some(high)) = (pooled.low, pooled.high)
            {
                return ([low as f64, high as f64], pooled.lower_bound);
            }
        }
        let interval = if condition.aggregate == Aggregate::Rate {
            let clusters: Vec<_> =
                pairs.iter().map(|pair| (pair.measured.numerator, pair.measured.denominator)).collect();
            stats::ratio(&clusters).map(|share| [share.low * 1e6, share.high * 1e6])
        } else {
            let values: Vec<_> = pairs.iter().map(|pair| pair.measured.value(condition.unit)).collect();
            stats::student(&values).map(|mean| [mean.low, mean.high])
        };
        (interval.expect("there are two seeds at least"), is_lower_bound)
    }

    /// Against another result: the harder end of the interval of what is measured beyond the bound.
    fn relative(self, pairs: &[Pair]) -> Judged {
        let Self { condition, runs, reference, .. } = self;
        let measured: Vec<f64> = pairs.iter().map(|pair| pair.measured.value(condition.unit)).collect();
        let reference = reference.expect("the caller has looked it up");
        let is_paired = runs.runs.iter().all(|run| reference.runs.iter().any(|other| other.seed == run.seed));
        let by_pair: Vec<f64> = pairs.iter().map(|pair| self.bound(pair.reference)).collect();
        let values = reference.runs.iter().filter_map(|run| self.measure(run));
        let apart: Vec<f64> = values.map(|(value, _)| self.bound(Some(value))).collect();
        // What a single seed says is a number like any other.
        let excess = match stats::welch(&measured, &apart) {
            Some(excess) if !is_paired => Some(excess),
            _ => stats::paired(&measured, &by_pair),
        };
        let excess = excess.expect("the caller has two pairs at least");
        let any = |read: fn(&Pair) -> bool| pairs.iter().any(read);
        let (is_larger, bound_is_larger) = (
            any(|pair| pair.measured.lower_bound),
            any(|pair| pair.reference.is_some_and(|reference| reference.lower_bound)),
        );
        let passed = match condition.operator {
            Operator::AtMost => excess.high <= 0.0 && !is_larger,
            Operator::Below => excess.high < 0.0 && !is_larger,
            Operator::AtLeast => excess.low >= 0.0 && !bound_is_larger,
            Operator::Above => excess.low > 0.0 && !bound_is_larger,
            Operator::Equal | Operator::Unequal => unreachable!("these are judged seed by seed"),
        };
        Judged {
            measured: stats::mean(&measured),
            interval: [excess.low, excess.high],
            passed,
            lower_bound: is_larger,
        }
    }
}
