//! Installs on the server's own machine: the checks before, and the report after.
//!
//! Rules:
//!
//! * The checks have one order, each with its own code: is there such a skill, is it blocked,
//!   is it installed, is it trusted, does it conflict with installed skills, is it safe, does
//!   it fit the budget. Only then a file is written.
//! * `force` overrides warnings, the budget and changes of files. A version that nobody
//!   should use, and the blocklist, cannot be overridden; every override is recorded.
//! * The report of an installed skill shows what is on disk now, and what this server knows of
//!   it now: it may have been blocked, or withdrawn, since.
//!
//! Not here: how files get to a disk (`install`), the rules of the scan (`trust`), conflicts of
//! skills (`checks`), installs on other machines (`cli`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod advice;
mod budget;
mod config;
mod conflicts;
mod error;
mod installed;
mod priorities;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

pub use advice::tips;
pub use budget::Budget;
pub use config::InstallConfig;
pub use error::Error;
pub use installed::{Listed, Update};
pub use priorities::{Priorities, Ranked};

use checks::{ConflictSeverity, Hooks, Opposed, Subject};
use composition::Member;
use executor::{Kind, Stop};
use install::{Home, Method, Placed, Record, Removed, Status};
use lookup::Lookup;
use model::{Clock, FilePath, Reference, SkillId, SkillKey, TrustTier, Version, VersionSelector};
use registry::{Head, Registry};
use trust::{Report, Verdict};

/// The operator's settings of installs.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The directory that skills are installed to.
    pub directory: PathBuf,
    /// Directories below which callers may name others.
    pub roots: Vec<PathBuf>,
    /// The home of the server's user, which is written `~`.
    pub person: Option<PathBuf>,
    /// The method of an install.
    pub method: Method,
    /// Skills of a lower tier are not installed.
    pub min_trust_tier: TrustTier,
    /// Characters that all installed skills may have.
    pub budget_chars: u64,
}

/// Installs skills of a registry on this machine. Cheap to clone.
#[derive(Clone)]
pub struct Installer {
    registry: Registry,
    home: Home,
    policy: Arc<Policy>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Installer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Installer").field(&self.policy).finish()
    }
}

/// The skill to install, and the checks that the caller overrides.
#[derive(Debug, Clone)]
pub struct InstallRequest {
    /// The skill.
    pub skill: Reference,
    /// Which version of it.
    pub version: VersionSelector,
    /// Conflicts do not stop the install.
    pub skip_conflict_check: bool,
    /// Warnings of the scan do not stop the install.
    pub skip_security_scan: bool,
    /// Warnings, a full budget and changed files do not stop the install.
    pub force: bool,
    /// The directory; empty: the operator's.
    pub directory: String,
    /// Where the caller was started, below which it may name a directory where the operator
    /// names no other.
    pub folder: Option<PathBuf>,
    /// The method; none: the operator's.
    pub method: Option<Method>,
}

/// A skill that was installed.
#[derive(Debug, Clone)]
pub struct Installation {
    /// Where it is.
    pub placed: Placed,
    /// Findings of the scan; none: it was to be left out.
    pub report: Option<Report>,
    /// Its effect on the budget.
    pub budget: Budget,
    /// How to have an agent use it.
    pub tips: Vec<String>,
    /// Conflicts with installed skills that did not stop the install.
    pub conflicts: Vec<Opposed>,
    /// Hooks by which a host could be reminded of it; none: nothing says when to use it.
    pub hooks: Option<Hooks>,
}

/// The place of a new install.
struct InstallLocation {
    directory: PathBuf,
    /// Installed skills, there and elsewhere.
    installed: Vec<Placed>,
    conflicts: Vec<Opposed>,
}

/// A skill that was removed from everywhere.
#[derive(Debug, Clone)]
pub struct Uninstalled {
    /// The copy that was removed.
    pub removed: Removed,
    /// Installed skills that require it.
    pub dependents: Vec<SkillId>,
}

