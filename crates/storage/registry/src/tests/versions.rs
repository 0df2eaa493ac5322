//! Semantic versions: stated ones within limits, derived ones above all others.

use super::*;

#[tokio::test]
async fn a_version_whose_numbers_are_too_large_is_refused_by_file_line_and_rule() {
    let world = World::new();
    for stated in [
        "1.0.9007199254740992",
        "1.0.18446744073709551615",
        "99999999999999999999999",
        "9007199254740992.0.0-rc.1",
        &format!("1.0.0-{}", "a".repeat(256)),
    ] {
        let error = world.publish(ID, &text(stated, "one")).await;
        let failure = Failure::from(error.expect_err("too large"));
        let problem = &failure.problems[0];
        assert_eq!(
            (failure.code, &*problem.rule, &*problem.file, problem.line),
            (Code::SkillInvalid, "version-too-large", "SKILL.md", 4),
            "{stated}"
        );
    }
    assert!(world.registry.catalog().is_empty());
}

#[tokio::test]
async fn the_version_after_the_highest_is_given_without_looking_for_it() {
    let world = World::new();
    let highest = |part: &str| part.replace("MAX", &model::MAX_VERSION_PART.to_string());
    for (n, (stated, derived)) in [
        ("1.0.MAX", "1.1.0"),
        ("1.MAX.MAX", "2.0.0"),
        ("2.3.4-rc.1", "2.3.4"),
        ("2.3.5+build", "2.3.6"),
    ]
    .into_iter()
    .enumerate()
    {
        let stated = highest(stated);
        world
            .published(ID, &text(&stated, &format!("stated {n}")))
            .await;
        world
            .published(ID, &text("", &format!("derived {n}")))
            .await;
        let versions = world.versions(ID);
        assert_eq!((&*versions[1].1, &*versions[0].1), (&*stated, derived));
    }
    world
        .published(ID, &text(&highest("MAX.MAX.MAX"), "last"))
        .await;
    let error = world.publish(ID, &text("", "one more")).await;
    let failure = Failure::from(error.expect_err("there is none above"));
    assert_eq!(
        (failure.code, &*failure.message),
        (
            Code::VersionConflict,
            "'github/acme/refunds' has the highest possible semantic version"
        )
    );
}

#[tokio::test]
async fn a_deleted_skill_goes_on_above_all_versions_that_it_had() {
    let world = World::new();
    for stated in ["1.0.0", "2.0.0"] {
        world.published(ID, &text(stated, stated)).await;
    }
    let deleted = world.registry.delete(&skill(ID), &caller("")).await;
    deleted.expect("deleted");
    world.published(ID, &text("0.9.9", "again")).await;
    world.published(ID, &text("", "derived")).await;
    assert_eq!(world.versions(ID)[0].1, "2.0.1");
    // Heads were stored that forgot what there was before a delete.
    let key = skill(ID).key();
    let stored = world.registry.stored_head(&key).expect("a head");
    let mut stored = stored.expect("a head");
    stored.value.highest = semver::Version::new(0, 9, 9);
    world.published(ID, &text("0.9.10", "taken")).await;
    let revision = world.registry.stored_head(&key).expect("a head");
    let revision = revision.map(|stored| stored.revision);
    stored.value.last_number = number(5);
    let mut batch = Batch::new();
    let put = world.registry.put_head(&mut batch, revision, stored.value);
    put.expect("put");
    let committed = world.registry.store().commit(batch).await;
    committed.expect("stored");
    world.published(ID, &text("", "one more")).await;
    assert_eq!(world.versions(ID)[0].1, "2.0.2");
}

/// Before versions had a limit, any number could be stored.
#[tokio::test]
async fn a_stored_version_of_any_size_can_be_followed_by_another() {
    let world = World::new();
    world.published(ID, &text("1.0.0", "one")).await;
    let key = skill(ID).key();
    let stored = world.registry.stored_head(&key).expect("a head");
    let mut stored = stored.expect("a head");
    stored.value.highest = semver::Version::new(1, 0, u64::MAX);
    let mut batch = Batch::new();
    let revision = Some(stored.revision);
    let put = world.registry.put_head(&mut batch, revision, stored.value);
    put.expect("put");
    let committed = world.registry.store().commit(batch).await;
    committed.expect("stored");
    world.published(ID, &text("", "two")).await;
    assert_eq!(world.versions(ID)[0].1, "1.1.0");
}

#[tokio::test]
async fn the_time_is_that_of_the_clock_that_stamps_versions() {
    let world = World::new();
    world.clock.0.store(86_400, Ordering::Relaxed);
    world.published(ID, &text("", "one")).await;
    let (registry, head) = (&world.registry, world.registry.head(&skill(ID)));
    let version = registry.version(&head.expect("a head"), &VersionSelector::Active);
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(86_400);
    assert_eq!(
        (registry.now(), version.expect("served").created_at),
        (now, now)
    );
}
