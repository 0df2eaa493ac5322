//! What a collector gets, and how long it is waited for.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{EnterGuard, Runtime};
use tokio::time::{Instant, timeout};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tracing::field::{Field, Visit};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::*;
use crate::{LogFormat, Telemetry};

/// The levels and the fields of what was logged.
#[derive(Clone, Default)]
pub(super) struct Logged(Arc<Mutex<Vec<String>>>);

impl Logged {
    /// Takes what this thread logs.
    pub(super) fn here(&self) -> tracing::subscriber::DefaultGuard {
        let log = self
            .clone()
            .with_filter(Targets::new().with_target("repertoire_telemetry", tracing::Level::INFO));
        tracing::subscriber::set_default(tracing_subscriber::registry().with(log))
    }

    pub(super) fn told(&self) -> Vec<String> {
        self.0.lock().expect("the log").clone()
    }
}

impl<S: Subscriber> Layer<S> for Logged {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Fields(String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() != "message" {
                    write!(self.0, " {value:?}").expect("text");
                }
            }
        }
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.0.lock().expect("the log").push(fields.0);
    }
}

/// What came, and what is answered.
#[derive(Debug, Clone, Default)]
struct Received(Arc<Mutex<Came>>);

#[derive(Debug, Default)]
struct Came {
    records: Vec<String>,
    spans: Vec<Sent>,
    answers: VecDeque<ExportMetricsPartialSuccess>,
}

impl Received {
    fn came(&self) -> MutexGuard<'_, Came> {
        self.0.lock().expect("the collector")
    }
}

/// A span: its name, and in hex its trace and its parent.
type Sent = (String, String, String);

/// A collector on this machine, with a runtime of its own or in that of a test.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) endpoint: String,
    received: Received,
    runtime: Option<Runtime>,
}

impl Collector {
    pub(super) fn within() -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let incoming = TcpIncoming::bind(address).expect("a port");
        let port = incoming.local_addr().expect("an address").port();
        let received = Received::default();
        let server = Server::builder()
            .add_service(LogsServiceServer::new(received.clone()))
            .add_service(MetricsServiceServer::new(received.clone()))
            .add_service(TraceServiceServer::new(received.clone()));
        tokio::spawn(server.serve_with_incoming(incoming));
        Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            received,
            runtime: None,
        }
    }

    /// One with threads of its own, for what blocks until all is sent.
    fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let within = runtime.enter();
        let collector = Self::within();
        drop(within);
        Self {
            runtime: Some(runtime),
            ..collector
        }
    }

    fn enter(&self) -> EnterGuard<'_> {
        self.runtime.as_ref().expect("a runtime").enter()
    }

    /// Settings by which it gets these.
    fn gets(&self, signals: &[Signal]) -> Otlp {
        Otlp {
            endpoint: self.endpoint.clone(),
            signals: signals.to_vec(),
            interval: Otlp::INTERVAL,
        }
    }

    /// What records of the log said.
    fn records(&self) -> Vec<String> {
        self.received.came().records.clone()
    }

    fn spans(&self) -> Vec<Sent> {
        self.received.came().spans.clone()
    }

    /// Has it say this next.
    pub(super) fn answers(&self, answer: ExportMetricsPartialSuccess) {
        self.received.came().answers.push_back(answer);
    }
}

