//! Metrics, and how Prometheus reads them; `telemetry` sends the same to a collector.
//!
//! Every call passes the call layer, so calls over gRPC, REST and MCP are counted
//! alike, by rpc. The names of metrics are those of other gRPC servers, so that their
//! dashboards work. A call looks nothing up: each rpc holds its counters once they
//! exist. An rpc that was never called is not shown.
//!
//! By `prometheus-client`, not by OpenTelemetry's exporter, whose authors advise against it
//! for new projects.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::response::IntoResponse as _;
use axum::routing::{MethodRouter, get};
use http::{HeaderMap, HeaderValue, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;

use super::Domain;
use super::calls::CallLayer;
use super::vitals::ServerVitals;
use access_log::CODES;
use admission::{Admission, Resource};
use executor::Executor;
use model::Failure;
use registry::Registry;
use rest::{no_such_method, refused};
use search::IndexProgress;
use sync::Health;
use tools::host::Stats;

/// Upper bounds of durations, in seconds.
const SECONDS: [f64; 15] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

const CANCELED_CODE: usize = 1;
const UNKNOWN_CODE: usize = 2;

pub(super) type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Clone, Copy)]
struct Seconds;

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// The metrics of calls. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    calls: Family<Labels, Counter>,
    seconds: Family<Labels, Histogram, Seconds>,
    refused: Family<Labels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            seconds: Family::new_with_constructor(Seconds),
            refused: Family::default(),
        }
    }
}

/// Counters of one rpc.
#[derive(Debug)]
pub(super) struct Meter {
    metrics: Metrics,
    labels: Labels,
    /// By status. Made with the first call that ends so: else each rpc would show 17 zeros.
    calls: [OnceLock<Counter>; CODES.len()],
    seconds: OnceLock<Histogram>,
}

impl Metrics {
    /// The counters of an rpc.
    pub(super) fn meter(&self, service: &str, method: &str, streams: bool) -> Meter {
        let kind = if streams { "stream" } else { "unary" };
        Meter {
            metrics: self.clone(),
            labels: vec![
                ("grpc_service", service.to_owned()),
                ("grpc_method", method.to_owned()),
                ("grpc_type", kind.to_owned()),
            ],
            calls: Default::default(),
            seconds: OnceLock::new(),
        }
    }
}

impl Meter {
    fn call(&self, code: usize) -> Option<&Counter> {
        let counter = self.calls.get(code)?;
        Some(counter.get_or_init(|| {
            let mut labels = self.labels.clone();
            let name = CODES.get(code).copied().unwrap_or("Unknown");
            labels.push(("grpc_code", name.to_owned()));
            self.metrics.calls.get_or_create_owned(&labels)
        }))
    }

    fn seconds(&self) -> &Histogram {
        let create = || self.metrics.seconds.get_or_create_owned(&self.labels);
        self.seconds.get_or_init(create)
    }

    /// Counts a call for which there was no permit.
    pub(super) fn refuse(&self) {
        self.metrics.refused.get_or_create(&self.labels).inc();
    }
}

/// A call that is counted when it ends, however it ends.
#[derive(Debug)]
pub(super) struct CountedCall {
    meter: Arc<Meter>,
    started: Instant,
    code: Option<usize>,
}

impl CountedCall {
    pub(super) fn start(meter: Arc<Meter>) -> Self {
        Self {
            meter,
            started: Instant::now(),
            code: None,
        }
    }

    /// Notes the status it ends with, where headers or trailers have one.
    pub(super) fn note(&mut self, headers: &HeaderMap) -> Option<i64> {
        let code = headers.get("grpc-status")?.to_str().ok()?;
        let code: i64 = code.parse().ok()?;
        let known = usize::try_from(code).ok();
        self.code = Some(
            known
                .filter(|code| *code < CODES.len())
                .unwrap_or(UNKNOWN_CODE),
        );
        Some(code)
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        // The caller left: the call was dropped before it had a status.
        if let Some(calls) = self.meter.call(self.code.unwrap_or(CANCELED_CODE)) {
            calls.inc();
        }
        let seconds = self.started.elapsed().as_secs_f64();
        self.meter.seconds().observe(seconds);
    }
}

/// Returns what renders the metrics as text. Blocks: the health of sources is read from the
/// store, and the figures of the process and its disk from files.
pub(super) fn reader(
    front: CallLayer,
    domain: &Domain,
    others: ServerVitals,
) -> impl Fn() -> Result<String, std::fmt::Error> + Clone + Send + Sync + use<> {
    let (domain, others) = (domain.clone(), Arc::new(others));
    move || {
        // Figures that cannot be read are left out, so that the others are there when they are
        // needed most; the log has the error.
        let sources = domain.engine.health(None).unwrap_or_default();
        let (tools, search) = (domain.host.stats(), domain.search.progress());
        render(&front, domain.registry(), tools, search, sources, &others)
    }
}

