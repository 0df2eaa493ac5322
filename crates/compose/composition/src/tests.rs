mod fuzz;
mod hostile;
mod patterns;
mod properties;
mod shell;
mod solving;
mod stored;
mod told;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Map;

use super::*;
use model::{
    CompatibilityRule, CompatibilityRuleType, ComposabilityRule, ComposabilityRuleType, Digest,
    FilePath, OutputContract, Principal, Skill, SkillId, Version, VersionNumber,
};

fn compose(members: &[Member], policy: ToolPolicy) -> Composed {
    compose_until(members, policy, &executor::Stop::never()).expect("a composition")
}

/// A skill of a test.
#[derive(Debug, Clone)]
struct Draft {
    id: String,
    skill: Skill,
    number: u32,
    semantic: String,
}

impl Draft {
    fn new(slug: &str) -> Self {
        let skill = Skill {
            name: slug.to_owned(),
            description: String::new(),
            entry: FilePath::skill_md(),
            version: None,
            category: String::new(),
            other_categories: Vec::new(),
            author: None,
            license: String::new(),
            compatibility: String::new(),
            homepage: String::new(),
            repository: String::new(),
            tags: Vec::new(),
            triggers: Vec::new(),
            technologies: Vec::new(),
            allowed_tools: Vec::new(),
            forbidden_tools: Vec::new(),
            execution_protocol: Vec::new(),
            preconditions: Vec::new(),
            postconditions: Vec::new(),
            output_contract: None,
            compatibility_rules: Vec::new(),
            composability_rules: Vec::new(),
            tool_configs: Vec::new(),
            resource_configs: Vec::new(),
            display_name: String::new(),
            disable_model_invocation: false,
            long_description: String::new(),
            excerpt: String::new(),
            chars: 0,
            front_matter: Map::new(),
        };
        Self {
            id: format!("a/b/{slug}"),
            skill,
            number: 1,
            semantic: "1.0.0".to_owned(),
        }
    }

    fn version(mut self, number: u32, semantic: &str) -> Self {
        self.number = number;
        semantic.clone_into(&mut self.semantic);
        self
    }

    fn allows<S: AsRef<str>>(mut self, tools: &[S]) -> Self {
        self.skill.allowed_tools = tools.iter().map(|t| t.as_ref().to_owned()).collect();
        self
    }

    fn forbids_tools<S: AsRef<str>>(mut self, tools: &[S]) -> Self {
        self.skill.forbidden_tools = tools.iter().map(|t| t.as_ref().to_owned()).collect();
        self
    }

    fn requires(mut self, skill: &str) -> Self {
        self.skill.composability_rules.push(ComposabilityRule {
            kind: ComposabilityRuleType::Requires,
            skill: skill.to_owned(),
            reason: String::new(),
        });
        self
    }

    fn hates(mut self, skill: &str) -> Self {
        self.skill.compatibility_rules.push(CompatibilityRule {
            kind: CompatibilityRuleType::Incompatible,
            skill: skill.to_owned(),
            reason: String::new(),
        });
        self
    }

    fn forbids(mut self, skill: &str, reason: &str) -> Self {
        self.skill.composability_rules.push(ComposabilityRule {
            kind: ComposabilityRuleType::Forbids,
            skill: skill.to_owned(),
            reason: reason.to_owned(),
        });
        self
    }

    fn gives(mut self, kind: &str) -> Self {
        self.skill.output_contract = Some(OutputContract {
            kind: kind.to_owned(),
            schema: None,
        });
        self
    }

    fn id(&self) -> SkillId {
        self.id.parse().expect("an id")
    }

    fn build(&self) -> Arc<Version> {
        Arc::new(Version {
            number: VersionNumber::new(self.number).expect("a number"),
            semantic: self.semantic.parse().expect("a version"),
            digest: Digest::of(format!("{self:?}").as_bytes()),
            skill: self.skill.clone(),
            files: Vec::new(),
            problems: Vec::new(),
            created_at: Timestamp::UNIX_EPOCH,
            created_by: Principal::system(),
            change_summary: String::new(),
        })
    }

    fn member(&self) -> Member {
        Member {
            name: self.id().slug().into(),
            id: self.id(),
            version: self.build(),
        }
    }
}

