//! Logs to stderr or a file; and spans, metrics and logs to a collector where one is named.
//!
//! Rules:
//!
//! * A record of the text log is one line, whatever callers, skills and workers put
//!   into its fields: each field is escaped.
//! * Only the server's own spans are exported, and only from `info` up. Of the records of the
//!   log all are, but those of the crates that export.
//! * Metrics are read from a page of OpenMetrics, which other crates fill, and sent as they
//!   are.
//! * Whatever a collector does, no call and no write waits for it. The log has a record when it
//!   begins to fail, and one when that ends.
//! * A log file never exceeds its limit: it is rotated.
//!
//! Without the feature `otlp` there is no exporter, and a setting that wants one is refused.
//!
//! Not here: the metrics themselves (`server`), the access log (`access_log`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod log_file;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "without.rs"]
mod otlp;
mod settings;

use std::borrow::Cow;
use std::io::IsTerminal as _;

use serde::Deserialize;
use tracing::level_filters::LevelFilter;
use tracing_log::{AsLog as _, LogTracer};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::fmt::format::{self, FormatFields};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, reload};

use model::printable;
use otlp::{Exporter, Reader};

pub use log_file::LogFile;
pub use otlp::set_parent;
pub use settings::{Otlp, Signal};

/// Crates whose records are dropped at every level. They free memory when a thread ends,
/// and log what they free: by then the filters' thread-locals may be gone, and the panic
/// of that ends the process.
const SILENT: [&str; 3] = ["crossbeam_epoch", "crossbeam_utils", "sled"];

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for a person.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

impl LogFormat {
    /// Its name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// The telemetry that was set up; dropped or shut down at the end, so that the last records leave.
#[derive(Default)]
pub struct Telemetry {
    exporter: Option<Exporter>,
    /// None: nothing is logged.
    set_filter: Option<Box<SetFilter>>,
}

type SetFilter = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry")
            .field("exporter", &self.exporter)
            .finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Sets up logs at `filter` (such as `info` or `repertoire=debug`) and, where a
    /// collector is named, what goes there. Within a runtime.
    ///
    /// # Errors
    /// The filter cannot be read, or the endpoint is no address.
    pub fn start(filter: &str, format: LogFormat, otlp: Option<&Otlp>) -> Result<Self, String> {
        let colours = std::io::stderr().is_terminal();
        Self::start_to(
            BoxMakeWriter::new(std::io::stderr),
            colours,
            filter,
            format,
            otlp,
        )
    }

    /// Does the same for a server without a terminal, whose log is a file.
    ///
    /// # Errors
    /// As [`Telemetry::start`].
    pub fn start_in(
        log: LogFile,
        filter: &str,
        format: LogFormat,
        otlp: Option<&Otlp>,
    ) -> Result<Self, String> {
        let writer = BoxMakeWriter::new(move || log.clone());
        Self::start_to(writer, false, filter, format, otlp)
    }

    fn start_to(
        writer: BoxMakeWriter,
        colours: bool,
        filter: &str,
        format: LogFormat,
        otlp: Option<&Otlp>,
    ) -> Result<Self, String> {
        let (here, set_here) = reload::Layer::new(self::filter(filter)?);
        // A filter belongs to one layer, so the collector's needs its own.
        let (there, set_there) = reload::Layer::new(self::filter(filter)?);
        let exporter = otlp.map(exporter).transpose()?;
        let log = tracing_subscriber::fmt::layer().with_writer(writer);
        let log = match format {
            LogFormat::Text => log.fmt_fields(fields()).with_ansi(colours).boxed(),
            LogFormat::Json => log.json().boxed(),
        };
        let spans = exporter.as_ref().and_then(Exporter::spans);
        let records = exporter.as_ref().and_then(Exporter::records);
        let set_there = records.is_some().then_some(set_there);
        let subscriber = tracing_subscriber::registry()
            .with(spans)
            .with(log.with_filter(here))
            // Within the span, whose ids a record gets; and the last, since a full queue is
            // reported by a record within it.
            .with(records.map(|it| it.with_filter(there.and(filter_fn(otlp::is_sent)))));
        tracing::subscriber::set_global_default(subscriber)
            .map_err(|error| format!("the log: {error}"))?;
        // Instead of `try_init`, which takes the records of every crate.
        LogTracer::builder()
            .ignore_all(SILENT)
            .with_max_level(LevelFilter::current().as_log())
            .init()
            .map_err(|error| format!("the log: {error}"))?;
        let set_filter = move |filter: &str| {
            let set = |error: reload::Error| format!("the log: {error}");
            set_here.reload(self::filter(filter)?).map_err(set)?;
            if let Some(set_there) = &set_there {
                set_there.reload(self::filter(filter)?).map_err(set)?;
            }
            // The `log` crate has a level of its own, which was that of the filter before.
            tracing_log::log::set_max_level(LevelFilter::current().as_log());
            Ok(())
        };
        Ok(Self {
            exporter,
            set_filter: Some(Box::new(set_filter)),
        })
    }