#[tonic::async_trait]
impl LogsService for Received {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let resources = request.into_inner().resource_logs.into_iter();
        let scopes = resources.flat_map(|it| it.scope_logs);
        let bodies = scopes.flat_map(|it| it.log_records).map(|it| it.body);
        let texts = bodies.map(|body| match body.and_then(|body| body.value) {
            Some(Value::StringValue(text)) => text,
            other => format!("{other:?}"),
        });
        self.came().records.extend(texts);
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Received {
    async fn export(
        &self,
        _: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let partial_success = self.came().answers.pop_front();
        Ok(Response::new(ExportMetricsServiceResponse {
            partial_success,
        }))
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let hex = |id: &[u8]| {
            id.iter()
                .fold(String::new(), |hex, it| format!("{hex}{it:02x}"))
        };
        let resources = request.into_inner().resource_spans.into_iter();
        let spans = resources
            .flat_map(|it| it.scope_spans)
            .flat_map(|it| it.spans)
            .map(|it| (it.name, hex(&it.trace_id), hex(&it.parent_span_id)));
        self.came().spans.extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[test]
fn a_collector_gets_the_spans_of_the_server_under_those_of_its_callers() {
    let collector = Collector::start();
    let _within = collector.enter();
    let exporter = Exporter::new(&collector.gets(&[Signal::Traces])).expect("an exporter");
    let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let log = tracing_subscriber::registry().with(exporter.spans());
    tracing::subscriber::with_default(log, || {
        let call = tracing::info_span!(target: "repertoire::server", "call");
        let mut headers = HeaderMap::new();
        let named = format!("00-{trace}-{parent}-01");
        headers.insert("traceparent", named.parse().expect("a value"));
        set_parent(&call, &headers);
        let _none = [
            tracing::debug_span!(target: "repertoire::server", "a detail"),
            tracing::info_span!(target: "h2::client", "a request"),
        ];
        let own = tracing::info_span!(target: "repertoire::server", "its own");
        assert!(own.context().span().span_context().is_valid());
    });
    exporter.stop();
    let mut spans = collector.spans();
    spans.sort();
    let names: Vec<_> = spans.iter().map(|span| span.0.as_str()).collect();
    assert_eq!(names, ["call", "its own"]);
    let call = ("call".to_owned(), trace.to_owned(), parent.to_owned());
    assert_eq!(spans[0], call);
    assert_ne!(spans[1].1, trace);
}

/// The log of a process is set up once, which another test does: this one has a process of
/// its own.
#[test]
fn a_collector_gets_what_is_logged_but_not_of_what_sends_it() {
    const CHILD: &str = "REPERTOIRE_TELEMETRY_CHILD";
    const NAME: &str = "otlp::tests::a_collector_gets_what_is_logged_but_not_of_what_sends_it";
    if env::var_os(CHILD).is_none() {
        let program = env::current_exe().expect("this program");
        let mut child = std::process::Command::new(program);
        let child = child.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1");
        let ended = child.output().expect("a child");
        assert!(ended.status.success(), "{ended:?}");
        return;
    }
    // What sends the records of its own sending comes to no end: then it ends here.
    let (done, is_done) = mpsc::channel::<()>();
    thread::spawn(move || {
        let timed_out = Err(mpsc::RecvTimeoutError::Timeout);
        if is_done.recv_timeout(Duration::from_secs(20)) == timed_out {
            std::process::exit(1);
        }
    });
    let collector = Collector::start();
    let _within = collector.enter();
    let settings = collector.gets(&[Signal::Logs]);
    let nowhere = BoxMakeWriter::new(std::io::sink);
    let telemetry = Telemetry::start_to(nowhere, false, "warn", LogFormat::Text, Some(&settings));
    let telemetry = telemetry.expect("a log");
    let say = |when: &str| {
        tracing::info!(target: "repertoire::server", "{when} by us");
        tracing_log::log::info!(target: "a_crate", "{when} by a crate");
        tracing::info!(target: "h2::codec", "{when} by a sender");
    };
    say("before");
    telemetry.set_filter("info").expect("a filter");
    say("then");
    telemetry.set_filter("error").expect("a filter");
    say("after");
    telemetry.stop();
    let mut records = collector.records();
    records.sort();
    assert_eq!(records, ["then by a crate", "then by us"]);
    drop(done);
}

#[tokio::test]
async fn what_was_not_asked_for_is_not_sent() {
    let collector = Collector::within();
    for signal in Otlp::SIGNALS {
        let exporter = Exporter::new(&collector.gets(&[signal])).expect("an exporter");
        let sends = [
            (Signal::Traces, exporter.traces()),
            (Signal::Metrics, exporter.metrics.is_some()),
            (Signal::Logs, exporter.logs.is_some()),
        ];
        assert_eq!(sends, Otlp::SIGNALS.map(|it| (it, it == signal)));
        let telemetry = Telemetry {
            exporter: Some(exporter),
            set_filter: None,
        };
        assert_eq!(telemetry.exports(), signal == Signal::Traces);
    }
}

#[test]
fn records_of_what_sends_records_are_not_sent() {
    #[derive(Clone, Default)]
    struct Records(Arc<Mutex<Vec<(String, bool)>>>);
    impl<S: Subscriber> Layer<S> for Records {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            let record = event.metadata();
            let mut records = self.0.lock().expect("the records");
            records.push((record.target().to_owned(), is_sent(record)));
        }
    }
    let records = Records::default();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(records.clone()), || {
        tracing::info!(target: "h2", "x");
        tracing::info!(target: "hyper_util::client", "x");
        tracing::info!(target: "opentelemetry-otlp", "x");
        tracing::info!(target: "repertoire_telemetry::otlp", "x");
        tracing::info!(target: "repertoire::server", "x");
        tracing::info!(target: "my_h2", "x");
    });
    let sent: Vec<_> = records.0.lock().expect("the records").clone();
    let sent: Vec<_> = sent.iter().filter(|it| it.1).map(|it| &it.0[..]).collect();
    assert_eq!(sent, ["repertoire::server", "my_h2"]);
}

/// How long a request takes that nobody answers, on a clock that stands still.
async fn waited_for(address: SocketAddr) -> Duration {
    let channel = channel(&format!("http://{address}")).expect("a channel");
    let mut client = MetricsServiceClient::new(channel);
    let begun = Instant::now();
    let sent = client.export(ExportMetricsServiceRequest::default());
    let sent = timeout(10 * TIMEOUT, sent).await.expect("it ends");
    sent.expect_err("nobody answers");
    begun.elapsed()
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_collector_that_does_not_answer_has_no_more_than_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let waited = waited_for(address).await;
    assert!((TIMEOUT..TIMEOUT + SECOND).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_cannot_be_reached_has_no_more_than_the_timeout() {
    let socket = TcpSocket::new_v4().expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(any).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    // Whoever comes after these is not let in, and hears nothing.
    let mut held = Vec::new();
    while let Ok(connected) = timeout(SECOND, TcpStream::connect(address)).await {
        held.push(connected.expect("a connection"));
        assert!(held.len() < 100, "the system takes any number");
    }
    let waited = waited_for(address).await;
    assert!((TIMEOUT..TIMEOUT + SECOND).contains(&waited), "{waited:?}");
}
