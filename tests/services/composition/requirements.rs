//! What skills require of each other, what they cannot stand, and how that is solved.

use tonic::Code;

use super::{PAIR, World, findings, problems, texts};

#[tokio::test]
async fn unknown_skills_are_all_told_with_their_places() {
    let mut world = World::new().await;
    let answer = world
        .validate(&["nope", PAIR[0], PAIR[1], "a/b/c", "xlsx@latest"], false)
        .await;
    assert!(!answer.valid && answer.lock.is_none());
    let errors: Vec<_> = answer
        .errors
        .iter()
        .map(|error| {
            (
                error.code.as_str(),
                error.message.as_str(),
                error.skill.as_str(),
            )
        })
        .collect();
    assert_eq!(
        errors,
        [
            ("UNKNOWN_SKILL", "there is no skill 'nope'", "nope"),
            ("UNKNOWN_SKILL", "there is no skill 'a/b/c'", "a/b/c"),
            (
                "INVALID_REFERENCE",
                "there is no skill 'xlsx@latest', and 'latest' behind its @ is no version",
                "xlsx@latest"
            ),
        ]
    );
    let refused = world
        .compose(&["nope", "a/b/c"])
        .await
        .expect_err("a refusal");
    assert_eq!(
        (refused.code(), refused.message()),
        (
            Code::FailedPrecondition,
            "The skills cannot be composed: there is no skill 'nope' (and 1 more)"
        )
    );
    assert_eq!(
        problems(&refused),
        [
            "skills[0] UNKNOWN_SKILL: there is no skill 'nope'",
            "skills[1] UNKNOWN_SKILL: there is no skill 'a/b/c'"
        ]
    );
}

#[tokio::test]
async fn what_is_required_must_be_there_by_either_list_and_the_way_to_it_is_told() {
    let rule = |list: &str, skill: &str| format!("{list}:\n  - type: requires\n    skill: {skill}");
    let mut world = World::new()
        .await
        .with("a/b/one", &rule("compatibility_rules", "two"))
        .await
        .with("a/b/two", &rule("composability_rules", "a/b/three"))
        .await
        .with("a/b/three", &rule("compatibility_rules", "four"))
        .await;
    let answer = world.validate(&["one"], false).await;
    assert_eq!(
        findings(&answer.findings),
        [
            "MISSING_REQUIRED_SKILL one two: one > two",
            "MISSING_REQUIRED_SKILL two three: one > two > three",
            "MISSING_REQUIRED_SKILL three four: one > two > three > four",
            "EMPTY_TOOLSET one",
        ]
    );
    assert_eq!(
        answer.errors[2].message,
        "'three' requires 'four', which does not exist"
    );
    for pair in [[PAIR[0]], [PAIR[1]]] {
        let answer = world.validate(&pair, false).await;
        assert_eq!(
            answer
                .errors
                .iter()
                .map(|e| e.code.as_str())
                .collect::<Vec<_>>(),
            ["MISSING_REQUIRED_SKILL"]
        );
    }
    assert!(world.validate(&PAIR, false).await.valid);
}

#[tokio::test]
async fn what_cannot_stand_each_other_is_refused_in_both_directions_by_either_list() {
    let mut world = World::new()
        .await
        .with(
            "a/b/hates",
            "compatibility_rules:\n  - type: incompatible\n    skill: hated\n    reason: Two heads",
        )
        .await
        .with(
            "a/b/forbids",
            "composability_rules:\n  - type: forbids\n    skill: a/b/hated",
        )
        .await
        .with("a/b/hated", "allowed_tools: [x]")
        .await;
    for order in [["hates", "hated"], ["hated", "hates"]] {
        let answer = world.validate(&order, false).await;
        let error = &answer.errors[0];
        assert_eq!(
            (
                error.code.as_str(),
                error.message.as_str(),
                answer.errors.len()
            ),
            (
                "INCOMPATIBLE_SKILLS",
                "'hates' is incompatible with 'hated': Two heads",
                1
            )
        );
    }
    for order in [["forbids", "hated"], ["hated", "forbids"]] {
        let answer = world.validate(&order, false).await;
        assert_eq!(
            findings(&answer.findings)[0],
            "FORBIDDEN_COMBINATION forbids hated: forbids > hated"
        );
    }
    let answer = world
        .validate(&["forbids", "hated", "hates", "nope"], false)
        .await;
    let codes: Vec<_> = answer.errors.iter().map(|e| e.code.as_str()).collect();
    assert_eq!(
        codes,
        [
            "UNKNOWN_SKILL",
            "FORBIDDEN_COMBINATION",
            "INCOMPATIBLE_SKILLS"
        ]
    );
    assert!(world.validate(&["hates", "forbids"], false).await.valid);
}

