//! Publishing: from files to a version.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::head::SemanticEntry;
use super::holds::{HOLDS, Hold, cause, objection};
use super::outcome::skill_event;
use super::scans::{self, SCANS, Scan};
use super::{
    Bundle, Caller, Candidate, DIGESTS, Error, Head, Plan, Policy, Prepared, Registry, SEMANTICS,
    Summary, VERSIONS, VersionState,
};
use executor::{Kind, Stop};
use model::{
    Digest, Event, EventKind, Failure, FilePath, MAX_VERSION_PART, Principal, Problem, Skill,
    SkillId, SkillKey, Version, VersionNumber, stated_version,
};
use store::{Batch, Content, Expect};
use trust::Verdict;

/// The outcome of publishing.
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
    /// The outcome of publishing.
    pub outcome: Outcome,
    /// The version.
    pub version: VersionState,
    /// Its instructions.
    pub entry: FilePath,
    /// Its verdict; none where it was published before there were scans.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The finding that the verdict is from, as a clause; none where it passed.
    #[serde(default)]
    pub cause: Option<String>,
}

/// Returns the version after the highest: its patch raised, or the release of a pre-release. It
/// is above all versions that the skill ever had. None: there is no higher one.
pub(super) fn bumped(highest: Option<&semver::Version>) -> Option<semver::Version> {
    let Some(highest) = highest else {
        return Some(semver::Version::new(1, 0, 0));
    };
    let semver::Version {
        major,
        minor,
        patch,
        ..
    } = *highest;
    let new = semver::Version::new;
    if !highest.pre.is_empty() {
        return Some(new(major, minor, patch));
    }
    let raised = |part: u64| (part < MAX_VERSION_PART).then(|| part + 1);
    let by_patch = raised(patch).map(|patch| new(major, minor, patch));
    by_patch
        .or_else(|| raised(minor).map(|minor| new(major, minor, 0)))
        .or_else(|| raised(major).map(|major| new(major, 0, 0)))
}

/// Returns the semantic version that a SKILL.md states.
pub(super) fn declared(skill: &Skill) -> Result<Option<semver::Version>, Error> {
    let stated = skill.version.as_deref().map_or(Ok(None), stated_version);
    stated.map_err(|error| Error::Parameter {
        field: "files",
        message: format!("the version {error}"),
    })
}

/// Returns the head of a skill with a new version. A skill that was deleted begins anew, above
/// the semantic versions that it had.
fn next_head(
    before: Option<Head>,
    id: &SkillId,
    version: &Version,
    summary: Option<Summary>,
) -> Head {
    let highest_before = before.as_ref().map(|head| head.highest.clone());
    // A deleted skill leaves its numbers and its highest version behind, so that neither comes
    // to mean other bytes.
    let live = before.filter(|head| !head.deleted);
    let mut head = live.unwrap_or_else(|| Head::new(id.clone(), version));
    head.last_number = version.number;
    head.bytes = head.bytes.map(|bytes| bytes + version.size());
    let semantic = version.semantic.clone();
    head.highest = highest_before.map_or(semantic.clone(), |highest| highest.max(semantic));
    head.updated_at = version.created_at;
    if summary.is_some() {
        head.active = Some(version.number);
        head.summary = summary;
    }
    head
}

/// Returns the records of a new version: itself, its indexes, and its contents.
fn new_version(key: &SkillKey, version: &Version, contents: &[Content]) -> Batch {
    let mut batch = Batch::new();
    for content in contents {
        batch.content(content);
    }
    let Version { number, digest, .. } = *version;
    let at = (key.clone(), number);
    // The expected head implies this already. Checked again, so that even with a wrong head no
    // version is ever overwritten.
    batch.expect(&VERSIONS, &at, Expect::Absent);
    batch.put(&VERSIONS, &at, version);
    let semantic = (key.clone(), version.semantic.to_string());
    batch.put(&SEMANTICS, &semantic, &SemanticEntry { number, digest });
    batch.put(&DIGESTS, &(key.clone(), digest), &number);
    batch
}

impl Registry {
    /// Reads a bundle, and returns all its problems, including names that the caller may not
    /// give it; stores nothing.
    ///
    /// # Errors
    /// The server failed. A bundle that would be refused is an answer.
    pub async fn validate(&self, bundle: Bundle, caller: &Principal) -> Result<Candidate, Error> {
        let read = self.executor().run(Kind::Publish, move |_| bundle.read());
        let mut candidate = read.await?;
        if let (Some(id), Some(skill)) = (&candidate.id, &candidate.skill)
            && let Err(refused) = self.inner.policy.names.permit_version(id, skill, caller)
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
        if let (Some(id), Some(skill)) = (&candidate.id, &candidate.skill) {
            candidate.problems.extend(self.shadowed(id, &skill.name));
        }
        Ok(candidate)
    }

