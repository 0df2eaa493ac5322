//! The work of a sync: a listing of the place, compared with the records of the last one.

use std::collections::HashMap;

use super::record::{ItemRecord, Skipped};
use sources::Item;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Items to read, in the order of the listing.
    pub(crate) read: Vec<Item>,
    /// The records of these, by path.
    pub(crate) before: HashMap<String, ItemRecord>,
    /// Items that need no reading: each record with the item as listed.
    pub(crate) unchanged: Vec<(ItemRecord, Item)>,
    /// Records whose items are no longer listed.
    pub(crate) gone: Vec<ItemRecord>,
}

/// Compares a listing with the records. `is_here` checks whether a record still holds.
///
/// With `everything`, all items are read.
pub(crate) fn plan(
    listing: Vec<Item>,
    mut known: HashMap<String, ItemRecord>,
    everything: bool,
    is_here: impl Fn(&ItemRecord) -> bool,
) -> Plan {
    let mut plan = Plan::default();
    for item in listing {
        let is_same = |record: &ItemRecord| {
            let is_same = record.item.fingerprint == item.fingerprint;
            is_same && !everything && is_settled(record, &is_here)
        };
        match known.remove(&item.path) {
            Some(record) if is_same(&record) => plan.unchanged.push((record, item)),
            record => {
                plan.before
                    .extend(record.map(|record| (item.path.clone(), record)));
                plan.read.push(item);
            }
        }
    }
    // A map has no order, and skills should be withdrawn in the same order each time.
    plan.gone = known.into_values().collect();
    plan.gone.sort_by(|a, b| a.item.path.cmp(&b.item.path));
    plan
}

/// Reading it again would have the same result.
fn is_settled(record: &ItemRecord, is_here: impl Fn(&ItemRecord) -> bool) -> bool {
    match &record.skipped {
        // Somebody may have deleted the skill since, or another source claimed it.
        None => is_here(record),
        Some(Skipped::Bytes(_) | Skipped::Review(_)) => true,
        // The id may be free by now.
        Some(Skipped::State(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(path: &str, fingerprint: &str) -> Item {
        Item {
            path: path.to_owned(),
            fingerprint: fingerprint.to_owned(),
            ..Item::default()
        }
    }

    fn record(path: &str, skipped: Option<Skipped>) -> ItemRecord {
        ItemRecord {
            item: item(path, "1"),
            skill: None,
            digest: None,
            version: None,
            skipped,
        }
    }

    #[test]
    fn what_is_read_is_what_may_have_come_to_something_else() {
        let records = [
            record("same", None),
            record("other", None),
            record("not-here", None),
            record("bad", Some(Skipped::Bytes("no front matter".to_owned()))),
            record(
                "taken",
                Some(Skipped::State("another has the id".to_owned())),
            ),
            record("gone", None),
        ];
        let known = || {
            let named = records
                .iter()
                .map(|record| (record.item.path.clone(), record.clone()));
            named.collect::<HashMap<_, _>>()
        };
        let listing = || {
            vec![
                item("same", "1"),
                item("other", "2"),
                item("not-here", "1"),
                item("bad", "1"),
                item("taken", "1"),
                item("new", "1"),
            ]
        };
        let is_here = |record: &ItemRecord| record.item.path != "not-here";
        let made = plan(listing(), known(), false, is_here);
        let read: Vec<_> = made.read.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(read, ["other", "not-here", "taken", "new"]);
        let unchanged =
            [&records[0], &records[3]].map(|record| (record.clone(), record.item.clone()));
        assert_eq!(made.unchanged, unchanged);
        let mut before: Vec<_> = made.before.into_values().collect();
        before.sort_by(|a, b| a.item.path.cmp(&b.item.path));
        assert_eq!(
            before,
            [records[2].clone(), records[1].clone(), records[4].clone()]
        );
        assert_eq!(made.gone, [records[5].clone()]);
        let everything = plan(listing(), known(), true, is_here);
        assert_eq!(everything.read, listing());
        assert_eq!(everything.gone, [records[5].clone()]);
    }
}
