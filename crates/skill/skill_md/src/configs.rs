//! Reads keys whose values have a shape of their own: rules, tools, resources.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::findings::{Findings, shown};
use super::keys::{KeyEntry, Keys};
use super::tree::{Node, NodeShape};
use model::{FilePath, ResourceConfig, Skill, ToolConfig};

/// Reads them into a skill, and checks that the files of resources exist.
pub(super) fn read(
    keys: &Keys<'_>,
    skill: &mut Skill,
    files: &BTreeMap<FilePath, Bytes>,
    findings: &mut Findings,
) {
    skill.output_contract = keys
        .find("output-contract")
        .and_then(|entry| one("output-contract", entry, findings));
    skill.compatibility_rules = list(keys, "compatibility-rules", findings).0;
    skill.composability_rules = list(keys, "composability-rules", findings).0;
    let (tools, lines) = list(keys, "tool-configs", findings);
    check_tools(&tools, &lines, findings);
    skill.tool_configs = tools;
    let (resources, lines) = list(keys, "resource-configs", findings);
    check_resources(&resources, &lines, files, findings);
    skill.resource_configs = resources;
}

fn one<T: DeserializeOwned>(key: &str, entry: KeyEntry<'_>, findings: &mut Findings) -> Option<T> {
    typed(entry.node)
        .map_err(|error| invalid(key, &entry, entry.line, "", &error, findings))
        .ok()
}

/// Returns the elements and the line of each. One that is wrong leaves the whole list
/// empty: half of a set of rules would mean something that its author did not.
fn list<T: DeserializeOwned>(
    keys: &Keys<'_>,
    key: &str,
    findings: &mut Findings,
) -> (Vec<T>, Vec<usize>) {
    let nothing = (Vec::new(), Vec::new());
    let Some(entry) = keys.find(key) else {
        return nothing;
    };
    let NodeShape::List(nodes) = &entry.node.shape else {
        let error = format!("it is {}, not a list", entry.node.kind());
        invalid(key, &entry, entry.line, "", &error, findings);
        return nothing;
    };
    let mut list = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        match typed(node) {
            Ok(element) => list.push(element),
            Err(error) => {
                let position = format!("element {}: ", index + 1);
                invalid(key, &entry, node.line, &position, &error, findings);
            }
        }
    }
    if list.len() == nodes.len() {
        (list, nodes.iter().map(|node| node.line).collect())
    } else {
        nothing
    }
}

fn typed<T: DeserializeOwned>(node: &Node) -> Result<T, String> {
    serde_json::from_value(node.json()).map_err(|error| error.to_string())
}

fn invalid(
    key: &str,
    entry: &KeyEntry<'_>,
    line: usize,
    position: &str,
    error: &str,
    findings: &mut Findings,
) {
    findings.warning(
        &format!("{key}-invalid"),
        line,
        format!(
            "`{}` was left out: {position}{}",
            entry.label(),
            model::shown(error, 200)
        ),
    );
}

/// Tells whether every host of a model takes a tool of this name.
fn is_taken_everywhere(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.len() <= 64
        && name.chars().all(is_word)
}

fn check_tools(tools: &[ToolConfig], lines: &[usize], findings: &mut Findings) {
    let mut names = HashSet::new();
    for (tool, &line) in tools.iter().zip(lines) {
        let name = shown(&tool.name);
        if tool.method.is_empty() {
            findings.warning(
                "tool-method-missing",
                line,
                format!("The tool `{name}` names no `method`, so nothing can run it"),
            );
        }
        if !is_taken_everywhere(&tool.name) {
            findings.warning(
                "tool-name-nonstandard",
                line,
                format!(
                    "The tool `{name}` is taken by few hosts of models: begin with a letter or `_`, and \
                     use letters, digits, `_` and `-`, 64 at most"
                ),
            );
        }
        if !names.insert(model::fold_tool(&tool.name)) {
            findings.warning(
                "tool-name-duplicate",
                line,
                format!("There is another tool `{name}` above; only the first can be called"),
            );
        }
    }
}

fn check_resources(
    resources: &[ResourceConfig],
    lines: &[usize],
    files: &BTreeMap<FilePath, Bytes>,
    findings: &mut Findings,
) {
    let mut names = HashSet::new();
    for (resource, &line) in resources.iter().zip(lines) {
        let name = shown(&resource.name);
        let is_made = resource.dynamic && !resource.method.is_empty();
        if resource.file.is_empty() && !is_made {
            findings.warning(
                "resource-source-missing",
                line,
                format!(
                    "The resource `{name}` has neither a `file` nor `dynamic: true` with a `method`"
                ),
            );
        } else if !resource.file.is_empty()
            && !files.keys().any(|path| path.as_str() == resource.file)
        {
            findings.warning(
                "resource-file-missing",
                line,
                format!(
                    "The resource `{name}` names the file `{}`, which is not in the skill",
                    shown(&resource.file)
                ),
            );
        }
        if !names.insert(&resource.name) {
            findings.warning(
                "resource-name-duplicate",
                line,
                format!("There is another resource `{name}` above; only the first can be read"),
            );
        }
    }
}
