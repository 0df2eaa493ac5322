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

    fn note(&self, sent: OTelSdkResult) {
        self.told.note(sent.map_err(|error| error.to_string()));
    }
}

impl<E: SpanExporter> SpanExporter for Telling<E> {
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

impl<E: LogExporter> LogExporter for Telling<E> {
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
    use std::fmt::Write as _;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    use super::*;

    /// The levels and the fields of what was logged.
    #[derive(Clone, Default)]
    struct Logged(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Logged {
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

    #[test]
    fn a_collector_that_fails_is_told_of_when_it_begins_and_when_it_ends() {
        let logged = Logged::default();
        let log = tracing_subscriber::registry().with(logged.clone());
        let told = Told::new(Signal::Logs);
        tracing::subscriber::with_default(log, || {
            let (well, ill) = (|| Ok(()), || Err("gone".to_owned()));
            for sent in [well(), ill(), ill(), ill(), well(), well(), ill()] {
                told.note(sent);
            }
        });
        let logged = logged.0.lock().expect("the log").clone();
        assert_eq!(logged, ["WARN logs gone", "INFO logs", "WARN logs gone"]);
    }
}
