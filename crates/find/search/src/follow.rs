//! Keeps the index in sync with the log.
//!
//! Writers are never held up: the index reads the log from its own position, debounces
//! events by [`DEBOUNCE_DELAY`], and commits them at once.
//!
//! After a start, and where the log no longer reaches back to its position, the index is
//! compared with the catalog, and skills that are behind are indexed some at a time: new events
//! never wait for more than [`MAX_EVENT_DELAY`]. The same happens once the store can be read again
//! after a failed write closed it for a while. Vectors are made afterwards, between commits; a
//! search does without those that are missing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::indexer::Indexer;
use super::{Error, Inner, scale, vectors};
use embed::Embedder;
use model::{Digest, SkillKey, caught};
use registry::{Registry, Watch, WatchFilter};

/// The delay in which events are collected for one commit.
const DEBOUNCE_DELAY: Duration = Duration::from_millis(100);
/// Skills that are indexed before a commit, so that many can be found soon.
const SKILLS_PER_COMMIT: usize = 10_000;
/// The longest wait of new events for skills that are behind.
const MAX_EVENT_DELAY: Duration = Duration::from_millis(250);
/// The delay before the next try after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The delay while the store is opened again.
const REOPEN_DELAY: Duration = Duration::from_secs(1);
/// Folder of the index of words.
pub(super) const INDEX: &str = "index";
/// Vectors that are made before a search may see them.
const VECTORS_PER_COMMIT: usize = 2_048;

/// Follows the log until it is stopped.
pub(super) async fn follow(inner: Arc<Inner>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let Err(failed) = sync(&inner, &stop).await else {
            return;
        };
        // The store could not be read, which says nothing about the index: it stays.
        if failed.passes() {
            tracing::warn!(error = %failed, "the search index waits for the store");
            stop.run_until_cancelled(tokio::time::sleep(REOPEN_DELAY))
                .await;
            continue;
        }
        tracing::error!(error = %failed, "the search index stopped; it is rebuilt");
        if inner.failed.swap(true, Ordering::Relaxed) {
            // It was being made anew already.
            stop.run_until_cancelled(tokio::time::sleep(RETRY_DELAY))
                .await;
        }
    }
}

/// Events: their skills, and the last position in the log.
type Events = (BTreeSet<SkillKey>, u64);

/// Opens the index, brings it up to date, and keeps it there. Work that has begun is never
/// abandoned: it checks for itself whether to stop.
async fn sync(inner: &Arc<Inner>, stop: &CancellationToken) -> Result<(), Error> {
    // Before the catalog is read: changes from here on come as events.
    let mut watch = inner.registry.watch("", WatchFilter::default())?;
    let mut damage = inner.damage.subscribe();
    let fresh = inner.failed.load(Ordering::Relaxed);
    let stopping = stop.clone();
    let mut work = blocking(Arc::clone(inner), move |inner| {
        let mut work = IndexWork::open(inner, fresh, stopping)?;
        work.compare(inner);
        Ok(work)
    })
    .await?;
    while !stop.is_cancelled() {
        let found = if work.is_idle() {
            tokio::select! {
                found = next_events(&mut watch) => found.map(Some),
                () = stop.cancelled() => return Ok(()),
                // Changes in between are found when the new index is compared.
                _ = damage.changed() => return Err(Error::Rebuilding),
            }
        } else {
            // There is work, so nothing is waited for: only what has happened already comes
            // along.
            debounced(&mut watch, Duration::ZERO).await
        };
        if damage.has_changed().unwrap_or(false) {
            return Err(Error::Rebuilding);
        }
        let events = match found {
            Err(registry::Error::ResumeTokenExpired) => {
                tracing::info!(
                    "the search index fell behind the log and is compared with all skills"
                );
                watch = inner.registry.watch("", WatchFilter::default())?;
                work = blocking(Arc::clone(inner), move |inner| {
                    work.compare(inner);
                    Ok(work)
                })
                .await?;
                continue;
            }
            found => found?,
        };
        work = blocking(Arc::clone(inner), move |inner| {
            if events.is_none() && work.behind.is_none() {
                work.make_vectors(inner)?;
            } else {
                let begun = Instant::now();
                let seen = events.as_ref().map_or(0, |(_, position)| *position);
                let seen = seen.max(work.seen);
                let position = inner.registry.log();
                work.index(inner, events, |done| {
                    // Catching up makes way for new events: a skill that is published is found
                    // soon, however much is behind.
                    let events_wait =
                        || position.borrow().end > seen && begun.elapsed() >= MAX_EVENT_DELAY;
                    done >= SKILLS_PER_COMMIT || events_wait()
                })?;
            }
            Ok(work)
        })
        .await?;
    }
    Ok(())
}

