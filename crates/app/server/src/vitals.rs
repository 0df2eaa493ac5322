//! Metrics of the process and its disk, by the names that other servers use.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Domain;
use super::metrics::Labels;
use ::tools::Tools;
use ::vitals::Vitals;
use access_log::AccessLog;
use tls::Tls;

/// How long a measured size of the store is used: measuring reads the metadata of all its
/// files.
const STORE_SIZE_TTL: Duration = Duration::from_secs(30);

/// The metrics in addition to those of calls: the process and its disk, sessions, answers over
/// HTTP.
#[derive(Debug)]
pub(super) struct ServerVitals {
    disk: Disk,
    tools: Tools,
    access: Arc<AccessLog>,
    tls: Option<Tls>,
}

impl ServerVitals {
    pub(super) fn new(
        domain: &Domain,
        directory: PathBuf,
        access: Arc<AccessLog>,
        tls: Option<Tls>,
    ) -> Self {
        Self {
            disk: Disk {
                directory,
                measured: Mutex::default(),
            },
            tools: domain.tools.clone(),
            access,
            tls,
        }
    }

    /// Registers them. Blocks.
    pub(super) fn register(&self, page: &mut Registry) {
        let sessions = i64::try_from(self.tools.sessions()).unwrap_or(i64::MAX);
        page.register(
            "repertoire_tool_sessions",
            "Sessions of loaded skills that are open, over any face",
            ConstGauge::new(sessions),
        );
        let responses = Family::<Labels, Counter>::default();
        for (class, count) in self.access.responses() {
            let labels = vec![("class", class)];
            responses.get_or_create_owned(&labels).inc_by(count);
        }
        page.register(
            "repertoire_http_responses",
            "Answers over HTTP by the class of their status: REST, MCP, pages, gRPC-Web",
            responses,
        );
        if let Some(tls) = &self.tls {
            for (name, help, value) in tls.gauges() {
                page.register(name, help, ConstGauge::new(value));
            }
            let help = "Failed TLS handshakes";
            let failed = ConstCounter::new(tls.failed_handshakes());
            page.register("repertoire_tls_handshakes_failed", help, failed);
        }
        self.disk.register(page);
    }
}

/// The disk of a data directory.
#[derive(Debug)]
struct Disk {
    directory: PathBuf,
    measured: Mutex<Option<(Instant, u64)>>,
}

impl Disk {
    /// Bytes of the store. Blocks.
    fn store_bytes(&self) -> Option<u64> {
        // Held while it is measured: scrapes that come together measure once.
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        match *measured {
            Some((at, bytes)) if at.elapsed() < STORE_SIZE_TTL => Some(bytes),
            _ => {
                let bytes = store::bytes_on_disk(&self.directory).ok()?;
                *measured = Some((Instant::now(), bytes));
                Some(bytes)
            }
        }
    }

    /// Registers the figures of process and disk. What the system does not report is left out.
    /// Blocks.
    fn register(&self, page: &mut Registry) {
        let vitals = Vitals::read();
        if let Some(seconds) = vitals.cpu_seconds {
            let help = "Processor time of this process, user and system";
            page.register("process_cpu_seconds", help, ConstCounter::new(seconds));
        }
        if let Some(start) = vitals.start_seconds {
            let help = "When this process was started, in seconds since 1970";
            page.register("process_start_time_seconds", help, ConstGauge::new(start));
        }
        let gauges = [
            (
                "repertoire_store_bytes",
                "Bytes of the store in the data directory, at most 30 seconds old",
                self.store_bytes(),
            ),
            (
                "repertoire_disk_free_bytes",
                "Bytes that the disk of the data directory has free",
                store::free_bytes(&self.directory),
            ),
        ];
        for (name, help, value) in vitals.gauges().into_iter().chain(gauges) {
            if let Some(value) = value {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                page.register(name, help, ConstGauge::new(value));
            }
        }
    }
}
