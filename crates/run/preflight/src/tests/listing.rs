//! What is told of installed skills: from the disk, and from what the server knows by now.

use super::*;
use checks::Installed as _;
use model::{Digest, VersionNumber};
use registry::{Bundle, Sees, UsageKind, View};

impl World {
    /// What is listed of the one skill that is installed.
    async fn listed(&self, health: bool, updates: bool) -> Listed {
        let listed = self.installer.list(health, updates).await.expect("a list");
        let [one] = <[Listed; 1]>::try_from(listed).expect("one skill");
        one
    }

    /// Its health, and what is wrong with it.
    async fn health(&self) -> (Status, Option<String>) {
        let listed = self.listed(true, false).await;
        (listed.status, listed.details)
    }

    /// Withdraws the version that is installed.
    async fn withdraw(&self) {
        let (skill, caller) = (id(TOOL), caller());
        let withdrawn = self
            .registry
            .yank(&skill, VersionNumber::FIRST, "leaks", &caller);
        withdrawn.await.expect("withdrawn");
    }

    /// Has the record of the one skill say that it came with this number and digest.
    fn came_as(&self, number: VersionNumber, digest: Digest) {
        let file = self.at("skills/.repertoire/installed.json");
        let text = std::fs::read_to_string(&file).expect("a record");
        let mut state: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        state["skills"][0]["number"] = number.get().into();
        state["skills"][0]["digest"] = digest.to_string().into();
        std::fs::write(&file, state.to_string()).expect("a record");
    }
}

const TOOL: &str = "github/acme/tool";

/// A world in which version 1.0.0 of a skill is installed.
async fn with_tool() -> World {
    let world = World::new();
    world.publish(TOOL, "1.0.0", "").await;
    world.install(wanted(TOOL)).await;
    world
}

#[tokio::test]
async fn a_newer_version_is_told_where_it_is_asked_for_and_may_be_had() {
    let world = with_tool().await;
    assert_eq!(world.listed(false, true).await.update, None);
    world.publish(TOOL, "1.1.0", "").await;
    let update = |text: &str, is_breaking| {
        let semantic = semantic(text);
        Some(Update {
            semantic,
            is_breaking,
        })
    };
    assert_eq!(
        world.listed(false, true).await.update,
        update("1.1.0", false)
    );
    assert_eq!(
        world.listed(false, false).await.update,
        None,
        "nobody asked"
    );
    world.publish(TOOL, "2.0.0", "").await;
    assert_eq!(
        world.listed(false, true).await.update,
        update("2.0.0", true)
    );
    world.block(TOOL, "It steals keys").await;
    assert_eq!(world.listed(false, true).await.update, None);
}

#[tokio::test]
async fn loads_are_those_of_all_versions_and_the_last_use_is_the_latest() {
    let world = with_tool().await;
    for version in ["1.1.0", "1.2.0"] {
        world.publish(TOOL, version, "").await;
    }
    let head = world.registry.head(&id(TOOL)).expect("a head");
    for (number, loads, seconds) in [(1, 1, 10), (2, 2, 30), (3, 4, 20)] {
        let then = jiff::Timestamp::from_second(seconds).expect("a time");
        world.clock.pass(then.duration_since(world.clock.now()));
        for _ in 0..loads {
            let number = VersionNumber::new(number).expect("a number");
            world.registry.count(&head, number, UsageKind::Load, "s");
        }
    }
    let listed = world.listed(false, false).await;
    assert_eq!(listed.loads, 7);
    let latest = jiff::Timestamp::from_second(30).expect("a time");
    assert_eq!(listed.last_used_at, Some(latest));
    assert_eq!((listed.status, listed.details), (Status::Unknown, None));
}

#[tokio::test]
async fn the_health_of_a_skill_is_the_worse_of_its_files_and_of_what_the_server_knows() {
    let world = with_tool().await;
    assert_eq!(world.health().await, (Status::Healthy, None));
    world.withdraw().await;
    let why = "its version was withdrawn: leaks";
    assert_eq!(
        world.health().await,
        (Status::Warning, Some(why.to_owned()))
    );
    std::fs::write(world.at("skills/tool/SKILL.md"), "other").expect("a file");
    let changed = "changed since it was installed: SKILL.md";
    assert_eq!(
        world.health().await,
        (Status::Warning, Some(format!("{why}; {changed}")))
    );
    std::fs::remove_file(world.at("skills/tool/SKILL.md")).expect("a file");
    assert_eq!(
        world.health().await,
        (Status::Error, Some(format!("{why}; missing: SKILL.md")))
    );
}

#[tokio::test]
async fn a_skill_that_was_blocked_since_is_in_error_though_its_files_are_whole() {
    let world = with_tool().await;
    world.block(TOOL, "It steals keys").await;
    let why = "blocked on this server: It steals keys".to_owned();
    assert_eq!(world.health().await, (Status::Error, Some(why)));
    let unasked = world.listed(false, false).await;
    assert_eq!((unasked.status, unasked.details), (Status::Unknown, None));
}

#[tokio::test]
async fn a_version_that_was_held_since_is_in_error() {
    let world = with_tool().await;
    let files = [
        (
            "SKILL.md",
            skill_md("name: tool\ndescription: Is tool.\nversion: 2.0.0", ""),
        ),
        ("run.sh", ATTACK.to_owned()),
    ];
    let files = files.map(|(path, text)| (path.parse().expect("a path"), Bytes::from(text)));
    let bundle = Bundle {
        id: Some(id(TOOL)),
        files: files.into_iter().collect(),
        ..Bundle::default()
    };
    let prepared = world.registry.prepare(bundle).await.expect("a skill");
    let published = world.registry.publish(prepared, "", true, &caller()).await;
    let held = published.expect("published").version;
    let reason = held.held.expect("it is held");
    // As if it had been installed before the server held it.
    world.came_as(held.number, held.digest);
    let why = format!("held for review on this server: {reason}");
    assert_eq!(world.health().await, (Status::Error, Some(why)));
    // Another server has other files under this number.
    world.came_as(held.number, Digest::of(b"other"));
    assert_eq!(world.health().await, (Status::Healthy, None));
}

