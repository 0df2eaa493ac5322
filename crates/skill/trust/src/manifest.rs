//! Commands that nobody asks for: scripts that packages run when they are installed, hooks and
//! servers that an agent's host starts. And the packages that a skill installs.

use serde_json::Value;

use super::files::file_name;
use super::lines::LineScope;

/// Scripts of `package.json` that `npm install` runs.
const UNASKED: &[&str] = &[
    "preinstall",
    "install",
    "postinstall",
    "prepare",
    "prepublish",
];

/// Keys of settings below which a `command` is started by the agent's host.
const STARTED: &[&str] = &["hooks", "mcpServers", "mcp_servers", "servers"];
/// The most commands of one file whose lines are looked for, as each takes a pass over the text. The
/// others are judged as well, and reported for the first line.
const MAX_LOCATED_COMMANDS: usize = 200;

/// A command that nobody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The line of the file, from 1.
    pub(crate) line: u32,
    pub(crate) text: String,
    /// Says who starts it.
    pub(crate) scope: LineScope,
}

/// Returns the commands of a file of JSON that nobody asks for.
pub(crate) fn unasked(path: &str, text: &str) -> Vec<Command> {
    let is_package = file_name(path) == "package.json";
    let is_json = path
        .rsplit_once('.')
        .is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("json"));
    let is_settings = || {
        // A host reads a key with escapes as what it is.
        let is_there = |key: &&str| text.contains(&format!("\"{key}\""));
        text.contains("\\u") || STARTED.iter().any(is_there)
    };
    if !is_json || !(is_package || is_settings()) {
        return Vec::new();
    }
    let Ok(read) = serde_json::from_str::<Value>(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let scripts = read.get("scripts").and_then(Value::as_object);
    for (name, command) in scripts.into_iter().flatten().filter(|_| is_package) {
        if let (true, Some(command)) = (UNASKED.contains(&name.as_str()), command.as_str()) {
            found.push(Command {
                line: line_of(text, name),
                text: command.to_owned(),
                scope: LineScope::INSTALL,
            });
        }
    }
    started(&read, false, text, &mut found);
    found
}

/// Adds the commands, and the addresses of servers, below a key of [`STARTED`].
fn started(value: &Value, is_below: bool, text: &str, found: &mut Vec<Command>) {
    if let Value::Array(items) = value {
        for item in items {
            started(item, is_below, text, found);
        }
    }
    let Value::Object(fields) = value else { return };
    if is_below {
        let words: Vec<&str> = ["command", "args", "url", "serverUrl"]
            .iter()
            .filter_map(|key| fields.get(*key))
            .flat_map(|value| match value {
                Value::String(word) => vec![word.as_str()],
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            })
            .collect();
        // The longest is the least likely to stand elsewhere.
        if let Some(longest) = words.iter().max_by_key(|word| word.len()) {
            let is_located = found.len() < MAX_LOCATED_COMMANDS;
            found.push(Command {
                line: if is_located {
                    line_of(text, longest)
                } else {
                    1
                },
                text: words.join(" "),
                scope: LineScope::UNASKED,
            });
        }
    }
    for (key, value) in fields {
        let is_below = is_below || STARTED.contains(&key.as_str());
        started(value, is_below, text, found);
    }
}

/// The first line with a text in quotes, from 1: the reader of JSON keeps no lines.
fn line_of(text: &str, name: &str) -> u32 {
    let quoted = Value::from(name).to_string();
    let line = text.lines().position(|line| line.contains(&quoted));
    u32::try_from(line.unwrap_or(0) + 1).unwrap_or(0)
}

/// A registry of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Registry {
    Python,
    Node,
}

/// Returns the dependencies of manifests.
pub(crate) fn dependencies(path: &str, text: &str) -> Vec<(Registry, u32, String)> {
    let name = file_name(path);
    let numbered = text.lines().zip(1_u32..);
    if name
        .strip_prefix("requirements")
        .is_some_and(|rest| rest.rsplit('.').next() == Some("txt"))
    {
        return numbered
            .filter_map(|(line, number)| Some((Registry::Python, number, package(line.trim())?)))
            .collect();
    }
    if name != "package.json" {
        return Vec::new();
    }
    let Ok(Value::Object(manifest)) = serde_json::from_str(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for key in ["dependencies", "devDependencies", "optionalDependencies"] {
        let listed = manifest.get(key).and_then(Value::as_object);
        for name in listed.into_iter().flat_map(|map| map.keys()) {
            found.push((Registry::Node, line_of(text, name), name.clone()));
        }
        // A few hundred names are compared at most. A manifest with more is no reason to read all.
        if found.len() > 500 {
            break;
        }
    }
    found
}

/// Returns the packages that a line installs.
pub(crate) fn installed(line: &str) -> Vec<(Registry, String)> {
    const COMMANDS: &[(&str, Registry)] = &[
        ("pip install ", Registry::Python),
        ("pip3 install ", Registry::Python),
        ("uv add ", Registry::Python),
        ("pipx install ", Registry::Python),
        ("poetry add ", Registry::Python),
        ("uvx ", Registry::Python),
        ("npm install ", Registry::Node),
        ("npm i ", Registry::Node),
        ("npx ", Registry::Node),
        ("yarn add ", Registry::Node),
        ("pnpm add ", Registry::Node),
        ("pnpm install ", Registry::Node),
        ("bun add ", Registry::Node),
    ];
    let mut found = Vec::new();
    for (command, registry) in COMMANDS {
        let Some(at) = line.find(command) else {
            continue;
        };
        let is_word = at == 0
            || line
                .get(..at)
                .is_some_and(|before| before.ends_with(|c: char| !c.is_alphanumeric() && c != '-'));
        if !is_word {
            continue;
        }
        let rest = line.get(at + command.len()..).unwrap_or_default();
        let end = rest
            .find(['&', '|', ';', '`', '#', '\n', ')', '"', '\''])
            .unwrap_or(rest.len());
        let words = rest.get(..end).unwrap_or_default().split_whitespace();
        let named: Vec<String> = words
            .take(20)
            .take_while(|word| word.is_ascii())
            .filter(|word| !word.starts_with('-'))
            .filter_map(package)
            .collect();
        // Behind the package come arguments for it.
        let is_one = command.starts_with("npx") || command.starts_with("uvx");
        let take = if is_one { 1 } else { named.len() };
        found.extend(named.into_iter().take(take).map(|name| (*registry, name)));
    }
    found
}

/// Returns the name of a requirement, without its version. None for scoped packages: only the owner
/// of a scope can publish in it.
fn package(word: &str) -> Option<String> {
    let end = word
        .find(['=', '<', '>', '~', '!', '@', '[', ' ', ';', '^'])
        .unwrap_or(word.len());
    let name = word.get(..end)?.to_ascii_lowercase();
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !name.contains("..");
    is_name.then_some(name)
}