/// Waits for an event, and collects those that follow closely.
async fn next_events(watch: &mut Watch) -> Result<Events, registry::Error> {
    let (position, event) = watch.next().await?;
    let (mut keys, last) = debounced(watch, DEBOUNCE_DELAY).await?.unwrap_or_default();
    keys.insert(event.skill_id.key());
    Ok((keys, last.max(position)))
}

/// Collects events until there are enough, or `delay` has passed.
async fn debounced(watch: &mut Watch, delay: Duration) -> Result<Option<Events>, registry::Error> {
    let mut found: Option<Events> = None;
    let deadline = Instant::now() + delay;
    while found
        .as_ref()
        .is_none_or(|(keys, _)| keys.len() < SKILLS_PER_COMMIT)
    {
        match tokio::time::timeout_at(deadline, watch.next()).await {
            Ok(next) => {
                let (position, event) = next?;
                let (keys, last) = found.get_or_insert_default();
                keys.insert(event.skill_id.key());
                *last = position;
            }
            Err(_) => break,
        }
    }
    Ok(found)
}

/// Runs blocking work off the async threads. It is that of the follower, one piece after the
/// other, so it needs no permit.
async fn blocking<T: Send + 'static>(
    inner: Arc<Inner>,
    work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    // The engine of words panics on files that are damaged.
    let work = move || caught(|| work(&inner)).map_err(Error::Panicked)?;
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Panicked(error.to_string()))?
}

/// The writer of the index, and the file of vectors.
pub(super) struct IndexWork {
    pub(super) indexer: Indexer,
    cache: Option<Cache>,
    /// Skills whose documents are not as the catalog has them. None: it has caught up.
    pub(super) behind: Option<Vec<SkillKey>>,
    /// Events up to here were indexed, or are about skills that are behind.
    pub(super) seen: u64,
    /// The ordinal from which skills without a vector are searched next.
    from: u32,
    /// There may be such skills.
    pending: bool,
    stop: CancellationToken,
}

impl IndexWork {
    pub(super) fn open(inner: &Inner, fresh: bool, stop: CancellationToken) -> Result<Self, Error> {
        let folder = inner.folder.join(INDEX);
        std::fs::create_dir_all(&inner.folder)?;
        let registry: Registry = inner.registry.clone();
        let dimensions = inner.embedder.as_ref().map_or(0, |e| e.dimensions());
        let mut indexer = if fresh {
            Indexer::new(&folder, registry, dimensions)?
        } else {
            Indexer::open(&folder, registry, dimensions)?
        };
        if indexer.is_sparse() {
            drop(indexer);
            indexer = Indexer::new(&folder, inner.registry.clone(), dimensions)?;
        }
        let cache = inner.embedder.as_deref();
        let cache = cache.map(|embedder| Cache::open(&vectors_file(inner, embedder), embedder));
        let cache = cache.transpose()?;
        indexer.reload(0)?;
        let mut work = Self {
            pending: cache.is_some(),
            behind: None,
            seen: 0,
            indexer,
            cache,
            from: 0,
            stop,
        };
        work.remember_vectors();
        inner.publish(work.indexer.snapshot());
        Ok(work)
    }

    /// There is nothing to do until something happens.
    fn is_idle(&self) -> bool {
        self.behind.is_none() && !self.pending
    }

    /// Finds the skills that differ between catalog and index. The log must be watched before:
    /// changes in between come as events.
    pub(super) fn compare(&mut self, inner: &Inner) {
        self.seen = inner.registry.log().borrow().end;
        self.behind = Some(self.indexer.behind().into_iter().collect());
    }

