//! `repertoire.v1.Admin`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::Extensions;
use jiff::Timestamp;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response};

use super::convert::time;
use contract::handlers::{self, Answer, Messages, View};
use contract::status;
use contract::v1::{
    BackupRequest, BackupResponse, CompactOutcome, CompactRequest, CompactResponse,
    GetStatusRequest, GetStatusResponse, LeaveRequest, LeaveResponse,
};
use executor::{Stop, with_deadline};
use model::{Code, Failure};
use registry::{Compacted, Error, Registry};

/// Bytes of a piece of a backup.
const CHUNK_BYTES: u64 = 64 * 1024;
/// Pause between two messages of a compaction.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How long a backup or a compaction may take: for as long as its caller waits.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How a server was started.
#[derive(Debug, Clone)]
pub enum Kind {
    /// By an operator, to serve.
    Serve {
        /// The address that it listens on.
        url: String,
    },
    /// By a window; it runs for as long as it is used.
    Background {
        /// Cancelled to stop the server.
        leave: CancellationToken,
    },
}

/// The `Admin` service.
#[derive(Debug, Clone)]
pub struct AdminService {
    /// The data directory, as an absolute path.
    pub directory: PathBuf,
    /// How the server was started.
    pub kind: Kind,
    /// When it was started.
    pub started_at: Timestamp,
    /// The registry that it serves.
    pub registry: Registry,
    /// The number of connections to the local socket.
    pub connected: watch::Receiver<usize>,
}

impl AdminService {
    /// Runs one backup or compaction at a time, for as long as its caller waits.
    async fn maintain<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Registry, &Stop) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let registry = self.registry.clone();
        let work = move |stop: &Stop| work(&registry, stop);
        let work = self
            .registry
            .executor()
            .run_fallible(executor::Kind::Maintain, work);
        // The deadline of the operator protects callers that wait behind others; nobody waits
        // behind this.
        let done = with_deadline(Instant::now() + MAX_TIMEOUT, work).await;
        done.map_err(|error| match error {
            // This kind of work has no queue: waiting behind a compaction could take hours.
            Error::Work(executor::Error::Full(_)) => {
                let failure =
                    Failure::new(Code::Overloaded, "Another backup or compaction is running");
                failure.suggest("Try again when it is done")
            }
            error => error.into(),
        })
    }
}

/// Waits for new progress, for one interval at least.
async fn news(progress: &mut watch::Receiver<u64>) {
    tokio::time::sleep(PROGRESS_INTERVAL).await;
    if progress.changed().await.is_err() {
        // The work has dropped its end, so its result is next: `select!` must wait for that.
        std::future::pending::<()>().await;
    }
}

fn outcome(compacted: Compacted) -> CompactOutcome {
    CompactOutcome {
        size_bytes_before: compacted.before,
        size_bytes_after: compacted.after,
        replaced: compacted.replaced,
    }
}

impl View for AdminService {
    async fn view<'a>(&'a self, _: &Extensions) -> Cow<'a, Self> {
        // Served on the local socket only, whose callers see every skill.
        Cow::Borrowed(self)
    }
}

impl handlers::Admin for AdminService {
    async fn backup(&self, _: Request<BackupRequest>) -> Answer<Messages<BackupResponse>> {
        let taken = self.maintain(Registry::backup);
        let (file, backup) = taken.await?;
        // The first message has the sizes and no bytes: the client knows the end before it reads.
        let first = BackupResponse {
            records: backup.records,
            size_bytes: backup.bytes,
            chunk: Bytes::new(),
        };
        let file = tokio::fs::File::from_std(file);
        let pieces = stream::try_unfold(file, async |mut file| {
            let mut chunk = Vec::new();
            // A plain `read` may return fewer bytes; full chunks keep the number of messages down.
            let read = (&mut file).take(CHUNK_BYTES).read_to_end(&mut chunk).await;
            read.map_err(|error| status(Failure::fault(error)))?;
            let piece = BackupResponse {
                chunk: chunk.into(),
                ..BackupResponse::default()
            };
            Ok((!piece.chunk.is_empty()).then_some((piece, file)))
        });
        let pieces = stream::iter([Ok(first)]).chain(pieces);
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn compact(&self, _: Request<CompactRequest>) -> Answer<Messages<CompactResponse>> {
        let (sender, progress) = watch::channel(0);
        let service = self.clone();
        // The stream owns the work: a caller that leaves drops both, which stops it.
        let work = Box::pin(async move {
            let work = move |registry: &Registry, stop: &Stop| {
                registry.compact(stop, |records| {
                    sender.send_replace(records);
                })
            };
            service.maintain(work).await
        });
        let messages = stream::try_unfold(Some((work, progress)), async |state| {
            let Some((mut work, mut progress)) = state else {
                return Ok(None);
            };
            let done = tokio::select! {
                biased;
                done = &mut work => Some(done.map_err(status)?),
                // `biased`: progress never follows the outcome.
                () = news(&mut progress) => None,
            };
            let message = CompactResponse {
                records: *progress.borrow(),
                outcome: done.map(outcome),
            };
            Ok(Some((message, done.is_none().then_some((work, progress)))))
        });
        Ok(Response::new(Box::pin(messages)))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Answer<GetStatusResponse> {
        Ok(Response::new(GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data_directory: self.directory.display().to_string(),
            url: match &self.kind {
                Kind::Serve { url } => url.clone(),
                Kind::Background { .. } => String::new(),
            },
            started_at: Some(time(self.started_at)),
            process_id: std::process::id(),
            skills: self.registry.catalog().live() as u64,
            background: matches!(self.kind, Kind::Background { .. }),
            connections: u32::try_from(*self.connected.borrow()).unwrap_or(u32::MAX),
        }))
    }

    async fn leave(&self, _: Request<LeaveRequest>) -> Answer<LeaveResponse> {
        match &self.kind {
            Kind::Background { leave } => {
                tracing::info!("asked to leave");
                leave.cancel();
                Ok(Response::new(LeaveResponse {}))
            }
            Kind::Serve { url } => {
                let sentence = format!("The server at {url} was started to stay");
                let process = std::process::id();
                let step = format!("End it, if that is what you want: kill {process}");
                Err(Failure::new(Code::DataInUse, sentence).suggest(step))
            }
        }
    }
}
