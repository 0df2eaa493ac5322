//! What health checks are told.
//!
//! A server whose store takes no writes goes on reading. The whole server and
//! `Registry` are `NOT_SERVING` then, so that whoever looks after it notices; the other
//! services stay `SERVING`, for those who would rather have reads than nothing.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::services::offered;
use contract::v1;
use store::Mode;

/// The server as a whole, as health checks name it.
const WHOLE: &str = "";
/// Services that are of no use without writes.
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

/// Says what the store's mode means, until the server stops; then that it does.
pub(super) async fn follow(
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
                return std::future::pending().await;
            }
        }
    };
    stop.run_until_cancelled(following).await;
    set(&reporter, &offered, false).await;
    set(&reporter, &WRITING, false).await;
}
