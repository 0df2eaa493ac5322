//! Which skills require another one.
//!
//! A publish turns the short names of rules into ids. A name that led nowhere then, or in a
//! version from before, stays a name. So skills are indexed by the text of their rules, and the
//! references are resolved at query time: for the few skills whose rules may lead there.

use std::sync::Arc;

use imbl::OrdSet;

use super::facet::Facet;
use super::head::Summary;
use super::{Catalog, Head, spellings};
use model::{Reference, Skill, SkillId, SkillKey, VersionedReference};

/// Maximum number of dependents in the answer to a removal.
const MAX_REPORTED_DEPENDENTS: usize = 100;

/// Returns the skills that a skill requires, without versions.
pub(super) fn requirements(summary: &Summary) -> impl Iterator<Item = Reference> {
    let texts = summary.requires.iter().flatten();
    texts.map(|text| VersionedReference::parse(text).skill)
}

/// Returns the key by which a reference is indexed: an id in lower case, or a name without the
/// characters in which its spellings differ.
pub(super) fn called(reference: &Reference) -> String {
    match reference {
        Reference::Id(id) => id.key().as_str().to_owned(),
        Reference::Name(name) => {
            let differs = |c: char| c.is_whitespace() || "-_/`'\"@$".contains(c);
            name.to_lowercase().replace(differs, "")
        }
    }
}

impl Catalog {
    /// Returns the spelling of a short name that skills have: the name itself, else another one.
    #[must_use]
    pub fn spelled(&self, name: &str) -> Option<String> {
        let mut all = std::iter::once(name.to_owned()).chain(spellings(name));
        all.find(|name| self.holder(name).is_some())
    }

    /// Returns the skill of an id, or the one that holds a short name.
    pub(super) fn led_to(&self, reference: &Reference) -> Option<&Arc<Head>> {
        match reference {
            Reference::Id(id) => self.get(&id.key()),
            Reference::Name(name) => {
                let holder = self.holder(&self.spelled(name)?)?;
                Some(holder).filter(|head| !head.deleted)
            }
        }
    }

    /// Returns the live skills whose active versions require a skill, in any version. Where the
    /// reference leads nowhere, those that require the missing skill.
    #[must_use]
    pub fn dependents(&self, reference: &Reference) -> OrdSet<SkillKey> {
        let target = self.led_to(reference);
        let mut names = vec![called(reference)];
        if let Some(head) = target {
            let id = &head.id;
            names.push(id.key().as_str().to_owned());
            names.push(called(&Reference::Name(id.slug().to_owned())));
            let summary = head.summary.as_ref();
            names.extend(summary.map(|summary| called(&Reference::Name(summary.name.clone()))));
        }
        let is_meant = |required: &Reference| match (target, self.led_to(required)) {
            (Some(target), Some(head)) => Arc::ptr_eq(target, head),
            (None, None) => called(required) == called(reference),
            _ => false,
        };
        let gathered = names.into_iter().map(Facet::Requires);
        let gathered = gathered
            .filter_map(|facet| self.with_facet(&facet))
            .flatten();
        let dependents = gathered.filter(|key| {
            let head = self.get(key);
            // A skill that requires its own name means others of that name.
            let is_itself = target.is_some_and(|target| target.id.key() == **key);
            let summary = head.and_then(|head| head.summary.as_ref());
            !is_itself && summary.is_some_and(|summary| requirements(summary).any(|r| is_meant(&r)))
        });
        dependents.cloned().collect()
    }

    /// Turns the short names of the skills that a skill requires into the ids to which they lead,
    /// so that what it requires stays the same skill. A name that leads nowhere stays a name, and
    /// so does its own, which means others of that name.
    // Not those of rules against a skill: they mean every skill of the name.
    pub(super) fn resolve_requirements(&self, id: &SkillId, skill: &mut Skill) {
        for text in skill.requirements_mut() {
            let wanted = VersionedReference::parse(text);
            if !matches!(wanted.skill, Reference::Name(_)) {
                continue;
            }
            let target = self.led_to(&wanted.skill);
            if let Some(target) = target.filter(|target| target.id.key() != id.key()) {
                let version = text.rsplit_once('@').filter(|_| wanted.unread.is_none());
                let version = version.map(|(_, version)| format!("@{}", version.trim()));
                *text = format!("{}{}", target.id, version.unwrap_or_default());
            }
        }
    }

    /// Returns some of the dependents of a skill, for the answer to its removal.
    pub(super) fn some_dependents(&self, id: &SkillId) -> Vec<SkillId> {
        let dependents = self.dependents(&Reference::Id(id.clone()));
        let heads = dependents.iter().filter_map(|key| self.get(key));
        heads
            .take(MAX_REPORTED_DEPENDENTS)
            .map(|head| head.id.clone())
            .collect()
    }
}
