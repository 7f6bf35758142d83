//! Waiting for an instant.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use fake_telegram::time::Time;

use super::{EventKey, Handle, Waiter};

/// Completes at its deadline ([`Handle::sleep_until`]).
#[derive(Debug)]
pub struct Sleep {
    handle: Handle,
    deadline: Time,
    waiting: &'static str,
    set: Option<(EventKey, Waiter)>,
}

impl Sleep {
    pub(super) const fn new(handle: Handle, deadline: Time, waiting: &'static str) -> Self {
        Self { handle, deadline, waiting, set: None }
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.set {
            Some((key, _)) if self.handle.happened(key) => {
                self.set = None;
                Poll::Ready(())
            }
            Some(_) => {
                self.handle.still_waiting(self.waiting);
                Poll::Pending
            }
            None => {
                let waiter = self.handle.waiter(context, self.waiting);
                let at = self.deadline.max(self.handle.now());
                self.set = Some((self.handle.wake_at(at, waiter), waiter));
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((key, waiter)) = self.set
            && !self.handle.happened(key)
        {
            self.handle.cancel(key);
            self.handle.forget(waiter);
        }
    }
}
