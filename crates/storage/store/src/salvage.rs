//! Saves the undamaged records of a damaged directory.
//!
//! sled opens a log as a whole or not at all, and writes to it on the way. So the log is read
//! without it (`engine_log`), and nothing of the directory is changed. Every record has a
//! checksum over its key, so a record that is saved is one that was written: what is wrong is
//! left out. Where a record is found more than once, the one of the latest commit counts.
//!
//! The event log is not saved: it may have holes, and readers rely on it having none. The new
//! directory has a new log, which begins at the last commit that was found.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::path::Path;

use super::claim::{self, Claim};
use super::engine_log::{EnginePage, Leaf, Log};
use super::lock::{self, Lock};
use super::{
    OpenError, Options, Revision, Store, StoreError, TableId, backup, blob, chunks, directory,
    guarded, high_water_mark, log, record,
};
use model::Digest;

/// The result of a salvage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Salvaged {
    /// Records that were saved.
    pub records: u64,
    /// Records that were found, and are damaged.
    pub damaged: u64,
    /// Number of ranges of the files that cannot be read.
    pub gaps: u64,
    /// The last commit that was found.
    pub revision: Revision,
    /// The last acknowledged commit, where the directory has it.
    pub acknowledged: Option<Revision>,
    /// Contents that lack a chunk, and were left out.
    pub contents_lost: u64,
}

/// A new directory with what was saved. It is one that opens only once it is completed;
/// dropped before, it leaves nothing behind.
#[derive(Debug)]
pub struct Saved {
    claim: Claim,
    options: Options,
    salvaged: Salvaged,
}

/// Fills a new data directory with every record of a damaged one that is whole.
///
/// The old directory stays as it is. The records may not fit together: the new one is
/// opened and repaired (`Registry::repair`) before it is completed.
///
/// # Errors
/// The database file cannot be read at all, another process has the old directory open,
/// or the new one is not empty.
pub fn salvage(
    from: &Path,
    to: &Path,
    options: &Options,
    progress: impl FnMut(u64),
) -> Result<Saved, StoreError> {
    // A directory that cannot be written to, such as a read-only mount, has no writer to wait
    // for.
    let _lock = match Lock::take(from, lock::DEFAULT_TIMEOUT) {
        Err(OpenError::Io { .. }) => None,
        lock => Some(lock?),
    };
    let claim = claim::claim(to)?;
    let log = directory::store_path(from);
    let log = Log::read(&log, |_| ()).map_err(StoreError::io(&log.join("db")))?;
    // A data directory of its own, so that the repair can open it.
    let unfinished = claim.store();
    directory::clear(&unfinished).map_err(StoreError::io(&unfinished))?;
    let store = directory::store_path(&unfinished);
    let salvaged = directory::build(&store, options, |tree| fill(&log, tree, from, progress))?;
    directory::finish(&unfinished).map_err(StoreError::io(&unfinished))?;
    Ok(Saved {
        claim,
        options: options.clone(),
        salvaged,
    })
}

impl Saved {
    /// Opens it as it is now, to be repaired.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(&self) -> Result<Store, OpenError> {
        Store::open(&self.claim.store(), &self.options)
    }

    /// Makes it a data directory like any other, once the store that was opened of it is closed.
    /// Returns what was saved, and what was not.
    ///
    /// # Errors
    /// The system refuses.
    pub fn complete(self) -> Result<Salvaged, StoreError> {
        let path = self.claim.store();
        let store = directory::store_path(&path);
        directory::end(&store, &self.options)?;
        let completed = self.claim.complete(&store);
        completed.map_err(StoreError::io(&path))?;
        Ok(self.salvaged)
    }
}

fn fill(
    log: &Log,
    tree: &sled::Tree,
    from: &Path,
    mut progress: impl FnMut(u64),
) -> Result<Salvaged, StoreError> {
    let mut salvaged = Salvaged {
        gaps: log.gaps + log.lost_blobs,
        acknowledged: high_water_mark::read(from).map(|last| last.revision),
        ..Salvaged::default()
    };
    let mut saved: HashMap<Vec<u8>, Revision> = HashMap::new();
    let mut chunked: HashSet<Vec<u8>> = HashSet::new();
    let mut filler = backup::Filler::new(tree);
    let mut covered = Covered::default();
    // From the latest change back, merged with the pages by the time of their last full write.
    let mut by_change: Vec<&EnginePage> = log.pages().collect();
    by_change.sort_by_key(|page| std::cmp::Reverse(page.changed()));
    let mut by_writing = by_change.clone();
    by_writing.sort_by_key(|page| std::cmp::Reverse(page.written()));
    let mut later = by_writing.into_iter().peekable();
    for page in by_change {
        while let Some(page) = later.next_if(|later| later.written() > page.changed()) {
            if let Some(leaf) = log.leaf(page).filter(is_of_records) {
                covered.add(leaf.low, leaf.high);
            }
        }
        let Some(leaf) = log.leaf(page).filter(is_of_records) else {
            continue;
        };
        for (end, value) in &leaf.records {
            let Some((key, revision)) = whole(&leaf, end, value) else {
                salvaged.damaged += 1;
                continue;
            };
            salvaged.revision = salvaged.revision.max(revision);
            // A page that was written as a whole later, and has the key's range, is newer: it
            // has the record as well, or the record was removed.
            let known = saved.get(&key).is_some_and(|known| *known >= revision);
            if known || covered.contains(&key) || is_of_the_log(&key) {
                continue;
            }
            filler.put(&key, value)?;
            if record::is_chunked(value) {
                chunked.insert(key.clone());
            }
            saved.insert(key, revision);
            progress(saved.len() as u64);
        }
    }
    filler.finish()?;
    salvaged.damaged += leave_out_broken_chunked(tree, &saved, &chunked)?;
    salvaged.contents_lost = leave_out_broken_contents(tree, &saved)?;
    log::begin_anew(tree, salvaged.revision)?;
    let mut records = tree.iter().keys();
    while guarded(|| records.next().transpose())?.is_some() {
        salvaged.records += 1;
    }
    Ok(salvaged)
}

