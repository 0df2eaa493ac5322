//! Skills that are selected for a task, and the limits of what may be asked.

use contract::v1;

use super::{PAIR, World, texts};

#[tokio::test]
async fn the_coding_skills_come_out_for_coding_tasks_with_the_reasons() {
    let mut world = World::new().await;
    for task in [
        "Write a specification for the login page",
        "please turn this request into requirements",
        "Define acceptance criteria",
        "Implement the spec we agreed on",
        "carry out the implementation",
    ] {
        let selected = world.select(task).await;
        let mut skills = selected.skills[..2].to_vec();
        skills.sort();
        assert_eq!(
            skills,
            ["opencode-implementer", "specification-engine"],
            "{task}"
        );
        assert!(world.validate(&PAIR, false).await.valid);
    }
    let selected = world.select("Define acceptance criteria").await;
    let told: Vec<_> = selected
        .selections
        .iter()
        .map(|s| (s.skill.as_str(), s.reasons.clone(), s.required_by.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (
                "specification-engine",
                texts(&["has 'define', 'acceptance', 'criteria' in its triggers, body"]),
                ""
            ),
            (
                "opencode-implementer",
                texts(&[
                    "required by 'specification-engine': Spec must be followed by implementation"
                ]),
                "specification-engine"
            ),
        ]
    );
    assert_eq!(
        world.select("Bake a cake").await.skills,
        Vec::<String>::new()
    );
    assert_eq!(world.select("sum a column in xlsx").await.skills[0], "xlsx");
    // What its author leaves to people is not selected, however well it fits.
    let manual = |is: bool| format!("triggers: [bake a cake]\ndisable-model-invocation: {is}");
    for is_manual in [true, false] {
        world.publish("a/b/bake-a-cake", &manual(is_manual)).await;
        let selected = world.select("Bake a cake").await.skills;
        assert_eq!(selected.is_empty(), is_manual, "{selected:?}");
    }
}

#[tokio::test]
async fn limits_are_refused_clearly() {
    let mut world = World::new().await;
    let names: Vec<String> = (0..10_000).map(|n| format!("s{n}")).collect();
    let request = v1::ComposeSkillsRequest {
        skills: names,
        ..Default::default()
    };
    let refused = world
        .client
        .compose_skills(request)
        .await
        .expect_err("too many");
    assert_eq!(
        refused.message(),
        "skills: must have at most 256 items, has 10000"
    );
    let refused = world.compose(&[]).await.expect_err("none");
    assert_eq!(refused.message(), "name at least one skill, or give a lock");
    let empty = world.validate(&[], false).await;
    assert!(empty.valid && empty.errors.is_empty());
}

#[tokio::test]
async fn skills_of_nothing_but_patterns_do_not_keep_the_server_busy() {
    let mut world = World::new().await;
    for name in ["one", "two", "three"] {
        let tools: Vec<String> = (0..2_000).map(|at| format!("\"{name}{at}*\"")).collect();
        let rights = format!("allowed_tools: [{}]", tools.join(", "));
        world.publish(&format!("a/b/{name}"), &rights).await;
    }
    world.compose(&["one"]).await.expect("2,000 patterns");
    let request = v1::ComposeSkillsRequest {
        skills: texts(&["one", "two", "three"]),
        ..Default::default()
    };
    assert_eq!(
        world.refused(request).await,
        [
            "skills TOO_MANY_TOOLS: the skills name more tool patterns than are put together; compose fewer of them"
        ]
    );
}
