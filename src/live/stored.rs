//! The line to a real store: calls of a run go out at once, and their answers wake whoever asked.

use std::rc::Rc;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::LocalBoxFuture;

use super::line::Line;
use crate::sim::StoreLine;
use crate::store::redis::RedisStore;
use crate::store::script::{Answer, Request};
use crate::store::{Booking, StoreError};

/// Carries the calls of a run to its store, beside those that its [`Line`] carries to the server.
pub struct StoreLink {
    redis: RedisStore,
    line: Line,
}

impl StoreLink {
    /// Calls to `redis`; the run that waits for `line` waits for these too.
    pub const fn new(redis: RedisStore, line: Line) -> Self {
        Self { redis, line }
    }
}

impl StoreLine for StoreLink {
    fn call(
        &self,
        request: Request,
        booking: Option<Booking>,
    ) -> LocalBoxFuture<'static, Result<Answer, StoreError>> {
        let (tell, told) = oneshot::channel();
        let (call, line) = (self.redis.start(request), Rc::clone(&self.line.0));
        line.waiting.set(line.waiting.get() + 1);
        line.asking.set(line.asking.get() + 1);
        tokio::task::spawn_local(async move {
            let mut said = call.await;
            if let (Ok(answer), Some(booking)) = (&said, booking)
                && !booking(answer)
            {
                said = Err(StoreError::Unexpected);
            }
            // Whoever asked may be dead by then.
            drop(tell.send(said));
            line.waiting.set(line.waiting.get() - 1);
            line.asking.set(line.asking.get() - 1);
            line.came.notify_one();
        });
        told.map(|said| said.unwrap_or(Err(StoreError::TimedOut))).boxed_local()
    }
}
