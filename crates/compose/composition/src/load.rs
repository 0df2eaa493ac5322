//! Finds the versions of skills that a caller wrote down.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::finding::{Finding, FindingCode, listed};
use super::resolve::Library;
use super::{Composition, Error, Lock, Member};
use lookup::Lookup;
use model::{
    Reference, SkillId, SkillKey, Version, VersionNumber, VersionSelector, VersionWish,
    VersionedReference, one_of,
};
use registry::{Catalog, Head, Registry, Release};

/// A skill that a reference led to.
#[derive(Debug, Clone)]
pub(super) struct Pick {
    pub(super) head: Arc<Head>,
    /// The version; of a range the highest.
    pub(super) number: VersionNumber,
    /// All versions that satisfy the reference, lowest first.
    pub(super) numbers: Vec<VersionNumber>,
    /// It is the short name that leads to the skill, not its id.
    pub(super) is_short: bool,
    /// As it was written.
    pub(super) text: String,
}

impl Pick {
    pub(super) fn name(&self) -> Arc<str> {
        let id = &self.head.id;
        if self.is_short {
            id.slug()
        } else {
            id.as_str()
        }
        .into()
    }
}

/// The skills that a list of references led to.
#[derive(Debug, Default)]
pub(super) struct Picks {
    /// The skills, each once, in the order of the request.
    pub(super) picks: Vec<Pick>,
    /// Errors and warnings about the references.
    pub(super) findings: Vec<Finding>,
}

impl Composition {
    /// Finds the skills of a request.
    pub(super) fn pick(&self, catalog: &Catalog, skills: &[String]) -> Result<Picks, Error> {
        let mut found = Picks::default();
        let mut seen: FxHashMap<SkillKey, usize> = FxHashMap::default();
        for (position, text) in skills.iter().enumerate() {
            let wanted = VersionedReference::parse(text);
            let Some(resolved) = Lookup::find_among(catalog, &wanted.skill) else {
                found
                    .findings
                    .push(unknown(catalog, text, &wanted).at(position));
                continue;
            };
            let head = resolved.head;
            if !resolved.shadowed.is_empty() {
                let hidden: Vec<_> = resolved.shadowed.iter().map(SkillId::as_str).collect();
                let message = format!(
                    "'{}' is '{}', and hides {}",
                    wanted.skill,
                    head.id,
                    listed(&hidden)
                );
                let finding = Finding::new(FindingCode::ShadowedSkill, message).at(position);
                found.findings.push(finding.about([head.id.as_str()]));
            }
            let numbers = match self.choose(&head, &wanted.version)? {
                Ok(numbers) => numbers,
                Err(message) => {
                    let finding = Finding::new(FindingCode::VersionUnsatisfied, message);
                    found
                        .findings
                        .push(finding.about([head.id.as_str()]).at(position));
                    continue;
                }
            };
            let Some(number) = numbers.last().copied() else {
                continue;
            };
            let key = head.id.key();
            if let Some(first) = seen.get(&key) {
                if let Some(before) = found.picks.get_mut(*first) {
                    let finding = again(before, &numbers, number, text);
                    found
                        .findings
                        .push(finding.about([head.id.as_str()]).at(position));
                }
                continue;
            }
            if let Some(yank) = self.registry.yank_of(&head, number)? {
                let why = super::member::because(&yank.reason);
                let message = format!("version {number} of '{}' was withdrawn{why}", head.id);
                let finding = Finding::new(FindingCode::WithdrawnVersion, message).at(position);
                found.findings.push(finding.about([head.id.as_str()]));
            }
            seen.insert(key, found.picks.len());
            found.picks.push(Pick {
                is_short: is_short(catalog, &head),
                head,
                number,
                numbers,
                text: text.trim().to_owned(),
            });
        }
        Ok(found)
    }

