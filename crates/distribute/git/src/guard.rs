//! Bounds of one update, and who ends it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Error;

/// How often bounds are looked at that no read or write notices.
const CHECK_INTERVAL: Duration = Duration::from_millis(25);

/// Bounds of one update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that are received, and that the pack may have on disk.
    pub bytes: u64,
    /// Objects that are received: each costs memory while the pack is indexed.
    pub objects: u32,
    /// How long it may take.
    pub time: Duration,
    /// How long the other side may be silent.
    pub silence: Duration,
    /// Redirects of one request.
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            objects: 2_000_000,
            time: Duration::from_secs(15 * 60),
            silence: Duration::from_secs(30),
            redirects: 5,
        }
    }
}

/// Watches over one update. The first reason to end it is the one that is told.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) limits: Limits,
    /// What gix looks at.
    pub(super) interrupt: AtomicBool,
    /// What the caller sets.
    stop: Arc<AtomicBool>,
    start: Instant,
    received: AtomicU64,
    /// Less than the limit while there is another way.
    max_bytes: AtomicU64,
    waiting: Mutex<Option<Instant>>,
    cause: Mutex<Option<Error>>,
    child: Mutex<Option<Child>>,
    is_done: Mutex<bool>,
    done: Condvar,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes in a short form.
pub(super) fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

impl Guard {
    pub(super) fn new(limits: Limits, stop: Arc<AtomicBool>) -> Self {
        Self {
            interrupt: AtomicBool::new(false),
            stop,
            start: Instant::now(),
            received: AtomicU64::new(0),
            max_bytes: AtomicU64::new(limits.bytes),
            waiting: Mutex::new(None),
            cause: Mutex::new(None),
            child: Mutex::new(None),
            is_done: Mutex::new(false),
            done: Condvar::new(),
            limits,
        }
    }