    /// Changes the filter of the log, such as `info` or `warn,repertoire=debug`.
    ///
    /// # Errors
    /// It is no filter; the old one stays.
    pub fn set_filter(&self, filter: &str) -> Result<(), String> {
        self.set_filter.as_ref().map_or(Ok(()), |set| set(filter))
    }

    /// Spans leave the process.
    #[must_use]
    pub fn exports(&self) -> bool {
        self.exporter.as_ref().is_some_and(Exporter::traces)
    }

    /// Sends metrics, where there is a collector: the page of OpenMetrics that `read` returns.
    /// `read` blocks, and is dropped when this ends. Within a runtime.
    pub fn measure<R>(&self, read: R) -> Measuring
    where
        R: Fn() -> Result<String, std::fmt::Error> + Send + Sync + 'static,
    {
        let exporter = self.exporter.as_ref();
        Measuring(exporter.and_then(|exporter| exporter.measure(read)))
    }

    /// Sends the records that wait. Blocks for some seconds at most.
    pub fn stop(self) {
        if let Some(exporter) = self.exporter {
            exporter.stop();
        }
    }
}

/// Metrics that are sent until this ends.
#[derive(Debug)]
#[must_use = "what is measured is held until it ends"]
pub struct Measuring(Option<Reader>);

impl Measuring {
    /// Reads once more, for a second at most, and drops the reader.
    pub async fn end(self) {
        if let Some(reader) = self.0 {
            reader.end().await;
        }
    }
}

/// Fields as `name=value`, each escaped to one line without control characters.
fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    format::debug_fn(|writer, field, value| {
        let value = format!("{value:?}");
        let value = printable(&value);
        match field.name() {
            "message" => writer.write_str(&value),
            name => write!(writer, "{name}={value}"),
        }
    })
    .delimited(" ")
}

/// Silences noisy crates. At `info`, rmcp logs the beginning and the end of each request, and the
/// solver every choice: they take `rmcp=info` and `pubgrub=info`. tantivy warns where a merge
/// ends whose segments were emptied meanwhile, which is no fault; we report errors of the index.
/// opentelemetry-otlp warns with every batch that a collector refuses, which we report once.
fn quiet(filter: &str) -> Cow<'_, str> {
    let asks = |level: &str| filter.split(',').any(|part| part.trim() == level);
    if asks("info") {
        return format!("rmcp=warn,pubgrub=warn,tantivy=error,opentelemetry-otlp=error,{filter}")
            .into();
    }
    if asks("warn") {
        return format!("tantivy=error,opentelemetry-otlp=error,{filter}").into();
    }
    filter.into()
}

/// Parses the filter of the log.
///
/// # Errors
/// It is no filter.
pub fn filter(filter: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(quiet(filter)).map_err(|_| {
        format!("`{filter}` is no log filter; write a level, such as info, or levels by target, such as warn,repertoire=debug")
    })
}

/// Checks that an endpoint says whether it has TLS.
///
/// # Errors
/// It does not.
pub fn endpoint(endpoint: &str) -> Result<(), String> {
    if endpoint.starts_with("http://") || endpoint.starts_with("https://") {
        return Ok(());
    }
    Err(format!(
        "the OTLP endpoint '{endpoint}' begins with neither http:// nor https://"
    ))
}

