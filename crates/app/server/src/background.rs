//! A server that a window started: for whoever has the same data directory, over the socket
//! in it, and no longer than somebody is there.
//!
//! It is the server that `serve` is, without the faces that need a port: those who come speak
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
    /// How many are connected to its socket.
    connected: Arc<watch::Sender<usize>>,
}

impl Background {
    /// Opens the data directory, and serves.
    ///
    /// # Errors
    /// The directory cannot be opened, or takes no socket.
    pub async fn start(settings: Settings, telemetry: &Telemetry) -> Result<Self, StartError> {
        let domain = Domain::open(&settings).await?;
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
        domain.starts(settings.config).await?;
        domain.follow().await;
        let stop = CancellationToken::new();
        let (health, health_service) = tonic_health::server::health_reporter();
        // Nothing here takes writes outside of the store, which has its own say.
        let (writable, _) = watch::channel(true);
        let mode = domain.registry().mode();
        let health = tokio::spawn(health::follow(health, mode, writable, stop.clone()));
        let calls = CallLayer::new(
            (settings.limits.admission(), &settings.limits),
            domain.guards(),
            stop.clone(),
            telemetry.exports(),
        );
        let access = Arc::new(AccessLog::new(settings.access));
        let beside = ServerVitals::new(&domain, settings.data.clone(), access, None);
        let measuring = telemetry.measure(metrics::reader(calls.clone(), &domain, beside));
        let kind = Kind::Background {
            leave: stop.clone(),
        };
        let admin = admin(&settings.data, &domain, &socket, kind);
        let routes = services::routes(&domain).merge(supporting(health_service)?);
        let routes = calls.layer(routes.merge(admin).fallback(unknown));
        let connected = socket.connections();
        let linger = Duration::from_secs(settings.limits.linger_seconds);
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
                // Nobody uses it, or it was told to stop.
                stopped.cancel();
            };
            tokio::join!(serving, stopping);
            let _stopped = health.await;
            let _stopped = keeping.await;
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
        self.connected.send_modify(|_| {});
    }

    /// Returns when it has left: nobody used it, or it was asked to. All is closed then.
    pub async fn left(&mut self) {
        ended((&mut self.running).await);
    }

    /// Stops. Returns when all is closed.
    pub async fn stop(self) {
        self.stop.cancel();
        ended(self.running.await);
    }
}

fn ended(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the server did not stop in time");
    }
}
