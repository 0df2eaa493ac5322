//! One place, kept in step with its folders.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::look::{Look, Looked, QUIET, Skipped};
use super::watches::{Told, Watches};
use super::{Limits, Place};
use executor::Stop;
use model::{Event, EventKind, Principal, SkillKey};
use registry::{LocalSkills, Registry};
use search::{LocalIndex, SearchIndex};

/// How long is waited for what else happens.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// And at most, where it does not end.
const MAX_DEBOUNCE: Duration = Duration::from_millis(300);
/// How often a place is looked at where nothing is told.
const BLIND: Duration = Duration::from_millis(300);
/// And where all is told: what was told may not be all.
const SELDOM: Duration = Duration::from_secs(10);
/// Lists of changes that whoever follows may lag behind.
const QUEUE: usize = 64;

/// What happened in folders at once.
pub type Change = Arc<[Event]>;

/// The skills of the store with those of a place in front, as they were at a time.
#[derive(Debug, Clone)]
pub struct Seen {
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
    pub(super) place: Place,
    seen: ArcSwap<Seen>,
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
}

impl Changes {
    /// The next ones. Waits for them. Whoever was too slow is told of all skills that there
    /// are.
    ///
    /// Cancelling loses nothing.
    pub async fn next(&mut self) -> Change {
        match self.receiver.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let seen = self.overlay.seen();
                let all = seen.local.iter().map(|skill| event(skill, false));
                all.collect()
            }
            // Its sender is with the overlay, which is here.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
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
        place: Place,
        registry: Registry,
        search: SearchIndex,
        stop: CancellationToken,
    ) -> Self {
        Self {
            place,
            seen: ArcSwap::from_pointee(Seen {
                registry,
                search,
                local: Arc::default(),
                skipped: Arc::default(),
            }),
            changes: broadcast::channel(QUEUE).0,
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
    pub(super) fn seen(&self) -> Arc<Seen> {
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
        Changes {
            receiver: self.changes.subscribe(),
            overlay: Arc::clone(self),
        }
    }

    /// Takes in what a look found.
    fn take_in(&self, looked: &mut Looked, stored: (&Registry, &SearchIndex), index: &mut Index) {
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
        let shown: Vec<SkillKey> = front
            .catalog()
            .by_location()
            .filter(|head| head.is_local())
            .map(|head| head.id.key())
            .collect();
        let is_stale = !Arc::ptr_eq(&local, &index.of) || shown != index.shown;
        if !is_stale && skipped == before.skipped {
            return;
        }
        let publish = |index: &Index| {
            let search = match &index.made {
                Some(index) => search.with_local(front.clone(), index.clone()),
                None => search.clone(),
            };
            self.seen.store(Arc::new(Seen {
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
                index.made = None;
            } else {
                match search.local(front.clone(), index.made.as_ref()) {
                    Ok(made) => index.made = Some(made),
                    Err(error) => {
                        tracing::warn!(%error, "skills of folders cannot be searched for");
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
        known.is_none_or(|known| !Arc::ptr_eq(known, skill))
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
    look: Look,
    watches: Watches,
    index: Index,
}

impl Keeper {
    /// Looks whenever something happens, until `leaves` says that nobody is there any more, or
    /// it is stopped.
    pub(super) async fn keep(self, leaves: impl Fn(&Arc<Overlay>) -> bool) {
        let told = Arc::new(Told::default());
        let look = Look::new(&self.overlay.place, self.registry.clone(), self.limits);
        let roots = look.roots().map(ToOwned::to_owned).collect();
        let mut work = Work {
            watches: if self.is_told {
                Watches::new(roots, Arc::clone(&told))
            } else {
                Watches::none(Arc::clone(&told))
            },
            look,
            index: Index::default(),
        };
        let stop = self.overlay.stop.clone();
        loop {
            let Some((kept, again)) = self.work(work).await else {
                return;
            };
            work = kept;
            self.overlay.is_ready.send_replace(true);
            let pause = match again {
                true => QUIET,
                false if work.watches.is_blind() => BLIND,
                false => SELDOM,
            };
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

    /// One look, off the async threads. Says whether to look again soon. None: it is over.
    async fn work(&self, mut work: Work) -> Option<(Work, bool)> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = self.overlay.stop.run_until_cancelled(permit).await?;
        let (overlay, registry, search) = (
            Arc::clone(&self.overlay),
            self.registry.clone(),
            self.search.clone(),
        );
        let looked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let clock = system_time(&registry);
            let mut looked = work.look.look(Instant::now(), clock, &Stop::never());
            // What happened in a folder before it was watched, nobody told.
            let has_new = work.watches.watch(std::mem::take(&mut looked.folders));
            overlay.take_in(&mut looked, (&registry, &search), &mut work.index);
            (work, looked.again || has_new)
        });
        match looked.await {
            Ok(looked) => Some(looked),
            Err(error) => {
                let folder = self.overlay.place.project.display();
                tracing::error!(%error, %folder, "skills of folders are not followed any more");
                None
            }
        }
    }
}

/// The time by the clock of the registry, as file systems have it.
fn system_time(registry: &Registry) -> std::time::SystemTime {
    registry.now().into()
}

/// Waits for what else happens.
async fn debounce(told: &Told) {
    let end = Instant::now() + MAX_DEBOUNCE;
    loop {
        let until = (Instant::now() + DEBOUNCE).min(end);
        if tokio::time::timeout_at(until, told.happened.notified())
            .await
            .is_err()
        {
            return;
        }
    }
}
