//! History: listing, activating and withdrawing versions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Caller, Error, Head, Plan, Registry, SEMANTICS, Summary, VERSIONS};
use crate::model::{
    Digest, Event, EventKind, Principal, SkillId, Version, VersionNumber, VersionSelector, Yank,
    open_token, seal_token,
};
use crate::store::{Batch, prefix};

/// A version beside what changes about it.
#[derive(Debug, Clone)]
pub struct Described {
    /// The skill.
    pub head: Arc<Head>,
    /// The version.
    pub version: Arc<Version>,
}

impl Described {
    /// It is what the skill's name resolves to.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.head.active == Some(self.version.number)
    }

    /// Why and when it was withdrawn.
    #[must_use]
    pub fn yank(&self) -> Option<&Yank> {
        self.head.yanked.get(&self.version.number)
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

/// The active version changed, or was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activated {
    /// The skill.
    pub id: SkillId,
    /// The version that is active.
    pub number: VersionNumber,
    /// The one that was active before.
    pub previous: Option<VersionNumber>,
}

/// A version was withdrawn, or put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    /// The skill.
    pub id: SkillId,
    /// The version.
    pub number: VersionNumber,
    /// The version that is active now.
    pub active: Option<VersionNumber>,
}

/// A version by everything that names it, without what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its semantic version.
    pub semantic: semver::Version,
    /// Its number.
    pub number: VersionNumber,
    /// Digest over all its files.
    pub digest: Digest,
    /// It was withdrawn.
    pub is_yanked: bool,
}

/// The semantic version of a key, behind the skill's part of it.
fn semantic(key: &[u8]) -> Option<semver::Version> {
    let text = std::str::from_utf8(key.strip_suffix(&[0])?).ok()?;
    text.parse().ok()
}

const PAGE: &str = "versions";

/// What an edit of a head does: the new head, and what happened.
struct Edit {
    kind: EventKind,
    number: VersionNumber,
}

impl Registry {
    /// A version with what changes about it.
    ///
    /// # Errors
    /// There is no such skill or version.
    pub fn describe(&self, id: &SkillId, selector: &VersionSelector) -> Result<Described, Error> {
        let head = self.head(id)?;
        let version = self.version(&head, selector)?;
        Ok(Described { head, version })
    }

