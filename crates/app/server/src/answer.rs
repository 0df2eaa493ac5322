//! The body of an answer, and what it holds until its reader has taken it.
//!
//! * What is longer than a [`FRAME_BYTES`] goes out piece by piece, so that HTTP/2 keeps no
//!   more than one of an answer that is not read.
//! * What waits for its reader is booked: the permit of a call is free as soon as its
//!   answer is made, however long its reader takes.
//! * A stream keeps its permit, its deadline and its span until its end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tracing::Span;

use super::metrics::CountedCall;
use access_log::LoggedCall;
use admission::{Full, Peer, Permit, Resource};
use audit::Call;
use connection::{Polled, note_polled};
use contract::{outcome, status};
use model::{Code, Failure};
use tokens::TokenExpiry;

/// Bytes that go out at once: a frame of HTTP/2.
const FRAME_BYTES: usize = 16 * 1024;
/// A message of a stream up to which the stream's permit covers it.
const MAX_COVERED_BYTES: usize = 128 * 1024;
/// An answer that needs no memory: its stream alone costs as much. Health checks are answered
/// however full the server is.
const MAX_FREE_BYTES: usize = 1024;

/// Marks an answer whose bytes are booked, whatever they go through next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Booked;

/// The body of an answer.
pub(super) struct AnswerBody {
    inner: Body,
    /// The rest of a frame that was longer than a piece.
    rest: Bytes,
    /// The first frame, where it has no bytes: trailers.
    next: Option<Frame<Bytes>>,
    /// The peer that reads it. None: this process, which reads at once.
    reader: Option<Peer>,
    /// The connection sends it: others are read by this process on the way.
    is_outermost: bool,
    memory: Option<Permit>,
    guard: Option<Guard>,
    logged: Option<Box<LoggedCall>>,
    /// When the token of the caller ends, where no call below sees to that.
    token_end: Option<TokenExpiry>,
}

/// The state that a call holds until its last byte.
pub(super) struct Guard {
    /// The permit of a stream.
    pub(super) _permit: Option<Permit>,
    pub(super) deadline: Option<Pin<Box<Sleep>>>,
    pub(super) stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// When the token of the caller ends, before the stream does.
    pub(super) token_end: Option<TokenExpiry>,
    pub(super) span: Span,
    pub(super) record: Option<CountedCall>,
    /// Its record in the audit trail.
    pub(super) call: Option<Call>,
    pub(super) ended: bool,
}

impl AnswerBody {
    /// Wraps an answer to a reader; none is this process.
    pub(super) fn new(inner: Body, reader: Option<Peer>, guard: Option<Guard>) -> Self {
        Self {
            inner,
            rest: Bytes::new(),
            next: None,
            is_outermost: reader.is_some(),
            reader,
            memory: None,
            guard,
            logged: None,
            token_end: None,
        }
    }

