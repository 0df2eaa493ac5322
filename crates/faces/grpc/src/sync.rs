//! Syncs, on the wire.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _, future, stream};
use model::{Failure, TrustTier};
use tokio::sync::watch;

use super::convert::{self, time};
use super::registry::RegistryService;
use super::sources::skips;
use super::waited;
use ::registry::Registry;
use ::search::SearchIndex;
use ::sync::{Engine, Kind, Phase, Progress, Request, SourceResult, SyncOutcome, SyncRecord};
use contract::handlers::Messages;
use contract::v1;
use contract::v1::watch_sync_response::State;

/// Seconds that a caller waits for a sync.
const WAIT_SECONDS: u32 = 20;
/// Milliseconds of a minute.
const MILLIS_PER_MINUTE: u64 = 60_000;

fn result(result: SourceResult) -> v1::SourceSyncResult {
    let of = match (&result.error, result.unchanged) {
        (Some(_), _) => v1::SyncResultStatus::Failed,
        (None, true) => v1::SyncResultStatus::Skipped,
        (None, false) => v1::SyncResultStatus::Success,
    };
    v1::SourceSyncResult {
        source_id: result.source,
        source_name: result.title,
        status: of.into(),
        skills_added: result.added,
        skills_updated: result.updated,
        skills_removed: result.removed,
        error: result.error,
        versions_held: result.held,
        skills_skipped: result.skipped,
        skipped: skips(result.skips),
    }
}

pub(super) async fn refresh(
    engine: &Engine,
    request: v1::RefreshIndexRequest,
    time_left: Duration,
) -> Result<v1::RefreshIndexResponse, Failure> {
    let v1::RefreshIndexRequest {
        sources,
        force_check,
        wait_seconds,
    } = request;
    let patience = Duration::from_secs(wait_seconds.unwrap_or(WAIT_SECONDS).into());
    let request = Request {
        sources,
        kind: Kind::Incremental,
        force_check,
    };
    let ended = engine.refresh(&request, patience.min(time_left));
    let (id, ended) = ended.await?;
    let Some(ended) = ended else {
        return Ok(v1::RefreshIndexResponse {
            sync_id: id,
            status: v1::SyncStart::Started.into(),
            sources_synced: Vec::new(),
            total_skills_updated: 0,
            duration_ms: None,
        });
    };
    Ok(v1::RefreshIndexResponse {
        sync_id: id,
        status: v1::SyncStart::Completed.into(),
        total_skills_updated: ended.changed(),
        duration_ms: Some(ended.duration_ms),
        sources_synced: ended.sources.into_iter().map(result).collect(),
    })
}

