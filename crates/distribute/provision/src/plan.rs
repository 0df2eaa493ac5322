//! Chooses versions: of skills that are named, those of a lock, newer ones.

use std::collections::{HashMap, HashSet};

use super::fetch::RequiredVersion;
use super::{Error, InstalledSkill, Pin, Provision, Source, TargetFolder, fail};
use install::{Locked, Method, NpxSkill, SkillsLock, is_named};
use model::{Code, SkillId, SkillKey, VersionNumber};

/// Skills in one request to a server.
const MAX_SET: usize = 256;

/// The result of an install or an update.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The skills that are installed now.
    pub installed: Vec<InstalledSkill>,
    /// Skills that were removed, as nothing requires them any more.
    pub removed: Vec<SkillId>,
    /// Skills of the lock of `npx skills` that the server does not have.
    pub missing: Vec<String>,
    /// Skills whose locked version the server no longer has, and which got another one.
    pub replaced: Vec<SkillId>,
}

impl RequiredVersion {
    /// A version that the server chose, with what the lock has of the skill.
    fn chosen(
        mut pin: Pin,
        lock: Option<&SkillsLock>,
        places: Vec<TargetFolder>,
        method: Method,
    ) -> Self {
        let locked = lock.and_then(|lock| lock.get(&pin.id));
        // As a requirement of another skill it must not lose that somebody asked for it: `update`
        // would remove it once nothing requires it.
        pin.requested |= locked.is_some_and(|locked| locked.requested);
        Self {
            pin,
            places,
            method,
        }
    }
}

fn pinned(id: &SkillId, number: VersionNumber) -> String {
    format!("{id}@{number}")
}

/// Installs skills that somebody names, with all that they require; without a name those of
/// the lock, else of the lock of `npx skills`. With `frozen` those of the lock and nothing
/// else, to the byte.
///
/// # Errors
/// There is no such skill; the skills do not go together; the scan found something; a file
/// is not what it should be, or cannot be written; there is no lock.
pub async fn install<S: Source>(
    with: &Provision<'_, S>,
    skills: Vec<String>,
    method: Method,
    frozen: bool,
    force: bool,
) -> Result<Changes, S::Error> {
    let targets = with.targets;
    // Held until the lock is written: another command would write over its changes.
    let _held = targets.hold(&|| with.give_up()).map_err(S::Error::from)?;
    let lock = targets.lock().map_err(S::Error::from)?;
    let mut changes = Changes::default();
    let wanted = match (&lock, skills.is_empty()) {
        (None, _) if frozen => {
            let none = targets.needed_lock().map(|_| Vec::new());
            none.map_err(S::Error::from)?
        }
        (Some(lock), true) => of_lock(with, lock, method, frozen, &mut changes).await?,
        (None, true) => of_npx(with, method, &mut changes).await?,
        (lock, false) => {
            let pins = with.source.resolve(skills).await?;
            if let Some(lock) = lock
                && !force
            {
                check_together(with, &pins, lock).await?;
            }
            chosen(with, pins, lock.as_ref(), method)
        }
    };
    changes.installed = with.put(&wanted, force).await?;
    // After the folders: the lock never names what is not there.
    if !frozen {
        let mut lock = lock.unwrap_or_default();
        record(&mut lock, &changes.installed, targets.is_asked());
        targets.write(&lock).map_err(S::Error::from)?;
    }
    Ok(changes)
}

/// Pins, in the folders of the call.
fn chosen<S: Source>(
    with: &Provision<'_, S>,
    pins: Vec<Pin>,
    lock: Option<&SkillsLock>,
    method: Method,
) -> Vec<RequiredVersion> {
    let places = with.targets.places();
    let chosen = |pin| RequiredVersion::chosen(pin, lock, places.to_vec(), method);
    pins.into_iter().map(chosen).collect()
}

/// Writes the installed skills to the lock. If the options named folders, other folders of the same
/// version stay in it: they are as they were.
fn record(lock: &mut SkillsLock, installed: &[InstalledSkill], is_asked: bool) {
    for skill in installed {
        let mut locked = skill.locked.clone();
        if let Some(before) = lock.get(&locked.id)
            && is_asked
            && before.digest == locked.digest
        {
            locked.targets.extend(before.targets.clone());
        }
        lock.put(locked);
    }
}

