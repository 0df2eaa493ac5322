//! The answers to health checks.
//!
//! A server whose store takes no writes goes on reading. The whole server and
//! `Registry` are `NOT_SERVING` then, so that its operator notices; the other services stay
//! `SERVING`, for clients that would rather have reads than nothing.

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::HealthReporter;

use super::Domain;
use super::services::offered;
use contract::v1;
use store::Mode;

/// The server as a whole, as health checks name it.
const WHOLE: &str = "";
/// The services that are of no use without writes.
const WRITING: [&str; 2] = [WHOLE, v1::registry_server::SERVICE_NAME];

async fn set<S: AsRef<str>>(reporter: &HealthReporter, services: &[S], serving: bool) {
    let status = if serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    };
    for service in services {
        reporter.set_service_status(service, status).await;
    }
}

/// Starts the health service: itself, whether writes are taken, and the task that keeps it up
/// to date until the server stops.
pub(super) fn start(
    domain: &Domain,
    stop: &CancellationToken,
) -> (
    HealthServer<impl Health>,
    watch::Receiver<bool>,
    JoinHandle<()>,
) {
    let (reporter, service) = tonic_health::server::health_reporter();
    let (writable, takes_writes) = watch::channel(true);
    let mode = domain.registry().mode();
    let following = tokio::spawn(follow(reporter, mode, writable, stop.clone()));
    (service, takes_writes, following)
}

/// Reports the store's mode until the server stops, then that it does.
async fn follow(
    reporter: HealthReporter,
    mut mode: watch::Receiver<Mode>,
    writable: watch::Sender<bool>,
    stop: CancellationToken,
) {
    let offered = offered();
    set(&reporter, &offered, true).await;
    let following = async {
        loop {
            let takes_writes = *mode.borrow_and_update() == Mode::ReadWrite;
            writable.send_replace(takes_writes);
            set(&reporter, &WRITING, takes_writes).await;
            if mode.changed().await.is_err() {
                // The store is gone, and its last mode remains: only `stop` ends this.
                return std::future::pending().await;
            }
        }
    };
    stop.run_until_cancelled(following).await;
    set(&reporter, &offered, false).await;
    set(&reporter, &WRITING, false).await;
}
