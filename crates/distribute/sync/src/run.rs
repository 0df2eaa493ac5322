//! Syncs: started, run, recorded.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::engine::{Inner, Running};
use super::record::{MAX_HISTORY, SYNCS};
use super::{Engine, Error, Kind, Phase, Progress, Source, SourceResult, SyncOutcome, SyncRecord};
use store::Batch;

/// A request to sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Ids of sources; none: all of them.
    pub sources: Vec<String>,
    /// How much to read.
    pub kind: Kind,
    /// Lists everything anew, instead of asking a place for changes since the last look.
    pub force_check: bool,
}

/// A sync that was started.
#[derive(Debug, Clone)]
pub struct RunningSync {
    /// Its id.
    pub id: String,
    /// Its progress.
    pub progress: watch::Receiver<Progress>,
}

impl RunningSync {
    /// Waits until it has ended, or for `max`; none: it is still running.
    pub async fn wait(&mut self, max: Duration) -> Option<SyncRecord> {
        let ended = self.progress.wait_for(|progress| progress.ended.is_some());
        let ended = tokio::time::timeout(max, ended).await.ok()?;
        ended.ok()?.ended.clone()
    }
}

/// Sources that are reserved for a sync, until this is dropped.
pub(crate) struct Reserved {
    engine: Engine,
    id: String,
    sources: Vec<String>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut running = self.engine.running();
        for source in &self.sources {
            running.sources.remove(source);
        }
        running.syncs.remove(&self.id);
        drop(running);
        // The schedule passes over sources that are reserved, and sets no timer for them.
        self.engine.0.nudged.notify_one();
    }
}

impl Engine {
    /// Starts a sync. It runs on if its caller goes away.
    ///
    /// # Errors
    /// There is no such source, none at all, or one of them is being synced.
    pub fn begin(&self, request: &Request) -> Result<RunningSync, Error> {
        let sources = self.requested(&request.sources)?;
        // `close` waits for the tasks that there are. One that began after it would be cut off.
        if self.0.stop.is_cancelled() {
            return Err(Error::Stopping);
        }
        let started_at = self.0.registry.now();
        let new_id = |running: &mut Running| running.new_id(request.kind, started_at);
        let (id, reserved) = self.reserve(&sources, new_id)?;
        let (sender, progress) = watch::channel(Progress {
            id: id.clone(),
            kind: request.kind,
            started_at,
            phase: Phase::Preparing,
            source: None,
            done: 0,
            total: 0,
            ended: None,
        });
        self.running().syncs.insert(id.clone(), progress.clone());
        self.0.begun.send_replace(Some(progress.clone()));
        let (engine, request) = (self.clone(), request.clone());
        self.0.tasks.spawn(async move {
            let record = engine.run(&sources, &request, &sender).await;
            // First: a caller that waits for the end may start the next sync of this source.
            drop(reserved);
            sender.send_modify(|progress| progress.ended = Some(record));
        });
        Ok(RunningSync { id, progress })
    }

    /// Starts a sync and waits for its end, or for `max`. Returns its id and its record; none:
    /// it is still running.
    ///
    /// # Errors
    /// As [`Engine::begin`]; every source failed.
    pub async fn refresh(
        &self,
        request: &Request,
        max: Duration,
    ) -> Result<(String, Option<SyncRecord>), Error> {
        let mut begun = self.begin(request)?;
        match begun.wait(max).await {
            Some(record) if record.ending == SyncOutcome::Failed => Err(Error::AllFailed {
                sync: record.id,
                sources: record.sources,
            }),
            record => Ok((begun.id, record)),
        }
    }

    /// The sources of a request, each once.
    pub(crate) fn requested(&self, ids: &[String]) -> Result<Vec<Source>, Error> {
        let mut found = Vec::new();
        for id in ids {
            let source = self.source(id)?;
            // Refused before it starts, since it depends on the build alone. Other errors, such as
            // a secret that cannot be read, may be gone by the time, and are the sync's.
            if let Err(sources::Error::NotBuilt(feature)) = self.open_place(&source) {
                return Err(Error::NotBuilt { feature });
            }
            if !found.contains(&source) {
                found.push(source);
            }
        }
        if ids.is_empty() {
            found = self.sources();
        }
        if found.is_empty() {
            return Err(Error::NoSources);
        }
        Ok(found)
    }

