//! Reads values of front matter in the types that their keys should have, leniently: what
//! is nearly right is taken and reported.

use super::findings::{Findings, shown};
use super::keys::KeyEntry;
use super::tree::{Node, NodeShape};

impl KeyEntry<'_> {
    /// The key as its author knows it.
    pub(super) fn label(&self) -> String {
        let prefix = if self.in_metadata { "metadata." } else { "" };
        format!("{prefix}{}", shown(self.spelling))
    }

    /// Reports a value of the wrong type under the key's own rule. In `metadata`
    /// authors may write what they like, so there it is only information.
    fn wrong(&self, key: &str, findings: &mut Findings, message: &str) {
        let rule = format!("{key}-invalid");
        let message = format!("`{}` {message}", self.label());
        if self.in_metadata {
            findings.info(&rule, self.line, message);
        } else {
            findings.warning(&rule, self.line, message);
        }
    }
}

/// Reads a text. A list or a map is reported and left out.
pub(super) fn text(
    key: &str,
    entry: Option<KeyEntry<'_>>,
    findings: &mut Findings,
) -> Option<String> {
    let entry = entry?;
    if let Some(text) = entry.node.text() {
        return Some(text.trim().to_owned());
    }
    let message = format!("is {}, not text; it was left out", entry.node.kind());
    entry.wrong(key, findings, &message);
    None
}

/// Reads true or false, also in the words of YAML 1.1. Any other value is reported, and counts
/// as true: the key restricts a skill, and an author who writes it wants that.
pub(super) fn flag(key: &str, entry: Option<KeyEntry<'_>>, findings: &mut Findings) -> bool {
    let Some(entry) = entry else { return false };
    if let NodeShape::Bool(value, _) = entry.node.shape {
        return value;
    }
    let text = entry.node.text().unwrap_or_default().trim().to_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" => true,
        "false" | "no" | "off" => false,
        _ => {
            let message = format!(
                "is {}, not true or false; it was taken for true",
                entry.node.kind()
            );
            entry.wrong(key, findings, &message);
            true
        }
    }
}

/// Reads a text. A list or a map is reported and kept as JSON.
pub(super) fn text_or_json(
    key: &str,
    entry: Option<KeyEntry<'_>>,
    findings: &mut Findings,
) -> Option<String> {
    let entry = entry?;
    if let Some(text) = entry.node.text() {
        return Some(text.trim().to_owned());
    }
    let message = format!("is {}, not text; it was stored as JSON", entry.node.kind());
    entry.wrong(key, findings, &message);
    Some(entry.node.json().to_string())
}

const NO_LIST: &str = "is a map, not a list; it was left out";

/// Reads words: a list, or one text with commas between them.
pub(super) fn words(
    key: &str,
    entry: Option<KeyEntry<'_>>,
    findings: &mut Findings,
) -> Vec<String> {
    let split = |_: KeyEntry<'_>, text: &str, _: &mut Findings| trimmed(text.split(','));
    list_or(key, entry, NO_LIST, findings, split)
}

/// Reads steps or conditions: a list; one text is a list of one.
pub(super) fn sentences(
    key: &str,
    entry: Option<KeyEntry<'_>>,
    findings: &mut Findings,
) -> Vec<String> {
    list_or(key, entry, NO_LIST, findings, |entry, text, findings| {
        let message = "is one text, not a list; it was taken as a list of one";
        entry.wrong(key, findings, message);
        trimmed([text])
    })
}

/// Reads names of tools: a list, or one text with spaces or commas between them.
/// `is_standard` says that the standard itself wants one text.
pub(super) fn tools(
    key: &str,
    entry: Option<KeyEntry<'_>>,
    is_standard: bool,
    findings: &mut Findings,
) -> Vec<String> {
    let no_names = "is a map, not names of tools; it was left out";
    list_or(key, entry, no_names, findings, |entry, text, findings| {
        let (tools, is_closed) = split_tools(text);
        if !is_closed {
            entry.wrong(key, findings, "has a parenthesis without its partner");
        }
        if !is_standard {
            let message = "is one text, not a list; it was split at spaces and commas";
            entry.wrong(key, findings, message);
        }
        tools
    })
}

/// Reads the texts of a list. A map is reported and left out; `split` makes a list of one text.
fn list_or(
    key: &str,
    entry: Option<KeyEntry<'_>>,
    map_message: &str,
    findings: &mut Findings,
    split: impl FnOnce(KeyEntry<'_>, &str, &mut Findings) -> Vec<String>,
) -> Vec<String> {
    let Some(entry) = entry else {
        return Vec::new();
    };
    match &entry.node.shape {
        NodeShape::List(list) => texts(key, entry, list, findings),
        NodeShape::Map(_) => {
            entry.wrong(key, findings, map_message);
            Vec::new()
        }
        _ => split(entry, entry.node.text().unwrap_or_default(), findings),
    }
}

/// Splits at spaces and commas outside parentheses, as in `Bash(git add:*) Read`.
pub(super) fn split_tools(text: &str) -> (Vec<String>, bool) {
    let mut depth = 0_usize;
    let mut is_closed = true;
    let parts: Vec<&str> = text
        .split(|c: char| {
            match c {
                '(' => depth += 1,
                ')' if depth == 0 => is_closed = false,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0 && (c == ',' || c.is_whitespace())
        })
        .collect();
    (trimmed(parts), is_closed && depth == 0)
}

fn trimmed<'a>(parts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Reads the texts of a list. Numbers and the like are taken as they are written,
/// empty elements are left out; both are reported once.
fn texts(key: &str, entry: KeyEntry<'_>, list: &[Node], findings: &mut Findings) -> Vec<String> {
    let unusual = list
        .iter()
        .find(|node| !matches!(node.shape, NodeShape::Text(_)));
    if let Some(unusual) = unusual {
        let message = format!(
            "`{}` has an element that is {}, not text",
            entry.label(),
            unusual.kind()
        );
        findings.info(&format!("{key}-element"), unusual.line, message);
    }
    let of = |node: &Node| match &node.shape {
        NodeShape::Null => None,
        NodeShape::List(_) | NodeShape::Map(_) => Some(node.json().to_string()),
        _ => node.text().map(|text| text.trim().to_owned()),
    };
    list.iter()
        .filter_map(of)
        .filter(|text| !text.is_empty())
        .collect()
}
