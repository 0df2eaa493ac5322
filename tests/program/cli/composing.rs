//! Sets of skills on the command line.

use serde_json::{Value, json};

use super::Workspace;

const DEV: &str = "---\nname: dev\ndescription: Develops.\nversion: 1.0.0\nallowed_tools: [Read, \"Bash(git:*)\"]\n\
                   forbidden_tools: [\"Bash(git push:*)\"]\ncomposability_rules:\n  - {type: requires, skill: \"base@^1\"}\n---\nOne.\n";
const BASE: &str = "---\nname: base\ndescription: Is the base.\nversion: 1.0.0\nallowed_tools: [Grep]\n---\nOne.\n";

#[test]
fn skills_are_composed_checked_and_locked() {
    let workspace = Workspace::new();
    for (name, text) in [("dev", DEV), ("base", BASE)] {
        workspace.json(&["publish", &workspace.skill(name, text)]);
    }
    let composed = workspace.json(&["compose", "dev", "base"]);
    assert_eq!(
        (
            &composed["skills"],
            &composed["allowed_tools"],
            &composed["forbidden_tools"]
        ),
        (
            &json!(["dev", "base"]),
            &json!(["Read", "Bash(git:*)", "Grep"]),
            &json!(["Bash(git push:*)"])
        )
    );
    let refused = workspace.refusal(&["compose", "dev"]);
    assert_eq!(refused["error"]["code"], "SKILL_SET_INVALID");
    assert_eq!(
        refused["error"]["details"],
        json!([
            "skills: MISSING_REQUIRED_SKILL: 'dev' requires 'base@^1', which is not in the set"
        ])
    );

    let file = workspace.path("skills.lock");
    let lock = workspace.json(&["lock", "dev", "-o", &file]);
    assert_eq!(
        workspace.json(&["compose", "dev", "--resolve"])["lock"],
        lock
    );
    workspace.skill(
        "base",
        &BASE.replace("1.0.0", "1.1.0").replace("Grep", "Write"),
    );
    workspace.json(&["publish", &workspace.path("base")]);
    assert_eq!(workspace.json(&["compose", "--lock", &file]), composed);
    let refused = workspace.refusal(&["compose", "dev", "base", "--lock", &file]);
    assert!(
        refused["error"]["details"][0]
            .as_str()
            .expect("a detail")
            .starts_with("skills: LOCK_MISMATCH: 'local/global/base' is version 2 with sha256:"),
        "{refused}"
    );

    let check = |args: &[&str]| {
        let output = workspace.run(&[&["check"], args].concat());
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (
            output.status.code(),
            answer["reason"].as_str().expect("a reason").to_owned(),
        )
    };
    assert_eq!(
        check(&["Write", "--skills", "dev,base"]),
        (
            Some(0),
            "'Write' is allowed by 'base' as `Write`".to_owned()
        )
    );
    assert_eq!(
        check(&["Write", "--lock", &file]),
        (
            Some(3),
            "No skill of the composition allows this call of 'Write'".to_owned()
        )
    );
    let push = r#"{"command": "git push"}"#;
    assert_eq!(
        check(&["Bash", "--skills", "dev,base", "--arguments", push]),
        (
            Some(3),
            "'Bash' is forbidden by 'dev' as `Bash(git push:*)`".to_owned()
        )
    );
    let hidden = r#"{"command": "git $(echo push)"}"#;
    let (code, reason) = check(&["Bash", "--skills", "dev,base", "--arguments", hidden]);
    assert_eq!(code, Some(4), "{reason}");
    let refused = workspace.refusal(&["compose", "--lock", &workspace.path("base/SKILL.md")]);
    assert!(
        refused["error"]["recovery_suggestions"][0]
            .as_str()
            .expect("a hint")
            .contains("repertoire lock")
    );
}

#[test]
fn a_check_without_a_verdict_says_by_its_exit_code_why() {
    let workspace = Workspace::new();
    for (name, text) in [("dev", DEV), ("base", BASE)] {
        workspace.json(&["publish", &workspace.skill(name, text)]);
    }
    let nowhere = ["--server", "http://127.0.0.1:1"];
    for (args, code) in [
        (vec!["Bash", "--skills", "nobody"], 5),
        (vec!["Bash", "--skills", "dev@9"], 5),
        (vec!["Bash", "--session", "nobody"], 5),
        ([&nowhere[..], &["Bash", "--skills", "dev"]].concat(), 6),
        (vec!["Bash"], 2),
        (vec!["Bash", "--skills", "dev", "--arguments", "[]"], 1),
    ] {
        let output = workspace.run(&[&["check"], &args[..]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {told}");
    }
    let large = r#"{"rows": [{"id": 9007199254740993}]}"#;
    let refused = workspace.refusal(&["check", "Bash", "--skills", "dev", "--arguments", large]);
    assert_eq!(
        refused["error"]["message"],
        "rows[0].id: Number is too large to be carried exactly; send it as a string"
    );
    let refused = workspace.refusal(&["check", "Bash", "--skills", "dev", "--arguments", "[]"]);
    assert_eq!(
        refused["error"]["message"],
        "the arguments are not a JSON object"
    );
}
