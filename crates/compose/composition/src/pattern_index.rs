//! The tool patterns of several skills, found by the names that they match.
//!
//! Most patterns are names of single tools, of which there are hundreds in a set.
//! So a pattern is compared with those of its name and with the few that match
//! several tools, not with all.

use std::collections::HashMap;

use super::attributed::Attributed;
use super::pattern::ToolPattern;

/// A pattern, and the members that have it.
pub(super) struct Entry {
    pub(super) pattern: ToolPattern,
    /// The members, in the order of their ids.
    pub(super) members: Vec<usize>,
    /// What every name that it matches begins with; of a pattern of one tool the
    /// whole name. Folded: patterns that differ by spelling alone are compared.
    head: String,
}

impl From<Attributed> for Entry {
    fn from(attributed: Attributed) -> Self {
        let pattern = ToolPattern::parse(attributed.text);
        let head = pattern.folded().split('*').next().unwrap_or_default();
        Self {
            head: head.to_owned(),
            pattern,
            members: attributed.members,
        }
    }
}

impl Entry {
    /// There may be a name that both match: the shorter head is that of a pattern
    /// which goes on with anything.
    fn may_share_a_name(&self, other: &Self) -> bool {
        (!self.pattern.is_one_tool() && other.head.starts_with(&self.head))
            || (!other.pattern.is_one_tool() && self.head.starts_with(&other.head))
    }
}

/// Finds the patterns that may share calls with another one.
pub(super) struct PatternIndex<'a> {
    all: Vec<&'a Entry>,
    /// Patterns of one tool, by its folded name.
    by_name: HashMap<&'a str, Vec<&'a Entry>>,
    /// Patterns of several tools.
    wide: Vec<&'a Entry>,
}

impl<'a> PatternIndex<'a> {
    pub(super) fn new(entries: &'a [Entry]) -> Self {
        let mut by_name: HashMap<&str, Vec<&Entry>> = HashMap::with_capacity(entries.len());
        let mut wide = Vec::new();
        for entry in entries {
            if entry.pattern.is_one_tool() {
                by_name.entry(&entry.head).or_default().push(entry);
            } else {
                wide.push(entry);
            }
        }
        Self {
            all: entries.iter().collect(),
            by_name,
            wide,
        }
    }

    /// All that may share calls with a pattern; the others do not. A pattern of
    /// the index itself is among its own candidates.
    pub(super) fn candidates(&self, of: &Entry) -> impl Iterator<Item = &'a Entry> {
        let (same_name, others) = if of.pattern.is_one_tool() {
            (self.by_name.get(&*of.head), &self.wide)
        } else {
            (None, &self.all)
        };
        let others = others.iter().filter(|other| other.may_share_a_name(of));
        same_name.into_iter().flatten().chain(others).copied()
    }
}
