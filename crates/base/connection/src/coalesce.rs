//! One write for all answers of a connection that are ready.
//!
//! Each answer of a connection comes from a task of its own, which wakes the
//! connection to send it. tokio runs what a task wakes before the other tasks that
//! are ready, so every answer would go out in a system call of its own: two fifths
//! of what a small call costs. Here a connection that is woken first lets the tasks
//! run that are ready, then sends all their answers at once. Where no task is
//! ready, it goes on right away.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// A connection that coalesces answers before it sends them.
pub struct Coalesce<C> {
    connection: Pin<Box<C>>,
    turn: Arc<Turn>,
    waker: Waker,
}

impl<C> std::fmt::Debug for Coalesce<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coalesce").finish_non_exhaustive()
    }
}

impl<C> Coalesce<C> {
    /// Coalesces the answers of a connection.
    #[must_use]
    pub fn new(connection: C) -> Self {
        let turn = Arc::new(Turn::default());
        Self {
            connection: Box::pin(connection),
            waker: Waker::from(Arc::clone(&turn)),
            turn,
        }
    }
}

/// The waker of the connection.
#[derive(Default)]
struct Turn {
    /// It was woken, and lets others run: it will poll everything anyway.
    waits: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.waits.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

impl<C: Future> Future for Coalesce<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let this = &mut *self;
        // Registered before the flag is looked at: a wake in between would otherwise find no
        // task.
        this.turn.task.register(cx.waker());
        if !this.turn.waits.swap(true, Ordering::SeqCst) {
            // Has tokio wake us when it has run out of ready tasks.
            if pin!(tokio::task::yield_now()).poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        // Before the connection is polled: an answer that comes after its look wakes it again.
        this.turn.waits.store(false, Ordering::SeqCst);
        let mut through = Context::from_waker(&this.waker);
        this.connection.as_mut().poll(&mut through)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    /// Wakes a connection from many tasks; how often the connection looked.
    async fn looks(tasks: usize) -> usize {
        let (ready, looks) = (
            Arc::new(Mutex::new((0, None::<Waker>))),
            Arc::new(AtomicUsize::new(0)),
        );
        let connection = {
            let (ready, looks) = (Arc::clone(&ready), Arc::clone(&looks));
            poll_fn(move |cx| {
                let mut ready = ready.lock().expect("no panic");
                looks.fetch_add(1, Ordering::SeqCst);
                ready.1 = Some(cx.waker().clone());
                if ready.0 == tasks {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        };
        let connection = tokio::spawn(Coalesce::new(connection));
        // The connection has looked once and sleeps.
        while ready.lock().expect("no panic").1.is_none() {
            tokio::task::yield_now().await;
        }
        let answers = tokio::spawn(async move {
            for _ in 0..tasks {
                let ready = Arc::clone(&ready);
                tokio::spawn(async move {
                    let mut ready = ready.lock().expect("no panic");
                    ready.0 += 1;
                    ready.1.as_ref().expect("a connection").wake_by_ref();
                });
            }
        });
        answers.await.expect("the answers");
        let served = tokio::time::timeout(Duration::from_secs(30), connection).await;
        let served = served.expect("the connection is woken for the last answer");
        served.expect("the connection");
        looks.load(Ordering::SeqCst)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_connection_takes_all_answers_that_are_ready_at_once() {
        assert!(looks(50).await < 10);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_is_lost_where_answers_come_from_many_threads() {
        for _ in 0..2_000 {
            looks(8).await;
        }
    }
}
