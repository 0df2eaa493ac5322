//! Says how a collector does: once when it begins to fail, and once when it takes things again.
//!
//! The libraries say it with each batch. What they send with is wrapped so that they hear of no
//! failure.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::Signal;

/// Whether a signal is lost.
#[derive(Debug)]
pub(super) struct Told {
    signal: Signal,
    is_lost: AtomicBool,
}

impl Told {
    pub(super) const fn new(signal: Signal) -> Self {
        Self {
            signal,
            is_lost: AtomicBool::new(false),
        }
    }

    /// Notes what became of an export.
    pub(super) fn note(&self, sent: Result<(), String>) {
        let signal = tracing::field::display(self.signal.name());
        let was_lost = self.is_lost.swap(sent.is_err(), Ordering::Relaxed);
        match sent {
            Err(error) if !was_lost => tracing::warn!(
                signal,
                %error,
                "the collector of otlp_endpoint takes none of these; they are lost until it does"
            ),
            Ok(()) if was_lost => tracing::info!(signal, "the collector takes these again"),
            _ => {}
        }
    }
}

/// What sends a signal, and says how that goes.
#[derive(Debug)]
pub(super) struct Telling<E> {
    told: Told,
    exporter: E,
}

impl<E> Telling<E> {
    pub(super) const fn new(signal: Signal, exporter: E) -> Self {
        Self {
            told: Told::new(signal),
            exporter,
        }
    }

    fn note(&self, sent: OTelSdkResult) -> OTelSdkResult {
        self.told.note(sent.map_err(|error| error.to_string()));
        Ok(())
    }
}

impl<E: SpanExporter> SpanExporter for Telling<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.note(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for Telling<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        self.note(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
