//! Fixed-point logarithm and power, so that no table in a run depends on a machine's `libm`.
//!
//! Values are Q32: 32 bits before the binary point and 32 behind it.

/// One in Q32.
pub const ONE: u64 = 1 << 32;

/// Steps of the table of [`neg_log2`].
const STEPS: usize = 1 << 10;

/// log2(1 + i / STEPS) in Q32.
static MANTISSA: [u64; STEPS + 1] = mantissa_table();

const fn mantissa_table() -> [u64; STEPS + 1] {
    let mut table = [0; STEPS + 1];
    let mut i = 0;
    while i < STEPS {
        table[i] = log2_mantissa((1 << 62) + ((i as u64) << 52));
        i += 1;
    }
    table[STEPS] = ONE;
    table
}

/// log2 of `x` in [1, 2) (Q62) as Q32, bit by bit: squaring doubles the logarithm.
const fn log2_mantissa(x: u64) -> u64 {
    let mut x = x as u128;
    let mut result = 0;
    let mut bit = 1u64 << 31;
    while bit > 0 {
        x = (x * x) >> 62;
        if x >= 2 << 62 {
            x >>= 1;
            result |= bit;
        }
        bit >>= 1;
    }
    result
}

/// -log2(u) in Q32 for `u = bits / 2^64` uniform in (0, 1): with a uniform `bits`, an exponential draw times log2(e).
///
/// Linear between the points of a table; off by less than 2e-7.
pub fn neg_log2(bits: u64) -> u64 {
    let bits = bits | 1;
    let shift = bits.leading_zeros();
    let fraction = (bits << shift) << 1;
    let index = (fraction >> 54) as usize;
    let rest = (fraction << 10) >> 32;
    let (low, high) = (MANTISSA[index], MANTISSA[index + 1]);
    let mantissa = low + (((high - low) * rest) >> 32);
    ((u64::from(shift) + 1) << 32) - mantissa
}

/// log2(x) in Q32, for `x` > 0 in Q32.
///
/// # Panics
/// If `x` is 0.
pub const fn log2(x: u64) -> i64 {
    assert!(x > 0, "zero has no logarithm");
    let shift = x.leading_zeros();
    let mantissa = (x << shift) >> 1;
    ((31 - shift as i64) << 32) + log2_mantissa(mantissa) as i64
}

/// 2^(2^-k) in Q62 for k = 1..=10.
const ROOTS: [u64; 10] = roots();

const fn roots() -> [u64; 10] {
    let mut table = [0; 10];
    let mut root: u128 = 2 << 62;
    let mut k = 0;
    while k < 10 {
        root = (root << 62).isqrt();
        table[k] = root as u64;
        k += 1;
    }
    table
}

/// 2^(i / STEPS) in Q62.
static POWERS: [u64; STEPS] = power_table();

const fn power_table() -> [u64; STEPS] {
    let mut table = [0; STEPS];
    let mut i = 0;
    while i < STEPS {
        let mut power: u128 = 1 << 62;
        let mut k = 0;
        while k < 10 {
            if i & (STEPS >> (k + 1)) != 0 {
                power = (power * ROOTS[k] as u128) >> 62;
            }
            k += 1;
        }
        table[i] = power as u64;
        i += 1;
    }
    table
}

/// ln(2) in Q64.
const LN_2: u128 = 12_786_308_645_202_655_660;

/// 2^x in Q32, for `x` in Q32; saturates at `u64::MAX`, is 0 below 2^-32. Off by less than 1e-10 of the value.
pub fn exp2(x: i64) -> u64 {
    let whole = x >> 32;
    let fraction = x as u32;
    // What the table leaves is below 2^-10: three terms of e^y are enough.
    let y = (u128::from(fraction & ((1 << 22) - 1)) * LN_2) >> 34;
    let factor = (1 << 62) + y + ((y * y) >> 63);
    let power = (u128::from(POWERS[(fraction >> 22) as usize]) * factor) >> 62;
    // `power` is Q62; Q32 is 30 bits less.
    match whole {
        32.. => u64::MAX,
        -64..=29 => (power >> (30 - whole)) as u64,
        30 | 31 => {
            let value = power << (whole - 30);
            if value > u64::MAX as u128 { u64::MAX } else { value as u64 }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: f64, expected: f64, tolerance: f64) {
        assert!(
            (actual - expected).abs() <= tolerance * expected.abs().max(1.0),
            "{actual} against {expected}"
        );
    }

    #[test]
    fn agrees_with_floating_point() {
        for i in 1..2_000_u64 {
            let bits = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            close(neg_log2(bits) as f64 / ONE as f64, 64.0 - ((bits | 1) as f64).log2(), 2e-7);
            close(log2(bits) as f64 / ONE as f64, (bits as f64).log2() - 32.0, 1e-9);
            let x = (bits as i64) >> 27;
            close(exp2(x) as f64 / ONE as f64, (x as f64 / ONE as f64).exp2(), 1e-6);
        }
    }

    #[test]
    fn the_edges_hold() {
        assert!(neg_log2(u64::MAX) <= 1, "u just below one");
        assert_eq!(neg_log2(0), 64 << 32, "the smallest u");
        assert_eq!(exp2(0), ONE);
        assert_eq!(exp2(-(70 << 32)), 0);
        assert_eq!(exp2(40 << 32), u64::MAX);
        assert_eq!(log2(ONE), 0);
    }
}
