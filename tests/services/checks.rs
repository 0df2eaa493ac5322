//! Conflicts, budgets and audits of skills, with what is installed: over the services, and as
//! the tools of `discovery-core`.

use contract::v1;
use gateway::Transport;
use serde_json::{Value as Json, json};
use tonic::Code;
use v1::composition_client::CompositionClient;

use crate::support::web::ask;
use crate::support::{Server, World, reason, skill};

const JEST: &str = "github/testing/jest-skill";
const VITEST: &str = "github/testing/vitest-skill";
const RIVAL: &str = "github/testing/rival";

async fn world() -> (World, CompositionClient<Transport>) {
    let mut world = World::new().await;
    for (id, front_matter) in [
        (JEST, "triggers: [test, jest]\n"),
        (VITEST, "triggers: [test, write test, unit test, vitest]\n"),
        (
            RIVAL,
            "triggers: [compare]\ncompatibility_rules: [{type: incompatible, skill: jest-skill}]\n",
        ),
        ("github/cooks/meal", "triggers: [meal]\n"),
    ] {
        world.publish(skill(id, front_matter, "Do it.")).await;
    }
    let client = CompositionClient::new(world.transport.clone());
    (world, client)
}

fn install(id: &str) -> v1::InstallSkillRequest {
    v1::InstallSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    }
}

fn against(skill: &str, others: &[&str]) -> v1::CheckConflictsRequest {
    v1::CheckConflictsRequest {
        skill_id: skill.to_owned(),
        against_skills: others.iter().map(|id| (*id).to_owned()).collect(),
        against_installed: None,
    }
}

#[tokio::test]
async fn what_is_installed_is_compared_and_speaks_against_an_install() {
    let (world, mut client) = world().await;
    let compared = client
        .check_conflicts(against(VITEST, &[]))
        .await
        .expect("compared")
        .into_inner();
    assert_eq!(
        (compared.has_conflicts, compared.skills_compared),
        (false, 0)
    );
    client
        .install_skill(install(JEST))
        .await
        .expect("installed");

    let compared = client
        .check_conflicts(against(VITEST, &[]))
        .await
        .expect("compared")
        .into_inner();
    let conflict = compared.conflicts.first().expect("a conflict");
    assert_eq!(
        (
            conflict.skill_id.as_str(),
            conflict.r#type(),
            conflict.severity()
        ),
        (
            JEST,
            v1::ConflictType::TriggerOverlap,
            v1::ConflictSeverity::Warning
        )
    );
    assert_eq!(
        conflict.conflicting_skill.as_ref().expect("a skill").slug,
        "jest-skill"
    );
    assert_eq!(
        conflict
            .overlap_details
            .as_ref()
            .expect("an overlap")
            .overlap_percentage,
        75
    );

    let refused = client
        .install_skill(install(VITEST))
        .await
        .expect_err("refused");
    assert_eq!(
        (refused.code(), reason(&refused)),
        (Code::FailedPrecondition, "CONFLICT_DETECTED".to_owned())
    );
    assert_eq!(
        refused.message(),
        "Skill 'github/testing/vitest-skill' is at odds with 'github/testing/jest-skill', which is \
         installed: Both skills respond to 'unit test' triggers"
    );
    let forced = v1::InstallSkillRequest {
        force: true,
        ..install(VITEST)
    };
    let installed = client
        .install_skill(forced)
        .await
        .expect("installed")
        .into_inner();
    let told: Vec<_> = installed
        .conflicts
        .iter()
        .map(|conflict| conflict.skill_id.as_str())
        .collect();
    assert_eq!(told, [JEST]);
    let hooks = installed.suggested_hooks.expect("hooks");
    assert_eq!(hooks.pre_message_hooks, ["repertoire activation --hook"]);

    world.domain.close().await;
}

