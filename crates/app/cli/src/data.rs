//! Commands on the data directory itself, without a server; backups and compactions are done by
//! the server that has it open, where there is one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use tonic::transport::Channel;

use super::connect::{index, start_failed, vacate};
use super::output::{BAD, Done, Exit, Failed, GOOD, Output, bytes, counted, counter, exit};
use contract::v1::admin_client::AdminClient;
use contract::v1::{BackupRequest, CompactRequest};
use executor::Stop;
use model::{Code, SystemClock};
use registry::Registry;
use server::{Domain, Settings, connect_local};
use store::Store;

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// File to write.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Overwrite the file where there is one.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Salvage {
    /// Directory to make. The damaged one is named by --data, and stays as it is.
    #[arg(value_name = "NEW")]
    to: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs work that blocks.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(Failed::fault)?
}

/// Runs work that blocks, with a count of what it has done.
async fn counting<T: Send + 'static>(
    what: &str,
    work: impl FnOnce(ProgressBar) -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let bar = counter(what);
    let counted = bar.clone();
    let result = blocking(move || work(counted)).await;
    bar.finish_and_clear();
    result
}

/// Refuses a directory that does not exist: opening it would make one, and a typo in --data would
/// look like an empty store.
fn exists(settings: &Settings) -> Done {
    if settings.data.exists() {
        return Ok(());
    }
    let missing = format!("there is no data directory `{}`", settings.data.display());
    Err(Failed::new(Code::DataUnusable, missing).hint("name it with --data"))
}

/// Opens a directory that exists.
fn open(settings: &Settings) -> Result<Store, Failed> {
    exists(settings)?;
    Store::open(&settings.data, &settings.store).map_err(|error| start_failed(&error.into()))
}

/// Returns the damage: of the store's records, then of records that contradict each other.
fn check(store: &Store, progress: impl FnMut(u64)) -> (store::Verified, [u64; 3]) {
    let mut verified = store.verify(progress);
    let trail = ::audit::verify(store);
    verified.damage.extend(trail.damage);
    let clock = Arc::new(SystemClock);
    // Each record may be intact and the whole still broken, as a head without its version.
    let audit = Registry::open(store.clone(), clock).and_then(|registry| registry.audit());
    let (skills, versions) = match audit {
        Ok(audit) => {
            verified.damage.extend(audit.damage);
            (audit.skills, audit.versions)
        }
        Err(error) => {
            verified.damage.push(error.to_string());
            (0, 0)
        }
    };
    // A record that the store calls damaged stops the registry as well, with the same message.
    verified.damage.dedup();
    (verified, [skills, versions, trail.records])
}

pub(super) async fn verify(settings: Settings, output: &Output) -> Exit {
    vacate(&settings).await;
    let data = settings.data.clone();
    let (verified, [skills, versions, events]) = counting("records read", move |bar| {
        let store = open(&settings)?;
        let checked = store::bounded(&settings.data, move || {
            check(&store, |count| bar.set_position(count))
        });
        checked.map_err(|error| start_failed(&error.into()))
    })
    .await?;
    let store::Verified {
        records,
        contents,
        damage,
    } = verified;
    let whole = damage.is_empty();
    output.value(&json!({
        "whole": whole,
        "records": records,
        "contents": contents,
        "skills": skills,
        "versions": versions,
        "audit_events": events,
        "damage": damage,
    }))?;
    for damage in &damage {
        output.line(&format!("{BAD}damaged{BAD:#} {damage}"))?;
    }
    if whole {
        output.line(&format!(
            "{GOOD}whole{GOOD:#} {records} records, {contents} contents, {skills} skills, {versions} versions, {events} audit events",
        ))?;
    } else {
        output.note(&format!(
            "Restore a backup into a new directory (repertoire restore BACKUP --data NEW), or save what is whole: repertoire salvage NEW --data {}",
            data.display()
        ));
    }
    Ok(exit(whole, 1))
}

