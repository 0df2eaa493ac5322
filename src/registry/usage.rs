//! How often skills are read and loaded.
//!
//! Counting must not slow a read, so counts gather in memory and are written
//! every few seconds: a server that is killed loses those seconds, and nothing
//! else depends on them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Error, Head, Registry};
use crate::model::{Digest, SkillKey, VersionNumber};
use crate::store::{Batch, Store, Table, TableId, prefix};

const USAGE: Table<SkillKey, Stored> = Table::new(TableId::Usage);
const SESSIONS: Table<(SkillKey, VersionNumber, Digest), ()> = Table::new(TableId::UsageSessions);

/// Sessions that wait to be written, at most; more are not counted as distinct
/// until these are.
const MAX_WAITING_SESSIONS: usize = 200_000;
/// Skills in one write.
const SKILLS_A_WRITE: usize = 500;

/// What a caller did with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageKind {
    /// A file was read or exported.
    Read,
    /// The instructions were loaded into a session.
    Load,
}

/// Usage of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionUsage {
    /// How often it was loaded.
    pub loads: u64,
    /// How often one of its files was read.
    pub reads: u64,
    /// How many sessions did either.
    pub sessions: u64,
    /// When that last happened.
    pub last_used_at: Option<Timestamp>,
}

impl VersionUsage {
    fn add(&mut self, other: &Self) {
        self.loads += other.loads;
        self.reads += other.reads;
        self.sessions += other.sessions;
        self.last_used_at = self.last_used_at.max(other.last_used_at);
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    versions: BTreeMap<VersionNumber, VersionUsage>,
}

#[derive(Debug, Default)]
struct Waiting {
    counts: HashMap<(SkillKey, VersionNumber), VersionUsage>,
    sessions: HashSet<(SkillKey, VersionNumber, Digest)>,
}

/// Counts that were not written yet.
#[derive(Debug, Default)]
pub(super) struct Usage {
    waiting: Mutex<Waiting>,
}

impl Usage {
    fn with<T>(&self, work: impl FnOnce(&mut Waiting) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn forget(&self, key: &SkillKey) {
        self.with(|waiting| {
            waiting.counts.retain(|(skill, _), _| skill != key);
            waiting.sessions.retain(|(skill, _, _)| skill != key);
        });
    }
}

/// Removes the counts of a skill.
pub(super) fn forget(store: &Store, batch: &mut Batch, key: &SkillKey) -> Result<(), Error> {
    batch.delete(&USAGE, key);
    for entry in store.scan(&SESSIONS, &prefix(key)) {
        let (rest, _) = entry?;
        let Some((number, digest)) = rest.split_first_chunk::<4>() else {
            continue;
        };
        let number = VersionNumber::new(u32::from_be_bytes(*number));
        let digest = digest.first_chunk::<32>().map(|bytes| Digest::from(*bytes));
        if let (Some(number), Some(digest)) = (number, digest) {
            batch.delete(&SESSIONS, &(key.clone(), number, digest));
        }
    }
    Ok(())
}

impl Registry {
    /// Counts a use of a version. Does not wait and does not fail.
    pub fn count(&self, head: &Head, number: VersionNumber, kind: UsageKind, session: &str) {
        let now = self.inner.clock.now();
        let key = head.id.key();
        self.inner.usage.with(|waiting| {
            let counts = waiting.counts.entry((key.clone(), number)).or_default();
            match kind {
                UsageKind::Read => counts.reads += 1,
                UsageKind::Load => counts.loads += 1,
            }
            counts.last_used_at = Some(now);
            if !session.is_empty() && waiting.sessions.len() < MAX_WAITING_SESSIONS {
                waiting
                    .sessions
                    .insert((key, number, Digest::of(session.as_bytes())));
            }
        });
    }

    /// Usage of each version that was used, newest first; counts that were not
    /// written yet included.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn usage(&self, head: &Head) -> Result<Vec<(VersionNumber, VersionUsage)>, Error> {
        let key = head.id.key();
        let mut versions = self
            .inner
            .store
            .get(&USAGE, &key)?
            .map(|s| s.value.versions)
            .unwrap_or_default();
        let (counts, sessions) = self.inner.usage.with(|waiting| {
            let counts: Vec<_> = waiting
                .counts
                .iter()
                .filter(|((skill, _), _)| *skill == key)
                .map(|((_, number), counts)| (*number, counts.clone()))
                .collect();
            let sessions: Vec<_> = waiting
                .sessions
                .iter()
                .filter(|(skill, _, _)| *skill == key)
                .cloned()
                .collect();
            (counts, sessions)
        });
        for (number, counts) in counts {
            versions.entry(number).or_default().add(&counts);
        }
        for session in sessions {
            if self.inner.store.get(&SESSIONS, &session)?.is_none() {
                versions.entry(session.1).or_default().sessions += 1;
            }
        }
        // A read that was under way while its skill was deleted counts for a number
        // that the skill published since does not have.
        versions.retain(|number, _| (head.first_number..=head.last_number).contains(number));
        Ok(versions.into_iter().rev().collect())
    }

    /// Writes the counts that wait. Called every few seconds, and before the
    /// server stops.
    ///
    /// # Errors
    /// The store refuses; the counts wait for the next time.
    pub async fn write_usage(&self) -> Result<(), Error> {
        loop {
            let taken = self.inner.usage.with(|waiting| {
                let skills: HashSet<SkillKey> = waiting
                    .counts
                    .keys()
                    .map(|(skill, _)| skill.clone())
                    .take(SKILLS_A_WRITE)
                    .collect();
                let mut taken = Waiting::default();
                for key in waiting
                    .counts
                    .extract_if(|(skill, _), _| skills.contains(skill))
                {
                    taken.counts.insert(key.0, key.1);
                }
                taken.sessions.extend(
                    waiting
                        .sessions
                        .extract_if(|(skill, _, _)| skills.contains(skill)),
                );
                taken
            });
            if taken.counts.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.write_counts(&taken).await {
                self.put_back(taken);
                return Err(error);
            }
        }
    }

    async fn write_counts(&self, taken: &Waiting) -> Result<(), Error> {
        let store = &self.inner.store;
        let mut batch = Batch::new();
        let mut records: HashMap<&SkillKey, (Option<u64>, Stored)> = HashMap::new();
        for ((key, number), counts) in &taken.counts {
            let (_, record) = match records.entry(key) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    let stored = store.get(&USAGE, key)?;
                    let revision = stored.as_ref().map(|stored| stored.revision);
                    entry.insert((
                        revision,
                        stored.map(|stored| stored.value).unwrap_or_default(),
                    ))
                }
            };
            record.versions.entry(*number).or_default().add(counts);
        }
        for session in &taken.sessions {
            let Some((_, record)) = records.get_mut(&session.0) else {
                continue;
            };
            if store.get(&SESSIONS, session)?.is_none() {
                record.versions.entry(session.1).or_default().sessions += 1;
                batch.put(&SESSIONS, session, &());
            }
        }
        for (key, (revision, record)) in records {
            // A skill that was deleted meanwhile has nothing to count.
            if self.inner.catalog.load().get(key).is_some() {
                batch.expect(&USAGE, key, revision.into());
                batch.put(&USAGE, key, &record);
            }
        }
        store.commit(batch).await?;
        Ok(())
    }

    fn put_back(&self, taken: Waiting) {
        self.inner.usage.with(|waiting| {
            for (key, counts) in taken.counts {
                waiting.counts.entry(key).or_default().add(&counts);
            }
            waiting.sessions.extend(taken.sessions);
        });
    }
}
