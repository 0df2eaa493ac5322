//! History: listing, activating and withdrawing versions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outcome::skill_event;
use super::yanks::YANKS;
use super::{Caller, Error, Head, Hold, Plan, Registry, SEMANTICS, VERSIONS, VersionState};
use model::{
    Digest, Event, EventKind, Problem, SkillId, SkillKey, Version, VersionNumber, VersionSelector,
    Yank, open_token, seal_token,
};
use store::{Batch, prefix};

/// A version with its state.
#[derive(Debug, Clone)]
pub struct Described {
    /// The skill.
    pub head: Arc<Head>,
    /// The version.
    pub version: Arc<Version>,
    /// Its withdrawal.
    pub yank: Option<Yank>,
    /// Its hold.
    pub hold: Option<Hold>,
}

impl Described {
    /// Returns whether the skill's name resolves to it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.head.active == Some(self.version.number)
    }
}

/// A page of versions, newest first.
#[derive(Debug, Clone)]
pub struct VersionPage {
    /// The skill.
    pub head: Arc<Head>,
    /// The versions.
    pub versions: Vec<Described>,
    /// Token of the next page; none: this is the last.
    pub next: Option<String>,
}

/// The activation of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activated {
    /// The skill.
    pub id: SkillId,
    /// The version that is active.
    pub version: VersionState,
    /// The one that was active before.
    pub previous: Option<VersionNumber>,
}

/// The withdrawal of a version, or its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    /// The skill.
    pub id: SkillId,
    /// The version.
    pub version: VersionState,
    /// The version that is active now.
    pub active: Option<VersionNumber>,
    /// The skills that require it, 100 at most, where no version is active any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<SkillId>,
}

/// The names of a version, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its semantic version.
    pub semantic: semver::Version,
    /// Its number.
    pub number: VersionNumber,
    /// Digest over all its files.
    pub digest: Digest,
    /// Whether it was withdrawn.
    pub is_yanked: bool,
}

/// Returns the semantic version of a key, after the skill's part.
fn semantic(key: &[u8]) -> Option<semver::Version> {
    let text = std::str::from_utf8(key.strip_suffix(&[0])?).ok()?;
    text.parse().ok()
}

const PAGE: &str = "versions";

impl Registry {
    /// Returns a version with its state.
    ///
    /// # Errors
    /// There is no such skill or version.
    pub fn describe(&self, id: &SkillId, selector: &VersionSelector) -> Result<Described, Error> {
        let head = self.head(id)?;
        let version = self.version(&head, selector)?;
        self.described(head, version)
    }

