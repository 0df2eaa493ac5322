//! Commands on syncs of sources.

use std::process::ExitCode;

use clap::Args;

use super::connect::Client;
use super::output::{
    self, BAD, Done, Exit, FAINT, Failed, GOOD, List, Output, WARN, exit, time, word,
};
use super::sources::skips_of;
use contract::v1;

const SYNC_EXAMPLES: &str = "\
Examples:
  repertoire sync                     what changed, of all sources
  repertoire sync acme --force        read everything, changed or not
  repertoire sync --full              read everything
  repertoire sync --status            what is synced now, and what was
  repertoire sync --health            how sources did in the last 24 hours

Exits with 3 where a source could not be synced.";

/// Exit code where a source could not be synced.
const FAILED_EXIT_CODE: u8 = 3;

#[derive(Debug, Args)]
#[command(after_help = SYNC_EXAMPLES)]
pub(super) struct Sync {
    /// Sources. [default: all]
    sources: Vec<String>,
    /// Read all that they have, whatever is known of it.
    #[arg(long)]
    full: bool,
    /// Read everything, instead of what changed since the last sync.
    #[arg(long, conflicts_with = "full")]
    force: bool,
    #[command(flatten)]
    look: Look,
}

impl Sync {
    /// It lists syncs or sources, and starts none.
    pub(super) fn prints_rows(&self) -> bool {
        self.look.status || self.look.health
    }
}

/// What to say instead of syncing.
#[derive(Debug, Args)]
struct Look {
    /// Show the running sync and earlier ones.
    #[arg(long, conflicts_with_all = ["full", "force", "health", "sources"])]
    status: bool,
    /// Show the health of sources in the last 24 hours.
    #[arg(long, conflicts_with_all = ["full", "force"])]
    health: bool,
}

const SYNCS: List<v1::EndedSync> = List::new(&[
    ("sync", |sync| sync.sync_id.clone()),
    ("ended", |sync| time(sync.completed_at)),
    ("ms", |sync| sync.duration_ms.to_string()),
    ("changed", |sync| sync.skills_updated.to_string()),
    ("status", |sync| {
        word("SYNC_ENDING_", sync.status().as_str_name())
    }),
]);

const HEALTH: List<v1::SourceHealth> = List::new(&[
    ("source", |source| source.source_id.clone()),
    ("health", |source| {
        word("SOURCE_STATUS_", source.status().as_str_name())
    }),
    ("skills", |source| source.skills_contributed.to_string()),
    ("synced", |source| time(source.last_successful_sync)),
    ("failures", |source| source.error_count_24h.to_string()),
    ("last failure", |source| {
        source.last_error.clone().unwrap_or_default()
    }),
]);

pub(super) async fn sync(client: &Client, options: Sync, output: &Output) -> Exit {
    let Sync { sources, look, .. } = options;
    if look.status || look.health {
        let done = if look.status {
            status(client, output).await
        } else {
            health(client, sources, output).await
        };
        return done.map(|()| ExitCode::SUCCESS);
    }
    let sync_id = if options.full {
        let request = v1::ForceFullSyncRequest {
            sources,
            confirm: true,
        };
        let begun = client.registry().force_full_sync(request).await?;
        begun.into_inner().sync_id
    } else {
        let request = v1::RefreshIndexRequest {
            sources,
            force_check: options.force,
            // It is followed below, with a bar.
            wait_seconds: Some(0),
        };
        let begun = client.registry().refresh_index(request).await?;
        begun.into_inner().sync_id
    };
    let ended = follow(client, sync_id).await?;
    output.message(&ended)?;
    for result in &ended.sources_synced {
        report(result, output)?;
    }
    Ok(exit(
        ended.status() == v1::SyncEnding::Success,
        FAILED_EXIT_CODE,
    ))
}

/// Follows a sync to its end, with a bar on a terminal.
async fn follow(client: &Client, sync_id: String) -> Result<v1::EndedSync, Failed> {
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

fn report(result: &v1::SourceSyncResult, output: &Output) -> Done {
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
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(n, what)| format!("{n} {what}")).collect();
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

async fn status(client: &Client, output: &Output) -> Done {
    let request = v1::GetSyncStatusRequest {
        sync_id: String::new(),
        include_history: true,
    };
    let found = output.answer(client.registry().get_sync_status(request).await?)?;
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
        return output.line(&format!("{FAINT}no sync has ended yet{FAINT:#}"));
    }
    output.list(&SYNCS, &found.sync_history)
}

async fn health(client: &Client, mut sources: Vec<String>, output: &Output) -> Done {
    let mut found = v1::GetSourceHealthResponse::default();
    // The empty id is that of all sources.
    if sources.is_empty() {
        sources.push(String::new());
    }
    for source_id in sources {
        let request = v1::GetSourceHealthRequest { source_id };
        let health = client.registry().get_source_health(request).await?;
        let health = health.into_inner();
        found.overall_health = found.overall_health.max(health.overall_health);
        found.sources.extend(health.sources);
    }
    output.message(&found)?;
    output.list(&HEALTH, &found.sources)
}
