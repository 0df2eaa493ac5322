//! Changes to the chain that only an attacker with access to the files can make, for tests of
//! their detection.

use std::collections::BTreeMap;

use super::chain::{ChainMark, key};
use super::{Batch, Store};

/// A chain that is changed behind its back.
#[derive(Debug)]
pub struct Forgery {
    links: BTreeMap<u64, (ChainMark, Vec<u8>)>,
    batch: Batch,
}

impl Forgery {
    /// Reads the chain as it is.
    ///
    /// # Panics
    /// It cannot be read.
    #[must_use]
    pub fn of(store: &Store) -> Self {
        let links = store.links(0, u64::MAX).map(|link| {
            #[expect(clippy::expect_used, reason = "for tests")]
            let link = link.expect("a record");
            (link.mark.number, (link.mark, link.mark.payload(&link.body)))
        });
        Self {
            links: links.collect(),
            batch: Batch::new(),
        }
    }

    /// Removes a record. Like each of these, it returns whether that changes anything.
    pub fn remove(&mut self, number: u64) -> bool {
        self.batch.write(key(number), None);
        true
    }

    /// Changes the bytes of a record.
    pub fn change(&mut self, number: u64, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let Some((_, old)) = self.links.get(&number) else {
            return false;
        };
        let mut new = old.clone();
        change(&mut new);
        let changes = new != *old;
        self.batch.write(key(number), Some(new));
        changes
    }

    /// Swaps two records.
    pub fn swap(&mut self, a: u64, b: u64) -> bool {
        let (Some((_, old)), Some((_, new))) = (self.links.get(&a), self.links.get(&b)) else {
            return false;
        };
        let (old, new) = (old.clone(), new.clone());
        let changes = old != new;
        self.batch.write(key(a), Some(new));
        self.batch.write(key(b), Some(old));
        changes
    }

    /// Removes a record and all before it, and has the chain start behind it.
    pub fn start_after(&mut self, number: u64) -> bool {
        let Some((mark, _)) = self.links.get(&number) else {
            return false;
        };
        let first = self.links.keys().next().copied().unwrap_or(number);
        self.batch.prune(first, *mark);
        true
    }

    /// Returns the batch that makes the changes.
    #[must_use]
    pub fn batch(self) -> Batch {
        self.batch
    }
}