/// Refuses to overwrite a file, unless by force.
pub(super) fn free(file: &Path, force: bool) -> Done {
    if force || !file.exists() {
        return Ok(());
    }
    let taken = format!("the file `{}` is there already", file.display());
    Err(Failed::file(taken).hint("name another one, or overwrite it with --force"))
}

pub(super) async fn backup(settings: Settings, options: Backup, output: &Output) -> Done {
    let Backup { file, force } = options;
    free(&file, force)?;
    // Only the process that has the directory open can read it.
    let backup = if let Some(channel) = connect_local(&settings.data).await {
        fetch_backup(channel, &file, force).await?
    } else {
        let file = file.clone();
        counting("records written", move |bar| {
            let written = open(&settings)?.backup(&file, force, |count| {
                bar.set_position(count);
                Ok(())
            });
            written.map_err(Failed::from)
        })
        .await?
    };
    report(&file, &backup, "wrote", output)
}

/// Fetches a backup from a server, whole or not at all.
async fn fetch_backup(channel: Channel, file: &Path, force: bool) -> Result<store::Backup, Failed> {
    let mut admin = AdminClient::new(channel);
    let mut pieces = admin.backup(BackupRequest {}).await?.into_inner();
    // Private: a backup has all tokens' digests and all private skills.
    let atomic_file = store::AtomicFile::private(file)?;
    let (mut records, mut size, mut bytes) = (0, 0, 0);
    while let Some(piece) = pieces.message().await? {
        (records, size) = (records.max(piece.records), size.max(piece.size_bytes));
        bytes += piece.chunk.len() as u64;
        atomic_file.file().write_all(&piece.chunk)?;
    }
    // The stream may end early without an error, where a proxy or the server ends it.
    if bytes == size {
        atomic_file.persist(force)?;
        return Ok(store::Backup { records, bytes });
    }
    Err(Failed::new(
        Code::ServerUnreachable,
        format!("the backup ended after {bytes} of {size} bytes"),
    ))
}

fn report(path: &Path, backup: &store::Backup, word: &str, output: &Output) -> Done {
    let (path, records) = (path.display().to_string(), backup.records);
    output.value(&json!({"path": path, "records": records, "bytes": backup.bytes}))?;
    let size = bytes(backup.bytes);
    output.line(&format!(
        "{GOOD}{word}{GOOD:#} {path} ({records} records, {size})"
    ))
}

pub(super) async fn restore(settings: Settings, options: Restore, output: &Output) -> Done {
    let data = settings.data.clone();
    let backup = counting("records read", move |bar| {
        let (to, limits) = (&settings.data, &settings.store);
        let restored = store::restore(&options.file, to, limits, |count| bar.set_position(count));
        restored.map_err(Failed::from)
    });
    report(&data, &backup.await?, "restored", output)
}

/// Saves the intact records of a damaged directory.
pub(super) async fn salvage(settings: Settings, options: Salvage, output: &Output) -> Done {
    exists(&settings)?;
    vacate(&settings).await;
    let to = options.to.display().to_string();
    let (saved, registry) = counting("records saved", move |bar| {
        let (from, limits) = (&settings.data, &settings.store);
        let saved = store::salvage(from, &options.to, limits, |count| bar.set_position(count));
        let saved = saved.map_err(Failed::from)?;
        let store = saved.open().map_err(|error| start_failed(&error.into()))?;
        let registry = Registry::open(store, Arc::new(SystemClock)).map_err(Failed::from)?;
        Ok((saved, registry))
    })
    .await?;
    let repaired = registry.repair().await.map_err(Failed::from)?;
    registry.close().await;
    // Not before: until it is repaired a server must not open the directory.
    let salvaged = blocking(move || {
        drop(registry);
        saved.complete().map_err(Failed::from)
    })
    .await?;
    let whole = salvaged.is_complete() && repaired.lost.is_empty();
    output.value(&json!({
        "path": to,
        "whole": whole,
        "records": salvaged.records,
        "skills": repaired.skills,
        "versions": repaired.versions,
        "damaged_records": salvaged.damaged,
        "unreadable_places": salvaged.gaps,
        "last_write": salvaged.revision,
        "last_write_acknowledged": salvaged.acknowledged,
        "lost": repaired.lost,
    }))?;
    output.line(&format!(
        "{GOOD}saved{GOOD:#} {to} ({} skills, {} versions, {} records)",
        repaired.skills, repaired.versions, salvaged.records
    ))?;
    for lost in &repaired.lost {
        output.line(&format!("{BAD}lost{BAD:#} {lost}"))?;
    }
    if salvaged.damaged + salvaged.gaps > 0 {
        let (damaged, gaps) = (salvaged.damaged, salvaged.gaps);
        output.note(&format!(
            "{damaged} damaged records were left out, and {gaps} places of the files cannot be read."
        ));
    }
    let acknowledged = salvaged.acknowledged;
    if let Some(acknowledged) = acknowledged.filter(|last| *last > salvaged.revision) {
        output.note(&format!(
            "Write {acknowledged} was acknowledged; the last one that was found is {}.",
            salvaged.revision
        ));
    }
    output.note(&format!(
        "The change log starts over: watchers list again. Check it with: repertoire verify --data {to}"
    ));
    Ok(())
}

