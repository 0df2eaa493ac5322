//! Commands on the data directory itself: with no server on it, but for backups and
//! compactions, which a server does that has it open.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tonic::transport::Channel;

use super::args::Global;
use super::connect::{index, local_settings, start_failed, vacate};
use super::output::{self, BAD, Exit, Failed, GOOD, Output, bytes};
use contract::v1::admin_client::AdminClient;
use contract::v1::{BackupRequest, CompactRequest};
use executor::Stop;
use model::{Code, SystemClock};
use registry::Registry;
use server::{Config, Domain, Settings, connect_local};
use store::Store;

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// File to write.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Overwrite the file where there is one.
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
pub(super) struct Salvage {
    /// Directory to make. The damaged one is named by --data, and stays as it is.
    #[arg(value_name = "NEW")]
    pub(super) to: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

/// Runs work that blocks.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failed::fault)?
}

/// These commands make no directory.
fn exists(settings: &Settings) -> Result<(), Failed> {
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

/// What is damaged: the store's records, then what does not fit together.
fn check(store: &Store, progress: impl FnMut(u64)) -> (store::Verified, [u64; 3]) {
    let mut verified = store.verify(progress);
    let trail = ::audit::verify(store);
    verified.damage.extend(trail.damage);
    let clock = Arc::new(SystemClock);
    // Each record by itself may be whole and not fit the others, as a head without its version.
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
    verified.damage.dedup();
    (verified, [skills, versions, trail.records])
}

pub(super) async fn verify(global: &Global, config: &Config, output: &Output) -> Exit {
    let settings = local_settings(global, config)?;
    vacate(&settings).await;
    let data = settings.data.clone();
    let bar = output::counter("records read");
    let counter = bar.clone();
    let result = blocking(move || {
        let store = open(&settings)?;
        let checked = store::bounded(&settings.data, move || {
            check(&store, |count| counter.set_position(count))
        });
        checked.map_err(|error| start_failed(&error.into()))
    })
    .await;
    bar.finish_and_clear();
    let (verified, [skills, versions, events]) = result?;
    let whole = verified.damage.is_empty();
    if output.is_json() {
        output.value(&json!({
            "whole": whole,
            "records": verified.records,
            "contents": verified.contents,
            "skills": skills,
            "versions": versions,
            "audit_events": events,
            "damage": verified.damage,
        }))?;
    } else if whole {
        output.line(&format!(
            "{GOOD}whole{GOOD:#} {} records, {} contents, {skills} skills, {versions} versions, {events} audit events",
            verified.records, verified.contents
        ))?;
    } else {
        for damage in &verified.damage {
            output.line(&format!("{BAD}damaged{BAD:#} {damage}"))?;
        }
        output::note(&format!(
            "Restore a backup into a new directory (repertoire restore BACKUP --data NEW), or save what is whole: repertoire salvage NEW --data {}",
            data.display()
        ));
    }
    Ok(if whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A file of this name may be written.
pub(super) fn free(file: &Path, force: bool) -> Result<(), Failed> {
    if force || !file.exists() {
        return Ok(());
    }
    let taken = format!("the file `{}` is there already", file.display());
    Err(Failed::new(Code::LocalFileFailed, taken)
        .hint("name another one, or overwrite it with --force"))
}

pub(super) async fn backup(
    global: &Global,
    config: &Config,
    options: &Backup,
    output: &Output,
) -> Exit {
    let settings = local_settings(global, config)?;
    let (file, force) = (options.file.clone(), options.force);
    let bar = output::counter("records written");
    let counter = bar.clone();
    free(&file, force)?;
    // A server that has the directory open takes it.
    let result = if let Some(channel) = connect_local(&settings.data).await {
        fetch_backup(channel, &file, force).await
    } else {
        blocking(move || {
            let store = open(&settings)?;
            store
                .backup(&file, force, |count| {
                    counter.set_position(count);
                    Ok(())
                })
                .map_err(Failed::from)
        })
        .await
    };
    bar.finish_and_clear();
    report(&options.file, &result?, "wrote", output)
}

/// Takes a backup from a server, whole or not at all.
async fn fetch_backup(channel: Channel, file: &Path, force: bool) -> Result<store::Backup, Failed> {
    let mut admin = AdminClient::new(channel);
    let mut pieces = admin.backup(BackupRequest {}).await?.into_inner();
    let atomic_file = store::AtomicFile::private(file)?;
    let (mut records, mut size, mut bytes) = (0, 0, 0);
    while let Some(piece) = pieces.message().await? {
        (records, size) = (records.max(piece.records), size.max(piece.size_bytes));
        bytes += piece.chunk.len() as u64;
        atomic_file.file().write_all(&piece.chunk)?;
    }
    if bytes == size {
        atomic_file.persist(force)?;
        return Ok(store::Backup { records, bytes });
    }
    Err(Failed::new(
        Code::ServerUnreachable,
        format!("the backup ended after {bytes} of {size} bytes"),
    ))
}

fn report(path: &Path, backup: &store::Backup, word: &str, output: &Output) -> Exit {
    let store::Backup {
        records,
        bytes: size,
    } = *backup;
    if output.is_json() {
        output.value(
            &json!({"path": path.display().to_string(), "records": records, "bytes": size}),
        )?;
    } else {
        let size = bytes(i64::try_from(size).unwrap_or(i64::MAX));
        output.line(&format!(
            "{GOOD}{word}{GOOD:#} {} ({records} records, {size})",
            path.display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn restore(
    global: &Global,
    config: &Config,
    options: &Restore,
    output: &Output,
) -> Exit {
    let settings = local_settings(global, config)?;
    let (file, data) = (options.file.clone(), settings.data.clone());
    let bar = output::counter("records read");
    let counter = bar.clone();
    let result = blocking(move || {
        store::restore(&file, &settings.data, &settings.store, |count| {
            counter.set_position(count);
        })
        .map_err(Failed::from)
    })
    .await;
    bar.finish_and_clear();
    report(&data, &result?, "restored", output)
}

/// Saves what is whole of a damaged directory.
pub(super) async fn salvage(
    global: &Global,
    config: &Config,
    options: &Salvage,
    output: &Output,
) -> Exit {
    let settings = local_settings(global, config)?;
    exists(&settings)?;
    vacate(&settings).await;
    let to = options.to.clone();
    let bar = output::counter("records saved");
    let counter = bar.clone();
    let result = blocking(move || {
        let saved = store::salvage(&settings.data, &to, &settings.store, |count| {
            counter.set_position(count);
        })
        .map_err(Failed::from)?;
        let store = saved.open().map_err(|error| start_failed(&error.into()))?;
        let registry = Registry::open(store, Arc::new(SystemClock)).map_err(Failed::from)?;
        Ok((saved, registry))
    })
    .await;
    bar.finish_and_clear();
    let (saved, registry) = result?;
    let repaired = registry.repair().await.map_err(Failed::from)?;
    registry.close().await;
    // Not before: what does not fit together is no directory for a server.
    let salvaged = blocking(move || {
        drop(registry);
        saved.complete().map_err(Failed::from)
    })
    .await?;
    let whole = salvaged.is_complete() && repaired.lost.is_empty();
    let to = options.to.display().to_string();
    if output.is_json() {
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
        return Ok(ExitCode::SUCCESS);
    }
    output.line(&format!(
        "{GOOD}saved{GOOD:#} {to} ({} skills, {} versions, {} records)",
        repaired.skills, repaired.versions, salvaged.records
    ))?;
    for lost in &repaired.lost {
        output.line(&format!("{BAD}lost{BAD:#} {lost}"))?;
    }
    if salvaged.damaged + salvaged.gaps > 0 {
        let (damaged, gaps) = (salvaged.damaged, salvaged.gaps);
        output::note(&format!(
            "{damaged} damaged records were left out, and {gaps} places of the files cannot be read."
        ));
    }
    if let Some(acknowledged) = salvaged
        .acknowledged
        .filter(|last| *last > salvaged.revision)
    {
        output::note(&format!(
            "Write {acknowledged} was acknowledged; the last one that was found is {}.",
            salvaged.revision
        ));
    }
    output::note(&format!(
        "Changes are counted anew: watchers list again. Check it with: repertoire verify --data {to}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Writes the store anew, without what is no longer used.
pub(super) async fn compact(global: &Global, config: &Config, output: &Output) -> Exit {
    let settings = local_settings(global, config)?;
    let data = settings.data.clone();
    let bar = output::counter("records moved");
    let counter = bar.clone();
    // A server that has the directory open does it while it serves.
    let result = if let Some(channel) = connect_local(&settings.data).await {
        compact_served(channel, |count| counter.set_position(count)).await
    } else {
        blocking(move || {
            let store = open(&settings)?;
            let registry = Registry::open(store, Arc::new(SystemClock)).map_err(Failed::from)?;
            let compacted = registry.compact(&Stop::never(), |count| counter.set_position(count));
            compacted.map_err(|error| {
                let is_damage = matches!(error, registry::Error::Unfit { .. });
                let failed = Failed::from(error);
                if is_damage {
                    return failed.hint("see `repertoire verify`");
                }
                failed
            })
        })
        .await
    };
    bar.finish_and_clear();
    let store::Compacted {
        before,
        after,
        replaced,
    } = result?;
    if output.is_json() {
        let now = if replaced { after } else { before };
        output.value(&json!({"path": data.display().to_string(), "bytes_before": before, "bytes_after": now}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let size = |size: u64| bytes(i64::try_from(size).unwrap_or(i64::MAX));
    let data = data.display();
    output.line(&if replaced {
        let (before, after) = (size(before), size(after));
        format!("{GOOD}compacted{GOOD:#} {data} from {before} to {after}")
    } else {
        let (before, after) = (size(before), size(after));
        format!("nothing to gain: {data} has {before}, and would have {after} written anew")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Has a server compact the directory that it has open.
async fn compact_served(
    channel: Channel,
    progress: impl Fn(u64),
) -> Result<store::Compacted, Failed> {
    let mut admin = AdminClient::new(channel);
    let mut messages = admin.compact(CompactRequest {}).await?.into_inner();
    while let Some(message) = messages.message().await? {
        progress(message.records);
        if let Some(outcome) = message.outcome {
            return Ok(store::Compacted {
                before: outcome.size_bytes_before,
                after: outcome.size_bytes_after,
                replaced: outcome.replaced,
            });
        }
    }
    Err(Failed::new(
        Code::ServerUnreachable,
        "the compaction did not come to its end".to_owned(),
    ))
}

pub(super) async fn reindex(global: &Global, config: &Config, output: &Output) -> Exit {
    let settings = local_settings(global, config)?;
    exists(&settings)?;
    vacate(&settings).await;
    let began = std::time::Instant::now();
    let domain = Domain::open(&settings).await;
    let domain = domain.map_err(|error| start_failed(&error))?;
    let search = domain.search().clone();
    let unremoved = |error: search::Error| Failed::new(Code::LocalFileFailed, error.to_string());
    blocking(move || search.remove().map_err(unremoved)).await?;
    index(&domain).await;
    let indexed = domain.search().progress().indexed;
    domain.close().await;
    let seconds = began.elapsed().as_secs_f64();
    if output.is_json() {
        output.value(&json!({"skills": indexed, "seconds": seconds}))?;
    } else {
        let skills = output::counted(indexed, "skill");
        output.line(&format!("{GOOD}indexed{GOOD:#} {skills} in {seconds:.1} s"))?;
    }
    Ok(ExitCode::SUCCESS)
}
