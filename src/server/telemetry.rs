//! Logs on stderr, and spans to a collector where one is named.

use std::borrow::Cow;
use std::io::IsTerminal as _;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::Deserialize;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for a person.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// What was set up; dropped or shut down at the end, so that the last spans leave.
#[derive(Debug, Default)]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sets up logs at `filter` (such as `info` or `repertoire=debug`) and, where
    /// an OTLP endpoint is named, spans to it.
    ///
    /// # Errors
    /// The filter cannot be read, or the endpoint is no address.
    pub fn start(filter: &str, format: LogFormat, endpoint: Option<&str>) -> Result<Self, String> {
        let filter = EnvFilter::try_new(quiet(filter))
            .map_err(|error| format!("the log filter: {error}"))?;
        let provider = endpoint.map(provider).transpose()?;
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let log = match format {
            LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).boxed(),
            LogFormat::Json => log.json().boxed(),
        };
        let export = provider
            .as_ref()
            .map(|provider| {
                tracing_opentelemetry::layer().with_tracer(provider.tracer("repertoire"))
            })
            // Of our own spans only: those of the exporter would export themselves.
            .map(|layer| {
                layer.with_filter(
                    tracing_subscriber::filter::Targets::new()
                        .with_target("repertoire", tracing::Level::INFO),
                )
            });
        tracing_subscriber::registry()
            .with(export)
            .with(log.with_filter(filter))
            .try_init()
            .map_err(|error| format!("the log: {error}"))?;
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        Ok(Self { provider })
    }

    /// Spans leave the process.
    #[must_use]
    pub fn exports(&self) -> bool {
        self.provider.is_some()
    }

    /// Sends the spans that wait. Blocks for some seconds at most.
    pub fn stop(self) {
        if let Some(Err(error)) = self.provider.map(|provider| provider.shutdown()) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// At `info`, rmcp tells of the beginning and the end of each request: that is for
/// whoever asks for `rmcp=info`.
fn quiet(filter: &str) -> Cow<'_, str> {
    if filter.split(',').any(|part| part.trim() == "info") {
        return format!("rmcp=warn,{filter}").into();
    }
    filter.into()
}

fn provider(endpoint: &str) -> Result<SdkTracerProvider, String> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .map_err(|error| format!("the OTLP endpoint '{endpoint}': {error}"))?;
    let resource = Resource::builder().with_service_name("repertoire").build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_as_loud_as_it_was_asked_to_be() {
        let filter = |text: &str| {
            let filter = EnvFilter::try_new(quiet(text)).expect("a filter");
            filter.to_string()
        };
        assert_eq!(filter("info"), "rmcp=warn,info");
        assert_eq!(filter("info,rmcp=debug"), "rmcp=debug,info");
        for asked in ["debug", "error", "rmcp=info"] {
            assert_eq!(filter(asked), asked);
        }
    }
}
