//! Where skills go, and what is told of it.

use super::*;

#[tokio::test]
async fn a_caller_names_the_operators_directory_or_one_below_a_root() {
    let world = World::with(|at, policy| policy.person = Some(at.join("roots/ada")));
    let directory = |text: &str, folder: Option<PathBuf>| {
        let asked = InstallRequest {
            directory: text.to_owned(),
            folder,
            ..wanted("x")
        };
        world.installer.directory(&asked).ok()
    };
    let own = world.at("skills").display().to_string();
    for (text, expected) in [
        ("", "skills"),
        ("  ", "skills"),
        (&*own, "skills"),
        ("team/skills", "roots/team/skills"),
        (" team ", "roots/team"),
        ("~/agents", "roots/ada/agents"),
    ] {
        assert_eq!(directory(text, None), Some(world.at(expected)), "{text}");
    }
    // Where the operator names roots, the caller's own folder is none.
    let project = world.at("project");
    std::fs::create_dir(&project).expect("a folder");
    let inside = project.join("skills").display().to_string();
    for text in ["/etc", "../x", "~/../../x", &inside] {
        assert_eq!(directory(text, Some(project.clone())), None, "{text}");
    }
}

#[tokio::test]
async fn where_the_operator_names_no_root_the_callers_folder_is_one() {
    let world = World::with(|_, policy| policy.roots.clear());
    let project = world.at("project");
    std::fs::create_dir(&project).expect("a folder");
    let directory = |text: &str, folder: Option<&PathBuf>| {
        let asked = InstallRequest {
            directory: text.to_owned(),
            folder: folder.cloned(),
            ..wanted("x")
        };
        world.installer.directory(&asked).ok()
    };
    assert_eq!(
        directory("skills", Some(&project)),
        Some(world.at("project/skills"))
    );
    assert_eq!(directory("../x", Some(&project)), None);
    assert_eq!(directory("skills", None), None);
}

#[tokio::test]
async fn a_path_in_the_home_of_the_servers_user_is_told_as_people_write_it() {
    let world = World::with(|_, policy| policy.person = Some("/home/ada".into()));
    let told = ["/home/ada/skills/x", "/home/adam/x", "/srv/x"]
        .map(|path| world.installer.shown(Path::new(path)));
    assert_eq!(told, ["~/skills/x", "/home/adam/x", "/srv/x"]);
    let told = World::new().installer.shown(Path::new("/home/ada/x"));
    assert_eq!(told, "/home/ada/x");
}

#[test]
fn installs_follow_the_config() {
    let (data, person) = (Path::new("/data"), PathBuf::from("/home/ada"));
    let usual = InstallConfig::default();
    let told = |policy: &Policy| {
        let paths = [&policy.directory].into_iter().chain(&policy.roots);
        let paths = paths.map(|path| path.display().to_string());
        (
            paths.collect::<Vec<_>>(),
            policy.method,
            policy.min_trust_tier,
            policy.budget_chars,
        )
    };
    let all = (Method::Copy, TrustTier::Unverified, 50_000);
    let of_person = usual.policy(data, Some(person.clone()));
    assert_eq!(
        told(&of_person),
        (
            vec!["/home/ada/.claude/skills".to_owned()],
            all.0,
            all.1,
            all.2
        )
    );
    assert_eq!(of_person.person, Some(person.clone()));
    assert_eq!(
        told(&usual.policy(data, None)),
        (vec!["/data/skills".to_owned()], all.0, all.1, all.2)
    );
    let other = InstallConfig {
        directory: Some("~/agents".into()),
        roots: vec!["~/work".into(), "/srv".into()],
        method: Method::Symlink,
        min_trust_tier: TrustTier::Verified,
        budget_chars: 7,
    };
    let paths = ["/home/ada/agents", "/home/ada/work", "/srv"];
    assert_eq!(
        told(&other.policy(data, Some(person))),
        (
            paths.map(str::to_owned).to_vec(),
            Method::Symlink,
            TrustTier::Verified,
            7
        )
    );
}

#[tokio::test]
async fn another_version_goes_where_the_one_before_it_is() {
    let world = World::new();
    world.publish("github/acme/tool", "1.0.0", "").await;
    let elsewhere = InstallRequest {
        directory: "team".to_owned(),
        ..wanted("github/acme/tool")
    };
    world.install(elsewhere).await;
    world.publish("github/acme/tool", "2.0.0", "").await;
    let renewed = InstallRequest {
        version: VersionSelector::Semantic(semantic("2.0.0")),
        ..wanted("github/acme/tool")
    };
    let installed = world.install(renewed).await;
    assert_eq!(installed.placed.record.semantic, semantic("2.0.0"));
    assert_eq!(world.placed(), ["github/acme/tool in roots/team"]);
}

#[tokio::test]
async fn a_skill_comes_as_the_caller_says_else_as_the_operator_does() {
    for (of_policy, of_caller, expected) in [
        (Method::Copy, None, Method::Copy),
        (Method::Symlink, None, Method::Symlink),
        (Method::Copy, Some(Method::Symlink), Method::Symlink),
        (Method::Symlink, Some(Method::Copy), Method::Copy),
    ] {
        let world = World::with(|_, policy| policy.method = of_policy);
        world.publish("github/acme/tool", "1.0.0", "").await;
        let asked = InstallRequest {
            method: of_caller,
            ..wanted("github/acme/tool")
        };
        let placed = world.install(asked).await.placed;
        let is_link = placed.path().is_symlink();
        assert_eq!(
            (placed.record.method, is_link),
            (expected, expected == Method::Symlink)
        );
    }
}

