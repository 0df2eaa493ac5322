//! The call layer: every call passes it, whatever face it came through.
//!
//! * **Admission.** The calls in work have a limit, and so have streams; a caller has a
//!   share of it. A call takes its permit when its message is there, and gives it
//!   back when its answer is made: what a peer sends or reads slowly is booked by its
//!   bytes and takes no permit. A stream keeps its permit until it ends. A call for which
//!   there is no permit waits for one, but not for long ([`Patience`]).
//! * **Quotas.** A call is taken from what its caller may do over time.
//! * **Deadline.** `grpc-timeout` is honoured up to the server's own, which a unary call without
//!   one gets once its message is there. When it passes, the work is dropped.
//! * **Stopping** ends streams with `UNAVAILABLE`; those of workers end themselves,
//!   for calls in work need them.
//! * **Span** per call, child of the caller's W3C `traceparent`.
//! * **Counted** by rpc and status, whatever face the call came through.
//! * **Access**: the listener has recognized the caller. A call whose action the caller may not
//!   do is refused before its message is read. A stream ends with the token that opened it.
//! * **Recorded** in the audit trail: calls that change something, and refusals for want of a
//!   right. The contract lists them; no handler records anything.
//! * A panic is a fault of ours, never of the connection.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body::Body as HttpBody;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};
use tracing::{Instrument as _, Span};

use super::MAX_MESSAGE_BYTES;
use super::answer::{AnswerBody, Booked, Guard, late, note, refused, unbooked};
use super::fallback::{metered, other};
use super::in_process::transport;
use super::limits::{Limits, Times};
use super::metrics::{CountedCall, Metrics};
use super::rpc::{RpcMethod, methods, span};
use access::Access;
use admission::{
    Admission, Intake, Length, Patience, Peer, Permit, is_refusal, timeout, with_reader,
};
use audit::{Audit, Call};
use contract::{CodecHooks, outcome, with_codec_hooks};
use executor::with_deadline;
use gateway::Transport;
use grpc::Deadline;
use model::Failure;
use namespaces::Namespaces;
use quotas::{Quotas, QuotasConfig};
use tokens::SignIn;

struct Inner {
    methods: HashMap<String, Arc<RpcMethod>>,
    metrics: Metrics,
    admission: Admission,
    /// The peer of calls that do not come through the listener.
    local: Peer,
    times: Times,
    quotas: ArcSwap<Quotas>,
    guards: Guards,
    stop: CancellationToken,
    exports: bool,
}

/// The checks that a call passes before its handler.
pub(super) struct Guards {
    pub(super) sign_in: SignIn,
    pub(super) audit: Audit,
    pub(super) namespaces: Namespaces,
}

/// Puts the call layer before a service.
#[derive(Clone)]
pub(super) struct CallLayer(Arc<Inner>);

impl std::fmt::Debug for CallLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallLayer").finish_non_exhaustive()
    }
}

impl CallLayer {
    /// `exports`: spans leave the process, so the caller's trace is continued.
    pub(super) fn new(
        (admission, limits): (Admission, &Limits),
        guards: Guards,
        stop: CancellationToken,
        exports: bool,
    ) -> Self {
        let metrics = Metrics::default();
        Self(Arc::new(Inner {
            methods: methods(&metrics),
            metrics,
            local: admission.local(),
            admission,
            times: limits.times(),
            quotas: ArcSwap::from_pointee(Quotas::new(&limits.quotas)),
            guards,
            stop,
            exports,
        }))
    }

    /// The metrics that count its calls.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Sets new quotas, with nothing of them used.
    pub(super) fn set_quotas(&self, config: &QuotasConfig) {
        self.0.quotas.store(Arc::new(Quotas::new(config)));
    }

    /// The limits on what callers hold at once.
    pub(super) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// Returns the transport of calls in process: this call layer, then services.
    pub(super) fn transport(&self, services: Router) -> Transport {
        transport(CallService {
            inner: services,
            state: Arc::clone(&self.0),
            is_remote: false,
        })
    }
}

impl<S> Layer<S> for CallLayer {
    type Service = CallService<S>;

    fn layer(&self, inner: S) -> CallService<S> {
        CallService {
            inner,
            state: Arc::clone(&self.0),
            is_remote: true,
        }
    }
}

/// The call layer before a service.
#[derive(Clone)]
pub(super) struct CallService<S> {
    inner: S,
    state: Arc<Inner>,
    /// Calls come over the network: their bytes arrive when the caller likes. A caller in
    /// process has its messages at hand, and reads its answers at once.
    is_remote: bool,
}

