//! What a diff of two versions says, and what it does not compare.

use super::*;

#[tokio::test]
async fn a_diff_names_every_key_and_every_file_that_differs() {
    let world = World::new();
    let old = text("1.0.0", "Step one.");
    let new = text("2.0.0", "Step two.").replace("name: refunds", "name: refunds\ncategory: money");
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &old), ("a.md", "a"), ("same.md", "s")],
        &caller(""),
    )
    .await
    .expect("published");
    publish(
        &world.registry,
        ID,
        &[("SKILL.md", &new), ("b.md", "b\n"), ("same.md", "s")],
        &caller(""),
    )
    .await
    .expect("published");
    let diff = world
        .registry
        .diff(&skill(ID), None, &VersionSelector::Active)
        .await
        .expect("a diff");
    let fields: Vec<_> = diff
        .fields
        .iter()
        .map(|f| (f.field.as_str(), f.change.kind()))
        .collect();
    assert_eq!(
        fields,
        [
            ("category", ChangeKind::Added),
            ("version", ChangeKind::Modified)
        ]
    );
    let files: Vec<_> = diff
        .files
        .iter()
        .map(|f| (f.path.as_str(), f.change.kind()))
        .collect();
    assert_eq!(
        files,
        [
            ("SKILL.md", ChangeKind::Modified),
            ("a.md", ChangeKind::Removed),
            ("b.md", ChangeKind::Added)
        ]
    );
    assert_eq!(
        diff.files[2].lines,
        Lines::Unified("--- a/b.md\n+++ b/b.md\n@@ -0,0 +1 @@\n+b\n".to_owned())
    );
    let Lines::Unified(lines) = &diff.files[0].lines else {
        panic!("no lines: {:?}", diff.files[0].lines);
    };
    assert!(lines.contains("-Step one.\n+Step two.\n"), "{lines}");
    let same = world
        .registry
        .diff(&skill(ID), Some(number(1).into()), &number(1).into())
        .await
        .expect("a diff");
    assert_eq!((same.fields.len(), same.files.len()), (0, 0));
    let first = world
        .registry
        .diff(&skill(ID), None, &number(1).into())
        .await
        .map(|_| ())
        .expect_err("none before");
    assert_eq!(code(first), Code::InvalidParameter);
}

#[tokio::test]
async fn what_a_diff_does_not_compare_it_says_file_by_file() {
    // A file that nobody can read is a warning.
    let (_directory, registry) = super::holds::holding(HoldPolicy::Failed);
    let lines = |count: usize, first: usize| -> String {
        let lines = (first..first + count).map(|at| at.to_string());
        lines.collect::<Vec<_>>().join("\n") + "\n"
    };
    for version in 1..=2_usize {
        let half = lines::MAX_LINES / 2;
        let (full, over) = (
            lines(half, version * 100_000),
            lines(half + 1, version * 100_000),
        );
        let long = "x".repeat(256 * 1024) + &version.to_string();
        let skill_md = text(&format!("{version}.0.0"), "body");
        let binary = format!("\0{version}");
        let mut files = vec![
            ("SKILL.md", skill_md.as_str()),
            ("a-binary", &binary),
            ("a-lines.md", &over),
            ("a-long.md", &long),
            ("b.md", &full),
            ("c.md", &full),
            ("d.md", &full),
            ("e.md", &full),
        ];
        if version == 2 {
            files.push(("f.md", "small\n"));
        }
        let published = publish(&registry, ID, &files, &caller("")).await;
        published.expect("a version");
    }
    let diff = registry
        .diff(&skill(ID), None, &VersionSelector::Active)
        .await;
    let files = diff.expect("a diff").files;
    let seen: Vec<_> = files
        .iter()
        .map(|file| {
            let lines = match &file.lines {
                Lines::Unified(text) => text.lines().nth(2).unwrap_or_default().to_owned(),
                other => format!("{other:?}"),
            };
            format!("{} {lines}", file.path)
        })
        .collect();
    assert_eq!(
        seen,
        [
            "SKILL.md @@ -1,6 +1,6 @@",
            "a-binary NotText",
            "a-lines.md TooLarge",
            "a-long.md TooLarge",
            "b.md @@ -1,10000 +1,10000 @@",
            "c.md @@ -1,10000 +1,10000 @@",
            "d.md @@ -1,10000 +1,10000 @@",
            "e.md OverBudget",
            "f.md @@ -0,0 +1 @@",
        ]
    );
}
