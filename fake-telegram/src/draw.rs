//! Randomness by key, not by order: a draw is a pure function of what it belongs to.
//!
//! Two counters under a key give 64 uniform bits, so a draw of (message, attempt) is the same whatever else was drawn
//! before it. Exponential draws are made of integers alone: no libm, whose last bits differ between machines.

use crate::time::Duration;
use crate::units::Share;

/// 64 uniform bits that belong to (`key`, `a`, `b`).
///
/// Two rounds of SplitMix64's output function (Steele, Lea and Flood 2014, constants: Stafford's variant 13), with a
/// counter added before each. Not cryptographic.
#[inline]
pub const fn draw(key: u64, a: u64, b: u64) -> u64 {
    // Odd constants from the golden ratio and from the plastic number: a and b must not be interchangeable.
    let first =
        mix(key.wrapping_add(a.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x9E37_79B9_7F4A_7C15));
    mix(first.wrapping_add(b.wrapping_mul(0xC13F_A9A9_02A6_328F)).wrapping_add(0xC13F_A9A9_02A6_328F))
}

/// Whether a draw of 64 uniform bits falls into `share`: exactly for 0% and 100%, within 2^-64 otherwise.
#[inline]
pub const fn hits(share: Share, draw: u64) -> bool {
    (draw as u128) < ((share.as_ppm() as u128) << 64) / 1_000_000
}

/// An exponentially distributed distance with mean `mean`, at least 1 us, from 64 uniform bits.
///
/// `mean x -ln(u)` with `u = draw / 2^64`; the logarithm is cut after 32 binary places, so a draw is exact to about
/// 2^-32 of the mean. The longest draw is 44.4 means.
pub const fn exponential(draw: u64, mean: Duration) -> Duration {
    let micros = (minus_ln_q32(draw) as u128 * mean.as_micros() as u128) >> 32;
    Duration::from_micros(if micros == 0 {
        1
    } else if micros > u64::MAX as u128 {
        u64::MAX
    } else {
        micros as u64
    })
}

const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// `-ln(x / 2^64)` with 32 binary places; `x = 0` counts as 1.
const fn minus_ln_q32(x: u64) -> u64 {
    let minus_log2 = (64 << 32) - log2_q32(if x == 0 { 1 } else { x });
    ((minus_log2 as u128 * LN_2_Q64) >> 64) as u64
}

/// `log2(x)` with 32 binary places, cut; `x` is not 0. One squaring a binary place.
const fn log2_q32(x: u64) -> u64 {
    let whole = x.ilog2();
    // The mantissa in [1, 2), with 63 binary places.
    let mut mantissa = x << (63 - whole);
    let mut log = whole as u64;
    let mut place = 0;
    while place < 32 {
        let square = (mantissa as u128 * mantissa as u128) >> 63;
        let carry = (square >> 64) as u64;
        mantissa = (square >> carry) as u64;
        log = log << 1 | carry;
        place += 1;
    }
    log
}

/// ln 2 with 64 binary places (OEIS A002162).
const LN_2_Q64: u128 = 0xB172_17F7_D1CF_79AB;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each flipped input bit flips each output bit with probability 1/2: 4,096 trials, five standard deviations.
    #[test]
    fn every_input_bit_reaches_every_output_bit() {
        let trials = 4_096u64;
        let mut worst = 0u64;
        for bit in 0..192u32 {
            let mut flips = [0u64; 64];
            for trial in 0..trials {
                // Small counters, as messages and attempts are.
                let (key, a, b) = (trial.wrapping_mul(0x1234_5678_9ABC_DEF1), trial, trial % 7);
                let flip =
                    |word: u32, value: u64| if bit / 64 == word { value ^ 1 << (bit % 64) } else { value };
                let difference = draw(key, a, b) ^ draw(flip(0, key), flip(1, a), flip(2, b));
                for (output, count) in flips.iter_mut().enumerate() {
                    *count += difference >> output & 1;
                }
            }
            worst = flips.iter().map(|n| n.abs_diff(trials / 2)).max().unwrap_or(0).max(worst);
        }
        // Standard deviation 32; 12,288 cells, so 5.5 of them is passed with odds of 1 : 2,000 by luck.
        assert!(worst <= 176, "an output bit flips {worst} times more or less than half of {trials}");
    }

    #[test]
    fn counters_in_sequence_fill_the_range_evenly() {
        // Chi-squared over 256 cells: mean 255, standard deviation 22.6.
        for shift in [0, 28, 56] {
            let mut cells = [0f64; 256];
            for a in 0..65_536u64 {
                cells[(draw(42, a, 1) >> shift & 0xFF) as usize] += 1.0;
            }
            let chi: f64 = cells.iter().map(|n| (n - 256.0).powi(2) / 256.0).sum();
            assert!((150.0..370.0).contains(&chi), "chi-squared {chi} at shift {shift}");
        }
    }

    #[test]
    fn counters_are_not_interchangeable() {
        assert_ne!(draw(1, 2, 3), draw(1, 3, 2));
        assert_ne!(draw(1, 0, 0), draw(0, 1, 0));
        assert_ne!(draw(0, 0, 0), 0);
    }

    #[test]
    fn logarithms_agree_with_floats() {
        for x in [1u64, 2, 3, 1 << 20, 12_345_678_901, u64::MAX / 2, u64::MAX] {
            let expected = -((x as f64) / 2f64.powi(64)).ln();
            let got = minus_ln_q32(x) as f64 / 2f64.powi(32);
            assert!((got - expected).abs() < 1e-9, "-ln({x} / 2^64) = {expected}, got {got}");
        }
    }

    /// Mean and variance of an exponential distribution, within five standard errors of 100,000 draws.
    #[test]
    fn exponential_draws_have_their_mean() {
        let mean = Duration::from_hours(1);
        let draws: Vec<f64> =
            (0..100_000).map(|i| exponential(draw(7, i, 0), mean).as_secs_f64() / 3_600.0).collect();
        let average = draws.iter().sum::<f64>() / 1e5;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!((average - 1.0).abs() < 5.0 / 316.0, "mean {average}");
        assert!((square - 2.0).abs() < 5.0 * 20f64.sqrt() / 316.0, "second moment {square}");
    }

    #[test]
    fn a_share_is_hit_as_often_as_it_says() {
        assert!(hits(Share::ALL, u64::MAX) && !hits(Share::default(), 0));
        let hit = (0..100_000).filter(|&i| hits(Share::from_ppm(50_000), draw(3, i, 9))).count();
        // 5,000 expected, standard deviation 69.
        assert!((4_655..=5_345).contains(&hit), "{hit} of 100,000 at 5%");
    }
}
