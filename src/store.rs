//! What the processes of a design share: a simulated Redis, one atomic script at a time.
//!
//! A script is a closure that reads and writes the object under one key; nothing else runs meanwhile. The store's own
//! clock is the `now` that a script gets. Getting there and back takes a round trip of virtual time
//! ([`crate::Env::script`]).

pub mod command;
pub mod keyspace;
mod object;

use std::cell::RefCell;

use fake_telegram::time::Time;

use self::keyspace::Keyspace;

pub use self::object::Key;

/// The store of one run.
#[derive(Debug, Default)]
pub struct Store {
    keyspace: RefCell<Keyspace>,
}

impl Store {
    /// The object called `name`; it begins as `initial()`, now and after each flush. Whoever asks for a name first says
    /// as what.
    ///
    /// # Panics
    /// If the object of that name is of another type.
    pub fn key<V: 'static>(&self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        self.keyspace.borrow_mut().key(name, initial)
    }

    /// Runs a script on the object under `key`, at the store's instant `now`.
    pub fn run<V: 'static, R>(&self, key: Key<V>, now: Time, script: impl FnOnce(Time, &mut V) -> R) -> R {
        script(now, self.keyspace.borrow_mut().object(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_value_whoever_asks() {
        let store = Store::default();
        let first = store.key("counter", || 1_u32);
        store.run(first, Time::ZERO, |_, value| *value += 1);
        let second = store.key("counter", || 100_u32);
        assert_eq!(
            store.run(second, Time::from_secs(9), |now, value| (now, *value)),
            (Time::from_secs(9), 2)
        );
    }

    #[test]
    #[should_panic(expected = "of another type")]
    fn a_name_has_one_type() {
        let store = Store::default();
        store.key("counter", || 1_u32);
        store.key("counter", || 1_u64);
    }
}