fn members(drafts: &[Draft]) -> Vec<Member> {
    drafts.iter().map(Draft::member).collect()
}

fn allowed(composed: &Composed) -> Vec<&str> {
    composed.allowed_tools().collect()
}

fn forbidden(composed: &Composed) -> Vec<&str> {
    composed.forbidden_tools().collect()
}

fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::line).collect()
}

#[test]
fn an_allow_is_cut_by_a_forbid_that_covers_it_and_kept_with_exceptions_otherwise() {
    let drafts = [
        Draft::new("dev").allows(&["Bash", "Bash(git push:*)", "mcp__db__query", "Read"]),
        Draft::new("safe").forbids_tools(&["Bash(git:*)", "mcp__db"]),
    ];
    let composed = compose(&members(&drafts), ToolPolicy::Union);
    assert_eq!(allowed(&composed), ["Bash", "Read"]);
    assert_eq!(forbidden(&composed), ["Bash(git:*)", "mcp__db"]);
    let rules: Vec<_> = composed
        .tools()
        .map(|proof| (&*proof.tool, proof.rule, proof.exceptions.len()))
        .collect();
    assert_eq!(
        rules,
        [
            ("Bash", ToolRule::GrantedExcept, 1),
            ("Bash(git push:*)", ToolRule::Forbidden, 0),
            ("Bash(git:*)", ToolRule::Forbidden, 0),
            ("Read", ToolRule::Granted, 0),
            ("mcp__db", ToolRule::Forbidden, 0),
            ("mcp__db__query", ToolRule::Forbidden, 0),
        ]
    );
}

#[test]
fn what_cannot_be_told_of_patterns_is_reported_and_not_permitted() {
    let drafts = [
        Draft::new("a").allows(&["Skill(x)", "write", "Bash(open"]),
        Draft::new("b")
            .allows(&["y"])
            .forbids_tools(&["Skill(y)", "Write"]),
    ];
    let composed = compose(&members(&drafts), ToolPolicy::Union);
    assert_eq!(
        lines(&composed.findings),
        [
            "TOOL_PATTERN_UNDECIDED: `Bash(open` cannot be read as a tool; it permits nothing",
            "TOOL_PATTERN_UNDECIDED: whether `Skill(y)`, which is forbidden, covers calls of `Skill(x)`, \
             which is allowed, cannot be told; calls that it may cover are not permitted",
            "TOOL_PATTERN_UNDECIDED: whether `Write`, which is forbidden, covers calls of `write`, which is \
             allowed, cannot be told; calls that it may cover are not permitted",
        ]
    );
    let none = Map::new();
    for tool in ["Skill", "write", "Write", "Bash"] {
        let call = Call::new(tool, &none);
        assert!(!composed.check(&call).rule.allows(), "{tool}");
    }
}

#[test]
fn a_call_is_answered_by_the_rule_that_decides_it_and_says_whose_it_is() {
    let a = Draft::new("a").allows(&["Read", "Grep", "Bash(git status:*)", "Skill(x)"]);
    let b = Draft::new("b")
        .allows(&["Read", "Bash(ls:*)"])
        .forbids_tools(&["Write"]);
    let members = members(&[a, b]);
    let answers = |policy, calls: &[(&str, &str)]| -> Vec<(ToolRule, String)> {
        let composed = compose(&members, policy);
        let answer = |(tool, command): &(&str, &str)| {
            let arguments = match *command {
                "" => Map::new(),
                command => Map::from_iter([("command".to_owned(), command.into())]),
            };
            let call = Call::new(tool, &arguments);
            let decision = composed.check(&call);
            (decision.rule, composed.reason(&call, &decision))
        };
        calls.iter().map(answer).collect()
    };
    let wanted = |rows: &[(ToolRule, &str)]| -> Vec<(ToolRule, String)> {
        let rows = rows.iter();
        rows.map(|(rule, reason)| (*rule, (*reason).to_owned()))
            .collect()
    };
    let calls = [
        ("Grep", ""),
        ("Write", ""),
        ("Bash", "git status && ls -l"),
        ("Bash", "ls -l && git push"),
        ("Skill", ""),
        ("Edit", ""),
    ];
    assert_eq!(
        answers(ToolPolicy::Union, &calls),
        wanted(&[
            (ToolRule::Granted, "'Grep' is allowed by 'a' as `Grep`"),
            (
                ToolRule::Forbidden,
                "'Write' is forbidden by 'b' as `Write`"
            ),
            // Each command by a pattern of its own; the first one is named.
            (
                ToolRule::Granted,
                "'Bash' is allowed by 'a' as `Bash(git status:*)`"
            ),
            (
                ToolRule::NotGranted,
                "No skill of the composition allows this call of 'Bash'"
            ),
            (
                ToolRule::Undecided,
                "This call of 'Skill' is not permitted: whether `Skill(x)` of 'a' covers it cannot be \
                 told, since only the tool itself knows what the rule `(x)` means"
            ),
            (
                ToolRule::NotGranted,
                "No skill of the composition allows this call of 'Edit'"
            ),
        ])
    );
    assert_eq!(
        answers(ToolPolicy::Intersection, &[("Read", ""), ("Grep", "")]),
        wanted(&[
            (ToolRule::Granted, "'Read' is allowed by 'a' as `Read`"),
            (
                ToolRule::NotGrantedByAll,
                "'Grep' is allowed by 'a' as `Grep`, but not by every skill, as the intersection demands"
            ),
        ])
    );
}

