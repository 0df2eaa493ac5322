//! The front door of every call.
//!
//! * **Places.** So many calls in work at once, and so many streams; a caller for
//!   whom there is none is refused at once with `RESOURCE_EXHAUSTED`, which costs
//!   less than a queue that nobody gets out of in time. A stream keeps its place
//!   until it ends.
//! * **Deadline.** `grpc-timeout` is honoured; a unary call without one gets the
//!   server's. When it passes, the work is dropped and the answer is
//!   `DEADLINE_EXCEEDED`.
//! * **Stopping** ends streams with `UNAVAILABLE`; those of workers end themselves,
//!   for calls in work need them.
//! * **Span** per call, child of the caller's W3C `traceparent`.
//! * **Counted** by rpc and status, whatever face the call came through.
//! * **Principal**: anonymous, until callers show who they are.
//! * A panic is a fault of ours, never of the connection.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt as _, TryFutureExt as _};
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame};
use opentelemetry::propagation::Extractor;
use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt as _};
use tracing::{Instrument as _, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::config::Limits;
use super::metrics::{Meter, Metrics, Record};
use super::services::Services;
use crate::contract::FILE_DESCRIPTOR_SET;
use crate::gateway::Transport;
use crate::grpc::{Deadline, status};
use crate::model::{Code, Failure, Principal};

/// What is known of an rpc before it is called.
struct Method {
    service: String,
    name: String,
    streams: bool,
    /// It ends by itself when the server stops.
    ends: bool,
    meter: Arc<Meter>,
}

struct State {
    methods: HashMap<String, Method>,
    metrics: Metrics,
    limits: Limits,
    calls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    deadline: Duration,
    stop: CancellationToken,
    exports: bool,
}

/// Puts the front door before a service.
#[derive(Clone)]
pub(super) struct FrontLayer(Arc<State>);

impl FrontLayer {
    /// `exports`: spans leave the process, so the caller's trace is continued.
    pub(super) fn new(limits: &Limits, stop: CancellationToken, exports: bool) -> Self {
        let metrics = Metrics::default();
        Self(Arc::new(State {
            methods: methods(&metrics),
            metrics,
            limits: limits.clone(),
            calls: Arc::new(Semaphore::new(limits.calls)),
            streams: Arc::new(Semaphore::new(limits.streams)),
            deadline: limits.deadline(),
            stop,
            exports,
        }))
    }
}

impl FrontLayer {
    /// What its calls are counted in.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Calls, and streams, that have a place now.
    pub(super) fn in_work(&self) -> (u64, u64) {
        let taken = |all: usize, places: &Semaphore| {
            u64::try_from(all.saturating_sub(places.available_permits())).unwrap_or(u64::MAX)
        };
        let State {
            limits,
            calls,
            streams,
            ..
        } = &*self.0;
        (taken(limits.calls, calls), taken(limits.streams, streams))
    }

    /// What calls in process go through: this front door, then services.
    pub(super) fn transport(&self, services: Services) -> Transport {
        transport(self.layer(services))
    }
}

/// What the server's own calls go through: services, and no door.
pub(super) fn inside(services: Services) -> Transport {
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

/// The rpcs of the contract, by path.
fn methods(metrics: &Metrics) -> HashMap<String, Method> {
    let set = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap_or_default();
    let mut methods = HashMap::new();
    for file in set.file {
        for service in &file.service {
            let service_name = format!("{}.{}", file.package(), service.name());
            for method in &service.method {
                let streams = method.client_streaming() || method.server_streaming();
                let meter = metrics.meter(&service_name, method.name(), streams);
                methods.insert(
                    format!("/{service_name}/{}", method.name()),
                    Method {
                        service: service_name.clone(),
                        name: method.name().to_owned(),
                        streams,
                        ends: service.name() == "ToolHost",
                        meter: Arc::new(meter),
                    },
                );
            }
        }
    }
    methods
}

impl<S> Layer<S> for FrontLayer {
    type Service = Front<S>;

    fn layer(&self, inner: S) -> Front<S> {
        Front {
            inner,
            state: Arc::clone(&self.0),
        }
    }
}

/// The front door before a service.
#[derive(Clone)]
pub(super) struct Front<S> {
    inner: S,
    state: Arc<State>,
}

impl<S> Service<Request<Body>> for Front<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let state = &self.state;
        let Some(method) = state.methods.get(request.uri().path()) else {
            // Health, reflection, and what is no rpc: none of it does work of ours.
            return Box::pin(self.inner.call(request).map_ok(Answer::free));
        };
        let mut record = Record::start(Arc::clone(&method.meter));
        let places = if method.streams {
            &state.streams
        } else {
            &state.calls
        };
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            let answer = refused(
                Failure::new(
                    Code::Overloaded,
                    "The server has as much to do as it takes on at once",
                )
                .suggest("Try again after the time that RetryInfo gives, and later each time"),
            );
            method.meter.refuse();
            record.note(answer.headers());
            return Box::pin(std::future::ready(Ok(Answer::free(answer))));
        };
        let asked = match timeout(request.headers()) {
            Ok(asked) => asked,
            Err(failure) => {
                let answer = refused(failure);
                record.note(answer.headers());
                return Box::pin(std::future::ready(Ok(Answer::free(answer))));
            }
        };
        let deadline = asked
            .or((!method.streams).then_some(state.deadline))
            .map(|time| Instant::now() + time);
        let extensions = request.extensions_mut();
        extensions.insert(Principal::anonymous());
        if let Some(deadline) = deadline {
            extensions.insert(Deadline(deadline));
        }
        let span = span(method, request.headers(), state.exports);
        let streams = method.streams;
        let call = self.inner.call(request);
        let stop = (streams && !method.ends).then(|| state.stop.clone());
        let work = async move {
            let answer = AssertUnwindSafe(call).catch_unwind();
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
            let span = Span::current();
            note(&span, &mut record, answer.headers());
            let guard = Guard {
                _place: place,
                deadline: deadline
                    .filter(|_| streams)
                    .map(|time| Box::pin(tokio::time::sleep_until(time))),
                stop: stop.map(|stop| Box::pin(stop.cancelled_owned())),
                span,
                record,
                ended: false,
            };
            Ok(answer.map(|inner| Answer {
                inner,
                guard: Some(guard),
            }))
        };
        Box::pin(work.instrument(span))
    }
}

