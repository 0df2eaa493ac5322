//! The record of a directory: `.repertoire/installed.json` in it.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Error, MAX_SKILLS, Record, disk};
use model::SkillId;

/// Our own folder in a directory of skills. Agents pass over what begins with a dot.
pub(crate) const OURS: &str = ".repertoire";
const FILE: &str = "installed.json";
/// The form of the record.
const FORMAT: u32 = 1;
/// Bytes of a record, or of a lock file, that are read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What is being done to a folder. Noted before the first rename, so that it can be
/// finished by whoever comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The skill whose folder it is.
    pub(crate) id: SkillId,
    /// What is installed afterwards; none: nothing.
    pub(crate) record: Option<Record>,
    /// Something waits in `new` to become the folder.
    pub(crate) put: bool,
}

/// The record of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    format: u32,
    /// What is installed, by id.
    #[serde(default)]
    pub(crate) skills: Vec<Record>,
    /// Skills that were uninstalled and whose folders hold what others put there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<SkillId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<Pending>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            format: FORMAT,
            skills: Vec::new(),
            left: Vec::new(),
            pending: None,
        }
    }
}

/// A file of JSON that may not be there.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let wrong = |reason: String| Error::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let Some(text) = read_text(path)? else {
        return Ok(None);
    };
    let read = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(Some(read))
}

/// A file of text that may not be there.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, Error> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(Error::disk(path))?,
    };
    let mut text = String::new();
    let mut limited = file.take(MAX_BYTES + 1);
    limited
        .read_to_string(&mut text)
        .map_err(Error::disk(path))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Error::Unreadable {
            path: path.to_owned(),
            reason: format!("it has more than {MAX_BYTES} bytes"),
        });
    }
    Ok(Some(text))
}

/// Writes JSON whole.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    disk::replace(path, format!("{text}\n").as_bytes()).map_err(Error::disk(path))
}

fn file(directory: &Path) -> PathBuf {
    directory.join(OURS).join(FILE)
}

impl State {
    /// What is recorded of a directory; nothing where there is none.
    pub(crate) fn read(directory: &Path) -> Result<Self, Error> {
        let path = file(directory);
        let state: Self = read_json(&path)?.unwrap_or_default();
        let wrong = |reason: String| Error::Unreadable {
            path: path.clone(),
            reason,
        };
        if state.format != FORMAT {
            let reason = format!(
                "it is of form {}, which this version does not know",
                state.format
            );
            return Err(wrong(reason));
        }
        if state.skills.len() > MAX_SKILLS {
            return Err(wrong(format!("it has more than {MAX_SKILLS} skills")));
        }
        Ok(state)
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        write_json(&file(directory), self)
    }

    /// What is installed of a skill.
    pub(crate) fn find(&self, id: &SkillId) -> Option<&Record> {
        let key = id.key();
        self.skills.iter().find(|record| record.id.key() == key)
    }

    /// Has a skill installed as this, or not at all.
    pub(crate) fn set(&mut self, id: &SkillId, record: Option<Record>, leaves_data: bool) {
        let key = id.key();
        self.skills.retain(|record| record.id.key() != key);
        self.left.retain(|left| left.key() != key);
        match record {
            Some(record) => self.skills.push(record),
            None if leaves_data => self.left.push(id.clone()),
            None => {}
        }
        self.skills.sort_by_key(|record| record.id.key());
    }
}

/// The skills that are installed in a directory, by id. What a kill left half done is
/// finished first.
///
/// # Errors
/// The record cannot be read.
pub fn list(directory: &Path) -> Result<Vec<Record>, Error> {
    let state = State::read(directory)?;
    if state.pending.is_none() {
        return Ok(state.skills);
    }
    match super::Directory::open(directory, &|| true) {
        Ok(open) => Ok(open.records().to_vec()),
        // Somebody is at it right now.
        Err(Error::Busy { .. }) => Ok(state.skills),
        Err(error) => Err(error),
    }
}
