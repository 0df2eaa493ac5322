//! A set of skills: found, judged, composed.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::compose::{allowed_by, forbidden_by};
use super::load::{Pick, Picks, RegistryLibrary};
use super::resolve::{Library, RequestedSkill, resolve};
use super::rules::{self, Verdict};
use super::{
    Composed, Composition, Error, Finding, FindingCode, Lock, Member, Statement, ToolPolicy,
    compose_until, missing,
};
use executor::{Kind, Stop};
use model::{
    Digest, Reference, SkillId, SkillKey, Version, VersionNumber, VersionSelector, VersionWish,
    VersionedReference,
};
use registry::{Catalog, Release};

/// A request for a set of skills.
#[derive(Debug, Clone, Default)]
pub struct SetQuery {
    /// The skills; none: those of the lock.
    pub skills: Vec<String>,
    /// How tools are put together; none: as the lock says, else the union.
    pub policy: Option<ToolPolicy>,
    /// Add what is required.
    pub resolve: bool,
    /// The lock of an earlier composition.
    pub lock: Option<Lock>,
}

/// A set of skills that was judged.
#[derive(Debug, Clone)]
pub struct SkillSet {
    /// What the skills that were found come to; of a valid set, what it permits.
    pub composed: Arc<Composed>,
    /// How many of its members were asked for; the others were added.
    pub asked: usize,
    /// All errors and warnings, errors first.
    pub findings: Vec<Finding>,
}

impl SetQuery {
    /// It names no skill.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let locked = self
            .lock
            .as_ref()
            .is_some_and(|lock| !lock.entries.is_empty());
        self.skills.is_empty() && !locked
    }
}

impl SkillSet {
    /// The skills go together.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.findings.iter().any(Finding::is_error)
    }

    /// The set, if it is valid.
    ///
    /// # Errors
    /// It is not.
    pub fn valid(self) -> Result<Self, Error> {
        if self.is_valid() {
            return Ok(self);
        }
        let errors = self
            .findings
            .into_iter()
            .filter(Finding::is_error)
            .collect();
        Err(Error::Invalid { errors })
    }

    /// Pins the set.
    #[must_use]
    pub fn lock(&self) -> Lock {
        Lock::of(&self.composed.members, self.composed.policy)
    }
}

/// What members and a policy come to, the same for every caller.
#[derive(Debug)]
pub(super) struct Judged {
    composed: Arc<Composed>,
    verdict: Verdict,
    /// What the scans of the members come to together. It can be cached with the rest, since new
    /// rules of the scanner come with a new server.
    pub(super) trifecta: Option<Finding>,
}

/// Members by skill, version and name, which another skill can take from them. The number of
/// a version in a folder means other bytes elsewhere, so its digest is part of the key, too.
type Key = (
    ToolPolicy,
    Vec<(SkillKey, VersionNumber, Option<Digest>, bool)>,
);
pub(super) type Cache = quick_cache::sync::Cache<Key, Arc<Judged>, SetWeight>;

/// Bytes that compositions may take in memory.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// Estimates the bytes that a composition takes in memory.
#[derive(Debug, Clone)]
pub(super) struct SetWeight;

impl quick_cache::Weighter<Key, Arc<Judged>> for SetWeight {
    fn weight(&self, key: &Key, judged: &Arc<Judged>) -> u64 {
        let composed = &judged.composed;
        let texts = composed.execution_protocol.len()
            + composed.preconditions.len()
            + composed.postconditions.len();
        let findings = composed.findings.len() + judged.verdict.findings.len();
        let statements: usize = composed
            .tools()
            .map(|proof| proof.grants.len() + proof.denials.len() + proof.exceptions.len())
            .sum();
        // Rounded sizes of the records behind each count. The bound is for the sum of many, so they
        // need not be exact.
        let weight = 1_000
            + 200 * key.1.len()
            + 500 * composed.tools().len()
            + size_of::<Statement>() * statements
            + 150 * texts
            + 500 * findings;
        weight as u64
    }
}

pub(super) fn cache() -> Cache {
    Cache::with_weighter(2_000, CACHE_BYTES, SetWeight)
}

