//! `skills-lock.json`, the lock of `npx skills`, as far as it says which skills a project
//! uses: the name of each, and the repository that it came from.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::Error;
use super::state::read_text;
use model::{HOSTS, SkillId, slugify};

/// The name of the file.
pub const NPX_LOCK_FILE: &str = "skills-lock.json";

/// What the lock of `npx skills` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NpxLock {
    /// Its skills, by name.
    pub skills: Vec<NpxSkill>,
}

/// A skill in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpxSkill {
    /// Its name.
    pub name: String,
    /// Where it came from, as it says.
    pub source: String,
    /// What it is called here, where it came from a repository.
    pub id: Option<SkillId>,
}

#[derive(Deserialize)]
struct Document {
    skills: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    source: String,
    #[serde(default)]
    source_type: String,
}

/// The id of a skill of a repository: `owner/repo` with the kind of its host, or an address.
fn id(name: &str, entry: &Entry) -> Option<SkillId> {
    let source = entry
        .source
        .trim()
        .trim_end_matches('/')
        .trim_end_matches(".git");
    let plain = source.split_once("://").map(|(_, rest)| rest);
    let plain = plain.or_else(|| source.strip_prefix("git@"));
    let (host, path) = if let Some(plain) = plain {
        let (host, path) = plain.split_once(['/', ':'])?;
        let mut known = HOSTS.iter();
        let known = known.find(|(known, _)| host.eq_ignore_ascii_case(known));
        (known?.1, path)
    } else {
        let known = HOSTS.iter().find(|(_, known)| entry.source_type == *known);
        (known?.1, source)
    };
    let owner = path.split('/').next()?;
    path.split('/').nth(1)?;
    SkillId::new(host, owner, &slugify(name)?).ok()
}

impl NpxLock {
    /// Reads such a file; none: there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        match read_text(path)? {
            None => Ok(None),
            Some(text) => Self::parse(&text)
                .map(Some)
                .map_err(|reason| Error::Unreadable {
                    path: path.to_owned(),
                    reason,
                }),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let skills = document.skills.into_iter().map(|(name, entry)| NpxSkill {
            id: id(&name, &entry),
            source: entry.source,
            name,
        });
        Ok(Self {
            skills: skills.collect(),
        })
    }
}
