//! Records of versions, of which only the keys are read: a value may be large, as what a scan
//! found is.

use std::collections::HashMap;

use imbl::OrdSet;
use serde::de::IgnoredAny;

use model::{SkillKey, VersionNumber};
use store::{Batch, Store, StoreError, Table, TableId, prefix};

type Keys = Table<(SkillKey, VersionNumber), IgnoredAny>;

/// The versions themselves.
pub(super) const VERSION_KEYS: Keys = Table::new(TableId::Versions);

/// Returns the versions of which a table has records, by skill.
pub(super) fn all(
    store: &Store,
    table: TableId,
) -> Result<HashMap<SkillKey, OrdSet<VersionNumber>>, StoreError> {
    let mut found: HashMap<_, OrdSet<_>> = HashMap::new();
    for entry in store.scan(&Keys::new(table), b"") {
        let (key, _) = entry?;
        let Some((skill, number)) = key.split_last_chunk::<4>() else {
            continue;
        };
        // The NUL that ends a text in a key.
        let skill = skill.strip_suffix(&[0]).map(std::str::from_utf8);
        if let (Some(Ok(skill)), Some(number)) = (skill, number_of(number)) {
            let numbers = found.entry(SkillKey::from_stored(skill)).or_default();
            numbers.insert(number);
        }
    }
    Ok(found)
}

/// Removes the records that a table has of the versions of a skill.
pub(super) fn forget(
    store: &Store,
    batch: &mut Batch,
    table: TableId,
    key: &SkillKey,
) -> Result<(), StoreError> {
    let keys = Keys::new(table);
    for entry in store.scan(&keys, &prefix(key)) {
        if let Some(number) = number_of(&entry?.0) {
            batch.delete(&keys, &(key.clone(), number));
        }
    }
    Ok(())
}

/// Returns the number at the end of a key, after the skill's part.
pub(super) fn number_of(key: &[u8]) -> Option<VersionNumber> {
    let number = key.last_chunk::<4>()?;
    VersionNumber::new(u32::from_be_bytes(*number))
}
