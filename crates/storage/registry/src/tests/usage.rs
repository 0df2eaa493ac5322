//! Counts of use on their way into the store.

use super::*;
use store::faults::{Disk, Unreadable, begun, patient};

fn reads(registry: &Registry) -> u64 {
    let head = registry.head(&skill(ID)).expect("a head");
    let usage = registry.usage(&head).expect("usage");
    usage.iter().map(|(_, counts)| counts.reads).sum()
}

fn world_on_a_disk() -> (World, Disk) {
    let directory = TempDir::new().expect("a folder");
    let (disk, sync) = Disk::new();
    let options = Options {
        reserve_bytes: 0,
        sync,
        ..Options::default()
    };
    let store = Store::open(&directory.path().join("data"), &options).expect("a store");
    let clock: Arc<dyn Clock> = Arc::new(Hands::default());
    let registry = Registry::open(store, clock).expect("a registry");
    let world = World {
        directory,
        clock: Arc::default(),
        registry,
    };
    (world, disk)
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_read_once_while_they_are_written_and_when_that_fails() {
    let (world, disk) = world_on_a_disk();
    let registry = world.registry.clone();
    let mut mode = registry.inner.store.mode();
    world.published(ID, &text("", "one")).await;
    let read = || {
        let head = registry.head(&skill(ID)).expect("a head");
        registry.count(&head, number(1), UsageKind::Read, "");
    };
    for fails in [false, true] {
        let before = reads(&registry);
        read();
        disk.stall();
        disk.break_down(fails);
        let writing = tokio::spawn({
            let registry = registry.clone();
            async move { registry.write_usage().await }
        });
        disk.reached();
        assert_eq!(reads(&registry), before + 1);
        read();
        assert_eq!(reads(&registry), before + 2);
        disk.go();
        assert_eq!(writing.await.expect("a writer").is_err(), fails);
        assert_eq!(reads(&registry), before + 2);
        disk.break_down(false);
        let writable = mode.wait_for(|mode| *mode == store::Mode::ReadWrite);
        writable.await.expect("a store");
        registry.write_usage().await.expect("written");
        assert_eq!(reads(&registry), before + 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_is_deleted_meanwhile_does_not_hold_up_the_counts_of_others() {
    let (world, disk) = world_on_a_disk();
    let registry = world.registry.clone();
    let other = "acme/team/other";
    for id in [ID, other] {
        world.published(id, &text("", "one")).await;
    }
    let read = |id: &str| {
        let head = registry.head(&skill(id)).expect("a head");
        registry.count(&head, number(1), UsageKind::Read, "");
        head
    };
    read(ID);
    registry.write_usage().await.expect("written");
    read(ID);
    let head = read(other);
    // While the disk stalls, writes are decided on by what was there before.
    disk.stall();
    let publishing = {
        let registry = registry.clone();
        let prepared = registry.prepare(bundle("acme/team/third", &[("SKILL.md", &text("", "x"))]));
        let prepared = prepared.await.expect("a skill");
        tokio::spawn(async move { registry.publish(prepared, "", true, &caller("")).await })
    };
    disk.reached();
    let mut deletion = Batch::new();
    deletion.delete(&crate::usage::USAGE, &skill(ID).key());
    let store = registry.inner.store.clone();
    // In this order they ask the committer.
    let (deleted, written, ()) =
        tokio::join!(store.commit(deletion), registry.write_usage(), async {
            disk.go();
        });
    publishing.await.expect("a task").expect("published");
    deleted.expect("deleted");
    written.expect("what a skill that is gone had counts for nobody");
    let usage = registry.usage(&head).expect("usage");
    let reads: u64 = usage.iter().map(|(_, counts)| counts.reads).sum();
    assert_eq!(reads, 1);
    let stored = registry
        .inner
        .store
        .get(&crate::usage::USAGE, &head.id.key());
    assert!(stored.expect("a store").is_some(), "it is in the store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn counting_does_not_wait_for_usage_that_is_read() {
    let directory = TempDir::new().expect("a folder");
    let store = Store::open(&directory.path().join("data"), &patient()).expect("a store");
    let registry = Registry::open(store, Arc::new(Hands::default())).expect("a registry");
    let files = [("SKILL.md", &*text("", "one"))];
    publish(&registry, ID, &files, &caller(""))
        .await
        .expect("a version");
    let read = || {
        let head = registry.head(&skill(ID)).expect("a head");
        registry.count(&head, number(1), UsageKind::Read, "");
    };
    read();
    let unreadable = Unreadable::new(registry.store());
    let reading = tokio::spawn({
        let registry = registry.clone();
        async move { reads(&registry) }
    });
    let writing = tokio::spawn({
        let registry = registry.clone();
        async move { registry.write_usage().await.is_ok() }
    });
    begun().await;
    read();
    unreadable.open_again();
    assert!((1..=2).contains(&reading.await.expect("a reader")));
    assert!(writing.await.expect("a writer"));
    registry.write_usage().await.expect("written");
    assert_eq!(reads(&registry), 2);
}

#[tokio::test]
async fn usage_counts_reads_loads_and_distinct_sessions_across_a_restart() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let head = world.registry.head(&skill(ID)).expect("a head");
    for session in ["a", "a", "b", ""] {
        world
            .registry
            .count(&head, number(1), UsageKind::Read, session);
    }
    let expected = VersionUsage {
        loads: 0,
        reads: 4,
        sessions: 2,
        last_used_at: Some(Timestamp::UNIX_EPOCH),
    };
    assert_eq!(
        world.registry.usage(&head).expect("usage"),
        [(number(1), expected.clone())]
    );
    world.registry.write_usage().await.expect("written");
    let world = world.again().await;
    // Sessions are remembered until the server stops: the third is `b` again.
    for session in ["b", "c", "b"] {
        world
            .registry
            .count(&head, number(1), UsageKind::Load, session);
    }
    let expected = VersionUsage {
        loads: 3,
        sessions: 4,
        ..expected
    };
    assert_eq!(
        world.registry.usage(&head).expect("usage"),
        [(number(1), expected.clone())]
    );
    world.registry.write_usage().await.expect("written");
    assert_eq!(
        world.registry.usage(&head).expect("usage"),
        [(number(1), expected)]
    );
    world
        .registry
        .delete(&skill(ID), &caller(""))
        .await
        .expect("deleted");
    assert_eq!(world.registry.usage(&head).expect("usage"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn counts_on_their_way_to_the_store_are_counted_once() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let head = world.registry.head(&skill(ID)).expect("a head");
    let registry = world.registry.clone();
    let counted = Arc::clone(&head);
    let writer = tokio::spawn(async move {
        for _ in 0..100 {
            registry.count(&counted, number(1), UsageKind::Read, "");
            registry.write_usage().await.expect("written");
        }
    });
    let mut last = 0;
    while !writer.is_finished() {
        let usage = world.registry.usage(&head).expect("usage");
        let reads = usage.first().map_or(0, |(_, counts)| counts.reads);
        assert!((last..=last + 100).contains(&reads), "{reads} after {last}");
        last = reads;
        tokio::task::yield_now().await;
    }
    writer.await.expect("a writer");
    let usage = world.registry.usage(&head).expect("usage");
    assert_eq!(usage.first().map(|(_, counts)| counts.reads), Some(100));
}

#[tokio::test]
async fn a_read_that_ends_after_its_skill_was_deleted_is_not_counted_for_the_next_one() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    let before = world.registry.head(&skill(ID)).expect("a head");
    let deleted = world.registry.delete(&skill(ID), &caller("")).await;
    deleted.expect("deleted");
    assert_eq!(world.published(ID, &text("", "two")).await, 2);
    for n in [1, 2] {
        let late = UsageKind::Read;
        world.registry.count(&before, number(n), late, "");
    }
    world.registry.write_usage().await.expect("written");
    let head = world.registry.head(&skill(ID)).expect("a head");
    let usage = world.registry.usage(&head).expect("usage");
    let reads: Vec<_> = usage
        .iter()
        .map(|(n, counts)| (n.get(), counts.reads))
        .collect();
    assert_eq!(reads, [(2, 1)]);
}
