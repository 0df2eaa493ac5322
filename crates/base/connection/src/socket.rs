//! A connection's socket, with the two limits that no layer above it has.
//!
//! * **First bytes.** The first bytes of a client show which version of HTTP it speaks,
//!   and hyper waits for them without a limit. A client that sends none, or only a part
//!   of the preface of HTTP/2, is disconnected; from there on hyper's limits hold.
//! * **Writes.** A client that does not read stops the connection. After a time without
//!   any progress it is disconnected, and its answers are dropped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The first bytes of every client of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A socket with limits.
#[derive(Debug)]
pub struct Socket<S> {
    inner: S,
    first: First,
    write: Duration,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The progress of the first bytes.
#[derive(Debug)]
enum First {
    /// The bytes so far, all of them of the preface, and the timeout of the rest.
    Waits(usize, Pin<Box<Sleep>>),
    Known,
}

impl<S> Socket<S> {
    /// `first`: the timeout of the first bytes. `write`: how long a client may read nothing.
    #[must_use]
    pub fn new(inner: S, first: Duration, write: Duration) -> Self {
        Self {
            inner,
            first: First::Waits(0, Box::pin(sleep(first))),
            write,
            stalled: None,
        }
    }

    /// Checks the result of a write: while it waits, the time runs.
    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let write = self.write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(write)));
        stalled.as_mut().poll(cx).map(|()| {
            let sentence = "the client reads nothing of what is sent";
            Err(io::Error::new(io::ErrorKind::TimedOut, sentence))
        })
    }
}

impl First {
    /// Notes bytes that have come.
    fn note(&mut self, bytes: &[u8]) {
        let Self::Waits(so_far, _) = self else { return };
        let rest = PREFACE.get(*so_far..).unwrap_or_default();
        *so_far += bytes.len();
        // The end, the whole preface, or other bytes: in each case hyper knows the version, and
        // its own limits hold.
        if bytes.is_empty() || bytes.len() >= rest.len() || !rest.starts_with(bytes) {
            *self = Self::Known;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let read = Pin::new(&mut this.inner).poll_read(cx, buf);
        match (&mut this.first, &read) {
            (First::Known, _) => read,
            (First::Waits(_, time), Poll::Pending) => time.as_mut().poll(cx).map(|()| {
                let sentence = "the client did not say which version of HTTP it speaks";
                Err(io::Error::new(io::ErrorKind::TimedOut, sentence))
            }),
            (first, Poll::Ready(_)) => {
                first.note(buf.filled().get(before..).unwrap_or_default());
                read
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;

    const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);
    const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_say_what_it_speaks_is_let_go() {
        for sent in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r"] {
            let (mut client, server) = duplex(1024);
            let mut server = Socket::new(server, FIRST_BYTE_TIMEOUT, WRITE_TIMEOUT);
            client.write_all(sent.as_bytes()).await.expect("bytes");
            let mut read = Vec::new();
            let error = server.read_to_end(&mut read).await.expect_err("an end");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{sent:?}");
            assert_eq!(read, sent.as_bytes());
        }
        for sent in ["G", "PRIM", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let (mut client, server) = duplex(1024);
            let mut server = Socket::new(server, FIRST_BYTE_TIMEOUT, WRITE_TIMEOUT);
            client.write_all(sent.as_bytes()).await.expect("bytes");
            let mut read = Vec::new();
            let reading = server.read_to_end(&mut read);
            let waits = tokio::time::timeout(FIRST_BYTE_TIMEOUT * 2, reading).await;
            assert!(waits.is_err(), "{sent:?} is for hyper to judge");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_let_go_and_a_slow_one_is_not() {
        let (mut client, server) = duplex(1024);
        let mut server = Socket::new(server, FIRST_BYTE_TIMEOUT, WRITE_TIMEOUT);
        let writing = tokio::spawn(async move { server.write_all(&[0; 4096]).await });
        for _ in 0..3 {
            tokio::time::sleep(WRITE_TIMEOUT / 2).await;
            client.read_exact(&mut [0; 1024]).await.expect("bytes");
        }
        writing.await.expect("a task").expect("all was taken");

        let (client, server) = duplex(1024);
        let mut server = Socket::new(server, FIRST_BYTE_TIMEOUT, WRITE_TIMEOUT);
        let error = server.write_all(&[0; 4096]).await.expect_err("an end");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_the_preface_byte_by_byte_gets_no_more_time() {
        let (mut client, server) = duplex(1024);
        let mut server = Socket::new(server, FIRST_BYTE_TIMEOUT, WRITE_TIMEOUT);
        let start = Instant::now();
        let mut read = Vec::new();
        let reading = timeout(WRITE_TIMEOUT * 10, server.read_to_end(&mut read));
        let sending = async {
            for byte in b"PRI" {
                client.write_all(&[*byte]).await.expect("a byte");
                tokio::time::sleep(FIRST_BYTE_TIMEOUT / 5).await;
            }
        };
        let (ended, ()) = tokio::join!(async { (reading.await, start.elapsed()) }, sending);
        let (ended, after) = ended;
        let ended = ended.map(|ended| ended.map_err(|error| error.kind()));
        assert_eq!(
            (ended, after.as_secs()),
            (
                Ok(Err(io::ErrorKind::TimedOut)),
                FIRST_BYTE_TIMEOUT.as_secs()
            )
        );
        assert_eq!(read, b"PRI");
    }

    /// The socket of a client that takes nothing, not even an end.
    struct Stuck;

    impl AsyncWrite for Stuck {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    /// What a wait for a client that takes nothing came to, and after how many seconds.
    async fn outcome<T>(
        waiting: impl Future<Output = io::Result<T>>,
    ) -> (Option<Result<(), io::ErrorKind>>, u64) {
        let start = Instant::now();
        let ended = timeout(WRITE_TIMEOUT * 10, waiting).await.ok();
        let ended = ended.map(|ended| ended.map(|_| ()).map_err(|error| error.kind()));
        (ended, start.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn every_way_to_send_has_the_limit_of_a_write() {
        let socket = || Socket::new(Stuck, FIRST_BYTE_TIMEOUT, WRITE_TIMEOUT);
        assert!(socket().is_write_vectored());
        let pieces = [io::IoSlice::new(b"a"), io::IoSlice::new(b"b")];
        let ways = [
            ("write", outcome(socket().write(b"a")).await),
            (
                "write_vectored",
                outcome(socket().write_vectored(&pieces)).await,
            ),
            ("flush", outcome(socket().flush()).await),
            ("shutdown", outcome(socket().shutdown()).await),
        ];
        let limit = (Some(Err(io::ErrorKind::TimedOut)), WRITE_TIMEOUT.as_secs());
        assert_eq!(
            ways,
            ["write", "write_vectored", "flush", "shutdown"].map(|way| (way, limit))
        );
    }
}
