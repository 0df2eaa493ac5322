//! One place: its skills, kept in step with its folders.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::folder_scanner::{FolderScanner, QUIET_INTERVAL, ScanResult, Skipped};
use super::watches::{ChangeSignal, Watches};
use super::{AgentFolders, Limits};
use executor::Stop;
use model::{Event, EventKind, Principal, SkillKey};
use registry::{LocalPast, LocalSkills, Registry};
use search::{LocalIndex, SearchIndex};

/// How long a place must be quiet before it is scanned.
const DEBOUNCE_DELAY: Duration = Duration::from_millis(100);
/// The longest wait for quiet.
const MAX_DEBOUNCE: Duration = Duration::from_millis(300);
/// How often a place is scanned without events.
const UNWATCHED_POLL_INTERVAL: Duration = Duration::from_millis(300);
/// How often a place is scanned in spite of events: some may be lost.
const WATCHED_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after a fault; each one that follows doubles it.
const BACKOFF: Duration = Duration::from_millis(500);
/// The longest pause after a fault.
const MAX_BACKOFF: Duration = Duration::from_mins(1);
/// Lists of changes that a listener may lag behind.
const CHANGE_QUEUE_CAPACITY: usize = 64;

/// The events of one scan.
pub type Change = Arc<[Event]>;

/// The skills of the store with those of a place in front, as they were at a time.
#[derive(Debug, Clone)]
pub struct OverlaySnapshot {
    /// All of them.
    pub registry: Registry,
    /// The index of all of them.
    pub search: SearchIndex,
    /// The skills of the place alone.
    pub local: Arc<LocalSkills>,
    /// Folders that are shown to nobody.
    pub skipped: Arc<[Skipped]>,
}

/// A place and its listeners.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) place: AgentFolders,
    snapshot: ArcSwap<OverlaySnapshot>,
    changes: broadcast::Sender<Change>,
    is_ready: watch::Sender<bool>,
    /// The number of listeners.
    followers: AtomicUsize,
    used: Mutex<Instant>,
    pub(super) stop: CancellationToken,
}

/// Changes of the skills of a place, for as long as somebody listens.
#[derive(Debug)]
pub struct Changes {
    overlay: Arc<Overlay>,
    receiver: broadcast::Receiver<Change>,
    /// The last event of each skill that the listener has not seen deleted.
    known: BTreeMap<SkillKey, Event>,
}