    /// Indexes events, then skills that are behind until `enough` is true of their number, and
    /// commits.
    pub(super) fn index(
        &mut self,
        inner: &Inner,
        events: Option<Events>,
        enough: impl Fn(usize) -> bool,
    ) -> Result<(), Error> {
        let (keys, position) = events.unwrap_or_default();
        let seen = position.max(self.seen);
        let catches_up = self.behind.is_some();
        self.indexer.update(keys, &self.stop)?;
        if let Some(behind) = &mut self.behind {
            let mut done = 0;
            let some = std::iter::from_fn(|| {
                let key = (!enough(done)).then(|| behind.pop())?;
                done += 1;
                key
            });
            self.indexer.update(some, &self.stop)?;
        }
        // Nothing is committed and `seen` stays: the next start finds by comparison what is
        // missing.
        if self.stop.is_cancelled() {
            return Ok(());
        }
        self.seen = seen;
        self.pending = self.cache.is_some();
        self.from = 0;
        // Also where nothing was behind: it removes the documents that were deleted.
        if self.behind.as_ref().is_none_or(Vec::is_empty) {
            self.indexer.commit(seen)?;
            self.indexer.has_caught_up();
            // Only once all is there: an index that fails before is made anew again.
            inner.failed.store(false, Ordering::Relaxed);
            self.behind = None;
        } else {
            // The position stays where it was: `caught_up` waits for it, and older skills are
            // not in yet.
            self.indexer.commit(self.indexer.position())?;
        }
        if catches_up {
            self.remember_vectors();
        }
        inner.publish(self.indexer.snapshot());
        Ok(())
    }

    /// Gives each skill the vector that was made for its text before.
    fn remember_vectors(&mut self) {
        let Some(cache) = self.cache.as_ref().filter(|cache| !cache.is_empty()) else {
            return;
        };
        let snapshot = self.indexer.snapshot();
        for ordinal in self.indexer.pending(0, usize::MAX) {
            let row = snapshot
                .slot(ordinal)
                .and_then(|slot| cache.get(&slot.meaning));
            if let Some(row) = row {
                self.indexer.set_vector(ordinal, row);
            }
        }
    }

    /// Makes some of the vectors that are missing.
    fn make_vectors(&mut self, inner: &Inner) -> Result<(), Error> {
        let (Some(cache), Some(embedder)) = (&mut self.cache, &inner.embedder) else {
            return Ok(());
        };
        // The rows of the file were given to their skills by `remember_vectors`; from here on texts
        // are new.
        cache.forget();
        let ordinals = self
            .indexer
            .pending(self.from, embedder.batch().min(VECTORS_PER_COMMIT));
        let Some(last) = ordinals.last() else {
            self.pending = false;
            return Ok(());
        };
        // Past a skill whose text cannot be read as well, or it would be tried for ever.
        self.from = last.saturating_add(1);
        let snapshot = self.indexer.snapshot();
        let mut texts = Vec::new();
        for ordinal in ordinals {
            let Some(slot) = snapshot.slot(ordinal) else {
                continue;
            };
            match super::document::meaning_of(&inner.registry, slot) {
                Ok(text) => texts.push((ordinal, slot.meaning, text)),
                Err(error) => {
                    let error = Error::from(error);
                    if error.passes() {
                        return Err(error);
                    }
                    tracing::warn!(%error, skill = %slot.head.id, "the text of a skill cannot be read, so it has no vector");
                }
            }
        }
        cache.put(&embed(&mut self.indexer, &**embedder, &texts)?)?;
        inner.publish(self.indexer.snapshot());
        Ok(())
    }
}

/// Makes vectors of texts, each of which is that of the skill of an ordinal. Returns them as rows,
/// by the digests of the texts.
pub(super) fn embed(
    indexer: &mut Indexer,
    embedder: &dyn Embedder,
    texts: &[(u32, Digest, String)],
) -> Result<Vec<(Digest, Vec<i8>)>, Error> {
    let asked: Vec<&str> = texts.iter().map(|(_, _, text)| text.as_str()).collect();
    let vectors = embedder.embed(&asked)?;
    let rows = texts
        .iter()
        .zip(vectors)
        .map(|((ordinal, digest, _), vector)| {
            let row = vectors::row(&vector, scale(vector.len()));
            indexer.set_vector(*ordinal, &row);
            (*digest, row)
        });
    Ok(rows.collect())
}

/// The file of the vectors of an embedder. Each has its own, so that trying another one does not
/// cost the vectors that took hours.
fn vectors_file(inner: &Inner, embedder: &dyn Embedder) -> PathBuf {
    let digest = embedder.digest().hex();
    let begin = digest.get(..16).unwrap_or_default();
    inner.folder.join(format!("vectors-{begin}"))
}
