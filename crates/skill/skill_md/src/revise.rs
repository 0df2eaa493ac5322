//! Changes fields of a `SKILL.md`, and leaves the rest of it as its author wrote it.

use serde_json::{Map, Value};

use super::findings::Findings;
use super::keys::{self, Keys};
use super::render::{Draft, Lines};
use super::tree::{self, Tree};
use super::{fence, repair};
use model::Skill;

/// Returns the text with the fields of the draft; those that the draft leaves empty stay. Lines
/// that already say the same are not touched. `None`: the text is no `SKILL.md`.
///
/// `current` is what the text was read as.
#[must_use]
pub fn revise(text: &str, current: &Skill, draft: &Draft) -> Option<String> {
    let fenced = fence::find(text).ok()?;
    let mut front = fenced.front.to_owned();
    let changes = changes(current, draft);
    for (key, write) in &changes {
        front = change(&front, key, write)?;
    }
    let body = fenced.body;
    let is_new = |content: &str| !content.trim().is_empty() && content.trim() != body.trim();
    let is_new = is_new(&draft.core_content);
    if changes.is_empty() && !is_new {
        return Some(text.to_owned());
    }
    let above = fenced.first_line - 1;
    let start: usize = text.split_inclusive('\n').take(above).map(str::len).sum();
    let mut revised = Lines(text.get(..start)?.to_owned());
    revised.0.push_str(&front);
    let closing = text.get(start + fenced.front.len()..text.len() - body.len())?;
    if closing.trim().is_empty() {
        // The front matter was never closed, and was read up to where prose begins.
        revised.0.push_str("---\n");
    }
    revised.0.push_str(closing);
    if is_new {
        revised.body(&draft.core_content);
    } else {
        revised.0.push_str(body);
    }
    Some(revised.0)
}

/// Writes a key, spelled and indented as the author did, with its value.
pub(super) type Write<'a> = Box<dyn Fn(&mut Lines, &str, &str) + 'a>;

/// Returns the keys that change, in their standard spelling.
fn changes<'a>(current: &'a Skill, draft: &'a Draft) -> Vec<(&'static str, Write<'a>)> {
    let mut changes: Vec<(&'static str, Write<'a>)> = Vec::new();
    let stated = |text: &'a Option<String>| text.as_deref().unwrap_or_default();
    for (key, was, is) in [
        ("name", current.name.as_str(), draft.name.as_str()),
        ("description", &current.description, &draft.description),
        ("category", &current.category, &draft.category),
        ("version", stated(&current.version), stated(&draft.version)),
        ("author", stated(&current.author), stated(&draft.author)),
    ] {
        if !is.trim().is_empty() && is.trim() != was.trim() {
            let write = move |out: &mut Lines, indent: &str, key: &str| out.text(indent, key, is);
            changes.push((key, Box::new(write)));
        }
    }
    if !draft.tool_configs.is_empty() && draft.tool_configs != current.tool_configs {
        let write = |out: &mut Lines, _: &str, key: &str| out.tools(key, &draft.tool_configs);
        changes.push(("tool-configs", Box::new(write)));
    }
    if !draft.resource_configs.is_empty() && draft.resource_configs != current.resource_configs {
        let write =
            |out: &mut Lines, _: &str, key: &str| out.resources(key, &draft.resource_configs);
        changes.push(("resource-configs", Box::new(write)));
    }
    changes
}

fn read(front: &str) -> Option<Tree> {
    repair::read(front, 1, &mut Findings::default())
}

/// Returns the front matter with another value of a key. Where its lines cannot be told apart, as
/// in `{name: x}`, all of it is written again.
pub(super) fn change(front: &str, key: &str, write: &Write<'_>) -> Option<String> {
    let tree = read(front)?;
    let location = KeyLocation::of(&tree, key);
    let mut alone = Lines::default();
    write(&mut alone, "", &location.spelling);
    // What the new line means alone, to compare it with what the whole text means afterwards.
    let value = read(&alone.0)?.entries.pop()?.1.json();
    let mut meant = tree::json(&tree.entries);
    match meant.get_mut("metadata").and_then(Value::as_object_mut) {
        Some(metadata) if location.in_metadata => metadata.insert(location.spelling.clone(), value),
        _ => meant.insert(location.spelling.clone(), value),
    };
    let changed = location.write(front, write);
    let says = read(&changed).map(|tree| tree::json(&tree.entries));
    // An edit by lines may hit a value over several lines or a flow map. Read again, it has to say
    // exactly what was meant.
    Some(if says.as_ref() == Some(&meant) {
        changed
    } else {
        anew(&meant)
    })
}

fn anew(front_matter: &Map<String, Value>) -> String {
    let mut out = Lines::default();
    for (key, value) in front_matter {
        out.value(key, value);
    }
    out.0
}

/// The location of a key, existing or new.
struct KeyLocation {
    spelling: String,
    /// Its lines, from 0 and up to the next key's; none: the key is new.
    lines: Option<(usize, Option<usize>)>,
    in_metadata: bool,
}

