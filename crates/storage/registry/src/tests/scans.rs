//! What is scanned, when, and what it is compared with.

use super::holds::{WARNED, harmful, held, operator, with};
use super::*;
use crate::scans::SCANS;
use trust::Verdict;

/// Approves a version that is held.
async fn approve(world: &World, n: u32) {
    let (id, operator) = (skill(ID), operator());
    let approved = world.registry.approve(&id, number(n), "looked", &operator);
    approved.await.expect("approved");
}

/// Has the scan of a version be by older rules, and whatever else.
async fn make_old(world: &World, n: u32, change: impl FnOnce(&mut Scan)) {
    let (store, at) = (world.registry.store(), (skill(ID).key(), number(n)));
    let stored = store.get(&SCANS, &at).expect("read");
    let mut scan = stored.expect("a scan").value;
    scan.report.rules = 0;
    change(&mut scan);
    let mut batch = Batch::new();
    batch.put(&SCANS, &at, &scan);
    store.commit(batch).await.expect("written");
}

#[tokio::test]
async fn what_other_rules_scanned_is_scanned_again_and_held_where_they_say_so_now() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    harmful(&world.registry, ID, "two").await;
    let (id, registry) = (skill(ID), &world.registry);
    approve(&world, 2).await;
    // A reviewer's word holds for what was looked at.
    let rescanned = registry.rescan().await.expect("scanned");
    assert_eq!(rescanned, Rescanned::default());
    let passes = |scan: &mut Scan| {
        scan.report.findings.clear();
        scan.report.verdict = Verdict::Passed;
    };
    make_old(&world, 2, passes).await;
    let rescanned = registry.rescan().await.expect("scanned");
    assert_eq!(
        rescanned,
        Rescanned {
            scanned: 1,
            held: 0
        }
    );
    make_old(&world, 2, |scan| {
        passes(scan);
        scan.review = None;
    })
    .await;
    let rescanned = registry.rescan().await.expect("scanned");
    assert_eq!(
        rescanned,
        Rescanned {
            scanned: 1,
            held: 1
        }
    );
    let head = registry.head(&id).expect("a head");
    assert_eq!(head.active, Some(number(1)));
    assert_eq!(held(registry), [(ID.to_owned(), 2)]);
    // What was never scanned is scanned as well.
    let mut batch = Batch::new();
    batch.delete(&SCANS, &(id.key(), number(1)));
    registry.store().commit(batch).await.expect("written");
    let rescanned = registry.rescan().await.expect("scanned");
    assert_eq!(
        rescanned,
        Rescanned {
            scanned: 1,
            held: 0
        }
    );
    assert!(registry.scan_of(&head, number(1)).expect("read").is_some());
    let world = world.again().await;
    assert_eq!(held(&world.registry), [(ID.to_owned(), 2)]);
}

#[tokio::test]
async fn a_scan_says_what_is_new_since_the_version_before() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world
        .published(ID, &text("", "Ask https://status.acme-tools.io/status."))
        .await;
    let id = skill(ID);
    let scanned = world.registry.scan_version(&id, &VersionSelector::Active);
    let scanned = scanned.await.expect("scanned");
    let (since, new) = scanned.changes.expect("a version before");
    assert_eq!(since, number(1));
    assert!(
        new.contains(&trust::Change::Host("status.acme-tools.io".to_owned())),
        "{new:?}"
    );
}

#[tokio::test]
async fn bytes_that_were_deleted_since_they_were_looked_at_are_never_published_unscanned() {
    let world = World::new();
    let (id, body) = (skill(ID), text("", "one"));
    world.published(ID, &body).await;
    let files = [("SKILL.md", body.as_str())];
    let prepared = world.registry.prepare(bundle(ID, &files)).await;
    let deleted = world.registry.delete(&id, &caller("")).await;
    deleted.expect("deleted");
    let prepared = prepared.expect("a skill");
    let refused = world
        .registry
        .publish(prepared, "", true, &caller(""))
        .await;
    assert_eq!(code(refused.expect_err("refused")), Code::WriteContention);
    // Once more, and it is.
    let number = number(world.published(ID, &body).await);
    let head = world.registry.head(&id).expect("a head");
    let scan = world.registry.scan_of(&head, number).expect("read");
    assert!(scan.is_some());
}

