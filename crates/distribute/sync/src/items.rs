//! The records of what a source has, and of whose each skill is.

use std::collections::HashMap;

use super::engine::Inner;
use super::record::{CLAIMS, Claim, ITEMS, ItemRecord};
use model::SkillKey;
use store::{Batch, Store, StoreError, prefix};

/// What is known of what a source has, by path.
pub(crate) fn of(store: &Store, source: &str) -> Result<HashMap<String, ItemRecord>, StoreError> {
    let records = store.scan(&ITEMS, &prefix(source));
    records
        .map(|entry| {
            let record = entry?.1.value;
            Ok((record.item.path.clone(), record))
        })
        .collect()
}

/// Writes a record.
pub(crate) fn put(batch: &mut Batch, source: &str, record: &ItemRecord) {
    batch.put(
        &ITEMS,
        &(source.to_owned(), record.item.path.clone()),
        record,
    );
}

/// Removes a record.
pub(crate) fn remove(batch: &mut Batch, source: &str, path: &str) {
    batch.delete(&ITEMS, &(source.to_owned(), path.to_owned()));
}

/// Which source a skill comes from; none: no source.
pub(crate) fn claim(store: &Store, skill: &SkillKey) -> Result<Option<Claim>, StoreError> {
    Ok(store.get(&CLAIMS, skill)?.map(|stored| stored.value))
}

/// What a record says is so: the skill is there, and the source's.
pub(crate) fn is_here(inner: &Inner, source: &str, record: &ItemRecord) -> bool {
    let Some(skill) = &record.skill else {
        return false;
    };
    let key = skill.key();
    let owner = claim(&inner.store, &key).ok().flatten();
    owner.is_some_and(|owner| owner.source == source && owner.path == record.item.path)
        && inner.registry.catalog().get(&key).is_some()
}
