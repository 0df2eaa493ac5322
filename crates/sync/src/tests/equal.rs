//! A sync that reads what changed leaves what one that reads everything leaves.

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

const PATHS: [&str; 5] = ["a", "b", "x/a", "x/b", "x/y/z"];
const NAMES: [&str; 3] = ["one", "two", "three"];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0..PATHS.len(), 0..NAMES.len(), 0..4_u8).prop_map(|(path, name, words)| Change::Put(path, name, words)),
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happened_a_sync_of_what_changed_equals_a_sync_of_everything(
        rounds in prop::collection::vec(prop::collection::vec(change(), 1..5), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let (some, all) = (Here::new(&[source("acme")]), Here::new(&[source("acme")]));
            for here in [&some, &all] {
                here.place("acme").clear();
                // Never empty.
                here.place("acme").put("always/there", &skill("always", "", "There."));
            }
            for changes in &rounds {
                for change in changes {
                    apply(&some, change).await;
                    apply(&all, change).await;
                }
                some.sync().await;
                all.sync_as(Kind::Full).await;
                assert_eq!(live(&some.registry), live(&all.registry), "{changes:?}");
            }
            let again = some.sync_as(Kind::Full).await;
            assert_eq!((again.added, again.updated, again.removed), (0, 0, 0));
        });
    }
}