#[tokio::test]
async fn what_is_required_is_added_and_the_choice_goes_back_where_it_must() {
    let requires = |skills: &[&str]| {
        let rules = skills
            .iter()
            .map(|s| format!("\n  - {{type: requires, skill: \"{s}\"}}"));
        format!(
            "allowed_tools: [x]\ncomposability_rules:{}",
            rules.collect::<String>()
        )
    };
    let mut world = World::new().await;
    world
        .publish("a/b/app", &requires(&["web@^1", "log@^1"]))
        .await;
    world
        .publish(
            "a/b/web",
            &format!("version: 1.0.0\n{}", requires(&["log@^1"])),
        )
        .await;
    world
        .publish(
            "a/b/web",
            &format!("version: 1.5.0\n{}", requires(&["log@^2"])),
        )
        .await;
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        world
            .publish(
                "a/b/log",
                &format!("version: {version}\nallowed_tools: [x]"),
            )
            .await;
    }
    let answer = world.validate(&["app"], true).await;
    let lock = answer.lock.expect("a lock");
    let versions: Vec<_> = lock
        .entries
        .iter()
        .map(|entry| format!("{} {}", entry.skill_id, entry.semantic_version))
        .collect();
    assert_eq!(
        versions,
        ["a/b/app 1.0.0", "a/b/log 1.1.0", "a/b/web 1.0.0"]
    );
    assert_eq!(
        (answer.valid, answer.skills, answer.added_skills),
        (true, texts(&["app", "log", "web"]), texts(&["log", "web"]))
    );
    // Active before highest: a roll-back is honoured.
    world.activate("a/b/log", 1).await;
    let answer = world.validate(&["app"], true).await;
    assert_eq!(
        answer.lock.expect("a lock").entries[1].semantic_version,
        "1.0.0"
    );
    // No choice: the facts that cannot all hold.
    world
        .publish("a/b/top", &requires(&["app", "log@^2"]))
        .await;
    let answer = world.validate(&["top"], true).await;
    assert_eq!(answer.errors.len(), 1, "{:?}", answer.errors);
    let error = &answer.errors[0];
    assert_eq!(error.code, "REQUIREMENTS_UNSOLVABLE");
    for fact in [
        "'top' 1.0.0 requires 'a/b/log@^2'",
        // It was published before there was a skill of the name.
        "'app' 1.0.0 requires 'log@^1'",
        "'top' 1.0.0 requires 'a/b/app'",
    ] {
        assert!(error.message.contains(fact), "{fact}: {}", error.message);
    }
}

#[tokio::test]
async fn a_skill_that_a_required_one_cannot_stand_has_no_solution_that_says_so() {
    let mut world = World::new()
        .await
        .with(
            "a/b/app",
            "composability_rules: [{type: requires, skill: lib}]",
        )
        .await
        .with(
            "a/b/lib",
            "compatibility_rules: [{type: incompatible, skill: other, reason: Both write}]",
        )
        .await
        .with("a/b/other", "")
        .await;
    let answer = world.validate(&["app", "other"], true).await;
    assert_eq!(answer.errors.len(), 1);
    for fact in [
        "'lib' 1.0.0 is incompatible with 'other': Both write",
        "'app' 1.0.0 requires 'lib'",
    ] {
        assert!(
            answer.errors[0].message.contains(fact),
            "{fact}: {}",
            answer.errors[0].message
        );
    }
    // The version without the quarrel is taken where it is one of several.
    world.publish("a/b/lib", "version: 0.0.9").await;
    world.activate("a/b/lib", 1).await;
    let answer = world.validate(&["app", "other"], true).await;
    assert!(answer.valid, "{:?}", answer.errors);
    assert_eq!(
        answer.lock.expect("a lock").entries[1].semantic_version,
        "0.0.9"
    );
}
