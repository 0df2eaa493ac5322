//! What is known of a skill, and done to it, by the words for it.

use super::*;
use executor::Stop;
use model::{Principal, VersionNumber, VersionSelector};
use registry::{Bundle, Caller, LocalPast, LocalSkills};

const ID: &str = "local/global/refunds";

async fn two_versions() -> World {
    let world = World::new().with(ID, "name: refunds").await;
    world.with(ID, "name: refunds\nlicense: MIT").await
}

#[tokio::test]
async fn a_version_comes_with_as_many_of_the_newest_as_are_asked_for() {
    let world = two_versions().await;
    let (skill, first) = (Reference::parse("Refunds"), VersionNumber::FIRST);
    let versions = |newest| {
        let found = world.lookup.with_versions(&skill, &first.into(), newest);
        let (found, versions) = found.expect("a version");
        let numbers = versions.iter().map(|version| version.version.number.get());
        (
            found.described.version.number,
            numbers.collect::<Vec<u32>>(),
        )
    };
    assert_eq!(versions(0), (first, vec![]));
    assert_eq!(versions(1), (first, vec![2]));
    assert_eq!(versions(9), (first, vec![2, 1]));
}

#[tokio::test]
async fn every_question_takes_a_short_name() {
    let world = two_versions().await;
    let skill = Reference::parse("refunds");
    let page = world.lookup.versions(&skill, 1, "").expect("a page");
    let diff = world
        .lookup
        .diff(&skill, None, &VersionSelector::Active)
        .await
        .expect("a diff");
    let usage = world.lookup.usage(&skill).expect("usage");
    let active = VersionSelector::Active;
    let read = world.lookup.instructions(&skill, &active).await;
    let (described, body) = read.expect("instructions");
    let query = registry::ExportQuery {
        version: VersionNumber::FIRST.into(),
        format: registry::ArchiveFormat::Zip,
        info_only: true,
    };
    let archive = world
        .lookup
        .export(&skill, &query)
        .await
        .expect("an archive");
    let ids = [
        &page.head.id,
        &diff.to.head.id,
        &usage.head.id,
        &described.head.id,
        &archive.of.head.id,
    ];
    assert_eq!(ids.map(ToString::to_string), [ID; 5]);
    assert_eq!((page.versions.len(), page.next.is_some()), (1, true));
    assert_eq!(
        (diff.from.version.number.get(), diff.to.version.number.get()),
        (1, 2)
    );
    assert_eq!(body, format!("Body of {ID}.\n"));
    assert_eq!(archive.of.version.number, VersionNumber::FIRST);
}

#[tokio::test]
async fn a_write_takes_the_full_id_of_a_skill_alone() {
    let world = two_versions()
        .await
        .with("a/b/refunds", "name: refunds")
        .await;
    let delete = async |skill: &str| {
        let caller = Caller::new(Principal::anonymous());
        let delete = async |id| world.registry.delete(&id, &caller).await;
        let deleted = world.lookup.write(skill, delete).await;
        deleted
            .map(|deleted| deleted.versions)
            .map_err(Failure::from)
    };
    let uri = format!("skill://{ID}/SKILL.md");
    let both = [ID, "a/b/refunds"];
    for (skill, meant) in [
        ("refunds", &both[..]),
        ("/Refunds", &both),
        (&uri, &[ID]),
        ("other", &[]),
        ("", &[]),
    ] {
        let refused = delete(skill).await.expect_err("no id");
        let meant = meant
            .iter()
            .map(|id| format!("Write {id}, if you mean this skill"));
        let last = "Write the id as `source/author/slug`; the list of skills has it".to_owned();
        let expected: Vec<_> = meant.chain([last]).collect();
        assert_eq!(
            (refused.code, refused.suggestions),
            (Code::FullIdRequired, expected),
            "{skill}"
        );
    }
    assert_eq!(delete(ID).await.map_err(|refused| refused.code), Ok(2));
}

/// The skills of a registry with one of a folder in front.
fn with_local(registry: &Registry, name: &str) -> Lookup {
    let text = format!("---\nname: {name}\ndescription: Of a folder.\n---\nBody.\n");
    let bundle = Bundle {
        files: [("SKILL.md".parse().expect("a path"), text.into())].into(),
        ..Bundle::default()
    };
    let mut past = LocalPast::default();
    let local = registry.read_local(&bundle, "project", None, &mut past, &Stop::never());
    let local = LocalSkills::new([local.expect("a skill")]);
    Lookup::new(registry.with_local(Arc::new(local)))
}

#[tokio::test]
async fn a_skill_of_a_folder_says_which_of_the_store_it_hides() {
    let mut world = World::new();
    for id in ["local/project/b", "github/acme/b"] {
        world = world.with(id, "name: b").await;
    }
    let found = |world: &World, words: &str| {
        let lookup = with_local(&world.registry, "b");
        let found = lookup.resolve(&Reference::parse(words)).expect("a skill");
        assert!(found.head.is_local(), "{words}");
        let shadowed = found.shadowed.into_iter();
        shadowed.map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(found(&world, "b"), ["local/project/b", "github/acme/b"]);
    assert_eq!(found(&world, "local/project/b"), ["local/project/b"]);
    // What was withdrawn is not there to be hidden.
    world = world.without("local/project/b").await;
    assert_eq!(found(&world, "b"), ["github/acme/b"]);
    assert_eq!(found(&world, "local/project/b"), [] as [String; 0]);
}
