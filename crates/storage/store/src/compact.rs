//! Compaction: the store is rewritten without unused contents, while reads and writes go on.
//!
//! All of it happens below the data directory, which is locked throughout. A new store folder is
//! filled next to the old one; what is written meanwhile is copied in rounds, until little is
//! left (`follow`). Then the committer pauses between two groups: the rest is copied and made
//! durable, the folders are exchanged in one step (`RENAME_EXCHANGE`), and readers and the
//! committer get the new database. Reads in progress end on the old one.
//!
//! A kill before the exchange leaves the old store and half a new one, a kill after it the
//! new store and the old one; the next start removes the other. No write is acknowledged
//! on the new one before the exchange is durable. A data directory that is a mount point
//! can be compacted, since it is not renamed itself.
//!
//! sled keeps the path by which it was opened, but uses it for files of large pages alone,
//! which this store never has (see `chunks`): so it stays open across the exchange.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use rustix::fs::{CWD, RenameFlags};

use super::backend::{Order, Records as _, everything, walk};
use super::backup::Filler;
use super::committer::Committer;
use super::engine::{Engine, Failed};
use super::follow::Pins;
use super::on_disk::OnDisk;
use super::view::{self, View};
use super::{
    Mode, Options, Store, StoreError, backup, blob, directory, guarded, log, private, record,
    recovery,
};
use model::Digest;

/// The divisor of the smallest gain: a store that would shrink by less than one part in this
/// stays, since two that hold the same differ by a little.
const MIN_GAIN: u64 = 20;
/// Maximum number of rounds that copy what was written meanwhile.
const MAX_ROUNDS: usize = 16;
/// Maximum number of records that are copied while writes wait: about as many as two groups have.
const MAX_HELD: usize = 2048;

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes of the store before.
    pub before: u64,
    /// Bytes of the store written anew.
    pub after: u64,
    /// The new one replaced the old one: it is notably smaller, or lacks unused contents.
    pub replaced: bool,
}

/// A moment after which a kill leaves other files than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Filling,
    Filled,
    /// What was written meanwhile was copied, once.
    Followed,
    /// Writes wait, and both stores hold the same.
    Held,
    /// The folders were exchanged, but that is not durable.
    Swapped,
    Exchanged,
    Removed,
}

/// A callback for every step, from which tests read and write.
type Reached = Arc<dyn Fn(Step) + Send + Sync>;

/// A compaction that is about to begin. There is one at a time.
///
/// From here on writes are tracked: a content that is found to be unused now stays if a write
/// uses it in the meantime.
#[derive(Debug)]
pub struct Compaction {
    store: Arc<OnDisk>,
}

impl Drop for Compaction {
    fn drop(&mut self) {
        self.store.view.unfollow();
        self.store.pins.unfollow();
    }
}

impl Compaction {
    /// Begins to track writes.
    ///
    /// # Errors
    /// Another one is at work, or the store has no data directory.
    pub fn begin(store: &Store) -> Result<Self, StoreError> {
        let store = Arc::clone(store.on_disk()?);
        if !store.view.follow() {
            return Err(StoreError::Compacting);
        }
        store.pins.follow();
        Ok(Self { store })
    }

    /// Rewrites the store, without contents for which `keep` is false: no record has used them
    /// since this was begun. `progress` gets the number of records moved; its error ends the
    /// work.
    ///
    /// Takes as much disk as the new store has; the reserve stays free. Blocks: not for
    /// async threads.
    ///
    /// # Errors
    /// A record is damaged, the disk refuses, or more is written than can be copied. All is as
    /// it was then, but with [`StoreError::NotDurable`].
    pub fn run(
        self,
        keep: impl Fn(&Digest) -> bool,
        progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<Compacted, StoreError> {
        self.steps(keep, progress, &(Arc::new(|_| ()) as Reached))
    }

    fn steps(
        self,
        keep: impl Fn(&Digest) -> bool,
        progress: impl FnMut(u64) -> Result<(), StoreError>,
        reached: &Reached,
    ) -> Result<Compacted, StoreError> {
        let inner = &*self.store;
        if let Mode::ReadOnly { reason } = &*inner.status.mode.borrow() {
            return Err(refused(reason));
        }
        let folders = Folders::of(&inner.directory);
        let ended = folders.remove_new().and_then(|()| {
            let work = Run {
                store: &self.store,
                folders: &folders,
                reached: Arc::clone(reached),
                moved: 0,
            };
            work.run(keep, progress)
        });
        let (exchange, mut compacted) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                // A leftover is removed by the next compaction, or by the next start.
                let _gone = folders.remove_new();
                return Err(error);
            }
        };
        match exchange {
            None => {}
            // The old folder stays: a power cut may yet bring it back.
            Some(Exchange::Unsynced(error)) => return Err(error),
            Some(Exchange::Done(old)) => {
                compacted.replaced = true;
                // A reader that still has it closes it; its file goes with that.
                let _read = old.map(view::close_when_unused);
            }
        }
        // It took effect, even if the other store cannot be removed.
        if let Err(error) = folders.remove_new() {
            tracing::warn!(%error, "an unused folder stays until the next compaction or start");
        }
        reached(Step::Removed);
        Ok(compacted)
    }
}

