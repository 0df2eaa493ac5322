//! What a caller is told: how much of the budget is left, and how to use a skill.

use super::*;

fn budget(current: u64, size: u64) -> Budget {
    Budget {
        current,
        size,
        limit: 100,
    }
}

#[test]
fn a_budget_may_be_used_up_and_not_exceeded() {
    let told = |current, size| {
        let budget = budget(current, size);
        (budget.projected(), budget.is_exceeded(), budget.warning())
    };
    let left = |text: &str| Some(text.to_owned());
    for (current, size, expected) in [
        (0, 10, (10, false, None)),
        (70, 9, (79, false, None)),
        (70, 10, (80, false, left("20 characters are left"))),
        (90, 10, (100, false, left("0 characters are left"))),
        (
            90,
            11,
            (
                101,
                true,
                left("1 characters more than installed skills may have"),
            ),
        ),
    ] {
        assert_eq!(told(current, size), expected, "{current} and {size}");
    }
    assert_eq!(budget(u64::MAX, 1).projected(), u64::MAX);
}

#[tokio::test]
async fn a_skill_may_fill_the_budget_to_its_last_character() {
    let world = World::new();
    world.publish_long("github/acme/large", 1000).await;
    let size = world.install(wanted("github/acme/large")).await.budget.size;
    for (limit, fits) in [(size, true), (size - 1, false)] {
        let world = World::with(|_, policy| policy.budget_chars = limit);
        world.publish_long("github/acme/large", 1000).await;
        let installed = world.installer.install(wanted("github/acme/large")).await;
        assert_eq!(installed.is_ok(), fits, "{limit}");
    }
}

/// The tips of a skill with these lines of front matter.
async fn tips_of(front_matter: &str, missing: &[&str]) -> Vec<String> {
    let world = World::new();
    world
        .publish("github/acme/tool", "1.0.0", front_matter)
        .await;
    let head = world
        .registry
        .head(&id("github/acme/tool"))
        .expect("a skill");
    let version = world.registry.version(&head, &VersionSelector::Active);
    let missing: Vec<_> = missing.iter().map(|named| (*named).to_owned()).collect();
    tips(&head.id, &version.expect("a version").skill, &missing)
}

#[tokio::test]
async fn a_tip_says_what_calls_a_skill_up() {
    let by_name = "Call it up by its name: /tool";
    assert_eq!(
        tips_of("triggers: [one, two, three, four]", &[]).await,
        [
            "This skill activates when you mention 'one', 'two', or 'three'",
            by_name
        ]
    );
    assert_eq!(
        tips_of("", &[]).await,
        [
            "This skill activates when a task fits its description: Is tool.",
            by_name
        ]
    );
    assert_eq!(
        tips_of("disable-model-invocation: true", &[]).await,
        ["Only people call it up: /tool"]
    );
}

#[tokio::test]
async fn what_an_author_wrote_is_told_inert_and_on_one_line() {
    let tips = tips_of("triggers: [\"one\\n[two](https://x.example)\"]", &[]).await;
    let (raw, inert) = ("one\n[two](https://x.example)", &tips[0]);
    assert_eq!(
        *inert,
        format!(
            "This skill activates when you mention '{}'",
            model::inert_line(raw)
        )
    );
    assert_ne!(model::inert_line(raw), model::shown(raw, 120));
}

#[tokio::test]
async fn a_tip_names_the_first_that_are_required_and_not_there() {
    let tips = tips_of("", &["a", "b", "c", "d"]).await;
    assert_eq!(
        tips.last().map(String::as_str),
        Some("It requires what is not installed yet: a, b, c")
    );
}
