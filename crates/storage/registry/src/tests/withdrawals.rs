//! Withdrawing costs the same however many versions were withdrawn before.

use super::*;
use model::Yank;
use store::Stored;

/// As many characters as the contract takes, of four bytes each.
fn reason(n: u32) -> String {
    format!("{n} {}", "\u{1f4a5}".repeat(1_000))
}

#[tokio::test]
async fn withdrawals_leave_the_head_of_a_skill_as_small_as_it_was() {
    const VERSIONS: u32 = 60;
    let world = World::new();
    for n in 1..=VERSIONS {
        world.published(ID, &text("", &format!("body {n}"))).await;
    }
    let head = || {
        let stored = world.registry.stored_head(&skill(ID).key());
        let stored = stored.expect("a head").expect("a head");
        serde_json::to_vec(&stored.value).expect("JSON").len()
    };
    let before = head();
    for n in 2..=VERSIONS {
        world.withdraw(n, &reason(n)).await;
    }
    // Numbers and times may have other lengths.
    assert!(head() < before + 40, "{} bytes, {before} before", head());

    let world = world.again().await;
    let page = world.registry.list_versions(&skill(ID), 100, "");
    let reasons: Vec<_> = page
        .expect("versions")
        .versions
        .into_iter()
        .rev()
        .map(|described| described.yank.map(|yank| yank.reason))
        .collect();
    let expected: Vec<_> = (1..=VERSIONS).map(|n| (n > 1).then(|| reason(n))).collect();
    assert_eq!(reasons, expected);
    let head = world.registry.head(&skill(ID)).expect("a head");
    assert_eq!(head.active, Some(number(1)));
    assert_eq!(head.highest_available(), Some(number(1)));
}

/// What becomes active is neither withdrawn nor lost, the latter in a directory that was
/// damaged.
#[tokio::test]
async fn where_the_active_version_is_withdrawn_the_highest_that_is_there_follows() {
    let world = World::new();
    for body in ["one", "two", "three", "four", "five"] {
        world.published(ID, &text("", body)).await;
    }
    world.withdraw(4, "leaks").await;
    let mut damage = Batch::new();
    damage.delete(&VERSIONS, &(skill(ID).key(), number(3)));
    let damaged = world.registry.store().commit(damage).await;
    damaged.expect("a commit");
    let world = world.again().await;
    assert_eq!(world.withdraw(5, "").await.active, Some(number(2)));
    assert_eq!(world.withdraw(2, "").await.active, Some(number(1)));
    assert_eq!(world.withdraw(1, "").await.active, None);
}

#[tokio::test]
async fn a_deleted_skill_leaves_no_withdrawals_to_the_next_one() {
    let world = World::new();
    for body in ["one", "two"] {
        world.published(ID, &text("", body)).await;
    }
    world.withdraw(1, "leaks").await;
    let deleted = world.registry.delete(&skill(ID), &caller("")).await;
    deleted.expect("deleted");
    assert_eq!(
        numbers::all(world.registry.store(), store::TableId::Yanks)
            .expect("withdrawals")
            .len(),
        0
    );
    world.published(ID, &text("", "one")).await;
    assert_eq!(world.versions(ID), [(3, "1.0.2".to_owned(), true, false)]);
}

/// Heads of format 1 hold their withdrawals.
#[tokio::test]
async fn withdrawals_that_a_head_holds_are_read_and_moved_by_the_next_write() {
    let world = World::new();
    for body in ["one", "two", "three"] {
        world.published(ID, &text("", body)).await;
    }
    let key = skill(ID).key();
    let stored = world.registry.stored_head(&key).expect("a head");
    let Stored {
        revision,
        mut value,
    } = stored.expect("a head");
    for n in [1, 2] {
        let yank = Yank {
            reason: format!("old {n}"),
            time: Timestamp::UNIX_EPOCH,
            actor: Principal::anonymous(),
        };
        value.inline.insert(number(n), yank);
    }
    let mut batch = Batch::new();
    batch.expect(&HEADS, &key, Some(revision).into());
    batch.put(&HEADS, &key, &value);
    let committed = world.registry.store().commit(batch).await;
    committed.expect("stored");

    let world = world.again().await;
    let reasons = |world: &World| {
        let page = world.registry.list_versions(&skill(ID), 100, "");
        let versions = page.expect("versions").versions.into_iter();
        let reasons = versions.map(|described| described.yank.map(|yank| yank.reason));
        reasons.collect::<Vec<_>>()
    };
    let old = |n: u32| Some(format!("old {n}"));
    assert_eq!(reasons(&world), [None, old(2), old(1)]);
    let activated = world
        .registry
        .activate(&skill(ID), number(1), &caller(""))
        .await;
    let error = activated.expect_err("withdrawn");
    assert!(
        error.to_string().ends_with("was withdrawn: old 1"),
        "{error}"
    );
    world.put_back(2).await;
    assert_eq!(reasons(&world), [None, None, old(1)]);

    let world = world.again().await;
    assert_eq!(reasons(&world), [None, None, old(1)]);
    let stored = world.registry.stored_head(&key).expect("a head");
    assert!(stored.expect("a head").value.inline.is_empty());
}
