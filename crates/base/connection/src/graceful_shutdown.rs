//! Graceful shutdown of a connection.

use std::pin::{Pin, pin};

/// Serves a connection. Once `end` resolves, `finish` asks it to finish, and it is served until
/// it has.
pub async fn served_until<C: Future>(
    connection: C,
    end: impl Future<Output = ()>,
    finish: impl FnOnce(Pin<&mut C>),
) -> C::Output {
    let mut connection = pin!(connection);
    tokio::select! {
        served = connection.as_mut() => return served,
        () = end => finish(connection.as_mut()),
    }
    connection.await
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    /// Ends by itself, or after it was told to.
    struct Connection {
        own_end: oneshot::Receiver<()>,
        is_told: bool,
    }

    impl Future for Connection {
        type Output = &'static str;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            if self.is_told {
                return Poll::Ready("told");
            }
            Pin::new(&mut self.own_end).poll(cx).map(|_| "itself")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_by_itself_or_after_it_was_told() {
        for (ends_itself, ended) in [(true, "itself"), (false, "told")] {
            let ((own, own_end), (end, told)) = (oneshot::channel(), oneshot::channel());
            let connection = Connection {
                own_end,
                is_told: false,
            };
            let told = async {
                if told.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            let served = served_until(connection, told, |mut it| it.is_told = true);
            let first = if ends_itself { own } else { end };
            // Paused: a connection that is never told fails the test at once.
            let served = tokio::time::timeout(Duration::from_secs(30), served);
            let (served, sent) = tokio::join!(served, async { first.send(()) });
            assert_eq!((served, sent), (Ok(ended), Ok(())));
        }
    }
}
