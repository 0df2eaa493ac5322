//! What a proof of a composition says: who granted and who denied, and where each step is from.

use contract::v1;
use contract::v1::{ToolRule as Rule, ToolVerdict as Verdict};

use super::{PAIR, World, texts};
use crate::support::{self, skill};

#[tokio::test]
async fn the_worked_example_of_the_specification_is_answered_byte_for_byte() {
    let mut world = World::new().await;
    let answer = world.compose(&PAIR).await.expect("a composition");
    let contract = contract::load().expect("the contract");
    let all = contract
        .json("ComposeSkillsResponse", &answer)
        .expect("JSON");
    let fields = [
        "skills",
        "allowed_tools",
        "forbidden_tools",
        "execution_protocol",
    ];
    // The four fields of the specification come first, in its order.
    let first: serde_json::Map<_, _> = all
        .as_object()
        .expect("an object")
        .clone()
        .into_iter()
        .take(4)
        .collect();
    assert_eq!(first.keys().collect::<Vec<_>>(), fields);
    assert_eq!(
        serde_json::to_string_pretty(&first).expect("JSON"),
        r#"{
  "skills": [
    "specification-engine",
    "opencode-implementer"
  ],
  "allowed_tools": [
    "specKit",
    "opencode-executor"
  ],
  "forbidden_tools": [
    "write",
    "edit"
  ],
  "execution_protocol": [
    "analyze-task",
    "generate-spec",
    "validate-spec",
    "read-spec",
    "implement",
    "verify"
  ]
}"#
    );
    assert_eq!(answer.warnings, Vec::<String>::new());
    world.services.domain.close().await;
}

/// The pair with a skill that may write and shares a step.
async fn written() -> v1::ComposeSkillsResponse {
    let tools =
        "version: 2.1.0\nallowed_tools: [write, read]\nexecution_protocol: [read-spec, write-it]";
    let mut world = World::new().await.with("a/b/writer", tools).await;
    let answer = world.compose(&["writer", PAIR[0], PAIR[1]]).await;
    answer.expect("a composition")
}

#[tokio::test]
async fn the_proof_says_who_granted_and_who_denied_each_tool() {
    let answer = written().await;
    let proof = answer.proof.expect("a proof");
    let names = |all: &[v1::ToolStatement]| -> Vec<String> {
        let of = |s: &v1::ToolStatement| {
            let skill = s.skill.clone().expect("a skill");
            format!(
                "{} {} {} as {}",
                skill.skill, skill.version_number, skill.semantic_version, s.pattern
            )
        };
        all.iter().map(of).collect()
    };
    let tools: Vec<_> = proof
        .tools
        .iter()
        .map(|tool| {
            (
                tool.tool.as_str(),
                tool.verdict(),
                tool.rule(),
                names(&tool.grants),
                names(&tool.denials),
            )
        })
        .collect();
    let implementer = |tool: &str| vec![format!("opencode-implementer 1 1.0.0 as {tool}")];
    let writer = |tool: &str| vec![format!("writer 1 2.1.0 as {tool}")];
    assert_eq!(
        tools,
        [
            (
                "edit",
                Verdict::Denied,
                Rule::Forbidden,
                vec![],
                implementer("edit")
            ),
            (
                "opencode-executor",
                Verdict::Allowed,
                Rule::Granted,
                implementer("opencode-executor"),
                vec![]
            ),
            (
                "read",
                Verdict::Allowed,
                Rule::Granted,
                writer("read"),
                vec![]
            ),
            (
                "specKit",
                Verdict::Allowed,
                Rule::Granted,
                vec!["specification-engine 1 1.0.0 as specKit".to_owned()],
                vec![]
            ),
            (
                "write",
                Verdict::Denied,
                Rule::Forbidden,
                writer("write"),
                implementer("write")
            ),
        ]
    );
    assert_eq!(
        answer.warnings,
        [
            "TOOL_ALLOWED_AND_FORBIDDEN: `write` is allowed by 'writer' and forbidden by 'opencode-implementer'; it stays forbidden"
        ]
    );
}

