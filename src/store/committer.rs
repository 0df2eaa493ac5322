//! The one thread that writes.
//!
//! Waiting batches are gathered into a group, checked in their order, applied as
//! one atomic sled batch, flushed and synced once, and acknowledged together.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::batch::Batch;
use super::last::Notes;
use super::unsettled::Unsettled;
use super::{CommitError, Expect, LogPosition, Revision, StoreError, guarded, log, record};

/// Bounds of what waits for the committer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Batches that wait at once; further callers wait to hand theirs over.
    pub waiting: usize,
    /// Bytes that wait at once.
    pub waiting_bytes: usize,
    /// Batches in a group.
    pub group: usize,
    /// Bytes at which a group is closed.
    pub group_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiting: 1024,
            waiting_bytes: 64 * 1024 * 1024,
            group: 512,
            group_bytes: 8 * 1024 * 1024,
        }
    }
}

/// Bytes are counted in units of this size, since a semaphore counts to 2^61 but
/// takes 2^32 at once.
const UNIT: usize = 1024;

struct Request {
    batch: Batch,
    answer: oneshot::Sender<Result<Revision, CommitError>>,
    bytes: tokio::sync::OwnedSemaphorePermit,
}

/// Where callers hand their batches over.
#[derive(Debug)]
pub(super) struct Handle {
    requests: Mutex<Option<mpsc::Sender<Request>>>,
    bytes: Arc<Semaphore>,
    most_bytes: usize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    pub(super) async fn commit(&self, batch: Batch) -> Result<Revision, CommitError> {
        if batch.bytes > self.most_bytes {
            return Err(CommitError::TooLarge {
                bytes: batch.bytes,
                most: self.most_bytes,
            });
        }
        let sender = self.sender().ok_or(CommitError::Closed)?;
        let units = u32::try_from(batch.bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let bytes = self
            .bytes
            .clone()
            .acquire_many_owned(units)
            .await
            .map_err(|_| CommitError::Closed)?;
        let (answer, answered) = oneshot::channel();
        sender
            .send(Request {
                batch,
                answer,
                bytes,
            })
            .await
            .map_err(|_| CommitError::Closed)?;
        drop(sender);
        answered.await.map_err(|_| CommitError::Closed)?
    }

    fn sender(&self) -> Option<mpsc::Sender<Request>> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) async fn close(&self) {
        drop(
            self.requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic in the thread was answered to its callers already.
            let _joined = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        drop(
            self.requests
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        if let Some(thread) = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let _joined = thread.join();
        }
    }
}

/// What the thread owns.
pub(super) struct Committer {
    pub(super) tree: sled::Tree,
    pub(super) db: sled::Db,
    /// The database file, to be synced: sled's own flush survives a killed
    /// process, not a power cut.
    pub(super) file: File,
    pub(super) notes: Notes,
    /// The last commit.
    pub(super) revision: Revision,
    pub(super) directory: PathBuf,
    pub(super) position: watch::Sender<LogPosition>,
    pub(super) unsettled: Arc<Unsettled>,
    pub(super) keep_events: u64,
    pub(super) reserve_bytes: u64,
    pub(super) limits: Limits,
}

pub(super) fn spawn(committer: Committer) -> io::Result<Handle> {
    let limits = committer.limits;
    let (requests, waiting) = mpsc::channel(limits.waiting.max(1));
    let thread = std::thread::Builder::new()
        .name("committer".to_owned())
        .spawn(move || committer.run(waiting))?;
    Ok(Handle {
        requests: Mutex::new(Some(requests)),
        bytes: Arc::new(Semaphore::new(limits.waiting_bytes.div_ceil(UNIT))),
        most_bytes: limits.waiting_bytes,
        thread: Mutex::new(Some(thread)),
    })
}

impl Committer {
    fn run(self, mut waiting: mpsc::Receiver<Request>) {
        let mut revision = self.revision;
        while let Some(first) = waiting.blocking_recv() {
            let mut bytes = first.batch.bytes;
            let mut group = vec![first];
            while group.len() < self.limits.group && bytes < self.limits.group_bytes {
                let Ok(next) = waiting.try_recv() else { break };
                bytes += next.batch.bytes;
                group.push(next);
            }
            match self.write(&mut revision, group) {
                Ok(()) => {}
                Err(reason) => {
                    tracing::error!(
                        reason,
                        "the store failed; no more writes until it is opened again"
                    );
                    return refuse_all(&mut waiting, &reason);
                }
            }
        }
    }