/// Rewrites the store without unused records.
pub(super) async fn compact(settings: Settings, output: &Output) -> Done {
    let data = settings.data.clone();
    // As with a backup.
    let compacted = if let Some(channel) = connect_local(&data).await {
        compact_served(channel).await?
    } else {
        counting("records moved", move |bar| {
            let registry = Registry::open(open(&settings)?, Arc::new(SystemClock))?;
            let compacted = registry.compact(&Stop::never(), |count| bar.set_position(count));
            compacted.map_err(|error| {
                let is_damage = matches!(error, registry::Error::Unfit { .. });
                let failed = Failed::from(error);
                if is_damage {
                    return failed.hint("see `repertoire verify`");
                }
                failed
            })
        })
        .await?
    };
    let store::Compacted {
        before,
        after,
        replaced,
    } = compacted;
    let now = if replaced { after } else { before };
    let data = data.display().to_string();
    output.value(&json!({"path": data, "bytes_before": before, "bytes_after": now}))?;
    let (before, after) = (bytes(before), bytes(after));
    output.line(&if replaced {
        format!("{GOOD}compacted{GOOD:#} {data} from {before} to {after}")
    } else {
        format!("nothing to gain: {data} has {before}, and would have {after} after a rewrite")
    })
}

/// Asks a server to compact the directory that it has open.
async fn compact_served(channel: Channel) -> Result<store::Compacted, Failed> {
    let mut admin = AdminClient::new(channel);
    let mut messages = admin.compact(CompactRequest {}).await?.into_inner();
    let bar = counter("records moved");
    while let Some(message) = messages.message().await? {
        bar.set_position(message.records);
        if let Some(outcome) = message.outcome {
            bar.finish_and_clear();
            return Ok(store::Compacted {
                before: outcome.size_bytes_before,
                after: outcome.size_bytes_after,
                replaced: outcome.replaced,
            });
        }
    }
    bar.finish_and_clear();
    Err(Failed::new(
        Code::ServerUnreachable,
        "the compaction did not come to its end".to_owned(),
    ))
}

pub(super) async fn reindex(settings: Settings, output: &Output) -> Done {
    exists(&settings)?;
    vacate(&settings).await;
    let began = std::time::Instant::now();
    let domain = Domain::open(&settings).await;
    let domain = domain.map_err(|error| start_failed(&error))?;
    let search = domain.search().clone();
    blocking(move || search.remove().map_err(Failed::file)).await?;
    index(&domain).await;
    let indexed = domain.search().progress().indexed;
    domain.close().await;
    let seconds = began.elapsed().as_secs_f64();
    output.value(&json!({"skills": indexed, "seconds": seconds}))?;
    let skills = counted(indexed, "skill");
    output.line(&format!("{GOOD}indexed{GOOD:#} {skills} in {seconds:.1} s"))
}
