//! Clients of HTTP/2 that do not read one of their answers.
//!
//! A stream of HTTP/2 has a window of its own: a client can leave one answer unread and
//! go on with others, and nothing on the connection shows it. hyper waits for such a
//! window without a limit and does not poll the answer meanwhile. So each stream's task
//! is watched from outside: it ends once its client has taken nothing for a time, and
//! with it what the answer holds; the client sees the stream reset.

use std::cell::Cell;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::sleep;

/// What an answer said when it was polled last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// Here is a piece.
    Gave,
    /// There is none yet: the client has nothing to wait for.
    Waits,
}

thread_local! {
    /// What the answer of the task that runs now said. A stream's task polls its answer
    /// while it is polled itself, so this is looked at before anything else can run.
    static POLLED: Cell<Option<Polled>> = const { Cell::new(None) };
}

/// An answer says what it said.
pub fn note_polled(polled: Polled) {
    POLLED.set(Some(polled));
}

/// Runs the tasks of streams, and ends those whose client takes nothing for so long.
#[derive(Debug, Clone, Copy)]
pub struct Watched(pub Duration);

impl<F> Executor<F> for Watched
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let limit = self.0;
        tokio::spawn(async move {
            let mut stream = pin!(stream);
            let mut time = None;
            std::future::poll_fn(move |cx| {
                POLLED.set(None);
                if stream.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                match POLLED.take() {
                    // It has a piece, and waits until the client takes it.
                    Some(Polled::Gave) => time = Some(Box::pin(sleep(limit))),
                    Some(Polled::Waits) => time = None,
                    None => {}
                }
                match &mut time {
                    Some(time) => time.as_mut().poll(cx).map(|()| {
                        tracing::debug!("a client does not read an answer: it is let go");
                    }),
                    None => Poll::Pending,
                }
            })
            .await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::oneshot;

    use super::*;

    /// A stream whose answer says this when it is polled; whether it was ended.
    async fn ended(mut last: Option<Polled>) -> bool {
        let (alive, ended) = oneshot::channel::<()>();
        Watched(Duration::from_secs(30)).execute(async move {
            let _alive = alive;
            poll_fn(move |_| {
                // While the client takes nothing, its answer is not polled again.
                if let Some(polled) = last.take() {
                    note_polled(polled);
                }
                Poll::<()>::Pending
            })
            .await;
        });
        tokio::time::timeout(Duration::from_secs(3600), ended)
            .await
            .is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_client_does_not_take_what_there_is() {
        assert!(ended(Some(Polled::Gave)).await);
        assert!(
            !ended(Some(Polled::Waits)).await,
            "there was nothing to take"
        );
        assert!(!ended(None).await, "the answer was not there yet");
    }
}