    /// The versions of a skill that satisfy a wish, lowest first; or why there is none.
    fn choose(
        &self,
        head: &Head,
        wish: &VersionWish,
    ) -> Result<Result<Vec<VersionNumber>, String>, Error> {
        let id = &head.id;
        if head.blocked.is_some() {
            return Ok(Err(format!("'{id}' is blocked on this server")));
        }
        Ok(match wish {
            VersionWish::Is(VersionSelector::Active) => match head.active {
                Some(number) => Ok(vec![number]),
                None if head.last_held().is_some() => Err(format!(
                    "no version of '{id}' is active; the last is held for review"
                )),
                None if head.is_all_withdrawn() => Err(format!(
                    "all versions of '{id}' were withdrawn; one answers only when it is asked for exactly"
                )),
                None => Err(format!(
                    "no version of '{id}' is active; one answers only when it is asked for exactly"
                )),
            },
            VersionWish::Is(VersionSelector::Number(number)) => {
                if head.is_held(*number) {
                    Err(format!("version {number} of '{id}' is held for review"))
                } else if (head.first_number..=head.last_number).contains(number) {
                    Ok(vec![*number])
                } else {
                    Err(format!("'{id}' has no version {number}"))
                }
            }
            VersionWish::Is(selector @ VersionSelector::Semantic(_)) => {
                match self.registry.version(head, selector) {
                    Ok(version) => Ok(vec![version.number]),
                    Err(registry::Error::VersionNotFound { .. }) => {
                        Err(format!("'{id}' has no version {selector}"))
                    }
                    Err(registry::Error::Held { version, .. }) => {
                        Err(format!("version {version} of '{id}' is held for review"))
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            VersionWish::Within(range) => {
                let releases = self.registry.releases(head)?;
                let fits =
                    |release: &&Release| !release.is_yanked && range.matches(&release.semantic);
                let numbers: Vec<_> = releases.iter().filter(fits).map(|r| r.number).collect();
                if numbers.is_empty() {
                    let there: Vec<_> = releases
                        .iter()
                        .rev()
                        .filter(|release| !release.is_yanked)
                        .map(|release| release.semantic.to_string())
                        .collect();
                    // Withdrawn versions are not offered: a range never leads to one.
                    let there = if there.is_empty() {
                        "all were withdrawn".to_owned()
                    } else {
                        format!("there is {}", listed(&there))
                    };
                    Err(format!("'{id}' has no version in {range}; {there}"))
                } else {
                    Ok(numbers)
                }
            }
            VersionWish::Holds(digest) => {
                let releases = self.registry.releases(head)?;
                let holder = releases.iter().find(|release| release.digest == *digest);
                holder
                    .map(|release| vec![release.number])
                    .ok_or_else(|| format!("'{id}' has no version with the digest {digest}"))
            }
        })
    }

    /// The skills of a lock, and what is no longer as it was locked.
    pub(super) fn unlock(&self, catalog: &Catalog, lock: &Lock) -> Result<Picks, Error> {
        let computed = lock.computed().to_string();
        // Of a lock that was changed on its way no entry can be trusted, so none is looked up.
        if computed != lock.digest {
            let message = format!(
                "the lock was changed: it says {}, and its entries are {computed}",
                lock.digest
            );
            let finding = Finding::new(FindingCode::LockMismatch, message);
            return Ok(Picks {
                picks: Vec::new(),
                findings: vec![finding],
            });
        }
        let mut findings = Vec::new();
        let mismatch = |id: &str, message: String| {
            Finding::new(FindingCode::LockMismatch, message).about([id])
        };
        let mut seen = FxHashSet::default();
        let mut picks: Vec<Pick> = Vec::with_capacity(lock.entries.len());
        for entry in lock.in_order() {
            let id = &entry.skill_id;
            let head = match id.parse::<SkillId>() {
                Ok(id) => catalog.get(&id.key()).cloned(),
                Err(_) => None,
            };
            let Some(head) = head else {
                let message = format!("'{id}' is locked, and is no longer there");
                findings.push(mismatch(id, message));
                continue;
            };
            let version = VersionNumber::new(entry.number).map(|number| {
                self.registry
                    .version(&head, &VersionSelector::Number(number))
            });
            let version = match version {
                Some(Ok(version)) => version,
                Some(Err(registry::Error::VersionNotFound { .. })) | None => {
                    let number = entry.number;
                    let message =
                        format!("'{id}' is locked as version {number}, which does not exist");
                    findings.push(mismatch(id, message));
                    continue;
                }
                Some(Err(error)) => return Err(error.into()),
            };
            let (digest, semantic) = (version.digest.to_string(), version.semantic.to_string());
            if digest != entry.digest || semantic != entry.semantic {
                let message = format!(
                    "version {} of '{id}' is {semantic} with {digest}, but is locked as {} with {}",
                    entry.number, entry.semantic, entry.digest
                );
                findings.push(mismatch(id, message));
                continue;
            }
            if !seen.insert(head.id.key()) {
                findings.push(mismatch(id, format!("'{id}' is locked twice")));
                continue;
            }
            if let Some(yank) = self.registry.yank_of(&head, version.number)? {
                let why = super::member::because(&yank.reason);
                let message = format!("version {} of '{id}' was withdrawn{why}", version.number);
                let finding = Finding::new(FindingCode::WithdrawnVersion, message);
                findings.push(finding.about([id.as_str()]));
            }
            picks.push(Pick {
                is_short: is_short(catalog, &head),
                number: version.number,
                numbers: vec![version.number],
                text: format!("{id}@{}", version.number),
                head,
            });
        }
        Ok(Picks { picks, findings })
    }

    pub(super) fn members(&self, picks: &[Pick]) -> Result<Vec<Member>, Error> {
        let member = |pick: &Pick| {
            let selector = VersionSelector::Number(pick.number);
            Ok(Member {
                name: pick.name(),
                id: pick.head.id.clone(),
                version: self.registry.version(&pick.head, &selector)?,
            })
        };
        picks.iter().map(member).collect()
    }
}

fn is_short(catalog: &Catalog, head: &Head) -> bool {
    catalog.short_name(head).len() < head.id.as_str().len()
}

/// The name by which a skill is shown.
pub(super) fn shown(catalog: &Catalog, head: &Head) -> Arc<str> {
    catalog.short_name(head).into()
}

fn unknown(catalog: &Catalog, text: &str, wanted: &VersionedReference) -> Finding {
    let text = text.trim();
    let near = catalog.nearest(&wanted.skill.to_string());
    let near: Vec<_> = near.iter().map(|near| format!("`{}`", near.name)).collect();
    let meant = one_of(&near).map_or_else(String::new, |names| format!("; did you mean {names}?"));
    let finding = match &wanted.unread {
        Some(version) => Finding::new(
            FindingCode::InvalidReference,
            format!("there is no skill '{text}', and '{version}' behind its @ is no version"),
        ),
        None => Finding::new(
            FindingCode::UnknownSkill,
            format!("there is no skill '{}'{meant}", wanted.skill),
        ),
    };
    finding.about([wanted.skill.to_string()])
}

/// A skill that is named again. It keeps the versions that both references take.
fn again(
    before: &mut Pick,
    numbers: &[VersionNumber],
    number: VersionNumber,
    text: &str,
) -> Finding {
    let shared: Vec<_> = before
        .numbers
        .iter()
        .copied()
        .filter(|known| numbers.contains(known))
        .collect();
    let id = &before.head.id;
    let Some(highest) = shared.last().copied() else {
        let message = format!(
            "'{id}' is asked for as version {} by '{}' and as version {number} by '{}'",
            before.number,
            before.text,
            text.trim()
        );
        return Finding::new(FindingCode::VersionUnsatisfied, message);
    };
    let message = format!(
        "'{}' and '{}' are both '{id}'; it counts once",
        before.text,
        text.trim()
    );
    (before.numbers, before.number) = (shared, highest);
    Finding::new(FindingCode::DuplicateSkill, message)
}

/// The registry, as the solver sees it.
pub(super) struct RegistryLibrary<'a> {
    pub(super) registry: &'a Registry,
    pub(super) catalog: &'a Catalog,
}

impl RegistryLibrary<'_> {
    fn head(&self, id: &SkillId) -> Result<Arc<Head>, Error> {
        let head = self.catalog.get(&id.key()).cloned();
        Ok(head.ok_or_else(|| self.catalog.not_found(id.as_str()))?)
    }
}

impl Library for RegistryLibrary<'_> {
    fn find(&self, reference: &Reference) -> Option<(SkillId, Arc<str>)> {
        let head = Lookup::find_among(self.catalog, reference)?.head;
        Some((head.id.clone(), shown(self.catalog, &head)))
    }

    fn releases(&self, id: &SkillId) -> Result<Vec<Release>, Error> {
        let head = self.head(id)?;
        // A blocked skill has no version to choose, so the solver looks for a way without it.
        if head.blocked.is_some() {
            return Ok(Vec::new());
        }
        Ok(self.registry.releases(&head)?)
    }

    fn active(&self, id: &SkillId) -> Option<VersionNumber> {
        self.catalog.get(&id.key())?.active
    }

    fn version(&self, id: &SkillId, number: VersionNumber) -> Result<Arc<Version>, Error> {
        let selector = VersionSelector::Number(number);
        Ok(self.registry.version(&*self.head(id)?, &selector)?)
    }
}
