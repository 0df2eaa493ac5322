//! The tool patterns of several skills, each once, found by what they may share.

use std::borrow::Cow;

use super::pattern::{Shape, ToolPattern};
use super::texts::{Texts, begin_of, mixed, place};

/// Patterns of one kind, each once, by first appearance.
pub(super) struct Patterns<'a> {
    pub(super) texts: Texts<'a>,
    shapes: &'a [Shape],
    /// What the name of each begins with, in lower case.
    begins: Vec<u128>,
    /// Of plain names in lower case, which are found by their texts.
    bare: Marks,
    /// The other ones of one tool, by what their names begin with.
    named: Vec<Named>,
    by_name: Marks,
    /// Those of several tools.
    wide: Vec<Wide<'a>>,
}

/// A pattern of one tool that its text does not lead to.
struct Named {
    /// What its name begins with, in lower case.
    begin: u128,
    /// What its commands begin with.
    command: Begin,
    place: usize,
}

/// A pattern of several tools.
struct Wide<'a> {
    /// What the name of each begins with.
    head: &'a str,
    begin: Begin,
    place: usize,
}

/// What a pattern looks for others with.
pub(super) struct Seek<'a> {
    pattern: ToolPattern<'a>,
    is_bare: bool,
    is_one_tool: bool,
    /// What its name begins with, in lower case.
    begin: u128,
    mark: Marks,
}

/// What a text begins with, in lower case.
fn lower_begin_of(text: &str) -> u128 {
    let mut bytes = begin_of(text).to_be_bytes();
    bytes.make_ascii_lowercase();
    u128::from_be_bytes(bytes)
}

/// The first bytes of a text, to be found at the beginning of others.
#[derive(Clone, Copy)]
struct Begin {
    bytes: u128,
    mask: u128,
}

impl Begin {
    /// Of a text in lower case, but for its case.
    fn of(head: &str) -> Self {
        Self {
            bytes: lower_begin_of(head),
            mask: mask(head),
        }
    }

    /// Of what the commands of a pattern begin with; of any other pattern nothing.
    fn of_command(pattern: ToolPattern<'_>) -> Self {
        let head = pattern.command().unwrap_or_default();
        Self {
            bytes: begin_of(head),
            mask: mask(head),
        }
    }

    /// No text begins with both.
    #[inline]
    fn is_apart(self, other: Self) -> bool {
        (self.bytes ^ other.bytes) & self.mask & other.mask != 0
    }

    /// A text that begins so may begin with the whole head; any other does not.
    #[inline]
    fn is_of(self, begin: u128) -> bool {
        begin & self.mask == self.bytes
    }
}

/// The bits of what a text begins with that are of the text.
fn mask(head: &str) -> u128 {
    let bits = 8 * place(head.len().min(16));
    !u128::MAX.checked_shr(bits).unwrap_or(0)
}

/// Tells of most names that are not among a few that they are not, which is
/// faster than to look for them.
#[derive(Clone, Copy, Default)]
struct Marks(u64);

impl Marks {
    /// The mark of what a name begins with.
    fn of(begin: u128) -> Self {
        Self(1 << (mixed(begin) >> 58))
    }

    fn add(&mut self, begin: u128) {
        self.0 |= Self::of(begin).0;
    }

    #[inline]
    fn may_have(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }
}

impl<'a> Seek<'a> {
    pub(super) fn pattern(&self) -> ToolPattern<'a> {
        self.pattern
    }
}

