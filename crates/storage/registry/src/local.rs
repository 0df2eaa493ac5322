//! Skills of folders on the caller's machine, in front of those of the store, for this caller.
//!
//! * Nothing of them is stored or written: they change when their folders do. So each has one
//!   version, the current one of its folder; its number grows with each change, and an older
//!   number leads nowhere.
//! * They are read, scanned and held like published skills.
//! * A head leads to its own version ([`Head::local`](super::Head)), through any registry: a
//!   head of a folder never reads a record of the store, nor the other way round.
//! * One of the same id as a skill of the store hides it. One with the same bytes as an active
//!   version of the same short name is a copy of that skill (an installed one, mostly), and is
//!   hidden: the store's has the tools, the counts and the trust.
//!
//! Not here: which folders there are, and when they change (the crate `local`).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use imbl::OrdMap;

use super::holds::objection;
use super::local_past::LocalPast;
use super::publish::{bumped, declared};
use super::{Bundle, Catalog, Error, Head, Hold, Registry, Scan, Summary, scans};
use executor::Stop;
use model::{Digest, Principal, SkillId, SkillKey, Version};
use trust::Report;

/// A skill of a folder, as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalSkill {
    pub(super) version: Arc<Version>,
    pub(super) scan: Scan,
    pub(super) hold: Option<Hold>,
    /// The report of the last version that was not held, where it is held itself: the next
    /// version is compared with that.
    passed: Option<Report>,
    /// The template of its heads; it has no `local` itself, which would be a reference cycle.
    head: Head,
    contents: Vec<(Digest, Bytes)>,
}

impl LocalSkill {
    /// Digest over all its files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.version.digest
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &SkillId {
        &self.head.id
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Returns the reason of its hold; none where it is not held.
    #[must_use]
    pub fn held(&self) -> Option<String> {
        self.hold.as_ref().map(Hold::words)
    }

    /// Returns the report of the last version that was not held, itself included.
    fn passed(&self) -> Option<&Report> {
        match self.hold {
            None => Some(&self.scan.report),
            Some(_) => self.passed.as_ref(),
        }
    }

    /// Bytes of its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.version.size()
    }

    /// The same with these contents.
    pub(super) fn with_contents(&self, contents: Vec<(Digest, Bytes)>) -> Self {
        Self {
            contents,
            ..self.clone()
        }
    }

    fn head(self: &Arc<Self>) -> Head {
        Head {
            local: Some(Arc::clone(self)),
            ..self.head.clone()
        }
    }
}

/// The skills of some folders, as they are now. It does not change any more.
#[derive(Debug, Default)]
pub struct LocalSkills {
    skills: OrdMap<SkillKey, Arc<LocalSkill>>,
    contents: HashMap<Digest, Bytes>,
    /// The reasons why folders of these names, in lower case, are no skills.
    refused: Arc<BTreeMap<String, String>>,
    /// The last catalog that they were put in front of, and the result.
    merged: Mutex<Option<(Arc<Catalog>, Arc<Catalog>)>>,
}

impl LocalSkills {
    /// Makes the set of these skills; of two with one id it takes the first.
    #[must_use]
    pub fn new(skills: impl IntoIterator<Item = Arc<LocalSkill>>) -> Self {
        let mut these = Self::default();
        for skill in skills {
            let key = skill.head.id.key();
            if !these.skills.contains_key(&key) {
                these.contents.extend(skill.contents.iter().cloned());
                these.skills.insert(key, skill);
            }
        }
        these
    }

    /// Adds names of folders that are no skills, in lower case, each with the reason, for
    /// callers that ask for one by its name.
    #[must_use]
    pub fn with_refused(mut self, refused: BTreeMap<String, String>) -> Self {
        self.refused = Arc::new(refused);
        self
    }

    /// Returns the names of folders that are no skills, with the reasons.
    #[must_use]
    pub fn refused(&self) -> &BTreeMap<String, String> {
        &self.refused
    }

    /// Returns a skill.
    #[must_use]
    pub fn get(&self, key: &SkillKey) -> Option<&Arc<LocalSkill>> {
        self.skills.get(key)
    }

    /// Returns all of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LocalSkill>> {
        self.skills.values()
    }

    /// Returns their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The content of a digest, where a skill has it.
    pub(super) fn content(&self, digest: &Digest) -> Option<&Bytes> {
        self.contents.get(digest)
    }

    /// The catalog with these in front.
    pub(super) fn before(&self, registry: &Registry, catalog: Arc<Catalog>) -> Arc<Catalog> {
        if self.is_empty() && self.refused.is_empty() {
            return catalog;
        }
        let known = || self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, merged)) = &*known()
            && Arc::ptr_eq(of, &catalog)
        {
            return Arc::clone(merged);
        }
        // Not under the lock: a concurrent caller does the same work, and does not wait.
        let mut merged = Catalog::clone(&catalog);
        merged.refused = Arc::clone(&self.refused);
        for skill in self.skills.values() {
            if !registry.has_copy(&catalog, skill) {
                merged.put_before(skill.head());
            }
        }
        let merged = Arc::new(merged);
        *known() = Some((catalog, Arc::clone(&merged)));
        merged
    }
}

impl Catalog {
    /// Puts a skill of a folder in front of the one with its id.
    fn put_before(&mut self, head: Head) {
        let key = head.id.key();
        if let Some(hidden) = self.remove(&key) {
            self.hidden.insert(key, hidden);
        }
        self.insert(head);
    }