#[tokio::test]
async fn the_proof_says_where_each_step_is_from() {
    let proof = written().await.proof.expect("a proof");
    let steps: Vec<_> = proof
        .execution_protocol
        .iter()
        .map(|step| {
            (
                step.text.as_str(),
                step.skills
                    .iter()
                    .map(|s| s.skill.as_str())
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(
        steps,
        [
            ("read-spec", vec!["writer", "opencode-implementer"]),
            ("write-it", vec!["writer"]),
            ("analyze-task", vec!["specification-engine"]),
            ("generate-spec", vec!["specification-engine"]),
            ("validate-spec", vec!["specification-engine"]),
            ("implement", vec!["opencode-implementer"]),
            ("verify", vec!["opencode-implementer"]),
        ]
    );
}

#[tokio::test]
async fn a_forbidden_tool_stays_forbidden_whatever_the_order_and_the_policy() {
    let mut world = World::new()
        .await
        .with("a/b/allows", "allowed_tools: [write, read]")
        .await
        .with(
            "a/b/denies",
            "allowed_tools: [read]\nforbidden_tools: [write]",
        )
        .await;
    for (skills, policy) in [
        (["allows", "denies"], v1::ToolPolicy::Union),
        (["denies", "allows"], v1::ToolPolicy::Union),
        (["allows", "denies"], v1::ToolPolicy::Intersection),
    ] {
        let request = v1::ComposeSkillsRequest {
            skills: texts(&skills),
            tool_policy: policy.into(),
            ..Default::default()
        };
        let answer = world.composed(request).await;
        assert_eq!(
            (answer.allowed_tools, answer.forbidden_tools),
            (texts(&["read"]), texts(&["write"]))
        );
    }
}

#[tokio::test]
async fn a_skill_without_tools_is_valid_and_said_to_have_none() {
    let mut world = World::new().await.with("a/b/none", "").await;
    let answer = world.compose(&["none"]).await.expect("a composition");
    assert_eq!(
        (answer.skills, answer.allowed_tools, answer.warnings),
        (
            texts(&["none"]),
            vec![],
            texts(&["EMPTY_TOOLSET: 'none' allows no tool"])
        )
    );
}

#[tokio::test]
async fn duplicates_count_once_however_they_are_written() {
    let mut world = World::new()
        .await
        .with("a/b/one", "version: 1.0.0\nallowed_tools: [x]")
        .await;
    let answer = world
        .compose(&["one", "ONE", "A/b/One", "one@1"])
        .await
        .expect("a composition");
    assert_eq!(answer.skills, ["one"]);
    assert_eq!(
        answer.warnings,
        [
            "DUPLICATE_SKILL: 'one' and 'ONE' are both 'a/b/one'; it counts once",
            "DUPLICATE_SKILL: 'one' and 'A/b/One' are both 'a/b/one'; it counts once",
            "DUPLICATE_SKILL: 'one' and 'one@1' are both 'a/b/one'; it counts once",
        ]
    );
    world
        .publish("a/b/one", "version: 2.0.0\nallowed_tools: [x]")
        .await;
    let answer = world.validate(&["one@1.0.0", "one@^2"], false).await;
    assert_eq!(
        answer.errors[0].message,
        "'a/b/one' is asked for as version 1 by 'one@1.0.0' and as version 2 by 'one@^2'"
    );
}

#[tokio::test]
async fn what_a_short_name_hid_is_told() {
    let mut world = World::new().await;
    for id in ["local/project/pdf", "github/acme/pdf"] {
        world.publish(id, "allowed_tools: [x]").await;
    }
    let answer = world.compose(&["pdf"]).await.expect("a composition");
    assert_eq!(
        answer.warnings,
        ["SHADOWED_SKILL: 'pdf' is 'local/project/pdf', and hides 'github/acme/pdf'"]
    );
    let both = world
        .compose(&["pdf", "github/acme/pdf"])
        .await
        .expect("a composition");
    assert_eq!(both.skills, ["pdf", "github/acme/pdf"]);
}

#[tokio::test]
async fn a_set_that_reads_secrets_and_strangers_words_and_sends_things_out_is_warned_of() {
    let mut world = World::new().await;
    let mail = skill(
        "local/global/mail",
        "allowed_tools: [Read]\n",
        "# Mail\nSummarize the e-mails of the inbox.",
    );
    let mut post = skill("local/global/post", "allowed_tools: [Bash]\n", "# Post");
    post.files.push(support::file(
        "scripts/post.py",
        "import requests\nrequests.post('https://api.notion.com/v1/pages', json={})\n".to_owned(),
    ));
    world.services.publish(mail).await;
    world.services.publish(post).await;
    let warned = |composed: v1::ComposeSkillsResponse| {
        let findings = composed.findings.into_iter();
        let findings = findings.filter(|finding| finding.code == "LETHAL_TRIFECTA");
        findings
            .map(|finding| (finding.message, finding.skills))
            .collect::<Vec<_>>()
    };
    for alone in ["mail", "post"] {
        let composed = world.compose(&[alone]).await.expect("a composition");
        assert_eq!(warned(composed), []);
    }
    let composed = world.compose(&["mail", "post"]).await;
    let message = "together they read private data ('mail'), read untrusted text ('mail') and send data out ('post')";
    let skills = vec!["mail".to_owned(), "post".to_owned()];
    assert_eq!(
        warned(composed.expect("a composition")),
        [(message.to_owned(), skills)]
    );
}
