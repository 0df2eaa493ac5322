//! The bounds of one update, and what ends it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Error;

/// How often the bounds are checked that no read or write notices.
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
    /// How long the other side may send nothing.
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

/// Watches one update. The first reason to end it is the one that is reported.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) limits: Limits,
    /// The flag that gix checks.
    pub(super) interrupt: AtomicBool,
    /// The flag that the caller sets.
    stop: Arc<AtomicBool>,
    start: Instant,
    received: AtomicU64,
    /// Less than the limit where bytes have to be left for another attempt.
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

    /// Ends it, for a reason that is reported unless there was one before.
    pub(super) fn fail(&self, error: Error) -> io::Error {
        let words = error.to_string();
        // The first: what fails after it is a consequence, such as a pipe of a program that was
        // killed here.
        locked(&self.cause).get_or_insert(error);
        self.interrupt.store(true, Ordering::Relaxed);
        if let Some(child) = locked(&self.child).as_mut() {
            // It may have ended by itself.
            child.kill().ok();
        }
        io::Error::other(words)
    }

    /// The same, as a result.
    fn end(&self, error: Error) -> Result<(), Error> {
        self.fail(error.clone());
        Err(error)
    }

    /// Fails where it must end now.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.reason().map_or(Ok(()), |reason| self.end(reason))
    }

    /// Starts to wait for the other side.
    pub(super) fn wait(&self) {
        *locked(&self.waiting) = Some(Instant::now());
    }

    /// Counts bytes that were received.
    pub(super) fn receive(&self, bytes: usize) -> io::Result<()> {
        *locked(&self.waiting) = None;
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        let reason = self.reason();
        reason.map_or(Ok(()), |reason| Err(self.fail(reason)))
    }

    pub(super) fn check_silence(&self) -> Result<(), Error> {
        let since = *locked(&self.waiting);
        if since.is_some_and(|since| since.elapsed() > self.limits.silence) {
            let seconds = self.limits.silence.as_secs_f32();
            let message = format!("the server sent nothing for {seconds} s");
            return self.end(Error::Unavailable(message));
        }
        Ok(())
    }

    /// Takes the process at the other end, and ends it with the update.
    pub(super) fn adopt(&self, child: Child) {
        *locked(&self.child) = Some(child);
        // `fail` may have run between the start of the process and the line above.
        if self.interrupt.load(Ordering::Relaxed) {
            self.end_child();
        }
    }

    pub(super) fn end_child(&self) {
        let child = locked(&self.child).take();
        if let Some(mut child) = child {
            // Both fail only where it has ended. Without the wait it would stay as a zombie.
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// Takes the reason that it was ended for, and resets it.
    pub(super) fn take_cause(&self) -> Option<Error> {
        self.interrupt.store(false, Ordering::Relaxed);
        *locked(&self.waiting) = None;
        locked(&self.cause).take()
    }

    /// Limits the bytes that may still come to a part of those that are left: `1` of `2` is half.
    pub(super) fn spend(&self, part: u64, of: u64) {
        let received = self.received.load(Ordering::Relaxed);
        let left = self.limits.bytes.saturating_sub(received);
        let max = received + left / of.max(1) * part;
        self.max_bytes.store(max, Ordering::Relaxed);
    }

    /// Limits the bytes further during some work: those of a list, which is held in memory.
    pub(super) fn within<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        let max = self.max_bytes.load(Ordering::Relaxed);
        let fewer = self.received.load(Ordering::Relaxed).saturating_add(bytes);
        self.max_bytes.store(max.min(fewer), Ordering::Relaxed);
        let done = work();
        self.max_bytes.store(max, Ordering::Relaxed);
        done
    }

    /// Does the work, and checks meanwhile what it cannot: time, silence, and the files that are
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
                    // The error is in `cause`, and is returned by the thread that does the work.
                    self.check_packs(packs, &before).ok();
                    is_done = locked(&self.is_done);
                }
            });
            // Also where the work panics: the scope waits for the thread above, which would not
            // end.
            let _end = End(self);
            work()
        })
    }

    fn check_packs(&self, packs: &Path, before: &[std::path::PathBuf]) -> Result<(), Error> {
        self.check()?;
        self.check_silence()?;
        let mut total = 0;
        for (path, bytes) in entries(packs) {
            if before.contains(&path) {
                continue;
            }
            total += bytes;
            // By the header of the pack, before gix has memory for each of them.
            if let Some(objects) = objects_in(&path).filter(|n| *n > self.limits.objects) {
                let max = self.limits.objects;
                return self.end(Error::TooLarge(format!(
                    "the repository has {objects} objects to fetch, at most {max} are allowed"
                )));
            }
        }
        let max = self.max_bytes.load(Ordering::Relaxed);
        // Twice, since the index of a pack counts too.
        if total > max.saturating_mul(2) {
            return self.end(too_many_bytes(max));
        }
        Ok(())
    }
}

/// Ends the thread that checks, and the process at the other end.
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

/// Files of a folder with their bytes, without those that vanish meanwhile.
fn entries(folder: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.len())))
        .collect()
}

/// The number of objects in the header of a pack.
fn objects_in(path: &Path) -> Option<u32> {
    let mut head = [0; 12];
    fs::File::open(path).ok()?.read_exact(&mut head).ok()?;
    let count = head.strip_prefix(b"PACK")?.last_chunk::<4>()?;
    Some(u32::from_be_bytes(*count))
}
