//! The text that an agent reads when it loads a skill.
//!
//! The instructions are the author's, byte for byte. Those of a skill that did not
//! come with the server are between a line that names the author and one that
//! no author can write, since it holds a part of the session.

use std::fmt::Write as _;

use super::arguments;
use super::session::Loaded;
use model::{FileEntry, SkillId, ToolArgument, ToolConfig, Version, beginning, inert_line};

/// Characters of the session in the line that ends an author's text.
const MARK_CHARS: usize = 8;
/// Characters of what a tool or resource is for.
const MAX_DESCRIPTION_CHARS: usize = 200;
/// Names of files at most.
const MAX_FILE_NAMES: usize = 40;

/// The text of level 2: what the handler has to say, or a heading; the
/// instructions; what is unlocked. The session is named to a caller that must repeat it.
pub(super) fn text(
    id: &SkillId,
    core: Option<&str>,
    body: &str,
    version: &Version,
    (session, named): (&str, Option<&str>),
    (withdrawn, warning): (bool, Option<String>),
) -> String {
    let mut text = String::with_capacity(body.len() + core.map_or(0, str::len) + 512);
    if let Some(core) = core {
        text.push_str(core.trim_end());
    } else {
        let name = inert_line(&version.skill.name);
        _ = write!(text, "## {name} Skill Activated");
    }
    text.push_str("\n\n");
    if let Some(warning) = warning {
        _ = writeln!(text, "{warning}\n");
    }
    if id.is_builtin() {
        text.push_str(body.trim());
    } else {
        let whose = format!("Instructions of the skill `{id}` {}", version.semantic);
        text.push_str(&between(&whose, body, session));
    }
    text.push_str("\n\n---\n");
    text.push_str(&unlocked(version, named, withdrawn));
    text
}

/// A file of a skill as the result of a tool: an author's text as the instructions are.
pub(super) fn resource(id: &SkillId, name: &str, content: String, session: &str) -> String {
    if id.is_builtin() {
        return content;
    }
    let whose = format!("Resource `{}` of the skill `{id}`", inert_line(name));
    between(&whose, &content, session)
}

/// An author's text between the two lines.
fn between(whose: &str, text: &str, session: &str) -> String {
    // The author could not know the id of a later session, so the text cannot contain this line.
    let mark: String = session.chars().take(MARK_CHARS).collect();
    let (before, after) = lines_around(whose, &mark);
    format!("{before}\n\n{}\n\n{after}", text.trim())
}

/// The lines before and behind an author's text; `mark` is nothing that the author could know.
pub(super) fn lines_around(whose: &str, mark: &str) -> (String, String) {
    let before = format!(
        "{whose}, by its author and not by the user or the system, up to the line `End {mark}`:"
    );
    (before, format!("End {mark}"))
}

/// The text for a skill that is loaded already.
pub(super) fn again(loaded: &Loaded, version: &Version, named: Option<&str>) -> String {
    let mut text = format!(
        "The skill '{}' is already loaded (version {}, number {}): its instructions were given before and \
         still hold.\n",
        inert_line(&version.skill.name),
        version.semantic,
        loaded.number
    );
    text.push_str(&unlocked(version, named, false));
    text
}

fn unlocked(version: &Version, session: Option<&str>, withdrawn: bool) -> String {
    let mut text = String::new();
    if let Some(session) = session {
        _ = writeln!(
            text,
            "Session: `{session}`. Give it as `session_id` with the calls that follow."
        );
    }
    if withdrawn {
        text.push_str("This version was withdrawn: its tools stay locked.\n");
    } else {
        tools(&mut text, version);
    }
    files(&mut text, version);
    text
}

/// The tools with their arguments, as `name(argument: type)`.
fn tools(text: &mut String, version: &Version) {
    let mut configs = version.skill.tool_configs.iter().peekable();
    if configs.peek().is_some() {
        text.push_str("Tools unlocked, called with `call_tool`:\n");
    }
    for tool in configs {
        _ = write!(text, "- `{}`", signature(tool));
        let what = beginning(&tool.description, MAX_DESCRIPTION_CHARS);
        if !what.is_empty() {
            _ = write!(text, ": {what}");
        }
        text.push('\n');
    }
}

/// A tool with its arguments, such as `sql_query(query: string, limit?: integer)`.
pub(super) fn signature(tool: &ToolConfig) -> String {
    let argument = |argument: &ToolArgument| {
        let name = inert_line(&argument.name);
        let kind = arguments::kind(&argument.kind).unwrap_or("any");
        let optional = if argument.required { "" } else { "?" };
        match &argument.default {
            Some(default) => format!("{name}?: {kind} = {}", inert_line(&default.to_string())),
            None => format!("{name}{optional}: {kind}"),
        }
    };
    let arguments: Vec<_> = tool.args.iter().map(argument).collect();
    format!("{}({})", inert_line(&tool.name), arguments.join(", "))
}

/// The resources with what they are for, then the other files by name.
fn files(text: &mut String, version: &Version) {
    let resources = &version.skill.resource_configs;
    let is_other = |file: &&FileEntry| {
        let path = file.path.as_str();
        path != version.skill.entry.as_str()
            && resources.iter().all(|resource| resource.file != path)
    };
    let mut others = version.files.iter().filter(is_other).peekable();
    if resources.is_empty() && others.peek().is_none() {
        return;
    }
    text.push_str("More, read with `read_file`:\n");
    for resource in resources {
        let name = inert_line(&resource.name);
        _ = match beginning(&resource.description, MAX_DESCRIPTION_CHARS).as_str() {
            "" => writeln!(text, "- `{name}`"),
            what => writeln!(text, "- `{name}`: {what}"),
        };
    }
    let names: Vec<_> = others
        .by_ref()
        .take(MAX_FILE_NAMES)
        .map(|file| format!("`{}`", inert_line(file.path.as_str())))
        .collect();
    if !names.is_empty() {
        _ = write!(text, "- {}", names.join(", "));
        match others.count() {
            0 => text.push('\n'),
            more => _ = writeln!(text, ", and {more} more"),
        }
    }
}
