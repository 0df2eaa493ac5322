//! Typed reads of records: local, synchronous, durable.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::backend::{Order, Records, walk, with_prefix};
use super::{Key, Revision, StoreError, Table, blob, chunks, record};
use model::Digest;

/// A record and the revision that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// Commit that wrote the record; a precondition for the next write.
    pub revision: Revision,
    /// The record.
    pub value: T,
}

/// A record, compared with one that was read before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Newer<T> {
    /// It is gone.
    Gone,
    /// It is the same.
    Same,
    /// It was written since.
    Other(Stored<T>),
}

/// The durable records of a store.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub(super) &'a dyn Records);

impl<'a> Reader<'a> {
    /// Reads the record of a key.
    ///
    /// # Errors
    /// The record is damaged, or the store cannot be read.
    pub fn get<K: Key + ?Sized, V: DeserializeOwned>(
        self,
        table: &Table<K, V>,
        key: &K,
    ) -> Result<Option<Stored<V>>, StoreError> {
        let key = table.key(key);
        match self.0.get(&key)? {
            Some(value) => self.open::<K, V>(&key, value),
            None => Ok(None),
        }
    }

    /// Reads the record of a key, unless the commit `known` wrote it: for caches, since to
    /// decode it again costs more than to compare its revision.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn newer<K: Key + ?Sized, V: DeserializeOwned>(
        self,
        table: &Table<K, V>,
        key: &K,
        known: Option<Revision>,
    ) -> Result<Newer<V>, StoreError> {
        let key = table.key(key);
        let Some(value) = self.0.get(&key)? else {
            return Ok(Newer::Gone);
        };
        // Unchecked: a caller that has the value does not need these bytes to be whole.
        if known.is_some() && known == record::revision(&value) {
            return Ok(Newer::Same);
        }
        let read = self.open::<K, V>(&key, value)?;
        Ok(read.map_or(Newer::Gone, Newer::Other))
    }

    /// Reads the records whose keys start with `prefix`, in the order of their keys.
    ///
    /// The key of each is handed over without the table and the prefix.
    /// Not a snapshot: a record written meanwhile may or may not be seen.
    pub fn scan<K: Key + ?Sized, V: DeserializeOwned>(
        self,
        table: &Table<K, V>,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Stored<V>), StoreError>> + use<'a, K, V> {
        let start = table.raw(prefix);
        let cut = start.len();
        let records = walk(self.0, with_prefix(start), Order::Ascending);
        records.filter_map(move |entry| {
            let read = entry.and_then(|(key, value)| {
                let stored = self.open::<K, V>(&key, value)?;
                Ok(stored.map(|stored| (key.get(cut..).unwrap_or_default().to_vec(), stored)))
            });
            read.transpose()
        })
    }

    /// Reads the records of a table with a prefix below a key, last first. For pages of
    /// versions, newest first.
    ///
    /// # Errors
    /// A record is damaged, or the store cannot be read.
    pub fn before<K: Key + ?Sized, V: DeserializeOwned>(
        self,
        table: &Table<K, V>,
        prefix: &[u8],
        below: Option<&K>,
        limit: usize,
    ) -> Result<Vec<V>, StoreError> {
        let mut range = with_prefix(table.raw(prefix));
        if let Some(key) = below {
            range.end = table.key(key);
        }
        let mut found = Vec::new();
        let mut records = walk(self.0, range, Order::Descending);
        while found.len() < limit {
            let Some((key, value)) = records.next().transpose()? else {
                break;
            };
            found.extend(self.open::<K, V>(&key, value)?.map(|stored| stored.value));
        }
        Ok(found)
    }

    /// Reads the content of a digest, and checks it.
    ///
    /// Reads and unpacks up to 16 MiB: call it where blocking is allowed.
    ///
    /// # Errors
    /// The content is damaged, or the store cannot be read.
    pub fn content(self, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        blob::read(self.0, digest)
    }

    /// Returns whether the content of a digest is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has_content(self, digest: &Digest) -> Result<bool, StoreError> {
        blob::exists(self.0, digest)
    }

    /// Decodes a record. None: it was removed since its value was read.
    pub(super) fn open<K: Key + ?Sized, V: DeserializeOwned>(
        self,
        key: &[u8],
        value: sled::IVec,
    ) -> Result<Option<Stored<V>>, StoreError> {
        let Some((revision, payload)) = chunks::open(self.0, key, value)? else {
            return Ok(None);
        };
        Ok(Some(Stored {
            revision,
            value: Table::<K, V>::decode(key, &payload)?,
        }))
    }
}
