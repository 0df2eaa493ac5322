//! Publishing: from files to a version.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::head::SemanticEntry;
use super::{Caller, DIGESTS, Error, Head, Plan, Registry, SEMANTICS, Summary, VERSIONS, blocking};
use crate::model::{
    Digest, Event, EventKind, FileEntry, FilePath, Problem, Skill, SkillId, SkillKey, Version,
    VersionNumber, bundle_digest,
};
use crate::skill_md;
use crate::store::{Batch, Content, Expect};

/// The files of a skill, and how to look at them.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// Where the skill lives; none: `local/global/` and its name.
    pub id: Option<SkillId>,
    /// Its files.
    pub files: BTreeMap<FilePath, Bytes>,
    /// Name of the folder they come from; empty: not known.
    pub folder: String,
    /// Refuse what the standard does not allow.
    pub strict: bool,
}

/// A bundle that was read: what would be published, and all that is wrong.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Id it would get; none where it has no usable name.
    pub id: Option<SkillId>,
    /// What its SKILL.md says; none where it is refused.
    pub skill: Option<Skill>,
    /// Digest over all its files.
    pub digest: Digest,
    /// Its files, by path.
    pub files: Vec<FileEntry>,
    /// All that was found, errors first.
    pub problems: Vec<Problem>,
}

/// A bundle that was read and packed.
#[derive(Debug)]
pub struct Prepared {
    id: SkillId,
    skill: Skill,
    digest: Digest,
    files: Vec<FileEntry>,
    problems: Vec<Problem>,
    contents: Vec<Content>,
}

/// What publishing came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The skill is new.
    Created,
    /// The skill has one more version.
    Updated,
    /// A version with these bytes was there already.
    Unchanged,
}

/// A published version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The skill, as stored.
    pub id: SkillId,
    /// What publishing came to.
    pub outcome: Outcome,
    /// Number of the version.
    pub number: VersionNumber,
}

impl Bundle {
    /// Reads the files. Hashes up to 16 MiB: call it where blocking is allowed.
    #[must_use]
    pub fn read(&self) -> Candidate {
        let folder = (!self.folder.is_empty()).then_some(self.folder.as_str());
        let options = skill_md::Options {
            strict: self.strict,
            folder,
        };
        let skill_md::Reading {
            skill,
            slug,
            problems,
        } = skill_md::read(&self.files, &options);
        let files: Vec<FileEntry> = self
            .files
            .iter()
            .map(|(path, content)| FileEntry {
                path: path.clone(),
                digest: Digest::of(content),
                size: content.len() as u64,
            })
            .collect();
        let digest = bundle_digest(files.iter().map(|file| (&file.path, file.digest)));
        let id = self.id.clone().or_else(|| {
            let slug = slug?;
            SkillId::new(SkillId::LOCAL, "global", &slug).ok()
        });
        Candidate {
            id,
            skill,
            digest,
            files,
            problems,
        }
    }
}

