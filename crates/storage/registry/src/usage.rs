//! Counts of reads and loads of skills.
//!
//! Counting must not slow a read, so counts gather in memory and are written
//! every few seconds: a server that is killed loses those seconds, and nothing
//! else depends on them.
//!
//! A session counts once for a version as long as it is remembered: the last
//! [`USE_CACHE_CAPACITY`] uses are, until the server stops. So the memory is bounded, nothing
//! is kept for every session that ever was, and one that comes back late counts again.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Error, Head, Registry};
use model::{SkillKey, Version, VersionNumber};
use store::{Batch, CommitError, Table, TableId};

// No events: counts are of this server alone, and one for each read would drown the log.
pub(super) const USAGE: Table<SkillKey, Stored> = Table::new(TableId::Usage);

/// Number of uses of a version by a session that are remembered.
const USE_CACHE_CAPACITY: usize = 100_000;
/// Skills in one write.
const SKILLS_PER_WRITE: usize = 500;
/// Maximum number of batches of one write that may conflict with the deletion of a skill.
const MAX_CONFLICTS: usize = 16;

/// The kind of use of a version.
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
    /// The number of loads.
    pub loads: u64,
    /// The number of reads of its files.
    pub reads: u64,
    /// The number of sessions that did either.
    pub sessions: u64,
    /// The time of the last use.
    pub last_used_at: Option<Timestamp>,
}

/// Usage of a skill, in all and by version.
#[derive(Debug, Clone)]
pub struct SkillUsage {
    /// The skill.
    pub head: Arc<Head>,
    /// The number of loads.
    pub loads: u64,
    /// The number of reads of its files.
    pub reads: u64,
    /// Versions that were used, newest first.
    pub versions: Vec<(Arc<Version>, VersionUsage)>,
}

impl VersionUsage {
    fn add(&mut self, other: &Self) {
        self.loads += other.loads;
        self.reads += other.reads;
        self.sessions += other.sessions;
        self.last_used_at = self.last_used_at.max(other.last_used_at);
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Stored {
    versions: BTreeMap<VersionNumber, VersionUsage>,
}

impl Stored {
    fn add(&mut self, other: &Self) {
        for (number, counts) in &other.versions {
            self.versions.entry(*number).or_default().add(counts);
        }
    }
}

/// Counts that are being written.
#[derive(Debug)]
struct Writing {
    counts: Stored,
    /// Revision of the record that they are added to. Once the record has another, they are in
    /// it.
    onto: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    counts: HashMap<SkillKey, Stored>,
    writing: HashMap<SkillKey, Writing>,
    /// The number of times that written counts were settled.
    settled: u64,
    /// Uses of a version by a session, as hashes.
    remembered: quick_cache::unsync::Cache<u64, ()>,
}

impl Waiting {
    /// Remembers a use of a version by a session; returns whether it is new.
    fn is_new(&mut self, used: u64) -> bool {
        let is_new = self.remembered.get(&used).is_none();
        if is_new {
            self.remembered.insert(used, ());
        }
        is_new
    }
}

/// The counts that were not written yet.
#[derive(Debug)]
pub(super) struct Usage {
    waiting: Mutex<Waiting>,
    writer: tokio::sync::Mutex<()>,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                counts: HashMap::new(),
                writing: HashMap::new(),
                settled: 0,
                remembered: quick_cache::unsync::Cache::new(USE_CACHE_CAPACITY),
            }),
            writer: tokio::sync::Mutex::new(()),
        }
    }
}

impl Usage {
    /// Locks the counts. Not for work that reads the store: every reader of a skill counts, and
    /// would wait.
    fn with<T>(&self, work: impl FnOnce(&mut Waiting) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn forget(&self, key: &SkillKey) {
        self.with(|waiting| {
            waiting.counts.remove(key);
            waiting.writing.remove(key);
        });
    }
}

impl Registry {
    /// Counts a use of a version, unless it is in a folder. Does not wait and does not fail.
    pub fn count(&self, head: &Head, number: VersionNumber, kind: UsageKind, session: &str) {
        if head.is_local() {
            return;
        }
        let now = self.inner.clock.now();
        let key = head.id.key();
        let used =
            (!session.is_empty()).then(|| self.inner.hasher.hash_one((&key, number, session)));
        self.inner.usage.with(|waiting| {
            let is_new = used.is_some_and(|used| waiting.is_new(used));
            let versions = &mut waiting.counts.entry(key).or_default().versions;
            let counts = versions.entry(number).or_default();
            match kind {
                UsageKind::Read => counts.reads += 1,
                UsageKind::Load => counts.loads += 1,
            }
            counts.last_used_at = Some(now);
            counts.sessions += u64::from(is_new);
        });
    }

