//! Schemas and lists of tools.

use super::*;

#[test]
fn a_schema_says_what_a_request_accepts_and_nothing_more() {
    let contract = contract();
    let tools = contract.tools(Some("skills"));
    let skill = tools
        .iter()
        .find(|tool| tool.name == "skill")
        .expect("a tool");
    assert_eq!(
        Json::Object(skill.input.clone()),
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string", "minLength": 1, "maxLength": 400,
                    "description": "The skill name (no arguments). E.g., \"pdf\" or \"xlsx\"",
                },
            },
            "required": ["command"],
        })
    );
    let list = tools
        .iter()
        .find(|tool| tool.name == "list_skills")
        .expect("a tool");
    assert_eq!(
        list.input["properties"]["tags"],
        json!({
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 128},
            "maxItems": 16,
            "description": "Only skills that carry all of these tags.\n\nEmpty: with any tags.",
        })
    );
    assert_eq!(
        list.input["properties"]["location"]["enum"],
        json!(["project", "user", "global"])
    );
    let yank = tools
        .iter()
        .find(|tool| tool.name == "yank_version")
        .expect("a tool");
    assert_eq!(yank.input["required"], json!(["skill_id"]));
    assert_eq!(
        yank.input["properties"]["version_number"],
        json!({
            "type": "integer",
            "minimum": 0,
            "format": "int64",
            "description": "The version by number.\n\n0: by `semantic_version`, which is needed then.",
        })
    );
}

#[test]
fn tools_of_one_name_are_one_tool_that_takes_the_arguments_of_either() {
    let contract = contract();
    let both = contract.tools(None);
    let named: Vec<_> = both
        .iter()
        .filter(|tool| tool.name == "get_skill")
        .collect();
    let [get_skill] = named.as_slice() else {
        panic!("one get_skill, not {}", named.len());
    };
    let form = |arguments: Json| {
        let form = get_skill.form(&object(arguments)).expect("a form");
        form.method.name.clone()
    };
    assert_eq!(form(json!({"uri": "skill://a"})), "ReadSkill");
    assert_eq!(form(json!({"skill_id": "a"})), "GetSkill");
    assert_eq!(
        form(json!({"skill_id": "a", "include_readme": true})),
        "GetSkill"
    );
    assert_eq!(get_skill.input.get("required"), None);
    let alone = |set: &str| {
        let tools = contract.tools(Some(set));
        let tool = tools
            .iter()
            .find(|tool| tool.name == "get_skill")
            .expect("a tool");
        tool.input["required"].clone()
    };
    assert_eq!(alone("skills"), json!(["uri"]));
    assert_eq!(alone("discovery-core"), json!(["skill_id"]));
}

#[test]
fn toolsets_keep_to_the_sizes_that_agents_bear() {
    let contract = contract();
    assert!(contract.tools(Some("agent")).len() <= 6);
    assert!(contract.tools(Some("discovery-core")).len() <= 12);
    assert!(contract.tools(Some("no-such-set")).is_empty());
    for tool in contract.tools(None) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            (1..=64).contains(&tool.name.len()) && tool.name.chars().all(fits),
            "{}",
            tool.name
        );
        assert!(
            !tool.description.is_empty(),
            "{} has no description",
            tool.name
        );
        let chars = tool.description.chars().count();
        assert!(chars <= 1024, "{} is described in {chars}", tool.name);
        assert!(
            !(tool.hints.read_only && tool.hints.destructive),
            "{}",
            tool.name
        );
    }
}
