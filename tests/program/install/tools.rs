//! The tools 5 to 7, 11 and 12 of discovery-core, on the server's own machine.

mod refusals;

use contract::v1;
use contract::v1::composition_client::CompositionClient;
use gateway::{Gateway, Transport};
use mcp::McpServer;
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};
use server::{Config, Domain, Settings};
use tempfile::TempDir;

use super::{names, refunds, versioned};
use crate::support::{World, file, skill};

const MEMORY: &str = "github/anthropics/claude-code-memory";

/// A tool of the specification, over MCP, as a caller on the server's machine: its envelope,
/// without what differs each time.
async fn tool(world: &World, name: &str, arguments: Value) -> Value {
    let transport = world.transport.clone();
    let contract = contract::load().expect("the contract");
    let face = McpServer::new(Gateway::new(contract, transport.clone()), transport);
    let handler = face.handlers(Some("discovery-core")).expect("a toolset")();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move { handler.serve(ours).await.expect("a server").waiting().await });
    let client = ().serve(theirs).await.expect("a client");
    let arguments = arguments.as_object().expect("an object").clone();
    let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
    let result = client.call_tool(request).await.expect("a result");
    let mut envelope = result.structured_content.expect("an envelope");
    envelope
        .as_object_mut()
        .expect("an object")
        .remove("metadata");
    envelope
}

async fn data(world: &World, name: &str, arguments: Value) -> Value {
    let mut envelope = tool(world, name, arguments).await;
    assert_eq!(envelope["success"], true, "{envelope:#}");
    envelope["data"].take()
}

