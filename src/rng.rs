//! Randomness by key: one named stream or one keyed draw for every purpose, never an ambient generator.
//!
//! The seed becomes one ChaCha key per purpose. *Sequential* streams (arrivals) draw from the generator itself; a draw
//! that belongs to a message is a keyed counter hash of (purpose, message, attempt), so that changing the design
//! leaves it alone.

pub mod fixed;
pub mod latency;
mod normal;

pub use fake_telegram::draw::draw;
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

/// FNV-1a with 128 bits (constants: RFC 9923, section 5), to tell purposes apart.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in bytes {
        hash = (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    hash
}
