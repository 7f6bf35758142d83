//! Call times: a lognormal distribution given by its median and its 99th percentile, drawn from an integer table.

use fake_telegram::time::Duration;

use super::fixed;
use super::normal::{OCTAVES, UPPER_QUANTILES};

/// z with P(Z <= z) = 0.99, in Q24 (2.326348).
const Z_99: i64 = 39_029_643;

/// A lognormal distribution of durations; constant where median and 99th percentile agree.
///
/// A draw costs one table look-up and one interpolation, and gives the same microseconds on every machine.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Quantiles in us: per side (below, above the median), octave of tail probability and sixteenth of it.
    table: Box<[[[u64; 17]; OCTAVES]; 2]>,
    constant: Option<Duration>,
}

impl Latency {
    /// The distribution with this `median` and 99th percentile `p99`.
    ///
    /// # Panics
    /// If `p99` is below `median`.
    pub fn new(median: Duration, p99: Duration) -> Self {
        assert!(p99 >= median, "the 99th percentile is not below the median");
        let mut table = Box::new([[[0; 17]; OCTAVES]; 2]);
        let constant = (median == p99 || median.is_zero()).then_some(median);
        if constant.is_none() {
            // Durations in Q32 would overflow above 4,295 s; Q8 of microseconds is exact enough and holds 2 years.
            let log = |d: Duration| fixed::log2(d.as_micros() << 8);
            let (center, sigma) = (log(median), (log(p99) - log(median)) * (1 << 24) / Z_99);
            for (side, sign) in [(0, -1), (1, 1)] {
                for (row, quantiles) in table[side].iter_mut().zip(&UPPER_QUANTILES) {
                    for (cell, z) in row.iter_mut().zip(quantiles) {
                        let spread = (i128::from(*z) * i128::from(sigma)) >> 24;
                        *cell = fixed::exp2(center + sign * spread as i64) >> 8;
                    }
                }
            }
        }
        Self { table, constant }
    }

    /// The duration for uniform bits, which are asked for only where it is not constant.
    #[inline]
    pub fn draw_with(&self, bits: impl FnOnce() -> u64) -> Duration {
        match self.constant {
            Some(constant) => constant,
            None => self.draw(bits()),
        }
    }

    /// The duration for uniform `bits`.
    pub fn draw(&self, bits: u64) -> Duration {
        if let Some(constant) = self.constant {
            return constant;
        }
        let side = (bits >> 63) as usize;
        // The tail probability, in (0, 1/2]: its octave, its sixteenth, the rest.
        let tail = (bits << 1) | 1;
        let octave = (tail.leading_zeros() as usize).min(OCTAVES - 1);
        let fraction = (tail << octave) << 1;
        let column = (fraction >> 60) as usize;
        let rest = (fraction << 4) >> 32;
        let row = &self.table[side][octave];
        let (from, to) = (row[column] as i64, row[column + 1] as i64);
        Duration::from_micros((from + (((to - from) * rest as i64) >> 32)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(Z > z) by the series of the error function, independent of the table's maker.
    fn upper_tail(z: f64) -> f64 {
        let (mut term, mut sum, mut n) = (z, z, 1.0);
        while term.abs() > 1e-18 * sum.abs() {
            term *= z * z / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        0.5 - sum * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    }

    #[test]
    fn the_table_inverts_the_normal_distribution() {
        for (k, row) in UPPER_QUANTILES.iter().enumerate() {
            for (j, z) in row.iter().enumerate() {
                let tail = (-(k as f64) - 2.0).exp2() * (1.0 + j as f64 / 16.0);
                let z = f64::from(*z) / f64::from(1 << 24);
                // One unit of the table is 6e-8; the density bounds what that can move.
                let tolerance = 1e-7 * (-z * z / 2.0).exp() + 1e-14;
                assert!((upper_tail(z) - tail).abs() < tolerance, "row {k}, column {j}");
            }
        }
    }

    #[test]
    fn draws_have_the_median_and_the_99th_percentile_asked_for() {
        let latency = Latency::new(Duration::from_millis(80), Duration::from_secs(1));
        let key = crate::rng::key(1, "test");
        let mut draws: Vec<u64> =
            (0..100_000).map(|i| latency.draw(crate::rng::draw(key, i, 0)).as_micros()).collect();
        draws.sort_unstable();
        // Standard error of the rank: sqrt(n p q) = 158 and 31 of 100,000; four of them on each side.
        assert!(draws[50_000 - 632] <= 80_000 && 80_000 <= draws[50_000 + 632]);
        assert!(draws[99_000 - 126] <= 1_000_000 && 1_000_000 <= draws[99_000 + 126]);
    }

    #[test]
    fn equal_median_and_percentile_are_a_constant() {
        let latency = Latency::new(Duration::from_millis(250), Duration::from_millis(250));
        assert_eq!(latency.draw(0), Duration::from_millis(250));
        assert_eq!(latency.draw(u64::MAX), Duration::from_millis(250));
    }
}
