//! Values of Rust's own types in the store, as Redis modules have types of their own.
//!
//! This is what scripts on the hot path work on: a value is an index and a downcast away.

use std::any::Any;
use std::cell::{RefCell, RefMut};
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
    value: RefCell<Box<dyn Any>>,
    initial: Box<dyn Fn() -> Box<dyn Any>>,
    /// The messages in it, if it is for messages.
    held: Option<fn(&dyn Any) -> Vec<u32>>,
}

/// A value that holds messages: what is lost with the store.
pub trait Holds {
    /// The numbers of all messages in it, waiting or in flight, in any order.
    fn held(&self) -> Vec<u32>;
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
            let slot = Slot { value: RefCell::new(initial()), initial, held: None };
            self.slots.insert_full(name.to_owned(), slot).0
        });
        assert!(self.slots[index].value.get_mut().is::<V>(), "the value under `{name}` is of another type");
        Key { index, value: PhantomData }
    }

    /// The same for a value that holds messages.
    pub(super) fn holder<V: Holds + 'static>(
        &mut self,
        name: &str,
        initial: impl Fn() -> V + 'static,
    ) -> Key<V> {
        let key = self.key(name, initial);
        self.slots[key.index].held = Some(|value| value.downcast_ref::<V>().expect(KNOWN).held());
        key
    }

    #[inline]
    pub(super) fn get<V: 'static>(&self, key: Key<V>) -> RefMut<'_, V> {
        RefMut::map(self.slots[key.index].value.borrow_mut(), |value| value.downcast_mut().expect(KNOWN))
    }

    /// What a key is called.
    pub(super) fn name<V>(&self, key: Key<V>) -> &str {
        self.slots.get_index(key.index).map_or("", |(name, _)| name)
    }

    /// The names of the values that hold messages.
    pub(super) fn holders(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter(|(_, slot)| slot.held.is_some()).map(|(name, _)| name.as_str())
    }

    /// The messages in all values that hold some.
    pub(super) fn held(&self) -> Vec<u32> {
        let held = self.slots.values().filter_map(|slot| Some((slot.held?)(&**slot.value.borrow())));
        held.flatten().collect()
    }

    /// All begin again.
    pub(super) fn reset(&mut self) {
        for slot in self.slots.values_mut() {
            *slot.value.get_mut() = (slot.initial)();
        }
    }
}

const KNOWN: &str = "a key knows its value's type";
