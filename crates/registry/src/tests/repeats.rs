//! Writes that are repeated: the same bytes, and the same name.

use super::*;

async fn put(world: &World, body: &str, activate: bool, caller: &Caller) -> Published {
    let text = text("", body);
    let prepared = world.registry.prepare(bundle(ID, &[("SKILL.md", &text)]));
    let prepared = prepared.await.expect("a skill");
    let published = world.registry.publish(prepared, "", activate, caller);
    published.await.expect("published")
}

fn active(world: &World) -> Option<u32> {
    let head = world.registry.head(&skill(ID)).expect("a head");
    head.active.map(VersionNumber::get)
}

#[tokio::test]
async fn known_bytes_become_active_where_that_is_asked_for_and_not_otherwise() {
    let world = World::new();
    let (first, second) = ("one", "two");
    put(&world, first, false, &caller("")).await;
    assert_eq!(active(&world), None);
    put(&world, first, false, &caller("")).await;
    assert_eq!(active(&world), None);
    let known = put(&world, first, true, &caller("")).await;
    assert_eq!(
        (known.outcome, known.version.active, active(&world)),
        (Outcome::Unchanged, true, Some(1))
    );
    put(&world, second, true, &caller("")).await;
    put(&world, first, false, &caller("")).await;
    assert_eq!(active(&world), Some(2));
    put(&world, first, true, &caller("")).await;
    assert_eq!(active(&world), Some(1));
    let summary = world
        .registry
        .head(&skill(ID))
        .expect("a head")
        .summary
        .clone();
    assert_eq!(
        summary.expect("a summary").semantic,
        semver::Version::new(1, 0, 0)
    );
}

#[tokio::test]
async fn known_bytes_that_were_withdrawn_stay_withdrawn() {
    let world = World::new();
    put(&world, "one", true, &caller("")).await;
    put(&world, "two", true, &caller("")).await;
    world.withdraw(1, "leaks").await;
    let again = put(&world, "one", true, &caller("")).await;
    assert_eq!(
        (again.outcome, again.version.active, again.version.withdrawn),
        (Outcome::Unchanged, false, Some("leaks".to_owned()))
    );
    assert_eq!(active(&world), Some(2));
}

#[tokio::test]
async fn a_skill_without_an_active_version_says_why_and_what_to_do() {
    let world = World::new();
    put(&world, "one", false, &caller("")).await;
    put(&world, "two", false, &caller("")).await;
    let refused = || {
        let active = VersionSelector::Active;
        let described = world.registry.describe(&skill(ID), &active).map(|_| ());
        let failure = Failure::from(described.expect_err("none is active"));
        (failure.code, failure.message, failure.suggestions)
    };
    let (code, message, suggestions) = refused();
    assert_eq!(code, Code::SkillNotActive);
    assert_eq!(
        message,
        "No version of 'github/acme/refunds' is active; version 2 can be made so"
    );
    assert_eq!(
        suggestions,
        ["Activate version 2, or ask for a version by its number"]
    );
    for n in [2, 1] {
        world.withdraw(n, "").await;
    }
    let (code, message, _) = refused();
    assert_eq!(code, Code::SkillYanked);
    assert_eq!(
        message,
        "All versions of 'github/acme/refunds' were withdrawn"
    );
}

#[tokio::test]
async fn a_repeated_write_is_answered_as_it_was_then_whatever_happened_since() {
    let world = World::new();
    let published = put(&world, "one", true, &named("p", "publish")).await;
    put(&world, "two", true, &caller("")).await;
    let yank = || {
        let named = named("y", "yank");
        let registry = world.registry.clone();
        async move { registry.yank(&skill(ID), number(2), "leaks", &named).await }
    };
    let withdrawn = yank().await.expect("withdrawn");
    assert_eq!(withdrawn.version.withdrawn.as_deref(), Some("leaks"));
    world.put_back(2).await;
    assert_eq!(yank().await.expect("the answer of then"), withdrawn);
    assert_eq!(
        put(&world, "one", true, &named("p", "publish")).await,
        published
    );
    let deleted = world.registry.delete(&skill(ID), &caller("")).await;
    deleted.expect("deleted");
    assert_eq!(yank().await.expect("the answer of then"), withdrawn);
    assert_eq!(
        put(&world, "one", true, &named("p", "publish")).await,
        published
    );
    assert!(world.registry.catalog().is_empty());
}
