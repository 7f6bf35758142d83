//! Statistics of a few independent replications: intervals for means, differences, ratios and quantiles.
//!
//! Pure functions of numbers; what these mean is known elsewhere. Every interval is one of 95 %: of a hundred
//! experiments with other seeds, about 95 give an interval that holds the truth. `docs/statistics.md` says what that
//! rests on.
//!
//! The same on every machine: sums run in the order of the slice, all arithmetic but [`critical`]'s is exactly rounded by
//! IEEE 754, and its result is rounded to a millionth.

mod quantile;

use statrs::distribution::{ContinuousCDF, StudentsT};

pub use quantile::{Clusters, Quantile, rank};

/// An estimate and the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    fn around(value: f64, error: f64, freedom: f64) -> Self {
        // Without an error there is no width, whatever the quantile.
        let half = if error > 0.0 { critical(freedom) * error } else { 0.0 };
        Self { value, low: value - half, high: value + half }
    }
}

/// The arithmetic mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Student's interval for the mean of independent, about normal values. `None` below two values.
///
/// Source: Student, *The probable error of a mean*, Biometrika 6 (1908).
pub fn student(values: &[f64]) -> Option<Interval> {
    let (mean, error) = mean_and_error(values)?;
    Some(Interval::around(mean, error.sqrt(), values.len() as f64 - 1.0))
}

/// Student's interval for the mean of `to - from`, pair by pair. `None` below two pairs.
///
/// # Panics
/// If the sides differ in length.
pub fn paired(to: &[f64], from: &[f64]) -> Option<Interval> {
    assert_eq!(to.len(), from.len(), "pairs have two sides");
    student(&to.iter().zip(from).map(|(to, from)| to - from).collect::<Vec<_>>())
}

/// Welch's interval for the difference of the means of two independent samples, `to - from`. `None` if one of them has
/// fewer than two values.
///
/// Source: Welch, *The generalization of "Student's" problem when several different population variances are
/// involved*, Biometrika 34 (1947); degrees of freedom by Satterthwaite, Biometrics Bulletin 2 (1946).
pub fn welch(to: &[f64], from: &[f64]) -> Option<Interval> {
    let ((to_mean, a), (from_mean, b)) = (mean_and_error(to)?, mean_and_error(from)?);
    let (a_free, b_free) = (to.len() as f64 - 1.0, from.len() as f64 - 1.0);
    let freedom = (a + b) * (a + b) / (a * a / a_free + b * b / b_free);
    Some(Interval::around(to_mean - from_mean, (a + b).sqrt(), freedom))
}

/// The interval for a ratio of totals, `sum of numerators / sum of denominators`, over independent clusters (numerator,
/// denominator). `None` below two clusters, or if all denominators are zero.
///
/// By linearisation: the variance is that of the residuals `numerator - ratio * denominator`. Source: Cochran, *Sampling
/// Techniques*, 3rd edition (1977), section 6.4, equation 6.13, without the finite population's correction.
pub fn ratio(clusters: &[(u64, u64)]) -> Option<Interval> {
    let total = clusters.iter().map(|(_, denominator)| denominator).sum::<u64>() as f64;
    if clusters.len() < 2 || total == 0.0 {
        return None;
    }
    let ratio = clusters.iter().map(|(numerator, _)| numerator).sum::<u64>() as f64 / total;
    // Exact, so that equal clusters have none.
    let sums = clusters.iter().fold((0_i128, 0_i128), |(n, d), c| (n + i128::from(c.0), d + i128::from(c.1)));
    let residual = |&(numerator, denominator): &(u64, u64)| {
        (i128::from(numerator) * sums.1 - sums.0 * i128::from(denominator)) as f64 / total
    };
    let squares = clusters.iter().map(residual).map(|residual| residual * residual).sum::<f64>();
    let (n, freedom) = (clusters.len() as f64, clusters.len() as f64 - 1.0);
    Some(Interval::around(ratio, (n / freedom * squares).sqrt() / total, freedom))
}

/// The quantile of Student's t that 2.5 % lie above, rounded to a millionth; `freedom` is at least 1.
pub fn critical(freedom: f64) -> f64 {
    // Beyond, `statrs` loses digits and then its way; the interval is wider than it need be by 1 in 8,000.
    const FREEDOM_MAX: f64 = 10_000.0;
    let distribution =
        StudentsT::new(0.0, 1.0, freedom.min(FREEDOM_MAX)).expect("degrees of freedom are positive");
    (distribution.inverse_cdf(0.975) * 1e6).round() / 1e6
}

/// The mean, and the variance of the mean; `None` below two values.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    Some((mean, squares / (values.len() as f64 - 1.0) / values.len() as f64))
}

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod tests;
