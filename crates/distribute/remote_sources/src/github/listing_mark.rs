//! The state of a look, with the owners of the repositories then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::super::place_cache::{read_cache, write_cache};
use super::super::{Error, run_blocking};
use model::Digest;

/// Bytes of a mark that includes its repositories. A mark may have 64 KiB.
const MAX_MARK: usize = 60 * 1024;
/// The prefix of files with the repositories of larger marks; their digest follows.
const FILE: &str = "github-repositories-";
/// Files that are left if it is not known which of them a mark names.
const MAX_FILES: usize = 16;

/// The ids of repositories and of their owners, by the names that they are listed under.
pub(super) type Repositories = BTreeMap<String, (u64, u64)>;

/// The state of a look.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ListingMark {
    /// The digest of the listing.
    pub(super) digest: String,
    #[serde(default)]
    repositories: Repositories,
    /// The digest of the file with them, if they are too many for a mark. By digest, so that a look
    /// whose listing nobody took does not overwrite the file of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

fn digest(repositories: &Repositories) -> String {
    let bytes = serde_json::to_vec(repositories).unwrap_or_default();
    Digest::of(&bytes).hex()
}

fn name(digest: &str) -> String {
    format!("{FILE}{digest}.json")
}

impl ListingMark {
    /// Reads a mark; none: it is of another kind of place.
    pub(super) fn read(mark: &str) -> Option<Self> {
        serde_json::from_str(mark).ok()
    }

    /// The owners of the repositories; none: the file is gone or damaged.
    pub(super) async fn repositories(&self, folder: &Path) -> Option<Repositories> {
        let Some(known) = &self.file else {
            return Some(self.repositories.clone());
        };
        // Parsed first: the mark is stored, and no text of it becomes a path.
        let known: Digest = format!("sha256:{known}").parse().ok()?;
        let repositories: Repositories = read_cache(folder, &name(&known.hex())).await?;
        (digest(&repositories) == known.hex()).then_some(repositories)
    }

    /// Writes the mark of a listing, as a text.
    pub(super) async fn write(
        digest_of_all: String,
        repositories: Repositories,
        folder: &Path,
        before: Option<&Self>,
    ) -> Result<String, Error> {
        let text = |mark: &Self| serde_json::to_string(mark).unwrap_or_default();
        let mut mark = Self {
            digest: digest_of_all,
            repositories,
            file: None,
        };
        let whole = text(&mark);
        if whole.len() <= MAX_MARK {
            return Ok(whole);
        }
        let repositories = std::mem::take(&mut mark.repositories);
        let file = digest(&repositories);
        let now = name(&file);
        write_cache(folder, &now, repositories).await?;
        mark.file = Some(file);
        // The mark that a look is made with is of the last listing that was taken: its file and the
        // new one are needed. Without a mark it may be any of them.
        let (needed, others) = match before {
            Some(before) => (before.file.as_deref().map(name), 0),
            None => (None, MAX_FILES),
        };
        let (folder, needed) = (folder.to_owned(), [Some(now), needed]);
        run_blocking(move || {
            forget(&folder, &needed, others);
            Ok(())
        })
        .await?;
        Ok(text(&mark))
    }
}

/// Removes all files but those that are needed, and the newest `others`.
fn forget(folder: &Path, needed: &[Option<String>], others: usize) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_needed = needed.iter().flatten().any(|needed| *needed == name);
            let time = entry.metadata().ok()?.modified().ok()?;
            (name.starts_with(FILE) && !is_needed).then(|| (time, entry.path()))
        })
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    for (_, path) in files.into_iter().skip(others) {
        // What cannot be removed does no harm.
        std::fs::remove_file(path).ok();
    }
}
