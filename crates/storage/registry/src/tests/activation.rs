//! Which version answers, and versions that are withdrawn.

use super::*;

#[tokio::test]
async fn activating_an_older_version_is_the_rollback() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    let back = world
        .registry
        .activate(&skill(ID), number(1), &caller(""))
        .await
        .expect("activated");
    assert_eq!(
        (
            back.id,
            back.version.number,
            back.version.active,
            back.previous
        ),
        (skill(ID), number(1), true, Some(number(2)))
    );
    let again = world
        .registry
        .activate(&skill(ID), number(1), &caller(""))
        .await
        .expect("activated");
    assert_eq!(again.previous, Some(number(1)));
    let missing = world
        .registry
        .activate(&skill(ID), number(9), &caller(""))
        .await
        .expect_err("no such version");
    assert_eq!(code(missing), Code::VersionNotFound);
    assert_eq!(
        world.events(),
        [
            (EventKind::Published, ID.to_owned(), Some(1), Some(1)),
            (EventKind::Published, ID.to_owned(), Some(2), Some(2)),
            (EventKind::Activated, ID.to_owned(), Some(1), Some(1)),
        ]
    );
}

#[tokio::test]
async fn a_withdrawn_version_answers_only_when_it_is_asked_for() {
    let world = World::new();
    for body in ["one", "two", "three"] {
        world.published(ID, &text("", body)).await;
    }
    let yank = |n| {
        let registry = world.registry.clone();
        async move {
            registry
                .yank(&skill(ID), number(n), "leaks", &caller(""))
                .await
                .expect("withdrawn")
        }
    };
    assert_eq!(yank(3).await.active, Some(number(2)));
    assert_eq!(yank(3).await.active, Some(number(2)));
    let error = world
        .registry
        .activate(&skill(ID), number(3), &caller(""))
        .await
        .expect_err("withdrawn");
    assert_eq!(
        error.to_string(),
        "Version 3 of 'github/acme/refunds' was withdrawn: leaks"
    );
    let exact = world
        .registry
        .describe(&skill(ID), &number(3).into())
        .expect("a version");
    assert_eq!(
        exact.yank.as_ref().map(|yank| yank.reason.as_str()),
        Some("leaks")
    );

    assert_eq!(yank(1).await.active, Some(number(2)));
    assert_eq!(yank(2).await.active, None);
    let error = world
        .registry
        .describe(&skill(ID), &VersionSelector::Active)
        .map(|_| ())
        .expect_err("withdrawn");
    assert_eq!(code(error), Code::SkillYanked);

    let back = world
        .registry
        .unyank(&skill(ID), number(1), &caller(""))
        .await
        .expect("put back");
    assert_eq!(back.active, Some(number(1)));
    let back = world
        .registry
        .unyank(&skill(ID), number(3), &caller(""))
        .await
        .expect("put back");
    assert_eq!(back.active, Some(number(1)));
}
