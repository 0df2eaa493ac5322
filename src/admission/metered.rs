//! The body of a request that streams messages: each is booked while it arrives.

use std::pin::Pin;
use std::task::{Context, Poll};

use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::intake::{Intake, IntakeError, Messages};
use super::{Full, Peer};

/// Messages of gRPC of a peer. Between two of them it may be silent for a while; a
/// message that has begun comes at the least rate, and its bytes are booked until it is
/// whole.
#[derive(Debug)]
pub struct Metered<B> {
    body: B,
    intake: Intake,
    messages: Messages,
    open: usize,
    idle: Option<Duration>,
    /// Runs while the peer is silent.
    silent: Option<Pin<Box<Sleep>>>,
}

impl<B> Metered<B> {
    /// Meters the body of a peer, which may be silent for `idle` between two messages;
    /// none: for as long as it likes.
    #[must_use]
    pub fn new(peer: &Peer, body: B, idle: Option<Duration>) -> Self {
        Self {
            body,
            idle,
            silent: None,
            intake: Intake::new(peer),
            messages: Messages::default(),
            open: 0,
        }
    }

    fn arrived(&mut self, data: &[u8]) -> Result<(), Full> {
        let open = self.messages.arrived(data, self.open);
        if open < self.open + data.len() {
            self.intake.begin_anew();
            self.open = 0;
        }
        let more = open - self.open;
        self.open = open;
        if more == 0 {
            return Ok(());
        }
        self.intake.arrived(more)
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
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.silent = None;
            return Poll::Ready(frame.map(|frame| {
                let frame = frame.map_err(IntakeError::Broken)?;
                if let Some(data) = frame.data_ref() {
                    this.arrived(data)?;
                }
                Ok(frame)
            }));
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
        this.intake.poll_slow(cx).map(|slow| {
            let bytes_per_second = this.intake.pace().bytes_per_second;
            Some(Err(match slow {
                Ok(()) => IntakeError::Slow { bytes_per_second },
                Err(full) => full.into(),
            }))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
