//! Which records are pruned, and when.

use super::*;
use crate::retention::MAX_PRUNED;

#[tokio::test]
async fn the_fewest_records_that_may_be_kept_are_pruned_once_and_not_for_ever() {
    let world = world(kept(2));
    for _ in 0..5 {
        world.call(&token("ci"), None).await;
    }
    for _ in 0..3 {
        world.audit.write().await.expect("written");
        let kinds: Vec<_> = world.listed(&Filter::default());
        let kinds: Vec<_> = kinds.into_iter().map(|it| it.event.kind).collect();
        assert_eq!(kinds, [EventKind::Pruned, EventKind::Call]);
    }
    assert_eq!(verify(&world.store), whole(2));
}

#[tokio::test]
async fn the_oldest_are_pruned_by_number_and_by_age_and_the_chain_says_so() {
    let world = world(kept(50));
    for _ in 0..50 {
        world.call(&token("ci"), None).await;
    }
    world.audit.write().await.expect("written");
    assert_eq!(world.listed(&Filter::default()).len(), 50);
    world.call(&token("ci"), None).await;
    world.audit.write().await.expect("written");
    let entries = world.listed(&Filter::default());
    let pruned = &entries[0];
    assert_eq!(pruned.event.kind, EventKind::Pruned);
    assert_eq!((pruned.event.count, entries.len()), (5, 47));
    assert_eq!(entries.last().expect("one").number, 6);
    assert_eq!(world.store.chain_start().expect("a start").number, 5);
    assert_eq!(verify(&world.store), whole(47));
    world.clock.pass(SignedDuration::from_hours(400 * 24 + 1));
    world.audit.write().await.expect("written");
    // The last one there was is what the next is chained to.
    let kinds: Vec<_> = world
        .listed(&Filter::default())
        .into_iter()
        .map(|it| it.event.kind)
        .collect();
    assert_eq!(kinds, [EventKind::Pruned, EventKind::Pruned]);
    assert_eq!(verify(&world.store), whole(2));
}

#[tokio::test]
async fn one_write_prunes_so_many_and_the_next_ones_go_on() {
    let prunes = async |world: &World| {
        world.audit.write().await.expect("written");
        let newest = world.listed(&Filter {
            kind: Some(EventKind::Pruned),
            ..Filter::default()
        });
        newest.first().map(|it| it.event.count)
    };
    for (max_records, days) in [(10, 0), (1_000_000, 401)] {
        let world = world(kept(max_records));
        append(&world, 2 * MAX_PRUNED + 100).await;
        world.clock.pass(SignedDuration::from_hours(24 * days));
        assert_eq!(prunes(&world).await, Some(MAX_PRUNED));
        assert_eq!(prunes(&world).await, Some(MAX_PRUNED));
        let rest = prunes(&world).await.expect("pruned");
        assert!((90..=102).contains(&rest), "{rest}");
        let left = world.audit.last().expect("a number")
            - world.store.chain_start().expect("a start").number;
        assert!(left <= 10, "{left}");
        assert_eq!(verify(&world.store).damage, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_trail_is_pruned_as_soon_as_it_has_grown_too_long_whoever_wrote_to_it() {
    let world = world(kept(50));
    let count = |world: &World| world.listed(&Filter::default()).len();
    world.audit.write().await.expect("written");
    // Past this trail, as another one of the same store does.
    append(&world, 60).await;
    world.audit.write().await.expect("written");
    assert_eq!(count(&world), 50);
    append(&world, 10).await;
    world.call(&token("ci"), None).await;
    world.audit.write().await.expect("written");
    assert_eq!(count(&world), 50);
}

#[tokio::test]
async fn what_is_too_old_is_looked_for_once_an_hour() {
    let world = world(AuditConfig {
        keep_days: 1,
        ..AuditConfig::default()
    });
    append(&world, 3).await;
    let left = async |minutes: i64| {
        world.clock.pass(SignedDuration::from_mins(minutes));
        world.audit.write().await.expect("written");
        world.listed(&Filter::default()).len()
    };
    assert_eq!(left(24 * 60 - 30).await, 3);
    // They are too old by now, and nobody looks yet.
    assert_eq!(left(45).await, 3);
    // The last one stays, and the record of the pruning comes.
    assert_eq!(left(30).await, 2);
}

#[tokio::test]
async fn a_record_is_kept_for_all_of_its_days() {
    let world = world(AuditConfig::default());
    let kinds = async || {
        world.audit.write().await.expect("written");
        let entries = world.listed(&Filter::default()).into_iter();
        entries.map(|it| it.event.kind).collect::<Vec<_>>()
    };
    append(&world, 1).await;
    world.clock.pass(SignedDuration::from_hours(24 * 400));
    world.call(&token("ci"), None).await;
    assert_eq!(kinds().await, [EventKind::Call, EventKind::Start]);
    world.clock.pass(SignedDuration::from_hours(1));
    assert_eq!(kinds().await, [EventKind::Pruned, EventKind::Call]);
}

/// A server that starts on the trail of another one, after some days by its clock.
async fn started_after(before: &World, days: i64, keep_days: u64) -> World {
    let config = AuditConfig {
        keep_days,
        ..AuditConfig::default()
    };
    let world = world_of(before.store.clone(), config);
    *world.clock.now.lock().expect("a time") = *before.clock.now.lock().expect("a time");
    world.clock.pass(SignedDuration::from_hours(24 * days));
    world.audit.resume().await.expect("resumed");
    world
}

impl World {
    /// Lets some hours pass for the server, by its clock as well.
    async fn runs(&self, hours: u64) {
        tokio::time::advance(Duration::from_secs(3_600 * hours)).await;
        let hours = i64::try_from(hours).expect("a few");
        self.clock.pass(SignedDuration::from_hours(hours));
    }

    /// The number of records that are left after a write.
    async fn left(&self) -> usize {
        self.audit.write().await.expect("written");
        self.listed(&Filter::default()).len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_with_a_wrong_clock_removes_nothing_and_the_next_one_a_share_each_day() {
    let before = world(AuditConfig::default());
    before.audit.resume().await.expect("resumed");
    append(&before, 400).await;
    let wrong = started_after(&before, 730, 30).await;
    wrong.call(&token("ci"), None).await;
    assert_eq!(wrong.left().await, 401);
    wrong.runs(20 * 24).await;
    assert_eq!(wrong.left().await, 401);
    // Its own records tell the next start the wrong time: a fifteenth a day goes, as for thirty days
    // two days' worth may.
    let again = started_after(&wrong, 0, 30).await;
    assert_eq!(again.left().await, 401 - 26 + 1);
    again.runs(23).await;
    assert_eq!(again.left().await, 376);
    again.runs(1).await;
    assert_eq!(again.left().await, 376 - 24 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_runs_on_prunes_by_the_time_that_passes() {
    let before = world(AuditConfig::default());
    before.audit.resume().await.expect("resumed");
    append(&before, 20).await;
    // It was off for a day longer than records are kept.
    let world = started_after(&before, 31, 30).await;
    assert_eq!(world.left().await, 20);
    world.runs(30 * 24 - 1).await;
    assert_eq!(world.left().await, 20);
    world.runs(2).await;
    // All of them but the last, to which the record of the pruning is chained.
    assert_eq!(world.left().await, 2);
}
