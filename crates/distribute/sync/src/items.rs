//! The records of the items of a source, and of which source owns a skill.

use std::collections::HashMap;

use super::engine::Inner;
use super::record::{CLAIMS, Claim, ITEMS, ItemRecord};
use model::SkillKey;
use store::{Batch, Store, StoreError, Stored, prefix};

/// The stored items of a source, by path.
pub(crate) fn of(store: &Store, source: &str) -> Result<HashMap<String, ItemRecord>, StoreError> {
    let records = store.scan(&ITEMS, &prefix(source));
    records
        .map(|entry| {
            let record = entry?.1.value;
            Ok((record.item.path.clone(), record))
        })
        .collect()
}

/// Adds the write of a record to a batch.
pub(crate) fn put(batch: &mut Batch, source: &str, record: &ItemRecord) {
    batch.put(
        &ITEMS,
        &(source.to_owned(), record.item.path.clone()),
        record,
    );
}

/// Adds the removal of a record to a batch.
pub(crate) fn remove(batch: &mut Batch, source: &str, path: &str) {
    batch.delete(&ITEMS, &(source.to_owned(), path.to_owned()));
}

/// The source that a skill comes from; none: no source.
pub(crate) fn claim(store: &Store, skill: &SkillKey) -> Result<Option<Stored<Claim>>, StoreError> {
    store.get(&CLAIMS, skill)
}

/// The record still holds: the skill exists, and this item of this source owns it.
pub(crate) fn is_here(inner: &Inner, source: &str, record: &ItemRecord) -> bool {
    let Some(skill) = &record.skill else {
        return false;
    };
    let key = skill.key();
    // A claim that cannot be read counts as none: the item is read again, and the error comes
    // back when it is published.
    let owner = claim(&inner.store, &key).ok().flatten();
    owner.is_some_and(|owner| owner.value.source == source && owner.value.path == record.item.path)
        && inner.registry.catalog().get(&key).is_some()
}