    /// Returns a version of a head with its state.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn described(&self, head: Arc<Head>, version: Arc<Version>) -> Result<Described, Error> {
        let yank = self.yank_of(&head, version.number)?;
        let hold = self.hold_of(&head, version.number)?;
        Ok(Described {
            head,
            version,
            yank,
            hold,
        })
    }

    /// Returns a version with its state, and the body of its instructions.
    ///
    /// # Errors
    /// There is no such skill or version, or its SKILL.md is damaged.
    pub async fn instructions(
        &self,
        id: &SkillId,
        selector: &VersionSelector,
    ) -> Result<(Described, String), Error> {
        let described = self.describe(id, selector)?;
        let version = &described.version;
        let entry = version.skill.entry.as_str();
        let skill_md = self.file(id, version, entry).await?;
        let body = skill_md::body(&String::from_utf8_lossy(&skill_md)).to_owned();
        Ok((described, body))
    }

    /// Returns the problems of a version; none, where there is no such version.
    ///
    /// # Errors
    /// Its record is damaged, or the store cannot be read.
    pub fn problems(&self, id: &SkillId, number: VersionNumber) -> Result<Vec<Problem>, Error> {
        let found = self
            .head(id)
            .and_then(|head| self.any_version(&head, number));
        match found {
            Ok(version) => Ok(version.problems.clone()),
            Err(Error::SkillNotFound { .. } | Error::VersionNotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the versions of a skill, newest first, withdrawn ones included.
    ///
    /// # Errors
    /// There is no such skill; the token is of another query.
    pub fn list_versions(
        &self,
        id: &SkillId,
        size: usize,
        token: &str,
    ) -> Result<VersionPage, Error> {
        let head = self.head(id)?;
        let key = head.id.key();
        let below = match token {
            "" => None,
            token => {
                let place = open_token(PAGE, key.as_str(), token);
                let number = place.and_then(|place| VersionNumber::new(place.parse().ok()?));
                Some((key.clone(), number.ok_or(Error::PageToken)?))
            }
        };
        if let Some(local) = &head.local {
            let version = Arc::clone(&local.version);
            let is_below = below.is_none_or(|(_, below)| version.number < below);
            let only = is_below.then(|| self.described(Arc::clone(&head), version));
            return Ok(VersionPage {
                versions: only.into_iter().collect::<Result<_, _>>()?,
                head,
                next: None,
            });
        }
        let found = self
            .inner
            .store
            .before(&VERSIONS, &prefix(&key), below.as_ref(), size + 1)?;
        let more = found.len() > size;
        let versions = found
            .into_iter()
            .take(size)
            .map(|version| self.described(Arc::clone(&head), Arc::new(version)))
            .collect::<Result<Vec<_>, _>>()?;
        let next = versions
            .last()
            .filter(|_| more)
            .map(|last| seal_token(PAGE, key.as_str(), &last.version.number.to_string()));
        Ok(VersionPage {
            head,
            versions,
            next,
        })
    }

    /// Returns the names of all available versions of a skill, lowest first.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn releases(&self, head: &Head) -> Result<Vec<Release>, Error> {
        if let Some(local) = &head.local {
            let version = &local.version;
            return Ok(Vec::from_iter(local.hold.is_none().then(|| Release {
                semantic: version.semantic.clone(),
                number: version.number,
                digest: version.digest,
                is_yanked: false,
            })));
        }
        let prefix = prefix(&head.id.key());
        let mut releases = Vec::new();
        for entry in self.inner.store.scan(&SEMANTICS, &prefix) {
            let (key, entry) = entry?;
            // The entries of versions before a delete stay, and are not available.
            let kept = head.first_number..=head.last_number;
            let number = entry.value.number;
            let is_there = kept.contains(&number) && !head.is_held(number);
            let Some(semantic) = semantic(&key).filter(|_| is_there) else {
                continue;
            };
            releases.push(Release {
                semantic,
                number,
                digest: entry.value.digest,
                is_yanked: head.is_withdrawn(number),
            });
        }
        releases.sort_by(|a, b| (&a.semantic, a.number).cmp(&(&b.semantic, b.number)));
        Ok(releases)
    }

    /// Returns the highest semantic version that a skill ever had, deleted ones included. Reads
    /// all of them.
    pub(super) fn highest_ever(&self, key: &SkillKey) -> Result<Option<semver::Version>, Error> {
        let mut highest = None;
        for entry in self.inner.store.scan(&SEMANTICS, &prefix(key)) {
            highest = highest.max(semantic(&entry?.0));
        }
        Ok(highest)
    }

    /// Activates a version.
    ///
    /// # Errors
    /// There is no such version, or it was withdrawn; the skill is blocked.
    pub async fn activate(
        &self,
        id: &SkillId,
        version: impl Into<VersionSelector>,
        caller: &Caller,
    ) -> Result<Activated, Error> {
        let selector = version.into();
        let _queue = self.lock(&id.key()).await;
        self.write(caller, || {
            self.refuse_blocked(&id.key(), caller)?;
            let (mut head, revision) = self.writable(id, caller)?;
            let number = self.number(&head, &selector)?;
            let version = self.any_version(&head, number)?;
            if let Some(hold) = self.stored_hold(&head.id.key(), number)? {
                return Err(Error::held(&head, number, Some(hold)));
            }
            if let Some(yank) = self.stored_yank(&head, number)? {
                return Err(Error::Yanked {
                    id: head.id,
                    version: number,
                    reason: yank.reason,
                });
            }
            let previous = head.active.replace(number);
            let activated = Activated {
                id: head.id.clone(),
                version: VersionState::new(&head, &version, None, None),
                previous,
            };
            // No event: nothing has changed, and watchers would be misled.
            if previous == Some(number) {
                return Ok(Plan::Done(activated));
            }
            head.summary = Some(self.summary(&head.id, &version)?);
            let (batch, event) =
                self.edit(revision, head, EventKind::Activated, &version, caller)?;
            Ok(Plan::Write(batch, event, activated))
        })
        .await
    }

    /// Withdraws a version; the highest other one becomes active where it was.
    ///
    /// # Errors
    /// There is no such version, or the skill comes with the server.
    pub async fn yank(
        &self,
        id: &SkillId,
        version: impl Into<VersionSelector>,
        reason: &str,
        caller: &Caller,
    ) -> Result<Withdrawn, Error> {
        let selector = version.into();
        let _queue = self.lock(&id.key()).await;
        self.write(caller, || {
            let (mut head, revision) = self.writable(id, caller)?;
            let number = self.number(&head, &selector)?;
            let version = self.any_version(&head, number)?;
            let hold = self.stored_hold(&head.id.key(), number)?;
            let withdrawn = |head: &Head, yank: &Yank| Withdrawn {
                id: head.id.clone(),
                version: VersionState::new(head, &version, Some(yank), hold.as_ref()),
                active: head.active,
                dependents: match head.active {
                    Some(_) => Vec::new(),
                    None => self.catalog().some_dependents(&head.id),
                },
            };
            if let Some(yank) = self.stored_yank(&head, number)? {
                return Ok(Plan::Done(withdrawn(&head, &yank)));
            }
            let yank = Yank {
                reason: reason.to_owned(),
                time: self.inner.clock.now(),
                actor: caller.principal.clone(),
            };
            head.withdrawn.insert(number);
            if head.active == Some(number) {
                // Not none: callers that use the skill by its name go on with the best version
                // that is left.
                head.active = self.stored_available(&mut head)?;
                let next = head.active.map(|next| self.summary_of(&head, next));
                head.summary = next.transpose()?;
            }
            let withdrawn = withdrawn(&head, &yank);
            let at = (head.id.key(), number);
            let (mut batch, event) =
                self.edit(revision, head, EventKind::Yanked, &version, caller)?;
            batch.put(&YANKS, &at, &yank);
            Ok(Plan::Write(batch, event, withdrawn))
        })
        .await
    }

    /// Ends the withdrawal of a version; it becomes active where none is.
    ///
    /// # Errors
    /// There is no such version, or the skill comes with the server.
    pub async fn unyank(
        &self,
        id: &SkillId,
        version: impl Into<VersionSelector>,
        caller: &Caller,
    ) -> Result<Withdrawn, Error> {
        let selector = version.into();
        let _queue = self.lock(&id.key()).await;
        self.write(caller, || {
            let (mut head, revision) = self.writable(id, caller)?;
            let number = self.number(&head, &selector)?;
            let version = self.any_version(&head, number)?;
            let hold = self.stored_hold(&head.id.key(), number)?;
            let available = |head: &Head| Withdrawn {
                id: head.id.clone(),
                version: VersionState::new(head, &version, None, hold.as_ref()),
                active: head.active,
                dependents: Vec::new(),
            };
            if self.stored_yank(&head, number)?.is_none() {
                return Ok(Plan::Done(available(&head)));
            }
            head.inline.remove(&number);
            // Only where none is active: a version that was activated meanwhile stays.
            if head.active.is_none() && hold.is_none() {
                head.active = Some(number);
                head.summary = Some(self.summary(&head.id, &version)?);
            }
            let available = available(&head);
            let at = (head.id.key(), number);
            let (mut batch, event) =
                self.edit(revision, head, EventKind::Unyanked, &version, caller)?;
            batch.delete(&YANKS, &at);
            Ok(Plan::Write(batch, event, available))
        })
        .await
    }

    /// Reads the head of a skill that the caller may change, with its revision.
    pub(super) fn writable(&self, id: &SkillId, caller: &Caller) -> Result<(Head, u64), Error> {
        let stored = self
            .stored_head(&id.key())?
            .filter(|stored| !stored.value.deleted)
            .ok_or_else(|| self.catalog().not_found(id.as_str()))?;
        let names = &self.inner.policy.names;
        names.permit(&stored.value.id, &caller.principal)?;
        Ok((stored.value, stored.revision))
    }

    /// Returns the batch of a change of a head, and its event.
    pub(super) fn edit(
        &self,
        revision: u64,
        mut head: Head,
        kind: EventKind,
        version: &Version,
        caller: &Caller,
    ) -> Result<(Batch, Event), Error> {
        head.updated_at = self.inner.clock.now();
        self.record(revision, head, kind, version, caller)
    }

    /// The same without a new time of change.
    pub(super) fn record(
        &self,
        revision: u64,
        head: Head,
        kind: EventKind,
        version: &Version,
        caller: &Caller,
    ) -> Result<(Batch, Event), Error> {
        let event = Event {
            version: Some(version.number),
            semantic_version: Some(version.semantic.clone()),
            digest: Some(version.digest),
            active: head.active,
            held: matches!(kind, EventKind::Held | EventKind::Rejected),
            ..skill_event(kind, &head.id, self.inner.clock.now(), caller)
        };
        let mut batch = Batch::new();
        self.put_head(&mut batch, Some(revision), head)?;
        Ok((batch, event))
    }
}
