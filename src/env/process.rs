//! A sender process: what its workers share.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use fake_telegram::api::TokenIndex;
use fake_telegram::time::Duration;

use crate::executor::{Bell, Turn};
use crate::world::ProcessIndex;

/// A sender process, from its start to its end: one that starts again is another one with the same index.
pub struct Process {
    pub(super) index: ProcessIndex,
    /// Which life this is, over all processes of the run.
    pub(super) life: u32,
    pub(super) token: TokenIndex,
    pub(super) outbox: usize,
    /// How far its clock is ahead.
    pub(super) skew: Duration,
    /// Whether it may die between two calls.
    pub(super) is_watched: bool,
    pub(super) turn: Turn,
    pub(super) bell: Rc<Bell>,
    memory: RefCell<Vec<(TypeId, Rc<dyn Any>)>>,
}

impl Process {
    /// The process `index` in its life `life`, which spends `token`'s budget and takes from `outbox`. Its clock is
    /// `skew` ahead; `is_watched` if it has kill points.
    pub fn new(
        index: ProcessIndex,
        life: u32,
        token: TokenIndex,
        outbox: usize,
        skew: Duration,
        is_watched: bool,
    ) -> Rc<Self> {
        let (turn, bell, memory) = (Turn::default(), Rc::default(), RefCell::default());
        Rc::new(Self { index, life, token, outbox, skew, is_watched, turn, bell, memory })
    }

    /// What others of its token ring when something waits in the store.
    pub fn bell(&self) -> &Rc<Bell> {
        &self.bell
    }

    pub(super) fn memory<T: 'static>(&self, initial: impl FnOnce() -> T) -> Rc<T> {
        let mut memory = self.memory.borrow_mut();
        let known = memory.iter().find(|(id, _)| *id == TypeId::of::<T>()).map(|(_, value)| value.clone());
        let value = known.unwrap_or_else(|| {
            let value: Rc<dyn Any> = Rc::new(initial());
            memory.push((TypeId::of::<T>(), value.clone()));
            value
        });
        value.downcast().expect("values are kept by their type")
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.index.0)
    }
}
