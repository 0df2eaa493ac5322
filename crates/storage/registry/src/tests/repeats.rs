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

#[tokio::test]
async fn a_named_write_is_done_once_and_its_name_serves_one_request() {
    let world = World::new();
    let named = caller("deploy-1");
    let first = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "one"))],
        &named,
    )
    .await
    .expect("published");
    world.published(ID, &text("", "two")).await;
    let world = world.again().await;
    let again = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "one"))],
        &named,
    )
    .await
    .expect("published");
    assert_eq!(again, first);
    assert_eq!(world.versions(ID).len(), 2);
    let other = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "three"))],
        &self::named("deploy-1", "another request"),
    )
    .await;
    assert_eq!(
        code(other.expect_err("a refusal")),
        Code::IdempotencyKeyReused
    );

    let delete = caller("delete-1");
    let first = world
        .registry
        .delete(&skill(ID), &delete)
        .await
        .expect("deleted");
    assert_eq!(
        world
            .registry
            .delete(&skill(ID), &delete)
            .await
            .expect("deleted"),
        first
    );
}

#[tokio::test]
async fn a_named_write_that_was_done_while_it_was_planned_again_gives_its_answer() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let named = caller("delete-1");
    let registry = world.registry.clone();
    let repeated: Result<Deleted, Error> = world
        .registry
        .write(&named, || {
            // The first call, whose caller went away, is done just now.
            let (registry, named) = (registry.clone(), named.clone());
            let first = std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(registry.delete(&skill(ID), &named))
            });
            first.join().expect("a thread").expect("deleted");
            let reference = ID.to_owned();
            let near = Vec::new();
            Err(Error::SkillNotFound {
                reference,
                near,
                refused: None,
            })
        })
        .await;
    let deleted = Deleted {
        id: skill(ID),
        versions: 1,
        dependents: Vec::new(),
    };
    assert_eq!(repeated.expect("its answer"), deleted);
}

#[tokio::test]
async fn the_name_of_a_write_is_forgotten_after_a_day() {
    let world = World::new();
    let named = |n: u32| named(&format!("key-{n}"), &n.to_string());
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "one"))],
        &named(1),
    )
    .await
    .expect("published");
    world.clock.0.store(25 * 3600, Ordering::Relaxed);
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "two"))],
        &named(2),
    )
    .await
    .expect("published");
    let reused = publish(
        &world.registry,
        ID,
        &[("SKILL.md", &text("", "three"))],
        &named(1),
    )
    .await;
    assert_eq!(reused.expect("a new write").version.number, number(3));
}
