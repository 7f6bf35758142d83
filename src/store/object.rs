//! Values of Rust's own types in the store, as Redis modules have types of their own.
//!
//! This is what scripts on the hot path work on: a value is an index and a downcast away.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

/// The name of an object in the store, interned once: what a script on the hot path looks up is an index.
pub struct Key<V> {
    index: usize,
    value: PhantomData<fn() -> V>,
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

/// All objects, in the order in which somebody first asked for them.
#[derive(Default)]
pub(super) struct Objects {
    slots: IndexMap<String, Slot, FxBuildHasher>,
}

struct Slot {
    value: Box<dyn Any>,
    initial: Box<dyn Fn() -> Box<dyn Any>>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.slots.keys()).finish()
    }
}

impl Objects {
    /// The key called `name`. What it begins as, now and after a flush, says whoever asks first.
    pub(super) fn key<V: 'static>(&mut self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        let index = self.slots.get_index_of(name).unwrap_or_else(|| {
            let initial = Box::new(move || -> Box<dyn Any> { Box::new(initial()) });
            self.slots.insert_full(name.to_owned(), Slot { value: initial(), initial }).0
        });
        assert!(self.slots[index].value.is::<V>(), "the value under `{name}` is of another type");
        Key { index, value: PhantomData }
    }

    #[inline]
    pub(super) fn get<V: 'static>(&mut self, key: Key<V>) -> &mut V {
        self.slots[key.index].value.downcast_mut().expect("a key knows its value's type")
    }

    /// Two different ones at once.
    #[inline]
    pub(super) fn pair<A: 'static, B: 'static>(&mut self, first: Key<A>, second: Key<B>) -> (&mut A, &mut B) {
        const KNOWN: &str = "a key knows its value's type";
        let [first, second] = self
            .slots
            .get_disjoint_indices_mut([first.index, second.index])
            .expect("two keys of two objects")
            .map(|(_, slot)| &mut slot.value);
        (first.downcast_mut().expect(KNOWN), second.downcast_mut().expect(KNOWN))
    }

    /// All begin again.
    pub(super) fn reset(&mut self) {
        for slot in self.slots.values_mut() {
            slot.value = (slot.initial)();
        }
    }
}
