//! Commands on sets of skills.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::Value as Json;

use super::connect::Client;
use super::output::{Done, Exit, Failed, GOOD, List, Output, WARN, json_of, verdict};
use composition::FindingCode;
use contract::json::to_struct;
use contract::v1;
use model::{Code, NOT_EXACT, inexact};

const COMPOSE_EXAMPLES: &str = "\
Examples:
  repertoire compose specification-engine opencode-implementer
  repertoire check Bash --skills dev,review --arguments '{\"command\": \"git push\"}'
  repertoire lock my-skill@^1 -o composition.lock
  repertoire compose --lock composition.lock";

/// How the tools of several skills are put together.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Policy {
    /// A tool is granted where at least one skill allows it.
    Union,
    /// A tool is granted where every skill allows it.
    Intersection,
}

#[derive(Debug, Args)]
#[command(after_help = COMPOSE_EXAMPLES)]
pub(super) struct Compose {
    /// The skills, by id or short name, perhaps with a version: NAME@1.2.0, NAME@3, NAME@^1.2.
    #[arg(value_name = "SKILL", required_unless_present = "lock")]
    pub(super) skills: Vec<String>,
    /// How tools are put together. [default: as the lock says, else union]
    #[arg(long, value_enum)]
    pub(super) policy: Option<Policy>,
    /// Add the skills that are required.
    #[arg(long)]
    pub(super) resolve: bool,
    /// A lock file: without SKILL what it pins, with SKILL what they must still be.
    #[arg(long, value_name = "FILE")]
    pub(super) lock: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub(super) struct Check {
    /// The tool that is to be called.
    pub(super) tool: String,
    /// The skills, with commas between them.
    #[arg(
        long,
        value_name = "SKILLS",
        value_delimiter = ',',
        required_unless_present_any = ["lock", "session"]
    )]
    pub(super) skills: Vec<String>,
    /// Session whose loaded skills are asked about.
    #[arg(long, value_name = "ID", conflicts_with_all = ["skills", "lock", "policy"])]
    pub(super) session: Option<String>,
    /// Arguments of the call, a JSON object such as '{"command": "git status"}'.
    #[arg(
        long,
        value_name = "JSON",
        default_value = "{}",
        hide_default_value = true
    )]
    pub(super) arguments: String,
    /// How tools are put together. [default: as the lock says, else union]
    #[arg(long, value_enum)]
    pub(super) policy: Option<Policy>,
    /// A lock file of the composition.
    #[arg(long, value_name = "FILE", conflicts_with = "skills")]
    pub(super) lock: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = COMPOSE_EXAMPLES)]
