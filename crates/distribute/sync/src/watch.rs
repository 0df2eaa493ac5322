//! Watches of the folders of sources.
//!
//! An event says only that a look is due. After a burst of events a folder is looked at once it
//! is quiet, so that no skill is read while it is being written, and once more a little later:
//! of folders that are made quickly, one in the other, some events are missed. A folder that
//! cannot be watched is looked at in intervals.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::engine::locked;
use super::{Source, SourceKind};
use skill_folder::{Inode, inode};

/// How long a folder must be quiet before it is looked at.
const DEBOUNCE_DELAY: Duration = Duration::from_millis(200);
/// The longest wait for quiet: a build that writes all the time must not put a look off for good.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// How long after a look a folder is looked at once more.
const RECHECK_DELAY: Duration = Duration::from_secs(3);
/// How often a folder that cannot be watched is looked at.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The events of a folder since its last look.
#[derive(Debug, Clone, Copy)]
struct Burst {
    first: Instant,
    last: Instant,
}

/// Events that were not acted on yet, by source.
#[derive(Debug, Default)]
struct PendingChanges {
    bursts: Mutex<BTreeMap<String, Burst>>,
    happened: Notify,
}

impl PendingChanges {
    fn bursts(&self) -> MutexGuard<'_, BTreeMap<String, Burst>> {
        locked(&self.bursts)
    }

    fn record(&self, source: &str) {
        let now = Instant::now();
        let mut bursts = self.bursts();
        let burst = bursts.entry(source.to_owned());
        burst.and_modify(|burst| burst.last = now).or_insert(Burst {
            first: now,
            last: now,
        });
        drop(bursts);
        self.happened.notify_one();
    }
}

struct WatchedFolder {
    location: String,
    /// Its identity: a watch is of an inode, so a folder that is made anew has no watch.
    inode: Option<Inode>,
    /// None: it cannot be watched.
    watcher: Option<RecommendedWatcher>,
}

/// Watches of the folders of sources.
#[derive(Default)]
pub(crate) struct Watches {
    watched: BTreeMap<String, WatchedFolder>,
    pending: Arc<PendingChanges>,
    /// Looks that are due later.
    later: BTreeMap<String, Instant>,
}

impl Watches {
    /// Watches the folders of these sources, and no others.
    pub(crate) fn follow(&mut self, sources: &[Source]) {
        let folders: BTreeMap<&str, &str> = sources
            .iter()
            .filter(|source| source.kind == SourceKind::Directory && source.interval().is_some())
            .map(|source| (source.id.as_str(), source.location.as_str()))
            .collect();
        // A watcher that is dropped here ends its watches.
        let is_wanted = |id: &String, watched: &mut WatchedFolder| {
            folders.get(id.as_str()) == Some(&watched.location.as_str())
                && watched.inode == inode(Path::new(&watched.location))
        };
        self.watched.retain(is_wanted);
        for (id, location) in folders {
            if self.watched.contains_key(id) {
                continue;
            }
            // Before the watch: a folder that is replaced between the two has another inode at
            // the next round, and is watched again.
            let inode = inode(Path::new(location));
            let watcher = watch(id, Path::new(location), &self.pending);
            let watcher = watcher
                .inspect_err(|error| {
                    tracing::warn!(%error, source = id, "a folder cannot be watched: it is polled every {} s", POLL_INTERVAL.as_secs());
                })
                .ok();
            if watcher.is_none() {
                self.later
                    .insert(id.to_owned(), Instant::now() + POLL_INTERVAL);
            }
            let location = location.to_owned();
            self.watched.insert(
                id.to_owned(),
                WatchedFolder {
                    location,
                    inode,
                    watcher,
                },
            );
        }
        let watched = &self.watched;
        self.later.retain(|id, _| watched.contains_key(id));
    }

    /// The sources whose looks are due now, and when the next one is.
    pub(crate) fn due(&mut self, now: Instant) -> (Vec<String>, Option<Instant>) {
        let (mut due, mut next) = (Vec::new(), None::<Instant>);
        let mut wait = |at: Instant| next = Some(next.map_or(at, |next| next.min(at)));
        self.pending.bursts().retain(|id, burst| {
            let at = (burst.last + DEBOUNCE_DELAY).min(burst.first + MAX_WAIT);
            if at > now {
                wait(at);
                return true;
            }
            due.push(id.clone());
            false
        });
        for id in &due {
            self.later.insert(id.clone(), now + RECHECK_DELAY);
        }
        let mut blind = Vec::new();
        self.later.retain(|id, at| {
            if *at > now {
                wait(*at);
                return true;
            }
            due.push(id.clone());
            let watched = self.watched.get(id);
            if watched.is_some_and(|watched| watched.watcher.is_none()) {
                blind.push(id.clone());
            }
            false
        });
        for id in blind {
            wait(now + POLL_INTERVAL);
            self.later.insert(id, now + POLL_INTERVAL);
        }
        (due, next)
    }