fn member(head: &Head, version: &Version) -> Member {
    Member {
        name: head.id.as_str().into(),
        id: head.id.clone(),
        version: version.clone().into(),
    }
}

impl Installer {
    /// Makes an installer for the skills of a registry; records of installs are in a home.
    #[must_use]
    pub fn new(registry: Registry, home: PathBuf, policy: Policy, clock: Arc<dyn Clock>) -> Self {
        Self {
            registry,
            home: Home::new(home, vec![policy.directory.clone()]),
            policy: Arc::new(policy),
            clock,
        }
    }

    /// The same for a caller who sees the skills of another registry alone. It is for reading: a
    /// caller who installs sees all.
    #[must_use]
    pub fn with_skills(&self, registry: Registry) -> Self {
        let home = match registry.view().cloned() {
            Some(view) => self.home.showing(move |id| view.sees(id)),
            None => self.home.clone(),
        };
        Self {
            registry,
            home,
            ..self.clone()
        }
    }

    /// Characters that all installed skills may have.
    #[must_use]
    pub fn budget_chars(&self) -> u64 {
        self.policy.budget_chars
    }

    /// Formats a path for callers: below the home of the server's user it begins with `~`.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        let person = self.policy.person.as_deref();
        match person.and_then(|person| path.strip_prefix(person).ok()) {
            Some(inside) => format!("~/{}", inside.display()),
            None => path.display().to_string(),
        }
    }

    /// The directory that a caller means.
    fn directory(&self, wanted: &InstallRequest) -> Result<PathBuf, Error> {
        let named = wanted.directory.trim();
        if named.is_empty() {
            return Ok(install::resolved(&self.policy.directory)?);
        }
        let person = self.policy.person.as_deref();
        let named = match (named.strip_prefix("~/"), person) {
            (Some(inside), Some(person)) => person.join(inside),
            _ => PathBuf::from(named),
        };
        let mut roots = self.policy.roots.clone();
        if roots.is_empty() {
            // Only callers of the local socket have one, and they could write there anyway.
            roots.extend(wanted.folder.clone());
        }
        // It is the operator's own, wherever it lies.
        if named == self.policy.directory {
            return Ok(install::resolved(&named)?);
        }
        // `below` resolves links before it compares, so neither a link nor `..` leads out of the
        // roots.
        Ok(install::below(&roots, &named)?)
    }

    /// Lists the skills that are installed on this machine, by id. Blocks.
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn placed(&self) -> Result<Vec<Placed>, Error> {
        Ok(self.home.list()?)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self, &Stop) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let this = self.clone();
        let work = move |stop: &Stop| work(&this, stop);
        self.registry
            .executor()
            .run_fallible(Kind::Export, work)
            .await
    }

    /// Installs a skill, or fails with the check that refuses it.
    ///
    /// # Errors
    /// See the variants of [`Error`].
    pub async fn install(&self, wanted: InstallRequest) -> Result<Installation, Error> {
        let head = Lookup::new(self.registry.clone())
            .resolve(&wanted.skill)?
            .head;
        // Refuses what is blocked, or held.
        let version = self.registry.version(&head, &wanted.version)?;
        let (of, asked) = ((Arc::clone(&head), Arc::clone(&version)), wanted.clone());
        self.run(move |this, stop| {
            // Once before the scan, so that what cannot be installed costs none, and once more
            // when it is written: what is installed may be another by then.
            this.permit_place(&asked, (&of.0, &of.1), stop).map(drop)
        })
        .await?;
        let selector = VersionSelector::Number(version.number);
        let scanned = self.registry.scan_version(&head.id, &selector).await?;
        permit_risk(&head.id, &scanned.scan.report, &wanted)?;
        // All files of the version are in memory while they are written.
        admission::reserve(version.size())
            .await
            .map_err(registry::Error::from)?;
        self.run(move |this, stop| {
            this.install_version(
                &wanted,
                (&head, &version),
                scanned.scan.report.clone(),
                stop,
            )
        })
        .await
    }

    /// Returns where a version is to be installed, or why it must not be.
    fn permit_place(
        &self,
        wanted: &InstallRequest,
        (head, version): (&Head, &Version),
        stop: &Stop,
    ) -> Result<InstallLocation, Error> {
        let directory = self.directory(wanted)?;
        let installed = self.home.list()?;
        let is_named = wanted.version != VersionSelector::Active;
        self.permit_again(&installed, head, version, wanted.force, is_named)?;
        if head.trust_tier() > self.policy.min_trust_tier {
            return Err(Error::TrustTier {
                id: head.id.clone(),
                tier: head.trust_tier(),
                min: self.policy.min_trust_tier,
            });
        }
        // A machine has one copy of a skill: another version goes where the one before it is.
        let directory =
            installed_copy(&installed, &head.id).map_or(directory, |there| there.directory.clone());
        let there = (installed.as_slice(), directory.as_path());
        let conflicts = conflicts::permit(self, wanted, (head, version), there, stop)?;
        permit_folder(&installed, &head.id, &directory)?;
        Ok(InstallLocation {
            directory,
            installed,
            conflicts,
        })
    }

    fn install_version(
        &self,
        wanted: &InstallRequest,
        (head, version): (&Head, &Version),
        report: Report,
        stop: &Stop,
    ) -> Result<Installation, Error> {
        let InstallLocation {
            directory,
            installed,
            conflicts,
        } = self.permit_place(wanted, (head, version), stop)?;
        let budget = Budget::with(&installed, &head.id, version, self.policy.budget_chars);
        // The last check, since `force` overrides it.
        if budget.is_exceeded() && !wanted.force {
            return Err(Error::Budget {
                id: head.id.clone(),
                budget,
            });
        }
        let files = self.files(version, stop)?;
        let is_risky = report.verdict != Verdict::Passed;
        let is_at_odds = conflicts
            .iter()
            .any(|opposed| opposed.conflict.severity == ConflictSeverity::Warning);
        let release = (version.number, version.semantic.clone(), version.digest);
        let record = Record {
            method: wanted.method.unwrap_or(self.policy.method),
            server: "local".to_owned(),
            verdict: report.verdict.name().to_owned(),
            forced: wanted.force && (budget.is_exceeded() || is_risky || is_at_odds),
            scan_skipped: wanted.skip_security_scan,
            ..Record::of(&head.id, release, &version.skill, &files, self.clock.now())
        };
        let give_up = || stop.is_set();
        let force = wanted.force;
        let placed = self
            .home
            .install(&directory, record, &files, force, &give_up)?;
        let missing = missing(&placed.record, &self.home.list()?);
        Ok(Installation {
            tips: tips(&head.id, &version.skill, &missing),
            hooks: checks::hooks(&[Subject::from(member(head, version))]),
            conflicts,
            report: (!wanted.skip_security_scan).then_some(report),
            budget,
            placed,
        })
    }

    fn permit_again(
        &self,
        installed: &[Placed],
        head: &Head,
        version: &Version,
        force: bool,
        is_named: bool,
    ) -> Result<(), Error> {
        match installed_copy(installed, &head.id) {
            Some(there) if !(force || is_named && there.record.digest != version.digest) => {
                Err(Error::AlreadyInstalled {
                    id: head.id.clone(),
                    semantic: there.record.semantic.clone(),
                    path: self.shown(&there.path()),
                })
            }
            _ => Ok(()),
        }
    }

    fn files(&self, version: &Version, stop: &Stop) -> Result<Vec<(FilePath, Bytes)>, Error> {
        let read = version.files.iter().map(|file| {
            stop.check()?;
            Ok((file.path.clone(), self.registry.content(file)?))
        });
        read.collect()
    }

    /// Removes a skill.
    ///
    /// # Errors
    /// It is not installed; somebody changed its files.
    pub async fn uninstall(
        &self,
        skill: String,
        remove_data: bool,
        force: bool,
    ) -> Result<Uninstalled, Error> {
        self.run(move |this, stop| {
            // A skill may be installed in several directories: it is removed from all of them.
            let (give_up, mut last) = (|| stop.is_set(), None);
            for placed in this.home.find(skill.trim())? {
                let (at, id) = (&placed.directory, &placed.record.id);
                let removed = this.home.uninstall(at, id, remove_data, force, &give_up)?;
                last = Some(removed);
            }
            let none = || install::Error::not_installed(&skill, [].into_iter());
            let removed = last.ok_or_else(none)?;
            let left = this.home.list()?;
            let dependents = left
                .iter()
                .filter(|p| p.record.requires(&removed.record.id));
            let dependents = dependents.map(|placed| placed.record.id.clone()).collect();
            Ok(Uninstalled {
                removed,
                dependents,
            })
        })
        .await
    }

    /// Installed skills that are on the blocklist now: those of an id, or all.
    ///
    /// # Errors
    /// A record cannot be read.
    pub async fn blocked(&self, only: Option<SkillId>) -> Result<Vec<SkillId>, Error> {
        self.run(move |this, _| {
            let (catalog, only) = (this.registry.catalog(), only.map(|id| id.key()));
            let is_asked = |key: &SkillKey| only.as_ref().is_none_or(|only| only == key);
            let installed = this.home.list()?.into_iter().map(|placed| placed.record.id);
            let blocked = installed.filter(|id| {
                let key = id.key();
                is_asked(&key) && catalog.block(&key).is_some()
            });
            let mut blocked: Vec<SkillId> = blocked.collect();
            blocked.dedup_by_key(|id| id.key());
            Ok(blocked)
        })
        .await
    }
}

