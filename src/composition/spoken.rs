//! The tool patterns of several skills, each once, found by what they may share.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Member;
use super::pattern::ToolPattern;

/// A pattern and who says it.
pub(super) struct Spoken {
    pub(super) pattern: ToolPattern,
    pub(super) members: Vec<usize>,
}

/// Patterns of one kind, each once, by first appearance.
#[derive(Default)]
pub(super) struct Patterns {
    pub(super) all: Vec<Spoken>,
    /// Those of one tool, by its name in lower case.
    named: FxHashMap<Arc<str>, Vec<usize>>,
    /// Those of several tools.
    wide: Vec<usize>,
}

impl Patterns {
    pub(super) fn gather<'a>(
        members: &'a [Member],
        tools: impl Fn(&'a Member) -> &'a [String],
    ) -> Self {
        let mut patterns = Self::default();
        let mut seen: FxHashMap<&'a str, usize> = FxHashMap::default();
        for (at, member) in members.iter().enumerate() {
            for tool in tools(member) {
                let tool = tool.trim();
                let place = *seen.entry(tool).or_insert_with(|| patterns.add(tool));
                if let Some(spoken) = patterns.all.get_mut(place)
                    && spoken.members.last() != Some(&at)
                {
                    spoken.members.push(at);
                }
            }
        }
        patterns
    }

    fn add(&mut self, tool: &str) -> usize {
        let place = self.all.len();
        let pattern = ToolPattern::of(tool.into());
        if pattern.is_one_tool() {
            let key = if pattern.is_plain() && !tool.bytes().any(|b| b.is_ascii_uppercase()) {
                Arc::clone(pattern.text())
            } else {
                pattern.name().to_ascii_lowercase().into()
            };
            self.named.entry(key).or_default().push(place);
        } else {
            self.wide.push(place);
        }
        self.all.push(Spoken {
            pattern,
            members: Vec::new(),
        });
        place
    }

    /// Those that may have a call in common with a pattern.
    pub(super) fn near<'a>(&'a self, pattern: &ToolPattern) -> impl Iterator<Item = &'a Spoken> {
        let (named, wide, all): (&[usize], &[usize], &[Spoken]) = if pattern.is_one_tool() {
            let name = pattern.name();
            let named = if name.bytes().any(|b| b.is_ascii_uppercase()) {
                self.named.get(name.to_ascii_lowercase().as_str())
            } else {
                self.named.get(name)
            };
            (named.map_or(&[], Vec::as_slice), &self.wide, &[])
        } else {
            (&[], &[], &self.all)
        };
        let picked = named.iter().chain(wide);
        picked.filter_map(|at| self.all.get(*at)).chain(all)
    }
}
