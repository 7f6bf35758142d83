//! A map that forgets its oldest entries.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A map of so many entries at most; the one that was new the longest ago goes first.
#[derive(Debug, Clone)]
pub(super) struct Bounded<K, V> {
    /// `None` is a removed entry: it keeps its place in `order` until its turn to go has come.
    entries: FxHashMap<K, Option<V>>,
    order: VecDeque<K>,
    capacity: usize,
}

impl<K: Clone + Eq + Hash, V> Bounded<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: FxHashMap::default(), order: VecDeque::new(), capacity }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.entries.insert(key.clone(), Some(value)).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
    }

    pub(super) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key)?.as_ref()
    }

    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key)?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_a_change_keeps_its_place() {
        let mut bounded = Bounded::new(2);
        bounded.insert("a", 1);
        bounded.insert("b", 2);
        bounded.insert("a", 3);
        assert_eq!(bounded.get("a"), Some(&3));
        assert_eq!(bounded.remove("b"), Some(2));
        assert_eq!(bounded.remove("b"), None);
        bounded.insert("b", 4);
        bounded.insert("c", 5);
        assert_eq!((bounded.get("a"), bounded.get("b"), bounded.get("c")), (None, Some(&4), Some(&5)));
        assert_eq!(bounded.order.len(), 2);
    }
}
