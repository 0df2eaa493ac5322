//! One place, kept in step with its folders.

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

/// How long is waited for what else happens.
const DEBOUNCE_DELAY: Duration = Duration::from_millis(100);
/// And at most, where it does not end.
const MAX_DEBOUNCE: Duration = Duration::from_millis(300);
/// How often a place is looked at where nothing is told.
const UNWATCHED_POLL_INTERVAL: Duration = Duration::from_millis(300);
/// And where all is told: what was told may not be all.
const WATCHED_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// How long is waited after a fault, and twice as long after each that follows.
const BACKOFF: Duration = Duration::from_millis(500);
/// And at most.
const MAX_BACKOFF: Duration = Duration::from_mins(1);
/// Lists of changes that whoever follows may lag behind.
const CHANGE_QUEUE_CAPACITY: usize = 64;

/// What happened in folders at once.
pub type Change = Arc<[Event]>;

/// The skills of the store with those of a place in front, as they were at a time.
#[derive(Debug, Clone)]
pub struct OverlaySnapshot {
    /// All of them.
    pub registry: Registry,
    /// The index of all of them.
    pub search: SearchIndex,
    /// Those of the place alone.
    pub local: Arc<LocalSkills>,
    /// Folders that are no skill to anybody.
    pub skipped: Arc<[Skipped]>,
}

/// A place, and who is there.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) place: AgentFolders,
    seen: ArcSwap<OverlaySnapshot>,
    changes: broadcast::Sender<Change>,
    is_ready: watch::Sender<bool>,
    /// Who follows the changes.
    followers: AtomicUsize,
    used: Mutex<Instant>,
    pub(super) stop: CancellationToken,
}

/// Changes of the skills of a place, for as long as somebody listens.
#[derive(Debug)]
pub struct Changes {
    overlay: Arc<Overlay>,
    receiver: broadcast::Receiver<Change>,
    /// What the listener was told last of each skill that it takes to be there.
    told: BTreeMap<SkillKey, Event>,
}

