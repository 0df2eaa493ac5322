//! Writes a `SKILL.md` from fields.

use std::fmt::Write as _;

use serde_json::Value;

use super::quote::quote;
use model::{ResourceConfig, ToolArgument, ToolConfig};

/// The fields of a new `SKILL.md`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// Name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Category; left out where empty.
    pub category: String,
    /// Version.
    pub version: Option<String>,
    /// Author.
    pub author: Option<String>,
    /// The body, in Markdown.
    pub core_content: String,
    /// Tools it unlocks.
    pub tool_configs: Vec<ToolConfig>,
    /// Its resources of level 3.
    pub resource_configs: Vec<ResourceConfig>,
}

/// Writes a `SKILL.md`: the same text for the same draft. Reading it gives the
/// draft's fields back, but for spaces around them; a default of null reads as
/// none.
///
/// It is not checked here whether the draft makes a skill; [`read`](super::read)
/// does that.
#[must_use]
pub fn render(draft: &Draft) -> String {
    let mut out = Lines(String::from("---\n"));
    out.text("", "name", &draft.name);
    out.text("", "description", &draft.description);
    out.text_unless_empty("", "category", &draft.category);
    out.text_unless_empty("", "version", draft.version.as_deref().unwrap_or_default());
    out.text_unless_empty("", "author", draft.author.as_deref().unwrap_or_default());
    if !draft.tool_configs.is_empty() {
        out.tools("tool_configs", &draft.tool_configs);
    }
    if !draft.resource_configs.is_empty() {
        out.resources("resource_configs", &draft.resource_configs);
    }
    out.line("---");
    out.body(&draft.core_content);
    out.0
}

#[derive(Debug, Default)]
pub(super) struct Lines(pub(super) String);

impl Lines {
    pub(super) fn tools(&mut self, key: &str, tools: &[ToolConfig]) {
        self.line(&format!("{key}:"));
        for tool in tools {
            self.tool(tool);
        }
    }

    pub(super) fn resources(&mut self, key: &str, resources: &[ResourceConfig]) {
        self.line(&format!("{key}:"));
        for resource in resources {
            self.resource(resource);
        }
    }

    /// The body, set off from the fence.
    pub(super) fn body(&mut self, body: &str) {
        self.line("");
        self.0.push_str(body);
        if !body.ends_with('\n') {
            self.0.push('\n');
        }
    }

    /// A key with any value, on one line.
    pub(super) fn value(&mut self, key: &str, value: &Value) {
        self.line(&format!("{}: {}", scalar(key), flow(value)));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    pub(super) fn text(&mut self, indent: &str, key: &str, text: &str) {
        // Writing to a string cannot fail.
        let _infallible = writeln!(self.0, "{indent}{key}: {}", scalar(text));
    }

    fn text_unless_empty(&mut self, indent: &str, key: &str, text: &str) {
        if !text.is_empty() {
            self.text(indent, key, text);
        }
    }

    fn tool(&mut self, tool: &ToolConfig) {
        self.text("  - ", "name", &tool.name);
        self.text_unless_empty("    ", "description", &tool.description);
        self.text_unless_empty("    ", "method", &tool.method);
        if !tool.args.is_empty() {
            self.line("    args:");
            tool.args.iter().for_each(|it| self.argument(it));
        }
    }

    fn argument(&mut self, argument: &ToolArgument) {
        self.text("      - ", "name", &argument.name);
        self.text("        ", "type", &argument.kind);
        self.text_unless_empty("        ", "description", &argument.description);
        if argument.required {
            self.line("        required: true");
        }
        if let Some(default) = &argument.default {
            self.line(&format!("        default: {}", flow(default)));
        }
    }

    fn resource(&mut self, resource: &ResourceConfig) {
        self.text("  - ", "name", &resource.name);
        self.text_unless_empty("    ", "description", &resource.description);
        self.text_unless_empty("    ", "file", &resource.file);
        if resource.dynamic {
            self.line("    dynamic: true");
        }
        self.text_unless_empty("    ", "method", &resource.method);
    }
}

/// A text as a scalar: bare where it is a plain word, in quotes otherwise.
fn scalar(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b));
    // Words that YAML 1.1 or 1.2 takes for a boolean or null.
    let is_taken = matches!(
        text,
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    if is_word && !is_taken {
        text.to_owned()
    } else {
        quote(text)
    }
}

/// Any JSON value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(flow).collect();
            format!("[{}]", list.join(", "))
        }
        Value::Object(map) => {
            // The colon of a key has to follow within 1,024 characters (YAML 1.2), unless
            // `?` announces the key.
            let key = |key: &str| match quote(key) {
                key if key.len() > 1_000 => format!("? {key} "),
                key => key,
            };
            let map: Vec<String> = map
                .iter()
                .map(|(k, v)| format!("{}: {}", key(k), flow(v)))
                .collect();
            format!("{{{}}}", map.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