#[tokio::test]
async fn the_same_folder_in_another_directory_is_in_nobodys_way() {
    let world = World::new();
    world.publish("github/acme/tool", "1.0.0", "").await;
    world.publish("github/other/tool", "1.0.0", "").await;
    world.install(wanted("github/acme/tool")).await;
    let beside = wanted("github/other/tool");
    assert_eq!(
        world.refused(beside.clone()).await.code,
        Code::ConflictDetected
    );
    // Whatever is given up, the folder is that of another skill.
    let all_given_up = InstallRequest {
        force: true,
        skip_conflict_check: true,
        ..beside.clone()
    };
    let refused = world.refused(all_given_up).await;
    assert_eq!(
        (refused.code, refused.details.get("conflicting_skill")),
        (Code::ConflictDetected, Some(&"github/acme/tool".to_owned()))
    );
    let elsewhere = InstallRequest {
        directory: "team".to_owned(),
        ..beside
    };
    world.install(elsewhere).await;
    assert_eq!(
        world.placed(),
        [
            "github/acme/tool in skills",
            "github/other/tool in roots/team"
        ]
    );
}

#[tokio::test]
async fn what_calls_a_skill_up_is_the_same_for_an_agent_and_for_a_comparison() {
    let world = World::new();
    for (skill, says) in [
        (
            "github/acme/stated",
            "description: Is it.\ntriggers: [Pay, pays, refund a customer]",
        ),
        (
            "github/acme/described",
            "description: Formats invoices. Use when formatting an invoice, or when totals are wrong.",
        ),
        ("github/acme/silent", "description: Formats."),
    ] {
        let text = skill_md(&format!("name: {}\n{says}", id(skill).slug()), "Do it.");
        publish(
            &world.registry,
            skill,
            &[("SKILL.md", text.as_bytes())],
            true,
        )
        .await;
        world.install(wanted(skill)).await;
        let head = world.registry.head(&id(skill)).expect("a skill");
        let version = world.registry.version(&head, &VersionSelector::Active);
        let compared = checks::Triggers::of(&version.expect("a version").skill);
        let effective = async || {
            let order = world.installer.priorities(vec![skill.to_owned()]).await;
            order.expect("an order").skills.remove(0).triggers
        };
        let compared: Vec<&str> = compared.texts().collect();
        // Nothing but its name calls a skill up that says no more.
        let compared = if compared.is_empty() {
            vec!["silent"]
        } else {
            compared
        };
        assert_eq!(effective().await, compared, "{skill}");
        // Records were without the phrases of descriptions once.
        let file = world.at("skills/.repertoire/installed.json");
        let text = std::fs::read_to_string(&file).expect("a record");
        let mut state: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let records = state["skills"].as_array_mut().expect("records");
        for record in records {
            record.as_object_mut().expect("a record").remove("triggers");
        }
        std::fs::write(&file, state.to_string()).expect("a record");
        assert_eq!(effective().await, compared, "{skill}");
    }
}

#[tokio::test]
async fn triggers_are_of_the_first_skill_that_has_them_and_places_can_be_given() {
    let world = World::new();
    for (skill, front_matter) in [
        ("github/acme/jest", "triggers: [Test, jest]"),
        ("github/acme/vitest", "triggers: [\" test \", vitest]"),
        ("github/acme/plain", ""),
    ] {
        world.publish(skill, "1.0.0", front_matter).await;
        let asked = InstallRequest {
            skip_conflict_check: true,
            ..wanted(skill)
        };
        world.install(asked).await;
    }
    let told = async |only: &[&str]| {
        let only = only.iter().map(|skill| (*skill).to_owned()).collect();
        let order = world.installer.priorities(only).await.expect("an order");
        let skills = order.skills.iter().map(|ranked| {
            let lock = if ranked.locked { " locked" } else { "" };
            let triggers = ranked.triggers.join(",");
            format!("{} {}{lock}: {triggers}", ranked.place, ranked.name)
        });
        (order.is_manual, skills.collect::<Vec<_>>())
    };
    let by_age = ["1 jest: test,jest", "2 vitest: vitest", "3 plain: plain"];
    assert_eq!(told(&[]).await, (false, by_age.map(str::to_owned).to_vec()));
    let moved = world
        .installer
        .set_priority("vitest".to_owned(), 1, true)
        .await
        .expect("a place");
    let moved: Vec<_> = moved
        .iter()
        .map(|moved| (moved.id.slug(), moved.from, moved.to))
        .collect();
    assert_eq!(moved, [("vitest", 2, 1), ("jest", 1, 2)]);
    let (is_manual, skills) = told(&["jest", "github/acme/vitest"]).await;
    assert!(is_manual);
    assert_eq!(skills[1], "2 jest: jest");
    assert!(skills[0].starts_with("1 vitest locked: "), "{skills:?}");
    let nobody = world.installer.set_priority("nobody".to_owned(), 1, false);
    let refused = Failure::from(nobody.await.expect_err("it is not installed"));
    assert_eq!(refused.code, Code::SkillNotInstalled);
}
