//! Sources and syncs, on the wire.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use model::{Principal, TrustTier};
use tonic::Status;

use super::convert::{self, time};
use super::registry::RegistryService;
use super::{missing, wrong};
use crate::contract::{status, v1};
use ::registry::Registry;
use ::search::SearchIndex;
use ::sync::{
    CredentialRef, Ending, Engine, Health, Kind, Listed, Overall, Phase, Progress, RepositoryFacts,
    Request, Skip, Source, SourceKind, SourceResult, Standing, SyncRecord,
};

/// Seconds that a caller waits for a sync.
const WAIT_SECONDS: u32 = 20;
/// Milliseconds of a minute.
const MINUTE: u64 = 60_000;

fn kind(kind: v1::SourceKind) -> Option<SourceKind> {
    Some(match kind {
        v1::SourceKind::Unspecified => return None,
        v1::SourceKind::Directory => SourceKind::Directory,
        v1::SourceKind::Git => SourceKind::Git,
        v1::SourceKind::Github => SourceKind::Github,
        v1::SourceKind::WellKnown => SourceKind::WellKnown,
        v1::SourceKind::Clawhub => SourceKind::Clawhub,
        v1::SourceKind::Repertoire => SourceKind::Repertoire,
    })
}

fn kind_on_wire(kind: SourceKind) -> v1::SourceKind {
    match kind {
        SourceKind::Directory => v1::SourceKind::Directory,
        SourceKind::Git => v1::SourceKind::Git,
        SourceKind::Github => v1::SourceKind::Github,
        SourceKind::WellKnown => v1::SourceKind::WellKnown,
        SourceKind::Clawhub => v1::SourceKind::Clawhub,
        SourceKind::Repertoire => v1::SourceKind::Repertoire,
    }
}

fn credential(
    secret: Option<v1::SecretReference>,
    field: &str,
) -> Result<Option<CredentialRef>, Status> {
    let Some(v1::SecretReference { env, file }) = secret else {
        return Ok(None);
    };
    match (env.is_empty(), file.is_empty()) {
        (false, true) => Ok(Some(CredentialRef::Env(env))),
        (true, false) => Ok(Some(CredentialRef::File(file.into()))),
        _ => Err(wrong(field, "name one of `env` and `file`".to_owned())),
    }
}

fn credential_on_wire(credential: CredentialRef) -> v1::SecretReference {
    let (env, file) = match credential {
        CredentialRef::Env(name) => (name, String::new()),
        CredentialRef::File(path) => (String::new(), path.display().to_string()),
    };
    v1::SecretReference { env, file }
}

fn source(source: v1::Source) -> Result<Source, Status> {
    let of = kind(source.kind()).ok_or_else(|| wrong("kind", "Required".to_owned()))?;
    let v1::Source {
        source_id,
        name,
        kind: _,
        location,
        r#ref,
        path,
        select,
        namespace,
        interval_seconds,
        credential: secret,
        webhook_secret,
    } = source;
    let namespace = match namespace.as_str() {
        "" => None,
        text => Some(text.parse().map_err(|error| wrong("namespace", error))?),
    };
    Ok(Source {
        id: source_id,
        name,
        kind: of,
        location,
        reference: r#ref,
        path,
        select,
        namespace,
        interval_seconds,
        credential: credential(secret, "credential")?,
        webhook_secret: credential(webhook_secret, "webhook_secret")?,
    })
}

fn skips(skips: Vec<Skip>) -> Vec<v1::SkippedSkill> {
    let skips = skips.into_iter();
    skips
        .map(|Skip { path, reason }| v1::SkippedSkill { path, reason })
        .collect()
}

fn listed(listed: Listed) -> v1::SourceInfo {
    let Listed {
        source,
        is_configured,
        skills,
        skips: skipped,
        skips_left_out,
        revision,
        last_success,
    } = listed;
    v1::SourceInfo {
        source: Some(v1::Source {
            source_id: source.id,
            name: source.name,
            kind: kind_on_wire(source.kind).into(),
            location: source.location,
            r#ref: source.reference,
            path: source.path,
            select: source.select,
            namespace: source.namespace.map(|n| n.to_string()).unwrap_or_default(),
            interval_seconds: source.interval_seconds,
            credential: source.credential.map(credential_on_wire),
            webhook_secret: source.webhook_secret.map(credential_on_wire),
        }),
        is_configured,
        skills_contributed: skills,
        revision,
        last_successful_sync: last_success.map(time),
        skipped: skips(skipped),
        skipped_left_out: skips_left_out,
    }
}

pub(super) async fn add(
    engine: &Engine,
    request: v1::AddSourceRequest,
    caller: &Principal,
) -> Result<v1::AddSourceResponse, Status> {
    let given = request.source.ok_or_else(|| status(missing("source")))?;
    let source = source(given)?;
    let added = engine.add(source, caller).await.map_err(status)?;
    Ok(v1::AddSourceResponse {
        source: Some(listed(added)),
    })
}

pub(super) async fn remove(
    engine: &Engine,
    request: v1::RemoveSourceRequest,
    caller: &Principal,
) -> Result<v1::RemoveSourceResponse, Status> {
    let v1::RemoveSourceRequest {
        source_id,
        withdraw_skills,
    } = request;
    let removed = engine.remove(&source_id, withdraw_skills, caller);
    let removed = removed.await.map_err(status)?;
    Ok(v1::RemoveSourceResponse {
        source_id: removed.id,
        skills_withdrawn: removed.withdrawn,
        skills_kept: removed.kept,
    })
}