    /// Returns the skill of the store that a folder's skill of the same id hides.
    #[must_use]
    pub fn hidden(&self, key: &SkillKey) -> Option<&Arc<Head>> {
        self.hidden.get(key)
    }

    /// Returns the reason why a folder of the caller with this name is no skill.
    pub(super) fn refused(&self, asked: &str) -> Option<&str> {
        let name = asked.rsplit('/').next().unwrap_or(asked).trim();
        self.refused.get(&name.to_lowercase()).map(String::as_str)
    }

    /// Returns whether a skill of a folder hides one of the store.
    #[must_use]
    pub fn hides_any(&self) -> bool {
        !self.hidden.is_empty()
    }
}

impl Registry {
    /// The same with skills of folders in front. What is written goes where it went before.
    #[must_use]
    pub fn with_local(&self, local: Arc<LocalSkills>) -> Self {
        Self {
            local: Some(local),
            ..self.clone()
        }
    }

    /// Returns the visible skills of folders, by id, without copies and those that are held. The
    /// cost depends on their number, not on the store.
    #[must_use]
    pub fn local_heads(&self) -> Vec<Arc<Head>> {
        let catalog = self.catalog();
        let skills = self.local.iter().flat_map(|local| local.iter());
        let heads = skills.filter_map(|skill| catalog.get(&skill.id().key()));
        heads
            .filter(|head| head.is_local() && head.active.is_some())
            .cloned()
            .collect()
    }

    /// Returns whether there are skills of folders, copies included.
    #[must_use]
    pub fn has_local(&self) -> bool {
        self.local.as_ref().is_some_and(|local| !local.is_empty())
    }

    /// Returns whether the skill of a folder is, byte for byte, one of the store with its short
    /// name.
    fn has_copy(&self, catalog: &Catalog, skill: &LocalSkill) -> bool {
        // Only under the same short name: skills of equal bytes elsewhere are others.
        let mut others = catalog.named(skill.head.id.slug());
        others.any(|head| {
            let Some(number) = head.active else {
                return false;
            };
            let is_slug = head.id.slug().eq_ignore_ascii_case(skill.head.id.slug());
            // A record that cannot be read counts as no copy; a read of it returns the error.
            is_slug
                && self
                    .any_version(head, number)
                    .is_ok_and(|version| version.digest == skill.digest())
        })
    }

    /// Reads and scans the files of a folder as the new version of its skill; the id is `local`,
    /// the author, and the slug. `before` is the folder's last version, and `past` has the last
    /// versions of all skills there, to which this one is added. Blocks.
    ///
    /// # Errors
    /// They do not make a skill, or a name is reserved; it is to stop.
    pub fn read_local(
        &self,
        bundle: &Bundle,
        author: &str,
        before: Option<&Arc<LocalSkill>>,
        past: &mut LocalPast,
        stop: &Stop,
    ) -> Result<Arc<LocalSkill>, Error> {
        let (id, skill, digest, files, problems) = bundle.read().accepted()?;
        let id = SkillId::new(SkillId::LOCAL, author, id.slug())?;
        let is_same = |before: &&Arc<LocalSkill>| before.digest() == digest && *before.id() == id;
        if let Some(before) = before.filter(is_same) {
            return Ok(Arc::clone(before));
        }
        let contents = || {
            let digests = files.iter().map(|file| file.digest);
            digests.zip(bundle.files.values().cloned()).collect()
        };
        // Another folder may have had the id, or this one, before it was no skill for a while.
        let before = past.get(&id).or(before);
        if let Some(before) = before.filter(is_same) {
            return Ok(Arc::new(before.with_contents(contents())));
        }
        let policy = &self.inner.policy;
        policy
            .names
            .permit_version(&id, &skill, &Principal::local())?;
        let now = self.inner.clock.now();
        let scan = scans::scan(&id, &skill, &bundle.files, &self.others(), now, stop)?;
        // Never compared with a version that was held itself, or the next save would let the
        // same change pass.
        let passed = before.and_then(|before| before.passed());
        let (hold, tier) = (policy.hold.of_what_is_served(), policy.tiers.of(&id));
        let reason = objection(hold, tier, &scan.report, || Ok(passed.cloned()))?;
        let hold = reason.map(|reason| Hold {
            reason,
            time: now,
            activate: true,
            rejected: None,
        });
        let highest = before.map(|before| &before.version.semantic);
        let semantic = declared(&skill)?.or_else(|| bumped(highest));
        let semantic = semantic.ok_or_else(|| Error::OutOfVersions { id: id.clone() })?;
        let number = match before {
            None => past.first(),
            Some(before) => before.version.number.next(),
        };
        let number = number.ok_or_else(|| Error::OutOfNumbers { id: id.clone() })?;
        let contents = contents();
        let version = Version {
            number,
            semantic,
            digest,
            skill,
            files,
            problems,
            created_at: now,
            created_by: Principal::local(),
            change_summary: String::new(),
        };
        let is_offered = hold.is_none();
        let head = Head {
            active: is_offered.then_some(number),
            summary: is_offered.then(|| Summary::new(&version, Some(scan.facts()))),
            held: hold.iter().map(|_| number).collect(),
            bytes: Some(version.size()),
            created_at: before.map_or(now, |before| before.head.created_at),
            ..Head::new(id, &version)
        };
        let skill = LocalSkill {
            contents,
            version: Arc::new(version),
            scan,
            passed: hold.as_ref().and(passed).cloned(),
            hold,
            head,
        };
        past.learn(&skill);
        Ok(Arc::new(skill))
    }
}
