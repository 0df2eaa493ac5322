//! How much a namespace holds, and may.

use super::*;

/// Limits that every namespace has, and those that one has instead.
fn limited(all: StorageLimit, some: &[(&str, StorageLimit)]) -> (TempDir, Registry) {
    let directory = TempDir::new().expect("a folder");
    let store = Store::in_memory(&Options {
        reserve_bytes: 0,
        ..Options::default()
    });
    let some = some
        .iter()
        .map(|(name, limit)| ((*name).to_owned(), *limit));
    let policy = Policy {
        storage: StorageLimits {
            all,
            some: some.collect(),
        },
        ..Policy::default()
    };
    let registry = Registry::open_with(
        store,
        Arc::new(Hands::default()),
        Executor::default(),
        policy,
    );
    (directory, registry.expect("a registry"))
}

fn skills(most: u64) -> StorageLimit {
    StorageLimit {
        skills: Some(most),
        bytes: None,
    }
}

/// What a publish came to: the code of its refusal.
async fn outcome(registry: &Registry, id: &str, body: &str) -> Option<Code> {
    let published = publish(registry, id, &[("SKILL.md", &text("", body))], &caller("")).await;
    published.err().map(|error| Failure::from(error).code)
}

#[tokio::test]
async fn a_namespace_takes_as_many_skills_as_it_may_hold_and_versions_of_those() {
    let (_folder, registry) = limited(skills(2), &[("local/large", skills(3))]);
    let mut outcomes = Vec::new();
    for id in [
        "local/x/a",
        "local/X/b",
        "local/x/c",
        "local/large/c",
        "local/y/a",
    ] {
        outcomes.push(outcome(&registry, id, "First.").await);
    }
    outcomes.push(outcome(&registry, "local/x/a", "Second.").await);
    let full = Some(Code::QuotaExceeded);
    assert_eq!(outcomes, [None, None, full, None, None, None]);
    // What is deleted makes room.
    registry
        .delete(&skill("local/x/b"), &caller(""))
        .await
        .expect("deleted");
    assert_eq!(outcome(&registry, "local/x/c", "First.").await, None);
    assert_eq!(registry.catalog().holding("LOCAL/x").skills, 2);
}

#[tokio::test]
async fn bytes_of_all_versions_count_and_a_refusal_says_what_is_full() {
    let first = text("", "First.").len() as u64;
    let limit = StorageLimit {
        skills: None,
        bytes: Some(3 * first),
    };
    let (_folder, registry) = limited(limit, &[]);
    for body in ["First.", "Other.", "Third."] {
        assert_eq!(outcome(&registry, "local/x/a", body).await, None);
    }
    assert_eq!(
        registry.catalog().holding("local/x"),
        Holding {
            skills: 1,
            bytes: 3 * first
        }
    );
    // The same bytes again are no new version.
    assert_eq!(outcome(&registry, "local/x/a", "Other.").await, None);
    let refused = publish(
        &registry,
        "local/x/b",
        &[("SKILL.md", &text("", "More."))],
        &caller(""),
    )
    .await;
    assert_eq!(
        refused.expect_err("full").to_string(),
        format!(
            "local/x may hold {} bytes, and 'local/x/b' does not fit",
            3 * first
        )
    );
}

#[tokio::test]
async fn bytes_that_nobody_counted_are_counted_at_the_next_start() {
    let world = World::new();
    world.published(ID, &text("", "First.")).await;
    world.published(ID, &text("", "Second.")).await;
    let counted = world.registry.catalog().holding(skill(ID).namespace());
    let key = skill(ID).key();
    let stored = world
        .registry
        .store()
        .get(&HEADS, &key)
        .expect("a head")
        .expect("a head");
    let mut head = stored.value;
    head.bytes = None;
    let mut batch = Batch::new();
    batch.put(&HEADS, &key, &head);
    world.registry.store().commit(batch).await.expect("written");
    let world = world.again().await;
    assert_eq!(
        world.registry.catalog().holding(skill(ID).namespace()),
        counted
    );
    assert_eq!(world.registry.keep_facets().await, 1, "and kept");
}

#[tokio::test]
async fn an_audit_of_what_was_stored_finds_nothing_wrong_and_names_what_is_used() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    world
        .published("github/acme/gone", &text("", "three"))
        .await;
    world
        .registry
        .delete(&skill("github/acme/gone"), &caller(""))
        .await
        .expect("deleted");
    let audit = world.registry.audit().expect("an audit");
    assert_eq!(
        (audit.skills, audit.versions, audit.contents.len()),
        (1, 2, 2)
    );
    assert_eq!(audit.damage, Vec::<String>::new());
}