/// sled's own tree has one leaf for all keys, and it is always empty: it says nothing of
/// ours.
fn is_of_records(leaf: &Leaf) -> bool {
    !(leaf.records.is_empty() && leaf.low.is_empty() && leaf.high.is_empty())
}

/// The key and the revision of a record that is whole.
///
/// Where a page was lost, later changes are found with an older state of it, whose keys may
/// share more or fewer bytes: the checksum shows which of them is right.
fn whole(leaf: &Leaf, end: &[u8], value: &[u8]) -> Option<(Vec<u8>, Revision)> {
    let lengths = std::iter::once(leaf.prefix).chain((0..=leaf.low.len()).rev());
    for length in lengths {
        let key = [leaf.low.get(..length)?, end].concat();
        if TableId::of(&key).is_none() {
            continue;
        }
        if let Ok((revision, _)) = record::open(&key, value) {
            return Some((key, revision));
        }
    }
    None
}

/// Returns whether a key is of an event, or of the position of the log.
fn is_of_the_log(key: &[u8]) -> bool {
    matches!(TableId::of(key), Some(TableId::Events | TableId::Meta))
}

/// Removes contents that cannot be read whole. Returns their number.
fn leave_out_broken_contents(
    tree: &sled::Tree,
    saved: &HashMap<Vec<u8>, Revision>,
) -> Result<u64, StoreError> {
    let mut pieces: BTreeMap<Digest, Vec<&[u8]>> = BTreeMap::new();
    for key in saved.keys() {
        if let Some((digest, _)) = blob::parse_key(key) {
            pieces.entry(digest).or_default().push(key);
        }
    }
    let mut broken = 0;
    for (digest, keys) in &pieces {
        let content = blob::read_by(|key| guarded(|| tree.get(key)), digest);
        if matches!(content, Ok(Some(_))) {
            continue;
        }
        broken += 1;
        for key in keys {
            guarded(|| tree.remove(key))?;
        }
    }
    Ok(broken)
}

/// Removes records that lack one of their chunks, and chunks that belong to none. Returns the
/// number of records.
fn leave_out_broken_chunked(
    tree: &sled::Tree,
    saved: &HashMap<Vec<u8>, Revision>,
    chunked: &HashSet<Vec<u8>>,
) -> Result<u64, StoreError> {
    let mut broken = 0;
    let mut used: HashSet<Vec<u8>> = HashSet::new();
    for key in chunked {
        let Some(value) = guarded(|| tree.get(key))? else {
            continue;
        };
        // A later write of the record may hold its payload itself.
        let keys = chunks::keys(key, &value);
        let revision = saved.get(key);
        if keys.iter().all(|chunk| saved.get(chunk) == revision) {
            used.extend(keys);
        } else {
            broken += 1;
            guarded(|| tree.remove(key))?;
        }
    }
    for key in saved.keys() {
        if TableId::of(key) == Some(TableId::Chunks) && !used.contains(key) {
            guarded(|| tree.remove(key))?;
        }
    }
    Ok(broken)
}

/// Ranges of keys.
#[derive(Debug, Default)]
struct Covered {
    /// End by beginning; they do not touch. An empty end is that of all keys.
    ranges: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Covered {
    fn contains(&self, key: &[u8]) -> bool {
        let before = self
            .ranges
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
            .next_back();
        before.is_some_and(|(_, end)| end.is_empty() || key < end.as_slice())
    }

    fn add(&mut self, mut low: Vec<u8>, mut high: Vec<u8>) {
        let is_within = |key: &[u8], end: &[u8]| end.is_empty() || key <= end;
        if let Some((start, end)) = self.ranges.range(..=low.clone()).next_back()
            && is_within(&low, end)
        {
            low.clone_from(start);
        }
        loop {
            let next = self.ranges.range(low.clone()..).next();
            let Some((start, end)) = next.filter(|(start, _)| is_within(start, &high)) else {
                break;
            };
            if end.is_empty() || (!high.is_empty() && *end > high) {
                high.clone_from(end);
            }
            let start = start.clone();
            self.ranges.remove(&start);
        }
        self.ranges.insert(low, high);
    }
}

impl Salvaged {
    /// Returns whether all that was acknowledged was found whole.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.damaged == 0
            && self.gaps == 0
            && self.contents_lost == 0
            && self
                .acknowledged
                .is_some_and(|acknowledged| acknowledged <= self.revision)
    }
}
