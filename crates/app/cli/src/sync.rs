//! Syncs of sources, from the command line.

use std::process::ExitCode;

use clap::Args;

use super::connect::Client;
use super::output::{self, BAD, Exit, FAINT, Failed, GOOD, Output, Table, WARN, time};
use super::sources::skips_of;
use contract::v1;

const SYNC_EXAMPLES: &str = "\
Examples:
  repertoire sync                     what changed, of all sources
  repertoire sync acme --force        look anew, whatever the source says
  repertoire sync --full              read everything
  repertoire sync --status            what is synced now, and what was
  repertoire sync --health            how sources did in the last 24 hours

Exits with 3 where a source could not be synced.";

/// A source could not be synced.
const FAILED: u8 = 3;

#[derive(Debug, Args)]
#[command(after_help = SYNC_EXAMPLES)]
pub(super) struct Sync {
    /// Sources. [default: all]
    sources: Vec<String>,
    /// Read all that they have, whatever is known of it.
    #[arg(long)]
    full: bool,
    /// Look anew, instead of asking what changed since the last look.
    #[arg(long, conflicts_with = "full")]
    force: bool,
    #[command(flatten)]
    look: Look,
}

impl Sync {
    /// It says how syncs went.
    pub(super) fn prints_rows(&self) -> bool {
        self.look.status || self.look.health
    }
}

/// What to say instead of syncing.
#[derive(Debug, Args)]
struct Look {
    /// Say what is synced now, and what was.
    #[arg(long, conflicts_with_all = ["full", "force", "health", "sources"])]
    status: bool,
    /// Say how sources did in the last 24 hours.
    #[arg(long, conflicts_with_all = ["full", "force"])]
    health: bool,
}

pub(super) async fn sync(client: &mut Client, options: Sync, output: &Output) -> Exit {
    let Sync {
        sources,
        full,
        force,
        look,
    } = options;
    if look.status {
        return status(client, output).await;
    }
    if look.health {
        return health(client, sources, output).await;
    }
    let sync_id = if full {
        let request = v1::ForceFullSyncRequest {
            sources,
            confirm: true,
        };
        let begun = client.registry().force_full_sync(request).await?;
        begun.into_inner().sync_id
    } else {
        let request = v1::RefreshIndexRequest {
            sources,
            force_check: force,
            wait_seconds: Some(0),
        };
        let begun = client.registry().refresh_index(request).await?;
        begun.into_inner().sync_id
    };
    let ended = follow(client, sync_id).await?;
    if output.is_json() {
        output.message("EndedSync", &ended)?;
    } else {
        for result in &ended.sources_synced {
            told(result, output)?;
        }
    }
    Ok(match ended.status() {
        v1::SyncEnding::Success => ExitCode::SUCCESS,
        _ => ExitCode::from(FAILED),
    })
}

/// Follows a sync to its end, with a bar on a terminal.
async fn follow(client: &mut Client, sync_id: String) -> Result<v1::EndedSync, Failed> {
    use v1::watch_sync_response::State;
    let request = v1::WatchSyncRequest {
        sync_id,
        ..Default::default()
    };
    let mut steps = client.registry().watch_sync(request).await?.into_inner();
    let bar = output::bar(0, "skills");
    while let Some(step) = steps.message().await? {
        match step.state {
            Some(State::Current(current)) => {
                let source = current.current_source.unwrap_or_default();
                bar.set_message(source);
                if let Some(progress) = current.progress {
                    bar.set_length(progress.total);
                    bar.set_position(progress.current);
                }
            }
            Some(State::Ended(ended)) => {
                bar.finish_and_clear();
                return Ok(ended);
            }
            Some(State::Waiting(_)) | None => {}
        }
    }
    bar.finish_and_clear();
    Err(Failed::fault("the sync ended without a word"))
}

fn told(result: &v1::SourceSyncResult, output: &Output) -> Result<(), Failed> {
    let id = &result.source_id;
    if let Some(error) = &result.error {
        return output.line(&format!("{BAD}failed{BAD:#} {id}: {error}"));
    }
    let counts = [
        (result.skills_added, "added"),
        (result.skills_updated, "updated"),
        (result.skills_removed, "removed"),
        (result.versions_held, "held for review"),
        (result.skills_skipped, "skipped"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let words = if counts.is_empty() {
        "nothing changed".to_owned()
    } else {
        counts.join(", ")
    };
    output.line(&format!("{GOOD}synced{GOOD:#} {id}: {words}"))?;
    let listed = u32::try_from(result.skipped.len()).unwrap_or(u32::MAX);
    let more = result.skills_skipped.saturating_sub(listed);
    skips_of(id, &result.skipped, more, output)
}

async fn status(client: &mut Client, output: &Output) -> Exit {
    let request = v1::GetSyncStatusRequest {
        sync_id: String::new(),
        include_history: true,
    };
    let found = client.registry().get_sync_status(request).await?;
    let found = found.into_inner();
    if output.is_json() {
        output.message("GetSyncStatusResponse", &found)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(current) = found.current_sync {
        let progress = current.progress.unwrap_or_default();
        let (done, total) = (progress.current, progress.total);
        let source = current.current_source.unwrap_or_default();
        let id = current.sync_id;
        output.line(&format!(
            "{WARN}under way{WARN:#} {id}: {source}, {done} of {total}"
        ))?;
    }
    if found.sync_history.is_empty() {
        output.line(&format!("{FAINT}no sync has ended yet{FAINT:#}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&["sync", "ended", "ms", "changed", "status"]);
    for sync in found.sync_history {
        let ending = match sync.status() {
            v1::SyncEnding::Unspecified => "",
            v1::SyncEnding::Success => "success",
            v1::SyncEnding::Partial => "partial",
            v1::SyncEnding::Failed => "failed",
        };
        rows.add_row([
            sync.sync_id,
            time(sync.completed_at),
            sync.duration_ms.to_string(),
            sync.skills_updated.to_string(),
            ending.to_owned(),
        ]);
    }
    output.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}

async fn health(client: &mut Client, sources: Vec<String>, output: &Output) -> Exit {
    let mut found = v1::GetSourceHealthResponse::default();
    let asked = if sources.is_empty() {
        vec![String::new()]
    } else {
        sources
    };
    for source_id in asked {
        let request = v1::GetSourceHealthRequest { source_id };
        let health = client.registry().get_source_health(request).await?;
        let health = health.into_inner();
        found.overall_health = found.overall_health.max(health.overall_health);
        found.sources.extend(health.sources);
    }
    if output.is_json() {
        output.message("GetSourceHealthResponse", &found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Table::new(&[
        "source",
        "health",
        "skills",
        "synced",
        "failures",
        "last failure",
    ]);
    for source in found.sources {
        let health = match source.status() {
            v1::SourceStatus::Unspecified => "",
            v1::SourceStatus::Healthy => "healthy",
            v1::SourceStatus::Degraded => "degraded",
            v1::SourceStatus::Unavailable => "unavailable",
            v1::SourceStatus::RateLimited => "rate-limited",
        };
        rows.add_row([
            source.source_id,
            health.to_owned(),
            source.skills_contributed.to_string(),
            time(source.last_successful_sync),
            source.error_count_24h.to_string(),
            source.last_error.unwrap_or_default(),
        ]);
    }
    output.table(&rows)?;
    Ok(ExitCode::SUCCESS)
}