impl Changes {
    /// The next ones. Waits for them. Whoever was too slow is told how what is there differs
    /// from what it was told before: of skills that are gone, too.
    ///
    /// Cancelling loses nothing.
    pub async fn next(&mut self) -> Change {
        loop {
            let change = match self.receiver.recv().await {
                Ok(change) => change,
                Err(broadcast::error::RecvError::Lagged(_)) => self.look(),
                // Its sender is with the overlay, which is here.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            };
            if change.is_empty() {
                continue;
            }
            for event in change.iter() {
                let key = event.skill_id.key();
                if event.kind == EventKind::Deleted {
                    self.told.remove(&key);
                } else {
                    self.told.insert(key, event.clone());
                }
            }
            return change;
        }
    }

    /// What is there, as it differs from what was told. What still waits is part of it.
    fn look(&mut self) -> Change {
        self.receiver = self.receiver.resubscribe();
        let seen = self.overlay.seen();
        let gone = self
            .told
            .iter()
            .filter(|(key, _)| seen.local.get(key).is_none());
        let gone = gone.map(|(_, event)| Event {
            kind: EventKind::Deleted,
            active: None,
            ..event.clone()
        });
        let now = seen.local.iter().map(|skill| event(skill, false));
        let others = now.filter(|event| self.told.get(&event.skill_id.key()) != Some(event));
        gone.chain(others).collect()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
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
            seen: ArcSwap::from_pointee(OverlaySnapshot {
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

    /// Somebody is there.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since when nobody has been there; none: somebody is.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.followers.load(Ordering::Relaxed) == 0).then_some(used)
    }

    /// What is seen now.
    pub(super) fn seen(&self) -> Arc<OverlaySnapshot> {
        self.seen.load_full()
    }

    /// Waits until the place was looked at for the first time, for so long at most.
    pub(super) async fn ready(&self, patience: Duration) {
        let mut is_ready = self.is_ready.subscribe();
        // The sender is here, and the time is a bound.
        let _late = tokio::time::timeout(patience, is_ready.wait_for(|ready| *ready)).await;
    }

    /// Nobody waits for it any more.
    pub(super) fn end(&self) {
        self.is_ready.send_replace(true);
    }

    pub(super) fn changes(self: &Arc<Self>) -> Changes {
        self.followers.fetch_add(1, Ordering::Relaxed);
        let receiver = self.changes.subscribe();
        let seen = self.seen();
        let told = seen.local.iter().map(|skill| {
            let event = event(skill, false);
            (event.skill_id.key(), event)
        });
        Changes {
            receiver,
            told: told.collect(),
            overlay: Arc::clone(self),
        }
    }

    /// Takes in what a look found.
    fn take_in(
        &self,
        looked: &mut ScanResult,
        stored: (&Registry, &SearchIndex),
        index: &mut Index,
    ) {
        let (registry, search) = stored;
        let before = self.seen();
        let skipped: Arc<[Skipped]> = std::mem::take(&mut looked.skipped).into();
        for new in skipped.iter().filter(|one| !before.skipped.contains(one)) {
            let (folder, reason) = (new.folder.display(), &new.reason);
            tracing::info!(%folder, %reason, "a folder is no skill to its agents");
        }
        let local = looked.skills.take();
        let events = local
            .as_ref()
            .map(|local| events(&before.local, local))
            .unwrap_or_default();
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
            self.seen.store(Arc::new(OverlaySnapshot {
                registry: front.clone(),
                search,
                local: Arc::clone(&local),
                skipped: Arc::clone(&skipped),
            }));
        };
        // Names first; what was indexed before is found by its old words for a moment.
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
        if !events.is_empty() {
            // Nobody may listen.
            let _heard = self.changes.send(events.into());
        }
    }
}

/// What is indexed.
#[derive(Debug, Default)]
pub(super) struct Index {
    made: Option<LocalIndex>,
    of: Arc<LocalSkills>,
    shown: Vec<SkillKey>,
    /// It could not be made of what there is: when that is tried again, and how often it was.
    retry: Option<(Instant, u32)>,
}

impl Index {
    fn is_due(&self) -> bool {
        self.retry.is_some_and(|(at, _)| at <= Instant::now())
    }
}

/// How long is waited after so many faults, one after the other.
fn backoff(faults: u32) -> Duration {
    let times = 1_u32 << faults.saturating_sub(1).min(16);
    BACKOFF.saturating_mul(times).min(MAX_BACKOFF)
}

fn event(skill: &registry::LocalSkill, is_gone: bool) -> Event {
    let version = skill.version();
    let kind = if is_gone {
        EventKind::Deleted
    } else {
        EventKind::Published
    };
    let is_held = skill.held().is_some();
    Event {
        kind,
        skill_id: skill.id().clone(),
        version: Some(version.number),
        semantic_version: Some(version.semantic.clone()),
        digest: Some(version.digest),
        active: (!is_gone && !is_held).then_some(version.number),
        held: is_held,
        time: version.created_at,
        actor: Principal::local(),
    }
}

/// What happened between two states.
fn events(before: &LocalSkills, now: &LocalSkills) -> Vec<Event> {
    let gone = before
        .iter()
        .filter(|skill| now.get(&skill.id().key()).is_none())
        .map(|skill| event(skill, true));
    let others = now.iter().filter(|skill| {
        let known = before.get(&skill.id().key());
        // After a fault all of them are read anew, which is no change.
        known.is_none_or(|known| event(known, false) != event(skill, false))
    });
    gone.chain(others.map(|skill| event(skill, false)))
        .collect()
}

/// What keeps an overlay in step.
pub(super) struct Keeper {
    pub(super) overlay: Arc<Overlay>,
    pub(super) registry: Registry,
    pub(super) search: SearchIndex,
    pub(super) limits: Limits,
    /// Whoever looks holds one.
    pub(super) permits: Arc<Semaphore>,
    /// The system tells what happens.
    pub(super) is_told: bool,
}

/// What is handed from one look to the next.
struct Work {
    look: FolderScanner,
    watches: Watches,
    index: Index,
}

/// How a look ended.
enum ScanEnd {
    /// What the next one goes on from, and whether that is soon.
    Scanned(Box<Work>, bool),
    /// There is nobody to look for.
    Stopped,
    /// By a fault, with which all is lost but what is seen.
    Broke,
}

impl Keeper {
    /// Looks whenever something happens, until `leaves` says that nobody is there any more, or
    /// it is stopped.
    pub(super) async fn keep(self, leaves: impl Fn(&Arc<Overlay>) -> bool) {
        let told = Arc::new(ChangeSignal::default());
        let past = Arc::default();
        let mut work = self.begin(&told, &past);
        let mut faults = 0;
        let stop = self.overlay.stop.clone();
        loop {
            let looked = match self.work(work).await {
                ScanEnd::Scanned(kept, again) => Some((*kept, again)),
                ScanEnd::Stopped => return,
                ScanEnd::Broke => None,
            };
            // Nobody waits for a place that cannot be looked at.
            self.overlay.is_ready.send_replace(true);
            let Some((kept, again)) = looked else {
                faults += 1;
                let pause = tokio::time::sleep(backoff(faults));
                if stop.run_until_cancelled(pause).await.is_none() || leaves(&self.overlay) {
                    return;
                }
                work = self.begin(&told, &past);
                continue;
            };
            work = kept;
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
                () = told.happened.notified() => debounce(&told).await,
                () = tokio::time::sleep(pause) => {}
            }
            if leaves(&self.overlay) {
                return;
            }
        }
    }

    /// Begins to look, from what is seen.
    fn begin(&self, told: &Arc<ChangeSignal>, past: &Arc<Mutex<LocalPast>>) -> Work {
        let look = FolderScanner::new(
            &self.overlay.place,
            self.registry.clone(),
            self.limits,
            Arc::clone(past),
            Arc::clone(&self.overlay.seen().local),
        );
        let roots = look.roots().map(ToOwned::to_owned).collect();
        Work {
            watches: if self.is_told {
                Watches::new(roots, Arc::clone(told))
            } else {
                Watches::none(Arc::clone(told))
            },
            look,
            index: Index::default(),
        }
    }

    /// One look, off the async threads.
    async fn work(&self, mut work: Work) -> ScanEnd {
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
            let clock = system_time(&registry);
            let mut looked = work.look.look(Instant::now(), clock, &Stop::never());
            if looked.is_stopped {
                return (work, true);
            }
            // What happened in a folder before it was watched, nobody told.
            let has_new = work.watches.watch(std::mem::take(&mut looked.folders));
            overlay.take_in(&mut looked, (&registry, &search), &mut work.index);
            (work, looked.again || has_new)
        });
        match looked.await {
            Ok((work, again)) => ScanEnd::Scanned(Box::new(work), again),
            // The runtime ends.
            Err(error) if error.is_cancelled() => ScanEnd::Stopped,
            Err(error) => {
                let folder = self.overlay.place.project.display();
                tracing::error!(%error, %folder, "a scan of skill folders failed, and starts again");
                ScanEnd::Broke
            }
        }
    }
}

/// The time by the clock of the registry, as file systems have it.
fn system_time(registry: &Registry) -> std::time::SystemTime {
    registry.now().into()
}

/// Waits for what else happens.
async fn debounce(told: &ChangeSignal) {
    let end = Instant::now() + MAX_DEBOUNCE;
    loop {
        let until = (Instant::now() + DEBOUNCE_DELAY).min(end);
        if tokio::time::timeout_at(until, told.happened.notified())
            .await
            .is_err()
        {
            return;
        }
    }
}