    /// Reads the first frame of an answer that is complete, and books it as soon as there is
    /// memory. Its call still has its permit.
    ///
    /// # Errors
    /// There is no memory in time.
    pub(super) async fn book_first(&mut self) -> Result<(), Full> {
        let inner = &mut self.inner;
        if inner.is_end_stream() {
            return Ok(());
        }
        let first = std::future::poll_fn(|cx| Pin::new(&mut *inner).poll_frame(cx)).await;
        // An end or an error comes again when it is polled again.
        if let Some(Ok(frame)) = first {
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(other) => self.next = Some(other),
            }
        }
        let (Some(reader), bytes) = (&self.reader, self.rest.len()) else {
            return Ok(());
        };
        // One frame is all of it: a unary answer is one message, which tonic writes whole.
        if bytes > MAX_FREE_BYTES {
            self.memory = Some(reader.reserve(kib(bytes)).await?);
        }
        Ok(())
    }

    /// Books an answer whose length is known, as soon as there is memory. The permit of its
    /// call is free by now: it waits where it can have one again.
    ///
    /// # Errors
    /// There is no memory in time.
    async fn book_known(&mut self) -> Result<(), Full> {
        let (Some(reader), Some(length)) = (&self.reader, self.inner.size_hint().exact()) else {
            return Ok(());
        };
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes > MAX_FREE_BYTES {
            // Only as many wait for memory as calls may be in work: the others are refused
            // where there is none right now.
            self.memory = Some(match reader.try_take(Resource::Calls, 1) {
                Ok(_permit) => reader.reserve(kib(bytes)).await?,
                Err(_full) => reader.try_reserve(kib(bytes))?,
            });
        }
        Ok(())
    }

    fn book_now(&mut self, bytes: usize) -> Result<(), Full> {
        let Some(reader) = &self.reader else {
            return Ok(());
        };
        self.memory = Some(match self.memory.take() {
            Some(mut memory) => memory.resize(kib(bytes)).map(|()| memory)?,
            None => reader.try_reserve(kib(bytes))?,
        });
        Ok(())
    }

    /// Notes the outcome of the call, where another answer replaces this one.
    pub(super) fn note(&mut self, headers: &HeaderMap) {
        if let Some(guard) = &mut self.guard {
            guard.note(headers);
        }
    }

    /// The next piece of what is there.
    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(FRAME_BYTES.min(self.rest.len()));
        Frame::data(piece)
    }

    fn poll_inner(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(guard) = &mut self.guard else {
            return Pin::new(&mut self.inner).poll_frame(cx);
        };
        if guard.ended {
            return Poll::Ready(None);
        }
        // First what is there: a frame that was made in time goes out, though the deadline may
        // have passed since, and an ended stream keeps its own status.
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            if let Some(Ok(frame)) = &frame
                && let Some(trailers) = frame.trailers_ref()
            {
                guard.note(trailers);
            }
            return Poll::Ready(frame);
        }
        if let Some(deadline) = &mut guard.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Ok(guard.end(late()))));
        }
        // A token that is revoked ends the streams that it opened.
        if let Some(token_end) = &mut guard.token_end
            && let Poll::Ready(failure) = token_end.as_mut().poll(cx)
        {
            return Poll::Ready(Some(Ok(guard.end(failure))));
        }
        if let Some(stop) = &mut guard.stop {
            ready!(stop.as_mut().poll(cx));
            let failure = Failure::new(Code::ShuttingDown, "The server is about to stop")
                .suggest("Connect again and continue from the last resume token");
            return Poll::Ready(Some(Ok(guard.end(failure))));
        }
        Poll::Pending
    }

    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        if let Some(next) = self.next.take() {
            if let (Some(guard), Some(trailers)) = (&mut self.guard, next.trailers_ref()) {
                guard.note(trailers);
            }
            return Poll::Ready(Some(Ok(next)));
        }
        let frame = match ready!(self.poll_inner(cx)) {
            Some(Ok(frame)) => frame,
            end => return Poll::Ready(end),
        };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(other) => return Poll::Ready(Some(Ok(other))),
        };
        if data.len() <= FRAME_BYTES {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        // A reader that takes nothing of a stream holds one message of it, and thousands of
        // streams may do so: a long message needs memory of its own.
        if data.len() > MAX_COVERED_BYTES
            && let Err(full) = self.book_now(data.len())
        {
            // Its headers are out: all that is left is to break it off.
            return Poll::Ready(Some(Err(axum::Error::new(full))));
        }
        self.rest = data;
        Poll::Ready(Some(Ok(self.piece())))
    }
}

fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

/// Wraps an answer to a peer that came from no call and whose length may be known; where
/// there is no memory for it, the answer is that of `refused`.
pub(super) async fn to_peer(
    answer: Response<Body>,
    peer: &Peer,
    refused: impl FnOnce(Failure) -> Response<Body>,
) -> Response<AnswerBody> {
    let (head, body) = answer.into_parts();
    let reader = head.extensions.get::<Booked>().is_none();
    let mut answer = AnswerBody::new(body, reader.then(|| peer.clone()), None);
    let mut answer = match answer.book_known().await {
        Ok(()) => Response::from_parts(head, answer),
        Err(full) => unbooked(refused(full.into())),
    };
    // Also where this process is its reader: what the connection sends is this body.
    answer.body_mut().is_outermost = true;
    answer
}

/// Returns the failure of a call whose deadline passed.
pub(super) fn late() -> Failure {
    Failure::new(
        Code::Timeout,
        "The deadline passed before the work was done",
    )
    .suggest("Allow more time, or ask for less at once")
}

/// Notes the status of a call in its span and its record: from the trailers, or from the headers
/// of an answer that is nothing else.
pub(super) fn note(span: &Span, record: &mut CountedCall, headers: &HeaderMap) {
    if let Some(code) = record.note(headers) {
        span.record("rpc.grpc.status_code", code);
    }
}

/// Returns a failure as a whole gRPC answer.
pub(super) fn refused(failure: Failure) -> Response<Body> {
    status(failure).into_http()
}

/// A short answer, such as a refusal, that needs no memory.
pub(super) fn unbooked(answer: Response<Body>) -> Response<AnswerBody> {
    answer.map(|body| AnswerBody::new(body, None, None))
}

/// Makes an answer break off when the token of its caller ends.
pub(super) fn until(
    mut answer: Response<AnswerBody>,
    token_end: Option<TokenExpiry>,
) -> Response<AnswerBody> {
    answer.body_mut().token_end = token_end;
    answer
}

/// Makes an answer write its line of the access log when it ends.
pub(super) fn log_answer(
    mut answer: Response<AnswerBody>,
    call: Option<Box<LoggedCall>>,
) -> Response<AnswerBody> {
    if let Some(mut call) = call {
        call.answered(&answer, answer.body().is_end_stream());
        answer.body_mut().logged = Some(call);
    }
    answer
}

