//! Spans to a collector.

use http::HeaderMap;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tonic::transport::ClientTlsConfig;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

/// Sends spans.
#[derive(Debug)]
pub(super) struct Exporter(SdkTracerProvider);

impl Exporter {
    /// What sends spans to an endpoint.
    ///
    /// # Errors
    /// The endpoint is no address.
    pub(super) fn new(endpoint: &str) -> Result<Self, String> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_tls_config(ClientTlsConfig::new().with_native_roots())
            .build()
            .map_err(|error| format!("the OTLP endpoint '{endpoint}': {error}"))?;
        let resource = Resource::builder().with_service_name("repertoire").build();
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        Ok(Self(
            SdkTracerProvider::builder()
                .with_batch_exporter(exporter)
                .with_resource(resource)
                .build(),
        ))
    }

    /// Takes the spans that it sends.
    pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("repertoire"))
    }

    /// Sends the spans that wait. Blocks for some seconds at most.
    pub(super) fn stop(self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
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

/// The span of a call belongs to the one that its caller names.
pub fn set_parent(span: &Span, headers: &HeaderMap) {
    let parent = opentelemetry::global::get_text_map_propagator(|p| p.extract(&Headers(headers)));
    // An error means that the span is not recorded: then it needs no parent.
    let _unrecorded = span.set_parent(parent);
}