impl<'a> Patterns<'a> {
    /// Texts as patterns, with what each of them says.
    pub(super) fn of(texts: Texts<'a>, shapes: &'a [Shape]) -> Self {
        let mut patterns = Self {
            begins: Vec::with_capacity(texts.all.len()),
            texts,
            shapes,
            bare: Marks::default(),
            named: Vec::new(),
            by_name: Marks::default(),
            wide: Vec::new(),
        };
        for (at, (heard, shape)) in patterns.texts.all.iter().zip(shapes).enumerate() {
            if shape.is_bare() {
                patterns.bare.add(heard.begin);
                patterns.begins.push(heard.begin);
                continue;
            }
            let pattern = ToolPattern::new(heard.text, shape);
            let begin = lower_begin_of(pattern.name());
            if shape.is_one_tool() {
                patterns.by_name.add(begin);
                patterns.named.push(Named {
                    begin,
                    command: Begin::of_command(pattern),
                    place: at,
                });
            } else {
                let head = pattern.head();
                patterns.wide.push(Wide {
                    head,
                    begin: Begin::of(head),
                    place: at,
                });
            }
            patterns.begins.push(begin);
        }
        patterns.named.sort_by_key(|named| named.begin);
        patterns
    }

    /// One of them.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<ToolPattern<'a>> {
        let (heard, shape) = (self.texts.all.get(at)?, self.shapes.get(at)?);
        Some(ToolPattern::new(heard.text, shape))
    }

    /// One of them, to look for others with.
    #[inline]
    pub(super) fn seek(&self, at: usize) -> Option<Seek<'a>> {
        let (pattern, shape) = (self.get(at)?, self.shapes.get(at)?);
        let begin = *self.begins.get(at)?;
        Some(Seek {
            pattern,
            is_bare: shape.is_bare(),
            is_one_tool: shape.is_one_tool(),
            begin,
            mark: Marks::of(begin),
        })
    }

    /// Shows those that may have a call in common with a pattern; where it is one of
    /// these, it may be shown itself.
    #[inline]
    pub(super) fn near(
        &self,
        seek: &Seek<'_>,
        is_own: bool,
        mut show: impl FnMut(usize, ToolPattern<'a>),
    ) {
        let mut show = |place: usize| {
            if let Some(pattern) = self.get(place) {
                show(place, pattern);
            }
        };
        let begin = seek.begin;
        if seek.is_one_tool {
            let name = seek.pattern.name();
            // Of its own, what is found by its text is itself.
            let is_itself = is_own && seek.is_bare;
            if !is_itself && self.bare.may_have(seek.mark) {
                let lower = if seek.is_bare {
                    Cow::Borrowed(name)
                } else {
                    name.to_ascii_lowercase().into()
                };
                self.bare(&lower, begin).into_iter().for_each(&mut show);
            }
            if self.by_name.may_have(seek.mark) {
                let command = Begin::of_command(seek.pattern);
                let first = self.named.partition_point(|other| other.begin < begin);
                let named = self.named.get(first..).unwrap_or_default().iter();
                for other in named.take_while(|other| other.begin == begin) {
                    // Many patterns of a shell differ in the command, which is told
                    // before anything else is looked at.
                    let is_so = |p: ToolPattern<'_>| p.name().eq_ignore_ascii_case(name);
                    // Of a short name, what it begins with is all of it.
                    let is_short = name.len() < 16;
                    if !other.command.is_apart(command)
                        && (is_short || self.get(other.place).is_some_and(is_so))
                    {
                        show(other.place);
                    }
                }
            }
            for wide in &self.wide {
                let is_of = |name: &[u8]| name.eq_ignore_ascii_case(wide.head.as_bytes());
                if wide.begin.is_of(begin)
                    && name.as_bytes().get(..wide.head.len()).is_some_and(is_of)
                {
                    show(wide.place);
                }
            }
            return;
        }
        let head = seek.pattern.head();
        let begin = Begin::of(head);
        for (place, (other, shape)) in self.begins.iter().zip(self.shapes).enumerate() {
            // Of several tools, the name has a `*` where others go on.
            let may = begin.is_of(*other) || !shape.is_one_tool();
            if may && self.get(place).is_some_and(|p| p.may_begin_with(head)) {
                show(place);
            }
        }
    }

    /// The plain name in lower case that this is.
    fn bare(&self, name: &str, begin: u128) -> Option<usize> {
        let place = self.texts.place(name, begin)?;
        self.shapes.get(place)?.is_bare().then_some(place)
    }
}
