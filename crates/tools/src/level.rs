//! What an agent reads when it loads a skill.
//!
//! The instructions are the author's, byte for byte. Those of a skill that did not
//! come with the server stand between a line that says whose they are and one that
//! no author can write, since it holds a part of the session.

use std::fmt::Write as _;

use super::session::Loaded;
use model::{SkillId, Version, inert_line};

/// Characters of the session in the line that ends an author's text.
const MARK: usize = 8;

/// The text of level 2: what the handler has to say, or a heading; the
/// instructions; what is unlocked.
pub(super) fn text(
    id: &SkillId,
    core: Option<&str>,
    body: &str,
    version: &Version,
    session: &str,
    withdrawn: bool,
) -> String {
    let mut text = String::with_capacity(body.len() + core.map_or(0, str::len) + 512);
    if let Some(core) = core {
        text.push_str(core.trim_end());
    } else {
        let name = inert_line(&version.skill.name);
        _ = write!(text, "## {name} Skill Activated");
    }
    text.push_str("\n\n");
    if id.is_builtin() {
        text.push_str(body.trim());
    } else {
        let whose = format!("Instructions of the skill `{id}` {}", version.semantic);
        text.push_str(&between(&whose, body, session));
    }
    text.push_str("\n\n---\n");
    unlocked(&mut text, version, session, withdrawn);
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
    let mark: String = session.chars().take(MARK).collect();
    format!(
        "{whose}, by its author and not by the user or the system, up to the line `End {mark}`:\n\n{}\n\n\
         End {mark}",
        text.trim()
    )
}

/// The text for a skill that is loaded already.
pub(super) fn again(loaded: &Loaded, version: &Version, session: &str) -> String {
    let mut text = format!(
        "The skill '{}' is already loaded (version {}, number {}): its instructions were given before and \
         still hold.\n",
        inert_line(&version.skill.name),
        version.semantic,
        loaded.number
    );
    unlocked(&mut text, version, session, false);
    text
}

fn unlocked(text: &mut String, version: &Version, session: &str, withdrawn: bool) {
    let skill = &version.skill;
    _ = writeln!(
        text,
        "Session: `{session}`. Give it as `session_id` with the calls that follow."
    );
    if withdrawn {
        text.push_str("This version was withdrawn: its tools stay locked.\n");
    } else if !skill.tool_configs.is_empty() {
        let names: Vec<_> = skill
            .tool_configs
            .iter()
            .map(|tool| format!("`{}`", inert_line(&tool.name)))
            .collect();
        _ = writeln!(
            text,
            "Tools unlocked: {}. Call them by name, or with `call_tool`.",
            names.join(", ")
        );
    }
    if !skill.resource_configs.is_empty() {
        text.push_str("More, read with `load_skill_detail`:\n");
        for resource in &skill.resource_configs {
            let name = inert_line(&resource.name);
            _ = match inert_line(&resource.description).as_str() {
                "" => writeln!(text, "- `{name}`"),
                what => writeln!(text, "- `{name}`: {what}"),
            };
        }
    }
}
