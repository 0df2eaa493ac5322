//! The catalog follows the log.
//!
//! It applies the events of the log, not the writes of this process: so the writes of a second
//! writer are seen too. An event says which skill changed and how; the head is read from the
//! store, where it may be newer than the event. That does no harm: the later event comes as
//! well, and the catalog is published once a whole group was applied.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::blocklist::BLOCKS;
use super::renew::{renew, renew_from};
use super::short_names::{all_claims, claims_of};
use super::{Catalog, HEADS, Head, Policy, VERSIONS, numbers};
use model::{EventKind, SkillKey};
use store::{Store, StoreError, TableId};

/// The catalog as it is, now and from now on; and the skills whose facets were inferred anew,
/// which are not written yet.
///
/// # Errors
/// A head is damaged, or the store cannot be read.
pub(super) fn catalog(
    store: &Store,
    policy: &Policy,
) -> Result<(Arc<ArcSwap<Catalog>>, Vec<SkillKey>), StoreError> {
    let current = Arc::new(ArcSwap::from_pointee(Catalog::default()));
    // Events that are written while the heads are read wait for this lock, and are applied after
    // them.
    let turn = Arc::new(Mutex::new(()));
    let reading = turn.lock().unwrap_or_else(PoisonError::into_inner);
    store.follow({
        let (current, turn) = (Arc::downgrade(&current), Arc::clone(&turn));
        move |reader, events| {
            // A registry that was closed follows no more.
            let Some(current) = current.upgrade() else {
                return Ok(());
            };
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mut catalog = Catalog::clone(&current.load());
            let mut outcome = Ok(());
            for (_, event) in events {
                if matches!(event.kind, EventKind::Blocked | EventKind::Unblocked) {
                    let key = event.skill_id.key();
                    match reader.get(&BLOCKS, &key) {
                        Ok(block) => catalog.set_block(&key, block.map(|stored| stored.value)),
                        Err(error) => outcome = Err(error),
                    }
                }
                // After an error as well: the catalog is to have all that can be read of the
                // group.
                match reader.get(&HEADS, &event.skill_id.key()) {
                    Ok(head) => {
                        let mut head = head.map(|stored| stored.value);
                        if let Some(head) = &mut head {
                            let before = catalog.any(&head.id.key());
                            head.claims = claims_of(reader, head, before.map(|head| &**head));
                            renew(head, |key| Some(reader.get(&VERSIONS, key).ok()??.value));
                        }
                        catalog.apply(event, head);
                    }
                    Err(error) => outcome = Err(error),
                }
            }
            current.store(Arc::new(catalog));
            outcome
        }
    });
    let mut withdrawn = numbers::all(store, TableId::Yanks)?;
    let mut holds = numbers::all(store, TableId::Holds)?;
    let mut claims = all_claims(store)?;
    let mut renewed = Vec::new();
    let blocks = store.scan(&BLOCKS, b"").map(|entry| {
        let block = entry?.1.value;
        Ok::<_, StoreError>((block.skill.key(), Arc::new(block)))
    });
    let blocks = blocks.collect::<Result<_, _>>()?;
    let heads = store.scan(&HEADS, b"").map(|entry| {
        let mut head: Head = entry?.1.value;
        if renew_from(store, &mut head) {
            renewed.push(head.id.key());
        }
        head.withdrawn = withdrawn.remove(&head.id.key()).unwrap_or_default();
        head.withdrawn.extend(head.inline.keys().copied());
        head.held = holds.remove(&head.id.key()).unwrap_or_default();
        head.claims = claims.remove(&head.id.key()).unwrap_or_default();
        Ok::<_, StoreError>(head)
    });
    current.store(Arc::new(Catalog::build(heads, blocks, policy)?));
    drop(reading);
    Ok((current, renewed))
}
