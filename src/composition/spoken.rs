//! The tool patterns of several skills, each once, found by what they may share.

use std::borrow::Cow;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::pattern::ToolPattern;
use super::{Member, ToolText};

/// A pattern and who says it.
pub(super) struct Spoken {
    pub(super) pattern: ToolPattern,
    /// What its name begins with, in lower case.
    begin: u128,
    /// Where they are among the speakers of all.
    speakers: (usize, usize),
}

impl Spoken {
    /// What its text begins with.
    pub(super) fn begin(&self) -> u128 {
        if self.pattern.is_found_by_text() {
            self.begin
        } else {
            begin_of(self.pattern.text())
        }
    }
}

/// Patterns of one kind, each once, by first appearance.
pub(super) struct Patterns<'a> {
    pub(super) all: Vec<Spoken>,
    /// Who says each, in the order of the members' ids.
    speakers: Vec<usize>,
    /// By text. A plain name in lower case is found here.
    texts: FxHashMap<&'a str, usize>,
    by_text: Marks,
    /// Those of one tool that are not found so, by its name in lower case.
    named: FxHashMap<Box<str>, Vec<usize>>,
    by_name: Marks,
    /// Those of several tools.
    wide: Vec<Wide>,
}

/// A pattern of several tools.
struct Wide {
    /// What the name of each begins with, in lower case.
    head: Box<str>,
    begin: Begin,
    place: usize,
}

/// What a pattern looks for others with.
pub(super) struct Seek<'a> {
    spoken: &'a Spoken,
    /// Its name in lower case.
    name: Cow<'a, str>,
}

/// The first bytes of a text as a number: the numbers have the order of the texts
/// where they differ.
fn begin_of(text: &str) -> u128 {
    let bytes = text.as_bytes();
    if let Some(begin) = bytes.first_chunk() {
        return u128::from_be_bytes(*begin);
    }
    let mut begin = [0; 16];
    for (to, from) in begin.iter_mut().zip(bytes) {
        *to = *from;
    }
    u128::from_be_bytes(begin)
}

/// The first bytes of a text, to be found at the beginning of others.
#[derive(Clone, Copy)]
struct Begin {
    bytes: u128,
    mask: u128,
}

impl Begin {
    fn of(head: &str) -> Self {
        let bits = 8 * u32::try_from(head.len().min(16)).unwrap_or(16);
        Self {
            bytes: begin_of(head),
            mask: !u128::MAX.checked_shr(bits).unwrap_or(0),
        }
    }

    /// A text that begins so may begin with the whole head; any other does not.
    fn is_of(self, begin: u128) -> bool {
        begin & self.mask == self.bytes
    }
}

/// Tells of most names that are not among a few that they are not, which is
/// faster than to look for them.
#[derive(Clone, Copy, Default)]
struct Marks(u64);

impl Marks {
    fn mark(begin: u128) -> u64 {
        // The highest bits of a product depend on all of its factor.
        let mixed = begin.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        1 << (mixed >> 122)
    }

    fn add(&mut self, begin: u128) {
        self.0 |= Self::mark(begin);
    }

    fn may_have(self, begin: u128) -> bool {
        self.0 & Self::mark(begin) != 0
    }
}

impl<'a> Seek<'a> {
    pub(super) fn of(spoken: &'a Spoken) -> Self {
        Self {
            name: spoken.pattern.lower_name(),
            spoken,
        }
    }
}

