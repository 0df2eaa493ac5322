//! Installs that nothing speaks against, and what requires what.

use super::*;

#[tokio::test]
async fn an_install_says_where_the_skill_is_and_records_what_it_is() {
    let world = World::new();
    let others = [("scripts/run.py", "print(1)\n")];
    world
        .publish_with("github/acme/tool", "1.2.0", "triggers: [test]", &others)
        .await;
    let installed = world.install(wanted("tool")).await;
    let (placed, record) = (&installed.placed, &installed.placed.record);
    assert_eq!(placed.path(), world.at("skills/tool"));
    let script = std::fs::read_to_string(world.at("skills/tool/scripts/run.py"));
    assert_eq!(script.expect("a file"), "print(1)\n");
    assert_eq!(
        (record.id.as_str(), &record.semantic, record.installed_at),
        (
            "github/acme/tool",
            &semantic("1.2.0"),
            jiff::Timestamp::UNIX_EPOCH
        )
    );
    assert_eq!(
        (&*record.server, &*record.verdict, record.method),
        ("local", "passed", Method::Copy)
    );
    assert_eq!(installed.budget.size, record.chars);
    assert!(installed.conflicts.is_empty());
}

#[tokio::test]
async fn what_requires_a_skill_is_told_when_it_is_removed_and_what_is_missing_when_it_comes() {
    let world = World::new();
    world.publish("github/acme/base", "1.0.0", "").await;
    world.publish("github/acme/apart", "1.0.0", "").await;
    let rules = "compatibility_rules: [{type: requires, skill: base}, {type: requires, skill: github/acme/more}]";
    world.publish("github/acme/above", "1.0.0", rules).await;
    let missing = async |skill: &str| {
        let tips = world.install(wanted(skill)).await.tips;
        let tip = tips.into_iter().nth(2).unwrap_or_default();
        tip.rsplit(": ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(missing("github/acme/apart").await, "");
    assert_eq!(
        missing("github/acme/above").await,
        "github/acme/base, github/acme/more"
    );
    let forced = InstallRequest {
        force: true,
        ..wanted("github/acme/above")
    };
    world.install(wanted("github/acme/base")).await;
    let tips = world.install(forced).await.tips;
    assert_eq!(
        tips.last().map(String::as_str),
        Some("It requires what is not installed yet: github/acme/more")
    );
    let removed = world
        .installer
        .uninstall("base".to_owned(), false, false)
        .await
        .expect("removed");
    assert_eq!(removed.removed.record.id, id("github/acme/base"));
    assert_eq!(removed.dependents, [id("github/acme/above")]);
    let removed = world
        .installer
        .uninstall("apart".to_owned(), false, false)
        .await
        .expect("removed");
    assert_eq!(removed.dependents, []);
}