/// Checks that new skills do not conflict with those of the lock that stay.
async fn check_together<S: Source>(
    with: &Provision<'_, S>,
    pins: &[Pin],
    lock: &SkillsLock,
) -> Result<(), S::Error> {
    let new: HashSet<SkillKey> = pins.iter().map(|pin| pin.id.key()).collect();
    let stay = lock.skills().iter();
    let stay = stay.filter(|locked| !new.contains(&locked.id.key()));
    let mut all: Vec<String> = pins.iter().map(|p| pinned(&p.id, p.number)).collect();
    all.extend(stay.map(|locked| pinned(&locked.id, locked.number)));
    // `resolve` has checked the new ones among themselves. More than one request can have are not
    // checked: an install of such a set should not fail for that.
    if all.len() == pins.len() || all.len() > MAX_SET {
        return Ok(());
    }
    with.source.permit_set(all).await
}

/// The versions of the lock. One that the server no longer has is chosen anew, with requirements
/// that the lock does not have; with `frozen` it is an error.
async fn of_lock<S: Source>(
    with: &Provision<'_, S>,
    lock: &SkillsLock,
    method: Method,
    frozen: bool,
    changes: &mut Changes,
) -> Result<Vec<RequiredVersion>, S::Error> {
    let (mut wanted, mut anew) = (Vec::new(), Vec::new());
    for locked in lock.skills() {
        let places = with.targets.of(locked).map_err(S::Error::from)?;
        match with.source.known(&locked.id, locked.number).await {
            Err(gone) if !frozen && S::has_code(&gone, Code::VersionNotFound) => {
                let pins = with.source.resolve(vec![locked.id.to_string()]).await?;
                let pins = pins.into_iter();
                let chosen = |pin| RequiredVersion::chosen(pin, Some(lock), places.clone(), method);
                anew.extend(pins.map(chosen));
                changes.replaced.push(locked.id.clone());
            }
            Err(refused) => return Err(refused),
            Ok(known) if known.digest != locked.digest => {
                return Err(fail::<S>(install::Error::DigestDiffers {
                    id: locked.id.clone(),
                    expected: locked.digest,
                    found: known.digest,
                }));
            }
            Ok(_) => {
                let pin = Pin {
                    id: locked.id.clone(),
                    number: locked.number,
                    digest: locked.digest,
                    requested: locked.requested,
                };
                wanted.push(RequiredVersion::chosen(pin, Some(lock), places, method));
            }
        }
    }
    // A requirement of a replacement may be in the lock, which decides, or be chosen already.
    let mut chosen: HashSet<SkillKey> = wanted.iter().map(|one| one.pin.id.key()).collect();
    anew.retain(|one: &RequiredVersion| chosen.insert(one.pin.id.key()));
    wanted.extend(anew);
    Ok(wanted)
}

