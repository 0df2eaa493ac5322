//! Publishing: from files to a version.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::head::SemanticEntry;
use super::{
    Caller, DIGESTS, Error, Head, Plan, Registry, SEMANTICS, Summary, VERSIONS, VersionState,
    put_head,
};
use executor::{Kind, Stop};
use model::{
    Digest, Event, EventKind, Failure, FileEntry, FilePath, MAX_VERSION_PART, Principal, Problem,
    Severity, Skill, SkillId, SkillKey, Version, VersionNumber, VersionSelector, Yank,
    bundle_digest, stated_version,
};
use store::{Batch, Content, Expect, Pinned};

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

impl Candidate {
    /// It would be published.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let refuses = |problem: &Problem| problem.severity == Severity::Error;
        self.id.is_some() && self.skill.is_some() && !self.problems.iter().any(refuses)
    }
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
    /// The contents that are not among them, and are stored.
    pinned: Arc<Pinned>,
}

impl Prepared {
    /// Digest over all its files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What was found in them.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
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
    /// The version.
    pub version: VersionState,
    /// Its instructions.
    pub entry: FilePath,
}

impl Published {
    fn new(outcome: Outcome, head: &Head, version: &Version, yank: Option<&Yank>) -> Self {
        Self {
            id: head.id.clone(),
            outcome,
            version: VersionState::new(head, version, yank),
            entry: version.skill.entry.clone(),
        }
    }
}