pub(super) fn list(engine: &Engine) -> Result<v1::ListSourcesResponse, Status> {
    let sources = engine.list().map_err(status)?;
    Ok(v1::ListSourcesResponse {
        sources: sources.into_iter().map(listed).collect(),
    })
}

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
) -> Result<v1::RefreshIndexResponse, Status> {
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
    let (id, ended) = ended.await.map_err(status)?;
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
) -> Result<v1::ForceFullSyncResponse, Status> {
    let v1::ForceFullSyncRequest { sources, confirm } = request;
    let minutes = engine.estimate(&sources).map_err(status)?.div_ceil(MINUTE);
    let minutes = u32::try_from(minutes.max(1)).unwrap_or(u32::MAX);
    let about = match minutes {
        1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    if !confirm {
        engine.refuse_running(&sources).map_err(status)?;
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
    let begun = engine.begin(&request).map_err(status)?;
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
        Ending::Success => v1::SyncEnding::Success,
        Ending::Partial => v1::SyncEnding::Partial,
        Ending::Failed => v1::SyncEnding::Failed,
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
) -> Result<v1::GetSyncStatusResponse, Status> {
    let RegistryService {
        engine,
        registry,
        search,
        ..
    } = service;
    let v1::GetSyncStatusRequest {
        sync_id,
        include_history,
    } = request;
    let id = Some(sync_id.as_str()).filter(|id| !id.is_empty());
    let found = engine.status(id).map_err(status)?;
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
    let bytes = convert::size(search.bytes_on_disk());
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
) -> Result<impl Stream<Item = Result<v1::WatchSyncResponse, Status>> + use<>, Status> {
    use v1::watch_sync_response::State;
    let id = Some(request.sync_id.as_str()).filter(|id| !id.is_empty());
    let answer = |state| Ok(v1::WatchSyncResponse { state: Some(state) });
    let Some(progress) = engine.follow(id).map_err(status)? else {
        let last = engine.status(id).map_err(status)?.last;
        let last = last.map(|last| answer(State::Ended(ended(last, true))));
        return Ok(stream::iter(last).left_stream());
    };
    let steps = stream::unfold(
        (progress, true),
        move |(mut progress, is_first)| async move {
            if !is_first {
                // The sync is gone with its sender: whoever reads has its end.
                progress.changed().await.ok()?;
            }
            let state = {
                let now = progress.borrow_and_update();
                if is_first && now.ended.is_none() {
                    State::Current(current(&now))
                } else {
                    match &now.ended {
                        Some(record) => State::Ended(ended(record.clone(), true)),
                        None => State::Current(current(&now)),
                    }
                }
            };
            Some((answer(state), (progress, false)))
        },
    );
    Ok(steps.right_stream())
}

pub(super) fn health(
    engine: &Engine,
    request: &v1::GetSourceHealthRequest,
) -> Result<v1::GetSourceHealthResponse, Status> {
    let id = Some(request.source_id.as_str()).filter(|id| !id.is_empty());
    let sources = engine.health(id).map_err(status)?;
    let overall = match Overall::of(&sources) {
        Overall::Healthy => v1::SourcesHealth::Healthy,
        Overall::Degraded => v1::SourcesHealth::Degraded,
        Overall::Critical => v1::SourcesHealth::Critical,
    };
    Ok(v1::GetSourceHealthResponse {
        sources: sources.into_iter().map(of_source).collect(),
        overall_health: overall.into(),
    })
}

fn of_source(health: Health) -> v1::SourceHealth {
    let standing = match health.standing {
        Standing::Healthy => v1::SourceStatus::Healthy,
        Standing::Degraded => v1::SourceStatus::Degraded,
        Standing::Unavailable => v1::SourceStatus::Unavailable,
        Standing::RateLimited => v1::SourceStatus::RateLimited,
    };
    v1::SourceHealth {
        name: health.source.title().to_owned(),
        source_id: health.source.id,
        status: standing.into(),
        last_successful_sync: health.last_success.map(time),
        last_check: health.last_check.map(time),
        response_time_ms: health.response_ms,
        rate_limit: health.rate_limit.map(|limit| v1::RateLimit {
            remaining: limit.remaining,
            limit: limit.limit,
            resets_at: Some(time(limit.resets_at)),
        }),
        error_count_24h: health.errors,
        last_error: health.last_error,
        skills_contributed: health.skills,
    }
}

/// Says of a skill what its repository has to show. What its author states goes first.
pub(super) fn show(facts: RepositoryFacts, skill: &mut v1::SkillDetail) {
    let count = |count: u64| Some(i64::try_from(count).unwrap_or(i64::MAX));
    skill.github_stars = count(facts.stars);
    skill.github_forks = count(facts.forks);
    skill.github_open_issues = count(facts.open_issues);
    skill.has_tests |= facts.has_tests;
    skill.has_examples |= facts.has_examples;
    let stated = [
        (&mut skill.github_license, facts.license),
        (&mut skill.repo_url, facts.url),
    ];
    for (field, told) in stated {
        if field.is_empty() {
            *field = told;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_author_states_goes_before_what_the_repository_shows() {
        let facts = RepositoryFacts {
            url: "https://github.com/acme/skills".to_owned(),
            stars: 7,
            forks: 2,
            open_issues: 1,
            license: "MIT".to_owned(),
            has_tests: true,
            ..RepositoryFacts::default()
        };
        let shown = |license: &str| {
            let mut skill = v1::SkillDetail {
                github_license: license.to_owned(),
                ..Default::default()
            };
            show(facts.clone(), &mut skill);
            skill
        };
        let expected = v1::SkillDetail {
            github_stars: Some(7),
            github_forks: Some(2),
            github_open_issues: Some(1),
            github_license: "Apache-2.0".to_owned(),
            repo_url: facts.url.clone(),
            has_tests: true,
            ..Default::default()
        };
        assert_eq!(shown("Apache-2.0"), expected);
        assert_eq!(shown("").github_license, "MIT");
    }
}