impl KeyLocation {
    fn of(tree: &Tree, key: &str) -> Self {
        let known = Keys::new(&tree.entries);
        // An empty key is a location as well.
        let empty = || {
            let mut keys = tree.entries.iter().map(|(key, _)| key);
            let found = keys.find(|found| keys::spelling(&found.text) == key);
            found.map(|found| (found.text.as_str(), found.line, false))
        };
        let found = known.find(key).map(|it| (it.spelling, it.line, false));
        let below = || {
            let entry = known
                .find_anywhere(key)
                .filter(|it| it.node.text().is_some());
            entry.map(|it| (it.spelling, it.line, it.in_metadata))
        };
        let Some((spelling, line, in_metadata)) = found.or_else(below).or_else(empty) else {
            return Self {
                spelling: key.replace('-', "_"),
                lines: None,
                in_metadata: false,
            };
        };
        let mut starts: Vec<usize> = tree.entries.iter().map(|(key, _)| key.line).collect();
        if let Some(metadata) = known.find("metadata")
            && let tree::NodeShape::Map(entries) = &metadata.node.shape
            && in_metadata
        {
            starts.extend(entries.iter().map(|(key, _)| key.line));
        }
        let next = starts.into_iter().filter(|start| *start > line).min();
        Self {
            spelling: spelling.to_owned(),
            lines: Some((line - 1, next.map(|next| next - 1))),
            in_metadata,
        }
    }

    fn write(&self, front: &str, write: &Write<'_>) -> String {
        let lines: Vec<&str> = front.split_inclusive('\n').collect();
        let (start, next) = self.lines.unwrap_or((lines.len(), None));
        let end = next.unwrap_or(lines.len());
        // Comments above the next key are about that one.
        let is_apart = |line: &&str| {
            let line = line.trim_end();
            line.is_empty() || line.starts_with('#')
        };
        let within = lines.get(start + 1..end).unwrap_or_default();
        let apart = within.iter().rev().take_while(|line| is_apart(line));
        let end = end - apart.count();
        let first = lines.get(start).copied().unwrap_or_default();
        let indent = first.len() - first.trim_start_matches(' ').len();
        let mut out = Lines::default();
        write(&mut out, &" ".repeat(indent), &self.spelling);
        let mut new = out.0;
        if front.contains("\r\n") {
            new = new.replace('\n', "\r\n");
        }
        let before = lines.get(..start).unwrap_or(&lines).concat();
        let after = lines.get(end..).unwrap_or_default().concat();
        let gap = if before.is_empty() || before.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        format!("{before}{gap}{new}{after}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use model::{FilePath, ResourceConfig};

    fn revised(text: &str, draft: &Draft) -> String {
        let files = BTreeMap::from([(FilePath::skill_md(), text.to_owned().into())]);
        let reading = crate::read(&files, &crate::ReadOptions::default());
        let skill = reading.skill.expect("a skill");
        revise(text, &skill, draft).expect("a text")
    }

    fn description(description: &str) -> Draft {
        Draft {
            description: description.to_owned(),
            ..Draft::default()
        }
    }

    #[test]
    fn a_field_changes_and_the_rest_stays_byte_for_byte() {
        let text = "---\n# Ours\nname: refunds\ndescription: >\n  Pays\n  back.\n\n# Who\nmetadata:\n  \
                    owner: acme # us\n  version: 1.0\n---\nFirst  look.\n";
        assert_eq!(
            revised(text, &description("Pays: twice")),
            text.replace(
                "description: >\n  Pays\n  back.\n",
                "description: \"Pays: twice\"\n"
            )
        );
        let version = Draft {
            version: Some("1.0.1".to_owned()),
            ..Draft::default()
        };
        assert_eq!(
            revised(text, &version),
            text.replace("  version: 1.0\n", "  version: \"1.0.1\"\n")
        );
        let body = Draft {
            core_content: "Ask.".to_owned(),
            ..Draft::default()
        };
        assert_eq!(
            revised(text, &body),
            text.replace("First  look.\n", "\nAsk.\n")
        );
        let more = Draft {
            category: "finance".to_owned(),
            resource_configs: vec![ResourceConfig {
                name: "examples".to_owned(),
                description: String::new(),
                file: "examples.md".to_owned(),
                dynamic: false,
                method: String::new(),
            }],
            ..Draft::default()
        };
        assert_eq!(
            revised(text, &more),
            text.replace(
                "1.0\n---",
                "1.0\ncategory: finance\nresource_configs:\n  - name: examples\n    file: \
                 \"examples.md\"\n---"
            )
        );
    }

    #[test]
    fn what_says_the_same_is_not_touched() {
        let text = "---\nname: 'refunds'\ndescription: |\n  Pays back.\n---\n\n\nFirst look.\n\n";
        let same = Draft {
            name: "refunds".to_owned(),
            description: "Pays back.".to_owned(),
            core_content: "First look.".to_owned(),
            ..Draft::default()
        };
        assert_eq!(revised(text, &same), text);
        assert_eq!(revised(text, &Draft::default()), text);
    }

    #[test]
    fn front_matter_of_any_form_says_what_it_should() {
        for (text, expected) in [
            (
                "---\n{name: refunds, description: Pays., x: [1, b]}\n---\nLook.\n",
                "---\nname: \"refunds\"\ndescription: \"Gives.\"\nx: [1, \"b\"]\n---\nLook.\n",
            ),
            (
                "---\r\nname: refunds\r\ndescription: Pays.\r\n---\r\nLook.\r\n",
                "---\r\nname: refunds\r\ndescription: \"Gives.\"\r\n---\r\nLook.\r\n",
            ),
            (
                "---\nname: refunds\ndescription: Pays: now.\nlicense: MIT\n---\nLook.\n",
                "---\nname: refunds\ndescription: \"Gives.\"\nlicense: MIT\n---\nLook.\n",
            ),
            (
                "\n---\nname: refunds\ndescription: Pays.\n\n# Look\n\nThere.\n",
                "\n---\nname: refunds\ndescription: \"Gives.\"\n---\n\n# Look\n\nThere.\n",
            ),
        ] {
            assert_eq!(revised(text, &description("Gives.")), expected);
        }
    }
}