#[tokio::test]
async fn what_cannot_be_used_side_by_side_is_no_matter_of_force() {
    let (world, mut client) = world().await;
    for id in [JEST, VITEST] {
        let forced = v1::InstallSkillRequest {
            force: true,
            ..install(id)
        };
        client.install_skill(forced).await.expect("installed");
    }
    let forced = v1::InstallSkillRequest {
        force: true,
        ..install(RIVAL)
    };
    let refused = client.install_skill(forced).await.expect_err("refused");
    assert_eq!(reason(&refused), "CONFLICT_DETECTED");
    let skipped = v1::InstallSkillRequest {
        skip_conflict_check: true,
        ..install(RIVAL)
    };
    let installed = client
        .install_skill(skipped)
        .await
        .expect("installed")
        .into_inner();
    assert_eq!(installed.conflicts, []);
    let listed = client
        .list_installed(v1::ListInstalledRequest::default())
        .await
        .expect("listed")
        .into_inner();
    let forced: Vec<_> = listed
        .skills
        .iter()
        .map(|skill| (skill.skill_id.as_str(), skill.forced))
        .collect();
    assert_eq!(forced, [(JEST, false), (RIVAL, false), (VITEST, true)]);
    world.domain.close().await;
}

#[tokio::test]
async fn budgets_and_audits_know_what_is_installed() {
    let (world, mut client) = world().await;
    client
        .install_skill(install(JEST))
        .await
        .expect("installed");
    let estimate = |ids: &[&str], include_current: bool| v1::EstimateBudgetRequest {
        skill_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        include_current: Some(include_current),
    };
    let found = client
        .estimate_budget(estimate(&[JEST, VITEST], true))
        .await
        .expect("estimated")
        .into_inner();
    let sizes: Vec<_> = found
        .breakdown
        .iter()
        .map(|cost| (cost.installed, cost.estimated_size))
        .collect();
    let [(true, jest), (false, vitest)] = sizes[..] else {
        panic!("{sizes:?}");
    };
    assert_eq!(
        (
            found.current_usage,
            found.estimated_addition,
            found.projected_total
        ),
        (jest, vitest, jest + vitest)
    );
    assert_eq!(
        (found.budget_limit, found.fits_budget, found.overflow_amount),
        (50_000, true, None)
    );
    let alone = client
        .estimate_budget(estimate(&[JEST, VITEST], false))
        .await
        .expect("estimated")
        .into_inner();
    assert_eq!(
        (alone.current_usage, alone.estimated_addition),
        (0, jest + vitest)
    );

    let audit = v1::AuditActivationRequest {
        generate_hooks: true,
        ..Default::default()
    };
    let audited = client
        .audit_activation(audit)
        .await
        .expect("audited")
        .into_inner();
    let summary = v1::AuditSummary {
        skills_audited: 1,
        healthy: 1,
        issues_found: 0,
        warnings_found: 0,
        overall_health: v1::OverallHealth::Healthy.into(),
    };
    assert_eq!(audited.summary, Some(summary));
    assert_eq!(audited.budget_report.expect("a report").used_budget, jest);
    assert!(audited.generated_hooks.is_some() && audited.claude_code_settings.is_some());
    world.domain.close().await;
}

#[tokio::test]
async fn no_more_skills_are_asked_about_than_one_call_may_name() {
    let (world, mut client) = world().await;
    let many = |count: usize| vec![JEST.to_owned(); count];
    let conflicts = |count| v1::CheckConflictsRequest {
        against_skills: many(count),
        ..against(JEST, &[])
    };
    assert!(client.check_conflicts(conflicts(256)).await.is_ok());
    let refused = client
        .check_conflicts(conflicts(257))
        .await
        .expect_err("refused");
    assert_eq!(
        (refused.code(), reason(&refused)),
        (Code::InvalidArgument, "INVALID_PARAMETER".to_owned())
    );
    let estimate = |count| v1::EstimateBudgetRequest {
        skill_ids: many(count),
        include_current: None,
    };
    let found = client
        .estimate_budget(estimate(256))
        .await
        .expect("estimated")
        .into_inner();
    assert_eq!(found.breakdown.len(), 1);
    for count in [0, 257] {
        let refused = client
            .estimate_budget(estimate(count))
            .await
            .expect_err("refused");
        assert_eq!(refused.code(), Code::InvalidArgument, "{count}");
    }
    world.domain.close().await;
}