impl<S> Service<Request<Body>> for CallService<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // `poll_ready` was asked of this service, not of a clone: the call gets this one.
        let inner = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, inner);
        let state = Arc::clone(&self.state);
        // Whoever comes through a listener has both by now; a call in process may have neither,
        // and is then anonymous.
        let extensions = request.extensions_mut();
        let peer = extensions
            .get_or_insert_with(|| state.local.clone())
            .clone();
        let access = extensions
            .get_or_insert_with(|| state.guards.sign_in.anonymous())
            .clone();
        let reader = self.is_remote.then(|| peer.clone());
        let method = state.methods.get(request.uri().path()).cloned();
        let Some(method) = method else {
            let times = (state.times.idle, state.stop.clone());
            return Box::pin(other(inner, request, times, reader));
        };
        let span = span(&method, request.headers(), state.exports);
        let call = InboundCall {
            inner,
            state,
            record: CountedCall::start(Arc::clone(&method.meter)),
            method,
            access,
            peer,
            reader,
        };
        Box::pin(call.answer(request).instrument(span))
    }
}

/// A call on its way through the layer.
struct InboundCall<S> {
    inner: S,
    state: Arc<Inner>,
    method: Arc<RpcMethod>,
    record: CountedCall,
    access: Access,
    peer: Peer,
    /// The peer that sends the message and reads the answer over the network.
    reader: Option<Peer>,
}

/// A call whose message has arrived.
struct ReadyCall {
    request: Request<Body>,
    /// When the call ends. None: a stream ends when it likes.
    deadline: Option<Instant>,
    /// When work for it ends, at the latest.
    work_until: Instant,
    permit: Permit,
    /// For the bytes of its message.
    _memory: Option<Permit>,
}

