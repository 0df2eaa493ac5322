//! Spans, metrics and logs to a collector, over one connection.
//!
//! No call waits for anything here: spans and records of the log wait in bounded queues for a
//! thread of their own, and a task reads metrics. What exceeds a queue is lost.

mod metrics;
mod openmetrics;
mod reporting_exporter;
#[cfg(test)]
mod tests;

use std::env;
use std::error::Error;
use std::thread;
use std::time::Duration;

use http::HeaderMap;
use opentelemetry::KeyValue;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{LogExporter, SpanExporter, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use super::{Otlp, Signal};
use metrics::Metrics;
use reporting_exporter::ReportingExporter;

pub(super) use metrics::Reader;

/// How long the last spans, metrics and records may take, all at once.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a collector may take to answer, where `OTEL_EXPORTER_OTLP_TIMEOUT` does not say.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Crates whose records stay in the text log, each with those whose names begin alike: they send
/// records, so they would log and send that without end. Ours report the collector's failures.
const SENDERS: [&str; 9] = [
    "h2",
    "hyper",
    "opentelemetry",
    "repertoire_telemetry",
    "rustls",
    "tokio",
    "tonic",
    "tower",
    "tracing_opentelemetry",
];

/// Sends telemetry.
#[derive(Debug)]
pub(super) struct Exporter {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
    metrics: Option<Metrics>,
}

impl Exporter {
    /// Sends to a collector. Connects when there is something to send.
    ///
    /// # Errors
    /// The endpoint is no address.
    pub(super) fn new(otlp: &Otlp) -> Result<Self, String> {
        let wrong = |error: &dyn Error| {
            let cause = error.source().map(|cause| format!(": {cause}"));
            let cause = cause.unwrap_or_default();
            format!("the OTLP endpoint '{}': {error}{cause}", otlp.endpoint)
        };
        let channel = channel(&otlp.endpoint).map_err(|error| wrong(&error))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder()
            .with_service_name("repertoire")
            .with_attribute(version)
            .build();
        let (mut traces, mut logs, mut metrics) = (None, None, None);
        if otlp.sends(Signal::Traces) {
            let exporter = SpanExporter::builder().with_tonic();
            let exporter = exporter.with_channel(channel.clone()).build();
            let exporter = exporter.map_err(|error| wrong(&error))?;
            opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
            let provider = SdkTracerProvider::builder()
                .with_batch_exporter(ReportingExporter::new(Signal::Traces, exporter))
                .with_resource(resource.clone());
            traces = Some(provider.build());
        }
        if otlp.sends(Signal::Logs) {
            let exporter = LogExporter::builder().with_tonic();
            let exporter = exporter.with_channel(channel.clone()).build();
            let exporter = exporter.map_err(|error| wrong(&error))?;
            let provider = SdkLoggerProvider::builder()
                .with_batch_exporter(ReportingExporter::new(Signal::Logs, exporter))
                .with_resource(resource.clone());
            logs = Some(provider.build());
        }
        if otlp.sends(Signal::Metrics) {
            metrics = Some(Metrics::new(channel, &resource, otlp.interval));
        }
        Ok(Self {
            traces,
            logs,
            metrics,
        })
    }

    /// Spans are sent.
    pub(super) fn traces(&self) -> bool {
        self.traces.is_some()
    }

    /// Takes the spans that are sent: our own only, those of the senders would send themselves.
    pub(super) fn spans<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let tracer = self.traces.as_ref()?.tracer("repertoire");
        let own = Targets::new().with_target("repertoire", tracing::Level::INFO);
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        Some(layer.with_filter(own))
    }

    /// Takes the records of the log that are sent: [`is_sent`] says which.
    pub(super) fn records<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        self.logs.as_ref().map(OpenTelemetryTracingBridge::new)
    }

    /// Reads metrics until the reader ends.
    pub(super) fn measure<R>(&self, read: R) -> Option<Reader>
    where
        R: Fn() -> Result<String, std::fmt::Error> + Send + Sync + 'static,
    {
        Some(self.metrics.as_ref()?.measure(read))
    }

    /// Sends the records that wait. Blocks for [`FLUSH_TIMEOUT`] at most.
    pub(super) fn stop(self) {
        let Self {
            traces,
            logs,
            metrics,
        } = self;
        let report = |signal: Signal, sent: OTelSdkResult| {
            if let Err(error) = sent {
                let signal = signal.name();
                tracing::warn!(%signal, %error, "the remaining telemetry was not sent to the collector");
            }
        };
        // At once: the wait for one must not use up the time of another.
        thread::scope(|scope| {
            if let Some(traces) = traces {
                scope.spawn(move || {
                    report(Signal::Traces, traces.shutdown_with_timeout(FLUSH_TIMEOUT));
                });
            }
            if let Some(logs) = logs {
                scope
                    .spawn(move || report(Signal::Logs, logs.shutdown_with_timeout(FLUSH_TIMEOUT)));
            }
            if let Some(metrics) = metrics {
                report(Signal::Metrics, metrics.stop(FLUSH_TIMEOUT));
            }
        });
    }
}

/// A record of the log goes to the collector, too.
pub(super) fn is_sent(record: &Metadata<'_>) -> bool {
    let target = record.target();
    !SENDERS.iter().any(|sender| target.starts_with(sender))
}

/// A connection that is made when it is needed, and again when it was lost. A collector that
/// does not answer has no more than the timeout, and one that cannot be reached neither.
fn channel(endpoint: &str) -> Result<Channel, tonic::transport::Error> {
    let millis = env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok();
    let millis = millis.and_then(|millis| millis.parse().ok());
    let timeout = millis.map_or(TIMEOUT, Duration::from_millis);
    let mut to = Endpoint::from_shared(endpoint.to_owned())?
        .timeout(timeout)
        .connect_timeout(timeout);
    if endpoint.starts_with("https://") {
        to = to.tls_config(ClientTlsConfig::new().with_native_roots())?;
    }
    Ok(to.connect_lazy())
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

/// Makes the span of a call a child of the one that its caller names.
pub fn set_parent(span: &Span, headers: &HeaderMap) {
    let parent = opentelemetry::global::get_text_map_propagator(|p| p.extract(&Headers(headers)));
    // An error means that the span is not recorded: then it needs no parent.
    let _unrecorded = span.set_parent(parent);
}