    /// Reserves sources for a sync: all of them, or none.
    pub(crate) fn reserve(
        &self,
        sources: &[Source],
        id: impl FnOnce(&mut Running) -> String,
    ) -> Result<(String, Reserved), Error> {
        let mut running = self.running();
        for source in sources {
            if let Some(sync) = running.sources.get(&source.id) {
                return Err(Error::InProgress {
                    sync: sync.clone(),
                    source_id: source.id.clone(),
                });
            }
        }
        // Under the lock, so that two syncs of one second get different ids.
        let id = id(&mut running);
        let ids: Vec<String> = sources.iter().map(|source| source.id.clone()).collect();
        for source in &ids {
            running.sources.insert(source.clone(), id.clone());
        }
        let reserved = Reserved {
            engine: self.clone(),
            id: id.clone(),
            sources: ids,
        };
        Ok((id, reserved))
    }

    async fn run(
        &self,
        sources: &[Source],
        request: &Request,
        progress: &watch::Sender<Progress>,
    ) -> SyncRecord {
        let (id, started_at) = {
            let progress = progress.borrow();
            (progress.id.clone(), progress.started_at)
        };
        let began = Instant::now();
        let mut results = Vec::new();
        for source in sources {
            progress.send_modify(|progress| {
                progress.phase = Phase::Preparing;
                progress.source = Some(source.id.clone());
                (progress.done, progress.total) = (0, 0);
            });
            let span = tracing::info_span!("sync", sync = id, source = source.id);
            let synced = self.sync_source(source, request, progress);
            let result = synced.instrument(span).await;
            tracing::info!(
                sync = id,
                source = source.id,
                added = result.added,
                updated = result.updated,
                removed = result.removed,
                held = result.held,
                skipped = result.skipped,
                error = result.error,
                duration_ms = result.duration_ms,
                "a source was synced"
            );
            results.push(result);
        }
        let record = SyncRecord {
            id,
            kind: request.kind,
            started_at,
            completed_at: self.0.registry.now(),
            duration_ms: millis(began.elapsed()),
            ending: ending(&results),
            sources: results,
        };
        if let Err(error) = self.remember(&record).await {
            tracing::warn!(%error, sync = record.id, "a sync was not written to the history");
        }
        record
    }

    async fn remember(&self, record: &SyncRecord) -> Result<(), Error> {
        let last = self.0.last_sync()?;
        let number = last.map_or(1, |(number, _)| number + 1);
        let mut batch = Batch::new();
        batch.expect(&SYNCS, &number, store::Expect::Absent);
        batch.put(&SYNCS, &number, record);
        if let Some(old) = number.checked_sub(MAX_HISTORY) {
            batch.delete(&SYNCS, &old);
        }
        match self.0.store.commit(batch).await {
            // Another sync took the number, as it ended at the same moment.
            Err(store::CommitError::Conflict { .. }) => Box::pin(self.remember(record)).await,
            outcome => Ok(outcome.map(drop)?),
        }
    }
}

impl Running {
    /// An id that says when the sync began: `sync_20261226_153000`, in UTC.
    fn new_id(&mut self, kind: Kind, time: Timestamp) -> String {
        let prefix = match kind {
            Kind::Incremental => "sync",
            Kind::Full => "full_sync",
        };
        let time = time.to_zoned(TimeZone::UTC).strftime("%Y%m%d_%H%M%S");
        let base = format!("{prefix}_{time}");
        self.last_ids.retain(|id| id.starts_with(&base));
        let id = match self.last_ids.len() {
            0 => base,
            more => format!("{base}_{}", more + 1),
        };
        self.last_ids.push(id.clone());
        id
    }
}

impl Inner {
    /// The sync that ended last, with its number. Reads all of them: there are few.
    pub(crate) fn last_sync(&self) -> Result<Option<(u64, SyncRecord)>, Error> {
        let mut found = None;
        for entry in self.store.scan(&SYNCS, b"") {
            let (key, stored) = entry?;
            let number = key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes));
            found = number.map(|number| (number, stored.value)).or(found);
        }
        Ok(found)
    }
}

fn ending(results: &[SourceResult]) -> SyncOutcome {
    let failed = results
        .iter()
        .filter(|result| result.error.is_some())
        .count();
    match failed {
        0 => SyncOutcome::Success,
        all if all == results.len() => SyncOutcome::Failed,
        _ => SyncOutcome::Partial,
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
