//! What an agent reads when it loads a skill.

use std::fmt::Write as _;

use super::session::Loaded;
use crate::model::Version;

/// The text of level 2: what the handler has to say, or a heading; the
/// instructions; what is unlocked.
pub(super) fn text(
    name: &str,
    core: Option<&str>,
    body: &str,
    version: &Version,
    session: &str,
    withdrawn: bool,
) -> String {
    let mut text = String::with_capacity(body.len() + core.map_or(0, str::len) + 512);
    match core {
        Some(core) => text.push_str(core.trim_end()),
        None => _ = write!(text, "## {name} Skill Activated"),
    }
    text.push_str("\n\n");
    text.push_str(body.trim());
    text.push_str("\n\n---\n");
    unlocked(&mut text, version, session, withdrawn);
    text
}

/// The text for a skill that is loaded already.
pub(super) fn again(name: &str, loaded: &Loaded, version: &Version, session: &str) -> String {
    let mut text = format!(
        "The skill '{name}' is already loaded (version {}, number {}): its instructions were given before and \
         still hold.\n",
        version.semantic, loaded.number
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
            .map(|tool| format!("`{}`", tool.name))
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
            _ = match resource.description.as_str() {
                "" => writeln!(text, "- `{}`", resource.name),
                what => writeln!(text, "- `{}`: {what}", resource.name),
            };
        }
    }
}
