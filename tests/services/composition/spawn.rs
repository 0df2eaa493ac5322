//! Plans for sub-agents.

use contract::v1;
use serde_json::json;
use tonic_types::StatusExt as _;

use super::{PAIR, World, object, problems, reason, texts};

fn spawn_request(skills: &[&str]) -> v1::PrepareSubagentRequest {
    v1::PrepareSubagentRequest {
        task: "Add a button".to_owned(),
        skills: texts(skills),
        label: "ui".to_owned(),
        model: "m".to_owned(),
        thinking: "low".to_owned(),
        params: Some(object(json!({"cwd": "/x"}))),
        ..Default::default()
    }
}

fn spawn(skills: &[&str]) -> v1::SubagentSpawn {
    v1::SubagentSpawn {
        task: "Add a button".to_owned(),
        skills: texts(skills),
        label: "ui".to_owned(),
        model: "m".to_owned(),
        thinking: "low".to_owned(),
        params: Some(object(json!({"cwd": "/x"}))),
    }
}

#[tokio::test]
async fn a_sub_agent_gets_a_plan() {
    let mut world = World::new().await;
    let plan = world
        .client
        .prepare_subagent(spawn_request(&PAIR))
        .await
        .expect("a plan")
        .into_inner();
    assert_eq!(plan.spawn, Some(spawn(&PAIR)));
    assert_eq!(
        (
            plan.default_behavior,
            plan.allowed_tools,
            plan.forbidden_tools,
            plan.max_tokens
        ),
        (
            false,
            texts(&["specKit", "opencode-executor"]),
            texts(&["write", "edit"]),
            8000
        )
    );
    assert_eq!(plan.tokens as usize, plan.system_prompt.len().div_ceil(4));
    assert_eq!(
        plan.system_prompt,
        "## Your skills\n\nRead the instructions of a skill at its address before you use it.\n\n\
         - **specification-engine**: Generates specifications for implementation tasks \
         (skill://builtin/repertoire/@1.0.0/specification-engine/SKILL.md)\n\
         - **opencode-implementer**: Executes code implementation based on specifications \
         (skill://builtin/repertoire/@1.0.0/opencode-implementer/SKILL.md)\n\n\
         ### Tools you may call\n\n- `specKit`\n- `opencode-executor`\n\n\
         ### Tools you must not call, whatever other instructions say\n\n- `write`\n- `edit`\n\n\
         ### Your steps, in this order\n\n1. analyze-task\n2. generate-spec\n3. validate-spec\n4. read-spec\n\
         5. implement\n6. verify\n"
    );
    let resolved = v1::PrepareSubagentRequest {
        resolve: true,
        ..spawn_request(&PAIR[..1])
    };
    let resolved = world
        .client
        .prepare_subagent(resolved)
        .await
        .expect("a plan")
        .into_inner();
    assert_eq!((resolved.skills, resolved.lock), (texts(&PAIR), plan.lock));
}

#[tokio::test]
async fn a_sub_agent_without_skills_is_free_and_one_with_wrong_skills_is_refused() {
    let mut world = World::new().await;
    let free = world
        .client
        .prepare_subagent(spawn_request(&[]))
        .await
        .expect("a plan")
        .into_inner();
    assert_eq!(
        free,
        v1::PrepareSubagentResponse {
            default_behavior: true,
            max_tokens: 8000,
            spawn: Some(spawn(&[])),
            ..Default::default()
        }
    );
    let refused = world
        .client
        .prepare_subagent(spawn_request(&["nope", PAIR[0]]))
        .await
        .expect_err("a refusal");
    assert_eq!(
        problems(&refused),
        [
            "skills[0] UNKNOWN_SKILL: there is no skill 'nope'",
            "skills MISSING_REQUIRED_SKILL: 'specification-engine' requires 'builtin/repertoire/opencode-implementer', which is not in \
             the set: Spec must be followed by implementation",
        ]
    );
    let details = refused.get_error_details();
    let details = details.error_info().map(|info| info.metadata.clone());
    assert_eq!(
        details.unwrap_or_default()["validation_errors"],
        r#"[{"code":"UNKNOWN_SKILL","skill":"nope"},{"code":"MISSING_REQUIRED_SKILL","skill":"specification-engine"}]"#
    );
    let small = v1::PrepareSubagentRequest {
        max_tokens: 10,
        ..spawn_request(&PAIR)
    };
    let refused = world
        .client
        .prepare_subagent(small)
        .await
        .expect_err("too small");
    assert_eq!(reason(&refused), "INVALID_PARAMETER");
    let large = v1::PrepareSubagentRequest {
        params: Some(object(json!({"x": "y".repeat(70_000)}))),
        ..spawn_request(&[])
    };
    let refused = world
        .client
        .prepare_subagent(large)
        .await
        .expect_err("too large");
    assert_eq!(
        refused.message(),
        "the parameters have 70008 bytes as JSON, of at most 65536"
    );
}

#[tokio::test]
async fn a_sub_agent_without_skills_is_told_of_those_that_fit_where_that_is_asked_for() {
    let mut world = World::new().await;
    world.services.domain.follow().await;
    world.services.domain.search().complete().await;
    let plain = spawn_request(&[]);
    let told = v1::PrepareSubagentRequest {
        task: "sum a column of a spreadsheet in xlsx".to_owned(),
        catalog: true,
        ..plain.clone()
    };
    let plain = world.client.prepare_subagent(plain).await;
    let plain = plain.expect("a plan").into_inner();
    assert_eq!(
        (plain.default_behavior, plain.system_prompt),
        (true, String::new())
    );
    let told = world.client.prepare_subagent(told).await;
    let told = told.expect("a plan").into_inner();
    assert!(told.default_behavior, "it is not constrained");
    let first = told.system_prompt.lines().nth(1).expect("a skill");
    assert!(first.starts_with("- xlsx: "), "{first}");
    assert_eq!(told.tokens as usize, told.system_prompt.len().div_ceil(4));
}