    /// Why it must end now, apart from silence.
    fn reason(&self) -> Option<Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Some(Error::Stopped);
        }
        if self.start.elapsed() > self.limits.time {
            let seconds = self.limits.time.as_secs_f32();
            return Some(Error::Unavailable(format!(
                "fetching took longer than {seconds} s, and was given up"
            )));
        }
        let max = self.max_bytes.load(Ordering::Relaxed);
        if self.received.load(Ordering::Relaxed) > max {
            return Some(too_many_bytes(max));
        }
        None
    }

    /// Ends it, for a reason that is told unless there was one before.
    pub(super) fn fail(&self, error: Error) -> io::Error {
        let words = error.to_string();
        locked(&self.cause).get_or_insert(error);
        self.interrupt.store(true, Ordering::Relaxed);
        if let Some(child) = locked(&self.child).as_mut() {
            // It may be gone by itself.
            child.kill().ok();
        }
        io::Error::other(words)
    }

    /// Fails where it must end now.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.reason() {
            Some(reason) => {
                self.fail(reason.clone());
                Err(reason)
            }
            None => Ok(()),
        }
    }

    /// The other side is waited for from now on.
    pub(super) fn wait(&self) {
        *locked(&self.waiting) = Some(Instant::now());
    }

    /// So many bytes came.
    pub(super) fn receive(&self, bytes: usize) -> io::Result<()> {
        *locked(&self.waiting) = None;
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        match self.reason() {
            Some(reason) => Err(self.fail(reason)),
            None => Ok(()),
        }
    }

    pub(super) fn check_silence(&self) -> Result<(), Error> {
        let since = *locked(&self.waiting);
        if since.is_some_and(|since| since.elapsed() > self.limits.silence) {
            let seconds = self.limits.silence.as_secs_f32();
            let error = Error::Unavailable(format!("the server sent nothing for {seconds} s"));
            self.fail(error.clone());
            return Err(error);
        }
        Ok(())
    }

    /// The process at the other end; it is ended with this.
    pub(super) fn adopt(&self, child: Child) {
        *locked(&self.child) = Some(child);
        if self.interrupt.load(Ordering::Relaxed) {
            self.end_child();
        }
    }

    pub(super) fn end_child(&self) {
        let child = locked(&self.child).take();
        if let Some(mut child) = child {
            // Both fail only where it is gone.
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// Why it was ended, and forgets it.
    pub(super) fn take_cause(&self) -> Option<Error> {
        self.interrupt.store(false, Ordering::Relaxed);
        *locked(&self.waiting) = None;
        locked(&self.cause).take()
    }

    /// Bytes that may still come, as a part of all: `1` of `2` is half.
    pub(super) fn spend(&self, part: u64, of: u64) {
        let received = self.received.load(Ordering::Relaxed);
        let left = self.limits.bytes.saturating_sub(received);
        let max = received + left / of.max(1) * part;
        self.max_bytes.store(max, Ordering::Relaxed);
    }

    /// Lets fewer bytes come during some work: those of a list, which is kept in memory.
    pub(super) fn within<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        let max = self.max_bytes.load(Ordering::Relaxed);
        let fewer = self.received.load(Ordering::Relaxed).saturating_add(bytes);
        self.max_bytes.store(max.min(fewer), Ordering::Relaxed);
        let done = work();
        self.max_bytes.store(max, Ordering::Relaxed);
        done
    }

    /// Does the work, and watches meanwhile what it cannot: time, silence, and what is
    /// written to the folder for packs.
    pub(super) fn watch<T>(&self, packs: &Path, work: impl FnOnce() -> T) -> T {
        let before: Vec<_> = entries(packs).into_iter().map(|(path, _)| path).collect();
        *locked(&self.is_done) = false;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut is_done = locked(&self.is_done);
                while !*is_done {
                    let waited = self.done.wait_timeout(is_done, CHECK_INTERVAL);
                    is_done = waited.unwrap_or_else(PoisonError::into_inner).0;
                    if *is_done {
                        break;
                    }
                    drop(is_done);
                    // What it must end for is kept, and told by whoever does the work.
                    self.look(packs, &before).ok();
                    is_done = locked(&self.is_done);
                }
            });
            // Also where the work panics.
            let _end = End(self);
            work()
        })
    }

    fn look(&self, packs: &Path, before: &[std::path::PathBuf]) -> Result<(), Error> {
        self.check()?;
        self.check_silence()?;
        let mut total = 0;
        for (path, bytes) in entries(packs) {
            if before.contains(&path) {
                continue;
            }
            total += bytes;
            if let Some(objects) = objects_in(&path).filter(|n| *n > self.limits.objects) {
                let max = self.limits.objects;
                let error = Error::TooLarge(format!(
                    "the repository has {objects} objects to fetch, at most {max} are allowed"
                ));
                self.fail(error.clone());
                return Err(error);
            }
        }
        let max = self.max_bytes.load(Ordering::Relaxed);
        // The index beside the pack counts too.
        if total > max.saturating_mul(2) {
            let error = too_many_bytes(max);
            self.fail(error.clone());
            return Err(error);
        }
        Ok(())
    }
}

/// Ends the watching, and the process at the other end.
struct End<'a>(&'a Guard);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *locked(&self.0.is_done) = true;
        self.0.done.notify_all();
        self.0.end_child();
    }
}

fn too_many_bytes(max: u64) -> Error {
    Error::TooLarge(format!(
        "the repository has more than {} to fetch, which is the limit",
        size(max)
    ))
}

/// Files of a folder with their bytes; files that vanish meanwhile count for nothing.
fn entries(folder: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.len())))
        .collect()
}

/// How many objects a pack says that it has.
fn objects_in(path: &Path) -> Option<u32> {
    let mut head = [0; 12];
    fs::File::open(path).ok()?.read_exact(&mut head).ok()?;
    let count = head.strip_prefix(b"PACK")?.last_chunk::<4>()?;
    Some(u32::from_be_bytes(*count))
}
