//! Versions that are pinned, and locks that reproduce a composition.

use contract::v1;
use serde_json::json;

use super::{World, reason, texts};

#[tokio::test]
async fn versions_are_pinned_by_number_version_range_and_digest() {
    let mut world = World::new().await;
    for version in ["1.0.0", "1.2.0", "2.0.0"] {
        world
            .publish(
                "a/b/one",
                &format!("version: {version}\nallowed_tools: [v{version}]"),
            )
            .await;
    }
    let of = |answer: &v1::ComposeSkillsResponse| {
        answer.lock.as_ref().expect("a lock").entries[0].clone()
    };
    let digest = of(&world.compose(&["one@1.0.0"]).await.expect("a composition")).digest;
    for (text, version) in [
        ("one", "2.0.0"),
        ("one@1", "1.0.0"),
        ("one@1.2.0", "1.2.0"),
        ("one@^1", "1.2.0"),
        ("one@>=1, <2", "1.2.0"),
        ("one@*", "2.0.0"),
        (&format!("one@{digest}"), "1.0.0"),
    ] {
        let answer = world.compose(&[text]).await.expect("a composition");
        assert_eq!(of(&answer).semantic_version, version, "{text}");
        assert_eq!(answer.allowed_tools, [format!("v{version}")], "{text}");
    }
    world.yank("a/b/one", 2).await;
    let exact = world
        .compose(&["one@1.2.0"])
        .await
        .expect("asked for exactly");
    assert_eq!(
        exact.warnings,
        ["WITHDRAWN_VERSION: version 2 of 'a/b/one' was withdrawn: wrong"]
    );
    let range = world.compose(&["one@^1"]).await.expect("a composition");
    assert_eq!(of(&range).semantic_version, "1.0.0");
    let answer = world
        .validate(&["one@^3", "one@9", "one@7.0.0"], false)
        .await;
    let messages: Vec<_> = answer.errors.iter().map(|e| e.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "'a/b/one' has no version in ^3; there is '2.0.0' and '1.0.0'",
            "'a/b/one' has no version 9",
            "'a/b/one' has no version 7.0.0",
        ]
    );
}

#[tokio::test]
async fn a_lock_reproduces_a_composition_and_tells_what_is_no_longer_so() {
    let mut world = World::new()
        .await
        .with(
            "a/b/one",
            "version: 1.0.0\nallowed_tools: [x, y]\nexecution_protocol: [s1]",
        )
        .await
        .with(
            "a/b/two",
            "version: 1.0.0\nallowed_tools: [y, z]\nexecution_protocol: [s2]",
        )
        .await;
    let request = v1::ComposeSkillsRequest {
        skills: texts(&["two", "one"]),
        tool_policy: v1::ToolPolicy::Intersection.into(),
        ..Default::default()
    };
    let before = world.composed(request.clone()).await;
    let lock = before.lock.clone();
    let locked = |skills: &[&str], lock: &Option<v1::Lock>| v1::ComposeSkillsRequest {
        skills: texts(skills),
        lock: lock.clone(),
        ..Default::default()
    };
    assert_eq!(world.composed(locked(&["two", "one"], &lock)).await, before);
    world
        .publish("a/b/one", "version: 1.1.0\nallowed_tools: [other]")
        .await;
    assert_eq!(world.composed(locked(&[], &lock)).await, before);

    let entries = &lock.as_ref().expect("a lock").entries;
    let now = world.composed(request).await.lock.expect("a lock");
    assert_eq!(
        world.refused(locked(&["two", "one"], &lock)).await,
        [format!(
            "skills LOCK_MISMATCH: 'a/b/one' is version 2 with {} now, but is locked as version 1 with {}",
            now.entries[0].digest, entries[0].digest
        )]
    );
    assert_eq!(
        world.refused(locked(&["two", "xlsx"], &lock)).await,
        [
            "skills LOCK_MISMATCH: 'builtin/repertoire/xlsx' is in the set, and not in the lock",
            "skills LOCK_MISMATCH: 'a/b/one' is locked, and not in the set"
        ]
    );
    let mut changed = lock.clone().expect("a lock");
    changed.entries[0].version_number = 2;
    let refused = world.refused(locked(&[], &Some(changed.clone()))).await;
    assert!(
        refused[0].starts_with("skills LOCK_MISMATCH: the lock was changed: it says sha256:"),
        "{refused:?}"
    );
    let gone = v1::DeleteSkillRequest {
        skill_id: "a/b/two".to_owned(),
        ..Default::default()
    };
    world
        .services
        .registry
        .delete_skill(gone)
        .await
        .expect("deleted");
    assert_eq!(
        world.refused(locked(&[], &lock)).await,
        ["skills LOCK_MISMATCH: 'a/b/two' is locked, and is no longer there"]
    );
}