#[tokio::test]
async fn what_is_said_of_a_number_is_not_said_of_other_files_under_it() {
    let world = with_tool().await;
    world.withdraw().await;
    world.came_as(VersionNumber::FIRST, Digest::of(b"other"));
    assert_eq!(world.health().await, (Status::Healthy, None));
}

#[test]
fn of_two_findings_the_worse_one_counts_and_what_cannot_be_read_is_better_than_what_is_wrong() {
    use Status::{Error, Healthy, Unknown, Warning};
    let from_mild_to_bad = [Healthy, Unknown, Warning, Error];
    for (at, mild) in from_mild_to_bad.into_iter().enumerate() {
        for bad in from_mild_to_bad.into_iter().skip(at) {
            assert_eq!(
                [worse(mild, bad), worse(bad, mild)],
                [bad, bad],
                "{mild:?} {bad:?}"
            );
        }
    }
}

/// Installs a skill a second time, to another directory, as another agent's server would.
async fn installed_twice() -> World {
    let world = with_tool().await;
    let policy = Policy {
        directory: world.at("others"),
        ..(*world.installer.policy).clone()
    };
    let (home, clock) = (world.at("home"), Arc::clone(&world.clock));
    let other = Installer::new(world.registry.clone(), home, policy, clock);
    let asked = InstallRequest {
        directory: "team".to_owned(),
        ..wanted(TOOL)
    };
    other.install(asked).await.expect("installed");
    assert_eq!(
        world.placed(),
        [
            "github/acme/tool in roots/team",
            "github/acme/tool in skills"
        ]
    );
    world
}

#[tokio::test]
async fn a_skill_in_two_directories_is_one_skill() {
    let world = installed_twice().await;
    let chars = world.listed_chars().await;
    let one = world.installer.placed().expect("a list")[0].record.chars;
    assert_eq!(chars, one);
    let known = |health| world.installer.installed(health).expect("a list");
    assert_eq!(known(false).len(), 1);
    world.block(TOOL, "It steals keys").await;
    let blocked = world.installer.blocked(None).await.expect("a list");
    assert_eq!(blocked, [id(TOOL)]);
}

impl World {
    async fn listed_chars(&self) -> u64 {
        let listed = self.installer.list(false, false).await.expect("a list");
        Installer::used_chars(&listed)
    }
}

#[tokio::test]
async fn a_skill_is_removed_from_everywhere() {
    let world = installed_twice().await;
    let removed = world.installer.uninstall(" tool ".to_owned(), false, false);
    removed.await.expect("removed");
    assert!(world.placed().is_empty());
    let again = world.installer.uninstall("tool".to_owned(), false, false);
    let refused = Failure::from(again.await.expect_err("it is gone"));
    assert_eq!(refused.code, Code::SkillNotInstalled);
}

#[tokio::test]
async fn damage_is_looked_for_where_it_is_asked_for() {
    let world = with_tool().await;
    std::fs::remove_file(world.at("skills/tool/SKILL.md")).expect("a file");
    let damage = |health| {
        let known = world.installer.installed(health).expect("a list");
        known
            .into_iter()
            .map(|skill| skill.damage)
            .collect::<Vec<_>>()
    };
    assert_eq!(damage(false), [None]);
    assert_eq!(damage(true), [Some("missing: SKILL.md".to_owned())]);
}

#[tokio::test]
async fn of_what_is_installed_the_blocked_ones_are_told_all_or_one() {
    let world = with_tool().await;
    for skill in ["github/acme/cook", "github/acme/bake"] {
        world.publish(skill, "1.0.0", "").await;
    }
    world.install(wanted("github/acme/cook")).await;
    // One of them is not installed.
    for skill in ["github/acme/cook", "github/acme/bake"] {
        world.block(skill, "no").await;
    }
    let told = async |only: Option<&str>| {
        let told = world.installer.blocked(only.map(id)).await;
        told.expect("a list")
    };
    let cook = id("github/acme/cook");
    assert_eq!(told(None).await, std::slice::from_ref(&cook));
    assert_eq!(told(Some("GitHub/Acme/cook")).await, [cook]);
    assert_eq!(told(Some(TOOL)).await, []);
    assert_eq!(told(Some("github/acme/bake")).await, []);
}

#[tokio::test]
async fn who_does_not_see_a_skill_is_not_told_that_it_is_installed() {
    #[derive(Debug)]
    struct NotOfAcme;

    impl Sees for NotOfAcme {
        fn sees(&self, id: &SkillId) -> bool {
            !id.as_str().starts_with("github/acme/")
        }
    }

    let world = with_tool().await;
    world.publish("github/other/cook", "1.0.0", "").await;
    world.install(wanted("github/other/cook")).await;
    let view = Arc::new(View::new(Arc::new(NotOfAcme)));
    let told = |registry: Registry| {
        let placed = world.installer.with_skills(registry).placed();
        placed
            .expect("a list")
            .into_iter()
            .map(|placed| placed.record.id)
    };
    let of_view: Vec<_> = told(world.registry.with_view(view)).collect();
    assert_eq!(of_view, [id("github/other/cook")]);
    assert_eq!(told(world.registry.clone()).count(), 2);
}
