//! Ways to a file, and what of it is counted.

use super::*;
use registry::VersionUsage;

const ID: &str = "github/acme/refunds";

async fn refunds() -> World {
    let text = "---\nname: refunds\ndescription: x\n---\nBody\n";
    let files = [
        ("SKILL.md", text.as_bytes()),
        ("references/a.md", b"guide"),
        ("references/deep/b.md", b"more"),
    ];
    World::new().with_files(ID, &files).await
}

#[tokio::test]
async fn an_address_may_lack_its_scheme_and_have_a_short_name_before_a_file() {
    let world = refunds().await;
    for (address, path) in [
        ("refunds", "SKILL.md"),
        (" ./refunds", "SKILL.md"),
        ("/github/acme/refunds", "SKILL.md"),
        ("github/acme/refunds/references/a.md", "references/a.md"),
        ("refunds/references/a.md", "references/a.md"),
        ("skill://refunds/references/a.md", "references/a.md"),
        (
            " skill://refunds/references/deep/b.md ",
            "references/deep/b.md",
        ),
    ] {
        let text = world.lookup.read(address, "").await.expect(address);
        assert_eq!(text.uri.to_string(), format!("skill://{ID}/{path}"));
    }
    let nowhere = world.lookup.read("nobody/references/a.md", "").await;
    assert_eq!(
        code(nowhere.map(|_| ()).expect_err("no such skill")),
        Code::SkillNotFound
    );
}

#[tokio::test]
async fn a_path_may_begin_with_what_means_nothing_or_be_an_address() {
    let world = refunds().await;
    let other = Reference::parse("nobody");
    let skill = Reference::parse("refunds");
    for (reference, path) in [
        (&skill, "references/a.md"),
        (&skill, "./references/a.md"),
        (&skill, " /references/a.md "),
        (&other, "skill://refunds/references/a.md"),
    ] {
        let part = world
            .lookup
            .file(reference, &VersionSelector::Active, path, (0, 0), "")
            .await
            .expect(path);
        assert_eq!(part.file.path.as_str(), "references/a.md");
        assert_eq!(&part.bytes[..], b"guide");
    }
}

#[tokio::test]
async fn a_file_that_is_handed_out_is_a_read_of_its_version() {
    let world = refunds().await;
    world.lookup.read("refunds", "s").await.expect("a text");
    world.lookup.activate("refunds", "s").await.expect("a text");
    let missing = world.lookup.read("refunds/none.md", "s").await;
    missing.map(|_| ()).expect_err("no such file");
    let head = world
        .registry
        .head(&ID.parse().expect("an id"))
        .expect("a skill");
    let usage = world.registry.usage(&head).expect("usage");
    let counts: Vec<_> = usage
        .into_iter()
        .map(|(version, usage)| {
            let VersionUsage {
                loads,
                reads,
                sessions,
                ..
            } = usage;
            (version.get(), loads, reads, sessions)
        })
        .collect();
    assert_eq!(counts, [(1, 0, 2, 1)]);
}