    /// Versions of a skill, newest first, withdrawn ones included.
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
                let place = open_token(PAGE, key.as_str(), token).ok_or(Error::PageToken)?;
                let number = place
                    .parse()
                    .ok()
                    .and_then(VersionNumber::new)
                    .ok_or(Error::PageToken)?;
                Some((key.clone(), number))
            }
        };
        let found = self
            .inner
            .store
            .before(&VERSIONS, &prefix(&key), below.as_ref(), size + 1)?;
        let more = found.len() > size;
        let versions: Vec<_> = found
            .into_iter()
            .take(size)
            .map(|version| Described {
                head: Arc::clone(&head),
                version: Arc::new(version),
            })
            .collect();
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

    /// All versions of a skill by what names them, lowest first.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn releases(&self, head: &Head) -> Result<Vec<Release>, Error> {
        let prefix = prefix(&head.id.key());
        let mut releases = Vec::new();
        for entry in self.inner.store.scan(&SEMANTICS, &prefix) {
            let (key, entry) = entry?;
            // Versions of before a delete keep their entries.
            let kept = head.first_number..=head.last_number;
            let Some(semantic) = semantic(&key).filter(|_| kept.contains(&entry.value.number))
            else {
                continue;
            };
            releases.push(Release {
                semantic,
                number: entry.value.number,
                digest: entry.value.digest,
                is_yanked: head.yanked.contains_key(&entry.value.number),
            });
        }
        releases.sort_by(|a, b| (&a.semantic, a.number).cmp(&(&b.semantic, b.number)));
        Ok(releases)
    }

    /// Makes a version the active one.
    ///
    /// # Errors
    /// There is no such version, or it was withdrawn.
    pub async fn activate(
        &self,
        id: &SkillId,
        number: VersionNumber,
        caller: &Caller,
    ) -> Result<Activated, Error> {
        let fingerprint = format!("activate\0{}\0{number}", id.key());
        let _queue = self.lock(&id.key()).await;
        self.write(caller, &fingerprint, || {
            let (mut head, revision) = self.writable(id, caller)?;
            let version = self.version(&head, &VersionSelector::Number(number))?;
            if let Some(yank) = head.yanked.get(&number) {
                let (id, reason) = (head.id.clone(), yank.reason.clone());
                return Err(Error::Yanked {
                    id,
                    version: number,
                    reason,
                });
            }
            let previous = head.active;
            let activated = Activated {
                id: head.id.clone(),
                number,
                previous,
            };
            if previous == Some(number) {
                return Ok(Plan::Done(activated));
            }
            head.active = Some(number);
            head.summary = Some(Summary::from(&*version));
            let edit = Edit {
                kind: EventKind::Activated,
                number,
            };
            Ok(Plan::Write(
                self.edit(revision, head, &edit, &version, caller),
                activated,
            ))
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
        number: VersionNumber,
        reason: &str,
        caller: &Caller,
    ) -> Result<Withdrawn, Error> {
        let fingerprint = format!("yank\0{}\0{number}\0{reason}", id.key());
        let _queue = self.lock(&id.key()).await;
        self.write(caller, &fingerprint, || {
            let (mut head, revision) = self.writable(id, caller)?;
            let version = self.version(&head, &VersionSelector::Number(number))?;
            if head.yanked.contains_key(&number) {
                return Ok(Plan::Done(Withdrawn {
                    id: head.id.clone(),
                    number,
                    active: head.active,
                }));
            }
            let yank = Yank {
                reason: reason.to_owned(),
                time: self.inner.clock.now(),
                actor: caller.principal.clone(),
            };
            head.yanked.insert(number, yank);
            if head.active == Some(number) {
                let next = self.highest_available(&head)?;
                head.active = next.as_ref().map(|version| version.number);
                head.summary = next.as_deref().map(Summary::from);
            }
            let withdrawn = Withdrawn {
                id: head.id.clone(),
                number,
                active: head.active,
            };
            let edit = Edit {
                kind: EventKind::Yanked,
                number,
            };
            Ok(Plan::Write(
                self.edit(revision, head, &edit, &version, caller),
                withdrawn,
            ))
        })
        .await
    }

    /// Puts a withdrawn version back; it becomes active where none is.
    ///
    /// # Errors
    /// There is no such version, or the skill comes with the server.
    pub async fn unyank(
        &self,
        id: &SkillId,
        number: VersionNumber,
        caller: &Caller,
    ) -> Result<Withdrawn, Error> {
        let fingerprint = format!("unyank\0{}\0{number}", id.key());
        let _queue = self.lock(&id.key()).await;
        self.write(caller, &fingerprint, || {
            let (mut head, revision) = self.writable(id, caller)?;
            let version = self.version(&head, &VersionSelector::Number(number))?;
            if head.yanked.remove(&number).is_none() {
                let withdrawn = Withdrawn {
                    id: head.id.clone(),
                    number,
                    active: head.active,
                };
                return Ok(Plan::Done(withdrawn));
            }
            if head.active.is_none() {
                head.active = Some(number);
                head.summary = Some(Summary::from(&*version));
            }
            let withdrawn = Withdrawn {
                id: head.id.clone(),
                number,
                active: head.active,
            };
            let edit = Edit {
                kind: EventKind::Unyanked,
                number,
            };
            Ok(Plan::Write(
                self.edit(revision, head, &edit, &version, caller),
                withdrawn,
            ))
        })
        .await
    }

    /// The head of a skill that the caller may change, with its revision.
    pub(super) fn writable(&self, id: &SkillId, caller: &Caller) -> Result<(Head, u64), Error> {
        let stored = self
            .stored_head(&id.key())?
            .filter(|stored| !stored.value.deleted)
            .ok_or_else(|| Error::SkillNotFound {
                reference: id.to_string(),
            })?;
        if stored.value.id.is_builtin() && caller.principal != Principal::system() {
            return Err(Error::ReadOnly {
                id: stored.value.id,
            });
        }
        Ok((stored.value, stored.revision))
    }

    /// The highest version that was not withdrawn. Looks at one version more than
    /// were withdrawn above it.
    fn highest_available(&self, head: &Head) -> Result<Option<Arc<Version>>, Error> {
        let numbers = (head.first_number.get()..=head.last_number.get()).rev();
        let available = numbers
            .filter_map(VersionNumber::new)
            .find(|number| !head.yanked.contains_key(number));
        available
            .map(|number| self.version(head, &VersionSelector::Number(number)))
            .transpose()
    }

    fn edit(
        &self,
        revision: u64,
        mut head: Head,
        edit: &Edit,
        version: &Version,
        caller: &Caller,
    ) -> Batch {
        let now = self.inner.clock.now();
        head.updated_at = now;
        let mut batch = Batch::new();
        batch.event(Event {
            kind: edit.kind,
            skill_id: head.id.clone(),
            version: Some(edit.number),
            semantic_version: Some(version.semantic.clone()),
            digest: Some(version.digest),
            active: head.active,
            time: now,
            actor: caller.principal.clone(),
        });
        self.put_head(&mut batch, Some(revision), head);
        batch
    }
}