/// The answer of a tool of `discovery-core`.
async fn tool(server: &Server, name: &str, arguments: Json) -> Json {
    let request = ask(&server.url, "POST", "/mcp/discovery-core");
    let call = json!({"name": name, "arguments": arguments});
    let answer = request.mcp("tools/call", call).send().await;
    answer.json()["result"]["structuredContent"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_answer_in_the_envelope_as_the_specification_has_them() {
    let server = Server::start();
    let mut registry = server.registry().await;
    for (id, triggers) in [
        (JEST, "[test, jest]"),
        (VITEST, "[test, write test, unit test, vitest]"),
    ] {
        let skill = skill(id, &format!("triggers: {triggers}\n"), "Do it.");
        registry.publish_skill(skill).await.expect("published");
    }
    let arguments =
        json!({"skill_id": JEST, "against_skills": [VITEST], "against_installed": false});
    let told = tool(&server, "check_conflicts", arguments).await;
    assert_eq!(told["success"], true, "{told}");
    let mut data = told["data"].clone();
    let conflict = data["conflicts"][0].as_object_mut().expect("a conflict");
    let with = conflict.remove("conflicting_skill").expect("a skill");
    assert_eq!(
        (&with["id"], &with["name"]),
        (&json!(VITEST), &json!("vitest-skill"))
    );
    assert_eq!(
        data,
        json!({
            "skill_id": JEST,
            "has_conflicts": true,
            "conflicts": [{
                "skill_id": VITEST,
                "skill_name": "vitest-skill",
                "type": "trigger_overlap",
                "severity": "warning",
                "description": "Both skills respond to 'unit test' triggers",
                "resolution_options": [
                    "Uninstall one skill", "Set priority order", "Use specific trigger phrases"
                ],
                "overlap_details": {
                    "shared_triggers": ["unit test", "write test", "test"],
                    "overlap_percentage": 75
                }
            }],
            "recommendations": [
                "Consider setting priority: jest-skill > vitest-skill, which 1 other phrase calls up",
                "Use 'jest test' and 'vitest test' for explicit skill targeting"
            ],
            "skills_compared": 1
        })
    );
    let told = tool(
        &server,
        "estimate_budget",
        json!({"skill_ids": [JEST, VITEST]}),
    )
    .await;
    assert_eq!(
        (&told["success"], &told["data"]["fits_budget"]),
        (&json!(true), &json!(true)),
        "{told}"
    );
    assert_eq!(told["data"].get("overflow_amount"), None);
    let told = tool(
        &server,
        "audit_activation",
        json!({"skill_id": JEST, "generate_hooks": true}),
    )
    .await;
    assert_eq!(
        told["data"]["summary"]["overall_health"], "healthy",
        "{told}"
    );
    assert_eq!(told["data"]["issues"], json!([]));
    let settings = &told["data"]["claude_code_settings"]["hooks"]["UserPromptSubmit"];
    assert_eq!(
        settings[0]["hooks"][0]["command"],
        "repertoire activation --hook"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_refuse_with_the_codes_of_the_specification() {
    let server = Server::start();
    for (name, arguments, code) in [
        ("check_conflicts", json!({}), "MISSING_PARAMETER"),
        (
            "check_conflicts",
            json!({"skill_id": "github/a/absent"}),
            "SKILL_NOT_FOUND",
        ),
        ("estimate_budget", json!({}), "MISSING_PARAMETER"),
        (
            "estimate_budget",
            json!({"skill_ids": []}),
            "INVALID_PARAMETER",
        ),
        (
            "estimate_budget",
            json!({"skill_ids": ["github/a/absent"]}),
            "SKILL_NOT_FOUND",
        ),
        (
            "audit_activation",
            json!({"skill_id": "github/a/absent"}),
            "SKILL_NOT_FOUND",
        ),
    ] {
        let told = tool(&server, name, arguments.clone()).await;
        assert_eq!(
            (&told["success"], &told["error"]["code"]),
            (&json!(false), &json!(code)),
            "{name} {arguments}"
        );
    }
}