    pub(crate) async fn happened(&self) {
        self.pending.happened.notified().await;
    }
}

fn watch(
    id: &str,
    folder: &Path,
    pending: &Arc<PendingChanges>,
) -> notify::Result<RecommendedWatcher> {
    let (source, root, pending) = (id.to_owned(), folder.to_owned(), Arc::clone(pending));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let concerns = match &event {
            // Our own reads are events too: without this each look would cause the next.
            Ok(event) if event.kind.is_access() => false,
            Ok(event) => {
                let mut paths = event.paths.iter();
                // Without a path where the queue of the system overflowed: anything may have
                // happened.
                event.paths.is_empty() || paths.any(|path| path.starts_with(&root))
            }
            Err(_) => true,
        };
        if concerns {
            pending.record(&source);
        }
    })?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    // A folder that is made anew has no events of its own; its parent has.
    if let Some(parent) = folder.parent() {
        watcher.watch(parent, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(id: &str, location: &Path) -> Source {
        Source {
            id: id.to_owned(),
            name: String::new(),
            kind: SourceKind::Directory,
            location: location.display().to_string(),
            reference: String::new(),
            path: String::new(),
            select: Vec::new(),
            namespace: None,
            interval_seconds: None,
            credential: None,
            webhook_secret: None,
            named_by: secret::NamedBy::Operator,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_looked_at_once_it_is_quiet_and_once_more_later() {
        let mut watches = Watches::default();
        let begin = Instant::now();
        let after = |millis| begin + Duration::from_millis(millis);
        watches.pending.record("a");
        assert_eq!(watches.due(begin), (vec![], Some(after(200))));
        tokio::time::advance(Duration::from_millis(150)).await;
        watches.pending.record("a");
        assert_eq!(watches.due(after(200)), (vec![], Some(after(350))));
        let (due, next) = watches.due(after(350));
        assert_eq!((due, next), (vec!["a".to_owned()], Some(after(3_350))));
        assert_eq!(watches.due(after(3_350)), (vec!["a".to_owned()], None));
        // One that never ends is looked at all the same.
        watches.pending.record("a");
        let first = Instant::now();
        for _ in 0..30 {
            tokio::time::advance(Duration::from_millis(100)).await;
            watches.pending.record("a");
        }
        assert_eq!(watches.due(first + MAX_WAIT).0, ["a"]);
    }

    #[tokio::test]
    async fn a_file_that_is_saved_is_told_and_one_that_is_read_is_not() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("skills");
        std::fs::create_dir_all(root.join("one")).expect("a folder");
        std::fs::write(root.join("one/SKILL.md"), "x").expect("a file");
        let mut watches = Watches::default();
        let gone = folder("gone", &place.path().join("x/y"));
        let both = [folder("a", &root), gone];
        watches.follow(&both);
        // What cannot be watched is looked at at intervals.
        let (_, next) = watches.due(Instant::now());
        assert!(next.is_some());
        std::fs::read(root.join("one/SKILL.md")).expect("a file");
        std::fs::write(place.path().join("beside"), "x").expect("a file");
        std::fs::write(root.join("one/SKILL.md"), "y").expect("a file");
        let told = tokio::time::timeout(Duration::from_secs(20), watches.happened());
        told.await.expect("told");
        let ids: Vec<String> = watches.pending.bursts().keys().cloned().collect();
        assert_eq!(ids, ["a"]);
        // A folder that is made anew.
        std::fs::remove_dir_all(&root).expect("removed");
        while !watches.due(Instant::now() + MAX_WAIT).0.is_empty() {}
        std::fs::create_dir(&root).expect("a folder");
        let told = tokio::time::timeout(Duration::from_secs(20), watches.happened());
        told.await.expect("told");
        watches.follow(&both);
        std::fs::write(root.join("in-it"), "x").expect("a file");
        let told = async {
            loop {
                watches.happened().await;
                if watches.due(Instant::now() + MAX_WAIT).0 == ["a"] {
                    return;
                }
            }
        };
        let told = tokio::time::timeout(Duration::from_secs(20), told);
        told.await.expect("told of what is in it");
    }
}