impl Changes {
    /// Waits for the next ones. A listener that was too slow gets the differences between the
    /// skills now and those that it knows of, deleted ones too.
    ///
    /// Cancelling loses nothing.
    pub async fn next(&mut self) -> Change {
        loop {
            let change = match self.receiver.recv().await {
                Ok(change) => change,
                Err(broadcast::error::RecvError::Lagged(_)) => self.catch_up(),
                // The sender is in the overlay, which this holds.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            };
            if change.is_empty() {
                continue;
            }
            for event in change.iter() {
                let key = event.skill_id.key();
                if event.kind == EventKind::Deleted {
                    self.known.remove(&key);
                } else {
                    self.known.insert(key, event.clone());
                }
            }
            return change;
        }
    }

    /// The differences between the skills now and those that the listener knows of.
    fn catch_up(&mut self) -> Change {
        // Before the snapshot: it has the effect of all changes that are dropped here.
        self.receiver = self.receiver.resubscribe();
        events(&self.known, &self.overlay.snapshot().local).into()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // First: between the two lines the place would else be unused since long ago, and given up.
        self.overlay.touch();
        self.overlay.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Overlay {
    pub(super) fn new(
        place: AgentFolders,
        registry: Registry,
        search: SearchIndex,
        stop: CancellationToken,
    ) -> Self {
        Self {
            place,
            snapshot: ArcSwap::from_pointee(OverlaySnapshot {
                registry,
                search,
                local: Arc::default(),
                skipped: Arc::default(),
            }),
            changes: broadcast::channel(CHANGE_QUEUE_CAPACITY).0,
            is_ready: watch::Sender::new(false),
            followers: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            stop,
        }
    }

    /// Notes a use of the place.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since when the place has not been used; none: it has a listener.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.followers.load(Ordering::Relaxed) == 0).then_some(used)
    }

    /// The skills now.
    pub(super) fn snapshot(&self) -> Arc<OverlaySnapshot> {
        self.snapshot.load_full()
    }

    /// Waits until the place was scanned once, or for `max`.
    pub(super) async fn ready(&self, max: Duration) {
        let mut is_ready = self.is_ready.subscribe();
        // A late scan is no error: the call sees the skills of the store, and the next one more.
        let _late = tokio::time::timeout(max, is_ready.wait_for(|ready| *ready)).await;
    }

    /// Ends the wait of all callers.
    pub(super) fn end(&self) {
        self.is_ready.send_replace(true);
    }

    pub(super) fn changes(self: &Arc<Self>) -> Changes {
        self.followers.fetch_add(1, Ordering::Relaxed);
        // Before the snapshot: a change in between comes twice, and is not lost.
        let receiver = self.changes.subscribe();
        Changes {
            receiver,
            known: latest(&self.snapshot().local),
            overlay: Arc::clone(self),
        }
    }

    /// Publishes the result of a scan.
    fn apply(
        &self,
        looked: &mut ScanResult,
        (registry, search): (&Registry, &SearchIndex),
        index: &mut Index,
    ) {
        let before = self.snapshot();
        let skipped: Arc<[Skipped]> = std::mem::take(&mut looked.skipped).into();
        for new in skipped.iter().filter(|one| !before.skipped.contains(one)) {
            let (folder, reason) = (new.folder.display(), &new.reason);
            tracing::info!(%folder, %reason, "a folder is no skill to its agents");
        }
        let local = looked.skills.take();
        let local = local.unwrap_or_else(|| Arc::clone(&before.local));
        let front = registry.with_local(Arc::clone(&local));
        let heads = front.local_heads();
        let shown: Vec<SkillKey> = heads.iter().map(|head| head.id.key()).collect();
        let is_stale = !Arc::ptr_eq(&local, &index.of) || shown != index.shown || index.is_due();
        if !is_stale && skipped == before.skipped {
            return;
        }
        let publish = |index: &Index| {
            let search = match &index.made {
                Some(index) => search.with_local(front.clone(), index.clone()),
                None => search.clone(),
            };
            self.snapshot.store(Arc::new(OverlaySnapshot {
                registry: front.clone(),
                search,
                local: Arc::clone(&local),
                skipped: Arc::clone(&skipped),
            }));
        };
        // Names first, since an index takes longer: for a moment skills are found by their old
        // words.
        publish(index);
        if is_stale {
            if shown.is_empty() {
                (index.made, index.retry) = (None, None);
            } else {
                match search.local(front.clone(), index.made.as_ref()) {
                    Ok(made) => (index.made, index.retry) = (Some(made), None),
                    Err(error) => {
                        let failures = index.retry.map_or(0, |(_, failures)| failures) + 1;
                        let pause = backoff(failures);
                        index.retry = Some((Instant::now() + pause, failures));
                        tracing::warn!(%error, ?pause, "skills of folders cannot be found by search until they are indexed again");
                    }
                }
            }
            index.of = Arc::clone(&local);
            index.shown = shown;
            publish(index);
        }
        // After the snapshot: a listener that asks for the skill at once finds it.
        let events = events(&latest(&before.local), &local);
        if !events.is_empty() {
            // It fails where nobody listens.
            let _heard = self.changes.send(events.into());
        }
    }
}

/// The index of a place, and what it was made of.
#[derive(Debug, Default)]
pub(super) struct Index {
    made: Option<LocalIndex>,
    of: Arc<LocalSkills>,
    shown: Vec<SkillKey>,
    /// The last attempt failed: when the next one is, and how many failed.
    retry: Option<(Instant, u32)>,
}

impl Index {
    fn is_due(&self) -> bool {
        self.retry.is_some_and(|(at, _)| at <= Instant::now())
    }
}

/// The pause after a number of faults in a row.
fn backoff(faults: u32) -> Duration {
    let times = 1_u32 << faults.saturating_sub(1).min(16);
    BACKOFF.saturating_mul(times).min(MAX_BACKOFF)
}

fn event(skill: &registry::LocalSkill) -> Event {
    let version = skill.version();
    let is_held = skill.held().is_some();
    Event {
        kind: EventKind::Published,
        skill_id: skill.id().clone(),
        version: Some(version.number),
        semantic_version: Some(version.semantic.clone()),
        digest: Some(version.digest),
        active: (!is_held).then_some(version.number),
        held: is_held,
        time: version.created_at,
        actor: Principal::local(),
    }
}

/// The latest event of each skill.
fn latest(skills: &LocalSkills) -> BTreeMap<SkillKey, Event> {
    let events = skills.iter().map(|skill| event(skill));
    events.map(|event| (event.skill_id.key(), event)).collect()
}

/// The events that lead from one state to another.
fn events(before: &BTreeMap<SkillKey, Event>, now: &LocalSkills) -> Vec<Event> {
    let gone = before.iter().filter(|(key, _)| now.get(key).is_none());
    let gone = gone.map(|(_, event)| Event {
        kind: EventKind::Deleted,
        active: None,
        ..event.clone()
    });
    // Compared as events: after a fault all skills are read anew, which is no change.
    let others = now.iter().map(|skill| event(skill));
    let others = others.filter(|event| before.get(&event.skill_id.key()) != Some(event));
    gone.chain(others).collect()
}

/// Keeps an overlay in step.
pub(super) struct Keeper {
    pub(super) overlay: Arc<Overlay>,
    pub(super) registry: Registry,
    pub(super) search: SearchIndex,
    pub(super) limits: Limits,
    /// Held during a scan.
    pub(super) permits: Arc<Semaphore>,
    /// The folders are watched.
    pub(super) is_watched: bool,
}

/// The state between two scans.
struct Work {
    scanner: FolderScanner,
    watches: Watches,
    index: Index,
}

/// How a scan ended.
enum ScanEnd {
    /// The state for the next one, and whether that is due soon.
    Scanned(Box<Work>, bool),
    /// The place is not used any more.
    Stopped,
    /// By a panic, which lost the state. The snapshot is as before.
    Broke,
}

impl Keeper {
    /// Scans whenever something happens, until `leaves` returns true, as the place is not used any
    /// more, or it is stopped.
    pub(super) async fn keep(self, leaves: impl Fn(&Arc<Overlay>) -> bool) {
        let signal = Arc::new(ChangeSignal::default());
        // Not a part of `Work`: after a panic the numbers of versions have to go on.
        let past = Arc::default();
        let mut work = self.begin(&signal, &past);
        let mut faults = 0;
        let stop = self.overlay.stop.clone();
        loop {
            let end = self.scan(work).await;
            // Also after a panic: no caller waits for a place that cannot be scanned.
            self.overlay.end();
            let again;
            (work, again) = match end {
                ScanEnd::Scanned(work, again) => (*work, again),
                ScanEnd::Stopped => return,
                ScanEnd::Broke => {
                    faults += 1;
                    let pause = tokio::time::sleep(backoff(faults));
                    if stop.run_until_cancelled(pause).await.is_none() || leaves(&self.overlay) {
                        return;
                    }
                    work = self.begin(&signal, &past);
                    continue;
                }
            };
            faults = 0;
            let mut pause = match again {
                true => QUIET_INTERVAL,
                false if work.watches.is_blind() => UNWATCHED_POLL_INTERVAL,
                false => WATCHED_POLL_INTERVAL,
            };
            if let Some((at, _)) = work.index.retry {
                pause = pause.min(at.saturating_duration_since(Instant::now()));
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = signal.happened.notified() => debounce(&signal).await,
                () = tokio::time::sleep(pause) => {}
            }
            if leaves(&self.overlay) {
                return;
            }
        }
    }

    /// The state for a first scan, and for the one after a panic.
    fn begin(&self, signal: &Arc<ChangeSignal>, past: &Arc<Mutex<LocalPast>>) -> Work {
        let scanner = FolderScanner::new(
            &self.overlay.place,
            self.registry.clone(),
            self.limits,
            Arc::clone(past),
            Arc::clone(&self.overlay.snapshot().local),
        );
        let roots = scanner.roots().map(ToOwned::to_owned).collect();
        Work {
            watches: if self.is_watched {
                Watches::new(roots, Arc::clone(signal))
            } else {
                Watches::none(Arc::clone(signal))
            },
            scanner,
            index: Index::default(),
        }
    }

    /// Makes one scan, off the async threads.
    async fn scan(&self, mut work: Work) -> ScanEnd {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let Some(permit) = self.overlay.stop.run_until_cancelled(permit).await else {
            return ScanEnd::Stopped;
        };
        let (overlay, registry, search) = (
            Arc::clone(&self.overlay),
            self.registry.clone(),
            self.search.clone(),
        );
        let looked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            // By the registry's clock, which tests set.
            let clock = registry.now().into();
            let mut looked = work.scanner.look(Instant::now(), clock, &Stop::never());
            if looked.is_stopped {
                return (work, true);
            }
            // A folder that is watched from now on may have changed since it was scanned, without
            // an event.
            let has_new = work.watches.watch(std::mem::take(&mut looked.folders));
            overlay.apply(&mut looked, (&registry, &search), &mut work.index);
            (work, looked.again || has_new)
        });
        match looked.await {
            Ok((work, again)) => ScanEnd::Scanned(Box::new(work), again),
            // The runtime ends.
            Err(error) if error.is_cancelled() => ScanEnd::Stopped,
            Err(error) => {
                let folder = self.overlay.place.project.display();
                tracing::error!(%error, %folder, "a scan of folders with skills panicked, and is done again");
                ScanEnd::Broke
            }
        }
    }
}

/// Waits until it is quiet.
async fn debounce(signal: &ChangeSignal) {
    let end = Instant::now() + MAX_DEBOUNCE;
    loop {
        let until = (Instant::now() + DEBOUNCE_DELAY).min(end);
        let more = tokio::time::timeout_at(until, signal.happened.notified());
        if more.await.is_err() {
            return;
        }
    }
}