/// A version that a front matter states, as a semantic one: `1`, `1.0` and
/// `v1.2.3` are understood.
fn semantic(stated: &str) -> Option<semver::Version> {
    let plain = stated.trim().trim_start_matches(['v', 'V']);
    if let Ok(version) = plain.parse() {
        return Some(version);
    }
    let mut parts = plain.split('.').map(str::parse::<u64>);
    let (major, minor, patch) = (parts.next()?, parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    Some(semver::Version::new(
        major.ok()?,
        minor.transpose().ok()?.unwrap_or(0),
        patch.transpose().ok()?.unwrap_or(0),
    ))
}

/// The version after the highest: its patch raised, or the release of a
/// pre-release.
fn bumped(highest: Option<&semver::Version>) -> semver::Version {
    match highest {
        None => semver::Version::new(1, 0, 0),
        Some(v) if v.pre.is_empty() => {
            semver::Version::new(v.major, v.minor, v.patch.saturating_add(1))
        }
        Some(v) => semver::Version::new(v.major, v.minor, v.patch),
    }
}

/// The head of a skill once it has a new version.
fn next_head(live: Option<Head>, id: &SkillId, version: &Version, activate: bool) -> Head {
    let now = version.created_at;
    let mut head = live.unwrap_or_else(|| Head {
        id: id.clone(),
        deleted: false,
        first_number: version.number,
        last_number: version.number,
        highest: version.semantic.clone(),
        active: None,
        summary: None,
        yanked: BTreeMap::new(),
        created_at: now,
        updated_at: now,
    });
    head.last_number = version.number;
    head.highest = head.highest.max(version.semantic.clone());
    head.updated_at = now;
    if activate {
        head.active = Some(version.number);
        head.summary = Some(Summary::from(version));
    }
    head
}

/// The records of a new version: itself, the ways to find it, and its contents.
fn new_version(key: &SkillKey, version: &Version, contents: &[Content]) -> Batch {
    let mut batch = Batch::new();
    for content in contents {
        batch.content(content);
    }
    let Version { number, digest, .. } = *version;
    let at = (key.clone(), number);
    batch.expect(&VERSIONS, &at, Expect::Absent);
    batch.put(&VERSIONS, &at, version);
    let semantic = (key.clone(), version.semantic.to_string());
    batch.put(&SEMANTICS, &semantic, &SemanticEntry { number, digest });
    batch.put(&DIGESTS, &(key.clone(), digest), &number);
    batch
}

impl Registry {
    /// Reads a bundle, and says all that is wrong with it; stores nothing.
    ///
    /// # Errors
    /// The server failed. A bundle that would be refused is an answer.
    pub async fn validate(&self, bundle: Bundle) -> Result<Candidate, Error> {
        blocking(move || bundle.read()).await
    }

    /// Reads and packs a bundle, so that it is ready to be published.
    ///
    /// # Errors
    /// The files do not make a skill.
    pub async fn prepare(&self, bundle: Bundle) -> Result<Prepared, Error> {
        let store = self.inner.store.clone();
        let prepared = blocking(move || {
            let candidate = bundle.read();
            let Candidate {
                id: Some(id),
                skill: Some(skill),
                digest,
                files,
                problems,
            } = candidate
            else {
                return Err(Error::Invalid {
                    problems: candidate.problems,
                });
            };
            let mut contents = Vec::with_capacity(files.len());
            for (file, content) in files.iter().zip(bundle.files.values()) {
                if !store.has_content(&file.digest)? {
                    contents.push(Content::pack(file.digest, content));
                }
            }
            Ok(Prepared {
                id,
                skill,
                digest,
                files,
                problems,
                contents,
            })
        });
        prepared.await?
    }

    /// Publishes a version, and makes it the active one where `activate` is true.
    ///
    /// Calls for one skill take effect in the order in which they are first
    /// polled.
    ///
    /// # Errors
    /// The semantic version exists with other bytes; the skill comes with the
    /// server and the caller is not it.
    pub async fn publish(
        &self,
        prepared: Prepared,
        change_summary: &str,
        activate: bool,
        caller: &Caller,
    ) -> Result<Published, Error> {
        let Prepared {
            id,
            skill,
            digest,
            files,
            problems,
            contents,
        } = prepared;
        if id.is_builtin() && caller.principal != crate::model::Principal::system() {
            return Err(Error::ReadOnly { id });
        }
        let key = id.key();
        let declared = skill.version.as_deref().and_then(semantic);
        let fingerprint = format!("publish\0{key}\0{digest}\0{change_summary}\0{activate}");
        let _queue = self.lock(&key).await;
        self.write(caller, &fingerprint, || {
            let stored = self.stored_head(&key)?;
            let revision = stored.as_ref().map(|stored| stored.revision);
            let head = stored.map(|stored| stored.value);
            if let Some(head) = head.as_ref().filter(|head| !head.deleted)
                && let Some(number) = self.inner.store.get(&DIGESTS, &(key.clone(), digest))?
            {
                return Ok(Plan::Done(Published {
                    id: head.id.clone(),
                    outcome: Outcome::Unchanged,
                    number: number.value,
                }));
            }
            let semantic = self.next_semantic(&id, head.as_ref(), declared.as_ref(), &digest)?;
            let number = head
                .as_ref()
                .map_or(Some(VersionNumber::FIRST), |head| head.last_number.next());
            let number = number.ok_or_else(|| Error::OutOfNumbers { id: id.clone() })?;
            let version = Version {
                number,
                semantic,
                digest,
                skill: skill.clone(),
                files: files.clone(),
                problems: problems.clone(),
                created_at: self.inner.clock.now(),
                created_by: caller.principal.clone(),
                change_summary: change_summary.to_owned(),
            };
            let live = head.filter(|head| !head.deleted);
            let outcome = if live.is_some() {
                Outcome::Updated
            } else {
                Outcome::Created
            };
            let head = next_head(live, &id, &version, activate);
            let mut batch = new_version(&key, &version, &contents);
            batch.event(Event {
                kind: EventKind::Published,
                skill_id: head.id.clone(),
                version: Some(number),
                semantic_version: Some(version.semantic.clone()),
                digest: Some(digest),
                active: head.active,
                time: version.created_at,
                actor: caller.principal.clone(),
            });
            let published = Published {
                id: head.id.clone(),
                outcome,
                number,
            };
            self.put_head(&mut batch, revision, head);
            Ok(Plan::Write(batch, published))
        })
        .await
    }

    /// The semantic version that a publish gets.
    fn next_semantic(
        &self,
        id: &SkillId,
        head: Option<&Head>,
        declared: Option<&semver::Version>,
        digest: &Digest,
    ) -> Result<semver::Version, Error> {
        let key = id.key();
        let taken = |semantic: &semver::Version| -> Result<Option<SemanticEntry>, Error> {
            let entry = self
                .inner
                .store
                .get(&SEMANTICS, &(key.clone(), semantic.to_string()))?;
            Ok(entry
                .map(|entry| entry.value)
                .filter(|entry| entry.digest != *digest))
        };
        if let Some(declared) = declared {
            return match taken(declared)? {
                None => Ok(declared.clone()),
                Some(entry) => Err(Error::VersionConflict {
                    id: id.clone(),
                    semantic: declared.clone(),
                    existing: entry.number,
                }),
            };
        }
        let mut semantic = bumped(head.map(|head| &head.highest));
        // A deleted skill begins anew, above what it had.
        while taken(&semantic)?.is_some() {
            semantic = bumped(Some(&semantic));
        }
        Ok(semantic)
    }
}