impl Guard {
    fn note(&mut self, headers: &HeaderMap) {
        if let Some(record) = &mut self.record {
            note(&self.span, record, headers);
        }
        if let Some(call) = &mut self.call {
            call.note(outcome(headers));
        }
    }

    fn end(&mut self, failure: Failure) -> Frame<Bytes> {
        self.ended = true;
        let mut trailers = HeaderMap::new();
        // Only the code and the message: the call already had its headers.
        if status(failure).add_header(&mut trailers).is_err() {
            // What cannot be a header is an error of ours: UNKNOWN.
            trailers.insert("grpc-status", http::HeaderValue::from_static("2"));
        }
        self.note(&trailers);
        Frame::trailers(trailers)
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut polled = self.poll_piece(cx);
        if polled.is_pending()
            && let Some(token_end) = &mut self.token_end
            && let Poll::Ready(failure) = token_end.as_mut().poll(cx)
        {
            // REST and MCP have no trailers in which a stream could say why it ends.
            self.token_end = None;
            polled = Poll::Ready(Some(Err(axum::Error::new(failure))));
        }
        if self.logged.is_some()
            && let Poll::Ready(frame) = &polled
        {
            let is_end = frame.is_none() || self.is_end_stream();
            if let Some(call) = &mut self.logged {
                call.sent(frame, is_end);
            }
        }
        if self.is_outermost {
            // By this the connection knows a client that stalls from one that has nothing to read.
            note_polled(if polled.is_ready() {
                Polled::Gave
            } else {
                Polled::Waits
            });
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let ended = self.guard.as_ref().is_some_and(|guard| guard.ended);
        self.rest.is_empty() && self.next.is_none() && (ended || self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(inner.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use admission::{Admission, Amounts, Pace};

    const AMOUNTS: Amounts = Amounts {
        calls: 2,
        answer_kib: 100,
        ..Amounts::UNLIMITED
    };

    #[expect(clippy::needless_pass_by_value, reason = "as a layer has it")]
    fn refused(failure: Failure) -> Response<Body> {
        let mut answer = Response::new(Body::from(failure.to_string()));
        *answer.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
        answer
    }

    fn answer(bytes: usize) -> Response<Body> {
        Response::new(Body::from(vec![7; bytes]))
    }

    #[test]
    fn a_short_answer_needs_no_room_and_what_is_booked_is_not_booked_again() {
        let admission = Admission::new(AMOUNTS, 100, Pace::default());
        let peer = admission.peer([10, 0, 0, 1].into());
        let _all = peer.try_take(Resource::Answers, 100).expect("all there is");
        let mut booked = answer(MAX_FREE_BYTES + 1);
        booked.extensions_mut().insert(Booked);
        for answer in [answer(MAX_FREE_BYTES), booked] {
            let sent = to_peer(answer, &peer, refused).now_or_never();
            assert_eq!(sent.expect("at once").status(), http::StatusCode::OK);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_waits_for_room_has_the_place_of_a_call_again() {
        let admission = Admission::new(AMOUNTS, 100, Pace::default());
        let peer = admission.peer([10, 0, 0, 1].into());
        let all = peer.try_take(Resource::Answers, 100).expect("all there is");
        let send = || Box::pin(to_peer(answer(MAX_FREE_BYTES + 1), &peer, refused));
        let mut waiting = [send(), send()];
        for sending in &mut waiting {
            assert!(sending.now_or_never().is_none());
        }
        assert_eq!(admission.taken(Resource::Calls), 2);
        let third = send().now_or_never().expect("at once");
        assert_eq!(third.status(), http::StatusCode::TOO_MANY_REQUESTS);
        drop(all);
        for sending in waiting {
            let answer = sending.await;
            assert_eq!(answer.status(), http::StatusCode::OK);
            assert_eq!(admission.taken(Resource::Answers), 2);
        }
        assert_eq!(admission.taken(Resource::Answers), 0);
        assert_eq!(admission.taken(Resource::Calls), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_gives_back_what_was_reserved_for_it_and_it_does_not_need() {
        let admission = Admission::new(AMOUNTS, 100, Pace::default());
        let peer = admission.peer([10, 0, 0, 1].into()).for_call();
        let reserve = || admission::with_reader(peer.clone(), admission::reserve(1 << 20));
        reserve().await.expect("all there is");
        let sent = to_peer(answer(10 << 10), &peer, refused).await;
        assert_eq!(admission.taken(Resource::Answers), 10);
        drop(sent);
        reserve().await.expect("all there is");
        let longer = to_peer(answer(101 << 10), &peer, refused).await;
        assert_eq!(longer.status(), http::StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(admission.taken(Resource::Answers), 0);
    }
}
