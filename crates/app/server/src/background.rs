//! A server that a window started: for everything that has the same data directory, over the
//! socket in it, and no longer than something is connected.
//!
//! It is the server that `serve` is, without the faces that need a port: its clients speak
//! gRPC, and have the faces in their own process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

use super::calls::CallLayer;
use super::local::LocalSocket;
use super::{
    CALLS_STOP_TIMEOUT, Domain, ServerVitals, Settings, StartError, Telemetry,
    WORKERS_STOP_TIMEOUT, admin, health, keep, metrics, services, supporting, unknown,
};
use access_log::AccessLog;
use grpc::admin::Kind;

/// A server on the socket of a data directory alone.
#[derive(Debug)]
pub struct Background {
    stop: CancellationToken,
    running: JoinHandle<()>,
    /// The number of connections to its socket.
    connected: Arc<watch::Sender<usize>>,
}

impl Background {
    /// Opens the data directory, and serves.
    ///
    /// # Errors
    /// The directory cannot be opened, or takes no socket.
    pub async fn start(settings: Settings, telemetry: &Telemetry) -> Result<Self, StartError> {
        let domain = Domain::open(&settings).await?;
        // After the lock of the directory is held: whoever has it replaces an old socket.
        let socket = match LocalSocket::bind(&settings.data) {
            Ok(socket) => socket,
            Err(cause) => {
                domain.close().await;
                return Err(StartError::Socket {
                    directory: settings.data,
                    cause,
                });
            }
        };
        domain.starts(settings.config.digest).await?;
        domain.follow().await;
        let stop = CancellationToken::new();
        // REST alone asks whether writes are taken, and there is none here.
        let (health_service, _, health) = health::start(&domain, &stop);
        let calls = CallLayer::new(
            (settings.config.limits.admission(), &settings.config.limits),
            domain.guards(),
            stop.clone(),
            telemetry.exports(),
        );
        let access = Arc::new(AccessLog::new(settings.access_log));
        let vitals = ServerVitals::new(&domain, settings.data.clone(), access, None);
        let measuring = telemetry.measure(metrics::reader(calls.clone(), &domain, vitals));
        let kind = Kind::Background {
            leave: stop.clone(),
        };
        let admin = admin(&settings.data, &domain, &socket, kind);
        let routes = services::routes(&domain).merge(supporting(health_service)?);
        let routes = calls.layer(routes.merge(admin).fallback(unknown));
        let connected = socket.connections();
        let linger = Duration::from_secs(settings.config.limits.linger_seconds);
        let serving = socket.serve(routes, stop.clone(), CALLS_STOP_TIMEOUT, Some(linger));
        let (counting, keeping) = keep(&domain, &stop);
        let (stopped, host) = (stop.clone(), domain.host().clone());
        let running = tokio::spawn(async move {
            let stopping = async {
                stopped.cancelled().await;
                host.stop(WORKERS_STOP_TIMEOUT);
            };
            let serving = async {
                serving.await;
                // It ended by itself, unused: the other tasks stop as they would by a signal.
                stopped.cancel();
            };
            tokio::join!(serving, stopping);
            let _stopped = health.await;
            let _stopped = keeping.await;
            // Before the domain closes, which it still reads.
            measuring.end().await;
            domain.close().await;
            let _stopped = counting.await;
        });
        Ok(Self {
            stop,
            running,
            connected,
        })
    }

    /// Leaves without the time that a window has for its first connection, unless one is there.
    pub fn leave_when_unused(&self) {
        // A change of the count, even to the same, has the socket check whether it is used.
        self.connected.send_modify(|_| {});
    }

    /// Returns when it has left, unused or on request. All is closed then.
    pub async fn left(&mut self) {
        ended((&mut self.running).await);
    }

    /// Stops. Returns when all is closed.
    pub async fn stop(self) {
        self.stop.cancel();
        ended(self.running.await);
    }
}

/// Logs a server that panicked while it stopped.
pub(super) fn ended(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the server failed while it stopped");
    }
}
