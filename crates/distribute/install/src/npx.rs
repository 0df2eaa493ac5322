//! `skills-lock.json`, the lock of `npx skills`: the name of each skill of a project, and the
//! repository that it came from. The rest of the file is not read.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::Error;
use super::state::read_with;
use model::{HOSTS, SkillId, slugify};

/// The name of the file.
pub const NPX_LOCK_FILE: &str = "skills-lock.json";

/// A skill in the lock of `npx skills`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpxSkill {
    /// Its name.
    pub name: String,
    /// Where it came from, as the lock has it.
    pub source: String,
    /// Its id here, if it came from a repository.
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
    // An owner alone is no repository.
    path.split('/').nth(1)?;
    SkillId::new(host, owner, &slugify(name)?).ok()
}

impl NpxSkill {
    /// Reads the skills of such a lock, by name; none: there is no file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_lock(path: &Path) -> Result<Option<Vec<Self>>, Error> {
        read_with(path, parse)
    }
}

fn parse(text: &str) -> Result<Vec<NpxSkill>, String> {
    let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let skills = document.skills.into_iter().map(|(name, entry)| NpxSkill {
        id: id(&name, &entry),
        source: entry.source,
        name,
    });
    Ok(skills.collect())
}
