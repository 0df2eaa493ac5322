//! Lists, audits and uninstalls the skills on this machine.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{FETCH_CONCURRENCY, Provision, Source, TargetFolder, Targets};
use install::{Locked, Placed, Removed, SkillsLock, Status};
use model::{Code, Failure, SkillId, shown};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Nothing is wrong.
    None,
    /// A person should review it.
    Look,
    /// It should not be used.
    Refuse,
}

/// The result of an audit for a skill of the lock.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Its entry in the lock.
    pub locked: Locked,
    /// The most severe of what was found.
    pub concern: Concern,
    /// The findings, a sentence each.
    pub messages: Vec<String>,
    /// A newer version; none: there is none.
    pub newer: Option<semver::Version>,
}

/// A locked skill that has a newer version.
#[derive(Debug, Clone)]
pub struct Newer {
    /// Its entry in the lock.
    pub locked: Locked,
    /// The version that its name leads to, if it leads to one.
    pub latest: Option<semver::Version>,
    /// Why there is none.
    pub why: String,
}

/// Lists the skills in the folders that are known by name, and in those of the lock.
///
/// # Errors
/// A record, or the lock, cannot be read.
pub fn installed(targets: &Targets) -> Result<Vec<Placed>, Failure> {
    let lock = targets.lock()?.unwrap_or_default();
    Ok(within(targets, &targets.all(&lock))?)
}

/// Lists the skills in some folders, and in no others.
fn within(targets: &Targets, folders: &[TargetFolder]) -> Result<Vec<Placed>, install::Error> {
    // A home lists every folder that anything was installed to from this machine: those of other
    // projects too.
    let all = targets.home(folders).list()?.into_iter();
    let is_meant = |placed: &Placed| folders.iter().any(|f| f.directory == placed.directory);
    Ok(all.filter(is_meant).collect())
}

/// Removes a skill from the folders that it is in, and from the lock. Returns the skills that
/// require it.
///
/// # Errors
/// It is not installed; somebody changed its files.
pub fn uninstall(
    targets: &Targets,
    skill: &str,
    remove_data: bool,
    force: bool,
    give_up: &dyn Fn() -> bool,
) -> Result<(Vec<Removed>, Vec<SkillId>), Failure> {
    let _alone = targets.hold(give_up)?;
    let mut lock = targets.lock()?.unwrap_or_default();
    let folders = targets.all(&lock);
    let all = within(targets, &folders)?;
    let (home, mut removed) = (targets.home(&folders), Vec::new());
    for Placed { directory, record } in install::find(&all, skill)? {
        removed.push(home.uninstall(&directory, &record.id, remove_data, force, give_up)?);
    }
    let Some(Removed { record, .. }) = removed.first() else {
        return Ok((removed, Vec::new()));
    };
    // After the folders: an uninstall that fails half-way is still in the lock, and can be
    // repeated.
    forget(targets, &mut lock, &record.id, &removed)?;
    let mut dependents: Vec<SkillId> = all
        .iter()
        .filter(|placed| placed.record.requires(&record.id))
        .map(|placed| placed.record.id.clone())
        .collect();
    dependents.dedup_by_key(|id| id.key());
    Ok((removed, dependents))
}

/// Removes a skill from the lock, or these folders from its entry.
fn forget(
    targets: &Targets,
    lock: &mut SkillsLock,
    id: &SkillId,
    removed: &[Removed],
) -> Result<(), Failure> {
    let Some(mut locked) = lock.remove(id) else {
        return Ok(());
    };
    let gone = |name: &String| {
        let folder = targets.folder_of(name);
        folder.is_ok_and(|folder| removed.iter().any(|r| r.path.parent() == Some(&folder)))
    };
    locked.targets.retain(|name| !gone(name));
    if !locked.targets.is_empty() {
        lock.put(locked);
    }
    targets.write(lock)
}

/// Asks the server for the latest versions of locked skills.
///
/// # Errors
/// There is no lock; the server does not answer.
pub async fn newer<S: Source>(with: &Provision<'_, S>) -> Result<Vec<Newer>, S::Error> {
    let lock = with.targets.needed_lock().map_err(S::Error::from)?;
    let found = stream::iter(lock.skills()).map(|locked| async {
        let (latest, why) = latest(with, &locked.id).await?;
        Ok(Newer {
            locked: locked.clone(),
            latest,
            why,
        })
    });
    found.buffered(FETCH_CONCURRENCY).try_collect().await
}