#[test]
fn a_tool_in_lower_case_with_any_arguments_is_the_tool() {
    let drafts = [
        Draft::new("a").allows(&["bash", "ls"]),
        Draft::new("b").forbids_tools(&["bash(*)"]),
    ];
    let composed = compose(&members(&drafts), ToolPolicy::Union);
    assert_eq!(allowed(&composed), ["ls"]);
    // One that nobody can read is told of once.
    let drafts = [
        Draft::new("a").allows(&["X)"]),
        Draft::new("b").forbids_tools(&["x)"]),
    ];
    let composed = compose(&members(&drafts), ToolPolicy::Union);
    let untold = composed.findings.iter();
    let untold = untold.filter(|f| f.message.starts_with("whether `x)`"));
    assert_eq!(untold.count(), 1, "{:?}", composed.findings);
}

#[test]
fn texts_that_begin_alike_are_told_apart_and_put_in_order() {
    let tool = |end: &str| format!("mcp__a_long_name__of_a_tool_{end}");
    let drafts = [
        Draft::new("a").allows(&[
            &tool("b"),
            "ab",
            &tool("a"),
            "a",
            &format!(" {} ", tool("b")),
        ]),
        Draft::new("b")
            .allows(&["a\0", &tool("a"), &tool("aa")])
            .forbids_tools(&[&tool("aa"), "\u{e9}"]),
    ];
    let composed = compose(&members(&drafts), ToolPolicy::Union);
    let tools: Vec<_> = composed
        .tools()
        .map(|proof| (&*proof.tool, proof.grants.len(), proof.denials.len()))
        .collect();
    assert_eq!(
        tools,
        [
            ("a", 1, 0),
            ("a\0", 1, 0),
            ("ab", 1, 0),
            (&tool("a"), 2, 0),
            (&tool("aa"), 1, 1),
            (&tool("b"), 1, 0),
            ("\u{e9}", 0, 1),
        ]
    );
}

#[test]
fn the_intersection_keeps_what_every_skill_allows_and_explains_the_rest() {
    let drafts = [
        Draft::new("a").allows(&["Bash", "Read", "Bash(npm:*)"]),
        Draft::new("b").allows(&["Bash(git:*)", "Read", "Write"]),
    ];
    let composed = compose(&members(&drafts), ToolPolicy::Intersection);
    assert_eq!(allowed(&composed), ["Read", "Bash(git:*)"]);
    let arguments = Map::new();
    let call = Call::new("Write", &arguments);
    let decision = composed.check(&call);
    assert_eq!(
        composed.reason(&call, &decision),
        "'Write' is allowed by 'b' as `Write`, but not by every skill, as the intersection demands"
    );
    let beside = [
        Draft::new("a").allows(&["Bash(git *)"]),
        Draft::new("b").allows(&["Bash(* -v)"]),
    ];
    let composed = compose(&members(&beside), ToolPolicy::Intersection);
    assert_eq!(
        lines(&composed.findings),
        [
            "EMPTY_TOOLSET: the skills together allow no tool",
            "TOOL_PATTERN_UNDECIDED: `Bash(* -v)` and `Bash(git *)` may share calls, but no pattern names \
             those; none of them is permitted",
        ]
    );
}

