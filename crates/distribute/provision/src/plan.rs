//! Which versions are to be there: those that somebody names, those of a lock, newer ones.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::fetch::RequiredVersion;
use super::{Error, InstalledSkill, Pin, Provision, Source, TargetFolder, fail};
use install::{Locked, Method, NpxLock, SkillsLock};
use model::{Code, Digest, SkillId, SkillKey, VersionNumber};
use trust::Verdict;

/// Skills of one question to a server.
const MAX_SET: usize = 256;

/// What an install, or an update, came to.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The skills that are there.
    pub installed: Vec<InstalledSkill>,
    /// Those that nothing requires any more.
    pub removed: Vec<SkillId>,
    /// Those of the lock of `npx skills` that the server does not have.
    pub missing: Vec<String>,
    /// Locked versions that the server does not have any more, and for which others were
    /// chosen.
    pub replaced: Vec<SkillId>,
}

impl RequiredVersion {
    /// Chosen by the server, beside what the lock says of the skill.
    fn chosen(
        mut pin: Pin,
        lock: Option<&SkillsLock>,
        places: Vec<TargetFolder>,
        method: Method,
    ) -> Self {
        let locked = lock.and_then(|lock| lock.get(&pin.id));
        // A skill that somebody asked for before stays one.
        pin.requested |= locked.is_some_and(|locked| locked.requested);
        let is_known_risk = locked.is_some_and(|l| l.digest == pin.digest && is_risk(l));
        Self {
            pin,
            places,
            method,
            is_known_risk,
        }
    }

    fn locked(locked: &Locked, places: Vec<TargetFolder>, method: Method) -> Self {
        Self {
            pin: Pin {
                id: locked.id.clone(),
                number: locked.number,
                digest: locked.digest,
                requested: locked.requested,
            },
            places,
            method,
            is_known_risk: is_risk(locked),
        }
    }
}

/// Somebody installed it though the scan warned of it.
fn is_risk(locked: &Locked) -> bool {
    locked.verdict == Verdict::Warning.name()
}

fn is_named(name: &str, id: &SkillId) -> bool {
    name.eq_ignore_ascii_case(id.as_str()) || name.eq_ignore_ascii_case(id.slug())
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
    let _alone = targets.hold(&|| with.give_up()).map_err(S::Error::from)?;
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
                permit_beside(with, &pins, lock).await?;
            }
            let places = targets.places();
            let chosen = pins.into_iter();
            chosen
                .map(|pin| RequiredVersion::chosen(pin, lock.as_ref(), places.to_vec(), method))
                .collect()
        }
    };
    changes.installed = with.put(&wanted, force).await?;
    if !frozen {
        let mut lock = lock.unwrap_or_default();
        note(&mut lock, &changes.installed, targets.is_asked());
        targets.write(&lock).map_err(S::Error::from)?;
    }
    Ok(changes)
}

/// Has the lock say what is there. Where somebody asked for places, the others stay.
fn note(lock: &mut SkillsLock, installed: &[InstalledSkill], is_asked: bool) {
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

/// New skills have to go together with those that stay.
async fn permit_beside<S: Source>(
    with: &Provision<'_, S>,
    pins: &[Pin],
    lock: &SkillsLock,
) -> Result<(), S::Error> {
    let new: HashSet<SkillKey> = pins.iter().map(|pin| pin.id.key()).collect();
    let stay = lock
        .skills()
        .iter()
        .filter(|locked| !new.contains(&locked.id.key()));
    let stay: Vec<String> = stay
        .map(|locked| pinned(&locked.id, locked.number))
        .collect();
    let all = pins.iter().map(|pin| pinned(&pin.id, pin.number));
    let all: Vec<String> = all.chain(stay.iter().cloned()).collect();
    if stay.is_empty() || all.len() > MAX_SET {
        return Ok(());
    }
    with.source.permit_set(all).await
}

/// What the lock says. A version that the server does not have any more is chosen anew, with
/// what it requires and the lock does not have, unless it is to be that one and no other.
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
                return Err(fail::<S>(differs(locked, known.digest)));
            }
            Ok(_) => wanted.push(RequiredVersion::locked(locked, places, method)),
        }
    }
    // What a replacement requires may be in the lock, which decides, or be chosen already.
    let mut chosen: HashSet<SkillKey> = wanted.iter().map(|one| one.pin.id.key()).collect();
    anew.retain(|one: &RequiredVersion| chosen.insert(one.pin.id.key()));
    wanted.extend(anew);
    Ok(wanted)
}

