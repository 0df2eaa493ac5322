//! Whether the chain is whole, and what it says where it is not.

use super::*;
use crate::verify::MAX_REPORTED;

#[tokio::test]
async fn no_more_gaps_than_so_many_are_told_and_the_last_reaches_to_the_end() {
    let world = world(AuditConfig::default());
    let gaps = MAX_REPORTED as u64 + 50;
    append(&world, 2 * gaps + 1).await;
    let mut forged = store::Forgery::of(&world.store);
    (1..=gaps).for_each(|gap| assert!(forged.remove(2 * gap)));
    world.store.commit(forged.batch()).await.expect("written");
    let found = verify(&world.store);
    assert_eq!(
        (found.damage.len(), found.missing.len()),
        (MAX_REPORTED, MAX_REPORTED)
    );
    assert_eq!(found.damage[0], "the audit trail has no record 2");
    assert_eq!(
        found.missing.last(),
        Some(&(2 * MAX_REPORTED as u64, 2 * gaps))
    );
}

#[tokio::test]
async fn no_more_damage_than_so_much_is_told() {
    let world = world(AuditConfig::default());
    let records = MAX_REPORTED as u64 + 50;
    append(&world, records).await;
    let mut forged = store::Forgery::of(&world.store);
    for number in 1..=records {
        let flip = |value: &mut Vec<u8>| *value.last_mut().expect("a byte") ^= 1;
        assert!(forged.change(number, flip));
    }
    world.store.commit(forged.batch()).await.expect("written");
    assert_eq!(verify(&world.store).damage.len(), MAX_REPORTED);
}

#[tokio::test]
async fn a_server_says_that_it_starts_and_stops_and_tells_two_config_files_apart() {
    let world = world(AuditConfig::default());
    world.audit.resume().await.expect("resumed");
    let digest = |text: &[u8]| Some(model::Digest::of(text));
    for config in [digest(b"a"), digest(b"a"), digest(b"b")] {
        world.audit.started("1.2.3", config).await.expect("written");
        world.audit.close().await.expect("written");
    }
    // A command closes what it opened, and is no server.
    world.audit.close().await.expect("written");
    let mut entries = world.listed(&Filter::default());
    entries.reverse();
    let kinds: Vec<_> = entries.iter().map(|it| it.event.kind).collect();
    assert_eq!(kinds, [EventKind::Start, EventKind::Stop].repeat(3));
    let config = |at: usize| entries[at].event.details["config"].clone();
    assert_eq!(entries[0].event.details["version"], "1.2.3");
    assert_eq!(config(0), config(2));
    assert_ne!(config(0), config(4));
    assert_ne!(
        config(0),
        digest(b"a").expect("one").to_string(),
        "it is keyed"
    );
}

#[tokio::test]
async fn a_restored_trail_goes_on_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::default();
    let clock = Arc::new(Hands::default());
    let open = |directory: &std::path::Path| {
        let store = Store::open(directory, &options).expect("a store");
        let audit = Audit::new(
            store.clone(),
            AuditConfig::default(),
            Arc::clone(&clock) as Arc<dyn Clock>,
        );
        (store, audit)
    };
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let (store, audit) = open(&old);
    audit.resume().await.expect("resumed");
    let call = audit.begin(&rpc(Action::Publish), &token("ci"), &HeaderMap::new());
    call.end(None).await.expect("recorded");
    let backup = folder.path().join("backup");
    store.backup(&backup, false, |_| Ok(())).expect("a backup");
    store.close().await;
    store::restore(&backup, &new, &options, |_| {}).expect("restored");
    for _ in 0..2 {
        let (store, audit) = open(&new);
        assert_eq!(verify(&store).damage, Vec::<String>::new());
        audit.resume().await.expect("resumed");
        let page = audit.list(&Filter::default(), 10, "").expect("a page");
        let kinds: Vec<_> = page.entries.iter().map(|it| it.event.kind).collect();
        assert_eq!(kinds, [EventKind::Restored, EventKind::Call], "once");
        assert_eq!(verify(&store), whole(2));
        store.close().await;
    }
}

#[tokio::test]
async fn what_a_salvage_lost_is_told_by_the_write_that_goes_on_without_it() {
    let world = world(AuditConfig::default());
    append(&world, 5).await;
    let mut forged = store::Forgery::of(&world.store);
    assert!(forged.remove(2) && forged.remove(5));
    let mut batch = forged.batch();
    batch.put(&crate::STATE, crate::LOG, &"another".to_owned());
    let before = world.store.commit(batch).await.expect("written");
    world.audit.resume().await.expect("resumed");
    let after = world.store.commit(some_write(None)).await.expect("written");
    // A kill between two commits would lose what is missing: the end that says so is forgotten.
    assert_eq!(after, before + 2, "it is one commit");
    let newest = world.listed(&Filter::default()).remove(0);
    assert_eq!((newest.number, newest.event.kind), (5, EventKind::Restored));
    assert_eq!(newest.event.details["missing"], "2-2,5-5");
    assert_eq!(verify(&world.store), whole(4));
}

