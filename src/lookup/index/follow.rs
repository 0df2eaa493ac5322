//! Keeping the index in step with the log.
//!
//! Writers are never held up: the index reads the log from its own place, gathers
//! what happened within [`GATHER`], and commits it at once. Vectors are made
//! afterwards, some at a time, between commits; a search does without those that
//! are not there yet.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::embed::{Cache, Embedder};
use super::indexer::Indexer;
use super::{Error, Inner, row_of};
use crate::model::SkillKey;
use crate::registry::{self, Registry, Watch, WatchFilter};

/// How long events are gathered before they are committed together.
const GATHER: Duration = Duration::from_millis(100);
/// Skills that are indexed before a commit, so that much can be found soon.
const COMMIT: usize = 10_000;
/// How long whoever failed waits before the next try.
const PATIENCE: Duration = Duration::from_secs(5);
/// Folder of the index of words.
pub(super) const INDEX: &str = "index";
/// Vectors that are made before a search may see them.
const VECTORS: usize = 2_048;

/// Follows the log until it is told to stop.
pub(super) async fn follow(inner: Arc<Inner>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let Err(failed) = keep(&inner, &stop).await else {
            return;
        };
        tracing::error!(error = %failed, "the search index stopped; it is made anew");
        inner.failed.store(true, Ordering::Relaxed);
        stop.run_until_cancelled(tokio::time::sleep(PATIENCE)).await;
    }
}

/// Opens the index, brings it up to date, and keeps it there. Work that has begun is
/// never left behind: it looks for itself whether it is to stop.
async fn keep(inner: &Arc<Inner>, stop: &CancellationToken) -> Result<(), Error> {
    let mut watch = inner.registry.watch("", WatchFilter::default())?;
    let fresh = inner.failed.load(Ordering::Relaxed);
    let stopping = stop.clone();
    let mut work = blocking(Arc::clone(inner), move |inner| {
        let mut work = Work::open(inner, fresh, stopping)?;
        work.catch_up(inner)?;
        Ok(work)
    })
    .await?;
    inner.failed.store(false, Ordering::Relaxed);
    while !stop.is_cancelled() {
        // Vectors wait for events, not events for vectors.
        if work.pending {
            work = blocking(Arc::clone(inner), move |inner| {
                work.make_vectors(inner)?;
                Ok(work)
            })
            .await?;
        }
        let found = if work.pending {
            gathered(&mut watch, Duration::ZERO).await?
        } else {
            let Some(next) = stop.run_until_cancelled(watch.next()).await else {
                return Ok(());
            };
            let (position, event) = next?;
            let (mut keys, last) = gathered(&mut watch, GATHER).await?.unwrap_or_default();
            keys.insert(event.skill_id.key());
            Some((keys, last.max(position)))
        };
        if let Some((keys, position)) = found {
            work = blocking(Arc::clone(inner), move |inner| {
                work.update(inner, keys, position)?;
                Ok(work)
            })
            .await?;
        }
    }
    Ok(())
}

/// What happened until there was a pause, or for so long.
async fn gathered(
    watch: &mut Watch,
    patience: Duration,
) -> Result<Option<(BTreeSet<SkillKey>, u64)>, registry::Error> {
    let mut found: Option<(BTreeSet<SkillKey>, u64)> = None;
    let deadline = tokio::time::Instant::now() + patience;
    while found.as_ref().is_none_or(|(keys, _)| keys.len() < COMMIT) {
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

/// Runs work that blocks off the async threads.
async fn blocking<T: Send + 'static>(
    inner: Arc<Inner>,
    work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(move || work(&inner))
        .await
        .map_err(|error| Error::Task(error.to_string()))?
}

/// The writer, and where vectors are kept.
struct Work {
    indexer: Indexer,
    cache: Option<Cache>,
    /// Where the search for skills without a vector goes on.
    from: u32,
    /// There may be such skills.
    pending: bool,
    stop: CancellationToken,
}

impl Work {
    fn open(inner: &Inner, fresh: bool, stop: CancellationToken) -> Result<Self, Error> {
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
        let cache = match &inner.embedder {
            Some(embedder) => {
                let file = vectors_file(inner, &**embedder);
                Some(Cache::open(&file, &**embedder)?)
            }
            None => None,
        };
        indexer.reload(0)?;
        let mut work = Self {
            pending: cache.is_some(),
            indexer,
            cache,
            from: 0,
            stop,
        };
        work.remember_vectors();
        work.publish(inner);
        Ok(work)
    }

    /// Indexes all that the catalog has and the index has not.
    fn catch_up(&mut self, inner: &Inner) -> Result<(), Error> {
        let position = inner.registry.store().position().borrow().end;
        let behind: Vec<SkillKey> = self.indexer.behind().into_iter().collect();
        for keys in behind.chunks(COMMIT) {
            self.indexer.update(keys.iter().cloned(), &self.stop)?;
            if self.stop.is_cancelled() {
                return Ok(());
            }
            self.indexer.commit(0)?;
            self.remember_vectors();
            self.publish(inner);
        }
        // Also where nothing was behind: documents that were taken out are gone then.
        self.indexer.commit(position)?;
        self.indexer.has_caught_up();
        self.publish(inner);
        self.pending = self.cache.is_some();
        Ok(())
    }

    fn update(
        &mut self,
        inner: &Inner,
        keys: BTreeSet<SkillKey>,
        position: u64,
    ) -> Result<(), Error> {
        self.indexer.update(keys, &self.stop)?;
        if self.stop.is_cancelled() {
            return Ok(());
        }
        self.indexer.commit(position)?;
        self.pending = self.cache.is_some();
        self.from = 0;
        self.publish(inner);
        Ok(())
    }

    fn publish(&self, inner: &Inner) {
        inner.publish(self.indexer.snapshot());
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
        cache.forget();
        let ordinals = self
            .indexer
            .pending(self.from, embedder.batch().min(VECTORS));
        let Some(last) = ordinals.last() else {
            self.pending = false;
            return Ok(());
        };
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
                    tracing::warn!(%error, skill = %slot.head.id, "no meaning can be made of it");
                }
            }
        }
        let asked: Vec<&str> = texts.iter().map(|(_, _, text)| text.as_str()).collect();
        let vectors = embedder.embed(&asked)?;
        let mut rows = Vec::with_capacity(vectors.len());
        for ((ordinal, digest, _), vector) in texts.iter().zip(vectors) {
            let row = row_of(&vector);
            self.indexer.set_vector(*ordinal, &row);
            rows.push((*digest, row));
        }
        cache.put(&rows)?;
        self.publish(inner);
        Ok(())
    }
}

/// The file of the vectors of an embedder: each has its own, so that whoever opens the
/// index with another one costs nobody the vectors that took hours.
fn vectors_file(inner: &Inner, embedder: &dyn Embedder) -> PathBuf {
    let digest = embedder.digest().hex();
    let begin = digest.get(..16).unwrap_or_default();
    inner.folder.join(format!("vectors-{begin}"))
}
