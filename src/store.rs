//! What the processes of a design share: a store in the manner of Redis, one atomic script at a time.
//!
//! A script is a closure with a name that reads and writes the value under one key; nothing else runs meanwhile. The
//! store's own clock is the `now` that a script gets. Getting there and back takes a round trip of virtual time
//! ([`crate::Env::script`]).

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use fake_telegram::time::Time;

/// The name of a value in the store, interned once: what a script on the hot path looks up is an index.
pub struct Key<V> {
    index: usize,
    value: PhantomData<fn() -> V>,
}

/// The store of one run.
#[derive(Default)]
pub struct Store {
    values: RefCell<Vec<(String, Box<dyn Any>)>>,
}

impl<V> Clone for Key<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Key<V> {}

impl<V> fmt::Debug for Key<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.index)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.borrow().iter().map(|(name, _)| name)).finish()
    }
}

impl Store {
    /// The key called `name`; its value begins as `initial()` if nobody has asked for the key before.
    ///
    /// # Panics
    /// If the value under that name is of another type.
    pub fn key<V: 'static>(&self, name: &str, initial: impl FnOnce() -> V) -> Key<V> {
        let mut values = self.values.borrow_mut();
        let index = values.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            values.push((name.to_owned(), Box::new(initial())));
            values.len() - 1
        });
        assert!(values[index].1.is::<V>(), "the value under `{name}` is of another type");
        Key { index, value: PhantomData }
    }

    /// Runs a script on the value under `key`, at the store's instant `now`.
    pub fn run<V: 'static, R>(&self, key: Key<V>, now: Time, script: impl FnOnce(Time, &mut V) -> R) -> R {
        let mut values = self.values.borrow_mut();
        let value = values[key.index].1.downcast_mut::<V>().expect("a key knows its value's type");
        script(now, value)
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
