//! Watches of folders.
//!
//! Each folder has a watch of its own, so that a link is followed where it was, and a folder that
//! was made anew is watched anew. An event says only that a scan is due, which finds out what
//! happened. Where the system has no watches left, or no events, [`Watches::is_blind`] is true, and
//! the caller polls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::io::Errno;
use tokio::sync::Notify;

use folders::Inode;

/// The signal of watches to the task that scans.
#[derive(Debug, Default)]
pub(super) struct ChangeSignal {
    /// Something happened.
    pub(super) happened: Notify,
    blind: AtomicBool,
}

/// Watches of some folders.
pub(super) struct Watches {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeMap<PathBuf, Inode>,
    /// Folders that cannot be watched, of which the log has a warning.
    refused: BTreeSet<PathBuf>,
    signal: Arc<ChangeSignal>,
}

/// An event at this path may concern a skill below the roots. Other events next to them (of a build
/// in the project's folder) do not.
fn concerns(roots: &[PathBuf], path: &Path) -> bool {
    // Above a root too: a folder that holds it may be renamed.
    let is_near = |root: &PathBuf| path.starts_with(root) || root.starts_with(path);
    let is_beside = |parent: &Path| roots.iter().any(|root| root.starts_with(parent));
    roots.iter().any(is_near) || !path.parent().is_some_and(is_beside)
}

impl Watches {
    /// Watches that signal events of these roots.
    pub(super) fn new(roots: Vec<PathBuf>, signal: Arc<ChangeSignal>) -> Self {
        let sender = Arc::clone(&signal);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            match event {
                // Our own reads are events too: without this each scan would cause the next.
                Ok(event) if event.kind.is_access() => return,
                Ok(event) => {
                    let mut paths = event.paths.iter();
                    // `need_rescan`: the queue of the system overflowed, and events are lost.
                    if !event.need_rescan()
                        && !event.paths.is_empty()
                        && !paths.any(|path| concerns(&roots, path))
                    {
                        return;
                    }
                }
                Err(error) => {
                    if is_out_of_watches(&error) {
                        sender.blind.store(true, Ordering::Relaxed);
                    }
                }
            }
            sender.happened.notify_one();
        });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "folders of skills are polled: they have no events");
        });
        Self {
            watcher: watcher.ok(),
            ..Self::none(signal)
        }
    }

    /// No watches, which signal nothing.
    pub(super) fn none(signal: Arc<ChangeSignal>) -> Self {
        Self {
            watcher: None,
            watched: BTreeMap::new(),
            refused: BTreeSet::new(),
            signal,
        }
    }

    /// Watches these folders and no others. Returns whether some of them were not watched before:
    /// they may have changed meanwhile.
    pub(super) fn watch(&mut self, wanted: BTreeMap<PathBuf, Inode>) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        for (folder, inode) in &self.watched {
            if wanted.get(folder) != Some(inode)
                && let Err(error) = watcher.unwatch(folder)
            {
                // The watch of a folder that was deleted is gone already.
                tracing::trace!(%error, "a folder was not watched");
            }
        }
        self.refused.retain(|folder| wanted.contains_key(folder));
        let mut is_blind = false;
        let mut now = BTreeMap::new();
        let mut has_new = false;
        for (folder, inode) in wanted {
            if self.watched.get(&folder) != Some(&inode) {
                if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
                    if is_out_of_watches(&error) {
                        is_blind = true;
                    } else if !is_gone(&error) && self.refused.insert(folder.clone()) {
                        // Mostly one that may be entered and not read. The folders below it have
                        // their own watches, so this is no reason to poll.
                        let folder = folder.display();
                        tracing::warn!(%error, %folder, "a folder cannot be watched: changes in it are seen late");
                    }
                    continue;
                }
                self.refused.remove(&folder);
                has_new = true;
            }
            now.insert(folder, inode);
        }
        self.watched = now;
        if is_blind && !self.signal.blind.swap(true, Ordering::Relaxed) {
            tracing::warn!("folders of skills are polled: the system has no watches left");
        }
        // Other programs may have given watches back since.
        if !is_blind {
            self.signal.blind.store(false, Ordering::Relaxed);
        }
        has_new
    }

    /// Some events are missed.
    pub(super) fn is_blind(&self) -> bool {
        self.watcher.is_none() || self.signal.blind.load(Ordering::Relaxed)
    }
}