/// The page that Prometheus reads.
pub(super) fn page<S: Clone + Send + Sync + 'static>(
    read: impl Fn() -> Result<String, std::fmt::Error> + Clone + Send + Sync + 'static,
) -> MethodRouter<S> {
    get(
        async move || match tokio::task::spawn_blocking(read).await {
            Ok(Ok(text)) => {
                let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                let media = HeaderValue::from_static(media);
                ([(header::CONTENT_TYPE, media)], text).into_response()
            }
            Ok(Err(error)) => refused(Failure::fault(error)),
            Err(error) => refused(Failure::fault(error)),
        },
    )
    .fallback(no_such_method)
}

/// The amount of each resource that peers hold.
fn held(admission: &Admission) -> [(&'static str, &'static str, u64); 9] {
    let taken = |resource| u64::try_from(admission.taken(resource)).unwrap_or(u64::MAX);
    [
        (
            "repertoire_calls_in_work",
            "Unary calls in work",
            taken(Resource::Calls),
        ),
        (
            "repertoire_streams_in_work",
            "Streams that are open",
            taken(Resource::Streams),
        ),
        (
            "repertoire_connections",
            "Connections that are open",
            taken(Resource::Connections),
        ),
        (
            "repertoire_handshakes",
            "Handshakes of TLS in work",
            taken(Resource::Handshakes),
        ),
        (
            "repertoire_peers",
            "Addresses that have something here: a connection, a session",
            admission.peer_count() as u64,
        ),
        (
            "repertoire_mcp_sessions",
            "MCP sessions that are open",
            taken(Resource::Sessions),
        ),
        (
            "repertoire_request_kib",
            "KiB of requests that arrive or are in work",
            taken(Resource::Requests),
        ),
        (
            "repertoire_answer_kib",
            "KiB of answers that wait for their readers",
            taken(Resource::Answers),
        ),
        (
            "repertoire_worker_streams",
            "Streams of workers that are open",
            taken(Resource::Workers),
        ),
    ]
}

fn render(
    front: &CallLayer,
    registry: &Registry,
    tools: Stats,
    search: IndexProgress,
    sources: Vec<Health>,
    others: &ServerVitals,
) -> Result<String, std::fmt::Error> {
    let Metrics {
        calls,
        seconds,
        refused,
    } = front.metrics().clone();
    let mut page = prometheus_client::registry::Registry::default();
    page.register(
        "grpc_server_handled",
        "Calls that ended, over any face, by rpc and status",
        calls,
    );
    page.register(
        "grpc_server_handling_seconds",
        "How long calls took",
        seconds,
    );
    page.register(
        "repertoire_refused",
        "Calls that were refused because the server had as much to do as it takes on",
        refused,
    );
    let gauges = [
        (
            "repertoire_skills",
            "Skills that are stored",
            registry.catalog().len() as u64,
        ),
        (
            "repertoire_event_log_end",
            "Sequence number of the last event",
            registry.log().borrow().end,
        ),
        (
            "repertoire_search_skills",
            "Skills that a search finds",
            search.indexed as u64,
        ),
        (
            "repertoire_search_skills_without_meaning",
            "Skills that a search finds by words only, until their vectors are made",
            search.without_vector as u64,
        ),
        (
            "repertoire_search_position",
            "Sequence number of the last event that a search knows of",
            search.position,
        ),
        (
            "repertoire_workers",
            "Workers that are attached",
            tools.workers as u64,
        ),
        (
            "repertoire_worker_calls_waiting",
            "Calls of tools that wait for a worker",
            tools.waiting as u64,
        ),
        (
            "repertoire_worker_calls_in_work",
            "Slots of workers that are held",
            tools.held as u64,
        ),
        (
            "repertoire_worker_calls_abandoned",
            "Slots of workers that are held for callers who left",
            tools.abandoned as u64,
        ),
    ];
    for (name, help, value) in held(front.admission()).into_iter().chain(gauges) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        page.register(name, help, ConstGauge::new(value));
    }
    others.register(&mut page);
    register_work(&mut page, registry.executor());
    register_sources(&mut page, sources);
    page.register(
        "repertoire_worker_messages_dropped",
        "Messages of workers that were dropped, or broke a rule",
        ConstCounter::new(tools.dropped),
    );
    let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    page.register("repertoire_build", "What this server is", build);
    let mut text = String::new();
    encode(&mut text, &page)?;
    Ok(text)
}

