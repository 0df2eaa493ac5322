//! What every call passes, whatever face it came through.
//!
//! * **Admission.** So many calls in work at once, and so many streams, of which a
//!   caller has a share. A call takes its permit when its message is there, and gives it
//!   back when its answer is made: what a peer sends or reads slowly is booked by its
//!   bytes and takes no permit. A stream keeps its permit until it ends. A call for which
//!   there is no permit waits for one, but not for long ([`overload`]).
//! * **Quotas.** A call is taken from what its caller may do over time.
//! * **Deadline.** `grpc-timeout`, which neither the listener nor axum looks at, is
//!   honoured up to the server's own, which a unary call
//!   without one gets from the moment its message is there. When it passes, the work is
//!   dropped and the answer is `DEADLINE_EXCEEDED`.
//! * **Stopping** ends streams with `UNAVAILABLE`; those of workers end themselves,
//!   for calls in work need them.
//! * **Span** per call, child of the caller's W3C `traceparent`.
//! * **Counted** by rpc and status, whatever face the call came through.
//! * **Access**: what the listener says of the caller. A call whose action the caller may not
//!   do is refused before its message is read. A stream ends with the token that opened it.
//! * A panic is a fault of ours, never of the connection.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{HeaderMap, Request, Response};
use http_body::Body as HttpBody;
use http_body_util::BodyExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt as _};
use tracing::{Instrument as _, Span};

use super::MAX_MESSAGE_BYTES;
use super::answer::{AnswerBody, Booked, Guard};
use super::limits::Limits;
use super::metrics::{CountedCall, Metrics};
use super::overload::{self, Patience};
use super::rpc::{RpcMethod, methods, span};
use super::timeout::timeout;
use crate::contract::{status, with_authorizer};
use crate::grpc::Deadline;
use access::Access;
use admission::{
    Admission, Intake, IntakeError, Length, Metered, Peer, Permit, Resource, with_reader,
};
use executor::with_deadline;
use gateway::Transport;
use model::{Code, Failure};
use quotas::Quotas;
use tokens::SignIn;

/// How long calls may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// A unary call that brings no deadline.
    pub(super) deadline: Duration,
    /// A stream whose client sends nothing, where it is the client's turn.
    pub(super) idle: Duration,
    /// A call for which there is no permit.
    pub(super) wait: Duration,
}

struct Inner {
    methods: HashMap<String, Arc<RpcMethod>>,
    metrics: Metrics,
    admission: Admission,
    /// Who calls without coming through the listener.
    local: Peer,
    times: Times,
    quotas: Quotas,
    sign_in: SignIn,
    stop: CancellationToken,
    exports: bool,
}

/// The service that says whether the server is well, and its rpc that is asked once.
const HEALTH: &str = "/grpc.health.v1.Health/";
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

/// Puts the call layer before a service.
#[derive(Clone)]
pub(super) struct CallLayer(Arc<Inner>);

impl CallLayer {
    /// `exports`: spans leave the process, so the caller's trace is continued.
    pub(super) fn new(
        (admission, limits): (Admission, &Limits),
        sign_in: SignIn,
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
            quotas: Quotas::new(&limits.quotas),
            sign_in,
            stop,
            exports,
        }))
    }
}

impl CallLayer {
    /// What its calls are counted in.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Who has how much at once.
    pub(super) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// What calls in process go through: this call layer, then services.
    pub(super) fn transport(&self, services: Router) -> Transport {
        transport(CallService {
            inner: services,
            state: Arc::clone(&self.0),
            is_remote: false,
        })
    }
}

/// What the server's own calls go through: services, and no call layer.
pub(super) fn inside(services: Router) -> Transport {
    transport(services)
}

fn transport<S, B>(services: S) -> Transport
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    let services = services
        .map_request(|request: Request<tonic::body::Body>| request.map(Body::new))
        .map_response(|answer: Response<B>| answer.map(tonic::body::Body::new))
        .map_err(|never| match never {});
    BoxCloneSyncService::new(services)
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
    /// Calls come over the network: their bytes arrive when the caller likes. What
    /// calls in process has its messages at hand, and reads its answers at once.
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
        // The clone takes the place of the one that is ready.
        let inner = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, inner);
        let state = Arc::clone(&self.state);
        let extensions = request.extensions_mut();
        let peer = extensions
            .get_or_insert_with(|| state.local.clone())
            .clone();
        let access = extensions
            .get_or_insert_with(|| state.sign_in.anonymous())
            .clone();
        let reader = self.is_remote.then(|| peer.clone());
        let method = state.methods.get(request.uri().path()).cloned();
        let Some(method) = method else {
            return Box::pin(other(inner, request, state, reader));
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
    /// Who sends the message and reads the answer over the network.
    reader: Option<Peer>,
}