impl<S> InboundCall<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    async fn answer(self, request: Request<Body>) -> Result<Response<AnswerBody>, Infallible> {
        // Before the message is read: a caller without the right cannot make us store one.
        if let Some(action) = self.method.action
            && let Err(failure) = self.access.require(action)
        {
            let (audit, rpc) = (&self.state.guards.audit, &self.method.audited);
            // This is the whole record, so there is no `Call` to end.
            audit.refused(rpc, &self.access, request.headers(), failure.code);
            return Ok(self.refuse(None, failure).await);
        }
        // Before the deadline is read, so that a call with a wrong one is recorded as well.
        let call = self.method.audited.is_recorded.then(|| {
            let rpc = &self.method.audited;
            let audit = &self.state.guards.audit;
            audit.begin(rpc, &self.access, request.headers())
        });
        let asked = match timeout(request.headers()) {
            Ok(asked) => asked,
            Err(failure) => return Ok(self.refuse(call, failure).await),
        };
        let patience = Patience::new(self.state.times.wait, asked);
        let (peer, stop) = (self.peer.clone(), self.state.stop.clone());
        let answer = self.work(request, asked, patience, call).await?;
        // Callers that call again as soon as they are refused would keep the processors busy
        // with refusals.
        if is_refusal(answer.headers()) {
            patience.before_refusal(&peer, &stop).await;
        }
        Ok(answer)
    }

    async fn work(
        mut self,
        request: Request<Body>,
        asked: Option<Duration>,
        patience: Patience,
        call: Option<Call>,
    ) -> Result<Response<AnswerBody>, Infallible> {
        // The quota first: a caller beyond it has no message read and waits for no permit.
        let admitted = match self.use_quota() {
            Ok(()) => self.admit(request, asked, patience).await,
            Err(failure) => Err(failure),
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(failure) => return Ok(self.refuse(call, failure).await),
        };
        let ReadyCall {
            mut request,
            deadline,
            work_until,
            permit,
            _memory,
        } = admitted;
        request.extensions_mut().insert(Deadline(work_until));
        let peer = self.peer.clone();
        // The two deadlines differ: the work learns of its own, and stops by itself; a unary
        // call is dropped below, should it not.
        let answer = with_deadline(work_until, self.handled(request, call.as_ref()));
        let answer = with_reader(peer, answer);
        let answer = AssertUnwindSafe(answer).catch_unwind();
        let answer = match deadline {
            None => answer.await,
            Some(deadline) => match tokio::time::timeout_at(deadline, answer).await {
                Ok(answer) => answer,
                Err(_passed) => Ok(Ok(refused(late()))),
            },
        };
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Err(_panic) => refused(Failure::fault("a handler panicked")),
        };
        // A stream whose headers have a status has ended before its first message.
        let goes_on = self.method.streams && outcome(answer.headers()).is_none();
        let (answer, call) = if goes_on {
            if let Some(call) = call.as_ref().filter(|_| self.method.worker) {
                call.goes_on();
            }
            (answer, call)
        } else {
            // Before the caller is answered: a change without its record is no success. It may
            // have been made all the same where this fails, as with every answer that is late.
            let answer = tokio::time::timeout_at(work_until, recorded(call, answer)).await;
            (answer.unwrap_or_else(|_passed| refused(late())), None)
        };
        let Self {
            state,
            method,
            access,
            mut record,
            reader,
            ..
        } = self;
        let span = Span::current();
        note(&span, &mut record, answer.headers());
        // Calls in work need their workers: the host ends those streams when it stops.
        let stop = (method.streams && !method.worker).then(|| state.stop.clone());
        let token_end = method
            .streams
            .then(|| state.guards.sign_in.ended(&access))
            .flatten();
        let is_remote = reader.is_some();
        let (mut head, body) = answer.into_parts();
        if is_remote {
            // Else `to_peer` would book what came by gRPC-Web a second time.
            head.extensions.insert(Booked);
        }
        let guard = |permit| Guard {
            _permit: permit,
            deadline: deadline
                .filter(|_| method.streams)
                .map(|time| Box::pin(tokio::time::sleep_until(time))),
            stop: stop.map(|stop| Box::pin(stop.cancelled_owned())),
            token_end,
            span,
            record: Some(record),
            call,
            ended: false,
        };
        // A stream works until its end, and in process the answer is read at once.
        if method.streams || !is_remote {
            let body = AnswerBody::new(body, reader, Some(guard(Some(permit))));
            return Ok(Response::from_parts(head, body));
        }
        let mut body = AnswerBody::new(body, reader, Some(guard(None)));
        // The permit is still held, so no more answers wait for memory than calls may be in work.
        let booked = match tokio::time::timeout_at(work_until, body.book_first()).await {
            Ok(booked) => booked.map_err(|full| {
                method.meter.refuse();
                Failure::from(full)
            }),
            Err(_passed) => Err(late()),
        };
        if let Err(failure) = booked {
            let refusal = refused(failure);
            body.note(refusal.headers());
            return Ok(unbooked(refusal));
        }
        // The answer is made: however long its reader takes, others may call.
        drop(permit);
        Ok(Response::from_parts(head, body))
    }

    /// Calls the service. The codec checks and notes messages by what is set here.
    async fn handled(
        &mut self,
        request: Request<Body>,
        call: Option<&Call>,
    ) -> Result<Response<Body>, Infallible> {
        let hooks = CodecHooks {
            authorizer: (self.method.action)
                .and_then(|of| self.state.guards.namespaces.authorizer(&self.access, of)),
            noted: call.map(Call::noted),
        };
        let inner = &mut self.inner;
        if hooks.authorizer.is_none() && hooks.noted.is_none() {
            return inner.call(request).await;
        }
        // The codec is made while the call is polled, so the call is made there as well.
        let answer = with_codec_hooks(hooks, async move { inner.call(request).await });
        match call {
            None => answer.await,
            Some(call) => call.work(answer).await,
        }
    }

    /// Waits for the message of a call, and takes its permit.
    async fn admit(
        &mut self,
        request: Request<Body>,
        asked: Option<Duration>,
        patience: Patience,
    ) -> Result<ReadyCall, Failure> {
        let begun = Instant::now();
        // A call without any time would be late anyway, after its message was read.
        if asked == Some(Duration::ZERO) {
            return Err(late());
        }
        let asked = asked.map(|time| begun + time);
        let (parts, body) = request.into_parts();
        let (body, memory) = match &self.reader {
            None => (body, None),
            Some(peer) if self.method.streams_in => {
                // A worker is silent for as long as there are no calls for it.
                let idle = (!self.method.worker).then_some(self.state.times.idle);
                (metered(peer, body, idle), None)
            }
            Some(peer) => {
                let body = Intake::collect(peer, body, Length::Message, MAX_MESSAGE_BYTES);
                let body = match asked {
                    None => body.await,
                    Some(asked) => {
                        let body = tokio::time::timeout_at(asked, body).await;
                        body.map_err(|_passed| late())?
                    }
                };
                let (body, memory) = body?.into_body();
                (Body::new(body), memory)
            }
        };
        // Whoever waits for a permit is booked as a request, but its message is booked already.
        let bytes = match &memory {
            Some(_booked) => 0,
            None => body.size_hint().lower(),
        };
        let permit = patience.permit(&self.peer, self.method.resource(), bytes);
        let permit = permit.await.inspect_err(|_| self.method.meter.refuse())?;
        // Work for a caller takes no longer than the operator lets it, whatever the caller
        // asks for. A stream may live longer than the work in it.
        let max = Instant::now() + self.state.times.deadline;
        let work_until = asked.map_or(max, |asked| asked.min(max));
        let deadline = if self.method.streams {
            asked
        } else {
            Some(work_until)
        };
        Ok(ReadyCall {
            request: Request::from_parts(parts, body),
            deadline,
            work_until,
            permit,
            _memory: memory,
        })
    }

    /// Counts the call against the quotas of its caller.
    fn use_quota(&self) -> Result<(), Failure> {
        let quotas = self.state.quotas.load();
        // The name costs an allocation, which a server without quotas does not pay.
        if !quotas.is_empty()
            && let Some(caller) = self.peer.name()
        {
            quotas.take(&caller, self.method.action)?;
        }
        Ok(())
    }

    /// Refuses a call, and records its end where it has a record.
    async fn refuse(mut self, call: Option<Call>, failure: Failure) -> Response<AnswerBody> {
        let answer = recorded(call, refused(failure)).await;
        self.record.note(answer.headers());
        unbooked(answer)
    }
}

/// Records the end of a call and returns its answer, or why it could not be recorded.
async fn recorded(call: Option<Call>, answer: Response<Body>) -> Response<Body> {
    let Some(call) = call else { return answer };
    let code = outcome(answer.headers());
    match call.end(code.as_deref()).await {
        Ok(()) => answer,
        Err(failure) => refused(failure),
    }
}