#[tokio::test]
async fn a_restore_explains_what_it_names_and_no_more() {
    let world = world(AuditConfig::default());
    append(&world, 5).await;
    let remove = async |number| {
        let mut forged = store::Forgery::of(&world.store);
        assert!(forged.remove(number));
        world.store.commit(forged.batch()).await.expect("written");
    };
    remove(3).await;
    world.audit.resume().await.expect("resumed");
    assert_eq!(verify(&world.store), whole(5));
    let beside = |number| format!("the audit trail has no records {number}");
    remove(2).await;
    assert_eq!(verify(&world.store).damage, [beside("2 to 3")]);
    remove(4).await;
    assert_eq!(verify(&world.store).damage, [beside("2 to 4")]);
}

#[tokio::test]
async fn a_trail_of_which_all_was_lost_says_so() {
    let world = world(AuditConfig::default());
    append(&world, 3).await;
    let mut forged = store::Forgery::of(&world.store);
    assert!(forged.start_after(2) && forged.remove(3));
    world.store.commit(forged.batch()).await.expect("written");
    world.audit.resume().await.expect("resumed");
    let newest = world.listed(&Filter::default()).remove(0).event;
    assert_eq!(newest.kind, EventKind::Restored);
    assert_eq!(newest.details["missing"], "3-3");
}

#[tokio::test]
async fn a_config_file_is_told_alike_before_a_restore_and_after_it() {
    let world = world(AuditConfig::default());
    world.audit.resume().await.expect("resumed");
    let config = Some(model::Digest::of(b"a"));
    world.audit.started("1.2.3", config).await.expect("written");
    let mut batch = Batch::new();
    batch.put(&crate::STATE, crate::LOG, &"another".to_owned());
    world.store.commit(batch).await.expect("written");
    world.audit.resume().await.expect("resumed");
    world.audit.reloaded(config).await.expect("written");
    let told = |kind| {
        let found = world.listed(&Filter {
            kind: Some(kind),
            ..Filter::default()
        });
        let configs = found.iter().map(|it| it.event.details["config"].clone());
        configs.collect::<Vec<_>>()
    };
    assert_eq!(told(EventKind::Start), told(EventKind::Reload));
}

/// What somebody does to the records, who can write to the files.
#[derive(Debug, Clone)]
enum Tampering {
    Remove(prop::sample::Index),
    Change(prop::sample::Index, prop::sample::Index, u8),
    Swap(prop::sample::Index, prop::sample::Index),
    CutOff(prop::sample::Index),
    Prune(prop::sample::Index),
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        index().prop_map(Tampering::Remove),
        (index(), index(), 1_u8..).prop_map(|(at, byte, flip)| Tampering::Change(at, byte, flip)),
        (index(), index()).prop_map(|(a, b)| Tampering::Swap(a, b)),
        index().prop_map(Tampering::CutOff),
        index().prop_map(Tampering::Prune),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_was_changed_removed_or_moved_shows(
        records in 2_usize..12,
        pruned in any::<bool>(),
        tampering in tampering(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let found = runtime.block_on(async {
            let world = world(if pruned { kept(3) } else { AuditConfig::default() });
            for number in 0..records {
                world.call(&token(&format!("t{number}")), None).await;
                world.audit.write().await.expect("written");
            }
            assert_eq!(verify(&world.store).damage, Vec::<String>::new());
            let numbers: Vec<u64> = world
                .store
                .links(0, u64::MAX)
                .map(|link| link.expect("a record").mark.number)
                .collect();
            let at = |index: prop::sample::Index| numbers[index.index(numbers.len())];
            let mut forged = store::Forgery::of(&world.store);
            let changes = match tampering {
                Tampering::Remove(index) => forged.remove(at(index)),
                Tampering::Change(index, byte, flip) => forged.change(at(index), |value| {
                    let byte = byte.index(value.len());
                    value[byte] ^= flip;
                }),
                Tampering::Swap(a, b) => forged.swap(at(a), at(b)),
                Tampering::CutOff(index) => {
                    let from = at(index);
                    numbers.iter().filter(|number| **number >= from).fold(false, |_, number| forged.remove(*number))
                }
                Tampering::Prune(index) => forged.start_after(at(index)),
            };
            if !changes {
                return None;
            }
            world.store.commit(forged.batch()).await.expect("written");
            Some(verify(&world.store).damage)
        });
        if let Some(damage) = found {
            prop_assert!(!damage.is_empty());
        }
    }
}
