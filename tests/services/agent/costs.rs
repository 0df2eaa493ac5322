//! What the tools of the server and of skills cost an agent, and how portable they are.

use std::ops::Range;

use rmcp::model::CallToolRequestParams;
use serde_json::{Map, Value as Json, json};

use super::{Client, client, golden, text, tokens};
use crate::support::{World, skill};

/// Skills of a large server, in every run and at night.
const MANY: usize = 500;
const MANY_AT_NIGHT: usize = 5_000;
/// What a set of few tools may cost, its instructions apart.
const MAX_TOOLS: usize = 6;
const MAX_TOKENS: usize = 1_000;
const MAX_INSTRUCTIONS: usize = 200;

/// Characters of a description that all hosts take.
const MAX_DESCRIPTION: usize = 1_024;

/// Words of JSON Schema that hosts of `OpenAI`, Anthropic or Gemini refuse or lose.
const REFUSED: [&str; 22] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contentEncoding",
    "definitions",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedProperties",
    "uniqueItems",
];
/// The formats that Gemini takes.
const FORMATS: [&str; 6] = ["date-time", "double", "enum", "float", "int32", "int64"];
/// Tools of a request, and what `OpenAI` takes of the schemas of one: levels, properties,
/// and values of enumerations.
const MAX_SHOWN: usize = 128;
const MAX_LEVELS: usize = 10;
const MAX_PROPERTIES: usize = 5_000;
const MAX_VALUES: usize = 1_000;

/// A name that all hosts take: of a tool, where a hyphen may be in it, and of an argument.
fn is_name(name: &str, has_hyphens: bool) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    begins
        && name.len() <= 64
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' && has_hyphens)
}

/// A schema of arguments that every host takes: its properties, and the values of its
/// enumerations.
fn portable(tool: &str, schema: &Json, levels: usize) -> (usize, usize) {
    let Json::Object(fields) = schema else {
        panic!("{tool}: a schema that is no object: {schema}");
    };
    assert!(levels <= MAX_LEVELS, "{tool}: too deep: {schema}");
    for word in REFUSED {
        assert!(!fields.contains_key(word), "{tool} has `{word}`: {schema}");
    }
    // A list of types is one more that not all take.
    let kind = fields.get("type");
    assert!(kind.is_none_or(Json::is_string), "{tool}: {schema}");
    assert!(
        kind.is_none_or(|kind| kind != "array") || fields.contains_key("items"),
        "{tool}: a list of what? {schema}"
    );
    if let Some(format) = fields.get("format") {
        let is_known = format
            .as_str()
            .is_some_and(|format| FORMATS.contains(&format));
        assert!(is_known, "{tool}: {schema}");
    }
    let (mut properties, mut values) = (0, 0);
    if let Some(names) = fields.get("enum").and_then(Json::as_array) {
        assert!(names.iter().all(Json::is_string), "{tool}: {schema}");
        values += names.len();
    }
    let mut add = |of: (usize, usize)| {
        properties += of.0;
        values += of.1;
    };
    let inner = fields.get("properties").and_then(Json::as_object);
    for (name, inner) in inner.into_iter().flatten() {
        assert!(is_name(name, false), "{tool}: an argument `{name}`");
        add((1, 0));
        add(portable(tool, inner, levels + 1));
    }
    let required = fields.get("required").and_then(Json::as_array);
    for name in required.into_iter().flatten() {
        let is_there =
            inner.is_some_and(|inner| name.as_str().is_some_and(|n| inner.contains_key(n)));
        assert!(is_there, "{tool}: {name} is required and not there");
    }
    if let Some(items) = fields.get("items") {
        add(portable(tool, items, levels + 1));
    }
    (properties, values)
}

/// The tools that a client is shown, all of which every host takes, as a model sees them.
async fn shown_tools(client: &Client) -> Vec<Json> {
    let tools = client.list_all_tools().await.expect("tools");
    assert!(tools.len() <= MAX_SHOWN, "{} tools", tools.len());
    let shown = tools.iter().map(|tool| {
        let description = tool.description.as_deref().unwrap_or_default();
        let chars = description.chars().count();
        assert!(
            (1..=MAX_DESCRIPTION).contains(&chars),
            "{}: {chars} characters",
            tool.name
        );
        assert!(is_name(&tool.name, true), "{}", tool.name);
        let schema = Json::Object(Map::clone(&tool.input_schema));
        assert_eq!(schema["type"], "object", "{}", tool.name);
        let (properties, values) = portable(&tool.name, &schema, 1);
        assert!(
            properties <= MAX_PROPERTIES && values <= MAX_VALUES,
            "{}",
            tool.name
        );
        json!({"name": tool.name, "description": description, "input_schema": schema})
    });
    shown.collect()
}

