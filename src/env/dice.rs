//! Random numbers of a worker that mostly needs none.

use std::cell::RefCell;
use std::fmt;

use fake_telegram::time::Duration;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::Env;

/// Uniform numbers for one purpose; the generator is made at the first of them.
pub struct Dice {
    env: Env,
    purpose: &'static str,
    rng: RefCell<Option<ChaCha8Rng>>,
}

impl Dice {
    pub(super) const fn new(env: Env, purpose: &'static str) -> Self {
        Self { env, purpose, rng: RefCell::new(None) }
    }

    /// The next number, uniform over all `u32`.
    pub fn draw(&self) -> u32 {
        self.rng.borrow_mut().get_or_insert_with(|| self.env.rng(self.purpose)).next_u32()
    }

    /// A duration below `most`, uniform in whole microseconds; no draw if that is zero.
    pub fn up_to(&self, most: Duration) -> Duration {
        if most.is_zero() {
            return most;
        }
        Duration::from_micros(((u128::from(most.as_micros()) * u128::from(self.draw())) >> 32) as u64)
    }
}

impl fmt::Debug for Dice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dice({}, {:?})", self.purpose, self.env)
    }
}