pub(super) struct Lock {
    /// The skills, by id or short name, perhaps with a version.
    #[arg(required = true, value_name = "SKILL")]
    pub(super) skills: Vec<String>,
    /// How tools are put together.
    #[arg(long, value_enum, default_value = "union")]
    pub(super) policy: Policy,
    /// File to write. [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

fn policy(policy: Option<Policy>) -> i32 {
    match policy {
        None => v1::ToolPolicy::Unspecified,
        Some(Policy::Union) => v1::ToolPolicy::Union,
        Some(Policy::Intersection) => v1::ToolPolicy::Intersection,
    }
    .into()
}

/// A skill by the name in the request, and its entry of the lock.
const COMPOSED: List<(String, v1::LockEntry)> = List::new(&[
    ("skill", |(name, _)| name.clone()),
    ("version", |(_, entry)| entry.semantic_version.clone()),
    ("number", |(_, entry)| entry.version_number.to_string()),
    ("id", |(_, entry)| entry.skill_id.clone()),
]);

const PROVEN: List<v1::ToolProof> = List::new(&[
    ("tool", |proof| proof.tool.clone()),
    ("verdict", |proof| {
        let verdict = match proof.verdict() {
            v1::ToolVerdict::Allowed => "allowed",
            v1::ToolVerdict::Denied | v1::ToolVerdict::Unspecified => "denied",
        };
        verdict.to_owned()
    }),
    ("allowed by", |proof| names(&proof.grants)),
    ("forbidden by", |proof| names(&proof.denials)),
    ("except", |proof| patterns(&proof.exceptions)),
]);

const LOCKED: List<v1::LockEntry> = List::new(&[
    ("skill", |entry| entry.skill_id.clone()),
    ("version", |entry| entry.semantic_version.clone()),
    ("number", |entry| entry.version_number.to_string()),
    ("digest", |entry| entry.digest.chars().take(19).collect()),
]);

pub(super) async fn compose(client: &Client, options: Compose, output: &Output) -> Done {
    let request = v1::ComposeSkillsRequest {
        skills: options.skills,
        tool_policy: policy(options.policy),
        resolve: options.resolve,
        lock: options.lock.as_deref().map(read).transpose()?,
    };
    let answer = client.composition().compose_skills(request).await?;
    let answer = output.answer(answer)?;
    let mut entries = answer.lock.unwrap_or_default().entries;
    entries.sort_by_key(|entry| entry.position);
    let skills: Vec<_> = answer.skills.into_iter().zip(entries).collect();
    output.list(&COMPOSED, &skills)?;
    output.line("")?;
    output.list(&PROVEN, &answer.proof.unwrap_or_default().tools)?;
    for (at, step) in (1..).zip(&answer.execution_protocol) {
        if at == 1 {
            output.line("")?;
        }
        output.line(&format!("{at:>3}. {step}"))?;
    }
    warn(&answer.warnings, output);
    Ok(())
}

const CHECK_HELP: &str = "\
Example:
  repertoire check Bash --skills dev,review --arguments '{\"command\": \"git push\"}'

Exit codes:
  0  the call is permitted
  1  something else went wrong, as with every command
  2  the command line is wrong
  3  the call is denied
  4  whether a pattern covers the call cannot be decided, so it is not permitted
  5  there is no such skill, version or session
  6  the server, or the data directory, cannot be reached now";

/// The verdict as an exit code; 1 and 2 are those of every command.
fn exit_code(answer: &v1::CheckToolResponse) -> ExitCode {
    ExitCode::from(match answer.rule() {
        _ if answer.allowed => 0,
        v1::ToolRule::Undecided => 4,
        _ => 3,
    })
}

/// The exit code of a check without a verdict. A script that guards calls has to tell "denied"
/// from "cannot be asked".
pub(super) fn unanswered(failed: &Failed) -> ExitCode {
    let unknown = [
        Code::SkillNotFound,
        Code::SkillYanked,
        Code::SkillNotActive,
        Code::VersionNotFound,
        Code::SessionNotFound,
    ];
    let unreachable = [
        Code::ServerUnreachable,
        Code::ShuttingDown,
        Code::Overloaded,
        Code::DataInUse,
        Code::StoreUnavailable,
        Code::Timeout,
    ];
    // A set of skills is refused with the errors of each, by code: it has no code that says that
    // all it lacks is a skill.
    let is_unknown = |place: &String| {
        let codes = [FindingCode::UnknownSkill, FindingCode::VersionUnsatisfied];
        let mut codes = codes.into_iter().map(FindingCode::name);
        codes.any(|code| place.contains(&format!(": {code}: ")))
    };
    let places = &failed.places;
    let are_unknown =
        failed.is(Code::SkillSetInvalid) && !places.is_empty() && places.iter().all(is_unknown);
    if are_unknown || failed.is_any(&unknown) {
        ExitCode::from(5)
    } else if failed.is_any(&unreachable) {
        ExitCode::from(6)
    } else {
        ExitCode::FAILURE
    }
}

pub(super) async fn check(client: &Client, options: Check, output: &Output) -> Exit {
    const EXAMPLE: &str = r#"write them as '{"command": "git status"}'"#;
    let arguments = json_object(&options.arguments, EXAMPLE)?;
    exact(&arguments)?;
    let request = v1::CheckToolRequest {
        tool: options.tool,
        arguments: Some(to_struct(arguments)),
        skills: options.skills,
        tool_policy: policy(options.policy),
        lock: options.lock.as_deref().map(read).transpose()?,
        session_id: options.session.unwrap_or_default(),
    };
    let answer = output.answer(client.composition().check_tool(request).await?)?;
    let word = verdict(answer.allowed, "allowed", "denied");
    output.line(&format!("{word} {}", answer.reason))?;
    Ok(exit_code(&answer))
}

pub(super) async fn lock(client: &Client, options: Lock, output: &Output) -> Done {
    let request = v1::ComposeSkillsRequest {
        skills: options.skills,
        tool_policy: policy(Some(options.policy)),
        resolve: true,
        lock: None,
    };
    let answer = client.composition().compose_skills(request).await?;
    let answer = answer.into_inner();
    let lock = answer.lock.unwrap_or_default();
    let text = format!("{:#}", json_of(&lock)?);
    let Some(path) = options.output else {
        return output.json(&text);
    };
    std::fs::write(&path, format!("{text}\n"))
        .map_err(|error| Failed::file(format!("cannot write {}: {error}", path.display())))?;
    output.message(&lock)?;
    output.list(&LOCKED, &lock.entries)?;
    output.line(&format!("{GOOD}locked{GOOD:#} in {}", path.display()))?;
    warn(&answer.warnings, output);
    Ok(())
}

fn warn(warnings: &[String], output: &Output) {
    for warning in warnings {
        output.note(&format!("{WARN}warning:{WARN:#} {warning}"));
    }
}

fn names(statements: &[v1::ToolStatement]) -> String {
    let skills = statements.iter().filter_map(|it| it.skill.as_ref());
    let names: Vec<_> = skills.map(|skill| skill.skill.as_str()).collect();
    names.join(", ")
}

fn patterns(statements: &[v1::ToolStatement]) -> String {
    let patterns: Vec<_> = statements.iter().map(|it| it.pattern.as_str()).collect();
    patterns.join(", ")
}

/// Reads a lock file. The server checks its contents; here only its form counts.
fn read(path: &Path) -> Result<v1::Lock, Failed> {
    let wrong = |what: String| {
        Failed::file(format!("{}: {what}", path.display()))
            .hint("write a lock file with `repertoire lock SKILL… -o FILE`")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let json: Json = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    parse(&json).ok_or_else(|| wrong("this is not a lock".to_owned()))
}

fn parse(json: &Json) -> Option<v1::Lock> {
    let text = |json: &Json, name: &str| Some(json.get(name)?.as_str()?.to_owned());
    let number = |json: &Json, name: &str| match json.get(name) {
        Some(number) => u32::try_from(number.as_u64()?).ok(),
        None => Some(0),
    };
    let entry = |json: &Json| {
        Some(v1::LockEntry {
            skill_id: text(json, "skill_id")?,
            version_number: number(json, "version_number")?,
            semantic_version: text(json, "semantic_version")?,
            digest: text(json, "digest")?,
            position: number(json, "position")?,
        })
    };
    let entries = json.get("entries")?.as_array()?.iter().map(entry);
    Some(v1::Lock {
        tool_policy: policy(Some(
            Policy::from_str(json.get("tool_policy")?.as_str()?, false).ok()?,
        )),
        entries: entries.collect::<Option<_>>()?,
        digest: text(json, "digest")?,
    })
}

/// Parses the arguments of a tool from the command line.
pub(super) fn json_object(
    json: &str,
    example: &str,
) -> Result<serde_json::Map<String, Json>, Failed> {
    let why = match serde_json::from_str(json) {
        Ok(Json::Object(fields)) => return Ok(fields),
        Ok(_) => String::new(),
        Err(error) => format!(": {error}"),
    };
    let message = format!("the arguments are not a JSON object{why}");
    Err(Failed::new(Code::InvalidParameter, message).hint(example))
}

/// Refuses integers that would arrive as others: a `Struct` has doubles, which hold 53 bits.
pub(super) fn exact(arguments: &serde_json::Map<String, Json>) -> Result<(), Failed> {
    let mut places = arguments.iter();
    match places.find_map(|(name, value)| inexact(name, value)) {
        None => Ok(()),
        Some(place) => Err(
            Failed::new(Code::InvalidParameter, format!("{place}: {NOT_EXACT}"))
                .hint("write it in quotes: '{\"id\": \"9007199254740993\"}'"),
        ),
    }
}