fn late() -> Failure {
    Failure::new(
        Code::Timeout,
        "The deadline passed before the work was done",
    )
    .suggest("Allow more time, or ask for less at once")
}

/// Notes the status of a call in its span and its record: from the trailers, or from the headers
/// of an answer that is nothing else.
fn note(span: &Span, record: &mut Record, headers: &HeaderMap) {
    if let Some(code) = record.note(headers) {
        span.record("rpc.grpc.status_code", code);
    }
}

/// A failure as a whole gRPC answer.
fn refused(failure: Failure) -> Response<Body> {
    status(failure).into_http()
}

/// The deadline a caller asks for (gRPC over HTTP/2, `Timeout`): at most eight
/// digits and a unit.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(|text| {
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        if digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: u64 = digits.parse().ok()?;
        Some(match unit {
            "H" => Duration::from_secs(number * 3600),
            "M" => Duration::from_secs(number * 60),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        })
    });
    parsed.map(Some).ok_or_else(|| {
        Failure::new(
            Code::InvalidParameter,
            "The header grpc-timeout is up to eight digits and a unit, such as 500m",
        )
        .field("grpc-timeout", "not a timeout")
    })
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// The span of a call: where spans leave the process, with the names of the
/// OpenTelemetry conventions for rpc; else with what the log needs, since it
/// writes every field of every span.
fn span(method: &Method, headers: &HeaderMap, exports: bool) -> Span {
    if !exports {
        // As it is displayed: a text would be searched for what to escape.
        return tracing::info_span!("rpc", method = %method.name);
    }
    let span = tracing::info_span!(
        "rpc",
        otel.name = %format_args!("{}/{}", method.service, method.name),
        otel.kind = "server",
        rpc.system = "grpc",
        rpc.service = method.service,
        rpc.method = method.name,
        rpc.grpc.status_code = field::Empty,
    );
    let parent = opentelemetry::global::get_text_map_propagator(|p| p.extract(&Headers(headers)));
    // An error means that the span is not recorded: then it needs no parent.
    let _unrecorded = span.set_parent(parent);
    span
}

/// The body of an answer.
pub(super) struct Answer {
    inner: Body,
    guard: Option<Guard>,
}

impl Answer {
    /// The answer of what takes no place.
    pub(super) fn free(answer: Response<Body>) -> Response<Self> {
        answer.map(|inner| Self { inner, guard: None })
    }
}

/// Keeps the call's place, its deadline and its span until the last byte.
struct Guard {
    _place: OwnedSemaphorePermit,
    deadline: Option<Pin<Box<Sleep>>>,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    span: Span,
    record: Record,
    ended: bool,
}

impl Guard {
    fn end(&mut self, failure: Failure) -> Frame<Bytes> {
        self.ended = true;
        let mut trailers = HeaderMap::new();
        // Only the code and the message: the call already had its headers.
        if status(failure).add_header(&mut trailers).is_err() {
            trailers.insert("grpc-status", http::HeaderValue::from_static("2"));
        }
        note(&self.span, &mut self.record, &trailers);
        Frame::trailers(trailers)
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { inner, guard } = &mut *self;
        let Some(guard) = guard else {
            return Pin::new(inner).poll_frame(cx);
        };
        if guard.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(inner).poll_frame(cx) {
            if let Some(Ok(frame)) = &frame
                && let Some(trailers) = frame.trailers_ref()
            {
                note(&guard.span, &mut guard.record, trailers);
            }
            return Poll::Ready(frame);
        }
        if let Some(deadline) = &mut guard.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Ok(guard.end(late()))));
        }
        if let Some(stop) = &mut guard.stop {
            ready!(stop.as_mut().poll(cx));
            let failure = Failure::new(Code::ShuttingDown, "The server is about to stop")
                .suggest("Connect again and go on from the last resume token");
            return Poll::Ready(Some(Ok(guard.end(failure))));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.ended) || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_read_as_grpc_writes_it() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().expect("a header"));
            timeout(&headers).ok().flatten()
        };
        assert_eq!(read("100m"), Some(Duration::from_millis(100)));
        assert_eq!(read("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(read("0n"), Some(Duration::ZERO));
        for bad in ["", "m", "1", "1x", "-1m", "123456789m", "1.5S", "１m"] {
            let mut headers = HeaderMap::new();
            let value = http::HeaderValue::from_bytes(bad.as_bytes()).expect("a header");
            headers.insert("grpc-timeout", value);
            assert!(timeout(&headers).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn the_front_door_knows_which_rpcs_stream() {
        let methods = methods(&Metrics::default());
        let streaming: Vec<_> = {
            let mut names: Vec<_> = methods
                .values()
                .filter(|m| m.streams)
                .map(|m| m.name.clone())
                .collect();
            names.sort();
            names
        };
        assert_eq!(
            streaming,
            [
                "Attach",
                "ExportSkill",
                "PublishSkills",
                "StreamToolCall",
                "Watch"
            ]
        );
        assert!(methods.contains_key("/repertoire.v1.Lookup/GetSkill"));
    }
}