/// The copy of a skill that is installed, if there is one.
fn installed_copy<'a>(installed: &'a [Placed], id: &SkillId) -> Option<&'a Placed> {
    let key = id.key();
    let mut copies = installed.iter();
    copies.find(|placed| placed.record.id.key() == key)
}

/// Another skill of the same slug has the folder.
fn permit_folder(installed: &[Placed], id: &SkillId, directory: &Path) -> Result<(), Error> {
    let mut there = installed
        .iter()
        .filter(|placed| placed.directory == directory);
    let other = there.find(|placed| {
        let other = &placed.record.id;
        other.slug().eq_ignore_ascii_case(id.slug()) && other.key() != id.key()
    });
    match other {
        Some(other) => Err(install::Error::FolderTaken {
            path: other.path(),
            other: other.record.id.clone(),
        }
        .into()),
        None => Ok(()),
    }
}

/// Refuses findings of the scan unless they are overridden. A version that nobody should use is
/// always refused.
fn permit_risk(id: &SkillId, report: &Report, wanted: &InstallRequest) -> Result<(), Error> {
    let is_overridden = wanted.force || wanted.skip_security_scan;
    match report.verdict {
        Verdict::Passed => Ok(()),
        Verdict::Warning if is_overridden => Ok(()),
        Verdict::Warning | Verdict::Failed => Err(Error::Risk {
            id: id.clone(),
            report: Box::new(report.clone()),
        }),
    }
}

/// Returns the requirements of a skill that are not installed.
fn missing(record: &Record, installed: &[Placed]) -> Vec<String> {
    let is_there = |named: &&String| {
        installed.iter().any(|placed| {
            let id = &placed.record.id;
            named.eq_ignore_ascii_case(id.as_str()) || named.eq_ignore_ascii_case(id.slug())
        })
    };
    let missing = record.requires.iter().filter(|named| !is_there(named));
    missing.cloned().collect()
}

/// The worse of what is on disk and of what the server knows.
fn worse(one: Status, other: Status) -> Status {
    match (one, other) {
        // One side that does not know leaves it unknown, even if the other finds nothing wrong.
        (Status::Unknown, Status::Healthy) | (Status::Healthy, Status::Unknown) => Status::Unknown,
        (Status::Unknown, other) => other,
        (one, Status::Unknown) => one,
        (one, other) => one.max(other),
    }
}
