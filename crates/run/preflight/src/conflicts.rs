//! Conflicts of a skill with installed ones.

use std::collections::HashSet;
use std::path::Path;

use super::{Error, InstallRequest, Installer};
use checks::{ConflictKind, ConflictSeverity, Installed, InstalledSkill, Opposed};
use executor::Stop;
use install::Placed;
use model::{Failure, SkillKey, Version};
use registry::Head;

/// Converts installed skills for the checks: each skill once, wherever it is.
fn known(placed: &[Placed], health: bool) -> Vec<InstalledSkill> {
    let mut seen: HashSet<SkillKey> = HashSet::new();
    let new = placed
        .iter()
        .filter(|placed| seen.insert(placed.record.id.key()));
    new.map(|placed| {
        let record = &placed.record;
        let damage = if health {
            placed.health().details()
        } else {
            None
        };
        InstalledSkill {
            id: record.id.clone(),
            name: record.name.clone(),
            number: record.number,
            digest: record.digest,
            chars: record.chars,
            time: record.installed_at,
            damage,
        }
    })
    .collect()
}

impl Installed for Installer {
    fn installed(&self, health: bool) -> Result<Vec<InstalledSkill>, Failure> {
        Ok(known(&self.placed()?, health))
    }
}

/// Refuses conflicts that the caller does not override; else returns the conflicts to report.
pub(crate) fn permit(
    installer: &Installer,
    wanted: &InstallRequest,
    (head, version): (&Head, &Version),
    (placed, directory): (&[Placed], &Path),
    stop: &Stop,
) -> Result<Vec<Opposed>, Error> {
    if wanted.skip_conflict_check {
        return Ok(Vec::new());
    }
    let subject = super::member(head, version);
    let known = known(placed, false);
    let report = checks::against_installed(&installer.registry, subject, &known, stop)?;
    let mut conflicts = report.conflicts;
    // Two folders of one name are in nobody's way in two directories.
    conflicts.retain(|opposed| {
        let is_folder = opposed.conflict.kind == ConflictKind::FileCollision;
        let with = opposed.with.member.id.key();
        let mut others = placed.iter();
        let is_here =
            others.any(|other| other.directory == directory && other.record.id.key() == with);
        !(is_folder && opposed.is_blocking()) || is_here
    });
    let refuses = |opposed: &Opposed| match opposed.conflict.severity {
        ConflictSeverity::Blocking => true,
        ConflictSeverity::Warning => !wanted.force,
        ConflictSeverity::Info => false,
    };
    if !conflicts.iter().any(refuses) {
        return Ok(conflicts);
    }
    conflicts.retain(refuses);
    Err(Error::Conflict {
        id: head.id.clone(),
        conflicts,
    })
}
