//! Wakers for futures that are not ours: they name their task in a list that the executor looks at between polls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Tasks woken through a [`Waker`], in order.
#[derive(Default)]
pub(super) struct Woken {
    /// A plain load tells the executor that the list is empty, which it nearly always is.
    any: AtomicBool,
    tasks: Mutex<Vec<u32>>,
}

struct TaskWaker {
    task: u32,
    woken: Arc<Woken>,
}

impl Woken {
    pub(super) fn waker(self: &Arc<Self>, task: u32) -> Waker {
        Waker::from(Arc::new(TaskWaker { task, woken: Arc::clone(self) }))
    }

    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self) -> Vec<u32> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *tasks)
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut tasks = self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(self.task);
        self.woken.any.store(true, Ordering::Relaxed);
    }
}
