//! Completing names.

use super::*;

impl World {
    fn complete(&self, prefix: &str, form: NameForm, limit: usize) -> (Vec<String>, bool) {
        let Completion { names, has_more } = self.lookup.complete(prefix, form, limit);
        (names, has_more)
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        self.complete(prefix, NameForm::Short, 100).0
    }

    fn ids(&self, prefix: &str) -> Vec<String> {
        self.complete(prefix, NameForm::Id, 100).0
    }
}

async fn desks() -> World {
    let mut world = World::new();
    for (id, name) in [
        ("GitHub/Acme/refunds", "refunds"),
        ("github/acme/Returns", "The Refund Desk"),
        ("github/acme-labs/refunds", "refunds"),
        ("github/zeta/gone", "gone"),
        ("github0/acme/x", "a/b/c"),
        ("gitlab/acme/refill", "refill"),
        ("local/project/refunds", "Refunds"),
    ] {
        world = world.with(id, &format!("name: {name}")).await;
    }
    world.without("github/zeta/gone").await
}

#[tokio::test]
async fn short_names_are_completed_without_case_each_once_as_their_winner_writes_them() {
    let world = desks().await;
    assert_eq!(world.names("RE"), ["refill", "refunds", "Returns"]);
    assert_eq!(world.names("the r"), ["The Refund Desk"]);
    assert_eq!(
        world.names(""),
        ["refill", "refunds", "Returns", "The Refund Desk", "x"]
    );
    assert_eq!(world.names("go"), Vec::<String>::new());
    for name in world.names("") {
        world.resolve(&name);
    }
}

#[tokio::test]
async fn ids_are_completed_by_their_next_segment() {
    let world = desks().await;
    assert_eq!(world.ids(""), ["github/", "github0/", "gitlab/", "local/"]);
    assert_eq!(world.ids("GIT"), ["github/", "github0/", "gitlab/"]);
    assert_eq!(world.ids("github"), ["github/", "github0/"]);
    assert_eq!(world.ids("github/a"), ["github/acme-labs/", "GitHub/Acme/"]);
    assert_eq!(
        world.ids("github/acme/re"),
        ["GitHub/Acme/refunds", "github/acme/Returns"]
    );
    assert_eq!(world.ids("github/acme/refunds"), ["GitHub/Acme/refunds"]);
    for none in ["github/z", "github/acme/refunds/", "é", "//", "zzz"] {
        assert_eq!(world.ids(none), Vec::<String>::new(), "{none}");
    }
}

#[tokio::test]
async fn a_completion_that_is_cut_says_that_there_is_more() {
    let world = desks().await;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(
        world.complete("re", NameForm::Short, 2),
        (names(&["refill", "refunds"]), true)
    );
    assert_eq!(
        world.complete("re", NameForm::Short, 3),
        (names(&["refill", "refunds", "Returns"]), false)
    );
    assert_eq!(
        world.complete("git", NameForm::Id, 2),
        (names(&["github/", "github0/"]), true)
    );
    assert_eq!(
        world.complete("git", NameForm::Id, 3),
        (names(&["github/", "github0/", "gitlab/"]), false)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Seeking finds what a look at every id finds.
    #[test]
    fn segments_are_those_of_all_ids(
        ids in proptest::collection::btree_set("[ab][a0.-]?/[ab][b-]?/[a-c]{1,2}", 1..16),
        prefix in "[ab]?[a0.-]?(/[ab]?[b-]?(/[a-c]{0,2})?)?",
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            for id in &ids {
                world = world.with(id, "name: x").await;
            }
            let mut expected = Vec::new();
            for id in &ids {
                let Some(rest) = id.strip_prefix(prefix.as_str()) else { continue };
                let segment = match rest.find('/') {
                    Some(at) => &id[..=prefix.len() + at],
                    None => id,
                };
                if expected.last().is_none_or(|last| last != segment) {
                    expected.push(segment.to_owned());
                }
            }
            assert_eq!(world.ids(&prefix), expected);
        });
    }
}