fn exporter(otlp: &Otlp) -> Result<Exporter, String> {
    endpoint(&otlp.endpoint)?;
    Exporter::new(otlp)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What was written, as one who reads the log gets it.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("the log").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// It sets up the log of this process: no other test may.
    #[test]
    fn what_is_logged_changes_while_the_process_runs() {
        let written = Written::default();
        let writer = written.clone();
        let writer = BoxMakeWriter::new(move || writer.clone());
        let telemetry = Telemetry::start_to(writer, false, "warn", LogFormat::Text, None);
        let telemetry = telemetry.expect("a log");
        let say = |what: &str| {
            tracing::info!("{what} by us");
            tracing_log::log::info!("{what} by a crate");
            tracing_log::log::error!(target: "sled::tree", "{what} by a silent one");
        };
        say("before");
        telemetry.set_filter("info").expect("a filter");
        say("then");
        telemetry.set_filter("in=fo=x").expect_err("no filter");
        say("still");
        telemetry.set_filter("error").expect("a filter");
        say("after");
        let text = String::from_utf8(written.0.lock().expect("the log").clone()).expect("text");
        let said = text.lines().filter_map(|line| line.rsplit_once(": "));
        // What a crate says by `log` goes on with where it says it.
        let said = said.map(|(_, said)| said.split(" log.").next().unwrap_or_default());
        let said: Vec<_> = said.collect();
        let expected = [
            "then by us",
            "then by a crate",
            "still by us",
            "still by a crate",
        ];
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn a_record_is_one_line_whatever_is_in_its_fields() {
        const FORGED: &str =
            "x\n2026-11-23T00:00:00Z  INFO repertoire::audit: fake\r\u{1b}[2J\u{202e}\u{85}";
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt::layer()
            .fmt_fields(fields())
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log), || {
            let span = tracing::info_span!("rpc", method = %FORGED, worker = FORGED);
            span.in_scope(|| {
                tracing::info!(tool = %FORGED, name = FORGED, path = ?std::path::Path::new(FORGED), "called {FORGED}");
                tracing::warn!(error = &std::io::Error::other(FORGED) as &dyn std::error::Error, n = 1);
            });
        });
        let text = String::from_utf8(written.0.lock().expect("the log").clone()).expect("text");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            !text
                .replace('\n', "")
                .chars()
                .any(|c| c.is_control() || c == '\u{202e}'),
            "{text:?}"
        );
        let [first, second] = lines.as_slice() else {
            return;
        };
        assert!(
            first.contains(r"called x\n2026") && first.contains(r" tool=x\n2026"),
            "{first}"
        );
        assert!(
            second.contains(r" error=x\n2026") || second.contains(r":error=x\n2026"),
            "{second}"
        );
        assert!(second.ends_with("n=1"), "{second}");
    }

    #[test]
    fn an_endpoint_says_whether_it_has_tls() {
        let otlp = Otlp {
            endpoint: "localhost:4317".to_owned(),
            signals: Otlp::SIGNALS.to_vec(),
            interval: Otlp::INTERVAL,
        };
        let error = exporter(&otlp).expect_err("refused");
        let expected =
            "the OTLP endpoint 'localhost:4317' begins with neither http:// nor https://";
        assert_eq!(error, expected);
        for said in ["http://localhost:4317", "https://localhost:4317"] {
            assert_eq!(endpoint(said), Ok(()));
        }
    }

    #[test]
    fn a_library_is_as_loud_as_it_was_asked_to_be() {
        let filter = |text: &str| {
            let filter = EnvFilter::try_new(quiet(text)).expect("a filter");
            filter.to_string()
        };
        assert_eq!(
            filter("info"),
            "opentelemetry-otlp=error,tantivy=error,pubgrub=warn,rmcp=warn,info"
        );
        assert_eq!(
            filter("info,rmcp=debug"),
            "opentelemetry-otlp=error,tantivy=error,pubgrub=warn,rmcp=debug,info"
        );
        assert_eq!(
            filter("warn"),
            "opentelemetry-otlp=error,tantivy=error,warn"
        );
        for asked in ["debug", "error", "rmcp=info"] {
            assert_eq!(filter(asked), asked);
        }
        assert_eq!(
            quiet("rmcp=debug, info"),
            "rmcp=warn,pubgrub=warn,tantivy=error,opentelemetry-otlp=error,rmcp=debug, info"
        );
    }
}
