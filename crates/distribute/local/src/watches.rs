//! Being told that something happens in folders.
//!
//! Each folder is watched for itself, so that a link is followed where it was, and a folder
//! that was made anew is watched anew. What is told is only that one should look: what
//! happened, a look finds out. Where the system has no watches left, or tells nothing,
//! [`Watches::is_blind`] says so, and whoever looks does it at intervals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::io::Errno;
use tokio::sync::Notify;

use folders::Inode;

/// What was told.
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
    /// Folders that cannot be watched, which was said.
    refused: BTreeSet<PathBuf>,
    told: Arc<ChangeSignal>,
}

/// Something at this path may have changed a skill below the roots. Whatever else happens
/// beside them (a build in the project's folder) does not.
fn concerns(roots: &[PathBuf], path: &Path) -> bool {
    let is_near = |root: &PathBuf| path.starts_with(root) || root.starts_with(path);
    let is_beside = |parent: &Path| roots.iter().any(|root| root.starts_with(parent));
    roots.iter().any(is_near) || !path.parent().is_some_and(is_beside)
}

impl Watches {
    /// Watches that tell of what concerns these roots.
    pub(super) fn new(roots: Vec<PathBuf>, told: Arc<ChangeSignal>) -> Self {
        let teller = Arc::clone(&told);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            match event {
                // Our own reading, too.
                Ok(event) if event.kind.is_access() => return,
                Ok(event) => {
                    let mut paths = event.paths.iter();
                    if !event.need_rescan()
                        && !event.paths.is_empty()
                        && !paths.any(|path| concerns(&roots, path))
                    {
                        return;
                    }
                }
                Err(error) => {
                    if is_out_of_watches(&error) {
                        teller.blind.store(true, Ordering::Relaxed);
                    }
                }
            }
            teller.happened.notify_one();
        });
        let watcher = match watcher {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                told.blind.store(true, Ordering::Relaxed);
                tracing::warn!(%error, "skill folders are polled: the system reports no changes of them");
                None
            }
        };
        Self {
            watcher,
            watched: BTreeMap::new(),
            refused: BTreeSet::new(),
            told,
        }
    }

    /// None, which tell nothing.
    pub(super) fn none(told: Arc<ChangeSignal>) -> Self {
        Self {
            watcher: None,
            watched: BTreeMap::new(),
            refused: BTreeSet::new(),
            told,
        }
    }

    /// Watches these folders and no others. Says whether there are some that were not watched
    /// before, in which something may have happened meanwhile.
    pub(super) fn watch(&mut self, wanted: BTreeMap<PathBuf, Inode>) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        for (folder, inode) in &self.watched {
            if wanted.get(folder) != Some(inode)
                && let Err(error) = watcher.unwatch(folder)
            {
                // Its watch went with it, mostly.
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
                        // One that may be passed through and not be read, mostly. What is
                        // below it is watched for itself.
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
        if is_blind && !self.told.blind.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "folders of skills are looked at at intervals: the system has no watches left"
            );
        }
        if !is_blind {
            self.told.blind.store(false, Ordering::Relaxed);
        }
        has_new
    }

    /// Not all that happens is told.
    pub(super) fn is_blind(&self) -> bool {
        self.watcher.is_none() || self.told.blind.load(Ordering::Relaxed)
    }
}

/// The system has no watches left, which all folders suffer from. Whatever else is wrong is
/// so of one folder.
fn is_out_of_watches(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(cause) => {
            let code = cause.raw_os_error();
            let out = [Errno::NOSPC, Errno::MFILE].map(Errno::raw_os_error);
            code.is_some_and(|code| out.contains(&code))
        }
        _ => false,
    }
}

/// The folder, or what it is in, went away: the next look misses it.
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
