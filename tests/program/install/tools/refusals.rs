//! What speaks against an install, and who may not install.

use contract::v1;
use contract::v1::composition_client::CompositionClient;
use gateway::Transport;
use serde_json::{Value, json};
use server::{Config, Domain, Settings};
use tempfile::TempDir;

use super::super::{ATTACK, RISKY, names, refunds, versioned};
use super::{MEMORY, code, data, example, skills};
use crate::support::web::{ask, get};
use crate::support::{Server, World, file};

/// The same, with skills that speak against being installed.
async fn hostile() -> World {
    let mut world = example().await;
    let mut risky = versioned("github/acme/risky", "1.0.0", "");
    risky.files.push(file("setup.sh", RISKY));
    world.publish_approved(risky).await;
    let mut attack = versioned("github/acme/attack", "1.0.0", "");
    attack.files.push(file("run.sh", ATTACK));
    world.publish(attack).await;
    let mut large = versioned("github/acme/large", "1.0.0", "");
    large.files[0] = file(
        "SKILL.md",
        format!(
            "---\nname: large\ndescription: Is large.\n---\n{}",
            "x ".repeat(25_000)
        ),
    );
    world.publish(large).await;
    world
        .publish(versioned("github/acme/sealed", "1.0.0", ""))
        .await;
    world
        .publish(versioned("github/other/jest-skill", "1.0.0", ""))
        .await;
    let block = v1::UpdateBlocklistRequest {
        action: v1::BlocklistAction::Add.into(),
        skill_id: "github/acme/sealed".to_owned(),
        reason: "It steals keys".to_owned(),
        ..Default::default()
    };
    world
        .registry
        .clone()
        .update_blocklist(block)
        .await
        .expect("blocked");
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_that_speaks_against_an_install_has_its_code() {
    let world = hostile().await;
    data(
        &world,
        "install_skill",
        json!({"skill_id": "github/testing/jest-skill"}),
    )
    .await;
    for (arguments, expected) in [
        (json!({"skill_id": "github/acme/nobody"}), "SKILL_NOT_FOUND"),
        (json!({"skill_id": ""}), "MISSING_PARAMETER"),
        (
            json!({"skill_id": "github/acme/sealed", "force": true}),
            "SKILL_BLOCKED",
        ),
        (
            json!({"skill_id": "github/testing/jest-skill"}),
            "SKILL_ALREADY_INSTALLED",
        ),
        (
            json!({"skill_id": "github/other/jest-skill", "force": true}),
            "CONFLICT_DETECTED",
        ),
        (
            json!({"skill_id": "github/testing/vitest-skill"}),
            "CONFLICT_DETECTED",
        ),
        (
            json!({"skill_id": "github/acme/risky"}),
            "SECURITY_RISK_DETECTED",
        ),
        (
            json!({"skill_id": "github/acme/attack", "force": true, "skip_security_scan": true}),
            "VERSION_HELD",
        ),
        (json!({"skill_id": "github/acme/large"}), "BUDGET_EXCEEDED"),
        (
            json!({"skill_id": MEMORY, "target_directory": "/etc"}),
            "INVALID_PARAMETER",
        ),
        (
            json!({"skill_id": MEMORY, "target_directory": "../x"}),
            "INVALID_PARAMETER",
        ),
        (
            json!({"skill_id": MEMORY, "target_directory": "x"}),
            "INVALID_PARAMETER",
        ),
        (
            json!({"skill_id": MEMORY, "version_number": 1}),
            "INVALID_PARAMETER",
        ),
    ] {
        let refused = code(&world, "install_skill", arguments.clone()).await;
        assert_eq!(refused.0, expected, "{arguments}: {}", refused.1);
    }
    assert_eq!(names(&skills(&world)), ["jest-skill/SKILL.md"]);
    // What may be given up, and that it was.
    for (arguments, forced, skipped) in [
        (
            json!({"skill_id": "github/acme/risky", "skip_security_scan": true}),
            false,
            true,
        ),
        (
            json!({"skill_id": "github/acme/large", "force": true}),
            true,
            false,
        ),
    ] {
        data(&world, "install_skill", arguments).await;
        let all = data(&world, "list_installed", json!({})).await;
        let skills = all["skills"].as_array().expect("a list");
        assert!(
            skills
                .iter()
                .any(|s| s["forced"] == forced && s["security_scan_skipped"] == skipped),
            "{all:#}"
        );
    }
    world.domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_says_what_is_trusted_and_where_skills_may_go() {
    let folder = TempDir::new().expect("a folder");
    let root = folder.path().join("roots");
    std::fs::create_dir(&root).expect("a folder");
    let text = format!(
        "install:\n  directory: {0}/agents\n  roots: [{0}/roots]\n  method: symlink\n  min_trust_tier: verified\n",
        folder.path().display()
    );
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, text).expect("a file");
    let mut settings = Settings::new(&Config::read(&path).expect("a config"));
    settings.data = folder.path().join("data");
    settings.store.reserve_bytes = 0;
    let domain = Domain::open(&settings).await.expect("a domain");
    let transport: Transport = domain.transport(&settings.config.limits);
    let mut registry = v1::registry_client::RegistryClient::new(transport.clone());
    registry
        .publish_skill(refunds("1.0.0", ""))
        .await
        .expect("published");
    let mut composition = CompositionClient::new(transport);
    let ask = |id: &str, directory: &str| v1::InstallSkillRequest {
        skill_id: id.to_owned(),
        target_directory: directory.to_owned(),
        ..Default::default()
    };
    let refused = composition
        .install_skill(ask("refunds", ""))
        .await
        .expect_err("refused");
    assert_eq!(
        refused.message(),
        "Skill 'github/acme/refunds' is unverified, and this server installs what is verified at least"
    );
    let installed = composition
        .install_skill(ask("xlsx", "team/skills"))
        .await
        .expect("installed");
    let installed = installed.into_inner();
    assert_eq!(installed.install_method(), v1::InstallMethod::Symlink);
    let at = root.join("team/skills/xlsx");
    assert_eq!(
        installed.installed_path,
        at.canonicalize()
            .map(|_| at.display().to_string())
            .expect("there")
    );
    assert!(at.is_symlink());
    let listed = composition
        .list_installed(v1::ListInstalledRequest::default())
        .await;
    assert_eq!(listed.expect("a list").into_inner().skills.len(), 1);
    domain.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_elsewhere_may_look_and_not_touch_and_a_block_names_what_is_installed() {
    let folder = TempDir::new().expect("a folder");
    let config = format!(
        "install:\n  directory: {}/skills\n",
        folder.path().display()
    );
    let server = Server::with(&[], &config);
    server
        .registry()
        .await
        .publish_skill(refunds("1.0.0", ""))
        .await
        .expect("published");
    let body = json!({"skill_id": "github/acme/refunds"});
    let url = &server.url;
    for (verb, path, body) in [
        ("POST", "/api/v1/installed", body.clone()),
        (
            "DELETE",
            "/api/v1/installed/github/acme/refunds",
            Value::Null,
        ),
        ("PUT", "/api/v1/priorities/refunds", json!({"priority": 1})),
    ] {
        let asked = ask(url, verb, path);
        let asked = if body.is_null() {
            asked
        } else {
            asked.json(&body)
        };
        let refused = asked.send().await;
        assert_eq!(
            refused.refusal(),
            (403, "OPERATOR_ONLY".to_owned()),
            "{path}"
        );
    }
    assert_eq!(names(&folder.path().join("skills")), Vec::<String>::new());
    let local = server::connect_local(&server.data)
        .await
        .expect("a connection");
    let ask = v1::InstallSkillRequest {
        skill_id: "refunds".to_owned(),
        ..Default::default()
    };
    CompositionClient::new(local)
        .install_skill(ask)
        .await
        .expect("installed");
    let listed = get(url, "/api/v1/installed").await.json();
    assert_eq!(listed["skills"][0]["skill_id"], "github/acme/refunds");
    let priorities = get(url, "/api/v1/priorities").await.json();
    assert_eq!(priorities["priorities"][0]["priority"], 1);
    let block = v1::UpdateBlocklistRequest {
        action: v1::BlocklistAction::Add.into(),
        skill_id: "github/acme/refunds".to_owned(),
        reason: "It steals keys".to_owned(),
        ..Default::default()
    };
    let blocked = server
        .registry()
        .await
        .update_blocklist(block)
        .await
        .expect("blocked");
    let affected = blocked.into_inner().affected_installed_skills;
    assert_eq!(affected, ["github/acme/refunds"]);
    let listed = get(url, "/api/v1/installed").await.json();
    let skill = &listed["skills"][0];
    assert_eq!(
        json!([skill["health_status"], skill["health_details"]]),
        json!(["error", "blocked on this server: It steals keys"])
    );
}
