//! Commands on sessions and the tools that skills unlock.

use clap::Args;
use serde_json::{Map, Value};

use super::compose::{exact, json_object};
use super::connect::Client;
use super::output::{BAD, Done, FAINT, Failed, GOOD, List, Output, WARN, time};
use super::skill_args::version;
use contract::json::to_struct;
use contract::v1;
use model::Code;

const CALL_EXAMPLES: &str = "\
Examples:
  repertoire call sql_list_tables --skill write_sql
  repertoire call sql_query --skill write_sql query='SELECT count(*) FROM customers'
  repertoire call my_tool --session ID --arguments '{\"rows\": [1, 2]}'

Without --session the skill is loaded into a new one first. A value that is JSON is taken
as JSON where the tool wants no text.";

#[derive(Debug, Args)]
pub(super) struct Load {
    /// Skill: its short name, or SOURCE/AUTHOR/NAME.
    skill: String,
    /// Session to load it into. [default: a new one]
    #[arg(long, value_name = "ID", default_value = "")]
    session: String,
    /// Version, as NUMBER or as 1.2.0. [default: the active one]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Detail {
    /// Skill that is loaded in the session.
    skill: String,
    /// Name of the resource, such as `examples`.
    resource: String,
    /// The session.
    #[arg(long, value_name = "ID")]
    session: String,
}

#[derive(Debug, Args)]
pub(super) struct Session {
    /// The session, as loading a skill named it.
    session: String,
}

#[derive(Debug, Args)]
pub(super) struct Unload {
    /// Skill to take out.
    skill: String,
    /// The session.
    #[arg(long, value_name = "ID")]
    session: String,
}

#[derive(Debug, Args)]
pub(super) struct ListTools {
    /// Only the tools of a session's skills.
    #[arg(long, value_name = "ID", default_value = "")]
    session: String,
    /// Only the tools of a skill.
    #[arg(long, value_name = "SKILL", default_value = "")]
    skill: String,
}

