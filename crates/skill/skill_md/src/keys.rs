//! Finds keys, however they are spelled.

use super::findings::{Findings, listing, shown};
use super::tree::{Key, Node, NodeShape};

/// Keys of the Agent Skills standard.
const STANDARD: &[&str] = &[
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// Keys of skill definitions, progressive disclosure and catalogs.
const OURS: &[&str] = &[
    "version",
    "category",
    "categories",
    "author",
    "homepage",
    "repository",
    "tags",
    "triggers",
    "technologies",
    "forbidden-tools",
    "execution-protocol",
    "preconditions",
    "postconditions",
    "output-contract",
    "compatibility-rules",
    "composability-rules",
    "tool-configs",
    "resource-configs",
    "long-description",
    "display-name",
    "title",
];

/// Keys of Claude Code. Only the first is read; the others stay in the front matter.
const CLAUDE_CODE: &[&str] = &[
    "disable-model-invocation",
    "user-invocable",
    "argument-hint",
];

/// A known key, with its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyEntry<'a> {
    /// As its author spelled it.
    pub(super) spelling: &'a str,
    pub(super) line: usize,
    pub(super) node: &'a Node,
    /// It is in `metadata`, where authors may write what they like.
    pub(super) in_metadata: bool,
}

/// The keys of a front matter, by their standard spelling.
pub(super) struct Keys<'a> {
    top: Vec<Folded<'a>>,
    metadata: Vec<Folded<'a>>,
}

struct Folded<'a> {
    key: String,
    entry: KeyEntry<'a>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(entries: &'a [(Key, Node)]) -> Self {
        let mut keys = Self {
            top: folded(entries, false),
            metadata: Vec::new(),
        };
        if let Some(NodeShape::Map(entries)) = keys.find("metadata").map(|entry| &entry.node.shape)
        {
            keys.metadata = folded(entries, true);
        }
        keys
    }

    /// Returns the entry of a key, given as `allowed-tools`; none where it is empty.
    pub(super) fn find(&self, key: &str) -> Option<KeyEntry<'a>> {
        find(&self.top, key).filter(|entry| !entry.node.is_null())
    }

    /// The same, searched in `metadata` too.
    pub(super) fn find_anywhere(&self, key: &str) -> Option<KeyEntry<'a>> {
        let below = || find(&self.metadata, key).filter(|entry| !entry.node.is_null());
        self.find(key).or_else(below)
    }

    /// Reports unknown keys, odd spellings, and keys that are there twice.
    pub(super) fn check(&self, findings: &mut Findings) {
        let mut unknown = Vec::new();
        for Folded { key, entry } in &self.top {
            let known = [STANDARD, OURS, CLAUDE_CODE];
            let is_known = known.iter().any(|keys| keys.contains(&key.as_str()));
            if !is_known {
                unknown.push(entry);
                continue;
            }
            match find(&self.top, key) {
                Some(used) if used.spelling != entry.spelling => findings.warning(
                    "key-ambiguous",
                    entry.line,
                    format!(
                        "`{}` is the same key as `{}` on line {}, which is the one that counts",
                        shown(entry.spelling),
                        shown(used.spelling),
                        used.line
                    ),
                ),
                _ if matches!(key.as_str(), "name" | "description") && key != entry.spelling => {
                    findings.info(
                        "key-spelling",
                        entry.line,
                        format!(
                            "`{}` is spelled `{key}` in the standard",
                            shown(entry.spelling)
                        ),
                    );
                }
                _ => {}
            }
        }
        if let Some(first) = unknown.first() {
            let list = listing(
                unknown
                    .iter()
                    .map(|key| format!("`{}` (line {})", shown(key.spelling), key.line)),
            );
            findings.info(
                "unknown-key",
                first.line,
                format!("Unknown keys, stored as they are: {list}"),
            );
        }
    }
}

/// Returns the standard's spelling of a key.
pub(super) fn spelling(key: &str) -> String {
    key.to_lowercase().replace('_', "-")
}

fn folded(entries: &[(Key, Node)], in_metadata: bool) -> Vec<Folded<'_>> {
    entries
        .iter()
        .map(|(key, node)| Folded {
            key: spelling(&key.text),
            entry: KeyEntry {
                spelling: &key.text,
                line: key.line,
                node,
                in_metadata,
            },
        })
        .collect()
}

/// Finds a key. The standard's own spelling takes precedence over the one with underscores, and
/// that over any other.
fn find<'a>(entries: &[Folded<'a>], key: &str) -> Option<KeyEntry<'a>> {
    let underscored = key.replace('-', "_");
    let rank = |spelling: &str| match spelling {
        spelling if spelling == key => 0,
        spelling if spelling == underscored => 1,
        _ => 2,
    };
    entries
        .iter()
        .filter(|folded| folded.key == key)
        .min_by_key(|folded| rank(folded.entry.spelling))
        .map(|folded| folded.entry)
}
