//! The destination of telemetry, and its signals.

use std::time::Duration;

use serde::Deserialize;

/// A signal that can be sent to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// The spans of calls.
    Traces,
    /// The metrics of `/metrics`.
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

/// A collector, and the signals that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otlp {
    /// Its address, such as `http://localhost:4317`.
    pub endpoint: String,
    /// The signals that go there.
    pub signals: Vec<Signal>,
    /// The interval of metrics.
    pub interval: Duration,
}

impl Otlp {
    /// The default signals: all of them, as other programs that read
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` send. A collector that does not take a signal refuses it,
    /// which is reported once.
    pub const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];
    /// The default interval of metrics, that of OpenTelemetry.
    pub const INTERVAL: Duration = Duration::from_secs(60);

    /// It gets this signal.
    #[must_use]
    pub fn sends(&self, signal: Signal) -> bool {
        self.signals.contains(&signal)
    }
}
