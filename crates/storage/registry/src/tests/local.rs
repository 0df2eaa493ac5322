//! Skills of folders in front of those of the store.

use super::*;
use executor::Stop;

fn text(name: &str, word: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Says {word}.\ncategory: {word}\n---\nIt says {word}.\n"
    )
}

fn local(
    registry: &Registry,
    author: &str,
    text: &str,
    before: Option<&Arc<LocalSkill>>,
) -> Arc<LocalSkill> {
    let bundle = Bundle {
        id: None,
        ..bundle(
            "local/global/any",
            &[("SKILL.md", text), ("notes.md", "Notes.")],
        )
    };
    let read = registry.read_local(
        &bundle,
        author,
        before,
        &mut LocalPast::default(),
        &Stop::never(),
    );
    read.expect("a skill")
}

/// The skill of a folder, and the same after a change.
fn changed(registry: &Registry) -> [Arc<LocalSkill>; 2] {
    let first = local(registry, "project", &text("a", "one"), None);
    let second = local(registry, "project", &text("a", "two"), Some(&first));
    [first, second]
}

/// The same of a folder that was no skill until now, in a place that had some.
fn come_back(registry: &Registry, text: &str, past: &mut LocalPast) -> (u64, bool) {
    let bundle = Bundle {
        id: None,
        ..bundle("local/global/any", &[("SKILL.md", text)])
    };
    let read = registry.read_local(&bundle, "project", None, past, &Stop::never());
    let skill = read.expect("a skill");
    (skill.version().number.get().into(), skill.held().is_some())
}

fn named(catalog: &Catalog, name: &str) -> Vec<String> {
    catalog
        .named(name)
        .map(|head| head.id.to_string())
        .collect()
}