#[tokio::test]
async fn a_reviewers_word_outlives_a_scan_by_newer_rules() {
    let world = World::new();
    harmful(&world.registry, ID, "one").await;
    let (id, registry) = (skill(ID), &world.registry);
    approve(&world, 1).await;
    make_old(&world, 1, |_| ()).await;
    registry.rescan().await.expect("scanned");
    let head = registry.head(&id).expect("a head");
    let scan = registry
        .scan_of(&head, number(1))
        .expect("read")
        .expect("a scan");
    assert!(scan.report.is_current());
    let review = scan.review.as_ref().map(|review| review.reason.as_str());
    assert_eq!((review, head.active), (Some("looked"), Some(number(1))));
}

#[tokio::test]
async fn a_scan_is_compared_with_the_last_version_that_is_handed_out() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    world.withdraw(2, "wrong").await;
    harmful(&world.registry, ID, "three").await;
    world.published(ID, &text("", "four")).await;
    let id = skill(ID);
    let fourth = number(4).into();
    let scanned = world.registry.scan_version(&id, &fourth);
    let changes = scanned.await.expect("scanned").changes;
    assert_eq!(changes.map(|(since, _)| since), Some(number(1)));
}

#[tokio::test]
async fn a_name_is_an_imitation_of_trusted_skills_of_others_alone() {
    let tiers = Tiers {
        verified: vec!["github/acme".to_owned()],
        ..Tiers::default()
    };
    let imitations = async |first: &str, second: &str| {
        let (_directory, registry) = with(Policy {
            tiers: tiers.clone(),
            ..Policy::default()
        });
        let mut found = Vec::new();
        for (id, name) in [(first, "invoice-reader"), (second, "invoice-readar")] {
            let text = format!("---\nname: {name}\ndescription: Reads bills.\n---\nRead it.\n");
            let id = format!("{id}/{name}");
            let published = publish(&registry, &id, &[("SKILL.md", &text)], &caller("")).await;
            published.expect("published");
            let head = registry.head(&skill(&id)).expect("a head");
            let scan = registry.scan_of(&head, VersionNumber::FIRST);
            let scan = scan.expect("read").expect("a scan");
            found.extend(scan.report.findings.iter().map(|it| it.rule.to_string()));
        }
        found
    };
    assert_eq!(
        imitations("github/acme", "github/other").await,
        ["name-typosquat"]
    );
    assert_eq!(
        imitations("github/acme", "github/acme").await,
        Vec::<String>::new()
    );
    assert_eq!(
        imitations("github/third", "github/other").await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn what_is_served_goes_on_with_a_warning_where_newer_rules_only_warn_of_it() {
    let world = World::new();
    let registry = &world.registry;
    world.published(ID, &text("", WARNED)).await;
    assert_eq!(held(registry), [(ID.to_owned(), 1)]);
    approve(&world, 1).await;
    // As older rules saw it: nothing was found, and nobody reviewed it.
    make_old(&world, 1, |scan| {
        scan.report.findings.clear();
        scan.report.verdict = Verdict::Passed;
        scan.review = None;
    })
    .await;
    let rescanned = registry.rescan().await.expect("scanned");
    assert_eq!(
        rescanned,
        Rescanned {
            scanned: 1,
            held: 0
        }
    );
    let head = registry.head(&skill(ID)).expect("a head");
    assert_eq!(
        (head.active, head.verdict(), head.is_warned()),
        (Some(number(1)), Some(Verdict::Warning), true)
    );
    let verdict = registry.verdict_of(&head, number(1)).expect("read");
    assert_eq!(verdict, Some(Verdict::Warning));
    // The same from the stored head.
    let world = world.again().await;
    let head = world.registry.head(&skill(ID)).expect("a head");
    assert_eq!(head.verdict(), Some(Verdict::Warning));
}