/// Entries of a lock that are looked up on the thread of the call.
const SMALL_LOCK_LIMIT: usize = 64;

impl Composition {
    /// A valid set of at least one skill.
    ///
    /// # Errors
    /// No skill was named; the skills do not go together; the registry cannot be
    /// read.
    pub async fn valid_set(&self, query: SetQuery) -> Result<SkillSet, Error> {
        if query.is_empty() {
            return Err(Error::Parameter {
                field: "skills",
                message: "name at least one skill, or give a lock".to_owned(),
                step: "List the skills to see which there are",
            });
        }
        self.set(query).await?.valid()
    }

    /// Finds, judges and composes the skills of a request. An invalid set is an
    /// answer.
    ///
    /// # Errors
    /// Nothing was asked for, or the registry cannot be read.
    pub async fn set(&self, query: SetQuery) -> Result<SkillSet, Error> {
        let query = match self.cached(query)? {
            Ok(set) => return Ok(set),
            Err(query) => query,
        };
        let this = self.clone();
        let work = move |stop: &Stop| this.evaluate(&query, stop);
        self.executor().run_fallible(Kind::Compose, work).await
    }

    /// Composes versions that are at hand under the union, whether or not they go
    /// together.
    ///
    /// # Errors
    /// They name more tool patterns than are put together.
    pub async fn together(&self, members: &[Member]) -> Result<Arc<Composed>, Error> {
        let policy = ToolPolicy::Union;
        let catalog = self.registry.catalog();
        let entry = |member: &Member| {
            let is_short = *member.name == *member.id.slug();
            let (key, number) = (member.id.key(), member.version.number);
            let local = catalog.get(&key).and_then(|head| head.local_digest());
            (key, number, local, is_short)
        };
        let key = (policy, members.iter().map(entry).collect());
        let judged = if let Some(judged) = self.judged.get(&key) {
            judged
        } else {
            let members = members.to_vec();
            let work = move |stop: &Stop| judge(&members, members.len(), policy, stop);
            let judged = self.executor().run_fallible(Kind::Compose, work).await?;
            let judged = Arc::new(judged);
            self.judged.insert(key, Arc::clone(&judged));
            judged
        };
        let mut findings = judged.verdict.findings.iter();
        match findings.find(|finding| finding.code == FindingCode::TooManyTools) {
            None => Ok(Arc::clone(&judged.composed)),
            Some(finding) => Err(Error::Invalid {
                errors: vec![finding.clone()],
            }),
        }
    }

    /// The set where all of it is in memory, so that no version is read; else the query.
    fn cached(&self, query: SetQuery) -> Result<Result<SkillSet, SetQuery>, Error> {
        let policy = policy(&query)?;
        let is_large = |lock: &Lock| lock.entries.len() > SMALL_LOCK_LIMIT;
        if query.resolve
            || query.lock.as_ref().is_some_and(is_large)
            || query.skills.iter().any(|skill| is_searched(skill))
        {
            return Ok(Err(query));
        }
        let catalog = self.registry.catalog();
        let (chosen, lock) = self.chosen(&catalog, &query)?;
        // What is missing is explained from the registry, so such a set goes the long way.
        let judged = self.judged.get(&key(&chosen.picks, policy));
        let Some(judged) = judged.filter(|judged| judged.verdict.missing.is_empty()) else {
            return Ok(Err(query));
        };
        let mut findings = chosen.findings;
        if let Some(lock) = lock {
            findings.extend(self.unlock(&catalog, lock)?.findings);
            findings.extend(drift(&judged.composed.members, lock));
        }
        Ok(Ok(finish(&judged, findings, chosen.picks.len())))
    }