fn differs(locked: &Locked, found: Digest) -> install::Error {
    install::Error::DigestDiffers {
        id: locked.id.clone(),
        expected: locked.digest,
        found,
    }
}

/// What the lock of `npx skills` says, as far as the server has it.
async fn of_npx<S: Source>(
    with: &Provision<'_, S>,
    method: Method,
    changes: &mut Changes,
) -> Result<Vec<RequiredVersion>, S::Error> {
    let lock = NpxLock::read(&with.targets.npx_lock_file()).map_err(fail::<S>)?;
    let lock = lock.ok_or_else(|| fail::<S>(Error::NothingNamed))?;
    let mut found = Vec::new();
    for skill in lock.skills {
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
    let pins = with.source.resolve(found).await?.into_iter();
    let places = with.targets.places();
    Ok(pins
        .map(|pin| RequiredVersion::chosen(pin, None, places.to_vec(), method))
        .collect())
}

/// Chooses the versions of locked skills anew: of these, or of all. The others keep theirs,
/// and what nothing requires any more is removed.
///
/// # Errors
/// As [`install()`]; a skill is not in the lock.
pub async fn update<S: Source>(
    with: &Provision<'_, S>,
    skills: Vec<String>,
    force: bool,
) -> Result<Changes, S::Error> {
    let targets = with.targets;
    let _alone = targets.hold(&|| with.give_up()).map_err(S::Error::from)?;
    let mut lock = targets.needed_lock().map_err(S::Error::from)?;
    let is_there = |name: &&String| lock.skills().iter().any(|l| is_named(name, &l.id));
    if let Some(unknown) = skills.iter().find(|name| !is_there(name)) {
        let ids = lock.skills().iter().map(|locked| &locked.id);
        return Err(fail::<S>(install::Error::not_installed(unknown, ids)));
    }
    let is_chosen =
        |locked: &Locked| skills.is_empty() || skills.iter().any(|name| is_named(name, &locked.id));
    // Those that others require follow them, unless somebody names them.
    let asked = lock
        .skills()
        .iter()
        .filter(|l| l.requested || !skills.is_empty() && is_chosen(l));
    let asked: Vec<String> = asked
        .map(|locked| {
            if is_chosen(locked) {
                locked.id.to_string()
            } else {
                pinned(&locked.id, locked.number)
            }
        })
        .collect();
    if asked.is_empty() {
        return Ok(Changes::default());
    }
    let pins = with.source.resolve(asked).await?;
    let wanted = beside(with, pins, &lock)?;
    let kept: HashSet<SkillKey> = wanted.iter().map(|wanted| wanted.pin.id.key()).collect();
    let installed = with.put(&wanted, force).await?;
    let gone = lock
        .skills()
        .iter()
        .filter(|locked| !kept.contains(&locked.id.key()));
    let gone: Vec<Locked> = gone.cloned().collect();
    for locked in &gone {
        let places = targets.of(locked).map_err(S::Error::from)?;
        let home = targets.home(&places);
        for place in &places {
            let give_up = || with.give_up();
            let removed = home.uninstall(&place.directory, &locked.id, false, force, &give_up);
            match removed {
                Ok(_) | Err(install::Error::NotInstalled { .. }) => {}
                Err(error) => return Err(fail::<S>(error)),
            }
        }
        lock.remove(&locked.id);
    }
    note(&mut lock, &installed, targets.is_asked());
    targets.write(&lock).map_err(S::Error::from)?;
    Ok(Changes {
        installed,
        removed: gone.into_iter().map(|locked| locked.id).collect(),
        ..Changes::default()
    })
}

/// Each skill stays where it is, and as it is there; a new one goes wherever one is that may
/// require it.
fn beside<S: Source>(
    with: &Provision<'_, S>,
    pins: Vec<Pin>,
    lock: &SkillsLock,
) -> Result<Vec<RequiredVersion>, S::Error> {
    let targets = with.targets;
    let all: BTreeSet<String> = lock
        .skills()
        .iter()
        .flat_map(|locked| locked.targets.clone())
        .collect();
    let all: Vec<String> = all.into_iter().collect();
    let everywhere = targets.of_names(&all).map_err(S::Error::from)?;
    let there = targets.home(&everywhere).list().map_err(fail::<S>)?;
    let methods: HashMap<SkillKey, Method> = there
        .iter()
        .map(|placed| (placed.record.id.key(), placed.record.method))
        .collect();
    let mut wanted = Vec::new();
    for mut pin in pins {
        let locked = lock.get(&pin.id);
        // Whoever names what others require does not ask for it.
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
