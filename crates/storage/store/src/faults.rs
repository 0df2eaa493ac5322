//! Faults for tests, those of other crates included (feature `testing`): a store that
//! cannot be read, a disk that stalls or breaks.
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "what may fail in a test"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tempfile::TempDir;

use crate::engine::Engine;
use crate::view::View;
use crate::{FileSync, Options, Store};

/// Options of a small store.
#[must_use]
pub fn options() -> Options {
    Options {
        reserve_bytes: 0,
        ..Options::default()
    }
}

/// Longer than a loaded machine needs. A read that holds up whoever is to open the database
/// again fails after that.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// A store whose database answers no read, as after a write that failed.
#[derive(Debug)]
pub struct Unreadable {
    view: Arc<View>,
    whole: Arc<Engine>,
    _folder: TempDir,
}

/// A database that answers no read.
fn engine(folder: &TempDir) -> Engine {
    let engine = Engine::open(&folder.path().join("store"), &options()).expect("a database");
    engine.db.drop_tree(b"records").expect("gone");
    engine
}

impl Unreadable {
    /// Of this store.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        let view = Arc::clone(&store.on_disk().expect("a data directory").view);
        let folder = TempDir::new().expect("a folder");
        view.fail();
        let whole = view.replace(engine(&folder)).expect("a database");
        Self {
            view,
            whole,
            _folder: folder,
        }
    }

    /// Opens its database again.
    pub fn open_again(self) {
        // Whoever has it since before lets go of it.
        let mut shared = self.whole;
        let whole = loop {
            match Arc::try_unwrap(shared) {
                Ok(whole) => break whole,
                Err(still) => shared = still,
            }
            std::thread::yield_now();
        };
        self.view.open(whole);
    }
}

/// Options with which reads wait as long as a test may take.
#[must_use]
pub fn patient() -> Options {
    Options {
        reopen_patience: READ_TIMEOUT,
        ..options()
    }
}

/// Goes on when the few tasks that were spawned before have begun: for one worker. Now and
/// then it takes the newest first, but never twice in a row.
pub async fn begun() {
    for _ in 0..2 {
        tokio::spawn(async {}).await.expect("a task");
    }
}

/// A disk that stalls and breaks when it is told to.
#[derive(Debug)]
pub struct Disk {
    stalls: Arc<AtomicBool>,
    broken: Arc<AtomicBool>,
    reached: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
}

impl Disk {
    /// A disk, and how a store syncs its files to it.
    #[must_use]
    pub fn new() -> (Self, FileSync) {
        let (reached_sender, reached) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        let gone = Mutex::new(gone);
        let disk = Self {
            stalls: Arc::default(),
            broken: Arc::default(),
            reached,
            go,
        };
        let (stalls, broken) = (Arc::clone(&disk.stalls), Arc::clone(&disk.broken));
        let sync = FileSync::new(move |file| {
            if stalls.swap(false, Ordering::SeqCst) {
                reached_sender.send(()).expect("a test");
                gone.lock().expect("a lock").recv().expect("a test");
            }
            if broken.load(Ordering::SeqCst) {
                return Err(std::io::Error::other("the disk is gone"));
            }
            file.sync_data()
        });
        (disk, sync)
    }

    /// Has the next sync stall.
    pub fn stall(&self) {
        self.stalls.store(true, Ordering::SeqCst);
    }

    /// Waits until a sync stalls. Blocks.
    pub fn reached(&self) {
        self.reached.recv().expect("a sync");
    }

    /// Lets the sync that stalls go on.
    pub fn go(&self) {
        self.go.send(()).expect("a sync that waits");
    }

    /// Has syncs fail from now on, or go well again.
    pub fn break_down(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }
}
