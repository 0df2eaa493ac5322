//! The one thread that writes.
//!
//! Waiting batches are gathered into a group, checked in their order, applied as
//! one atomic sled batch, flushed and synced once, and acknowledged together.
//!
//! Where that fails, the store takes no writes: readers go on seeing what is durable
//! (see `view`), callers are refused at once, and the thread tries to get the database
//! to write again (see `recovery`).

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::backend::{Followers, Written};
use super::batch::Batch;
use super::engine::{Engine, Failed};
use super::group::{Finished, Group};
use super::high_water_mark::HighWaterMark;
use super::recovery::Recovery;
use super::view::View;
use super::{CommitError, LogPosition, Mode, Options, Pinned, Revision, free_bytes, locked};

/// Pauses between attempts to write again: the first and the longest.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// The interval at which requests are refused, and a stop is noticed, between two attempts.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Bounds of the committer's queue.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Batches that wait at the same time; further callers wait to hand theirs over.
    pub waiting: usize,
    /// Bytes that wait at the same time.
    pub waiting_bytes: usize,
    /// Batches in a group.
    pub group: usize,
    /// Bytes at which a group is closed.
    pub group_bytes: usize,
}

impl Limits {
    /// The bounds where none are stated.
    pub const DEFAULT: Self = Self {
        waiting: 1024,
        waiting_bytes: 64 * 1024 * 1024,
        group: 512,
        group_bytes: 8 * 1024 * 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Bytes are counted in units of this size, since a semaphore counts to 2^61 but
/// takes 2^32 at once.
const BYTES_PER_PERMIT: usize = 1024;

struct Write {
    batch: Batch,
    answer: oneshot::Sender<Result<Revision, CommitError>>,
    bytes: tokio::sync::OwnedSemaphorePermit,
}

/// Work that runs between two groups. An error means that the engine can no longer be trusted.
pub(super) type Between = Box<dyn FnOnce(&Committer) -> Result<(), Failed> + Send>;

#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are the large one"
)]
enum Request {
    Write(Write),
    Between(Between),
}

/// The queue of the committer.
#[derive(Debug)]
pub(super) struct Handle {
    requests: Mutex<Option<mpsc::Sender<Request>>>,
    bytes: Arc<Semaphore>,
    max_bytes: usize,
    mode: watch::Receiver<Mode>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    pub(super) async fn commit(&self, batch: Batch) -> Result<Revision, CommitError> {
        batch.check_size(self.max_bytes)?;
        // A caller that writes while the disk refuses gets its error at once, and does not wait
        // for a group that cannot be written.
        if let Mode::ReadOnly { reason } = &*self.mode.borrow() {
            return Err(CommitError::ReadOnly(reason.clone()));
        }
        let sender = self.sender().ok_or(CommitError::Closed)?;
        // Its bytes are acquired before the batch is queued: so the queue is bounded, however
        // many callers there are.
        // `check_size` compared with the same bound: a batch that wanted more permits than there
        // are would wait for ever.
        let units = u32::try_from(batch.bytes.div_ceil(BYTES_PER_PERMIT)).unwrap_or(u32::MAX);
        let bytes = self
            .bytes
            .clone()
            .acquire_many_owned(units)
            .await
            .map_err(|_| CommitError::Closed)?;
        let (answer, answered) = oneshot::channel();
        sender
            .send(Request::Write(Write {
                batch,
                answer,
                bytes,
            }))
            .await
            .map_err(|_| CommitError::Closed)?;
        // The thread ends with the last sender: a caller that waits for its answer must not keep
        // it alive.
        drop(sender);
        answered.await.map_err(|_| CommitError::Closed)?
    }

    /// Queues work that runs after all that waits now, while nothing is written. Blocks while
    /// the queue is full. The work is dropped where the store is closed, or takes no writes.
    pub(super) fn between(&self, between: Between) {
        if let Some(sender) = self.sender() {
            let _closed = sender.blocking_send(Request::Between(between));
        }
    }

    fn sender(&self) -> Option<mpsc::Sender<Request>> {
        locked(&self.requests).clone()
    }

    /// Takes no more requests; returns the thread, which ends after those that wait.
    fn stop(&self) -> Option<JoinHandle<()>> {
        drop(locked(&self.requests).take());
        locked(&self.thread).take()
    }

