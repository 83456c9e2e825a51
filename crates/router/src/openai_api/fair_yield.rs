//! Fair yield: waits until every other ready task has run.
//!
//! [`tokio::task::yield_now`] completes on its second poll, and a server that polls a body twice in a row does so
//! before any other task has run. This future waits to be woken.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::poll_fn;
use futures_util::task::AtomicWaker;

/// Records that the scheduler has woken the task.
struct YieldWaker {
    woken: AtomicBool,
    /// The task that polled last.
    task: AtomicWaker,
}

impl Wake for YieldWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

pub(super) async fn yield_to_others() {
    let mut turn: Option<Arc<YieldWaker>> = None;
    poll_fn(|context| match &turn {
        Some(turn) => {
            turn.task.register(context.waker());
            if turn.woken.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        }
        None => {
            let waiting = Arc::new(YieldWaker { woken: AtomicBool::new(false), task: AtomicWaker::new() });
            waiting.task.register(context.waker());
            let waker = Waker::from(waiting.clone());
            turn = Some(waiting);
            // The scheduler wakes this task after all other ready tasks.
            pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker))
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Even if polled repeatedly, the future does not complete before another task has run.
    #[tokio::test]
    async fn it_is_not_over_before_others_had_their_turn() {
        let ran = Arc::new(AtomicBool::new(false));
        tokio::spawn({
            let ran = ran.clone();
            async move { ran.store(true, Ordering::Release) }
        });
        let mut first = pin!(yield_to_others());
        poll_fn(|context| {
            let is_over = (0..3).any(|_| first.as_mut().poll(context).is_ready());
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert!(ran.load(Ordering::Acquire));
    }
}
