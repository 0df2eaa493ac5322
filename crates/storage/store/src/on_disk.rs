//! Records in a data directory, by sled: one committer thread, one lock.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::backend::{Backend, BoxFuture, Followers, Records, Status};
use super::engine::Engine;
use super::follow::Pins;
use super::view::View;
use super::{
    Backup, Batch, CommitError, Mode, OpenError, Options, Revision, StoreError, backup, bounded,
    committer, directory, high_water_mark, lock, log,
};

/// An open data directory.
#[derive(Debug)]
pub(super) struct OnDisk {
    // Fields are dropped in this order: the thread ends before the database is closed.
    pub(super) committer: committer::Handle,
    pub(super) view: Arc<View>,
    pub(super) status: Status,
    pub(super) directory: PathBuf,
    pub(super) options: Options,
    pub(super) pins: Arc<Pins>,
    // Last, so that no other process opens the directory before the database is closed.
    _lock: lock::Lock,
}

impl OnDisk {
    pub(super) fn open(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        let (path, opening) = (directory.to_owned(), options.clone());
        let directory::Opened { db, tree, lock } =
            bounded(directory, move || directory::open(&path, &opening))??;
        let damaged = |cause: StoreError| OpenError::damaged(directory, cause);
        let revision = log::last_revision(&tree).map_err(damaged)?;
        high_water_mark::check(
            directory,
            revision,
            log::id(&tree).map_err(damaged)?.as_deref(),
        )?;
        let opened = log::open(&tree).map_err(damaged)?;
        let (sender, position) = watch::channel(opened.position);
        let (mode_sender, mode) = watch::channel(Mode::ReadWrite);
        let file = directory::database_file(directory)?;
        let view = Arc::new(View::new(Engine { tree, db, file }, revision, options));
        let followers = Arc::new(Followers::default());
        let committer = committer::spawn(committer::Committer {
            view: Arc::clone(&view),
            high_water_mark: high_water_mark::HighWaterMark::open(
                directory,
                revision,
                &opened.log_id,
            )?,
            revision,
            log_id: opened.log_id.clone(),
            directory: directory.to_owned(),
            position: sender,
            mode: mode_sender,
            options: options.clone(),
            followers: Arc::clone(&followers),
        })
        .map_err(directory::at(directory))?;
        Ok(Self {
            committer,
            view,
            status: Status {
                position,
                mode,
                log_id: opened.log_id,
                followers,
            },
            directory: directory.to_owned(),
            options: options.clone(),
            pins: Arc::default(),
            _lock: lock,
        })
    }

    pub(super) fn backup(
        &self,
        to: &Path,
        replace: bool,
        mut progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<Backup, StoreError> {
        // A file on another disk takes nothing from writes.
        let disk = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let shared = disk(parent.unwrap_or(Path::new("."))) == disk(&self.directory);
        if shared {
            self.check_reserve(to)?;
        }
        backup::write(&self.view, to, replace, |count| {
            if shared && count.is_multiple_of(backup::SPACE_CHECK_INTERVAL) {
                self.check_reserve(to)?;
            }
            progress(count)
        })
    }

    pub(super) fn backup_unnamed(
        &self,
        mut progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<(File, Backup), StoreError> {
        let path = self.directory.join(directory::BACKING_UP);
        self.check_reserve(&path)?;
        backup::write_unnamed(&self.view, &path, |count| {
            if count.is_multiple_of(backup::SPACE_CHECK_INTERVAL) {
                self.check_reserve(&path)?;
            }
            progress(count)
        })
    }

    /// Refuses to take the last of the disk for a file.
    fn check_reserve(&self, file: &Path) -> Result<(), StoreError> {
        directory::check_reserve(&self.directory, self.options.reserve_bytes)
            .map_err(StoreError::io(file))
    }
}

impl Backend for OnDisk {
    fn records(&self) -> &dyn Records {
        &*self.view
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, CommitError>> {
        Box::pin(self.committer.commit(batch))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.committer.close())
    }

    fn status(&self) -> &Status {
        &self.status
    }
}