/// What a set of tools costs whoever is shown it.
async fn cost(world: &World, toolset: Option<&str>) -> Json {
    let client = client(world, toolset).await;
    let seen = shown_tools(&client).await;
    let info = client.peer_info().expect("what the server is");
    let instructions = tokens(info.instructions.as_deref().unwrap_or_default());
    let cost = json!({
        "tools": seen.len(),
        "tokens": tokens(&Json::Array(seen).to_string()),
        "instructions": instructions,
    });
    client.cancel().await.expect("the client ends");
    cost
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_skills_are_as_portable_as_those_of_the_server() {
    let mut world = World::new().await;
    let tool = |name: &str, argument: &str| {
        format!(
            "  - name: \"{name}\"\n    description: \"{}\"\n    args:\n      - {{name: \"{argument}\", type: array, \
             description: \"{}\"}}\n      - {{name: anything, type: whatever}}\n      - {{name: one, type: int, \
             required: true, default: 7}}\n      - {{name: map, type: object}}\n",
            "Long. ".repeat(300),
            "Long. ".repeat(300),
        )
    };
    let long = "n".repeat(65);
    let tools: String = [
        ("fine", "list"),
        ("with-hyphens", "list"),
        ("_fine_2", "_list_2"),
        ("9lives", "list"),
        ("foo.bar", "list"),
        (long.as_str(), "list"),
        ("dashed", "file-name"),
        ("dotted", "file.name"),
        ("marked", "größe"),
        ("wide", long.as_str()),
    ]
    .iter()
    .map(|(name, argument)| tool(name, argument))
    .collect();
    let id = format!("github/{}/tools", "a".repeat(120));
    world
        .publish(skill(&id, &format!("tool_configs:\n{tools}"), "Do it."))
        .await;
    for set in [Some("gated"), None] {
        let client = client(&world, set).await;
        let before = shown_tools(&client).await;
        let load = json!({"skill_id": id})
            .as_object()
            .cloned()
            .unwrap_or_default();
        let load = CallToolRequestParams::new("load_skill").with_arguments(load);
        let loaded = client.call_tool(load).await.expect("a result");
        assert_ne!(loaded.is_error, Some(true), "{}", text(&loaded));
        let after = shown_tools(&client).await;
        let news = after.iter().filter(|tool| !before.contains(tool));
        let mut news: Vec<_> = news
            .map(|tool| tool["name"].as_str().expect("a name"))
            .collect();
        news.sort_unstable();
        // The others are called with `call_tool`.
        assert_eq!(news, ["_fine_2", "fine", "with-hyphens"], "{set:?}");
    }
    world.domain.close().await;
}

async fn costs(world: &World) -> Map<String, Json> {
    let contract = contract::load().expect("the contract");
    let mut costs = Map::new();
    costs.insert("all".to_owned(), cost(world, None).await);
    for set in contract.toolsets().keys() {
        costs.insert(set.clone(), cost(world, Some(set)).await);
    }
    costs
}

async fn publish(world: &mut World, numbers: Range<usize>) {
    for number in numbers {
        let id = format!("acme/tools/helper-{number:04}");
        world.publish(skill(&id, "", "Do it.")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn golden_costs_of_toolsets_do_not_grow_with_the_skills() {
    let mut world = World::new().await;
    let few = costs(&world).await;
    let (first, others) = (0..MANY, MANY..testing::at_night(MANY, MANY_AT_NIGHT));
    publish(&mut world, first).await;
    let many = costs(&world).await;
    publish(&mut world, others).await;
    let more = costs(&world).await;
    for costs in [&few, &many, &more] {
        let agent = &costs["agent"];
        let number = |name: &str| agent[name].as_u64().expect("a number");
        let number = |name: &str| usize::try_from(number(name)).expect("a number");
        assert!(number("tools") <= MAX_TOOLS, "{agent}");
        assert!(number("tokens") <= MAX_TOKENS, "{agent}");
        assert!(number("instructions") <= MAX_INSTRUCTIONS, "{agent}");
    }
    let found = json!({"6 skills": few, "506 skills": many});
    golden("tokens.json", &found);
    world.domain.close().await;
}
