//! The facts that a compaction needs about concurrent writes: the keys that they changed, and
//! the contents that they assume to be stored.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use super::locked;
use model::Digest;

/// The memory of a key in addition to its bytes.
const KEY_OVERHEAD_BYTES: usize = 64;

/// Keys that were written.
#[derive(Debug)]
pub(super) struct ChangedKeys {
    keys: BTreeSet<Vec<u8>>,
    bytes: usize,
    /// The maximum bytes.
    max: usize,
    full: bool,
}

impl ChangedKeys {
    pub(super) fn new(max: usize) -> Self {
        Self {
            keys: BTreeSet::new(),
            bytes: 0,
            max,
            full: false,
        }
    }

    pub(super) fn add<'a>(&mut self, keys: impl Iterator<Item = &'a Vec<u8>>) {
        if self.full {
            return;
        }
        for key in keys {
            if !self.keys.contains(key) {
                self.bytes += key.len() + KEY_OVERHEAD_BYTES;
                self.keys.insert(key.clone());
            }
        }
        if self.bytes > self.max {
            // The compaction fails when it asks for them; until then they need not take memory.
            self.full = true;
            self.keys.clear();
        }
    }

    /// Returns whether all are known, and at most `max`.
    pub(super) fn fit(&self, max: usize) -> bool {
        !self.full && self.keys.len() <= max
    }

    /// The keys, in order. None: there were too many.
    pub(super) fn keys(self) -> Option<BTreeSet<Vec<u8>>> {
        (!self.full).then_some(self.keys)
    }
}

/// Contents that writes in progress assume to be stored.
///
/// A publish packs only contents that the store lacks. Between its check and its write a
/// compaction could drop a content that nothing used until then: so it announces first what it
/// is about to use.
#[derive(Debug, Default)]
pub(super) struct Pins {
    /// Held while the stores are exchanged. Unpinning does not wait for it, since that happens
    /// on threads that must not block.
    gate: Mutex<()>,
    known: Mutex<PinnedDigests>,
}

#[derive(Debug, Default)]
struct PinnedDigests {
    /// The number of writes that pin each.
    held: HashMap<Digest, usize>,
    /// All that were pinned since a compaction began, and that it has not fetched yet.
    seen: Option<HashSet<Digest>>,
}

impl Pins {
    fn known(&self) -> MutexGuard<'_, PinnedDigests> {
        locked(&self.known)
    }

    /// Blocks pinning until the answer is dropped.
    pub(super) fn close(&self) -> MutexGuard<'_, ()> {
        locked(&self.gate)
    }

    /// Returns what was pinned since the last call.
    pub(super) fn seen(&self) -> HashSet<Digest> {
        let mut known = self.known();
        known.seen.replace(HashSet::new()).unwrap_or_default()
    }

    pub(super) fn follow(&self) {
        let mut known = self.known();
        known.seen = Some(known.held.keys().copied().collect());
    }

    pub(super) fn unfollow(&self) {
        self.known().seen = None;
    }

    pub(super) fn pin(self: &Arc<Self>, digests: Vec<Digest>) -> Pinned {
        let _open = self.close();
        let mut known = self.known();
        for digest in &digests {
            *known.held.entry(*digest).or_default() += 1;
        }
        if let Some(seen) = &mut known.seen {
            seen.extend(&digests);
        }
        drop(known);
        Pinned {
            pins: Arc::clone(self),
            digests,
        }
    }
}

/// Contents that a compaction must copy while this exists.
#[derive(Debug)]
pub struct Pinned {
    pins: Arc<Pins>,
    digests: Vec<Digest>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut known = self.pins.known();
        for digest in &self.digests {
            if let Some(count) = known.held.get_mut(digest) {
                *count -= 1;
                if *count == 0 {
                    known.held.remove(digest);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_no_longer_known_never_fit() {
        let mut changes = ChangedKeys::new(10 * (4 + KEY_OVERHEAD_BYTES));
        let keys: Vec<_> = (0..11_u32).map(|n| n.to_be_bytes().to_vec()).collect();
        changes.add(keys.iter().take(10));
        changes.add(keys.iter().take(10));
        assert!(changes.fit(10) && !changes.fit(9));
        changes.add(keys.iter());
        assert!(!changes.fit(usize::MAX), "writes would wait for nothing");
        assert_eq!(changes.keys(), None);
    }
}