/// The versions of the skills of the lock of `npx skills` that the server has.
async fn of_npx<S: Source>(
    with: &Provision<'_, S>,
    method: Method,
    changes: &mut Changes,
) -> Result<Vec<RequiredVersion>, S::Error> {
    let skills = NpxSkill::read_lock(&with.targets.npx_lock_file()).map_err(fail::<S>)?;
    let skills = skills.ok_or_else(|| fail::<S>(Error::NothingNamed))?;
    let mut found = Vec::new();
    for skill in skills {
        let Some(id) = skill.id else {
            changes.missing.push(skill.name);
            continue;
        };
        match with.source.latest(&id).await {
            Err(refused) if S::has_code(&refused, Code::SkillNotFound) => {
                changes.missing.push(skill.name);
            }
            Err(refused) => return Err(refused),
            Ok(_) => found.push(id.to_string()),
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let pins = with.source.resolve(found).await?;
    Ok(chosen(with, pins, None, method))
}

/// Chooses the versions of locked skills anew: of these, or of all. The others keep theirs, and
/// skills that nothing requires any more are removed.
///
/// # Errors
/// As [`install()`]; a skill is not in the lock.
pub async fn update<S: Source>(
    with: &Provision<'_, S>,
    skills: Vec<String>,
    force: bool,
) -> Result<Changes, S::Error> {
    let targets = with.targets;
    let _held = targets.hold(&|| with.give_up()).map_err(S::Error::from)?;
    let mut lock = targets.needed_lock().map_err(S::Error::from)?;
    let is_there = |name: &&String| lock.skills().iter().any(|l| is_named(name, &l.id));
    if let Some(unknown) = skills.iter().find(|name| !is_there(name)) {
        let ids = lock.skills().iter().map(|locked| &locked.id);
        return Err(fail::<S>(install::Error::not_installed(unknown, ids)));
    }
    let is_chosen =
        |locked: &Locked| skills.is_empty() || skills.iter().any(|name| is_named(name, &locked.id));
    // Requirements are left to the server, unless somebody names them: asked for by id, one that is
    // no longer required would stay.
    let asked = lock.skills().iter();
    let asked = asked.filter(|l| l.requested || !skills.is_empty() && is_chosen(l));
    // The others with their numbers, so that they keep their versions, and requirements fit to
    // them.
    let asked = asked.map(|locked| {
        if is_chosen(locked) {
            locked.id.to_string()
        } else {
            pinned(&locked.id, locked.number)
        }
    });
    let asked: Vec<String> = asked.collect();
    if asked.is_empty() {
        return Ok(Changes::default());
    }
    let pins = with.source.resolve(asked).await?;
    let wanted = in_their_folders(with, pins, &lock)?;
    let kept: HashSet<SkillKey> = wanted.iter().map(|wanted| wanted.pin.id.key()).collect();
    let installed = with.put(&wanted, force).await?;
    // Removed after the others are installed: a call that fails before leaves all as it was.
    let gone = lock.skills().iter();
    let gone = gone.filter(|locked| !kept.contains(&locked.id.key()));
    let gone: Vec<Locked> = gone.cloned().collect();
    for locked in &gone {
        let places = targets.of(locked).map_err(S::Error::from)?;
        let home = targets.home(&places);
        for place in &places {
            let give_up = || with.give_up();
            let removed = home.uninstall(&place.directory, &locked.id, false, force, &give_up);
            match removed {
                // Somebody may have deleted it by hand.
                Ok(_) | Err(install::Error::NotInstalled { .. }) => {}
                Err(error) => return Err(fail::<S>(error)),
            }
        }
        lock.remove(&locked.id);
    }
    record(&mut lock, &installed, targets.is_asked());
    targets.write(&lock).map_err(S::Error::from)?;
    Ok(Changes {
        installed,
        removed: gone.into_iter().map(|locked| locked.id).collect(),
        ..Changes::default()
    })
}

/// The folders and the method of each skill as they are now. A new one goes to all folders of the
/// lock: any skill in them may require it.
fn in_their_folders<S: Source>(
    with: &Provision<'_, S>,
    pins: Vec<Pin>,
    lock: &SkillsLock,
) -> Result<Vec<RequiredVersion>, S::Error> {
    let targets = with.targets;
    let everywhere = targets.of_all(lock).map_err(S::Error::from)?;
    let there = targets.home(&everywhere).list().map_err(fail::<S>)?;
    let methods: HashMap<SkillKey, Method> = there
        .iter()
        .map(|placed| (placed.record.id.key(), placed.record.method))
        .collect();
    let mut wanted = Vec::new();
    for mut pin in pins {
        let locked = lock.get(&pin.id);
        // Naming a requirement in an update is no request to have it on its own.
        pin.requested &= locked.is_none_or(|locked| locked.requested);
        let places = match locked {
            Some(locked) => targets.of(locked).map_err(S::Error::from)?,
            None => everywhere.clone(),
        };
        let method = methods.get(&pin.id.key()).copied().unwrap_or_default();
        wanted.push(RequiredVersion::chosen(pin, Some(lock), places, method));
    }
    Ok(wanted)
}
