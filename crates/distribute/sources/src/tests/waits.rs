//! How long a look waits, and for whom: with one thread for disks, which a test holds.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rustix::fs::inotify;
use tokio::runtime::{Builder, Runtime};

use super::*;

/// A runtime with one thread for what blocks, whose time stands still.
fn runtime() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true);
    runtime.max_blocking_threads(1).build().expect("a runtime")
}

/// Keeps the thread for disks from anything else until it is dropped.
fn hold() -> mpsc::Sender<()> {
    let (hold, end) = mpsc::channel();
    tokio::task::spawn_blocking(move || end.recv());
    hold
}

/// A folder with a skill, its place, and that skill as it is listed.
async fn place(work: &Work) -> (TempDir, Directory, Item) {
    let root = TempDir::new().expect("a folder");
    write(root.path(), "one/SKILL.md", SKILL);
    let place = Directory::new(root.path()).expect("a place");
    let item = listing(&place, None, work).await.items.remove(0);
    (root, place, item)
}

/// Why something ended; none: it has not yet.
fn ended<T: std::fmt::Debug>(polled: Option<Result<T, Error>>) -> Option<String> {
    polled.map(|done| done.expect_err("an error").to_string())
}

#[test]
fn a_look_and_a_read_wait_for_the_disk_as_long_as_the_limit_says() {
    runtime().block_on(async {
        let (_folder, mut work) = work();
        work.limits.time = Duration::from_secs(60);
        let (_root, place, item) = place(&work).await;
        let _hold = hold();
        let mut look = place.look(None, &work);
        let mut read = place.read(&item, &work);
        assert_eq!(ended((&mut look).now_or_never()), None);
        assert_eq!(ended((&mut read).now_or_never()), None);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(ended((&mut look).now_or_never()), None);
        assert_eq!(ended((&mut read).now_or_never()), None);
        tokio::time::advance(Duration::from_secs(2)).await;
        let late = Some("the folder was not read in time".to_owned());
        assert_eq!(ended((&mut look).now_or_never()), late);
        assert_eq!(ended((&mut read).now_or_never()), late);
    });
}

#[test]
fn a_look_and_a_read_that_are_stopped_wait_for_nothing() {
    runtime().block_on(async {
        let (_folder, work) = work();
        let (_root, place, item) = place(&work).await;
        let _hold = hold();
        let mut look = place.look(None, &work);
        let mut read = place.read(&item, &work);
        assert_eq!(ended((&mut look).now_or_never()), None);
        assert_eq!(ended((&mut read).now_or_never()), None);
        work.stop.cancel();
        let stopped = Some("it was stopped".to_owned());
        assert_eq!(ended((&mut look).now_or_never()), stopped);
        assert_eq!(ended((&mut read).now_or_never()), stopped);
    });
}

/// Tells whether a file was opened.
struct Watch(OwnedFd);

impl Watch {
    fn new(file: &Path) -> Self {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let watch = inotify::init(flags).expect("a watch");
        inotify::add_watch(&watch, file, inotify::WatchFlags::OPEN).expect("a watched file");
        Self(watch)
    }

    /// It was since the last time that this was asked.
    fn was_opened(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        let mut was_opened = false;
        while events.next().is_ok() {
            was_opened = true;
        }
        was_opened
    }
}

#[test]
fn a_look_that_was_dropped_reads_no_file() {
    runtime().block_on(async {
        let (_folder, work) = work();
        let (root, place, _) = place(&work).await;
        let watch = Watch::new(&root.path().join("one/SKILL.md"));
        listing(&place, None, &work).await;
        assert!(watch.was_opened(), "a look that is wanted reads the file");

        let hold = hold();
        let mut look = place.look(None, &work);
        assert_eq!(ended((&mut look).now_or_never()), None);
        drop(look);
        drop(hold);
        // There is one thread, so what the look left behind is done before this.
        tokio::task::spawn_blocking(|| ())
            .await
            .expect("the thread");
        assert!(!watch.was_opened(), "nobody wants what is in the file");
    });
}
