//! Priorities of installed skills.

use std::collections::{HashMap, HashSet};

use super::{Error, Installer};
use checks::Triggers;
use install::{Moved, Record};
use model::{SkillId, SkillKey, VersionSelector};

/// The priorities of installed skills.
#[derive(Debug, Clone)]
pub struct Priorities {
    /// The first one first.
    pub skills: Vec<Ranked>,
    /// Somebody set one of them; else the skills that were installed earlier are first.
    pub is_manual: bool,
}

/// An installed skill and its priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// The skill.
    pub id: SkillId,
    /// Its name.
    pub name: String,
    /// Its position, from 1.
    pub place: usize,
    /// Its position stays when others move.
    pub locked: bool,
    /// Triggers of it, and of no skill before it.
    pub triggers: Vec<String>,
}

impl Installer {
    /// What calls a skill up, else its name.
    fn triggers(&self, record: &Record) -> Vec<String> {
        let mut triggers = record.triggers.clone();
        if triggers.is_empty() {
            // A record of an earlier version of this program has only what an author states.
            let catalog = self.registry.catalog();
            let head = catalog.get(&record.id.key());
            let number = VersionSelector::Number(record.number);
            let version = head.and_then(|head| self.registry.version(head, &number).ok());
            let version = version.filter(|version| version.digest == record.digest);
            let found = version.map(|version| Triggers::of(&version.skill));
            triggers.extend(found.iter().flat_map(Triggers::texts).map(str::to_owned));
        }
        if triggers.is_empty() {
            triggers.push(record.id.slug().to_owned());
        }
        triggers
    }

    /// Lists the priorities of all installed skills, or of these.
    ///
    /// # Errors
    /// One of them is not installed; a record cannot be read.
    pub async fn priorities(&self, only: Vec<String>) -> Result<Priorities, Error> {
        self.run(move |this, _| {
            let mut wanted: HashSet<SkillKey> = HashSet::new();
            for skill in &only {
                let found = this.home.find(skill)?;
                wanted.extend(found.iter().map(|placed| placed.record.id.key()));
            }
            let (order, is_manual) = this.home.order()?;
            let installed = this.home.list()?.into_iter();
            let records: HashMap<SkillKey, Record> = installed
                .map(|placed| (placed.record.id.key(), placed.record))
                .collect();
            let (mut skills, mut taken) = (Vec::new(), HashSet::new());
            for (place, at) in (1..).zip(order.places()) {
                let key = at.id.key();
                let Some(record) = records.get(&key) else {
                    continue;
                };
                let is_free = |trigger: &String| taken.insert(trigger.trim().to_lowercase());
                let triggers = this.triggers(record).into_iter().filter(is_free).collect();
                if wanted.is_empty() || wanted.contains(&key) {
                    skills.push(Ranked {
                        id: record.id.clone(),
                        name: record.name.clone(),
                        place,
                        locked: at.locked,
                        triggers,
                    });
                }
            }
            Ok(Priorities { skills, is_manual })
        })
        .await
    }

    /// Sets the position of an installed skill. Returns the skills that moved, itself first.
    ///
    /// # Errors
    /// It is not installed.
    pub async fn set_priority(
        &self,
        skill: String,
        place: usize,
        lock: bool,
    ) -> Result<Vec<Moved>, Error> {
        self.run(move |this, stop| {
            let found = this.home.find(&skill)?;
            let none = || install::Error::not_installed(&skill, [].into_iter());
            let key = found.first().ok_or_else(none)?.record.id.key();
            Ok(this
                .home
                .set_priority(&key, place, lock, &|| stop.is_set())?)
        })
        .await
    }
}