#[derive(Debug, Args)]
#[command(after_help = CALL_EXAMPLES)]
pub(super) struct CallTool {
    /// Name of the tool.
    tool: String,
    /// Arguments, each as NAME=VALUE.
    #[arg(value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// Arguments as a JSON object; pairs go before it.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Session that the skill is loaded in.
    #[arg(long, value_name = "ID", required_unless_present = "skill")]
    session: Option<String>,
    /// Skill that has the tool.
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Calls {
    /// How many.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i32).range(1..=1000))]
    limit: i32,
}

const LOADED: List<v1::LoadedSkill> = List::new(&[
    ("skill", |skill| skill.skill_id.clone()),
    ("number", |skill| skill.version_number.to_string()),
    ("version", |skill| skill.semantic_version.clone()),
    ("loaded", |skill| time(skill.loaded_at)),
    ("times", |skill| skill.load_count.to_string()),
    ("state", |skill| match skill.status() {
        v1::LoadedStatus::Outdated => {
            format!("version {} is active", skill.active_version_number)
        }
        v1::LoadedStatus::Withdrawn => "withdrawn".to_owned(),
        v1::LoadedStatus::Current | v1::LoadedStatus::Unspecified => String::new(),
    }),
    ("tools", |skill| skill.tools.join(" ")),
]);

const TOOLS: List<v1::ToolInfo> = List::new(&[
    ("tool", |tool| tool.name.clone()),
    ("skill", |tool| tool.skill_name.clone()),
    ("state", |tool| match (tool.available, tool.loaded) {
        (false, _) => format!("{BAD}nothing runs it{BAD:#}"),
        (true, true) => format!("{GOOD}unlocked{GOOD:#}"),
        (true, false) => format!("{FAINT}locked{FAINT:#}"),
    }),
    ("what it does", |tool| tool.description.clone()),
]);

const CALLS: List<v1::ToolCallRecord> = List::new(&[
    ("tool", |call| call.tool.clone()),
    ("skill", |call| call.skill_id.clone()),
    ("session", |call| call.session.clone()),
    ("caller", |call| call.caller.clone()),
    ("at", |call| time(call.at)),
    ("ms", |call| {
        format!("{}.{:03}", call.duration_us / 1000, call.duration_us % 1000)
    }),
    ("result", |call| match call.error_code.as_str() {
        "" => format!("{GOOD}ok{GOOD:#}"),
        code => format!("{BAD}{code}{BAD:#}"),
    }),
]);

pub(super) async fn load(client: &Client, options: Load, output: &Output) -> Done {
    let (version_number, semantic_version) = version(options.version);
    let request = v1::LoadSkillRequest {
        skill_id: options.skill,
        session_id: options.session,
        version_number,
        semantic_version,
        context: None,
    };
    let answer = output.answer(client.lookup().load_skill(request).await?)?;
    if answer.replaced_version_number > 0 {
        output.note(&format!(
            "{WARN}version {} was loaded before; {} is active now{WARN:#}",
            answer.replaced_version_number, answer.version_number
        ));
    }
    output.lines(&answer.content)
}

pub(super) async fn detail(client: &Client, options: Detail, output: &Output) -> Done {
    let request = v1::LoadSkillDetailRequest {
        skill_id: options.skill,
        resource: options.resource,
        session_id: options.session,
    };
    let answer = output.answer(client.lookup().load_skill_detail(request).await?)?;
    output.lines(&answer.content)
}

pub(super) async fn session(client: &Client, options: Session, output: &Output) -> Done {
    let request = v1::ListLoadedSkillsRequest {
        session_id: options.session,
    };
    let answer = output.answer(client.lookup().list_loaded_skills(request).await?)?;
    output.list(&LOADED, &answer.skills)?;
    output.note(&format!(
        "{FAINT}ends at {} unless it is used before{FAINT:#}",
        time(answer.expires_at)
    ));
    Ok(())
}

pub(super) async fn unload(client: &Client, options: Unload, output: &Output) -> Done {
    let request = v1::UnloadSkillRequest {
        session_id: options.session,
        skill_id: options.skill,
    };
    let answer = output.answer(client.lookup().unload_skill(request).await?)?;
    let what = if answer.was_loaded {
        "was unloaded"
    } else {
        "was not loaded"
    };
    output.line(&format!("{} {what}", answer.skill_id))
}

pub(super) async fn tools(client: &Client, options: ListTools, output: &Output) -> Done {
    let request = v1::ListToolsRequest {
        session_id: options.session,
        skill_id: options.skill,
    };
    let answer = output.answer(client.lookup().list_tools(request).await?)?;
    output.list(&TOOLS, &answer.tools)
}

pub(super) async fn call(client: &Client, options: CallTool, output: &Output) -> Done {
    let skill_id = options.skill.unwrap_or_default();
    let session_id = if let Some(session) = options.session {
        session
    } else {
        let request = v1::LoadSkillRequest {
            skill_id: skill_id.clone(),
            ..Default::default()
        };
        let loaded = client.lookup().load_skill(request).await?.into_inner();
        loaded.session_id
    };
    let request = v1::ListToolsRequest {
        session_id: session_id.clone(),
        skill_id: String::new(),
    };
    let listed = client.lookup().list_tools(request).await?.into_inner();
    let name = model::fold_tool(&options.tool);
    let mut tools = listed.tools.into_iter();
    let tool = tools.find(|tool| model::fold_tool(&tool.name) == name);
    let schema = tool.and_then(|tool| tool.input_schema).unwrap_or_default();
    let arguments = arguments(&options.arguments, &options.pairs, &schema)?;
    let request = v1::CallToolRequest {
        session_id,
        name: options.tool,
        arguments: Some(to_struct(arguments)),
        skill_id,
        ..Default::default()
    };
    let answer = output.answer(client.lookup().call_tool(request).await?)?;
    output.lines(&answer.content)
}

/// The arguments of a call: pairs over an object. What the tool's schema calls a
/// string stays one, whatever it looks like.
fn arguments(
    json: &str,
    pairs: &[String],
    schema: &prost_types::Struct,
) -> Result<Map<String, Value>, Failed> {
    const EXAMPLE: &str = r#"write them as '{"query": "SELECT 1"}', or as query='SELECT 1'"#;
    let mut arguments = json_object(json, EXAMPLE)?;
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failed::new(
                Code::InvalidParameter,
                format!("`{pair}` is not NAME=VALUE"),
            )
            .hint("write an argument as query='SELECT 1'"));
        };
        let value = if is_text(schema, name) {
            Value::String(value.to_owned())
        } else {
            serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))
        };
        arguments.insert(name.to_owned(), value);
    }
    exact(&arguments)?;
    Ok(arguments)
}

/// The schema says that an argument is a string.
fn is_text(schema: &prost_types::Struct, name: &str) -> bool {
    use prost_types::value::Kind;
    let inside = |from: &prost_types::Struct, key: &str| match from.fields.get(key)?.kind.clone()? {
        Kind::StructValue(inner) => Some(inner),
        _ => None,
    };
    let property = inside(schema, "properties").and_then(|all| inside(&all, name));
    let kind = property.and_then(|property| property.fields.get("type")?.kind.clone());
    matches!(kind, Some(Kind::StringValue(kind)) if kind == "string")
}

pub(super) async fn calls(client: &Client, options: Calls, output: &Output) -> Done {
    let request = v1::ListToolCallsRequest {
        page_size: options.limit,
        page_token: String::new(),
    };
    let answer = output.answer(client.lookup().list_tool_calls(request).await?)?;
    output.list(&CALLS, &answer.calls)
}