/// The system has no watches left, for any folder. All other errors are of one folder.
fn is_out_of_watches(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(cause) => {
            let code = cause.raw_os_error();
            // ENOSPC: `fs.inotify.max_user_watches`. EMFILE: `max_user_instances`, or files.
            let out = [Errno::NOSPC, Errno::MFILE].map(Errno::raw_os_error);
            code.is_some_and(|code| out.contains(&code))
        }
        _ => false,
    }
}

/// The folder, or one above it, is gone: the next scan does not have it.
fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound | ErrorKind::WatchNotFound => true,
        ErrorKind::Io(cause) => cause.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_beside_the_folders_of_skills_concerns_nobody() {
        let roots = ["/p/.claude/skills", "/h/.config/opencode/skills"].map(PathBuf::from);
        let concerning = [
            "/p/.claude",
            "/p/.claude/skills",
            "/p/.claude/skills/x/SKILL.md",
            "/p",
            "/h/.config",
            // Behind a link.
            "/elsewhere/x/SKILL.md",
        ];
        for path in concerning {
            assert!(concerns(&roots, Path::new(path)), "{path}");
        }
        for path in [
            "/p/target",
            "/p/Cargo.lock",
            "/p/.claude/settings.json",
            "/h/.config/x",
        ] {
            assert!(!concerns(&roots, Path::new(path)), "{path}");
        }
    }

    #[test]
    fn only_a_system_without_watches_makes_blind() {
        let gone = notify::Error::new(ErrorKind::PathNotFound);
        let missing = notify::Error::io(std::io::ErrorKind::NotFound.into());
        let out = notify::Error::new(ErrorKind::MaxFilesWatch);
        assert_eq!(
            [gone, missing, out].map(|error| is_out_of_watches(&error)),
            [false, false, true]
        );
        let code = |errno: Errno| {
            let error = std::io::Error::from_raw_os_error(errno.raw_os_error());
            is_out_of_watches(&notify::Error::io(error))
        };
        let codes = [
            Errno::NOSPC,
            Errno::MFILE,
            Errno::ACCESS,
            Errno::NAMETOOLONG,
        ];
        assert_eq!(codes.map(code), [true, true, false, false]);
    }

    #[test]
    fn whoever_has_watches_again_sees_again() {
        let told = Arc::new(ChangeSignal::default());
        let mut watches = Watches::new(Vec::new(), Arc::clone(&told));
        told.blind.store(true, Ordering::Relaxed);
        assert!(watches.is_blind());
        watches.watch(BTreeMap::new());
        assert!(!watches.is_blind());
        assert!(Watches::none(told).is_blind());
    }

    #[test]
    fn a_folder_that_cannot_be_watched_makes_nobody_look_at_intervals() {
        let told = Arc::new(ChangeSignal::default());
        let mut watches = Watches::new(Vec::new(), told);
        let folder = tempfile::tempdir().expect("a folder");
        let inode = folders::inode(folder.path()).expect("a folder");
        // No path is so long; for whoever may read everything, too.
        let refused = PathBuf::from(format!("/{}", "x/".repeat(4_000)));
        let wanted = [folder.path().to_owned(), refused.clone()];
        let wanted: BTreeMap<_, _> = wanted.into_iter().map(|path| (path, inode)).collect();
        for _ in 0..2 {
            watches.watch(wanted.clone());
            assert!(!watches.is_blind());
            assert!(watches.refused.iter().eq([&refused]));
        }
        watches.watch(BTreeMap::new());
        assert!(watches.refused.is_empty());
    }
}