    /// The skills of a request, and the lock that they are to be compared with.
    fn chosen<'q>(
        &self,
        catalog: &Catalog,
        query: &'q SetQuery,
    ) -> Result<(Picks, Option<&'q Lock>), Error> {
        Ok(match &query.lock {
            Some(lock) if query.skills.is_empty() => (self.unlock(catalog, lock)?, None),
            lock => (self.pick(catalog, &query.skills)?, lock.as_ref()),
        })
    }

    fn evaluate(&self, query: &SetQuery, stop: &Stop) -> Result<SkillSet, Error> {
        let policy = policy(query)?;
        let catalog = self.registry.catalog();
        let (chosen, lock) = self.chosen(&catalog, query)?;
        let Picks {
            picks,
            mut findings,
        } = chosen;
        let library = RegistryLibrary {
            registry: &self.registry,
            catalog: &catalog,
        };
        let asked = picks.len();
        let is_found = !findings.iter().any(Finding::is_error);
        let judged = if query.resolve && is_found {
            let wanted: Vec<_> = picks.iter().map(asked_for).collect();
            match resolve(&library, &wanted, stop)? {
                Ok(members) => Arc::new(self.judge(&members, asked, policy, stop)?),
                Err(finding) => {
                    findings.push(*finding);
                    // The finding of the solver names the rules that are broken, so they are not
                    // reported once more.
                    let mut judged = judge(&self.members(&picks)?, asked, policy, stop)?;
                    judged.verdict = Verdict::default();
                    Arc::new(judged)
                }
            }
        } else {
            let key = key(&picks, policy);
            if let Some(judged) = self.judged.get(&key) {
                judged
            } else {
                let judged = Arc::new(self.judge(&self.members(&picks)?, asked, policy, stop)?);
                self.judged.insert(key, Arc::clone(&judged));
                judged
            }
        };
        let members = &judged.composed.members;
        findings.extend(missing::explain(&library, members, &judged.verdict, stop)?);
        if let Some(lock) = lock {
            findings.extend(self.unlock(&catalog, lock)?.findings);
            findings.extend(drift(members, lock));
        }
        Ok(finish(&judged, findings, asked))
    }
}

/// Judges and composes versions that are at hand as if there were no other skill: no registry
/// is read. An invalid set is an answer.
///
/// # Errors
/// The work is to stop; else none that a library without a skill could have.
pub fn alone(members: &[Member], policy: ToolPolicy, stop: &Stop) -> Result<SkillSet, Error> {
    let judged = judge(members, members.len(), policy, stop)?;
    let missing = missing::explain(&NoLibrary, members, &judged.verdict, stop)?;
    Ok(finish(&judged, missing, members.len()))
}

/// A library without a skill.
struct NoLibrary;

impl Library for NoLibrary {
    fn find(&self, _: &Reference) -> Option<(SkillId, Arc<str>)> {
        None
    }

    fn releases(&self, _: &SkillId) -> Result<Vec<Release>, Error> {
        Ok(Vec::new())
    }

    fn active(&self, _: &SkillId) -> Option<VersionNumber> {
        None
    }

    fn version(&self, id: &SkillId, _: VersionNumber) -> Result<Arc<Version>, Error> {
        Err(Error::Parameter {
            field: "skills",
            message: format!("there is no skill `{id}` here"),
            step: "Name skills that are there",
        })
    }
}

/// Finding its version takes a search of the store.
fn is_searched(skill: &str) -> bool {
    !matches!(
        VersionedReference::parse(skill).version,
        VersionWish::Is(VersionSelector::Active | VersionSelector::Number(_))
    )
}

fn asked_for(pick: &Pick) -> RequestedSkill {
    RequestedSkill {
        id: pick.head.id.clone(),
        name: pick.name(),
        numbers: pick.numbers.clone(),
        text: pick.text.clone(),
    }
}

fn policy(query: &SetQuery) -> Result<ToolPolicy, Error> {
    match (query.policy, query.lock.as_ref().map(|lock| lock.policy)) {
        (Some(asked), Some(locked)) if asked != locked => Err(Error::Parameter {
            field: "tool_policy",
            message: format!(
                "the lock is of the {}, not of the {}",
                locked.name(),
                asked.name()
            ),
            step: "Leave out the policy to have that of the lock, or the lock",
        }),
        (asked, locked) => Ok(asked.or(locked).unwrap_or_default()),
    }
}

fn key(picks: &[Pick], policy: ToolPolicy) -> Key {
    let members = picks.iter().map(|pick| {
        let head = &pick.head;
        (
            head.id.key(),
            pick.number,
            head.local_digest(),
            pick.is_short,
        )
    });
    (policy, members.collect())
}

