//! Requests as they arrive: booked by the bytes that are there, at a least rate.
//!
//! The first bytes of a body are booked as they come, so that an announced length costs
//! nothing. Once a peer has sent some of a long body, the memory for all of it is
//! acquired at once, or waited for: bodies that each have a part of their memory and wait
//! for the rest would wait for one another. A body of unknown length acquires its maximum.
//! While it waits, a body has the permit of a call, though none is begun yet: so a peer
//! has no more bodies that wait than calls.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::pace::Clock;
use super::{Full, Pace, Peer, Permit, Resource};

/// A body of at most this size needs no memory if it arrives at once.
const MAX_UNCOUNTED_BYTES: usize = 16 * 1024;
/// Bytes that a peer sends before the memory for a whole body is booked.
const MIN_PROOF_BYTES: usize = 64 * 1024;
/// The prefix of a gRPC message: whether it is compressed, and its length.
const GRPC_PREFIX_BYTES: usize = 5;

/// The announced length of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// This many bytes, or unknown.
    Bytes(Option<usize>),
    /// One gRPC message, with its length in front.
    Message,
}

/// A body was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError<E> {
    /// It is longer than it may be.
    #[error("it is longer than {max} bytes")]
    TooLarge {
        /// Bytes it may have.
        max: usize,
    },
    /// The peer sends too slowly, or nothing.
    #[error("it came at less than {bytes_per_second} bytes a second")]
    Slow {
        /// The least rate.
        bytes_per_second: u64,
    },
    /// The peer sent no message for too long.
    #[error("no message came within {} seconds", idle.as_secs())]
    Idle {
        /// How long a peer may be silent.
        idle: std::time::Duration,
    },
    /// There is no memory for it.
    #[error(transparent)]
    Full(#[from] Full),
    /// It broke off.
    #[error("it broke off")]
    Broken(E),
}

/// The next of a body; none at its end.
type Arrived<E> = Result<Option<Frame<Bytes>>, IntakeError<E>>;

/// A whole body, with its memory.
#[derive(Debug, Default)]
pub struct Collected {
    frames: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    memory: Option<Permit>,
}

impl Collected {
    /// The bytes in one piece, and their memory, to be held for as long as they are in use.
    #[must_use]
    pub fn into_bytes(mut self) -> (Bytes, Option<Permit>) {
        let bytes = if self.frames.len() <= 1 {
            self.frames.pop().unwrap_or_default()
        } else {
            let mut bytes = BytesMut::with_capacity(self.frames.iter().map(Bytes::len).sum());
            for frame in self.frames {
                bytes.extend_from_slice(&frame);
            }
            bytes.freeze()
        };
        (bytes, self.memory)
    }

    /// The body as it came, and its memory.
    #[must_use]
    pub fn into_body(self) -> (Replay, Option<Permit>) {
        let replay = Replay {
            frames: self.frames.into_iter(),
            trailers: self.trailers,
        };
        (replay, self.memory)
    }
}

