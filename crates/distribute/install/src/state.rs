//! The record of a directory: `.repertoire/installed.json` in it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use root_folder::{RootFolder, Unread};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::disk::Identity;
use super::{Error, MAX_SKILLS, Record, disk};
use model::SkillId;

/// Our own folder in a directory of skills. Agents pass over what begins with a dot.
pub(crate) const OURS: &str = ".repertoire";
const FILE: &str = "installed.json";
/// The format of the record.
const FORMAT: u32 = 1;
/// Bytes of a record, or of a lock file, that are read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A change of a folder that has begun. Written before the first rename, so that the next
/// process can finish it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The skill whose folder it is.
    pub(crate) id: SkillId,
    /// The record afterwards; none: it is uninstalled.
    pub(crate) record: Option<Record>,
    /// `new` holds what is to become the folder.
    pub(crate) put: bool,
    /// Our own folder in which it began. A record that came with a repository has none, or
    /// another one, and what it says is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begun_in: Option<Identity>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    format: u32,
    /// The installed skills, by id.
    #[serde(default)]
    pub(crate) skills: Vec<Record>,
    /// Skills that were uninstalled, and whose folders still hold files of others.
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

/// Reads a file of JSON; none: there is none.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    read_with(path, |text| {
        serde_json::from_str(text).map_err(|error| error.to_string())
    })
}

/// Reads and parses a file of text; none: there is none.
pub(crate) fn read_with<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, Error> {
    let wrong = |reason| Error::unreadable(path, reason);
    let (folder, name) = split(path)?;
    // A link is not followed: the file may be a stranger's, and lead to anything of the user's.
    let read = RootFolder::open(folder)
        .map_err(Unread::Failed)
        .and_then(|folder| folder.read(name, MAX_BYTES));
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(Unread::TooLarge) => return Err(wrong(format!("it has more than {MAX_BYTES} bytes"))),
        Err(Unread::NoFile(error) | Unread::Failed(error)) => {
            return match error.kind() {
                ErrorKind::NotFound => Ok(None),
                _ => Err(Error::disk(path)(error)),
            };
        }
    };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text".to_owned()))?;
    Ok(Some(parse(&text).map_err(wrong)?))
}

/// The folder of a file, and its name.
fn split(path: &Path) -> Result<(&Path, &Path), Error> {
    let parts = path.parent().zip(path.file_name());
    let (folder, name) =
        parts.ok_or_else(|| Error::unreadable(path, "it is no file".to_owned()))?;
    Ok((folder, Path::new(name)))
}

/// Writes a file as a whole.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    let (folder, name) = split(path)?;
    let written = RootFolder::open(folder);
    let written = written.and_then(|folder| disk::replace(&folder, name, text.as_bytes()));
    written.map_err(Error::disk(path))
}

/// Writes a file of JSON, as a whole.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Error::unreadable(path, error.to_string()))?;
    write_text(path, &format!("{text}\n"))
}

pub(crate) fn file(directory: &Path) -> PathBuf {
    directory.join(OURS).join(FILE)
}

impl State {
    /// Reads the record of a directory; empty where there is none.
    pub(crate) fn read(directory: &Path) -> Result<Self, Error> {
        let path = file(directory);
        let state: Self = read_json(&path)?.unwrap_or_default();
        let wrong = |reason| Error::unreadable(&path, reason);
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

    pub(crate) fn find(&self, id: &SkillId) -> Option<&Record> {
        let key = id.key();
        self.skills.iter().find(|record| record.id.key() == key)
    }

    /// Sets the record of a skill, or removes it.
    pub(crate) fn set(&mut self, id: &SkillId, record: Option<Record>, leaves_data: bool) {
        let key = id.key();
        self.skills.retain(|record| record.id.key() != key);
        self.left.retain(|left| left.key() != key);
        // A folder with files of others, but without a record, would count as not ours, and the
        // skill could not be installed there again.
        match record {
            Some(record) => self.skills.push(record),
            None if leaves_data => self.left.push(id.clone()),
            None => {}
        }
        self.skills.sort_by_key(|record| record.id.key());
    }
}

/// Lists the skills that are installed in a directory, by id. It changes nothing: a change that was
/// cut off by a kill is finished by the next one.
///
/// # Errors
/// The record cannot be read.
pub fn list(directory: &Path) -> Result<Vec<Record>, Error> {
    Ok(State::read(directory)?.skills)
}
