//! Sets of skills over the services in process: the worked example and the rules
//! of the specification, locks, calls of tools, sub-agents, selection.

mod support;

use gateway::Transport;
use repertoire::contract::v1;
use repertoire::contract::v1::composition_client::CompositionClient;
use repertoire::contract::v1::{ToolRule as Rule, ToolVerdict as Verdict};
use serde_json::{Value, json};
use support::skill;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// The services, and a client of the compositions.
struct World {
    client: CompositionClient<Transport>,
    services: support::World,
}

impl World {
    async fn new() -> Self {
        let services = support::World::new().await;
        Self {
            client: CompositionClient::new(services.transport.clone()),
            services,
        }
    }

    /// Publishes a skill with more front matter; its version is what that says.
    async fn with(mut self, id: &str, front_matter: &str) -> Self {
        self.publish(id, front_matter).await;
        self
    }

    async fn publish(&mut self, id: &str, front_matter: &str) {
        let skill = skill(id, &format!("{front_matter}\n"), &format!("Body of {id}."));
        self.services.publish(skill).await;
    }

    async fn yank(&mut self, id: &str, number: u32) {
        let request = v1::YankVersionRequest {
            skill_id: id.to_owned(),
            version_number: number,
            reason: "wrong".to_owned(),
            ..Default::default()
        };
        self.services
            .registry
            .yank_version(request)
            .await
            .expect("withdrawn");
    }

    async fn activate(&mut self, id: &str, number: u32) {
        let request = v1::ActivateVersionRequest {
            skill_id: id.to_owned(),
            version_number: number,
            ..Default::default()
        };
        self.services
            .registry
            .activate_version(request)
            .await
            .expect("active");
    }

    async fn compose(&mut self, skills: &[&str]) -> Result<v1::ComposeSkillsResponse, Status> {
        let request = v1::ComposeSkillsRequest {
            skills: texts(skills),
            ..Default::default()
        };
        Ok(self.client.compose_skills(request).await?.into_inner())
    }

    async fn composed(&mut self, request: v1::ComposeSkillsRequest) -> v1::ComposeSkillsResponse {
        let answer = self.client.compose_skills(request).await;
        answer.expect("a composition").into_inner()
    }

    async fn refused(&mut self, request: v1::ComposeSkillsRequest) -> Vec<String> {
        let refused = self
            .client
            .compose_skills(request)
            .await
            .expect_err("a refusal");
        assert_eq!(reason(&refused), "SKILL_SET_INVALID", "{refused:?}");
        problems(&refused)
    }

    async fn validate(&mut self, skills: &[&str], resolve: bool) -> v1::ValidateSkillSetResponse {
        let request = v1::ValidateSkillSetRequest {
            skills: texts(skills),
            resolve,
            ..Default::default()
        };
        let answer = self.client.validate_skill_set(request).await;
        answer.expect("an answer").into_inner()
    }

    async fn check(
        &mut self,
        skills: &[&str],
        tool: &str,
        arguments: Value,
    ) -> v1::CheckToolResponse {
        let request = v1::CheckToolRequest {
            tool: tool.to_owned(),
            arguments: Some(object(arguments)),
            skills: texts(skills),
            ..Default::default()
        };
        let answer = self.client.check_tool(request).await;
        answer.expect("an answer").into_inner()
    }

    async fn select(&mut self, task: &str) -> v1::SelectSkillsResponse {
        self.services.domain.follow().await;
        self.services.domain.search().complete().await;
        let request = v1::SelectSkillsRequest {
            task: task.to_owned(),
            ..Default::default()
        };
        let answer = self.client.select_skills(request).await;
        answer.expect("a selection").into_inner()
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Texts of a flat object, which is all that arguments here need.
fn object(value: Value) -> prost_types::Struct {
    let Value::Object(fields) = value else {
        panic!("not an object: {value}");
    };
    let text = |value: Value| prost_types::Value {
        kind: Some(prost_types::value::Kind::StringValue(
            value.as_str().expect("a text").to_owned(),
        )),
    };
    prost_types::Struct {
        fields: fields
            .into_iter()
            .map(|(name, value)| (name, text(value)))
            .collect(),
    }
}

fn reason(status: &Status) -> String {
    let details = status.get_error_details();
    details
        .error_info()
        .map(|info| info.reason.clone())
        .unwrap_or_default()
}

fn problems(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let bad = details
        .bad_request()
        .map(|bad| bad.field_violations.clone());
    let bad = bad.unwrap_or_default().into_iter();
    bad.map(|problem| format!("{} {}", problem.field, problem.description))
        .collect()
}

/// `CODE about chain` of each finding.
fn findings(findings: &[v1::Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| {
            let chain = if finding.chain.is_empty() {
                String::new()
            } else {
                format!(": {}", finding.chain.join(" > "))
            };
            format!("{} {}{chain}", finding.code, finding.skills.join(" "))
        })
        .collect()
}

const PAIR: [&str; 2] = ["specification-engine", "opencode-implementer"];

#[tokio::test]
async fn the_worked_example_of_the_specification_is_answered_byte_for_byte() {
    let mut world = World::new().await;
    let answer = world.compose(&PAIR).await.expect("a composition");
    let contract = repertoire::contract::load().expect("the contract");
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
        "'top' 1.0.0 requires 'log@^2'",
        "'app' 1.0.0 requires 'log@^1'",
        "'top' 1.0.0 requires 'app'",
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
         ### Tools you may not call, whatever else is said\n\n- `write`\n- `edit`\n\n\
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
            "skills MISSING_REQUIRED_SKILL: 'specification-engine' requires 'opencode-implementer', which is not in \
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
    let message = "together they read private data ('mail'), take in what strangers wrote ('mail') and hand something out ('post')";
    let skills = vec!["mail".to_owned(), "post".to_owned()];
    assert_eq!(
        warned(composed.expect("a composition")),
        [(message.to_owned(), skills)]
    );
}