/// What a call has when its message is there.
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
        if let Some(action) = self.method.action
            && let Err(failure) = self.access.require(action)
        {
            return Ok(self.refuse(failure));
        }
        let asked = match timeout(request.headers()) {
            Ok(asked) => asked,
            Err(failure) => return Ok(self.refuse(failure)),
        };
        let patience = Patience::new(self.state.times.wait, asked);
        let (peer, stop) = (self.peer.clone(), self.state.stop.clone());
        let answer = self.work(request, asked, patience).await?;
        if overload::is_refusal(answer.headers()) {
            patience.before_refusal(&peer, &stop).await;
        }
        Ok(answer)
    }

    async fn work(
        mut self,
        request: Request<Body>,
        asked: Option<Duration>,
        patience: Patience,
    ) -> Result<Response<AnswerBody>, Infallible> {
        if let Err(failure) = self.use_quota() {
            return Ok(self.refuse(failure));
        }
        let admitted = match self.admit(request, asked, patience).await {
            Ok(admitted) => admitted,
            Err(failure) => return Ok(self.refuse(failure)),
        };
        let ReadyCall {
            mut request,
            deadline,
            work_until,
            permit,
            _memory,
        } = admitted;
        request.extensions_mut().insert(Deadline(work_until));
        let authorizer = self.method.action.and_then(|of| self.access.authorizer(of));
        let answer = match authorizer {
            None => Either::Left(self.inner.call(request)),
            // The decoder is made while the call is polled, so the call is made there as well.
            Some(authorizer) => {
                let inner = &mut self.inner;
                let call = async move { inner.call(request).await };
                Either::Right(with_authorizer(authorizer, call))
            }
        };
        let answer = with_deadline(work_until, answer);
        let answer = with_reader(self.peer.clone(), answer);
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
            Ok(Err(never)) => match never {},
            Err(_panic) => refused(Failure::fault("a handler panicked")),
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
        let stop = (method.streams && !method.worker).then(|| state.stop.clone());
        let token_end = method
            .streams
            .then(|| state.sign_in.ended(&access))
            .flatten();
        let is_remote = reader.is_some();
        let (mut head, body) = answer.into_parts();
        if is_remote {
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
            ended: false,
        };
        if method.streams || !is_remote {
            let body = AnswerBody::new(body, reader, Some(guard(Some(permit))));
            return Ok(Response::from_parts(head, body));
        }
        let mut body = AnswerBody::new(body, reader, Some(guard(None)));
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
            return Ok(refusal.map(|body| AnswerBody::new(body, None, None)));
        }
        // The answer is made: however long its reader takes, others may call.
        drop(permit);
        Ok(Response::from_parts(head, body))
    }

    /// Waits for the message of a call, and takes its permit.
    async fn admit(
        &mut self,
        request: Request<Body>,
        asked: Option<Duration>,
        patience: Patience,
    ) -> Result<ReadyCall, Failure> {
        let begun = Instant::now();
        if asked == Some(Duration::ZERO) {
            return Err(late());
        }
        let asked = asked.map(|time| begun + time);
        let (parts, body) = request.into_parts();
        let (body, memory) = match &self.reader {
            None => (body, None),
            Some(peer) if self.method.streams_in => {
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

    /// Takes the call from the quotas of its caller.
    fn use_quota(&self) -> Result<(), Failure> {
        let quotas = &self.state.quotas;
        match self.peer.name() {
            Some(caller) if !quotas.is_empty() => quotas.take(&caller, self.method.action),
            _ => Ok(()),
        }
    }

    fn refuse(mut self, failure: Failure) -> Response<AnswerBody> {
        let answer = refused(failure);
        self.record.note(answer.headers());
        answer.map(|body| AnswerBody::new(body, None, None))
    }
}

/// The body of a request that streams messages.
fn metered(peer: &Peer, body: Body, idle: Option<Duration>) -> Body {
    let body = Metered::new(peer, body, idle);
    Body::new(body.map_err(|error| match error {
        IntakeError::Broken(error) => error.into_inner(),
        // tonic finds the status, and ends the stream with it.
        error => status(error).into(),
    }))
}

/// Health, reflection, and what is no rpc. None of it does work of ours, but streams
/// are streams, and whoever sends does so within limits.
async fn other<S>(
    mut inner: S,
    request: Request<Body>,
    state: Arc<Inner>,
    reader: Option<Peer>,
) -> Result<Response<AnswerBody>, Infallible>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let Some(peer) = reader else {
        let answer = inner.call(request).await?;
        return Ok(answer.map(|body| AnswerBody::new(body, None, None)));
    };
    // Whether the server is well can always be asked.
    let permit = if request.uri().path() == HEALTH_CHECK {
        Ok(None)
    } else {
        peer.try_take(Resource::Streams, 1).map(Some)
    };
    let permit = match permit {
        Ok(permit) => permit,
        Err(full) => return Ok(refused(full.into()).map(|body| AnswerBody::new(body, None, None))),
    };
    let request = request.map(|body| metered(&peer, body, Some(state.times.idle)));
    let guard = Guard {
        _permit: permit,
        deadline: None,
        // Who watches the server's health is told by it that the server stops.
        stop: (!request.uri().path().starts_with(HEALTH))
            .then(|| Box::pin(state.stop.clone().cancelled_owned())),
        token_end: None,
        span: Span::none(),
        record: None,
        ended: false,
    };
    let answer = inner.call(request).await?;
    Ok(answer.map(|body| AnswerBody::new(body, Some(peer), Some(guard))))
}

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

/// A failure as a whole gRPC answer.
fn refused(failure: Failure) -> Response<Body> {
    status(failure).into_http()
}
