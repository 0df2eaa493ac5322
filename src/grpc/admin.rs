//! `repertoire.v1.Admin`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use jiff::Timestamp;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use super::convert::time;
use super::status;
use crate::contract::v1::admin_server::Admin;
use crate::contract::v1::{BackupRequest, BackupResponse, GetStatusRequest, GetStatusResponse};
use crate::model::{Code, Failure};
use crate::registry::{Error, Registry};

/// Bytes of a piece of a backup.
const PIECE: u64 = 64 * 1024;

/// The service.
#[derive(Debug, Clone)]
pub struct AdminService {
    /// The data directory, as an absolute path.
    pub directory: PathBuf,
    /// Where the server listens.
    pub url: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// What it serves.
    pub registry: Registry,
    /// One backup at a time.
    pub backups: Arc<Semaphore>,
}

impl AdminService {
    /// Writes a backup, and opens it. The file has no name any more.
    fn take_backup(directory: &Path, registry: &Registry) -> Result<(File, u64), Error> {
        let path = directory.join("backup");
        let backup = registry.store().backup(&path, true, |_| {})?;
        let file = File::open(&path).and_then(|file| fs::remove_file(&path).map(|()| file));
        let file = file.map_err(|error| Error::Task(format!("the backup: {error}")))?;
        Ok((file, backup.records))
    }
}

#[tonic::async_trait]
impl Admin for AdminService {
    type BackupStream = Pin<Box<dyn Stream<Item = Result<BackupResponse, Status>> + Send>>;

    async fn backup(
        &self,
        _: Request<BackupRequest>,
    ) -> Result<Response<Self::BackupStream>, Status> {
        let permit = Arc::clone(&self.backups).try_acquire_owned().map_err(|_| {
            let failure = Failure::new(Code::Overloaded, "Another backup is being taken");
            status(failure.suggest("Try again when it is done"))
        })?;
        let (directory, registry) = (self.directory.clone(), self.registry.clone());
        // The permit lives as long as the work, whether or not the caller does.
        let taken = tokio::task::spawn_blocking(move || {
            let taken = Self::take_backup(&directory, &registry);
            drop(permit);
            taken
        });
        let taken = taken.await.map_err(|error| status(Failure::fault(error)))?;
        let (file, records) = taken.map_err(status)?;
        let size_bytes = file.metadata().map_or(0, |facts| facts.len());
        let first = BackupResponse {
            records,
            size_bytes,
            chunk: Bytes::new(),
        };
        let file = tokio::fs::File::from_std(file);
        let pieces = stream::try_unfold(file, async |mut file| {
            let mut chunk = Vec::new();
            let read = (&mut file).take(PIECE).read_to_end(&mut chunk).await;
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

    async fn get_status(
        &self,
        _: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        Ok(Response::new(GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data_directory: self.directory.display().to_string(),
            url: self.url.clone(),
            started_at: Some(time(self.started_at)),
            process_id: std::process::id(),
            skills: self.registry.catalog().live() as u64,
        }))
    }
}