impl Bundle {
    /// Reads the files. Hashes up to 16 MiB: call it where blocking is allowed.
    #[must_use]
    pub fn read(&self) -> Candidate {
        let folder = (!self.folder.is_empty()).then_some(self.folder.as_str());
        let options = skill_md::ReadOptions {
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

/// The version after the highest: its patch raised, or the release of a
/// pre-release. It is above all versions that the skill ever had. None: there is no
/// higher one.
fn bumped(highest: Option<&semver::Version>) -> Option<semver::Version> {
    let Some(highest) = highest else {
        return Some(semver::Version::new(1, 0, 0));
    };
    let semver::Version {
        major,
        minor,
        patch,
        ..
    } = *highest;
    let raised = |part: u64| (part < MAX_VERSION_PART).then(|| part + 1);
    if !highest.pre.is_empty() {
        return Some(semver::Version::new(major, minor, patch));
    }
    if let Some(patch) = raised(patch) {
        return Some(semver::Version::new(major, minor, patch));
    }
    if let Some(minor) = raised(minor) {
        return Some(semver::Version::new(major, minor, 0));
    }
    raised(major).map(|major| semver::Version::new(major, 0, 0))
}

/// The head of a skill once it has a new version. A skill that was deleted begins anew,
/// above the semantic versions that it had.
fn next_head(before: Option<Head>, id: &SkillId, version: &Version, activate: bool) -> Head {
    let now = version.created_at;
    let highest_before = before.as_ref().map(|head| head.highest.clone());
    let live = before.filter(|head| !head.deleted);
    let mut head = live.unwrap_or_else(|| Head {
        id: id.clone(),
        deleted: false,
        first_number: version.number,
        last_number: version.number,
        highest: version.semantic.clone(),
        active: None,
        summary: None,
        withdrawn: imbl::OrdSet::new(),
        inline: BTreeMap::new(),
        created_at: now,
        updated_at: now,
    });
    head.last_number = version.number;
    let highest = highest_before
        .into_iter()
        .chain([version.semantic.clone()])
        .max();
    head.highest = highest.unwrap_or(head.highest);
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
    /// Reads a bundle, and says all that is wrong with it, names that the caller may not
    /// give it among them; stores nothing.
    ///
    /// # Errors
    /// The server failed. A bundle that would be refused is an answer.
    pub async fn validate(&self, bundle: Bundle, caller: &Principal) -> Result<Candidate, Error> {
        let read = self.executor().run(Kind::Publish, move |_| bundle.read());
        let mut candidate = read.await?;
        if let (Some(id), Some(skill)) = (&candidate.id, &candidate.skill)
            && let Err(refused) = self.inner.names.permit_version(id, skill, caller)
        {
            let Failure {
                message,
                suggestions,
                ..
            } = refused.into();
            let parts: Vec<_> = [message].into_iter().chain(suggestions).collect();
            let problem = Problem::error("name-refused", "", 0, parts.join(". "));
            candidate.problems.insert(0, problem);
        }
        Ok(candidate)
    }

    /// Reads and packs a bundle, so that it is ready to be published.
    ///
    /// # Errors
    /// The files do not make a skill.
    pub async fn prepare(&self, bundle: Bundle) -> Result<Prepared, Error> {
        self.prepare_as(Kind::Publish, bundle).await
    }

    /// The same as work of another kind.
    ///
    /// # Errors
    /// The files do not make a skill.
    pub async fn prepare_as(&self, kind: Kind, bundle: Bundle) -> Result<Prepared, Error> {
        let store = self.inner.store.clone();
        let prepare = move |stop: &Stop| {
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
            // Before it looks what is stored.
            let pinned = Arc::new(store.pin(files.iter().map(|file| file.digest)));
            for (file, content) in files.iter().zip(bundle.files.values()) {
                stop.check()?;
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
                pinned,
            })
        };
        self.executor().run_fallible(kind, prepare).await
    }

    /// Publishes a version, and makes it the active one where `activate` is true. Bytes
    /// that are known are the version that has them, which `activate` makes the active
    /// one as well, unless it was withdrawn.
    ///
    /// Calls for one skill take effect in the order in which they are first
    /// polled.
    ///
    /// # Errors
    /// The semantic version exists with other bytes; the skill comes with the
    /// server and the caller is not it; a name is not the caller's to give.
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
            pinned,
        } = prepared;
        let names = &self.inner.names;
        names.permit_version(&id, &skill, &caller.principal)?;
        let key = id.key();
        let stated = skill.version.as_deref().map_or(Ok(None), stated_version);
        let declared = stated.map_err(|error| Error::Parameter {
            field: "files",
            message: format!("the version {error}"),
        })?;
        let _queue = self.lock(&key).await;
        self.write(caller, || {
            let stored = self.stored_head(&key)?;
            let revision = stored.as_ref().map(|stored| stored.revision);
            let head = stored.map(|stored| stored.value);
            if let (Some(head), Some(revision)) = (&head, revision)
                && !head.deleted
                && let Some(number) = self.inner.store.get(&DIGESTS, &(key.clone(), digest))?
            {
                let head = head.clone();
                return self.publish_again(revision, head, number.value, activate, caller);
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
            let outcome = match &head {
                Some(head) if !head.deleted => Outcome::Updated,
                _ => Outcome::Created,
            };
            let head = next_head(head, &id, &version, activate);
            let mut batch = new_version(&key, &version, &contents);
            batch.pinned(&pinned);
            let event = Event {
                kind: EventKind::Published,
                skill_id: head.id.clone(),
                version: Some(number),
                semantic_version: Some(version.semantic.clone()),
                digest: Some(digest),
                active: head.active,
                time: version.created_at,
                actor: caller.principal.clone(),
            };
            let published = Published::new(outcome, &head, &version, None);
            put_head(&mut batch, revision, head);
            Ok(Plan::Write(batch, event, published))
        })
        .await
    }

    /// Bytes that a version has already: it becomes active where that was asked for.
    fn publish_again(
        &self,
        revision: u64,
        mut head: Head,
        number: VersionNumber,
        activate: bool,
        caller: &Caller,
    ) -> Result<Plan<Published>, Error> {
        let version = self.version(&head, &VersionSelector::Number(number))?;
        let yank = self.stored_yank(&head, number)?;
        let activate = activate && yank.is_none() && head.active != Some(number);
        if activate {
            head.active = Some(number);
            head.summary = Some(Summary::from(&*version));
        }
        let published = Published::new(Outcome::Unchanged, &head, &version, yank.as_ref());
        if !activate {
            return Ok(Plan::Done(published));
        }
        let (batch, event) = self.edit(revision, head, EventKind::Activated, &version, caller);
        Ok(Plan::Write(batch, event, published))
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
        let exhausted = || Error::OutOfVersions { id: id.clone() };
        let next = bumped(head.map(|head| &head.highest)).ok_or_else(exhausted)?;
        if taken(&next)?.is_none() {
            return Ok(next);
        }
        // Heads of before forgot what a deleted skill had; from the next one on they know.
        let highest = self.highest_ever(&key)?;
        bumped(highest.as_ref()).ok_or_else(exhausted)
    }
}
