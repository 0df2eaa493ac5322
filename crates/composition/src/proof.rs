//! The proof of a composition: what became of each tool, and by whom.
//!
//! It is kept in a few lists that speak of each other by places; what is shown of
//! it is read from them where it is asked for.

use std::fmt;

use super::pattern::{Shape, ToolPattern};
use super::texts::{Buffer, Place, Span, Word};

/// Why a tool is allowed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolRule {
    /// The policy grants it, and nothing forbids it.
    Granted,
    /// The policy grants it, except for what narrower patterns forbid.
    GrantedExcept,
    /// A skill forbids it.
    Forbidden,
    /// Not every skill allows it, as the intersection demands.
    NotGrantedByAll,
    /// No skill allows it.
    NotGranted,
    /// Whether a pattern covers it cannot be told.
    Undecided,
}

impl ToolRule {
    /// It is permitted.
    #[must_use]
    pub fn allows(self) -> bool {
        matches!(self, Self::Granted | Self::GrantedExcept)
    }
}

/// A member says something of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Which one of the members.
    pub member: usize,
    /// The pattern by which it says so.
    pub pattern: &'a str,
}

/// What members say of a tool, in the order of the members' ids.
#[derive(Clone, Copy)]
pub struct Statements<'a> {
    words: &'a [Word],
    texts: &'a Buffer,
}

impl<'a> Statements<'a> {
    /// Each of them.
    #[must_use]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Statement<'a>> {
        self.words.iter().map(move |word| Statement {
            member: word.member as usize,
            pattern: self.texts.get(word.text as usize),
        })
    }

    /// The first of them.
    #[must_use]
    pub fn first(self) -> Option<Statement<'a>> {
        self.iter().next()
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.words.len()
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.words.is_empty()
    }
}

impl PartialEq for Statements<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Statements<'_> {}

impl fmt::Debug for Statements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What became of a tool, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolProof<'a> {
    /// The tool, as it is written.
    pub tool: &'a str,
    /// What became of it.
    pub rule: ToolRule,
    /// Who allows it.
    pub grants: Statements<'a>,
    /// Who forbids it.
    pub denials: Statements<'a>,
    /// What stays forbidden of it.
    pub exceptions: Statements<'a>,
}

/// A proof by places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proven {
    pub(super) pattern: Place,
    pub(super) rule: ToolRule,
    pub(super) grants: Span,
    pub(super) denials: Span,
    pub(super) exceptions: Span,
}

/// All that was said of tools, and what became of them.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    /// The patterns that skills allow, by first appearance, and behind them those
    /// that skills forbid.
    pub(super) texts: Buffer,
    /// What each of them says.
    pub(super) shapes: Vec<Shape>,
    /// How many of them are allowed ones.
    pub(super) allowed: usize,
    /// Where the proof of each of them is.
    pub(super) places: Vec<Place>,
    /// The proofs, by name.
    pub(super) proven: Vec<Proven>,
    /// What members say, as the proofs have it.
    pub(super) words: Vec<Word>,
}

impl Proof {
    fn pattern(&self, at: usize) -> Option<ToolPattern<'_>> {
        let shape = self.shapes.get(at)?;
        Some(ToolPattern::new(self.texts.get(at), shape))
    }

    /// The proof of a pattern.
    fn of(&self, pattern: usize) -> Option<Proven> {
        let place = self.places.get(pattern)?;
        self.proven.get(*place as usize).copied()
    }

    /// What it allows is permitted.
    pub(super) fn is_permitted(&self, pattern: usize) -> bool {
        self.of(pattern).is_some_and(|proven| proven.rule.allows())
    }

    /// What skills allow, whether or not it is permitted.
    pub(super) fn allowed(&self) -> impl Iterator<Item = (usize, ToolPattern<'_>)> {
        (0..self.allowed).filter_map(|at| Some((at, self.pattern(at)?)))
    }

    /// What forbids calls.
    pub(super) fn forbidding(&self) -> impl Iterator<Item = (usize, ToolPattern<'_>)> {
        (self.allowed..self.texts.len()).filter_map(|at| Some((at, self.pattern(at)?)))
    }

    /// Texts of what is permitted, by first appearance.
    pub(super) fn allowed_tools(&self) -> impl Iterator<Item = &str> {
        let permitted = (0..self.allowed).filter(|at| self.is_permitted(*at));
        permitted.map(|at| self.texts.get(at))
    }

    /// Texts of what is forbidden, by first appearance.
    pub(super) fn forbidden_tools(&self) -> impl Iterator<Item = &str> {
        (self.allowed..self.texts.len()).map(|at| self.texts.get(at))
    }

    fn shown(&self, proven: Proven) -> ToolProof<'_> {
        let statements = |span: Span| Statements {
            words: span.of(&self.words),
            texts: &self.texts,
        };
        ToolProof {
            tool: self.texts.get(proven.pattern as usize),
            rule: proven.rule,
            grants: statements(proven.grants),
            denials: statements(proven.denials),
            exceptions: statements(proven.exceptions),
        }
    }

    /// The proofs, by name.
    pub(super) fn tools(&self) -> impl ExactSizeIterator<Item = ToolProof<'_>> {
        self.proven.iter().map(|proven| self.shown(*proven))
    }

    /// The same with the pattern of each.
    pub(super) fn proven(&self) -> impl Iterator<Item = (ToolPattern<'_>, ToolProof<'_>)> {
        let both = |proven: &Proven| {
            let pattern = self.pattern(proven.pattern as usize)?;
            Some((pattern, self.shown(*proven)))
        };
        self.proven.iter().filter_map(both)
    }

    /// The proof of a pattern, to be shown.
    pub(super) fn tool(&self, pattern: usize) -> Option<ToolProof<'_>> {
        self.of(pattern).map(|proven| self.shown(proven))
    }
}
