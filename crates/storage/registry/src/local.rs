//! Skills of folders on the caller's machine, in front of those of the store, for whoever
//! has them.
//!
//! * Nothing of them is stored, and no write of theirs goes anywhere: they change when their
//!   folders do. So each has one version, the one that is in its folder now; its number grows
//!   with each change, and whoever holds an older one holds one that is gone.
//! * They are read, scanned and held like what a person publishes.
//! * A head leads to its own version ([`Head::local`](super::Head)), whichever registry is
//!   asked: a head of a folder never reads a record of the store, nor the other way round.
//! * One of the same id as a skill of the store hides it. One with the same bytes as an active
//!   version of the same short name is a copy of that skill (an installed one, mostly), and is
//!   not shown beside it: the store's has the tools, the counts and the trust.
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
    /// What the scanner said of the last version before it that was not held, where it is
    /// held itself: what comes next is compared with that.
    passed: Option<Report>,
    /// What heads of it are made of; it has no `local` itself, which would be a ring.
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

    /// Why it is held for review; none where it is not.
    #[must_use]
    pub fn held(&self) -> Option<String> {
        self.hold.as_ref().map(Hold::words)
    }

    /// What the scanner said of the last version that was not held, itself included.
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
    /// Why folders that have these names, in lower case, are no skills.
    refused: Arc<BTreeMap<String, String>>,
    /// The catalog that they were put in front of last, and what that came to.
    merged: Mutex<Option<(Arc<Catalog>, Arc<Catalog>)>>,
}

impl LocalSkills {
    /// These skills; of two with one id the first.
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

    /// The same, with names of folders that are no skills, in lower case, each with why: who
    /// asks for one by its name is told.
    #[must_use]
    pub fn with_refused(mut self, refused: BTreeMap<String, String>) -> Self {
        self.refused = Arc::new(refused);
        self
    }

    /// Names of folders that are no skills, and why.
    #[must_use]
    pub fn refused(&self) -> &BTreeMap<String, String> {
        &self.refused
    }

    /// A skill.
    #[must_use]
    pub fn get(&self, key: &SkillKey) -> Option<&Arc<LocalSkill>> {
        self.skills.get(key)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LocalSkill>> {
        self.skills.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// There is none.
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
        // Not under the lock: who else comes now does the same work, and waits for nobody.
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
    /// Shows a skill of a folder instead of the one of its id.
    fn put_before(&mut self, head: Head) {
        let key = head.id.key();
        if let Some(hidden) = self.remove(&key) {
            self.hidden.insert(key, hidden);
        }
        self.insert(head);
    }

    /// The skill of the store that one of a folder, of the same id, hides.
    #[must_use]
    pub fn hidden(&self, key: &SkillKey) -> Option<&Arc<Head>> {
        self.hidden.get(key)
    }

    /// Why a folder around the caller that has the name that was asked for is no skill.
    pub(super) fn refused(&self, asked: &str) -> Option<&str> {
        let name = asked.rsplit('/').next().unwrap_or(asked).trim();
        self.refused.get(&name.to_lowercase()).map(String::as_str)
    }

    /// A skill of a folder hides one of the store of the same id.
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

    /// The skills of folders that are seen, those that are copies or held aside, by id. It
    /// costs what they are, however many the store has.
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

    /// Skills of folders are in front, or would be if they were no copies.
    #[must_use]
    pub fn has_local(&self) -> bool {
        self.local.as_ref().is_some_and(|local| !local.is_empty())
    }

    /// The skill of a folder is, byte for byte, what the store has under its short name.
    fn has_copy(&self, catalog: &Catalog, skill: &LocalSkill) -> bool {
        let mut others = catalog.named(skill.head.id.slug());
        others.any(|head| {
            let Some(number) = head.active else {
                return false;
            };
            let is_slug = head.id.slug().eq_ignore_ascii_case(skill.head.id.slug());
            // A record that cannot be read is no copy; whoever asks for it is told why.
            is_slug
                && self
                    .any_version(head, number)
                    .is_ok_and(|version| version.digest == skill.digest())
        })
    }

    /// Reads and scans the files of a folder, which become what the skill is from now on; its id
    /// is `local`, the author, and its slug. `before` is what the folder was, and `past` what
    /// skills of its place have been, which learns of this one. Blocks.
    ///
    /// # Errors
    /// They do not make a skill, or a name is nobody's to give; it is to stop.
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
        // Never with one that is held itself, or the next save would let it pass.
        let passed = before.and_then(|before| before.passed());
        let reason = objection(policy.hold, &scan.report, || Ok(passed.cloned()))?;
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
            summary: is_offered.then(|| Summary::new(&version, Some(scan.base()))),
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