    /// Reads, scans and packs a bundle, so that it is ready to be published.
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
        let (others, now) = (self.others(), self.inner.clock.now());
        let prepare = move |stop: &Stop| {
            let (id, skill, digest, files, problems) = bundle.read().accepted()?;
            stop.check()?;
            // Bytes that a version has were scanned with it. Newer rules are applied by
            // `rescan`, in the background.
            let is_known = store.get(&DIGESTS, &(id.key(), digest))?.is_some();
            let scan = if is_known {
                None
            } else {
                let scan = scans::scan(&id, &skill, &bundle.files, &others, now, stop)?;
                Some(Box::new(scan))
            };
            let mut contents = Vec::with_capacity(files.len());
            // Before the check of what is stored: a compaction could drop a content right after
            // it.
            let pinned = Arc::new(store.pin(files.iter().map(|file| file.digest)));
            // In the same order: the files were listed from this map.
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
                scan,
                contents,
                pinned,
                merged_with: None,
                objection: None,
                build: None,
            })
        };
        self.executor().run_fallible(kind, prepare).await
    }

    /// Publishes a version, and activates it if `activate` is set. Known bytes are the version
    /// that has them, which `activate` activates as well, unless it was withdrawn. What policy
    /// holds is published and held: see [`Hold`].
    ///
    /// Calls for one skill take effect in the order in which they are first
    /// polled.
    ///
    /// # Errors
    /// The semantic version exists with other bytes; the skill comes with the server and the
    /// caller is not it; a name is reserved; the skill is blocked.
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
            scan,
            contents,
            pinned,
            merged_with,
            objection,
            build,
        } = prepared;
        let names = &self.inner.policy.names;
        names.permit_version(&id, &skill, &caller.principal)?;
        let key = id.key();
        let declared = declared(&skill)?;
        // Outlives an attempt: a claim that lost to another write may no longer be the caller's
        // to make.
        let mut claims = false;
        // The lock only saves retries. The batch states the head that it read, so a second
        // writer elsewhere would do no harm.
        let _queue = self.lock(&key).await;
        self.write(caller, || {
            // All of this is checked again in every attempt: the skill may have been blocked,
            // deleted or published by another caller since.
            self.refuse_blocked(&key, caller)?;
            let stored = self.stored_head(&key)?;
            let revision = stored.as_ref().map(|stored| stored.revision);
            let head = stored.map(|stored| stored.value);
            let live = head.as_ref().filter(|head| !head.deleted);
            // A part of a skill was merged into the version that was active then. Published now,
            // it would revert what came between; the caller merges again.
            if merged_with.is_some() && live.and_then(|head| head.active) != merged_with {
                return Err(Error::Contention);
            }
            if let (Some(head), Some(revision)) = (&head, revision)
                && !head.deleted
                && let Some(number) = self.inner.store.get(&DIGESTS, &(key.clone(), digest))?
            {
                let head = head.clone();
                return self.publish_again(revision, head, number.value, activate, caller);
            }
            // The skill was deleted since its digest was found: nothing was scanned.
            let scan = scan.as_deref().ok_or(Error::Contention)?;
            let told_apart = (&digest, build.as_ref());
            let semantic =
                self.distinct_semantic(&id, head.as_ref(), declared.as_ref(), told_apart)?;
            let number = head
                .as_ref()
                .map_or(Some(VersionNumber::FIRST), |head| head.last_number.next());
            let number = number.ok_or_else(|| Error::OutOfNumbers { id: id.clone() })?;
            let mut skill = skill.clone();
            self.catalog().resolve_requirements(&id, &mut skill);
            let version = Version {
                number,
                semantic,
                digest,
                skill,
                files: files.clone(),
                problems: problems.clone(),
                created_at: self.inner.clock.now(),
                created_by: caller.principal.clone(),
                change_summary: change_summary.to_owned(),
            };
            let outcome = match live {
                Some(_) => Outcome::Updated,
                None => Outcome::Created,
            };
            if live.is_none() {
                self.permit_slug(&id, caller)?;
            }
            self.permit_storage(&id, live.is_none(), &version)?;
            // A version that fails its scan is published and held, not refused: its publisher
            // has a number to refer to, a reviewer has something to approve, and a false alarm
            // costs a review instead of another upload.
            let hold = self.hold(&id, live, scan, (activate, objection.as_deref()), caller)?;
            let activates = activate && hold.is_none();
            let summary = activates.then(|| Summary::new(&version, Some(scan.facts())));
            let head = next_head(head, &id, &version, summary);
            let mut batch = new_version(&key, &version, &contents);
            batch.pinned(&pinned);
            let at = (key.clone(), number);
            batch.put(&SCANS, &at, scan);
            if let Some(hold) = &hold {
                batch.put(&HOLDS, &at, hold);
            }
            let event = Event {
                version: Some(number),
                semantic_version: Some(version.semantic.clone()),
                digest: Some(digest),
                active: head.active,
                held: hold.is_some(),
                ..skill_event(EventKind::Published, &head.id, version.created_at, caller)
            };
            let published = Published {
                id: head.id.clone(),
                outcome,
                version: VersionState::new(&head, &version, None, hold.as_ref()),
                entry: version.skill.entry.clone(),
                verdict: Some(scan.report.verdict),
                cause: cause(&scan.report),
            };
            self.put_head(&mut batch, revision, head)?;
            self.claim(&mut batch, &id, caller, &mut claims)?;
            Ok(Plan::Write(batch, event, published))
        })
        .await
    }

    /// Returns the hold of a new version, if there is a reason.
    fn hold(
        &self,
        id: &SkillId,
        head: Option<&Head>,
        scan: &Scan,
        (activate, own): (bool, Option<&str>),
        caller: &Caller,
    ) -> Result<Option<Hold>, Error> {
        // The server is built with these skills.
        if id.is_builtin() && caller.principal == Principal::system() {
            return Ok(None);
        }
        // Read only where policy compares with it: it costs a scan's record.
        let before = || {
            let before = head.and_then(|head| Some((head, head.active?)));
            let scan = before.map(|(head, number)| self.scan_of(head, number));
            let scan = scan.transpose()?.flatten();
            Ok(scan.map(|scan| scan.report.clone()))
        };
        let Policy { hold, tiers, .. } = &self.inner.policy;
        let reason = objection(*hold, tiers.of(id), &scan.report, before)?;
        let reason = reason.or_else(|| own.map(str::to_owned));
        Ok(reason.map(|reason| Hold {
            reason,
            time: scan.time,
            activate,
            rejected: None,
        }))
    }

    /// Publishes bytes that a version has already: it becomes active where that was asked for.
    fn publish_again(
        &self,
        revision: u64,
        mut head: Head,
        number: VersionNumber,
        activate: bool,
        caller: &Caller,
    ) -> Result<Plan<Published>, Error> {
        let version = self.any_version(&head, number)?;
        let yank = self.stored_yank(&head, number)?;
        let hold = self.stored_hold(&head.id.key(), number)?;
        // To publish bytes again restores neither a withdrawn nor a held version: these have
        // calls of their own, which record the caller and the reason.
        let is_available = yank.is_none() && hold.is_none();
        let activate = activate && is_available && head.active != Some(number);
        if activate {
            head.active = Some(number);
            head.summary = Some(self.summary(&head.id, &version)?);
        }
        let scan = self.scan_of(&head, number)?;
        let published = Published {
            id: head.id.clone(),
            outcome: Outcome::Unchanged,
            version: VersionState::new(&head, &version, yank.as_ref(), hold.as_ref()),
            entry: version.skill.entry.clone(),
            verdict: scan.as_ref().map(|scan| scan.report.verdict),
            cause: scan.and_then(|scan| cause(&scan.report)),
        };
        if !activate {
            return Ok(Plan::Done(published));
        }
        let (batch, event) = self.edit(revision, head, EventKind::Activated, &version, caller)?;
        Ok(Plan::Write(batch, event, published))
    }

    /// Returns the semantic version of new bytes. Where the stated one is another version's,
    /// `build` distinguishes them.
    fn distinct_semantic(
        &self,
        id: &SkillId,
        head: Option<&Head>,
        declared: Option<&semver::Version>,
        (digest, build): (&Digest, Option<&semver::BuildMetadata>),
    ) -> Result<semver::Version, Error> {
        match (self.next_semantic(id, head, declared, digest), build) {
            (Err(Error::VersionConflict { mut semantic, .. }), Some(build)) => {
                // Sources change skills without raising versions. `1.2.0+DIGEST` is above none
                // of their later versions; a patch number of ours would collide with one.
                semantic.build = build.clone();
                self.next_semantic(id, head, Some(&semantic), digest)
            }
            (semantic, _) => semantic,
        }
    }

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
        // Heads of earlier versions of this program forgot what a deleted skill had; the next
        // one written remembers it.
        let highest = self.highest_ever(&key)?;
        bumped(highest.as_ref()).ok_or_else(exhausted)
    }
}