    pub(super) async fn close(&self) {
        if let Some(thread) = self.stop() {
            // A panic in the thread was answered to its callers already.
            // On a thread of its own: the last group may wait for a slow disk.
            let _joined = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(thread) = self.stop() {
            let _joined = thread.join();
        }
    }
}

/// The state of the thread.
pub(super) struct Committer {
    pub(super) view: Arc<View>,
    pub(super) high_water_mark: HighWaterMark,
    /// The last commit.
    pub(super) revision: Revision,
    pub(super) log_id: String,
    pub(super) directory: PathBuf,
    pub(super) position: watch::Sender<LogPosition>,
    pub(super) mode: watch::Sender<Mode>,
    pub(super) options: Options,
    pub(super) followers: Arc<Followers>,
}

pub(super) fn spawn(committer: Committer) -> io::Result<Handle> {
    let limits = committer.options.limits;
    let (requests, waiting) = mpsc::channel(limits.waiting.max(1));
    let mode = committer.mode.subscribe();
    let thread = std::thread::Builder::new()
        .name("committer".to_owned())
        .spawn(move || committer.run(waiting))?;
    Ok(Handle {
        requests: Mutex::new(Some(requests)),
        bytes: Arc::new(Semaphore::new(
            limits.waiting_bytes.div_ceil(BYTES_PER_PERMIT),
        )),
        max_bytes: limits.waiting_bytes,
        mode,
        thread: Mutex::new(Some(thread)),
    })
}

impl Committer {
    fn run(mut self, mut waiting: mpsc::Receiver<Request>) {
        let limits = self.options.limits;
        while let Some(first) = waiting.blocking_recv() {
            let (mut bytes, mut group, mut between) = (0, Vec::new(), None);
            let mut next = Some(first);
            while let Some(request) = next {
                match request {
                    Request::Write(write) => {
                        bytes += write.batch.bytes;
                        group.push(write);
                    }
                    Request::Between(work) => {
                        // The group ends here: what is done between two groups sees all that
                        // was handed in before it, and nothing of what comes after.
                        between = Some(work);
                        break;
                    }
                }
                // Nobody waits for a group to fill. It is what came in while the one before it
                // was synced, so it is large only where there is much to write.
                let has_room = group.len() < limits.group && bytes < limits.group_bytes;
                next = has_room.then(|| waiting.try_recv().ok()).flatten();
            }
            let turn = AssertUnwindSafe(|| {
                if !group.is_empty() {
                    self.write(group)?;
                }
                between.map_or(Ok(()), |between| between(&self))
            });
            // sled panics on damage. A thread that died of it would leave every later caller
            // without an answer, so a panic is a failed write like any other.
            let written = panic::catch_unwind(turn)
                .unwrap_or_else(|panicked| Err(model::panic_words(&*panicked).into()));
            if let Err(failed) = written
                && !self.recover(&mut waiting, failed)
            {
                return;
            }
        }
    }

    /// Refuses writes until the database takes them again. False: the store was closed.
    fn recover(&mut self, waiting: &mut mpsc::Receiver<Request>, failed: Failed) -> bool {
        let mut recovery = Recovery::new(failed.dropped);
        let mut reason = failed.reason;
        tracing::error!(
            reason,
            "a write failed; the store accepts no writes for now"
        );
        // The first attempt comes at once; each later one waits twice as long.
        let mut pause = Duration::ZERO;
        loop {
            self.mode.send_replace(Mode::ReadOnly {
                reason: reason.clone(),
            });
            let mut waited = Duration::ZERO;
            loop {
                match waiting.try_recv() {
                    // Its sender notices that it was dropped: the channel of its answer closes.
                    Ok(Request::Between(_)) => {}
                    Ok(Request::Write(request)) => {
                        let refusal = CommitError::ReadOnly(reason.clone());
                        let _gone = request.answer.send(Err(refusal));
                    }
                    Err(TryRecvError::Disconnected) => return false,
                    Err(TryRecvError::Empty) if waited >= pause => break,
                    Err(TryRecvError::Empty) => {
                        // Polled: the channel has no blocking receive with a timeout.
                        std::thread::sleep(STOP_CHECK_INTERVAL);
                        waited += STOP_CHECK_INTERVAL;
                    }
                }
            }
            let attempt = panic::catch_unwind(AssertUnwindSafe(|| recovery.attempt(self)))
                .unwrap_or_else(|panicked| Err(model::panic_words(&*panicked)));
            match attempt {
                Ok(()) => {
                    tracing::info!("the store accepts writes again");
                    self.mode.send_replace(Mode::ReadWrite);
                    return true;
                }
                Err(still) => {
                    tracing::warn!(reason = still, "the store accepts no writes yet");
                    reason = still;
                }
            }
            pause = MAX_RETRY_DELAY.min(MIN_RETRY_DELAY.max(2 * pause));
        }
    }

