//! Commands on the data directory itself, with no server on it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use super::args::{Backup, Global, Restore};
use super::connect::{index, settings, start_failed};
use super::output::{self, BAD, Failed, GOOD, Output, bytes};
use crate::model::{Code, SystemClock};
use crate::registry::Registry;
use crate::server::{Config, Domain, Settings};
use crate::store::{self, Store};

type Done = Result<ExitCode, Failed>;

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
fn check(store: &Store, progress: impl FnMut(u64)) -> (store::Verified, u64, u64) {
    let mut verified = store.verify(progress);
    let clock = Arc::new(SystemClock);
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
    (verified, skills, versions)
}

pub(super) async fn verify(global: &Global, config: &Config, output: &Output) -> Done {
    let settings = settings(global, config);
    let data = settings.data.clone();
    let bar = output::counter("records read");
    let counter = bar.clone();
    let result = blocking(move || {
        let store = open(&settings)?;
        Ok(check(&store, |count| counter.set_position(count)))
    })
    .await;
    bar.finish_and_clear();
    let (verified, skills, versions) = result?;
    let whole = verified.damage.is_empty();
    if output.is_json() {
        output.value(&json!({
            "whole": whole,
            "records": verified.records,
            "contents": verified.contents,
            "skills": skills,
            "versions": versions,
            "damage": verified.damage,
        }))?;
    } else if whole {
        output.line(&format!(
            "{GOOD}whole{GOOD:#} {} records, {} contents, {skills} skills, {versions} versions",
            verified.records, verified.contents
        ))?;
    } else {
        for damage in &verified.damage {
            output.line(&format!("{BAD}damaged{BAD:#} {damage}"))?;
        }
        output::note(&format!(
            "Move the directory aside and restore a backup: repertoire restore BACKUP --data {}",
            data.display()
        ));
    }
    Ok(if whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

pub(super) async fn backup(
    global: &Global,
    config: &Config,
    options: &Backup,
    output: &Output,
) -> Done {
    let settings = settings(global, config);
    let file = options.file.clone();
    let bar = output::counter("records written");
    let counter = bar.clone();
    let result = blocking(move || {
        let store = open(&settings)?;
        store
            .backup(&file, |_| true, |count| counter.set_position(count))
            .map_err(Failed::from)
    })
    .await;
    bar.finish_and_clear();
    told(&options.file, &result?, "wrote", output)
}

fn told(path: &Path, backup: &store::Backup, word: &str, output: &Output) -> Done {
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
) -> Done {
    let settings = settings(global, config);
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
    told(&data, &result?, "restored", output)
}

fn beside(data: &Path, ending: &str) -> PathBuf {
    let mut name = data.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    data.with_file_name(name)
}

/// Writes what is used to a new directory, checks it, and puts it in the place of
/// the old one, which is removed last: a crash leaves at least one whole.
pub(super) async fn compact(global: &Global, config: &Config, output: &Output) -> Done {
    let settings = settings(global, config);
    let data = settings.data.clone();
    let (file, fresh, old) = (
        beside(&data, ".compact"),
        beside(&data, ".new"),
        beside(&data, ".old"),
    );
    let bar = output::counter("records moved");
    let counter = bar.clone();
    let result = blocking(move || {
        if old.exists() {
            return Err(Failed::new(
                Code::LocalFileFailed,
                format!("`{}` is there from an earlier run", old.display()),
            )
            .hint(
                "look whether the data directory is whole with `repertoire verify`, then remove it",
            ));
        }
        let store = open(&settings)?;
        let before = folder_size(&settings.data);
        let registry =
            Registry::open(store.clone(), Arc::new(SystemClock)).map_err(Failed::from)?;
        let audit = registry.audit().map_err(Failed::from)?;
        if let Some(damage) = audit.damage.first() {
            return Err(Failed::new(
                Code::DataDamaged,
                format!("the data directory is damaged: {damage}"),
            )
            .hint("see `repertoire verify`"));
        }
        store
            .backup(
                &file,
                |digest| audit.contents.contains(digest),
                |count| counter.set_position(count),
            )
            .map_err(Failed::from)?;
        drop((registry, store));
        store::restore(&file, &fresh, &settings.store, |count| {
            counter.set_position(count);
        })
        .map_err(Failed::from)?;
        std::fs::rename(&settings.data, &old)?;
        std::fs::rename(&fresh, &settings.data)?;
        std::fs::remove_file(&file)?;
        std::fs::remove_dir_all(&old)?;
        Ok((before, folder_size(&settings.data)))
    })
    .await;
    bar.finish_and_clear();
    let (before, after) = result?;
    if output.is_json() {
        output.value(&json!({"path": data.display().to_string(), "bytes_before": before, "bytes_after": after}))?;
    } else {
        let size = |size: u64| bytes(i64::try_from(size).unwrap_or(i64::MAX));
        output.line(&format!(
            "{GOOD}compacted{GOOD:#} {} from {} to {}",
            data.display(),
            size(before),
            size(after)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn reindex(global: &Global, config: &Config, output: &Output) -> Done {
    let settings = settings(global, config);
    exists(&settings)?;
    let began = std::time::Instant::now();
    let domain = Domain::open(&settings).await;
    let domain = domain.map_err(|error| start_failed(&error))?;
    let search = domain.search().clone();
    let unremoved =
        |error: crate::lookup::index::Error| Failed::new(Code::LocalFileFailed, error.to_string());
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

fn folder_size(folder: &Path) -> u64 {
    let entries = walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_map(Result::ok);
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|m| m.len())
        .sum()
}
