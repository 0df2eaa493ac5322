//! The proof of a composition: what became of each tool, and by whom.

use std::fmt;
use std::ops::Deref;

use super::ToolText;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Which one of the members.
    pub member: usize,
    /// The pattern by which it says so.
    pub pattern: ToolText,
}

/// What members say of a tool; read as a slice.
#[derive(Clone)]
pub struct Statements(Few);

/// Most tools are named by one member, which takes no allocation.
#[derive(Clone)]
enum Few {
    One([Statement; 1]),
    Many(Vec<Statement>),
}

impl Statements {
    /// None.
    pub(super) fn none() -> Self {
        Self(Few::Many(Vec::new()))
    }

    pub(super) fn one(statement: Statement) -> Self {
        Self(Few::One([statement]))
    }
}

impl Deref for Statements {
    type Target = [Statement];

    fn deref(&self) -> &[Statement] {
        match &self.0 {
            Few::One(one) => one,
            Few::Many(many) => many,
        }
    }
}

impl From<Vec<Statement>> for Statements {
    fn from(statements: Vec<Statement>) -> Self {
        Self(Few::Many(statements))
    }
}

impl<'a> IntoIterator for &'a Statements {
    type Item = &'a Statement;
    type IntoIter = std::slice::Iter<'a, Statement>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Statements {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Statements {}

impl fmt::Debug for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// What became of a tool, and by whom. Statements are in the order of the
/// members' ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProof {
    /// The tool, as it is written.
    pub tool: ToolText,
    /// What became of it.
    pub rule: ToolRule,
    /// Who allows it.
    pub grants: Statements,
    /// Who forbids it.
    pub denials: Statements,
    /// What stays forbidden of it.
    pub exceptions: Statements,
}
