//! A folder that an author works in, read anew after each save.
//!
//! An editor saves in steps: it writes another file, renames, keeps a copy, truncates a file and
//! fills it. So a folder is read once it has been quiet for a moment, and the result counts if the
//! folder is the same before and after the read. A folder that is never quiet is read all the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::folder_scanner::{above, watch};
use super::watches::{ChangeSignal, Watches};
use folders::{Inode, TooMany, absolute};

/// How long a folder must be quiet before it is read.
const DEBOUNCE_DELAY: Duration = Duration::from_millis(150);
/// The longest wait for quiet.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// How often a folder without events is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Files and folders that are visited.
const MAX_ENTRIES: usize = 50_000;

/// The stamp of a folder, or the message where it is gone or too large.
type FolderState = Result<u64, String>;

/// Watches a folder for saves.
pub struct FolderWatcher {
    root: PathBuf,
    signal: Arc<ChangeSignal>,
    watches: Watches,
    quiet: Duration,
    /// Its state when it was read last; none: it was not read.
    seen: Option<FolderState>,
}

impl FolderWatcher {
    /// Watches a folder that was not read yet.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let root = absolute(folder);
        let signal = Arc::<ChangeSignal>::default();
        let watches = Watches::new(vec![root.clone()], Arc::clone(&signal));
        Self {
            root,
            signal,
            watches,
            quiet: DEBOUNCE_DELAY,
            seen: None,
        }
    }

    /// Reads the folder: the first time at once, then after the next save.
    /// `read` blocks, and is called again where the folder changed meanwhile.
    ///
    /// # Panics
    /// Where `read` does.
    pub async fn next<T, F>(&mut self, read: F) -> T
    where
        T: Send + 'static,
        F: Fn() -> T + Clone + Send + 'static,
    {
        let mut looks = self.look().await;
        while self.seen.as_ref() == Some(&looks) {
            self.wait(if self.watches.is_blind() {
                POLL_INTERVAL
            } else {
                Duration::MAX
            })
            .await;
            looks = self.look().await;
        }
        let until = Instant::now() + MAX_WAIT;
        // The first read waits for nothing: somebody has just started the command.
        if self.seen.is_some() {
            looks = self.quiet(looks, until).await;
        }
        loop {
            let found = blocking(read.clone()).await;
            let after = self.look().await;
            let is_whole = after == looks || Instant::now() >= until;
            // The state before the read: if it is not whole, it differs from the next one.
            self.seen = Some(looks);
            if is_whole {
                return found;
            }
            looks = self.quiet(after, until).await;
        }
    }

    /// Waits until it is quiet, or until a time. Returns its state then.
    async fn quiet(&mut self, mut looks: FolderState, until: Instant) -> FolderState {
        while Instant::now() < until {
            let happened = self.wait(self.quiet).await;
            let now = self.look().await;
            // Both, since not every change has an event.
            if !happened && now == looks {
                break;
            }
            looks = now;
        }
        looks
    }

    /// Waits for an event, or for `max`; false: there was none.
    async fn wait(&self, max: Duration) -> bool {
        timeout(max, self.signal.happened.notified()).await.is_ok()
    }

    async fn look(&mut self) -> FolderState {
        let root = self.root.clone();
        let stamp = blocking(move || folders::stamp(&root, MAX_ENTRIES)).await;
        let mut watched = BTreeMap::<PathBuf, Inode>::new();
        above(&self.root, &mut watched);
        let looks = match stamp {
            Ok(stamp) => {
                watch(&mut watched, &stamp.folders);
                Ok(stamp.hash)
            }
            Err(error) => {
                // A folder that is gone is noticed by those above it.
                if let TooMany::Entries(_) = error {
                    watch(&mut watched, std::slice::from_ref(&self.root));
                }
                Err(error.to_string())
            }
        };
        self.watches.watch(watched);
        looks
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// As long as a loaded machine may need.
    const LIMIT: Duration = Duration::from_secs(20);
    /// So long nothing comes that is not to come.
    const NO_EVENT_TIMEOUT: Duration = Duration::from_secs(1);

    struct Desk {
        _place: tempfile::TempDir,
        file: PathBuf,
        saves: FolderWatcher,
    }

    impl Desk {
        fn new() -> Self {
            let place = tempfile::tempdir().expect("a folder");
            let folder = place.path().join("skill");
            fs::create_dir(&folder).expect("a folder");
            let file = folder.join("SKILL.md");
            fs::write(&file, "one").expect("a file");
            Self {
                saves: FolderWatcher::new(&folder),
                _place: place,
                file,
            }
        }

        async fn next(&mut self, max: Duration) -> Option<String> {
            let file = self.file.clone();
            let read = move || fs::read_to_string(&file).unwrap_or_else(|_| "gone".to_owned());
            timeout(max, self.saves.next(read)).await.ok()
        }
    }

    #[tokio::test]
    async fn a_folder_is_read_at_once_and_after_each_save() {
        let mut desk = Desk::new();
        assert_eq!(desk.next(LIMIT).await.as_deref(), Some("one"));
        assert_eq!(desk.next(NO_EVENT_TIMEOUT).await, None, "nothing was saved");
        fs::write(&desk.file, "two").expect("a file");
        assert_eq!(desk.next(LIMIT).await.as_deref(), Some("two"));
        // In a folder that was not there before.
        let below = desk.file.with_file_name("references");
        fs::create_dir(&below).expect("a folder");
        assert!(desk.next(LIMIT).await.is_some());
        fs::write(below.join("a.md"), "a").expect("a file");
        assert!(desk.next(LIMIT).await.is_some());
        // One that is away for a while is read when it is back.
        let folder = desk.file.parent().expect("a folder").to_owned();
        let away = folder.with_file_name("away");
        fs::rename(&folder, &away).expect("renamed");
        assert_eq!(desk.next(LIMIT).await.as_deref(), Some("gone"));
        fs::rename(&away, &folder).expect("renamed");
        assert_eq!(desk.next(LIMIT).await.as_deref(), Some("two"));
    }

    #[tokio::test]
    async fn a_save_in_halves_is_one() {
        let mut desk = Desk::new();
        desk.next(LIMIT).await;
        // Longer than any pause below, also on a loaded machine.
        desk.saves.quiet = Duration::from_secs(1);
        let (file, beside) = (desk.file.clone(), desk.file.with_extension("tmp"));
        let pause = || tokio::time::sleep(Duration::from_millis(20));
        // As editors do: away, cut off, filled in pieces, put back.
        let save = async {
            fs::rename(&file, &beside).expect("renamed");
            pause().await;
            fs::write(&beside, "").expect("a file");
            pause().await;
            fs::write(&beside, "tw").expect("a file");
            pause().await;
            fs::write(&beside, "two").expect("a file");
            pause().await;
            fs::rename(&beside, &file).expect("renamed");
        };
        let ((), found) = tokio::join!(save, desk.next(LIMIT));
        assert_eq!(found.as_deref(), Some("two"));
        assert_eq!(desk.next(NO_EVENT_TIMEOUT).await, None, "it was one save");
    }

    #[tokio::test]
    async fn what_changes_all_the_time_is_read_all_the_same() {
        let mut desk = Desk::new();
        desk.next(LIMIT).await;
        let file = desk.file.with_file_name("log.txt");
        let writer = tokio::spawn(async move {
            for at in 0.. {
                fs::write(&file, at.to_string()).expect("a file");
                tokio::time::sleep(DEBOUNCE_DELAY / 5).await;
            }
        });
        assert!(desk.next(LIMIT).await.is_some());
        writer.abort();
    }
}