/// Comparisons of tool patterns that a composition may take.
const MAX_COMPARISONS: usize = 20_000_000;
/// Findings of an answer.
const MAX_FINDINGS: usize = 2_000;

/// The tool patterns of these members take too many comparisons.
fn is_heavy(members: &[Member]) -> bool {
    // Counted before the work: a stranger can publish skills of nothing but patterns, each of
    // which is compared with each, and would keep a processor busy with every composition.
    let skills = members.iter().map(|member| &member.version.skill);
    let tools = skills.flat_map(|skill| allowed_by(skill).chain(forbidden_by(skill)));
    let (mut all, mut patterns) = (0_usize, 0_usize);
    for tool in tools {
        all += 1;
        patterns += usize::from(tool.contains(['*', '(']) || tool.starts_with("mcp__"));
    }
    all.saturating_mul(patterns) > MAX_COMPARISONS
}

pub(super) fn judge(
    members: &[Member],
    asked: usize,
    policy: ToolPolicy,
    stop: &Stop,
) -> Result<Judged, Error> {
    if is_heavy(members) {
        let message =
            "the skills name more tool patterns than are put together; compose fewer of them";
        let finding = Finding::new(FindingCode::TooManyTools, message);
        return Ok(Judged {
            composed: Arc::new(compose_until(&[], policy, stop)?),
            verdict: Verdict::failed(finding),
            trifecta: None,
        });
    }
    let composed = Arc::new(compose_until(members, policy, stop)?);
    let verdict = rules::check(members, asked, stop)?;
    Ok(Judged {
        composed,
        verdict,
        trifecta: None,
    })
}

/// Everything that was found, errors first; both in the order in which a reader needs
/// them.
pub(super) fn finish(judged: &Judged, mut findings: Vec<Finding>, asked: usize) -> SkillSet {
    findings.extend(judged.verdict.findings.iter().cloned());
    findings.extend(judged.composed.findings.iter().cloned());
    findings.extend(judged.trifecta.clone());
    findings.sort_by_key(|finding| !finding.is_error());
    let more = findings.len().saturating_sub(MAX_FINDINGS);
    if more > 0 || judged.verdict.is_cut {
        findings.truncate(MAX_FINDINGS);
        let message = if judged.verdict.is_cut {
            format!("there are more than {MAX_FINDINGS} findings; fix these first")
        } else {
            format!("{more} more findings are left out; fix these first")
        };
        findings.push(Finding::new(FindingCode::MoreFindings, message));
    }
    SkillSet {
        composed: Arc::clone(&judged.composed),
        asked: asked.min(judged.composed.members.len()),
        findings,
    }
}

/// Where members are no longer what was locked.
fn drift(members: &[Member], lock: &Lock) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |id: &str, message: String| {
        findings.push(Finding::new(FindingCode::LockMismatch, message).about([id]));
    };
    let key = |id: &str| id.to_ascii_lowercase();
    let entries = lock
        .entries
        .iter()
        .map(|entry| (key(&entry.skill_id), entry));
    let mut entries: FxHashMap<_, _> = entries.collect();
    for member in members {
        let id = member.id.as_str();
        let locked = entries.remove(&key(id));
        let version = &member.version;
        match locked {
            None => report(id, format!("'{id}' is in the set, and not in the lock")),
            Some(entry) if entry.digest != version.digest.to_string() => report(
                id,
                format!(
                    "'{id}' is version {} with {} now, but is locked as version {} with {}",
                    version.number, version.digest, entry.number, entry.digest
                ),
            ),
            Some(entry) if entry.number != version.number.get() => report(
                id,
                format!(
                    "'{id}' is version {} now, but is locked as version {}",
                    version.number, entry.number
                ),
            ),
            Some(_) => {}
        }
    }
    for entry in &lock.entries {
        if entries.contains_key(&key(&entry.skill_id)) {
            let id = entry.skill_id.as_str();
            report(id, format!("'{id}' is locked, and not in the set"));
        }
    }
    findings
}