/// Registers the figures of the executor, by kind of work.
fn register_work(page: &mut prometheus_client::registry::Registry, executor: &Executor) {
    let gauges = [
        (
            "repertoire_work_permits",
            "Work of a kind that may run at once",
        ),
        ("repertoire_work_running", "Work of a kind that runs"),
        (
            "repertoire_work_waiting",
            "Calls that wait for work of a kind",
        ),
    ]
    .map(|named| (named, Family::<Labels, Gauge>::default()));
    let counters = [
        ("repertoire_work_begun", "Work of a kind that was begun"),
        (
            "repertoire_work_finished",
            "Work of a kind that ended while its caller waited for it",
        ),
        (
            "repertoire_work_refused",
            "Work of a kind that was refused, because too much of it waited or its time was short",
        ),
        (
            "repertoire_work_abandoned",
            "Work of a kind whose caller left before it was done",
        ),
    ]
    .map(|named| (named, Family::<Labels, Counter>::default()));
    for (kind, stats) in executor.stats() {
        let labels = vec![("kind", kind.name().to_owned())];
        let values = [stats.permits, stats.in_use, stats.waiting];
        for ((_, family), value) in gauges.iter().zip(values) {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            family.get_or_create_owned(&labels).set(value);
        }
        let values = [stats.begun, stats.finished, stats.refused, stats.abandoned];
        for ((_, family), value) in counters.iter().zip(values) {
            family.get_or_create_owned(&labels).inc_by(value);
        }
    }
    for ((name, help), family) in gauges {
        page.register(name, help, family);
    }
    for ((name, help), family) in counters {
        page.register(name, help, family);
    }
}

/// Registers the health of each source.
fn register_sources(page: &mut prometheus_client::registry::Registry, sources: Vec<Health>) {
    let gauges = [
        ("repertoire_source_skills", "Skills that come from a source"),
        (
            "repertoire_source_failures",
            "Syncs of a source that failed in the last 24 hours",
        ),
        (
            "repertoire_source_response_milliseconds",
            "Seconds of the last contact with a source",
        ),
        (
            "repertoire_source_synced_timestamp_seconds",
            "When a source was last synced whole, in seconds since 1970; 0: never",
        ),
    ]
    .map(|named| (named, Family::<Labels, Gauge>::default()));
    for source in sources {
        let labels = vec![("source", source.source.id)];
        let millis = source.response_ms.unwrap_or(0);
        let values = [
            i64::from(source.skills),
            i64::from(source.errors),
            i64::try_from(millis).unwrap_or(i64::MAX),
            source.last_success.map_or(0, jiff::Timestamp::as_second),
        ];
        for ((_, family), value) in gauges.iter().zip(values) {
            family.get_or_create_owned(&labels).set(value);
        }
    }
    for ((name, help), family) in gauges {
        page.register(name, help, family);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(metrics: &Metrics) -> String {
        let mut page = prometheus_client::registry::Registry::default();
        page.register("calls", "x", metrics.calls.clone());
        page.register("refused", "x", metrics.refused.clone());
        page.register("seconds", "x", metrics.seconds.clone());
        let mut text = String::new();
        encode(&mut text, &page).expect("text");
        text
    }

    #[test]
    fn a_call_is_counted_by_the_status_it_ends_with() {
        let metrics = Metrics::default();
        let meter = Arc::new(metrics.meter("a.S", "M", false));
        for code in [Some(0_i64), Some(0), Some(5), Some(99), Some(-1), None] {
            let mut record = CountedCall::start(Arc::clone(&meter));
            if let Some(code) = code {
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", code.into());
                assert_eq!(record.note(&trailers), Some(code));
            }
        }
        meter.refuse();
        let text = counts(&metrics);
        let labels = "grpc_service=\"a.S\",grpc_method=\"M\",grpc_type=\"unary\"";
        for (code, count) in [("OK", 2), ("NotFound", 1), ("Unknown", 2), ("Canceled", 1)] {
            let line = format!("calls_total{{{labels},grpc_code=\"{code}\"}} {count}");
            assert!(text.contains(&line), "{line}\n{text}");
        }
        assert!(
            text.contains(&format!("refused_total{{{labels}}} 1")),
            "{text}"
        );
        assert!(
            text.contains(&format!("seconds_count{{{labels}}} 6")),
            "{text}"
        );
    }
}