#[tokio::test]
async fn names_go_to_the_project_then_the_user_then_the_store() {
    let world = World::new();
    world.published("github/acme/a", &text("a", "stored")).await;
    world
        .published("local/project/b", &text("b", "stored"))
        .await;
    let base = &world.registry;
    let skills = [
        local(base, "user", &text("a", "user"), None),
        local(base, "project", &text("a", "project"), None),
        local(base, "project", &text("b", "folder"), None),
    ];
    let events = world.events();
    let seen = base.with_local(Arc::new(LocalSkills::new(skills)));
    let catalog = seen.catalog();
    assert_eq!(
        named(&catalog, "a"),
        ["local/project/a", "local/user/a", "github/acme/a"]
    );
    // Of one id the one in the folder, and the other is known.
    assert_eq!(named(&catalog, "b"), ["local/project/b"]);
    let b = skill("local/project/b").key();
    assert!(catalog.get(&b).is_some_and(|head| head.is_local()));
    assert!(catalog.hidden(&b).is_some_and(|head| !head.is_local()));
    assert_eq!((catalog.live(), catalog.len()), (4, 4));
    // Lists and facets are those of what is seen.
    let category = |word: &str| {
        let keys = catalog
            .with_facet(&Facet::category(word))
            .into_iter()
            .flatten();
        keys.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(category("folder"), ["local/project/b"]);
    assert_eq!(category("stored"), ["github/acme/a"]);
    let listed: Vec<_> = catalog.live_after("local/project/", None).collect();
    assert_eq!(listed.len(), 2);
    // The one behind is what it was, and nothing happened to it.
    assert_eq!(named(&base.catalog(), "a"), ["github/acme/a"]);
    assert!(base.catalog().get(&b).is_some_and(|head| !head.is_local()));
    assert_eq!(world.events(), events);
    // It is put together once for each catalog that it is in front of.
    assert!(Arc::ptr_eq(&catalog, &seen.catalog()));
    world.published("github/acme/c", &text("c", "stored")).await;
    assert_eq!(named(&seen.catalog(), "c"), ["github/acme/c"]);
    assert_eq!(seen.catalog().len(), 5);
}

#[tokio::test]
async fn what_is_read_is_of_the_skill_that_the_head_is_of() {
    let world = World::new();
    let id = skill("local/project/a");
    world
        .published("local/project/a", &text("a", "stored"))
        .await;
    let base = &world.registry;
    let skills = Arc::new(LocalSkills::new([local(
        base,
        "project",
        &text("a", "folder"),
        None,
    )]));
    let seen = base.with_local(skills);
    let described = |registry: &Registry| {
        let described = registry
            .describe(&id, &VersionSelector::Active)
            .expect("a version");
        described.version.skill.description.clone()
    };
    assert_eq!(
        [described(&seen), described(base)],
        ["Says folder.", "Says stored."]
    );
    // A head leads to its own version whichever registry is asked.
    let (here, there) = (
        seen.head(&id).expect("a head"),
        base.head(&id).expect("a head"),
    );
    let says = |registry: &Registry, head: &Head| {
        let version = registry
            .version(head, &VersionSelector::Active)
            .expect("a version");
        version.skill.description.clone()
    };
    assert_eq!(
        [says(base, &here), says(&seen, &there)],
        ["Says folder.", "Says stored."]
    );
    let version = seen
        .version(&here, &VersionSelector::Active)
        .expect("a version");
    let file = seen.file(&id, &version, "notes.md").await.expect("a file");
    assert_eq!(file, "Notes.");
    let page = seen.list_versions(&id, 10, "").expect("versions");
    assert_eq!((page.versions.len(), page.next), (1, None));
    let releases = seen.releases(&here).expect("releases");
    assert_eq!(
        releases.iter().map(|r| r.digest).collect::<Vec<_>>(),
        [version.digest]
    );
    let semantic = VersionSelector::Semantic(version.semantic.clone());
    assert!(seen.version(&here, &semantic).is_ok());
    let other = VersionSelector::Semantic(semver::Version::new(9, 0, 0));
    assert!(matches!(
        seen.version(&here, &other),
        Err(Error::VersionNotFound { .. })
    ));
    let query = ExportQuery {
        version: VersionSelector::Active,
        format: ArchiveFormat::Zip,
        info_only: false,
    };
    let archive = seen.export(&id, &query).await.expect("an archive");
    assert_eq!(archive.of.version.digest, version.digest);
    assert!(
        seen.diff(&id, None, &VersionSelector::Active)
            .await
            .is_err(),
        "there is none before it"
    );
    let scanned = seen.scan_version(&id, &VersionSelector::Active).await;
    assert!(scanned.expect("a scan").changes.is_none());
    // Its uses are nobody's.
    seen.count(&here, version.number, UsageKind::Load, "session");
    assert_eq!(seen.usage(&here).expect("usage"), []);
    assert_eq!(base.usage(&there).expect("usage"), []);
}

#[tokio::test]
async fn a_folder_has_one_version_whose_number_grows_with_its_changes() {
    let world = World::new();
    let base = &world.registry;
    let [first, second] = changed(base);
    let same = local(base, "project", &text("a", "one"), Some(&first));
    assert!(Arc::ptr_eq(&first, &same));
    let numbers = [&first, &second].map(|skill| {
        let version = skill.version();
        (version.number.get(), version.semantic.to_string())
    });
    assert_eq!(numbers, [(1, "1.0.0".to_owned()), (2, "1.0.1".to_owned())]);
    let seen = base.with_local(Arc::new(LocalSkills::new([second])));
    let head = seen.head(&skill("local/project/a")).expect("a head");
    let gone = seen.version(&head, &VersionSelector::Number(number(1)));
    assert!(matches!(gone, Err(Error::VersionNotFound { .. })));
}

#[tokio::test]
async fn what_was_held_in_a_folder_stays_held_whatever_is_saved_after_it() {
    let base = cautious();
    let asks = format!("{}Read https://status.acme-tools.io/s.\n", text("a", "b"));
    let mut before = None;
    let mut held = Vec::new();
    // The host is new in the second, and still so in those that follow, until it is gone.
    let more = [format!("{asks}More.\n"), format!("{asks}Yet more.\n")];
    let texts = [&text("a", "b"), &asks, &more[0], &more[1], &text("a", "c")];
    for text in texts {
        let skill = local(&base, "project", text, before.as_ref());
        held.push((skill.version().number.get(), skill.held().is_some()));
        before = Some(skill);
    }
    let wanted = [(1, false), (2, true), (3, true), (4, true), (5, false)];
    assert_eq!(held, wanted);
}

#[tokio::test]
async fn what_is_held_in_a_folder_is_held_after_it_was_no_skill_for_a_moment() {
    let base = cautious();
    let asks = format!("{}Read https://status.acme-tools.io/s.\n", text("a", "b"));
    let mut past = LocalPast::default();
    let more = format!("{asks}More.\n");
    let texts = [&text("a", "b"), &asks, &asks, &more];
    let seen = texts.map(|text| come_back(&base, text, &mut past));
    assert_eq!(seen, [(1, false), (2, true), (2, true), (3, true)]);
}

#[tokio::test]
async fn a_folder_around_an_agent_is_held_for_a_warning_only_where_the_operator_asks_for_it() {
    let warned = format!("{}{}\n", text("a", "b"), super::holds::WARNED);
    let is_held = |hold| {
        let (_directory, registry) = super::holds::holding(hold);
        let skill = local(&registry, "project", &warned, None);
        let seen = registry.with_local(Arc::new(LocalSkills::new([Arc::clone(&skill)])));
        let warned = seen
            .local_heads()
            .iter()
            .map(|head| head.is_warned())
            .collect();
        (skill.held().is_some(), warned)
    };
    let served: (bool, Vec<bool>) = (false, vec![true]);
    assert_eq!(is_held(HoldPolicy::default()), served);
    assert_eq!(is_held(HoldPolicy::Failed), served);
    assert_eq!(is_held(HoldPolicy::Warning), (true, Vec::new()));
}

/// A registry that holds what does something new.
fn cautious() -> Registry {
    let store = Store::in_memory(&Options::default());
    let policy = Policy {
        hold: HoldPolicy::Changes,
        ..Policy::default()
    };
    let clock = Arc::new(Hands::default());
    let base = Registry::open_with(store, clock, Executor::default(), policy);
    base.expect("a registry")
}

#[tokio::test]
async fn a_copy_of_a_skill_of_the_store_is_that_skill() {
    let world = World::new();
    let files = [("SKILL.md", &*text("a", "same")), ("notes.md", "Notes.")];
    let published = publish(&world.registry, "github/acme/a", &files, &caller("")).await;
    published.expect("published");
    let base = &world.registry;
    let copy = local(base, "project", &text("a", "same"), None);
    let seen = base.with_local(Arc::new(LocalSkills::new([copy])));
    assert_eq!(named(&seen.catalog(), "a"), ["github/acme/a"]);
    // Where the store goes on, the folder holds another one.
    world.published("github/acme/a", &text("a", "newer")).await;
    assert_eq!(
        named(&seen.catalog(), "a"),
        ["local/project/a", "github/acme/a"]
    );
}

#[tokio::test]
async fn names_that_nobody_may_give_are_refused_and_writes_go_to_the_store() {
    let world = World::new();
    let base = &world.registry;
    let bundle = bundle("local/global/x", &[("SKILL.md", "no front matter")]);
    let refused = base.read_local(
        &bundle,
        "project",
        None,
        &mut LocalPast::default(),
        &Stop::never(),
    );
    assert!(matches!(refused, Err(Error::Invalid { .. })));
    let seen = base.with_local(Arc::new(LocalSkills::new([local(
        base,
        "project",
        &text("a", "folder"),
        None,
    )])));
    let id = "local/project/a";
    let written = publish(
        &seen,
        id,
        &[("SKILL.md", &text("a", "stored"))],
        &caller(""),
    )
    .await;
    assert_eq!(written.expect("published").version.number.get(), 1);
    assert!(base.catalog().get(&skill(id).key()).is_some());
    assert!(seen.catalog().hidden(&skill(id).key()).is_some());
    let deleted = seen.delete(&skill(id), &caller("")).await.expect("deleted");
    assert_eq!(deleted.versions, 1);
    assert!(base.catalog().is_empty());
    assert!(seen.head(&skill(id)).expect("a head").is_local());
}

#[test]
fn folders_that_are_no_skills_are_known_with_the_reason() {
    let refused = BTreeMap::from([("draft".to_owned(), "it has no description".to_owned())]);
    let skills = LocalSkills::default().with_refused(refused.clone());
    assert_eq!(skills.refused(), &refused);
    assert_eq!((skills.len(), skills.is_empty()), (0, true));
}

#[tokio::test]
async fn a_page_of_the_versions_of_a_folder_goes_on_below_its_token() {
    let world = World::new();
    let base = &world.registry;
    let [_, second] = changed(base);
    let id = skill("local/project/a");
    let seen = base.with_local(Arc::new(LocalSkills::new([second])));
    let numbers = |token: &str| {
        let page = seen.list_versions(&id, 10, token).expect("a page");
        assert!(page.next.is_none());
        let versions = page.versions.iter();
        versions
            .map(|it| it.version.number.get())
            .collect::<Vec<_>>()
    };
    let after = |number: &str| model::seal_token("versions", id.key().as_str(), number);
    assert_eq!(numbers(""), [2]);
    assert_eq!(numbers(&after("3")), [2]);
    assert_eq!(numbers(&after("2")), Vec::<u32>::new());
}
