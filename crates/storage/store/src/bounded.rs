//! Bounds of time and memory for work that may not end.
//!
//! On some damaged files sled goes round in circles, and some of the circles take memory. A
//! thread cannot be ended from outside, so the work is left behind: the caller gets an error
//! that the files are damaged, and ends the process.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{OpenError, directory};

/// The interval between two checks of memory.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The bounds of a piece of work.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    time: Duration,
    /// The bytes by which the process may grow.
    memory: u64,
}

impl Bounds {
    /// Returns some minutes and a gibibyte, and more for a large store: enough on slow disks and
    /// small machines as well.
    fn of(directory: &Path) -> Self {
        const BYTES_PER_MIB: u64 = 1024 * 1024;
        let database = directory::store_path(directory).join("db");
        let bytes = fs::metadata(database).map_or(0, |metadata| metadata.len());
        Self {
            time: Duration::from_secs(180 + bytes / BYTES_PER_MIB),
            memory: 1024 * BYTES_PER_MIB + bytes,
        }
    }
}

/// Runs work that reads a data directory, within bounds that no undamaged one reaches.
///
/// # Errors
/// It takes more time or memory than that. The work goes on: end the process.
pub fn bounded<T: Send + 'static>(
    directory: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, OpenError> {
    within(Bounds::of(directory), work).map_err(|what| OpenError::damaged(directory, what))
}

fn within<T: Send + 'static>(
    bounds: Bounds,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, &'static str> {
    let (done, result) = channel();
    let (began, before) = (Instant::now(), resident());
    let span = tracing::Span::current();
    std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            // Nobody waits any more where it took too long.
            let _late = done.send(span.in_scope(work));
        })
        .map_err(|_| "there is no thread to read it with")?;
    loop {
        match result.recv_timeout(MEMORY_CHECK_INTERVAL.min(bounds.time)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => return Err("reading it failed"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if began.elapsed() >= bounds.time {
            return Err("reading it does not come to an end");
        }
        if resident().saturating_sub(before) > bounds.memory {
            return Err("reading it takes more memory than it can need");
        }
    }
}

/// Returns the resident bytes of the process; 0 where the system does not report them.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kibibytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const BOUNDS: Bounds = Bounds {
        time: Duration::from_secs(600),
        memory: 64 * 1024 * 1024,
    };

    #[test]
    fn a_larger_store_may_take_longer_and_more_memory() {
        const BYTES_PER_MIB: u64 = 1024 * 1024;
        let bounds = |directory: &Path| {
            let bounds = Bounds::of(directory);
            (bounds.time.as_secs(), bounds.memory)
        };
        let directory = tempfile::TempDir::new().expect("a folder");
        let directory = directory.path();
        assert_eq!(bounds(directory), (180, 1024 * BYTES_PER_MIB));
        let store = directory::store_path(directory);
        fs::create_dir_all(&store).expect("a folder");
        let database = fs::File::create(store.join("db")).expect("a file");
        database.set_len(300 * BYTES_PER_MIB).expect("a file");
        assert_eq!(bounds(directory), (480, 1324 * BYTES_PER_MIB));
    }

    #[test]
    fn work_that_ends_gives_what_it_came_to() {
        assert_eq!(within(BOUNDS, || 2 + 2), Ok(4));
    }

    #[test]
    fn work_that_does_not_end_is_left() {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let bounds = Bounds {
            time: Duration::from_millis(1),
            ..BOUNDS
        };
        let left = within(bounds, move || {
            while !stopped.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        stop.store(true, Ordering::Relaxed);
        assert_eq!(left, Err("reading it does not come to an end"));
    }

    #[test]
    fn work_that_takes_all_memory_is_left() {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let left = within(BOUNDS, move || {
            let mut taken = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                // More than the bound, and not without one.
                if taken.len() < 512 {
                    taken.push(vec![1_u8; 1024 * 1024]);
                }
            }
            taken.len()
        });
        stop.store(true, Ordering::Relaxed);
        assert_eq!(left, Err("reading it takes more memory than it can need"));
    }

    #[test]
    fn work_that_panics_is_an_error() {
        assert_eq!(
            within(BOUNDS, || std::panic::resume_unwind(Box::new(()))),
            Err::<(), _>("reading it failed")
        );
    }
}
