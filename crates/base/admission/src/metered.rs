//! The body of a request that streams messages: each is booked while it arrives.

use std::pin::Pin;
use std::task::{Context, Poll};

use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::intake::{Intake, IntakeError, Messages};
use super::{Full, Peer, Permit};

/// The gRPC messages of a peer. Between two of them it may be silent for a while; a message
/// that has begun must arrive at the least rate, and its bytes are booked until it is whole.
pub struct Metered<B> {
    body: B,
    intake: Intake,
    messages: Messages,
    open: usize,
    idle: Option<Duration>,
    /// Runs while the peer is silent.
    silent: Option<Pin<Box<Sleep>>>,
    /// Memory that is waited for, and the frame that has arrived and needs it. Nothing more
    /// is read meanwhile, and the peer's window closes.
    waits: Option<(Option<Frame<Bytes>>, More)>,
}

/// The next of a stream; none at its end.
type Next<E> = Option<Result<Frame<Bytes>, IntakeError<E>>>;

type More = Pin<Box<dyn Future<Output = Result<Permit, Full>> + Send>>;

impl<B> Metered<B> {
    /// Meters the body of a peer, which may be silent for `idle` between two messages;
    /// none: for as long as it likes.
    #[must_use]
    pub fn new(peer: &Peer, body: B, idle: Option<Duration>) -> Self {
        Self {
            body,
            idle,
            silent: None,
            waits: None,
            intake: Intake::new(peer),
            messages: Messages::default(),
            open: 0,
        }
    }

    /// Notes what has arrived; the error is how much memory it needs before it goes on.
    fn arrived(&mut self, data: &[u8]) -> Result<(), usize> {
        let open = self.messages.arrived(data, self.open);
        // A message has its time from its first byte, however long the peer was silent before.
        if self.open == 0 || open < self.open + data.len() {
            self.intake.begin_anew();
            self.open = 0;
        }
        let more = open - self.open;
        self.open = open;
        if more == 0 {
            return Ok(());
        }
        self.intake.arrived(more, open + self.messages.missing)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Metered<B> {
    /// Waits for memory for this many bytes, and then goes on.
    fn wait(
        mut self: Pin<&mut Self>,
        frame: Option<Frame<Bytes>>,
        bytes: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Next<B::Error>> {
        // Polled right away: a future that was never polled wakes nobody.
        let more = self.intake.more(bytes);
        self.waits = Some((frame, Box::pin(more)));
        self.poll_frame(cx)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Metered<B> {
    type Data = Bytes;
    type Error = IntakeError<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if let Some((frame, mut more)) = this.waits.take() {
            let Poll::Ready(more) = more.as_mut().poll(cx) else {
                this.waits = Some((frame, more));
                return Poll::Pending;
            };
            match more {
                Ok(more) => this.intake.take(more),
                Err(full) => return Poll::Ready(Some(Err(full.into()))),
            }
            if let Some(frame) = frame {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.silent = None;
            let frame = match frame {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end.map(|end| end.map_err(IntakeError::Broken))),
            };
            let arrived = frame.data_ref().map_or(Ok(()), |data| this.arrived(data));
            let Err(bytes) = arrived else {
                return Poll::Ready(Some(Ok(frame)));
            };
            return self.wait(Some(frame), bytes, cx);
        }
        if !this.intake.is_begun() {
            let Some(idle) = this.idle else {
                return Poll::Pending;
            };
            let silent = this.silent.get_or_insert_with(|| Box::pin(sleep(idle)));
            return silent
                .as_mut()
                .poll(cx)
                .map(|()| Some(Err(IntakeError::Idle { idle })));
        }
        match std::task::ready!(this.intake.poll_slow(cx)) {
            Ok(()) => {
                let bytes_per_second = this.intake.pace().bytes_per_second;
                Poll::Ready(Some(Err(IntakeError::Slow { bytes_per_second })))
            }
            Err(_full) => {
                let bytes = this.open;
                self.wait(None, bytes, cx)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        // The body may have ended while its last frame still waits for memory.
        self.waits.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
