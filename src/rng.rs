//! Randomness by key: one named stream or one keyed draw for every purpose, never an ambient generator.
//!
//! The seed becomes one ChaCha key per purpose. *Sequential* streams (arrivals) draw from the generator itself; a draw
//! that belongs to a message is a keyed counter hash of (purpose, message, attempt), so that changing the design
//! leaves it alone.

pub mod fixed;
pub mod latency;
mod normal;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The generator for one purpose of one run; equal (seed, purpose) give equal streams on every machine.
pub fn stream(seed: u64, purpose: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[16..].copy_from_slice(&fnv1a_128(purpose.as_bytes()).to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// The key of one purpose, for draws by (message, attempt).
pub fn key(seed: u64, purpose: &str) -> u64 {
    stream(seed, purpose).next_u64()
}

/// A uniform draw that belongs to (`message`, `attempt`) under a purpose's `key`, whatever was drawn before.
///
/// Two rounds of SplitMix64's finaliser (Steele, Lea, Flood 2014; constants by Stafford, "mix 13").
pub const fn draw(key: u64, message: u64, attempt: u64) -> u64 {
    mix(mix(key.wrapping_add(message.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        ^ attempt.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// FNV-1a with 128 bits (constants: RFC 9923, section 5), to tell purposes apart.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in bytes {
        hash = (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    hash
}
