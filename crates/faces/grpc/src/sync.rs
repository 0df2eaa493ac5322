//! The rpcs of syncs.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _, future, stream};
use model::TrustTier;
use tokio::sync::watch;
use tonic::Response;

use super::convert::{self, time};
use super::enums::same_variants;
use super::registry::RegistryService;
use super::sources::skips;
use super::{given, waited};
use ::registry::Registry;
use ::search::SearchIndex;
use ::sync::{Engine, Kind, Phase, Progress, Request, SourceResult, SyncOutcome, SyncRecord};
use contract::handlers::{Answer, Messages};
use contract::v1;
use contract::v1::watch_sync_response::State;

/// Seconds that a caller waits for a sync by default.
// Below the 30 s that a call has by default: a long sync answers with its id, not with a timeout.
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
) -> Answer<v1::RefreshIndexResponse> {
    let v1::RefreshIndexRequest {
        sources,
        force_check,
        wait_seconds,
    } = request;
    let wait = Duration::from_secs(wait_seconds.unwrap_or(WAIT_SECONDS).into());
    let request = Request {
        sources,
        kind: Kind::Incremental,
        force_check,
    };
    let ended = engine.refresh(&request, wait.min(time_left));
    let (id, ended) = ended.await?;
    let Some(ended) = ended else {
        return Ok(Response::new(v1::RefreshIndexResponse {
            sync_id: id,
            status: v1::SyncStart::Started.into(),
            sources_synced: Vec::new(),
            total_skills_updated: 0,
            duration_ms: None,
        }));
    };
    Ok(Response::new(v1::RefreshIndexResponse {
        sync_id: id,
        status: v1::SyncStart::Completed.into(),
        total_skills_updated: ended.changed(),
        duration_ms: Some(ended.duration_ms),
        sources_synced: ended.sources.into_iter().map(result).collect(),
    }))
}

pub(super) fn force_full(
    engine: &Engine,
    request: v1::ForceFullSyncRequest,
) -> Answer<v1::ForceFullSyncResponse> {
    let v1::ForceFullSyncRequest { sources, confirm } = request;
    let minutes = engine.estimate(&sources)?.div_ceil(MILLIS_PER_MINUTE);
    let minutes = u32::try_from(minutes.max(1)).unwrap_or(u32::MAX);
    let about = match minutes {
        1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    if !confirm {
        // As the confirmed call would: a preview of what would be refused is of no use.
        engine.refuse_running(&sources)?;
        return Ok(Response::new(v1::ForceFullSyncResponse {
            sync_id: String::new(),
            status: v1::SyncStart::Preview.into(),
            estimated_duration_minutes: minutes,
            message: format!(
                "Nothing was begun: a full sync reads all that the sources have, which takes about {about}. Set confirm to true to begin it."
            ),
        }));
    }
    let request = Request {
        sources,
        kind: Kind::Full,
        force_check: true,
    };
    let begun = engine.begin(&request)?;
    Ok(Response::new(v1::ForceFullSyncResponse {
        sync_id: begun.id,
        status: v1::SyncStart::Started.into(),
        estimated_duration_minutes: minutes,
        message: format!(
            "Full sync started. This may take {about}. Use get_sync_status to monitor progress."
        ),
    }))
}

same_variants!(fn sync_type(Kind) -> SyncType { Incremental, Full });

same_variants!(fn phase(Phase) -> SyncPhase { Preparing, Fetching, Processing, Storing });

same_variants!(fn ending(SyncOutcome) -> SyncEnding { Success, Partial, Failed });

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
    let skills_updated = record.changed();
    let sources = record.sources.into_iter().map(result);
    v1::EndedSync {
        sync_id: record.id,
        sync_type: sync_type(record.kind).into(),
        started_at: Some(time(record.started_at)),
        completed_at: Some(time(record.completed_at)),
        duration_ms: record.duration_ms,
        skills_updated,
        status: ending(record.ending).into(),
        sources_synced: sources
            .take(if with_sources { usize::MAX } else { 0 })
            .collect(),
    }
}

pub(super) fn get_status(
    service: &RegistryService,
    request: v1::GetSyncStatusRequest,
) -> Answer<v1::GetSyncStatusResponse> {
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
    let id = given(sync_id.as_str());
    let engine = match sources.shown() {
        Ok(engine) => engine,
        Err(refused) if id.is_some() => return Err(refused),
        // The history of syncs names skills that the caller does not see; counts do not.
        Err(_) => {
            return Ok(Response::new(v1::GetSyncStatusResponse {
                index_stats: Some(stats(registry, search)),
                ..Default::default()
            }));
        }
    };
    let found = engine.status(id)?;
    let changed = found.history.iter().find(|sync| sync.changed() > 0);
    let last_updated = changed.map(|sync| time(sync.completed_at));
    let history = found.history.into_iter().filter(|_| include_history);
    Ok(Response::new(v1::GetSyncStatusResponse {
        current_sync: found.current.as_ref().map(current),
        index_stats: Some(v1::IndexStats {
            last_updated,
            ..stats(registry, search)
        }),
        last_sync: found.last.map(|sync| ended(sync, id.is_some())),
        sync_history: history.map(|sync| ended(sync, false)).collect(),
    }))
}

/// Counts the skills that the caller sees, from what the catalog counts anyway.
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
        // The index is one file for all: its size would show how much the caller does not see.
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

/// Converts bytes to MiB, with one decimal.
fn mib(bytes: i64) -> f64 {
    let tenths = bytes.max(0).unsigned_abs() * 10 / (1 << 20);
    f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0
}

pub(super) fn watch(
    engine: &Engine,
    request: &v1::WatchSyncRequest,
) -> Answer<Messages<v1::WatchSyncResponse>> {
    let id = given(request.sync_id.as_str());
    // Subscribed before the check for a running sync, so that one which begins in between is not
    // missed.
    let next = engine.next();
    let steps = match (engine.follow(id)?, id) {
        (Some(progress), _) => steps(progress).boxed(),
        (None, Some(_)) => {
            // It ended before the caller asked, so its result is the only message.
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
    Ok(Response::new(Box::pin(answers.take_until(end))))
}

/// Streams the progress of a sync, and its result at the end.
fn steps(progress: watch::Receiver<Progress>) -> impl Stream<Item = State> + Send {
    stream::unfold(Some((progress, true)), |state| async {
        let (mut progress, is_first) = state?;
        // The first state is sent at once: the next change may be minutes away.
        if !is_first {
            // The sender is dropped after the result was sent, so an error here is the end.
            progress.changed().await.ok()?;
        }
        let now = progress.borrow_and_update().clone();
        Some(match now.ended {
            Some(record) => (State::Ended(ended(record, true)), None),
            None => (State::Current(current(&now)), Some((progress, false))),
        })
    })
}