pub(super) fn force_full(
    engine: &Engine,
    request: v1::ForceFullSyncRequest,
) -> Result<v1::ForceFullSyncResponse, Failure> {
    let v1::ForceFullSyncRequest { sources, confirm } = request;
    let minutes = engine.estimate(&sources)?.div_ceil(MILLIS_PER_MINUTE);
    let minutes = u32::try_from(minutes.max(1)).unwrap_or(u32::MAX);
    let about = match minutes {
        1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    if !confirm {
        engine.refuse_running(&sources)?;
        return Ok(v1::ForceFullSyncResponse {
            sync_id: String::new(),
            status: v1::SyncStart::Preview.into(),
            estimated_duration_minutes: minutes,
            message: format!(
                "Nothing was begun: a full sync reads all that the sources have, which takes about {about}. Set confirm to true to begin it."
            ),
        });
    }
    let request = Request {
        sources,
        kind: Kind::Full,
        force_check: true,
    };
    let begun = engine.begin(&request)?;
    Ok(v1::ForceFullSyncResponse {
        sync_id: begun.id,
        status: v1::SyncStart::Started.into(),
        estimated_duration_minutes: minutes,
        message: format!(
            "Full sync started. This may take {about}. Use get_sync_status to monitor progress."
        ),
    })
}

fn sync_type(kind: Kind) -> v1::SyncType {
    match kind {
        Kind::Incremental => v1::SyncType::Incremental,
        Kind::Full => v1::SyncType::Full,
    }
}

fn phase(phase: Phase) -> v1::SyncPhase {
    match phase {
        Phase::Preparing => v1::SyncPhase::Preparing,
        Phase::Fetching => v1::SyncPhase::Fetching,
        Phase::Processing => v1::SyncPhase::Processing,
        Phase::Storing => v1::SyncPhase::Storing,
    }
}

fn current(progress: &Progress) -> v1::CurrentSync {
    v1::CurrentSync {
        sync_id: progress.id.clone(),
        sync_type: sync_type(progress.kind).into(),
        status: phase(progress.phase).into(),
        started_at: Some(time(progress.started_at)),
        progress: Some(v1::SyncProgress {
            current: progress.done,
            total: progress.total,
            percent: progress.percent(),
        }),
        current_source: progress.source.clone(),
    }
}

fn ended(record: SyncRecord, with_sources: bool) -> v1::EndedSync {
    let of = match record.ending {
        SyncOutcome::Success => v1::SyncEnding::Success,
        SyncOutcome::Partial => v1::SyncEnding::Partial,
        SyncOutcome::Failed => v1::SyncEnding::Failed,
    };
    let skills_updated = record.changed();
    let sources = record.sources.into_iter().map(result);
    v1::EndedSync {
        sync_id: record.id,
        sync_type: sync_type(record.kind).into(),
        started_at: Some(time(record.started_at)),
        completed_at: Some(time(record.completed_at)),
        duration_ms: record.duration_ms,
        skills_updated,
        status: of.into(),
        sources_synced: sources
            .take(if with_sources { usize::MAX } else { 0 })
            .collect(),
    }
}

pub(super) fn get_status(
    service: &RegistryService,
    request: v1::GetSyncStatusRequest,
) -> Result<v1::GetSyncStatusResponse, Failure> {
    let RegistryService {
        sources,
        registry,
        search,
        ..
    } = service;
    let v1::GetSyncStatusRequest {
        sync_id,
        include_history,
    } = request;
    let id = Some(sync_id.as_str()).filter(|id| !id.is_empty());
    let engine = match sources.shown() {
        Ok(engine) => engine,
        Err(refused) if id.is_some() => return Err(refused),
        // What a sync did tells of skills that not everybody sees.
        Err(_) => {
            return Ok(v1::GetSyncStatusResponse {
                index_stats: Some(stats(registry, search)),
                ..Default::default()
            });
        }
    };
    let found = engine.status(id)?;
    let changed = found.history.iter().find(|sync| sync.changed() > 0);
    let last_updated = changed.map(|sync| time(sync.completed_at));
    let history = found.history.into_iter().filter(|_| include_history);
    Ok(v1::GetSyncStatusResponse {
        current_sync: found.current.as_ref().map(current),
        index_stats: Some(v1::IndexStats {
            last_updated,
            ..stats(registry, search)
        }),
        last_sync: found.last.map(|sync| ended(sync, id.is_some())),
        sync_history: history.map(|sync| ended(sync, false)).collect(),
    })
}

/// What is there, by what the catalog counts anyway.
fn stats(registry: &Registry, search: &SearchIndex) -> v1::IndexStats {
    let catalog = registry.catalog();
    let by_source = catalog
        .by_source()
        .map(|(source, count)| (source.to_owned(), convert::count(count)))
        .collect();
    let tiers = [
        (TrustTier::Official, "official"),
        (TrustTier::Verified, "verified"),
        (TrustTier::Community, "community"),
        (TrustTier::Unverified, "unverified"),
    ];
    let counted =
        tiers.map(|(tier, name)| (name.to_owned(), convert::count(catalog.in_tier(tier))));
    let bytes = match registry.view() {
        // That of skills that are not seen, too.
        Some(_) => 0,
        None => convert::size(search.bytes_on_disk()),
    };
    v1::IndexStats {
        total_skills: convert::count(catalog.live()),
        by_source,
        by_trust_tier: counted.into(),
        index_size_mb: mib(bytes),
        last_updated: None,
    }
}

/// MiB, to a tenth.
fn mib(bytes: i64) -> f64 {
    let tenths = bytes.max(0).unsigned_abs() * 10 / (1 << 20);
    f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0
}

pub(super) fn watch(
    engine: &Engine,
    request: &v1::WatchSyncRequest,
) -> Result<Messages<v1::WatchSyncResponse>, Failure> {
    let id = Some(request.sync_id.as_str()).filter(|id| !id.is_empty());
    // Before it looks whether one is under way: none is missed.
    let next = engine.next();
    let steps = match (engine.follow(id)?, id) {
        (Some(progress), _) => steps(progress).boxed(),
        (None, Some(_)) => {
            let last = engine.status(id)?.last;
            stream::iter(last.map(|last| State::Ended(ended(last, true)))).boxed()
        }
        (None, None) => {
            let next = stream::once(next).filter_map(future::ready).flat_map(steps);
            let waiting = stream::once(future::ready(State::Waiting(true)));
            waiting.chain(next).boxed()
        }
    };
    let answers = steps.map(|state| Ok(v1::WatchSyncResponse { state: Some(state) }));
    let end = Box::pin(waited(request.max_wait_seconds));
    Ok(Box::pin(answers.take_until(end)))
}

/// How far a sync is, whenever that changes, and at last what it came to.
fn steps(progress: watch::Receiver<Progress>) -> impl Stream<Item = State> + Send {
    stream::unfold(Some((progress, true)), |state| async {
        let (mut progress, is_first) = state?;
        if !is_first {
            // Its sender goes with the sync, after the end was told.
            progress.changed().await.ok()?;
        }
        let now = progress.borrow_and_update().clone();
        Some(match now.ended {
            Some(record) => (State::Ended(ended(record, true)), None),
            None => (State::Current(current(&now)), Some((progress, false))),
        })
    })
}
