//! What a damaged directory no longer holds whole is left out, and said.

use super::*;
use crate::repair::Repaired;

const CONTENTS: Table<(Digest, u16), ()> = Table::new(TableId::Contents);

impl World {
    /// Three versions, the second of which is active.
    async fn of_three() -> Self {
        let world = Self::new();
        for body in ["one", "two", "three"] {
            world.published(ID, &text("", body)).await;
        }
        let two = VersionNumber::new(2).expect("a number");
        let activated = world.registry.activate(&skill(ID), two, &caller("")).await;
        activated.expect("an active version");
        world
    }

    /// Removes what damage took, and repairs the rest in a new process.
    async fn repaired(self, damage: impl FnOnce(&Registry, &mut Batch)) -> (Self, Repaired) {
        let mut batch = Batch::new();
        damage(&self.registry, &mut batch);
        let committed = self.registry.store().commit(batch).await;
        committed.expect("a commit");
        let world = self.again().await;
        let repaired = world.registry.repair().await.expect("repaired");
        let world = world.again().await;
        let audit = world.registry.audit().expect("an audit");
        assert_eq!(audit.damage, Vec::<String>::new());
        assert_eq!(
            (audit.skills, audit.versions),
            (repaired.skills, repaired.versions)
        );
        let again = world.registry.repair().await.expect("repaired");
        assert_eq!(
            (again.skills, again.versions),
            (repaired.skills, repaired.versions)
        );
        (world, repaired)
    }

    fn numbers(&self) -> Vec<u32> {
        self.versions(ID).iter().map(|version| version.0).collect()
    }
}

fn number(n: u32) -> VersionNumber {
    VersionNumber::new(n).expect("a number")
}

fn version(registry: &Registry, n: u32) -> Version {
    let key = (skill(ID).key(), number(n));
    let stored = registry.store().get(&VERSIONS, &key).expect("a store");
    stored.expect("a version").value
}

#[tokio::test]
async fn a_whole_registry_is_left_as_it_is() {
    let world = World::of_three().await;
    let before = world.versions(ID);
    let (world, repaired) = world.repaired(|_, _| ()).await;
    assert_eq!(repaired.lost, Vec::<String>::new());
    assert_eq!((repaired.skills, repaired.versions), (1, 3));
    assert_eq!(world.versions(ID), before);
}

#[tokio::test]
async fn a_version_that_lacks_a_content_goes_and_another_is_active() {
    let world = World::of_three().await;
    let damage = |registry: &Registry, batch: &mut Batch| {
        let digest = version(registry, 2).files[0].digest;
        batch.delete(&CONTENTS, &(digest, 0));
    };
    let (world, repaired) = world.repaired(damage).await;
    assert_eq!(
        repaired.lost,
        [
            "version 2 of 'github/acme/refunds' lacks the content of 'SKILL.md'",
            "the active version 2 of 'github/acme/refunds'; version 3 is active now"
        ]
    );
    assert_eq!(world.numbers(), [3, 1]);
    // The same bytes may be published once more, under a number of their own.
    assert_eq!(world.published(ID, &text("", "two")).await, 4);
}

#[tokio::test]
async fn records_that_are_gone_are_named_and_what_leads_to_them_goes_with_them() {
    let world = World::of_three().await;
    let key = skill(ID).key();
    let damage = |_: &Registry, batch: &mut Batch| {
        batch.delete(&VERSIONS, &(key.clone(), number(1)));
        batch.delete(&VERSIONS, &(key.clone(), number(3)));
    };
    let (world, repaired) = world.repaired(damage).await;
    assert_eq!(
        repaired.lost,
        [
            "version 1 of 'github/acme/refunds'",
            "version 3 of 'github/acme/refunds'"
        ]
    );
    assert_eq!(world.published(ID, &text("", "three")).await, 4);
    assert_eq!(world.numbers(), [4, 2]);
}