#[tokio::test]
async fn calls_are_checked_against_the_composition_as_it_is_now() {
    let mut world = World::new().await;
    let rights = "allowed_tools: [Read, \"Bash(git:*)\", \"Bash(npm run test:*)\", \"mcp__db__*\", \"WebFetch(domain:example.com)\"]";
    world
        .publish(
            "a/b/dev",
            &format!("{rights}\nforbidden_tools: [\"Bash(git push:*)\", mcp__db__drop]"),
        )
        .await;
    for (tool, arguments, allowed) in [
        ("Read", json!({}), true),
        ("Write", json!({}), false),
        ("Bash", json!({"command": "git status"}), true),
        ("Bash", json!({"command": "gitk"}), false),
        ("Bash", json!({"command": "git push origin"}), false),
        (
            "Bash",
            json!({"command": "git status && git log -- x"}),
            true,
        ),
        // It is allowed, but may run what is forbidden.
        ("Bash", json!({"command": "npm run test -- x"}), false),
        ("Bash", json!({"command": "git status; rm -rf /"}), false),
        ("Bash", json!({"command": "git log $(rm x)"}), false),
        ("Bash", json!({}), false),
        ("mcp__db__query", json!({}), true),
        ("mcp__db__drop", json!({}), false),
        ("mcp__dbx__query", json!({}), false),
        ("WebFetch", json!({"url": "https://example.com/a"}), true),
        (
            "WebFetch",
            json!({"url": "https://evil.com/?example.com"}),
            false,
        ),
    ] {
        let answer = world.check(&["dev"], tool, arguments.clone()).await;
        assert_eq!(
            answer.allowed, allowed,
            "{tool} {arguments}: {}",
            answer.reason
        );
    }
    let denied = world
        .check(&["dev"], "Bash", json!({"command": "git push"}))
        .await;
    assert_eq!(
        (
            denied.reason.as_str(),
            denied.rule(),
            denied.pattern.as_str()
        ),
        (
            "'Bash' is forbidden by 'dev' as `Bash(git push:*)`",
            v1::ToolRule::Forbidden,
            "Bash(git push:*)"
        )
    );
    assert_eq!(denied.skill.expect("a skill").skill_id, "a/b/dev");
    let unclear = world
        .check(&["dev"], "Bash", json!({"command": "git log `x`"}))
        .await;
    assert_eq!(unclear.rule(), v1::ToolRule::Undecided);

    // A new version, a withdrawn one and a new owner of the name count at once.
    world
        .publish("a/b/dev", "version: 2.0.0\nallowed_tools: [Write]")
        .await;
    assert!(world.check(&["dev"], "Write", json!({})).await.allowed);
    assert!(!world.check(&["dev"], "Read", json!({})).await.allowed);
    world.yank("a/b/dev", 2).await;
    assert!(world.check(&["dev"], "Read", json!({})).await.allowed);
    world
        .publish("local/project/dev", "allowed_tools: [Other]")
        .await;
    assert!(!world.check(&["dev"], "Read", json!({})).await.allowed);
    assert!(world.check(&["dev"], "Other", json!({})).await.allowed);
}

#[tokio::test]
async fn a_lock_answers_for_calls_without_the_names() {
    let mut world = World::new()
        .await
        .with("a/b/dev", "allowed_tools: [Read]")
        .await;
    let lock = world.compose(&["dev"]).await.expect("a composition").lock;
    world
        .publish("a/b/dev", "version: 2.0.0\nallowed_tools: [Write]")
        .await;
    let request = |tool: &str, tool_policy: v1::ToolPolicy| v1::CheckToolRequest {
        tool: tool.to_owned(),
        lock: lock.clone(),
        tool_policy: tool_policy.into(),
        ..Default::default()
    };
    for (tool, allowed) in [("Read", true), ("Write", false)] {
        let request = request(tool, v1::ToolPolicy::Unspecified);
        let answer = world
            .client
            .check_tool(request)
            .await
            .expect("an answer")
            .into_inner();
        assert_eq!(answer.allowed, allowed);
    }
    let other = request("Read", v1::ToolPolicy::Intersection);
    let refused = world
        .client
        .check_tool(other)
        .await
        .expect_err("another policy");
    assert_eq!(
        refused.message(),
        "the lock is of the union, not of the intersection"
    );
    let nothing = v1::CheckToolRequest {
        tool: "Read".to_owned(),
        ..Default::default()
    };
    let refused = world
        .client
        .check_tool(nothing)
        .await
        .expect_err("no skills");
    assert_eq!(
        (reason(&refused).as_str(), refused.message()),
        (
            "INVALID_PARAMETER",
            "name at least one skill, or give a lock"
        )
    );
}