/// The version that a skill's name leads to, or why it leads to none.
async fn latest<S: Source>(
    with: &Provision<'_, S>,
    id: &SkillId,
) -> Result<(Option<semver::Version>, String), S::Error> {
    let nowhere = [
        (Code::SkillNotFound, "it is not on the server any more"),
        (Code::SkillBlocked, "it is blocked on the server"),
        (Code::SkillYanked, "all its versions were withdrawn"),
        (Code::VersionHeld, "its last version is held for review"),
        (Code::SkillNotActive, "none of its versions is active"),
    ];
    match with.source.latest(id).await {
        Ok(latest) => Ok((Some(latest), String::new())),
        Err(error) => {
            let why = nowhere
                .into_iter()
                .find(|(code, _)| S::has_code(&error, *code));
            why.map(|(_, why)| (None, why.to_owned())).ok_or(error)
        }
    }
}

/// Checks every skill of the lock: on disk it should be as it was installed, and on the server
/// neither changed nor withdrawn.
///
/// # Errors
/// There is no lock; the server does not answer.
pub async fn audit<S: Source>(with: &Provision<'_, S>) -> Result<Vec<Finding>, S::Error> {
    let lock = with.targets.needed_lock().map_err(S::Error::from)?;
    let audited = stream::iter(lock.skills()).map(|locked| async {
        let mut finding = Finding {
            locked: locked.clone(),
            concern: Concern::None,
            messages: Vec::new(),
            newer: None,
        };
        finding.of_disk(with.targets).map_err(S::Error::from)?;
        finding.of_server(with).await?;
        let (latest, _) = latest(with, &locked.id).await?;
        finding.newer = latest.filter(|latest| *latest > locked.semantic);
        Ok(finding)
    });
    audited.buffered(FETCH_CONCURRENCY).try_collect().await
}

impl Finding {
    fn add(&mut self, concern: Concern, message: String) {
        self.concern = self.concern.max(concern);
        self.messages.push(message);
    }

    fn of_disk(&mut self, targets: &Targets) -> Result<(), Failure> {
        let key = self.locked.id.key();
        let folders = targets.of(&self.locked)?;
        let all = within(targets, &folders)?;
        for place in &folders {
            let is_it = |placed: &&Placed| {
                placed.directory == place.directory && placed.record.id.key() == key
            };
            let Some(found) = all.iter().find(is_it) else {
                let message = format!("not installed for {}", shown(&place.name, 80));
                self.add(Concern::Look, message);
                continue;
            };
            if found.record.digest != self.locked.digest {
                let (semantic, name) = (&found.record.semantic, &place.name);
                let message = format!("version {semantic} is installed for {name}");
                self.add(Concern::Look, message);
            }
            let health = found.health();
            let concern = match health.status() {
                Status::Healthy => Concern::None,
                Status::Warning | Status::Error | Status::Unknown => Concern::Look,
            };
            if let Some(details) = health.details() {
                self.add(concern, format!("{}: {details}", found.path().display()));
            }
        }
        Ok(())
    }

    async fn of_server<S: Source>(&mut self, with: &Provision<'_, S>) -> Result<(), S::Error> {
        let refusals = [
            (Code::SkillBlocked, Concern::Refuse, "blocked on the server"),
            (
                Code::SkillNotFound,
                Concern::Look,
                "not on the server any more",
            ),
            (
                Code::VersionNotFound,
                Concern::Look,
                "its version is not on the server any more",
            ),
            (
                Code::VersionHeld,
                Concern::Refuse,
                "held for review on the server",
            ),
        ];
        match with.source.known(&self.locked.id, self.locked.number).await {
            Ok(known) => {
                // A version keeps its bytes for good, so this is another server, or a bad one.
                if known.digest != self.locked.digest {
                    let message = format!("the server's files are others: {}", known.digest);
                    self.add(Concern::Refuse, message);
                }
                if let Some(reason) = known.yanked {
                    self.add(Concern::Look, format!("withdrawn: {}", shown(&reason, 200)));
                }
                Ok(())
            }
            Err(error) => {
                let known = refusals
                    .into_iter()
                    .find(|(code, ..)| S::has_code(&error, *code));
                let Some((_, concern, message)) = known else {
                    return Err(error);
                };
                self.add(concern, message.to_owned());
                Ok(())
            }
        }
    }
}

/// The most severe concern of some findings.
#[must_use]
pub fn worst(findings: &[Finding]) -> Concern {
    let concerns = findings.iter().map(|finding| finding.concern);
    concerns.max().unwrap_or(Concern::None)
}