#[tokio::test]
async fn a_skill_whose_head_is_gone_gets_one_from_its_versions() {
    let world = World::of_three().await;
    let key = skill(ID).key();
    let damage = |registry: &Registry, batch: &mut Batch| {
        batch.delete(&HEADS, &key);
        let version = version(registry, 3);
        batch.delete(&DIGESTS, &(key.clone(), version.digest));
        batch.delete(&SEMANTICS, &(key.clone(), version.semantic.to_string()));
    };
    let (world, repaired) = world.repaired(damage).await;
    assert_eq!(
        repaired.lost,
        ["the data of 'github/acme/refunds' other than its versions; version 3 is active now"]
    );
    assert_eq!(world.numbers(), [3, 2, 1]);
    assert_eq!(world.published(ID, &text("", "three")).await, 3);
    assert_eq!(world.published(ID, &text("", "four")).await, 4);
}

/// A lower version may be stated later, for those who stay with an older line.
#[tokio::test]
async fn the_version_after_the_highest_is_given_once_a_back_port_is_the_newest() {
    for is_head_lost in [true, false] {
        let world = World::new();
        for (at, stated) in [(10, "2.0.0"), (20, "1.5.0")] {
            world.clock.0.store(at, Ordering::Relaxed);
            world.published(ID, &text(stated, stated)).await;
        }
        let key = skill(ID).key();
        let damage = |registry: &Registry, batch: &mut Batch| {
            if is_head_lost {
                batch.delete(&HEADS, &key);
                return;
            }
            // An older head, since the later one is lost.
            let stored = registry.stored_head(&key).expect("a store");
            let mut stored = stored.expect("a head");
            stored.value.highest = semver::Version::new(1, 4, 0);
            let revision = Some(stored.revision);
            let put = registry.put_head(batch, revision, stored.value);
            put.expect("put");
        };
        let (world, _) = world.repaired(damage).await;
        let head = world.registry.head(&skill(ID)).expect("a head");
        let seconds = [head.created_at, head.updated_at].map(Timestamp::as_second);
        assert_eq!(seconds, [10, 20], "the head is lost: {is_head_lost}");
        world.published(ID, &text("", "derived")).await;
        assert_eq!(world.versions(ID)[0].1, "2.0.1");
    }
}

#[tokio::test]
async fn the_version_after_a_lost_one_is_above_it() {
    let world = World::new();
    for stated in ["1.0.0", "2.0.0"] {
        world.published(ID, &text(stated, stated)).await;
    }
    let key = skill(ID).key();
    let damage = |_: &Registry, batch: &mut Batch| {
        batch.delete(&HEADS, &key);
        batch.delete(&VERSIONS, &(key.clone(), number(2)));
    };
    let (world, _) = world.repaired(damage).await;
    world.published(ID, &text("", "derived")).await;
    assert_eq!(world.versions(ID)[0].1, "2.0.1");
}

#[tokio::test]
async fn what_leads_to_a_version_is_put_back_where_that_alone_is_gone() {
    let world = World::of_three().await;
    let key = skill(ID).key();
    let damage = |registry: &Registry, batch: &mut Batch| {
        let version = version(registry, 1);
        batch.delete(&DIGESTS, &(key.clone(), version.digest));
        batch.delete(&SEMANTICS, &(key.clone(), version.semantic.to_string()));
    };
    let (world, repaired) = world.repaired(damage).await;
    assert_eq!(repaired.lost, Vec::<String>::new());
    // The same bytes are the version that has them.
    let again = world
        .publish(ID, &text("", "one"))
        .await
        .expect("an answer");
    assert_eq!(
        (again.outcome, again.version.number),
        (Outcome::Unchanged, number(1))
    );
}

#[tokio::test]
async fn what_is_left_of_a_deleted_skill_goes() {
    let world = World::of_three().await;
    let left = version(&world.registry, 2);
    let deleted = world.registry.delete(&skill(ID), &caller("")).await;
    deleted.expect("deleted");
    let key = (skill(ID).key(), number(2));
    let damage = |_: &Registry, batch: &mut Batch| batch.put(&VERSIONS, &key, &left);
    let (world, repaired) = world.repaired(damage).await;
    assert_eq!((repaired.skills, repaired.versions), (0, 0));
    let stored = world.registry.store().get(&VERSIONS, &key);
    assert!(stored.expect("a store").is_none());
}
