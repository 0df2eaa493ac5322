//! What is installed, whether it is what it was, what the server says of it now; and how it
//! goes.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{FETCH_CONCURRENCY, Provision, Source, TargetFolder, Targets};
use install::{Locked, Placed, Removed, SkillsLock, Status};
use model::{Code, Failure, SkillId, shown};

/// How much a finding of an audit matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Nothing is wrong.
    None,
    /// A person should look at it.
    Look,
    /// It should not be used.
    Refuse,
}

/// What an audit found of a skill of the lock.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What the lock says of it.
    pub locked: Locked,
    /// How much it matters.
    pub concern: Concern,
    /// What was found, a sentence each.
    pub messages: Vec<String>,
    /// A newer version; none: there is none.
    pub newer: Option<semver::Version>,
}

/// A locked skill that has a newer version.
#[derive(Debug, Clone)]
pub struct Newer {
    /// What the lock says of it.
    pub locked: Locked,
    /// The version that its name leads to; none: none.
    pub latest: Option<semver::Version>,
    /// Why there is none.
    pub why: String,
}

/// What is installed in the folders that are known by name, and in those of the lock.
///
/// # Errors
/// A record, or the lock, cannot be read.
pub fn installed(targets: &Targets) -> Result<Vec<Placed>, Failure> {
    let lock = targets.lock()?.unwrap_or_default();
    Ok(within(targets, &targets.all(&lock))?)
}

/// What is installed in some folders, and nowhere else.
fn within(targets: &Targets, places: &[TargetFolder]) -> Result<Vec<Placed>, install::Error> {
    let all = targets.home(places).list()?.into_iter();
    let is_meant = |placed: &Placed| places.iter().any(|p| p.directory == placed.directory);
    Ok(all.filter(is_meant).collect())
}

/// Removes a skill from the folders that it is in, and from the lock. Says which skills
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
    let places = targets.all(&lock);
    let all = within(targets, &places)?;
    let is_meant = |id: &SkillId| {
        skill.eq_ignore_ascii_case(id.as_str()) || skill.eq_ignore_ascii_case(id.slug())
    };
    let mut ids: Vec<SkillId> = all
        .iter()
        .map(|p| p.record.id.clone())
        .filter(is_meant)
        .collect();
    ids.dedup_by_key(|id| id.key());
    let [id] = ids.as_slice() else {
        let near: Vec<&SkillId> = if ids.is_empty() {
            all.iter().map(|placed| &placed.record.id).collect()
        } else {
            ids.iter().collect()
        };
        return Err(install::Error::not_installed(skill, near.into_iter()).into());
    };
    let (home, mut removed) = (targets.home(&places), Vec::new());
    for placed in all
        .iter()
        .filter(|placed| placed.record.id.key() == id.key())
    {
        removed.push(home.uninstall(&placed.directory, id, remove_data, force, give_up)?);
    }
    forget(targets, &mut lock, id, &removed)?;
    let mut dependents: Vec<SkillId> = all
        .iter()
        .filter(|placed| placed.record.requires(id))
        .map(|placed| placed.record.id.clone())
        .collect();
    dependents.dedup_by_key(|id| id.key());
    Ok((removed, dependents))
}

/// Has the lock not name a skill any more, or not these folders.
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
        let place = targets.directory(name);
        place.is_ok_and(|place| removed.iter().any(|r| r.path.parent() == Some(&place)))
    };
    locked.targets.retain(|name| !gone(name));
    if !locked.targets.is_empty() {
        lock.put(locked);
    }
    targets.write(lock)
}

/// What the server has of locked skills now.
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

/// What a skill's name leads to, or why it leads nowhere.
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

/// Looks at every skill of the lock: is it there as it was installed, and does the server
/// still stand by it.
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
    fn say(&mut self, concern: Concern, message: String) {
        self.concern = self.concern.max(concern);
        self.messages.push(message);
    }

    fn of_disk(&mut self, targets: &Targets) -> Result<(), Failure> {
        let places = targets.of(&self.locked)?;
        let all = within(targets, &places)?;
        for place in &places {
            let mut there = all
                .iter()
                .filter(|placed| placed.directory == place.directory);
            let there = there.find(|placed| placed.record.id.key() == self.locked.id.key());
            let Some(found) = there else {
                self.say(
                    Concern::Look,
                    format!("not installed for {}", shown(&place.name, 80)),
                );
                continue;
            };
            if found.record.digest != self.locked.digest {
                let semantic = &found.record.semantic;
                self.say(
                    Concern::Look,
                    format!("version {semantic} is installed for {}", place.name),
                );
            }
            let health = found.health();
            let concern = match health.status() {
                Status::Healthy => Concern::None,
                Status::Warning | Status::Error | Status::Unknown => Concern::Look,
            };
            if let Some(details) = health.details() {
                self.say(concern, format!("{}: {details}", found.path().display()));
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
                if known.digest != self.locked.digest {
                    let message = format!("the server's files are others: {}", known.digest);
                    self.say(Concern::Refuse, message);
                }
                if let Some(reason) = known.yanked {
                    self.say(Concern::Look, format!("withdrawn: {}", shown(&reason, 200)));
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
                self.say(concern, message.to_owned());
                Ok(())
            }
        }
    }
}

/// What matters most of some findings.
#[must_use]
pub fn worst(findings: &[Finding]) -> Concern {
    let concerns = findings.iter().map(|finding| finding.concern);
    concerns.max().unwrap_or(Concern::None)
}
