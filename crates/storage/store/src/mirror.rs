//! Values in memory that follow a table.
//!
//! A service that has something of a table in memory has it in a [`Mirror`]. A write of the table
//! changes it, whichever writer that is from, and nothing else does: two services on one store
//! have the same in memory once a write is acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak};

use arc_swap::{ArcSwap, Guard};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::backend::{Records, Writes, with_prefix};
use super::{Reader, Revision, Store, StoreError, Stored, Table, TableId, locked};

/// A change of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<V> {
    /// The key of the record.
    pub key: String,
    /// The record; none: it was removed.
    pub stored: Option<Stored<V>>,
}

/// A value that is made of the records of a table.
pub trait Fold: Send + Sync + 'static {
    /// The records.
    type Record: DeserializeOwned;

    /// Returns the value after some changes. A change may come a second time.
    #[must_use]
    fn fold(&self, changes: Vec<Change<Self::Record>>) -> Self;

    /// Does what has to come after readers see the value, and before its writer is answered.
    fn shown(&self) {}
}

/// A value that follows a table.
pub struct Mirror<F>(Arc<Followed<F>>);

struct Followed<F> {
    table: TableId,
    value: ArcSwap<F>,
    /// Held while the value is replaced, so that no change is lost.
    turn: Mutex<()>,
}

impl<F> std::fmt::Debug for Mirror<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirror").finish_non_exhaustive()
    }
}

impl<F: Fold> Mirror<F> {
    /// Returns the value of now, for as long as one call.
    #[must_use]
    pub fn load(&self) -> Guard<Arc<F>> {
        self.0.value.load()
    }

    /// Returns the value of now, to keep.
    #[must_use]
    pub fn load_full(&self) -> Arc<F> {
        self.0.value.load_full()
    }

    /// Folds again without a change, where something else changed that the fold reads.
    pub fn refold(&self) {
        self.0.replace(Vec::new());
    }
}

impl<F: Fold> Followed<F> {
    fn replace(&self, changes: Vec<Change<F::Record>>) {
        let _turn = locked(&self.turn);
        let value = Arc::new(self.value.load().fold(changes));
        self.value.store(Arc::clone(&value));
        value.shown();
    }

    fn change(
        reader: Reader<'_>,
        key: &[u8],
        value: Option<sled::IVec>,
    ) -> Result<Change<F::Record>, StoreError> {
        let name = text(key.get(1..).unwrap_or_default())?;
        let stored = match value {
            Some(value) => reader.open::<str, F::Record>(key, value)?,
            None => None,
        };
        Ok(Change { key: name, stored })
    }
}

/// Reads the key of a record, without its table.
fn text(key: &[u8]) -> Result<String, StoreError> {
    let text = key.strip_suffix(&[0]).map(<[u8]>::to_vec);
    let text = text.and_then(|text| String::from_utf8(text).ok());
    text.ok_or_else(|| StoreError::damaged(key, "its key is no text"))
}

/// Who follows a table, whatever it makes of it.
trait Follows: Send + Sync {
    fn follow(&self, records: &dyn Records, writes: &Writes) -> Result<(), StoreError>;
}

impl<F: Fold> Follows for Followed<F> {
    fn follow(&self, records: &dyn Records, writes: &Writes) -> Result<(), StoreError> {
        let (mut changes, mut outcome) = (Vec::new(), Ok(()));
        for (key, value) in written(writes, self.table) {
            match Self::change(Reader(records), key, value.clone()) {
                Ok(change) => changes.push(change),
                // The others as well: memory is to have all that can be read.
                Err(error) => outcome = Err(error),
            }
        }
        if !changes.is_empty() {
            self.replace(changes);
        }
        outcome
    }
}

/// The writes to a table.
fn written(
    writes: &Writes,
    table: TableId,
) -> impl Iterator<Item = (&Vec<u8>, &Option<sled::IVec>)> {
    writes.range(with_prefix(vec![table.byte()]))
}

/// The followers of tables.
#[derive(Default)]
pub(super) struct TableFollowers {
    mirrors: Vec<(TableId, Weak<dyn Follows>)>,
    /// The last commit that wrote to each table that somebody watches.
    watches: BTreeMap<TableId, watch::Sender<Revision>>,
}

impl TableFollowers {
    /// The first bytes of the keys that have a mirror.
    pub(super) fn mirrored(&self) -> BTreeSet<u8> {
        self.mirrors.iter().map(|(table, _)| table.byte()).collect()
    }

    /// Hands over the writes of a group. An error: a follower failed.
    pub(super) fn notify(
        &self,
        records: &dyn Records,
        writes: &Writes,
        revision: Revision,
    ) -> Result<(), String> {
        let mut outcome = Ok(());
        for (table, mirror) in &self.mirrors {
            let Some(mirror) = mirror.upgrade() else {
                continue;
            };
            if written(writes, *table).next().is_none() {
                continue;
            }
            let followed = catch_unwind(AssertUnwindSafe(|| mirror.follow(records, writes)));
            let reason = match followed {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(panicked) => model::panic_words(&*panicked),
            };
            tracing::error!(reason, table = table.name(), "a follower of a table failed");
            outcome = Err(reason);
        }
        // After the mirrors: whoever this wakes finds them with these writes.
        for (table, watch) in &self.watches {
            if written(writes, *table).next().is_some() {
                watch.send_replace(revision);
            }
        }
        outcome
    }
}

impl Store {
    /// Makes a value of the records of a table, which follows each later write: it has the write
    /// before its writer is answered, as has whoever calls [`Store::watch_table`].
    ///
    /// The value is folded while nothing else is written: that must be quick.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn follow_table<F: Fold>(
        &self,
        table: &Table<str, F::Record>,
        empty: &F,
    ) -> Result<Mirror<F>, StoreError> {
        // Held while the table is read: a group that is written meanwhile is handed over after.
        let mut followers = locked(&self.backend.status().followers.tables);
        let mut changes = Vec::new();
        for entry in self.scan(table, b"") {
            let (key, stored) = entry?;
            changes.push(Change {
                key: text(&key)?,
                stored: Some(stored),
            });
        }
        let followed = Arc::new(Followed {
            table: table.id(),
            value: ArcSwap::from_pointee(empty.fold(changes)),
            turn: Mutex::default(),
        });
        followers
            .mirrors
            .retain(|(_, mirror)| mirror.strong_count() > 0);
        let weak: Weak<dyn Follows> = Arc::downgrade(&(Arc::clone(&followed) as Arc<dyn Follows>));
        followers.mirrors.push((table.id(), weak));
        Ok(Mirror(followed))
    }

    /// Returns the last commit that wrote to a table, 0 before the first; changes with each.
    #[must_use]
    pub fn watch_table(&self, table: TableId) -> watch::Receiver<Revision> {
        let mut followers = locked(&self.backend.status().followers.tables);
        let watch = followers.watches.entry(table);
        watch.or_insert_with(|| watch::Sender::new(0)).subscribe()
    }
}
