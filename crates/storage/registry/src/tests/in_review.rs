//! Reviewers read what is held or blocked, and nothing else by that way.

use super::holds::{harmful, operator};
use super::*;

fn paths(diff: &VersionDiff) -> Vec<(&str, ChangeKind)> {
    let files = diff.files.iter();
    files
        .map(|file| (file.path.as_str(), file.change.kind()))
        .collect()
}

#[tokio::test]
async fn a_held_version_is_read_compared_and_packed_for_its_review_until_it_is_approved() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    harmful(&world.registry, ID, "two").await;
    let (id, registry) = (skill(ID), &world.registry);
    let held = VersionSelector::Number(number(2));

    let described = registry.in_review(&id, &held).expect("for its review");
    let script = registry.file(&id, &described.version, "run.sh").await;
    assert_eq!(script.expect("a file"), holds::ATTACK.as_bytes());
    let diff = registry
        .diff_in_review(&id, None, &held)
        .await
        .expect("a diff");
    assert_eq!(
        (diff.from.version.number, paths(&diff)),
        (
            number(1),
            vec![
                ("SKILL.md", ChangeKind::Modified),
                ("run.sh", ChangeKind::Added)
            ]
        )
    );
    let from = Some(VersionSelector::Number(number(2)));
    let same = registry
        .diff_in_review(&id, from, &held)
        .await
        .expect("a diff");
    assert_eq!(paths(&same), []);
    let format = ArchiveFormat::TarGz;
    let packed = registry.export_in_review(&id, &held, format).await;
    let packed = packed.expect("an archive");
    let usage = registry.skill_usage(registry.head(&id).expect("a head"));
    assert_eq!(usage.expect("usage").reads, 0);

    registry
        .approve(&id, number(2), "read it", &operator())
        .await
        .expect("approved");
    let query = ExportQuery {
        version: held.clone(),
        format,
        info_only: false,
    };
    let exported = registry.export(&id, &query).await.expect("an archive");
    assert_eq!(packed.digest, exported.digest);
    for selector in [
        held,
        VersionSelector::Active,
        VersionSelector::Number(number(1)),
    ] {
        let refused = registry.in_review(&id, &selector).map(|_| ());
        assert_eq!(code(refused.expect_err("not held")), Code::VersionNotHeld);
    }
}

#[tokio::test]
async fn a_blocked_skill_is_read_in_all_its_versions_and_a_deleted_one_in_none() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    world.published(ID, &text("", "two")).await;
    let (id, registry) = (skill(ID), &world.registry);
    registry
        .block(&id, "it leaks", &operator())
        .await
        .expect("blocked");
    let world = world.again().await;
    let registry = &world.registry;
    for (selector, expected) in [
        (VersionSelector::Active, 2),
        (VersionSelector::Number(number(1)), 1),
    ] {
        let described = registry.in_review(&id, &selector).expect("for its review");
        assert_eq!(described.version.number, number(expected));
    }
    let diff = registry
        .diff_in_review(&id, None, &VersionSelector::Active)
        .await;
    assert_eq!(
        paths(&diff.expect("a diff")),
        [("SKILL.md", ChangeKind::Modified)]
    );
    let first = VersionSelector::Number(number(1));
    let alone = registry.diff_in_review(&id, None, &first).await.map(|_| ());
    assert_eq!(
        code(alone.expect_err("none before it")),
        Code::InvalidParameter
    );
    registry.delete(&id, &operator()).await.expect("deleted");
    let gone = registry.in_review(&id, &first).map(|_| ());
    assert_eq!(code(gone.expect_err("deleted")), Code::SkillNotFound);
}

#[tokio::test]
async fn a_comparison_without_another_side_goes_round_what_is_held() {
    let world = World::new();
    world.published(ID, &text("", "one")).await;
    harmful(&world.registry, ID, "two").await;
    harmful(&world.registry, ID, "three").await;
    world.published(ID, &text("", "four")).await;
    let (id, registry) = (skill(ID), &world.registry);
    let diff = registry.diff(&id, None, &VersionSelector::Active).await;
    let diff = diff.expect("a diff");
    assert_eq!(
        (diff.from.version.number, diff.to.version.number),
        (number(1), number(4))
    );
}