fn refused(reason: &str) -> StoreError {
    StoreError::Engine(format!("it takes no writes for now: {reason}"))
}

/// The store, and the one that is filled. Once they are exchanged, the second has the
/// old one.
#[derive(Debug, Clone)]
struct Folders {
    directory: PathBuf,
    store: PathBuf,
    new: PathBuf,
}

impl Folders {
    fn of(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            store: directory::store_path(directory),
            new: directory.join(directory::COMPACTING),
        }
    }

    fn io(&self, cause: io::Error) -> StoreError {
        StoreError::io(&self.new)(cause)
    }

    fn remove_new(&self) -> Result<(), StoreError> {
        directory::remove(&self.new).map_err(|error| self.io(error))
    }

    /// Makes all that the new store holds durable.
    fn sync(&self, engine: &Engine, options: &Options) -> Result<(), StoreError> {
        guarded(|| engine.db.flush())?;
        (options.sync.0)(&engine.file)
            .and_then(|()| directory::sync(&self.new))
            .map_err(|error| self.io(error))
    }
}

/// The outcome of the exchange, where it was tried.
enum Exchange {
    /// Done; with the database that was in use before.
    Done(Option<Arc<Engine>>),
    /// The folders were exchanged, but that may not be durable.
    Unsynced(StoreError),
}

/// The outcome of the exchange, or the database back: more is left than writes may wait for.
type CompactionEnd = Result<Result<Exchange, Engine>, StoreError>;

struct Run<'a> {
    store: &'a OnDisk,
    folders: &'a Folders,
    reached: Reached,
    moved: u64,
}

impl Run<'_> {
    fn run(
        mut self,
        keep: impl Fn(&Digest) -> bool,
        mut progress: impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<(Option<Exchange>, Compacted), StoreError> {
        let (inner, folders) = (self.store, self.folders);
        let mut engine = Engine::open(&folders.new, &inner.options)?;
        let left_out = self.fill(&engine, keep, &mut progress)?;
        guarded(|| engine.db.flush())?;
        // sled writes a snapshot when it is opened: it marks the end of what was filled in.
        drop(engine);
        engine = Engine::open(&folders.new, &inner.options)?;
        folders.sync(&engine, &inner.options)?;
        (self.reached)(Step::Filled);
        let (before, after) = (size(&folders.store), size(&folders.new));
        let compacted = Compacted {
            before,
            after,
            replaced: false,
        };
        // Two stores of the same records differ by a little, which is no reason to exchange them.
        if !left_out && after >= before - before / MIN_GAIN {
            return Ok((None, compacted));
        }
        // Each round copies what was written during the last, without holding up a write, until
        // so little is left that writes may wait for it.
        for _ in 0..MAX_ROUNDS {
            self.check_reserve()?;
            self.moved += bring_over(&inner.view, &inner.pins, &engine.tree)?;
            progress(self.moved)?;
            folders.sync(&engine, &inner.options)?;
            (self.reached)(Step::Followed);
            if !inner.view.changed_at_most(MAX_HELD) {
                continue;
            }
            match self.end(engine)? {
                Ok(exchange) => return Ok((Some(exchange), compacted)),
                Err(back) => engine = back,
            }
        }
        Err(StoreError::Busy)
    }

    /// Copies every record but unused contents; returns whether there were such.
    fn fill(
        &mut self,
        engine: &Engine,
        keep: impl Fn(&Digest) -> bool,
        progress: &mut impl FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let mut left_out = false;
        let mut filler = Filler::new(&engine.tree);
        let view = &self.store.view;
        for entry in walk(&**view, everything(), Order::Ascending) {
            let (key, value) = entry?;
            if self.moved.is_multiple_of(backup::SPACE_CHECK_INTERVAL) {
                self.check_reserve()?;
            }
            if blob::parse_key(&key).is_some_and(|(digest, _)| !keep(&digest)) {
                left_out = true;
                continue;
            }
            // A damaged record ends it: copied, it would be in a store that looks whole.
            record::open(&key, &value)?;
            filler.put(&key, &value)?;
            self.moved += 1;
            progress(self.moved)?;
            if self.moved == 1 {
                (self.reached)(Step::Filling);
            }
        }
        filler.finish()?;
        Ok(left_out)
    }

    /// Refuses to take the last of the disk, which writes need.
    fn check_reserve(&self) -> Result<(), StoreError> {
        let inner = self.store;
        directory::check_reserve(&inner.directory, inner.options.reserve_bytes)
            .map_err(|error| self.folders.io(error))
    }

    /// Has the committer pause, and finishes the compaction there.
    fn end(&self, engine: Engine) -> CompactionEnd {
        let inner = self.store;
        let (answer, answered) = sync_channel(1);
        let pause = Pause {
            pins: Arc::clone(&inner.pins),
            folders: self.folders.clone(),
            reached: Arc::clone(&self.reached),
        };
        inner.committer.between(Box::new(move |committer| {
            pause.exchange(committer, engine, &answer)
        }));
        answered.recv().unwrap_or_else(|_| {
            let mode = inner.status.mode.borrow();
            Err(match &*mode {
                Mode::ReadOnly { reason } => refused(reason),
                Mode::ReadWrite => StoreError::Stopped,
            })
        })
    }
}