impl<'a> Patterns<'a> {
    /// Those that members say. The order is that of the members' ids.
    pub(super) fn gather(
        members: &'a [Member],
        order: &[usize],
        tools: impl Fn(&'a Member) -> &'a [String],
    ) -> Self {
        let most = members.iter().map(|member| tools(member).len()).sum();
        let mut texts = FxHashMap::with_capacity_and_hasher(most, FxBuildHasher);
        // Each text with who said it last, and how many have said it.
        let mut heard: Vec<(&'a str, usize, usize)> = Vec::with_capacity(most);
        // What each member says, and where that ends.
        let mut said = Vec::with_capacity(most);
        let mut ends = Vec::with_capacity(members.len());
        for (member, tools) in members.iter().map(tools).enumerate() {
            for tool in tools {
                let text = tool.trim();
                let place = *texts.entry(text).or_insert(heard.len());
                match heard.get_mut(place) {
                    Some((_, last, _)) if *last == member => continue,
                    Some((_, last, count)) => (*last, *count) = (member, *count + 1),
                    None => heard.push((text, member, 1)),
                }
                said.push(place);
            }
            ends.push(said.len());
        }
        let mut patterns = Self {
            all: Vec::with_capacity(heard.len()),
            speakers: vec![0; said.len()],
            texts,
            by_text: Marks::default(),
            named: FxHashMap::default(),
            by_name: Marks::default(),
            wide: Vec::new(),
        };
        let mut end = 0;
        let shared = ToolText::together(heard.iter().map(|(text, _, _)| *text));
        for (text, (_, _, count)) in shared.zip(&heard) {
            patterns.add(ToolPattern::of(text), end);
            end += count;
        }
        // Taken by the order of ids, speakers need no sorting.
        for member in order {
            let begin = member.checked_sub(1).and_then(|before| ends.get(before));
            let (Some(end), begin) = (ends.get(*member), begin.unwrap_or(&0)) else {
                continue;
            };
            for place in said.get(*begin..*end).unwrap_or_default() {
                if let Some(spoken) = patterns.all.get_mut(*place)
                    && let Some(slot) = patterns.speakers.get_mut(spoken.speakers.1)
                {
                    *slot = *member;
                    spoken.speakers.1 += 1;
                }
            }
        }
        patterns
    }

    fn add(&mut self, pattern: ToolPattern, speakers: usize) {
        let place = self.all.len();
        let name = pattern.lower_name();
        let begin = begin_of(&name);
        if !pattern.is_one_tool() {
            let head = pattern.head();
            let begin = Begin::of(&head);
            self.wide.push(Wide { head, begin, place });
        } else if pattern.is_found_by_text() {
            self.by_text.add(begin);
        } else {
            self.by_name.add(begin);
            match self.named.get_mut(&*name) {
                Some(places) => places.push(place),
                None => drop(self.named.insert(name.into(), vec![place])),
            }
        }
        self.all.push(Spoken {
            pattern,
            begin,
            speakers: (speakers, speakers),
        });
    }

    /// Who says a pattern of these, in the order of the members' ids.
    pub(super) fn speakers(&self, spoken: &Spoken) -> &[usize] {
        let (begin, end) = spoken.speakers;
        self.speakers.get(begin..end).unwrap_or_default()
    }

    /// Where a text is among them.
    pub(super) fn place(&self, text: &str) -> Option<usize> {
        self.texts.get(text).copied()
    }

    /// Shows those that may have a call in common with a pattern; where it is one of
    /// these, it may be shown itself.
    pub(super) fn near<'p>(
        &'p self,
        seek: &Seek<'_>,
        is_own: bool,
        mut show: impl FnMut(&'p Spoken),
    ) {
        let mut show = |place: usize| {
            if let Some(spoken) = self.all.get(place) {
                show(spoken);
            }
        };
        let (name, begin) = (&*seek.name, seek.spoken.begin);
        if seek.spoken.pattern.is_one_tool() {
            // Of its own, what is found by its text is itself.
            let is_itself = is_own && seek.spoken.pattern.is_found_by_text();
            if !is_itself && self.by_text.may_have(begin) {
                let is_so = |spoken: &Spoken| spoken.pattern.is_found_by_text();
                let same = self.place(name);
                let same = same.filter(|at| self.all.get(*at).is_some_and(is_so));
                same.into_iter().for_each(&mut show);
            }
            if self.by_name.may_have(begin) {
                let named = self.named.get(name).into_iter().flatten();
                named.copied().for_each(&mut show);
            }
            for wide in &self.wide {
                if wide.begin.is_of(begin) && name.starts_with(&*wide.head) {
                    show(wide.place);
                }
            }
            return;
        }
        let head = seek.spoken.pattern.head();
        let begin = Begin::of(&head);
        for (place, other) in self.all.iter().enumerate() {
            // Of several tools, the name has a `*` where others go on.
            let may = begin.is_of(other.begin) || !other.pattern.is_one_tool();
            if may && other.pattern.may_begin_with(&head) {
                show(place);
            }
        }
    }
}