async fn code(world: &World, name: &str, arguments: Value) -> (String, String) {
    let envelope = tool(world, name, arguments).await;
    assert_eq!(envelope["success"], false, "{envelope:#}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let error = &envelope["error"];
    (text(&error["code"]), text(&error["message"]))
}

/// The world of the examples: a skill of 2,500 characters, and others.
async fn example() -> World {
    let mut world = World::new().await;
    let front = "version: 1.2.0\ntriggers: [memory, remember, recall]\npaths: ['*.md']\n";
    let mut memory = skill(MEMORY, front, "");
    let text = String::from_utf8(memory.files[0].content.to_vec()).expect("text");
    let text = text.replace("name: claude-code-memory", "name: Claude Code Memory");
    let text = format!("{text}{}\n", "x".repeat(2_500 - text.chars().count() - 1));
    assert_eq!(text.chars().count(), 2_500);
    memory.files = vec![
        file("SKILL.md", text),
        file("scripts/load.py", "print(1)\n"),
    ];
    world.publish(memory).await;
    for (id, triggers) in [
        ("github/testing/jest-skill", "[test, jest]"),
        ("github/testing/vitest-skill", "[test, vitest]"),
    ] {
        world
            .publish(versioned(id, "1.0.0", &format!("triggers: {triggers}\n")))
            .await;
    }
    world
}

fn skills(world: &World) -> std::path::PathBuf {
    world.directory().join("skills")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_installing_listing_and_uninstalling_come_true() {
    let world = example().await;
    let asked =
        json!({"skill_id": MEMORY, "skip_conflict_check": false, "skip_security_scan": false});
    let installed = data(&world, "install_skill", asked.clone()).await;
    let folder = skills(&world).join("claude-code-memory");
    assert_eq!(
        installed,
        json!({
            "skill_id": MEMORY,
            "installed_path": folder.display().to_string(),
            "installed_version": "1.2.0",
            "install_method": "copy",
            "conflicts": [],
            "security_warnings": [],
            "budget_impact": {
                "current_usage": 0, "skill_size": 2500, "projected_usage": 2500,
                "budget_limit": 50000, "utilization_percent": 5,
            },
            "activation_tips": [
                "This skill activates when you mention 'memory', 'remember', or 'recall'",
                "Call it up by its name: /claude-code-memory",
            ],
            "suggested_hooks": {
                "pre_message_hooks": ["repertoire activation --hook"],
                "post_message_hooks": [],
                "file_triggers": [{
                    "pattern": "*.md",
                    "description": format!("Load the skill {MEMORY} for such files"),
                }],
            },
        })
    );
    assert_eq!(names(&folder), ["SKILL.md", "scripts/load.py"]);
    let again = code(&world, "install_skill", asked).await;
    assert_eq!(again.0, "SKILL_ALREADY_INSTALLED");
    let mut next = versioned(MEMORY, "1.3.0", "triggers: [memory]\n");
    next.idempotency_key = "next".to_owned();
    let mut registry = world.registry.clone();
    registry.publish_skill(next).await.expect("published");
    let listed = json!({"include_health": true, "include_updates": true});
    let mut all = data(&world, "list_installed", listed).await;
    let at = all["skills"][0]["installed_at"].take();
    assert!(at.as_str().expect("a time").ends_with('Z'));
    let digest = all["skills"][0]["digest"].take();
    assert!(digest.as_str().expect("a digest").starts_with("sha256:"));
    assert_eq!(
        all,
        json!({
            "skills": [{
                "skill_id": MEMORY, "name": "Claude Code Memory", "installed_version": "1.2.0",
                "installed_at": null, "installation_path": folder.display().to_string(),
                "health_status": "healthy", "activation_count": 0,
                "update_available": {"latest_version": "1.3.0", "breaking_changes": false},
                "char_budget": 2500, "version_number": 1, "digest": null,
                "install_method": "copy", "verdict": "passed", "forced": false,
                "security_scan_skipped": false,
            }],
            "total_count": 1, "total_budget_used": 2500, "budget_limit": 50000,
            "health_summary": {"healthy": 1, "warning": 0, "error": 0, "unknown": 0},
        })
    );
    let remove = json!({"skill_id": MEMORY, "remove_data": true, "force": true});
    assert_eq!(
        data(&world, "uninstall_skill", remove.clone()).await,
        json!({
            "skill_id": MEMORY, "removed_path": folder.display().to_string(),
            "data_removed": true, "budget_freed": 2500, "dependent_skills_affected": [],
        })
    );
    assert_eq!(names(&skills(&world)), Vec::<String>::new());
    let again = code(&world, "uninstall_skill", remove).await;
    assert_eq!(
        again,
        (
            "SKILL_NOT_INSTALLED".to_owned(),
            format!("Skill '{MEMORY}' is not installed")
        )
    );
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changed_is_told_where_health_is_asked_for_and_is_not_removed() {
    let world = example().await;
    data(&world, "install_skill", json!({"skill_id": MEMORY})).await;
    let folder = skills(&world).join("claude-code-memory");
    std::fs::write(folder.join("SKILL.md"), "Mine").expect("written");
    let changed = data(
        &world,
        "list_installed",
        json!({"filter_health": "warning"}),
    )
    .await;
    assert_eq!(
        changed["skills"][0]["health_details"],
        "changed since it was installed: SKILL.md"
    );
    let healthy = data(
        &world,
        "list_installed",
        json!({"filter_health": "healthy"}),
    )
    .await;
    assert_eq!(
        json!([healthy["skills"], healthy["total_count"]]),
        json!([[], 1])
    );
    let unasked = data(&world, "list_installed", json!({"include_health": false})).await;
    assert_eq!(unasked["health_summary"]["unknown"], 1);
    let remove = json!({"skill_id": MEMORY, "remove_data": true});
    let refused = code(&world, "uninstall_skill", remove).await;
    assert_eq!(refused.0, "SKILL_INSTALL_FAILED");
    assert_eq!(names(&folder), ["SKILL.md", "scripts/load.py"]);
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_priorities_come_true() {
    let world = example().await;
    for id in [MEMORY, "jest-skill", "vitest-skill"] {
        let asked = json!({"skill_id": id, "skip_conflict_check": true});
        data(&world, "install_skill", asked).await;
    }
    let places = async || {
        let found = data(&world, "get_priorities", json!({})).await;
        let places = found["priorities"].as_array().expect("a list").iter();
        let places = places.map(|p| {
            json!([
                p["skill_id"],
                p["priority"],
                p["locked"],
                p["effective_triggers"]
            ])
        });
        (places.collect::<Vec<_>>(), found["default_order"].clone())
    };
    let (jest, vitest) = ("github/testing/jest-skill", "github/testing/vitest-skill");
    let memory = json!(["memory", "remember", "recall"]);
    let before = [
        json!([MEMORY, 1, false, memory]),
        json!([jest, 2, false, ["test", "jest"]]),
        json!([vitest, 3, false, ["vitest"]]),
    ];
    assert_eq!(places().await, (before.to_vec(), json!("install_date")));
    let set = json!({"skill_id": vitest, "priority": 1, "lock": true});
    assert_eq!(
        data(&world, "set_priority", set).await,
        json!({
            "skill_id": vitest, "old_priority": 3, "new_priority": 1, "locked": true,
            "affected_skills": [
                {"skill_id": MEMORY, "old_priority": 1, "new_priority": 2},
                {"skill_id": jest, "old_priority": 2, "new_priority": 3},
            ],
        })
    );
    let after = [
        json!([vitest, 1, true, ["test", "vitest"]]),
        json!([MEMORY, 2, false, memory]),
        json!([jest, 3, false, ["jest"]]),
    ];
    assert_eq!(places().await, (after.to_vec(), json!("manual")));
    let some = data(
        &world,
        "get_priorities",
        json!({"skill_ids": ["jest-skill"]}),
    )
    .await;
    assert_eq!(some["priorities"][0]["effective_triggers"], json!(["jest"]));
    for (arguments, expected) in [
        (
            json!({"skill_id": "github/testing/nobody", "priority": 1}),
            "SKILL_NOT_INSTALLED",
        ),
        (
            json!({"skill_id": jest, "priority": 0}),
            "INVALID_PARAMETER",
        ),
        (json!({"skill_id": "", "priority": 1}), "MISSING_PARAMETER"),
    ] {
        assert_eq!(code(&world, "set_priority", arguments).await.0, expected);
    }
    let unknown = json!({"skill_ids": ["github/testing/nobody"]});
    assert_eq!(
        code(&world, "get_priorities", unknown).await.0,
        "SKILL_NOT_INSTALLED"
    );
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_held_by_now_is_told_where_it_is_installed() {
    let folder = TempDir::new().expect("a folder");
    let mut listed = Vec::new();
    // The same directory of skills, of a server that holds what another one handed out.
    for (data, hold) in [("first", "failed"), ("second", "all")] {
        let at = folder.path().display();
        let text = format!("install:\n  directory: {at}/agents\ntrust:\n  hold: {hold}\n");
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, text).expect("a file");
        let mut settings = Settings::new(&Config::read(&path).expect("a config"));
        settings.data = folder.path().join(data);
        settings.store.reserve_bytes = 0;
        let domain = Domain::open(&settings).await.expect("a domain");
        let transport: Transport = domain.transport(&settings.config.limits);
        let mut registry = v1::registry_client::RegistryClient::new(transport.clone());
        let published = registry.publish_skill(refunds("1.0.0", "")).await;
        published.expect("published");
        let mut composition = CompositionClient::new(transport);
        if hold == "failed" {
            let request = v1::InstallSkillRequest {
                skill_id: "refunds".to_owned(),
                ..Default::default()
            };
            let installed = composition.install_skill(request).await;
            installed.expect("installed");
        }
        let answer = composition.list_installed(v1::ListInstalledRequest::default());
        let skills = answer.await.expect("a list").into_inner().skills;
        listed.extend(skills.into_iter().map(|skill| {
            let health = skill.health_status();
            (health, skill.health_details.unwrap_or_default())
        }));
        domain.close().await;
    }
    let held = "held for review on this server: every new version waits for approval here";
    assert_eq!(
        listed,
        [
            (v1::HealthStatus::Healthy, String::new()),
            (v1::HealthStatus::Error, held.to_owned()),
        ]
    );
}
