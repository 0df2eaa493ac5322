//! Reports the state of a collector: once when it begins to fail, and once when it recovers.
//!
//! The libraries log each batch that fails. Their exporters are wrapped here, so that they see no
//! failure.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::Signal;

/// The state of a signal: lost or not.
#[derive(Debug)]
pub(super) struct LossState {
    signal: Signal,
    is_lost: AtomicBool,
}

impl LossState {
    pub(super) const fn new(signal: Signal) -> Self {
        Self {
            signal,
            is_lost: AtomicBool::new(false),
        }
    }

    /// Notes the result of an export.
    pub(super) fn note(&self, sent: Result<(), String>) {
        let signal = tracing::field::display(self.signal.name());
        let was_lost = self.is_lost.swap(sent.is_err(), Ordering::Relaxed);
        match sent {
            Err(error) if !was_lost => tracing::warn!(
                signal,
                %error,
                "the collector of otlp_endpoint takes none of these; they are lost until it does"
            ),
            Ok(()) if was_lost => tracing::info!(signal, "the collector accepts these again"),
            _ => {}
        }
    }
}

/// Sends a signal, and reports failures.
#[derive(Debug)]
pub(super) struct ReportingExporter<E> {
    state: LossState,
    exporter: E,
}

impl<E> ReportingExporter<E> {
    pub(super) const fn new(signal: Signal, exporter: E) -> Self {
        Self {
            state: LossState::new(signal),
            exporter,
        }
    }

    fn note(&self, sent: OTelSdkResult) {
        self.state.note(sent.map_err(|error| error.to_string()));
    }
}

impl<E: SpanExporter> SpanExporter for ReportingExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.note(self.exporter.export(batch).await);
        Ok(())
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

impl<E: LogExporter> LogExporter for ReportingExporter<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        self.note(self.exporter.export(batch).await);
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::super::tests::Logged;
    use super::*;

    #[test]
    fn a_collector_that_fails_is_told_of_when_it_begins_and_when_it_ends() {
        let logged = Logged::default();
        let told = LossState::new(Signal::Logs);
        let here = logged.here();
        let (well, ill) = (|| Ok(()), || Err("gone".to_owned()));
        for sent in [well(), ill(), ill(), ill(), well(), well(), ill()] {
            told.note(sent);
        }
        drop(here);
        assert_eq!(
            logged.told(),
            ["WARN logs gone", "INFO logs", "WARN logs gone"]
        );
    }

    /// Sends nothing, and says how long it was given to end.
    #[derive(Debug)]
    struct Fails;

    impl SpanExporter for Fails {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            Err(OTelSdkError::AlreadyShutdown)
        }

        fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
            Err(OTelSdkError::Timeout(timeout))
        }
    }

    impl LogExporter for Fails {
        async fn export(&self, _: LogBatch<'_>) -> OTelSdkResult {
            Err(OTelSdkError::AlreadyShutdown)
        }

        fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
            Err(OTelSdkError::Timeout(timeout))
        }
    }

    #[tokio::test]
    async fn the_libraries_hear_of_no_failure_but_of_the_end() {
        let logged = Logged::default();
        let here = logged.here();
        let (spans, records) = (
            ReportingExporter::new(Signal::Traces, Fails),
            ReportingExporter::new(Signal::Logs, Fails),
        );
        for _ in 0..2 {
            let sent = SpanExporter::export(&spans, Vec::new()).await;
            sent.expect("no failure");
            let sent = LogExporter::export(&records, LogBatch::new(&[])).await;
            sent.expect("no failure");
        }
        drop(here);
        let told = logged.told();
        let signals: Vec<_> = told
            .iter()
            .map(|told| told.split(' ').nth(1).unwrap_or_default())
            .collect();
        assert_eq!(signals, ["traces", "logs"], "{told:?}");
        let time = Duration::from_secs(5);
        let ended = [
            SpanExporter::shutdown_with_timeout(&spans, time),
            LogExporter::shutdown_with_timeout(&records, time),
        ];
        for ended in ended {
            assert!(
                matches!(ended, Err(OTelSdkError::Timeout(given)) if given == time),
                "{ended:?}"
            );
        }
    }
}