    /// Writes a group. An error means that the engine can no longer be trusted;
    /// every caller of the group was answered.
    fn write(&mut self, requests: Vec<Write>) -> Result<(), Failed> {
        // Asked before anything is written: where sled itself meets a full disk, the database
        // has to be opened again (`recovery`).
        if let Some((free, reserve)) = self.nearly_full() {
            for request in requests {
                let error = CommitError::DiskFull { free, reserve };
                let _gone = request.answer.send(Err(error));
            }
            return Ok(());
        }
        let engine = self.view.engine().map_err(|error| error.to_string())?;
        let mut group = Group::new(&*self.view, self.revision);
        let mut accepted = Vec::with_capacity(requests.len());
        let mut refused = Vec::new();
        let mirrored = locked(&self.followers.tables).mirrored();
        for request in requests {
            let Write {
                mut batch,
                answer,
                bytes,
            } = request;
            let mut keys = batch.writes.iter().filter_map(|(key, _)| key.first());
            let is_followed = batch.event.is_some() || keys.any(|table| mirrored.contains(table));
            // A batch whose precondition fails is refused alone. The others of its group are
            // written.
            match group.add(&mut batch) {
                Ok(revision) => accepted.push(Accepted {
                    is_followed,
                    answer,
                    revision,
                    _bytes: bytes,
                    pinned: batch.pinned.take(),
                }),
                Err(error) => refused.push((answer, error)),
            }
        }
        let written = if accepted.is_empty() {
            Ok(())
        } else {
            match self.apply(&engine, group) {
                Ok(written) => {
                    self.acknowledge(accepted, written);
                    Ok(())
                }
                Err(failed) => {
                    // Before the answers: a caller that gets the failure finds the store
                    // read-only, and can wait until it is not.
                    self.mode.send_replace(Mode::ReadOnly {
                        reason: failed.reason.clone(),
                    });
                    for Accepted { answer, .. } in accepted {
                        let error = CommitError::Failed(failed.reason.clone());
                        let _gone = answer.send(Err(error));
                    }
                    Err(failed)
                }
            }
        };
        // After the group was shown: a caller that lost against a batch of this group reads
        // again, and must see that batch then.
        for (answer, error) in refused {
            let _gone = answer.send(Err(error));
        }
        written
    }

    /// Returns the free bytes of the disk and the reserve, where fewer are free.
    fn nearly_full(&self) -> Option<(u64, u64)> {
        let reserve = self.options.reserve_bytes;
        let free = free_bytes(&self.directory)?;
        (free < reserve).then_some((free, reserve))
    }

    /// Makes a group durable.
    fn apply(&self, engine: &Engine, group: Group<'_>) -> Result<Finished, Failed> {
        let position = *self.position.borrow();
        let finished = group.finish(position, self.options.keep_events);
        let mut finished = finished.map_err(|error| error.to_string())?;
        // The log's start moves before the forgotten events are gone: so a reader that reads the
        // log first and checks its start then knows whether the read was complete.
        self.position.send_if_modified(|known| {
            known.start = finished.position.start;
            false
        });
        // From here on readers see these before-images, since sled shows a batch before it is
        // on the disk.
        self.view.begin(std::mem::take(&mut finished.before));
        let written = engine.write(&finished.writes, &self.options.sync);
        written.inspect_err(|_| self.view.fail())?;
        Ok(finished)
    }

    /// Shows a durable group to readers, and notifies its followers and callers.
    fn acknowledge(&mut self, accepted: Vec<Accepted>, durable: Finished) {
        let Finished {
            writes,
            position,
            revision,
            events,
            ..
        } = durable;
        self.revision = revision;
        // The mark tells a database that lost acknowledged writes from one that never had
        // them. Without it the write is as durable as before, so nobody is refused.
        if let Err(error) = self.high_water_mark.note(revision) {
            tracing::warn!(%error, "the high-water mark was not written; a truncated database would not be detected");
        }
        // First: whoever gets an event must find the records that it is about.
        self.view.settle(revision);
        let written = Written {
            writes: &writes,
            records: &*self.view,
        };
        let followed = self.followers.notify(&written, &writes, revision, &events);
        // After the followers: a watcher that this wakes finds the catalog with its event.
        self.position.send_replace(position);
        for accepted in accepted {
            let outcome = match &followed {
                // It is durable all the same, but memory may lack it: its writer gets an error,
                // since it could not read its own write.
                Err(reason) if accepted.is_followed => Err(CommitError::Unfollowed(reason.clone())),
                _ => Ok(accepted.revision),
            };
            // Before the answer: a compaction that begins after it finds the contents used by
            // records.
            drop(accepted.pinned);
            let _gone = accepted.answer.send(outcome);
        }
    }
}

/// A batch of a group that is on its way to the disk.
struct Accepted {
    /// It has an event, or writes to a table that is in memory.
    is_followed: bool,
    answer: oneshot::Sender<Result<Revision, CommitError>>,
    revision: Revision,
    // Until the answer: the group holds the bytes of the batch up to then.
    _bytes: tokio::sync::OwnedSemaphorePermit,
    /// Until the records that use the contents can be read.
    pinned: Option<Arc<Pinned>>,
}
