//! Commands on sessions and the tools that skills unlock.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use super::compose::{exact, json_object};
use super::connect::Client;
use super::output::{BAD, Exit, FAINT, Failed, GOOD, Output, Table, WARN, note, time};
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

pub(super) async fn load(client: &mut Client, options: Load, output: &Output) -> Exit {
    let (version_number, semantic_version) = match options.version {
        None => (0, String::new()),
        Some(version) => match version.parse() {
            Ok(number) => (number, String::new()),
            Err(_) => (0, version),
        },
    };
    let request = v1::LoadSkillRequest {
        skill_id: options.skill,
        session_id: options.session,
        version_number,
        semantic_version,
        context: None,
    };
    let answer = client.lookup().load_skill(request).await?.into_inner();
    if output.is_json() {
        output.message("LoadSkillResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    if answer.replaced_version_number > 0 {
        note(&format!(
            "{WARN}version {} was loaded before; {} is active now{WARN:#}",
            answer.replaced_version_number, answer.version_number
        ));
    }
    output.lines(&answer.content)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn detail(client: &mut Client, options: Detail, output: &Output) -> Exit {
    let request = v1::LoadSkillDetailRequest {
        skill_id: options.skill,
        resource: options.resource,
        session_id: options.session,
    };
    let answer = client
        .lookup()
        .load_skill_detail(request)
        .await?
        .into_inner();
    if output.is_json() {
        output.message("LoadSkillDetailResponse", &answer)?;
    } else {
        output.lines(&answer.content)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn session(client: &mut Client, options: Session, output: &Output) -> Exit {
    let request = v1::ListLoadedSkillsRequest {
        session_id: options.session,
    };
    let answer = client
        .lookup()
        .list_loaded_skills(request)
        .await?
        .into_inner();
    if output.is_json() {
        output.message("ListLoadedSkillsResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut skills = Table::new(&[
        "skill", "number", "version", "loaded", "times", "state", "tools",
    ]);
    for skill in &answer.skills {
        let status = match skill.status() {
            v1::LoadedStatus::Outdated => {
                format!("version {} is active", skill.active_version_number)
            }
            v1::LoadedStatus::Withdrawn => "withdrawn".to_owned(),
            v1::LoadedStatus::Current | v1::LoadedStatus::Unspecified => String::new(),
        };
        skills.add_row([
            skill.skill_id.clone(),
            skill.version_number.to_string(),
            skill.semantic_version.clone(),
            time(skill.loaded_at),
            skill.load_count.to_string(),
            status,
            skill.tools.join(" "),
        ]);
    }
    output.table(&skills)?;
    note(&format!(
        "{FAINT}ends at {} unless it is used before{FAINT:#}",
        time(answer.expires_at)
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn unload(client: &mut Client, options: Unload, output: &Output) -> Exit {
    let request = v1::UnloadSkillRequest {
        session_id: options.session,
        skill_id: options.skill,
    };
    let answer = client.lookup().unload_skill(request).await?.into_inner();
    if output.is_json() {
        output.message("UnloadSkillResponse", &answer)?;
    } else {
        let what = if answer.was_loaded {
            "was unloaded"
        } else {
            "was not loaded"
        };
        output.line(&format!("{} {what}", answer.skill_id))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn tools(client: &mut Client, options: ListTools, output: &Output) -> Exit {
    let request = v1::ListToolsRequest {
        session_id: options.session,
        skill_id: options.skill,
    };
    let answer = client.lookup().list_tools(request).await?.into_inner();
    if output.is_json() {
        output.message("ListToolsResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut tools = Table::new(&["tool", "skill", "state", "what it does"]);
    for tool in &answer.tools {
        let (style, state) = match (tool.available, tool.loaded) {
            (false, _) => (BAD, "nothing runs it"),
            (true, true) => (GOOD, "unlocked"),
            (true, false) => (FAINT, "locked"),
        };
        tools.add_row([
            tool.name.clone(),
            tool.skill_name.clone(),
            format!("{style}{state}{style:#}"),
            tool.description.clone(),
        ]);
    }
    output.table(&tools)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn call(client: &mut Client, options: CallTool, output: &Output) -> Exit {
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
    let tool = listed.tools.into_iter().find(|t| t.name == options.tool);
    let schema = tool.and_then(|tool| tool.input_schema).unwrap_or_default();
    let request = v1::CallToolRequest {
        session_id,
        name: options.tool,
        arguments: Some(to_struct(arguments(
            &options.arguments,
            &options.pairs,
            &schema,
        )?)),
        skill_id,
        ..Default::default()
    };
    let answer = client.lookup().call_tool(request).await?.into_inner();
    if output.is_json() {
        output.message("CallToolResponse", &answer)?;
    } else {
        output.lines(&answer.content)?;
    }
    Ok(ExitCode::SUCCESS)
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

pub(super) async fn calls(client: &mut Client, options: Calls, output: &Output) -> Exit {
    let request = v1::ListToolCallsRequest {
        page_size: options.limit,
        page_token: String::new(),
    };
    let answer = client.lookup().list_tool_calls(request).await?.into_inner();
    if output.is_json() {
        output.message("ListToolCallsResponse", &answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut calls = Table::new(&["tool", "skill", "session", "caller", "at", "ms", "result"]);
    for call in answer.calls {
        let (style, end) = match call.error_code.as_str() {
            "" => (GOOD, "ok"),
            code => (BAD, code),
        };
        calls.add_row([
            call.tool,
            call.skill_id,
            call.session,
            call.caller,
            time(call.at),
            format!("{}.{:03}", call.duration_us / 1000, call.duration_us % 1000),
            format!("{style}{end}{style:#}"),
        ]);
    }
    output.table(&calls)?;
    Ok(ExitCode::SUCCESS)
}
