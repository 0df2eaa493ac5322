//! Where telemetry goes, and what of it.

use std::time::Duration;

use serde::Deserialize;

/// What there is to send to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// The spans of calls.
    Traces,
    /// What `/metrics` shows.
    Metrics,
    /// The records of the log.
    Logs,
}

impl Signal {
    /// Its name in settings and in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }
}

/// A collector, and what it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otlp {
    /// Its address, such as `http://localhost:4317`.
    pub endpoint: String,
    /// What goes there.
    pub signals: Vec<Signal>,
    /// How often metrics do.
    pub interval: Duration,
}

impl Otlp {
    /// What is sent where nobody says: everything. Who names a collector to other programs by
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` gets that from them; one that does not take a signal
    /// refuses it, which is told once.
    pub const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];
    /// How often metrics are sent where nobody says: as OpenTelemetry has it.
    pub const INTERVAL: Duration = Duration::from_secs(60);

    /// It gets this signal.
    #[must_use]
    pub fn sends(&self, signal: Signal) -> bool {
        self.signals.contains(&signal)
    }
}