    /// Returns the usage of each version that was used, newest first, with the counts that were
    /// not written yet.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn usage(&self, head: &Head) -> Result<Vec<(VersionNumber, VersionUsage)>, Error> {
        if head.is_local() {
            return Ok(Vec::new());
        }
        let key = head.id.key();
        let usage = loop {
            let settled = self.inner.usage.with(|waiting| waiting.settled);
            let stored = self.inner.store.get(&USAGE, &key)?;
            let revision = stored.as_ref().map(|stored| stored.revision);
            let mut usage = stored.map(|stored| stored.value).unwrap_or_default();
            let whole = self.inner.usage.with(|waiting| {
                if let Some(writing) = waiting.writing.get(&key)
                    && writing.onto == revision
                {
                    usage.add(&writing.counts);
                }
                if let Some(counts) = waiting.counts.get(&key) {
                    usage.add(counts);
                }
                // Otherwise the counts that were being written may be in a later record than
                // this one.
                waiting.settled == settled
            });
            if whole {
                break usage;
            }
        };
        // A read that was under way while its skill was deleted counts for a number
        // that the skill published since does not have.
        let mut versions = usage.versions;
        versions.retain(|number, _| (head.first_number..=head.last_number).contains(number));
        Ok(versions.into_iter().rev().collect())
    }

    /// The same with sums, and with the versions.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn skill_usage(&self, head: Arc<Head>) -> Result<SkillUsage, Error> {
        let usage = self.usage(&head)?;
        let (loads, reads) = usage.iter().fold((0, 0), |(loads, reads), (_, counts)| {
            (loads + counts.loads, reads + counts.reads)
        });
        let versions = usage
            .into_iter()
            .map(|(number, counts)| Ok((self.version(&head, &number.into())?, counts)))
            .collect::<Result<_, Error>>()?;
        Ok(SkillUsage {
            head,
            loads,
            reads,
            versions,
        })
    }

    /// Writes the counts that wait. Called every few seconds, and before the
    /// server stops.
    ///
    /// # Errors
    /// The store refuses; the counts wait for the next time.
    pub async fn write_usage(&self) -> Result<(), Error> {
        // One writer at a time: `writing` has the counts of one batch only.
        let _alone = self.inner.usage.writer.lock().await;
        let mut conflicts = 0;
        loop {
            // First the counts of an earlier write that failed, or whose future was dropped.
            self.settle_counts()?;
            let Some(batch) = self.counts_batch()? else {
                return Ok(());
            };
            match self.inner.store.commit(batch).await {
                // A skill was deleted meanwhile. The other counts go with the next batch.
                Err(CommitError::Conflict { .. }) if conflicts < MAX_CONFLICTS => conflicts += 1,
                result => drop(result?),
            }
        }
    }

    /// Settles the counts that were being written: they are in the store now, or wait again.
    fn settle_counts(&self) -> Result<(), Error> {
        let keys = |waiting: &mut Waiting| waiting.writing.keys().cloned().collect::<Vec<_>>();
        let mut found = Vec::new();
        for key in self.inner.usage.with(keys) {
            let stored = self.inner.store.get(&USAGE, &key)?;
            found.push((key, stored.map(|stored| stored.revision)));
        }
        self.inner.usage.with(|waiting| {
            waiting.settled += 1;
            for (key, revision) in found {
                if let Some(writing) = waiting.writing.remove(&key)
                    && writing.onto == revision
                {
                    let counts = waiting.counts.entry(key).or_default();
                    counts.add(&writing.counts);
                }
            }
        });
        Ok(())
    }

    /// Returns the next counts to be written. They stay readable all the while.
    fn counts_batch(&self) -> Result<Option<Batch>, Error> {
        let keys = self.inner.usage.with(|waiting| {
            let catalog = self.inner.catalog.load();
            // A skill that was deleted meanwhile has nothing to count.
            waiting.counts.retain(|key, _| catalog.get(key).is_some());
            let keys = waiting.counts.keys().take(SKILLS_PER_WRITE);
            keys.cloned().collect::<Vec<_>>()
        });
        let mut found = Vec::new();
        for key in keys {
            let stored = self.inner.store.get(&USAGE, &key)?;
            found.push((key, stored));
        }
        let mut batch = Batch::new();
        let mut taken = Vec::new();
        self.inner.usage.with(|waiting| {
            for (key, stored) in found {
                let Some(counts) = waiting.counts.remove(&key) else {
                    continue;
                };
                let onto = stored.as_ref().map(|stored| stored.revision);
                let record = stored.map(|stored| stored.value).unwrap_or_default();
                taken.push((key.clone(), onto, record, counts.clone()));
                // Still readable while they are being written, so that a reader finds each use
                // once: here or in the record.
                waiting.writing.insert(key, Writing { counts, onto });
            }
        });
        for (key, onto, record, counts) in &mut taken {
            record.add(counts);
            batch.expect(&USAGE, key, (*onto).into());
            batch.put(&USAGE, key, record);
        }
        Ok((!taken.is_empty()).then_some(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_remembered_and_no_more_than_so_many_are() {
        let usage = Usage::default();
        usage.with(|waiting| {
            assert!(waiting.is_new(1));
            assert!(!waiting.is_new(1), "it was just now");
            let new = (2..300_000).filter(|used| waiting.is_new(*used)).count();
            assert_eq!(new, 299_998);
            assert!(waiting.remembered.len() <= USE_CACHE_CAPACITY);
        });
    }
}
