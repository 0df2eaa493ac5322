//! A sync that reads what changed leaves what one that reads everything leaves, which is what
//! the place has.

use std::collections::{BTreeMap, BTreeSet};

use model::{Digest, bundle_digest};
use proptest::prelude::*;

use super::place::{Here, skill, source};
use super::{Kind, live};

/// Something that happens at a place.
#[derive(Debug, Clone)]
enum Change {
    /// The skill of this number is at the path of that one, with these words.
    Put(usize, usize, u8),
    /// It has no front matter.
    Break(usize),
    Remove(usize),
    /// Somebody here deletes a skill.
    Delete(usize),
}

const PATHS: [&str; 3] = ["a", "x/b", "x/y/z"];
const NAMES: [&str; 2] = ["one", "two"];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0..PATHS.len(), 0..NAMES.len(), 0..2_u8).prop_map(|(path, name, words)| Change::Put(path, name, words)),
        1 => (0..PATHS.len()).prop_map(Change::Break),
        2 => (0..PATHS.len()).prop_map(Change::Remove),
        1 => (0..NAMES.len()).prop_map(Change::Delete),
    ]
}

async fn apply(here: &Here, change: &Change) {
    let place = here.place("acme");
    match change {
        Change::Put(path, name, words) => {
            place.put(
                PATHS[*path],
                &skill(NAMES[*name], "", &format!("Words {words}.")),
            );
        }
        Change::Break(path) => place.put(PATHS[*path], "nothing"),
        Change::Remove(path) => place.remove(PATHS[*path]),
        Change::Delete(name) => {
            let id = format!("github/acme/{}", NAMES[*name])
                .parse()
                .expect("an id");
            let caller = testing::caller();
            // There may be none.
            let _known = here.registry.delete(&id, &caller).await.is_ok();
        }
    }
}

/// What the place has of each name that one path has. With broken skills nothing is said:
/// what was there of them before keeps its id.
fn expected(place: &BTreeMap<usize, Option<(usize, u8)>>) -> BTreeSet<(String, Digest)> {
    if place.values().any(Option::is_none) {
        return BTreeSet::new();
    }
    let skills: Vec<_> = place.values().flatten().collect();
    let alone = skills.iter().filter(|(name, _)| {
        let same = skills.iter().filter(|(other, _)| other == name);
        same.count() == 1
    });
    let served = alone.map(|(name, words)| {
        let text = skill(NAMES[*name], "", &format!("Words {words}."));
        let file = "SKILL.md".parse().expect("a path");
        let digest = bundle_digest([(&file, Digest::of(text.as_bytes()))]);
        (format!("github/acme/{}", NAMES[*name]), digest)
    });
    served.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happened_a_sync_of_what_changed_equals_a_sync_of_everything(
        rounds in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let (some, all) = (Here::new(&[source("acme")]), Here::new(&[source("acme")]));
            for here in [&some, &all] {
                here.place("acme").clear();
                // Never empty.
                here.place("acme").put("always/there", &skill("always", "", "There."));
            }
            let mut place = BTreeMap::new();
            for changes in &rounds {
                for change in changes {
                    match *change {
                        Change::Put(path, name, words) => {
                            place.insert(path, Some((name, words)));
                        }
                        Change::Break(path) => {
                            place.insert(path, None);
                        }
                        Change::Remove(path) => {
                            place.remove(&path);
                        }
                        Change::Delete(_) => {}
                    }
                    apply(&some, change).await;
                    apply(&all, change).await;
                }
                some.sync().await;
                all.sync_as(Kind::Full).await;
                assert_eq!(live(&some.registry), live(&all.registry), "{changes:?}");
                let live: BTreeSet<_> = live(&some.registry).into_iter().collect();
                let missing: Vec<_> = expected(&place).difference(&live).cloned().collect();
                assert_eq!(missing, vec![], "{changes:?}");
            }
            let again = some.sync_as(Kind::Full).await;
            assert_eq!((again.added, again.updated, again.removed), (0, 0, 0));
        });
    }
}
