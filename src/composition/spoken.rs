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
pub(super) struct Patterns<'a> {
    pub(super) all: Vec<Spoken>,
    /// By text. A plain name in lower case is found here.
    texts: FxHashMap<&'a str, usize>,
    /// Those of one tool that are not found so, by its name in lower case.
    named: FxHashMap<Arc<str>, Vec<usize>>,
    /// Those of several tools, with what the name of each begins with.
    wide: Vec<(Box<str>, usize)>,
}

impl<'a> Patterns<'a> {
    pub(super) fn gather(
        members: &'a [Member],
        tools: impl Fn(&'a Member) -> &'a [String],
    ) -> Self {
        let most = members.iter().map(|member| tools(member).len()).sum();
        let mut patterns = Self {
            all: Vec::with_capacity(most),
            texts: FxHashMap::with_capacity_and_hasher(most, rustc_hash::FxBuildHasher),
            named: FxHashMap::default(),
            wide: Vec::new(),
        };
        for (at, member) in members.iter().enumerate() {
            for tool in tools(member) {
                patterns.add(tool.trim(), at);
            }
        }
        patterns
    }

    fn add(&mut self, text: &'a str, member: usize) {
        let place = *self.texts.entry(text).or_insert(self.all.len());
        if let Some(spoken) = self.all.get_mut(place) {
            if spoken.members.last() != Some(&member) {
                spoken.members.push(member);
            }
            return;
        }
        let pattern = ToolPattern::of(text.into());
        if !pattern.is_one_tool() {
            self.wide.push((pattern.head(), place));
        } else if !is_found_by_text(&pattern) {
            let name = pattern.name().to_ascii_lowercase().into();
            self.named.entry(name).or_default().push(place);
        }
        self.all.push(Spoken {
            pattern,
            members: vec![member],
        });
    }

    /// Where a text is among them.
    pub(super) fn place(&self, text: &str) -> Option<usize> {
        self.texts.get(text).copied()
    }

    /// Those that may have a call in common with a pattern.
    pub(super) fn near<'p>(
        &'p self,
        pattern: &'p ToolPattern,
    ) -> impl Iterator<Item = &'p Spoken> + use<'a, 'p> {
        let name = pattern.name();
        let lower = name.bytes().any(|b| b.is_ascii_uppercase());
        let lower = lower.then(|| name.to_ascii_lowercase());
        let name = lower.as_deref().unwrap_or(name);
        let (mut same, mut named, mut begun, mut open): (_, &[usize], _, &[Spoken]) =
            (None, &[], Vec::new(), &[]);
        if pattern.is_one_tool() {
            let is_so = |spoken: &Spoken| is_found_by_text(&spoken.pattern);
            let place = self.place(name);
            same = place.filter(|at| self.all.get(*at).is_some_and(is_so));
            named = self.named.get(name).map_or(&[], Vec::as_slice);
            let wide = self
                .wide
                .iter()
                .filter(|(head, _)| name.starts_with(&**head));
            begun.extend(wide.map(|(_, place)| *place));
        } else {
            open = &self.all;
        }
        let places = same.into_iter().chain(named.iter().copied()).chain(begun);
        let head = pattern.head();
        let open = open
            .iter()
            .filter(move |spoken| spoken.pattern.may_begin_with(&head));
        places.filter_map(|at| self.all.get(at)).chain(open)
    }
}

/// A plain name in lower case and nothing else: whoever looks for the tool has its
/// text.
fn is_found_by_text(pattern: &ToolPattern) -> bool {
    let text = pattern.text();
    pattern.is_plain()
        && pattern.name().len() == text.len()
        && !text.bytes().any(|b| b.is_ascii_uppercase())
}