    /// Writes a group. An error means that the engine can no longer be trusted;
    /// every caller of the group was answered.
    fn write(&self, revision: &mut Revision, requests: Vec<Request>) -> Result<(), String> {
        let free = rustix::fs::statvfs(&self.directory)
            .map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        if let Ok(free) = free
            && free < self.reserve_bytes
        {
            for request in requests {
                let error = CommitError::DiskFull {
                    free,
                    reserve: self.reserve_bytes,
                };
                let _gone = request.answer.send(Err(error));
            }
            return Ok(());
        }
        let mut group = Group::new(&self.tree, *revision);
        let mut accepted = Vec::with_capacity(requests.len());
        for request in requests {
            let Request {
                mut batch,
                answer,
                bytes,
            } = request;
            match group.add(&mut batch) {
                Ok(revision) => accepted.push((batch.effect.take(), answer, revision, bytes)),
                Err(error) => {
                    let _gone = answer.send(Err(error));
                }
            }
        }
        if accepted.is_empty() {
            return Ok(());
        }
        let position = *self.position.borrow();
        let Finished {
            batch,
            written,
            position,
            revision: last,
        } = match group.finish(position, self.keep_events) {
            Ok(finished) => finished,
            Err(error) => {
                answer_all(accepted, &error.to_string());
                return Err(error.to_string());
            }
        };
        self.unsettled
            .begin(written.into_iter().map(|(key, wrote)| (key, wrote.made)));
        let written = guarded(|| self.tree.apply_batch(batch))
            .and_then(|()| guarded(|| self.db.flush()))
            .map_err(|error| error.to_string())
            .and_then(|_| self.file.sync_data().map_err(|error| error.to_string()));
        if let Err(reason) = written {
            self.unsettled.fail();
            answer_all(accepted, &reason);
            return Err(reason);
        }
        *revision = last;
        if let Err(error) = self.notes.note(last) {
            tracing::warn!(%error, "the last write is not noted; a database that is cut short would not be noticed");
        }
        let mut answers = Vec::with_capacity(accepted.len());
        for (effect, answer, revision, bytes) in accepted {
            if let Some(effect) = effect {
                effect(revision);
            }
            answers.push((answer, revision, bytes));
        }
        self.unsettled.settle();
        self.position.send_replace(position);
        for (answer, revision, _given_back) in answers {
            let _gone = answer.send(Ok(revision));
        }
        Ok(())
    }
}

type Accepted = (
    Option<Box<dyn FnOnce(Revision) + Send>>,
    oneshot::Sender<Result<Revision, CommitError>>,
    Revision,
    tokio::sync::OwnedSemaphorePermit,
);

fn answer_all(accepted: Vec<Accepted>, reason: &str) {
    for (_, answer, _, _) in accepted {
        let _gone = answer.send(Err(CommitError::Failed(reason.to_owned())));
    }
}

fn refuse_all(waiting: &mut mpsc::Receiver<Request>, reason: &str) {
    while let Some(request) = waiting.blocking_recv() {
        let _gone = request
            .answer
            .send(Err(CommitError::Failed(reason.to_owned())));
    }
}

/// A group that is ready to be written.
struct Finished {
    batch: sled::Batch,
    written: HashMap<Vec<u8>, Wrote>,
    position: LogPosition,
    revision: Revision,
}

/// What a group did to a record.
#[derive(Debug, Clone, Copy)]
struct Wrote {
    /// Its revision; none: it was removed.
    revision: Option<Revision>,
    /// It was expected to be absent before the group.
    made: bool,
}

/// The batches of one group, on their way to one sled batch.
struct Group<'a> {
    tree: &'a sled::Tree,
    revision: Revision,
    /// What the group has written so far.
    written: HashMap<Vec<u8>, Wrote>,
    batch: sled::Batch,
    last_event: Option<u64>,
}

impl<'a> Group<'a> {
    fn new(tree: &'a sled::Tree, revision: Revision) -> Self {
        Self {
            tree,
            revision,
            written: HashMap::new(),
            batch: sled::Batch::default(),
            last_event: None,
        }
    }

    /// Checks a batch against the store and the group, and adds it.
    fn add(&mut self, batch: &mut Batch) -> Result<Revision, CommitError> {
        for (key, expect) in &batch.expects {
            let found = self.revision_of(key)?;
            let expected = match *expect {
                Expect::Absent => None,
                Expect::Revision(revision) => Some(revision),
            };
            if found != expected {
                return Err(CommitError::Conflict { found });
            }
        }
        self.revision += 1;
        let revision = self.revision;
        for (key, value) in batch.writes.drain(..) {
            let made = match self.written.get(&key) {
                Some(wrote) => wrote.made,
                None => batch.expects.contains(&(key.clone(), Expect::Absent)),
            };
            let revision = value.as_ref().map(|_| revision);
            if let Some(payload) = value {
                let record = record::seal(&key, self.revision, &payload);
                self.batch.insert(key.as_slice(), record);
            } else {
                self.batch.remove(key.as_slice());
            }
            self.written.insert(key, Wrote { revision, made });
        }
        if let Some(event) = &batch.event {
            let key = log::event_key(revision);
            #[expect(clippy::expect_used, reason = "an event has text keys and no floats")]
            let payload = serde_json::to_vec(event).expect("an event is JSON");
            self.batch
                .insert(key.as_slice(), record::seal(&key, revision, &payload));
            self.last_event = Some(revision);
        }
        Ok(revision)
    }

    fn revision_of(&self, key: &[u8]) -> Result<Option<Revision>, StoreError> {
        if let Some(wrote) = self.written.get(key) {
            return Ok(wrote.revision);
        }
        match guarded(|| self.tree.get(key))? {
            Some(value) => Ok(Some(record::open(key, &value)?.0)),
            None => Ok(None),
        }
    }

    /// Adds the group's own records: the revision, and what the log forgets.
    fn finish(mut self, mut position: LogPosition, keep: u64) -> Result<Finished, StoreError> {
        let mut put = |key: &[u8], number: u64| {
            self.batch
                .insert(key, record::seal(key, self.revision, &number.to_be_bytes()));
        };
        put(log::revision_key(), self.revision);
        if let Some(end) = self.last_event {
            position.end = end;
            let cutoff = end.saturating_sub(keep);
            if position.start < cutoff {
                let mut start = position.start;
                // A little more than a group adds, so that the log shrinks to its bound.
                for (sequence, key) in log::oldest(self.tree, 2 * Limits::default().group)? {
                    if sequence > cutoff {
                        break;
                    }
                    self.batch.remove(key);
                    start = sequence;
                }
                if start != position.start {
                    position.start = start;
                    let key = log::log_start_key();
                    self.batch
                        .insert(key, record::seal(key, self.revision, &start.to_be_bytes()));
                }
            }
        }
        Ok(Finished {
            batch: self.batch,
            written: self.written,
            position,
            revision: self.revision,
        })
    }
}
