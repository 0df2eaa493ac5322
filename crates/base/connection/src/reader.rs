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

/// The result of an answer's last poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// It returned a piece.
    Gave,
    /// It has none yet: the client is not to blame.
    Waits,
}

thread_local! {
    /// The last poll of the answer of the task that runs now. A stream's task polls its answer
    /// while it is polled itself, so this is read before anything else can run.
    static POLLED: Cell<Option<Polled>> = const { Cell::new(None) };
}

/// Notes the result of an answer's poll.
pub fn note_polled(polled: Polled) {
    POLLED.set(Some(polled));
}

/// Runs the tasks of streams, and ends those whose client takes nothing for this long.
#[derive(Debug, Clone, Copy)]
pub struct WatchedExecutor(pub Duration);

impl<F> Executor<F> for WatchedExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let limit = self.0;
        tokio::spawn(async move {
            let mut stream = pin!(stream);
            let mut time = None;
            std::future::poll_fn(move |cx| {
                // Another task of this thread may have left its note.
                POLLED.set(None);
                if stream.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                match POLLED.take() {
                    // It has a piece, and waits until the client takes it.
                    // A new timer for each piece, since the client took the one before.
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
    use tokio::sync::oneshot;
    use tokio::time::{Instant, timeout};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    /// The seconds after which a stream is ended. After so many seconds each, its answer
    /// says this, or is not polled, as while the client takes nothing. None: it goes on.
    async fn ended(steps: &'static [(u64, Option<Polled>)]) -> Option<u64> {
        let (alive, ended) = oneshot::channel::<()>();
        WatchedExecutor(LIMIT).execute(async move {
            let _alive = alive;
            for (after, polled) in steps {
                if *after > 0 {
                    sleep(Duration::from_secs(*after)).await;
                }
                if let Some(polled) = polled {
                    note_polled(*polled);
                }
            }
            std::future::pending::<()>().await;
        });
        let start = Instant::now();
        let ended = timeout(LIMIT * 100, ended).await;
        ended.ok().map(|_| start.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_client_does_not_take_what_there_is() {
        use Polled::{Gave, Waits};
        assert_eq!(ended(&[(0, Some(Gave))]).await, Some(30));
        assert_eq!(
            ended(&[(0, Some(Gave)), (20, None)]).await,
            Some(30),
            "the stream was woken, and the client took nothing"
        );
        assert_eq!(
            ended(&[(0, Some(Gave)), (20, Some(Gave)), (20, Some(Gave))]).await,
            Some(70),
            "a piece that is taken starts the limit anew"
        );
        assert_eq!(
            ended(&[(0, Some(Gave)), (20, Some(Waits))]).await,
            None,
            "all was taken, and there is nothing more yet"
        );
        assert_eq!(
            ended(&[(0, Some(Waits)), (50, Some(Gave))]).await,
            Some(80),
            "the limit starts with the piece"
        );
        assert_eq!(
            ended(&[(0, Some(Waits))]).await,
            None,
            "there was nothing to take"
        );
        assert_eq!(ended(&[]).await, None, "the answer was not there yet");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_answer_of_a_finished_stream_said_counts_for_no_other_stream() {
        let (alive, finished) = oneshot::channel::<()>();
        WatchedExecutor(LIMIT).execute(async move {
            note_polled(Polled::Gave);
            drop(alive);
        });
        let finished = timeout(LIMIT, finished).await;
        assert!(finished.is_ok(), "the stream finishes by itself");
        assert_eq!(ended(&[]).await, None);
    }
}
