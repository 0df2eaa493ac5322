//! Who requires a skill, by the rules of all.

use super::*;
use model::Reference;

fn requiring(name: &str, targets: &[&str]) -> String {
    let rule = |target: &&str| format!("{{type: requires, skill: \"{target}\"}}");
    let rules: Vec<_> = targets.iter().map(rule).collect();
    format!(
        "---\nname: {name}\ndescription: D.\ncompatibility_rules: [{}]\n---\nBody.\n",
        rules.join(", ")
    )
}

async fn world(skills: &[(&str, &str, &[&str])]) -> World {
    let world = World::new();
    for (id, name, targets) in skills {
        world.published(id, &requiring(name, targets)).await;
    }
    world
}

fn dependents(world: &World, of: &str) -> Vec<String> {
    let catalog = world.registry.catalog();
    let keys = catalog.dependents(&Reference::parse(of));
    keys.iter().map(|key| key.as_str().to_owned()).collect()
}

const SKILLS: &[(&str, &str, &[&str])] = &[
    ("github/acme/write_sql", "write_sql", &["write_sql"]),
    ("github/zeta/write_sql", "write_sql", &[]),
    ("github/a/by-id", "by-id", &["github/acme/Write_SQL@^1.2"]),
    ("github/a/by-name", "by-name", &["WRITE_SQL", "nowhere"]),
    ("github/a/by-spelling", "by-spelling", &["/write-sql@2"]),
    ("github/a/of-zeta", "of-zeta", &["github/zeta/write_sql"]),
    ("github/a/of-none", "of-none", &[]),
];

#[tokio::test]
async fn a_skill_is_required_by_its_id_and_by_every_name_that_leads_to_it() {
    let world = world(SKILLS).await;
    let of_acme = ["github/a/by-id", "github/a/by-name", "github/a/by-spelling"];
    for name in ["github/acme/write_sql", "write_sql", "Write-SQL"] {
        assert_eq!(dependents(&world, name), of_acme, "{name}");
    }
    let zeta = "github/zeta/write_sql";
    assert_eq!(dependents(&world, zeta), ["github/a/of-zeta"]);
    assert_eq!(dependents(&world, "nowhere"), ["github/a/by-name"]);
    assert!(dependents(&world, "of-none").is_empty());
    // The names became its id when the skills were published: what goes away leaves them to nobody.
    let gone = skill("github/acme/write_sql");
    let deleted = world.registry.delete(&gone, &caller("")).await;
    let told: Vec<_> = deleted.expect("deleted").dependents;
    assert_eq!(
        told.iter().map(SkillId::as_str).collect::<Vec<_>>(),
        of_acme
    );
    assert_eq!(dependents(&world, zeta), ["github/a/of-zeta"]);
    assert_eq!(dependents(&world, gone.as_str()), of_acme);
}

#[tokio::test]
async fn only_the_active_version_of_a_skill_requires_anything() {
    let world = world(&[(ID, "refunds", &[]), ("a/b/other", "other", &[ID])]).await;
    assert_eq!(dependents(&world, ID), ["a/b/other"]);
    world.published("a/b/other", &requiring("other", &[])).await;
    assert!(dependents(&world, ID).is_empty());
    let (other, first) = (skill("a/b/other"), number(1));
    let back = world.registry.activate(&other, first, &caller("")).await;
    back.expect("activated");
    assert_eq!(dependents(&world, ID), ["a/b/other"]);
    let yanked = world.registry.yank(&other, first, "", &caller("")).await;
    yanked.expect("withdrawn");
    assert!(dependents(&world, ID).is_empty());
}

#[tokio::test]
async fn whoever_withdraws_all_of_a_skill_is_told_who_requires_it_and_so_is_a_repeat() {
    let world = world(&[(ID, "refunds", &[]), ("a/b/other", "other", &[ID])]).await;
    world.published(ID, &text("", "two")).await;
    let first = world.withdraw(1, "").await;
    assert_eq!(
        (first.active, first.dependents),
        (Some(number(2)), Vec::new())
    );
    let told = [skill("a/b/other")];
    for _ in 0..2 {
        let last = world.withdraw(2, "").await;
        assert_eq!((last.active, &last.dependents[..]), (None, &told[..]));
    }
    assert!(world.put_back(2).await.dependents.is_empty());
}

#[tokio::test]
async fn whoever_blocks_a_skill_is_told_who_requires_it() {
    let world = world(&[(ID, "refunds", &[]), ("a/b/other", "other", &[ID])]).await;
    let blocked = world.registry.block(&skill(ID), "leaks", &caller("")).await;
    assert_eq!(blocked.expect("blocked").dependents, [skill("a/b/other")]);
}

#[tokio::test]
async fn what_a_skill_requires_is_the_skill_that_the_name_led_to_when_it_was_published() {
    let world = world(&[
        ("github/acme/desk", "desk", &[]),
        (
            "github/acme/helper",
            "helper",
            &["Desk@^1", "nowhere", "helper"],
        ),
    ])
    .await;
    let head = world.registry.head(&skill("github/acme/helper"));
    let version = world
        .registry
        .version(&head.expect("a head"), &VersionSelector::Active);
    let required: Vec<_> = version
        .expect("a version")
        .skill
        .requirements()
        .map(str::to_owned)
        .collect();
    assert_eq!(required, ["github/acme/desk@^1", "nowhere", "helper"]);
}