#[test]
fn output_contracts_that_differ_are_kept_apart_and_told() {
    let drafts = [
        Draft::new("a").allows(&["x"]).gives("report"),
        Draft::new("b").allows(&["x"]).gives("patch"),
        Draft::new("c").allows(&["x"]).gives("report"),
    ];
    let composed = compose(&members(&drafts), ToolPolicy::Union);
    let promised: Vec<_> = composed
        .output_contracts
        .iter()
        .map(|promised| (promised.kind.as_str(), promised.members.as_slice()))
        .collect();
    assert_eq!(promised, [("report", &[0, 2][..]), ("patch", &[1][..])]);
    assert_eq!(
        lines(&composed.findings),
        [
            "OUTPUT_CONTRACT_CONFLICT: 'a', 'b' and 'c' promise outputs of the types 'patch' and 'report'"
        ]
    );
}

#[test]
fn a_list_names_what_it_left_out() {
    let names: Vec<String> = (0..11).map(|at| format!("s{at}")).collect();
    for (count, text) in [
        (0, ""),
        (1, "'s0'"),
        (3, "'s0', 's1' and 's2'"),
        (
            11,
            "'s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7' and 3 more",
        ),
    ] {
        assert_eq!(finding::listed(&names[..count]), text);
    }
}

#[test]
fn outputs_of_one_type_with_other_schemas_are_told_as_that() {
    let schema = |kind: &str| serde_json::json!({"type": kind}).as_object().cloned();
    let mut drafts = ["a", "b", "c"].map(|slug| Draft::new(slug).allows(&["x"]).gives("report"));
    for (draft, kind) in drafts.iter_mut().zip(["object", "array", "object"]) {
        if let Some(contract) = &mut draft.skill.output_contract {
            contract.schema = schema(kind);
        }
    }
    let composed = compose(&members(&drafts), ToolPolicy::Union);
    assert_eq!(
        lines(&composed.findings),
        [
            "OUTPUT_CONTRACT_CONFLICT: 'a', 'b' and 'c' promise the output type 'report' with different schemas"
        ]
    );
    let composed = compose(&members(&drafts[..1]), ToolPolicy::Union);
    assert_eq!(lines(&composed.findings), Vec::<String>::new());
}

#[test]
fn what_makes_a_set_invalid_is_refused_with_codes_and_what_to_do() {
    let finding = |code, skill: &str| Finding::new(code, "no".to_owned()).about([skill]);
    let errors = vec![
        finding(FindingCode::IncompatibleSkills, "a"),
        finding(FindingCode::ForbiddenCombination, "b"),
        finding(FindingCode::UnknownSkill, "c"),
    ];
    assert!(errors.iter().all(Finding::is_error));
    assert!(!finding(FindingCode::WithdrawnVersion, "a").is_error());
    let failure = model::Failure::from(Error::Invalid { errors });
    assert_eq!(
        failure.suggestions,
        [
            "Leave out one of the skills that do not go together",
            "Find a skill by what it is to do: the answer has the names"
        ]
    );
    let detail = |name: &str| {
        let mut details = failure.details.iter();
        details
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.clone())
    };
    assert_eq!(
        detail("validation_errors").as_deref(),
        Some(
            r#"[{"code":"INCOMPATIBLE_SKILLS","skill":"a"},{"code":"FORBIDDEN_COMBINATION","skill":"b"},{"code":"UNKNOWN_SKILL","skill":"c"}]"#
        )
    );
    // A detail is cut between errors.
    let many = (0..50).map(|at| finding(FindingCode::UnknownSkill, &format!("s{at}")));
    let failure = model::Failure::from(Error::Invalid {
        errors: many.collect(),
    });
    let mut details = failure.details.iter();
    let told = details
        .find(|(key, _)| *key == "validation_errors")
        .expect("a detail");
    let told: Vec<serde_json::Value> = serde_json::from_str(told.1).expect("JSON");
    assert_eq!(told.len(), 13);
}