/// Copies what changed since the last round, and contents that a write is about to use. Returns
/// the number of records.
fn bring_over(view: &View, pins: &Pins, tree: &sled::Tree) -> Result<u64, StoreError> {
    let keys = view.changes().keys().ok_or(StoreError::Busy)?;
    let mut filler = Filler::new(tree);
    let mut moved = 0;
    let mut put = |filler: &mut Filler<'_>, key: &[u8], value: &[u8]| {
        record::open(key, value)?;
        moved += 1;
        filler.put(key, value)
    };
    for key in &keys {
        match view.get(key)? {
            Some(value) => put(&mut filler, key, &value)?,
            None => filler.remove(key)?,
        }
    }
    for digest in pins.seen() {
        let records = blob::keys(&digest);
        if guarded(|| tree.contains_key(&records.start))? {
            continue;
        }
        for entry in walk(view, records, Order::Ascending) {
            let (key, value) = entry?;
            put(&mut filler, &key, &value)?;
        }
    }
    filler.finish()?;
    Ok(moved)
}

/// The work that is done while nothing is written.
struct Pause {
    pins: Arc<Pins>,
    folders: Folders,
    reached: Reached,
}

impl Pause {
    fn exchange(
        self,
        committer: &Committer,
        engine: Engine,
        answer: &SyncSender<CompactionEnd>,
    ) -> Result<(), Failed> {
        let (view, folders) = (&committer.view, &self.folders);
        // From here on a write that checks whether a content is stored waits, and checks the new
        // store.
        let _closed = self.pins.close();
        if !view.changed_at_most(MAX_HELD) {
            let _answered = answer.send(Ok(Err(engine)));
            return Ok(());
        }
        if let Err(error) = self.finish(committer, &engine) {
            // Closed before the answer: its receiver removes the folder.
            drop(engine);
            let _answered = answer.send(Err(error));
            return Ok(());
        }
        if let Err(error) = private::sync_dir(&folders.directory) {
            // Opened again, the store is the new one; the next write waits for the sync.
            drop(engine);
            let failed = Failed {
                reason: error.to_string(),
                dropped: false,
            };
            let unsynced = StoreError::NotDurable {
                path: folders.directory.clone(),
                cause: error,
            };
            let _answered = answer.send(Ok(Ok(Exchange::Unsynced(unsynced))));
            return Err(failed);
        }
        (self.reached)(Step::Exchanged);
        let old = view.replace(engine);
        let _answered = answer.send(Ok(Ok(Exchange::Done(old))));
        Ok(())
    }

    /// Copies the rest, makes it durable, and exchanges the folders.
    fn finish(&self, committer: &Committer, engine: &Engine) -> Result<(), StoreError> {
        bring_over(&committer.view, &self.pins, &engine.tree)?;
        recovery::compare(engine, committer).map_err(StoreError::Engine)?;
        // At the end of the log, where a start searches for the last write.
        let (key, revision) = (log::revision_key(), committer.revision);
        let last = record::seal(key, revision, &revision.to_be_bytes());
        guarded(|| engine.tree.insert(key, last))?;
        self.folders.sync(engine, &committer.options)?;
        (self.reached)(Step::Held);
        exchange(&self.folders.new, &self.folders.store).map_err(|error| self.folders.io(error))?;
        (self.reached)(Step::Swapped);
        Ok(())
    }
}

/// Exchanges two folders in one step.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|error| {
        if matches!(error, rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this file system cannot exchange two folders in one step; use `repertoire backup`, and `repertoire restore` into a new directory",
            )
        } else {
            error.into()
        }
    })
}

/// Returns the bytes that a store has when it is opened next: sled fills up its last segment
/// then.
fn size(store: &Path) -> u64 {
    let files = walkdir::WalkDir::new(store).into_iter().flatten();
    let files = files.filter(|entry| entry.file_type().is_file());
    let bytes = files.map(|entry| {
        let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
        if entry.file_name() == "db" {
            bytes.next_multiple_of(directory::SEGMENT_BYTES as u64)
        } else {
            bytes
        }
    });
    bytes.sum()
}

#[cfg(test)]
pub(super) mod tests;