/// A body that has arrived.
#[derive(Debug)]
pub struct Replay {
    frames: std::vec::IntoIter<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Replay {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.frames.next().map(Frame::data);
        Poll::Ready(
            frame
                .or_else(|| self.trailers.take().map(Frame::trailers))
                .map(Ok),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.frames.len() == 0 && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.frames.as_slice().iter().map(Bytes::len).sum::<usize>();
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// Memory for the bytes of one body.
#[derive(Debug)]
pub struct Intake {
    peer: Peer,
    clock: Clock,
    memory: Option<Permit>,
    received: usize,
    /// The end of its wait for memory, once it waits.
    wait_deadline: Option<Instant>,
}

impl Intake {
    /// For a body of a peer.
    #[must_use]
    pub fn new(peer: &Peer) -> Self {
        Self {
            peer: peer.clone(),
            clock: Clock::start(peer.pace()),
            memory: None,
            received: 0,
            wait_deadline: None,
        }
    }

    fn missing(&self, bytes: usize) -> u32 {
        kib(bytes).saturating_sub(self.memory.as_ref().map_or(0, Permit::units))
    }

    /// Books bytes that are there.
    fn book(&mut self, bytes: usize) -> Result<(), Full> {
        let missing = self.missing(bytes);
        match &mut self.memory {
            None => self.memory = Some(self.peer.try_take(Resource::Requests, missing)?),
            Some(memory) => memory.try_grow(missing)?,
        }
        Ok(())
    }

    /// Books all of a body of which some is there, as soon as there is memory for it.
    async fn book_all(&mut self, bytes: usize) -> Result<(), Full> {
        if self.book(bytes).is_ok() {
            return Ok(());
        }
        let _permit = self.peer.try_take(Resource::Calls, 1)?;
        let more = self.more(bytes).await?;
        self.take(more);
        Ok(())
    }

    /// Waits for the memory that is missing. All waits of a body together take no longer
    /// than one may.
    // The future owns all that it needs, since `Metered` stores it next to the intake that made
    // it.
    pub(super) fn more(
        &mut self,
        bytes: usize,
    ) -> impl Future<Output = Result<Permit, Full>> + Send + use<> {
        let until = Instant::now() + self.peer.pace().wait;
        // Set once: a peer that sends piece by piece does not get a new wait for each.
        let until = *self.wait_deadline.get_or_insert(until);
        let (peer, missing) = (self.peer.clone(), self.missing(bytes));
        let has = self.memory.as_ref().map_or(0, Permit::units);
        async move {
            let all = usize::try_from(has + missing).unwrap_or(usize::MAX);
            peer.may_have(Resource::Requests, all)?;
            peer.take_until(Resource::Requests, missing, until).await
        }
    }

    /// Adds memory that was waited for.
    pub(super) fn take(&mut self, more: Permit) {
        match &mut self.memory {
            None => self.memory = Some(more),
            Some(memory) => memory.absorb(more),
        }
        // While the peer had to wait, it could not send.
        self.clock.restart();
    }

    pub(super) fn pace(&self) -> Pace {
        self.peer.pace()
    }

    /// Notes bytes that have arrived of `all`, and books them once they are more than a
    /// little; all, once the peer has sent a part. The error is how many to wait for.
    pub(super) fn arrived(&mut self, bytes: usize, all: usize) -> Result<(), usize> {
        self.clock.arrived(bytes);
        self.received += bytes;
        if self.received <= MAX_UNCOUNTED_BYTES && self.memory.is_none() {
            return Ok(());
        }
        let bytes = if self.received >= MIN_PROOF_BYTES {
            all.max(self.received)
        } else {
            self.received
        };
        self.book(bytes).map_err(|_full| bytes)
    }

    /// Forgets the bytes that have arrived: they were handed on.
    pub(super) fn begin_anew(&mut self) {
        self.received = 0;
        self.memory = None;
        self.wait_deadline = None;
        self.clock.restart();
    }

    /// A part of something has arrived.
    pub(super) const fn is_begun(&self) -> bool {
        self.received > 0
    }

    /// The peer has sent nothing for now: what has arrived waits for the rest.
    pub(super) fn poll_slow(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Full>> {
        // A call of which nothing is there costs something, too.
        if let Err(full) = self.book(self.received.max(1)) {
            return Poll::Ready(Err(full));
        }
        self.clock.poll_late(cx).map(Ok)
    }

    /// Reads a whole body of a peer, of `max` bytes; those of a message are without its
    /// prefix.
    ///
    /// # Errors
    /// It is too large or too slow, there is no memory for it, or it broke off.
    pub async fn collect<B>(
        peer: &Peer,
        body: B,
        length: Length,
        max: usize,
    ) -> Result<Collected, IntakeError<B::Error>>
    where
        B: Body<Data = Bytes>,
    {
        let max = match length {
            Length::Bytes(_) => max,
            Length::Message => max + GRPC_PREFIX_BYTES,
        };
        let unknown = peer.limit(Resource::Requests).saturating_mul(1024);
        let mut intake = Self::new(peer);
        let mut body = pin!(body);
        let mut collected = Collected::default();
        loop {
            let arrived = match poll_fn(|cx| intake.poll_frame(body.as_mut(), cx)).await {
                // There is no memory for the little that is there: it waits for it, too.
                Err(IntakeError::Full(_)) => {
                    intake.book_all(intake.received.max(1)).await?;
                    continue;
                }
                arrived => arrived?,
            };
            let Some(frame) = arrived else { break };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(frame) => {
                    collected.trailers = frame.into_trailers().ok();
                    continue;
                }
            };
            if intake.received + data.len() > max {
                return Err(IntakeError::TooLarge { max });
            }
            let bytes = data.len();
            collected.frames.push(data);
            let all = match length {
                // Nothing more comes, so the length that it announced no longer matters.
                _ if body.is_end_stream() => 0,
                Length::Bytes(Some(bytes)) => bytes,
                Length::Bytes(None) => max.min(unknown),
                Length::Message => match message_length(&collected.frames) {
                    // The decoder refuses it by its length.
                    Some(all) if all > max => break,
                    all => all.unwrap_or_default(),
                },
            };
            if let Err(missing) = intake.arrived(bytes, all) {
                intake.book_all(missing).await?;
            }
            if body.is_end_stream() {
                break;
            }
        }
        if let Some(memory) = &mut intake.memory {
            // Its announced length was booked. It is in memory with what came.
            memory.shrink_to(kib(intake.received));
        }
        collected.memory = intake.memory;
        Ok(collected)
    }

    fn poll_frame<B>(&mut self, body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<Arrived<B::Error>>
    where
        B: Body<Data = Bytes>,
    {
        if let Poll::Ready(frame) = body.poll_frame(cx) {
            return Poll::Ready(frame.transpose().map_err(IntakeError::Broken));
        }
        self.poll_slow(cx).map(|slow| {
            slow?;
            let bytes_per_second = self.peer.pace().bytes_per_second;
            Err(IntakeError::Slow { bytes_per_second })
        })
    }
}

fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

/// How long a message of gRPC is with its prefix, once that is there.
fn message_length(frames: &[Bytes]) -> Option<usize> {
    let mut prefix = frames
        .iter()
        .flatten()
        .copied()
        .take(GRPC_PREFIX_BYTES)
        .skip(1);
    let mut length = [0; GRPC_PREFIX_BYTES - 1];
    for byte in &mut length {
        *byte = prefix.next()?;
    }
    let length = usize::try_from((&length[..]).get_u32()).ok()?;
    length.checked_add(GRPC_PREFIX_BYTES)
}

/// Finds the ends of messages of gRPC in what arrives of them.
#[derive(Debug, Default)]
pub(super) struct Messages {
    prefix: Vec<u8>,
    /// Bytes that are missing of the message that has begun.
    pub(super) missing: usize,
}

impl Messages {
    /// How many bytes at the end of what has arrived are of a message that is not whole.
    pub(super) fn arrived(&mut self, mut data: &[u8], mut open: usize) -> usize {
        while !data.is_empty() {
            let prefix = GRPC_PREFIX_BYTES - self.prefix.len();
            if prefix > 0 {
                let (now, rest) = data.split_at(prefix.min(data.len()));
                self.prefix.extend_from_slice(now);
                (data, open) = (rest, open + now.len());
                if let Some(mut length) = self.prefix.get(1..GRPC_PREFIX_BYTES) {
                    self.missing = usize::try_from(length.get_u32()).unwrap_or(usize::MAX);
                }
            }
            let now = self.missing.min(data.len());
            (self.missing, open) = (self.missing - now, open + now);
            data = data.get(now..).unwrap_or_default();
            if self.prefix.len() == GRPC_PREFIX_BYTES && self.missing == 0 {
                self.prefix.clear();
                open = 0;
            }
        }
        open
    }
}
