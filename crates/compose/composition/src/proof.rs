//! The proof of a composition: what became of each tool, and by whom.

use std::sync::Arc;

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

/// A member allows or forbids a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Which one of the members.
    pub member: usize,
    /// The pattern by which it does so.
    pub pattern: Arc<str>,
}

/// What became of a tool, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProof {
    /// The tool, as it is written.
    pub tool: Arc<str>,
    /// What became of it.
    pub rule: ToolRule,
    /// Who allows it: each member once, in the order of their ids.
    pub grants: Vec<Statement>,
    /// Who forbids it: each member once, in the order of their ids.
    pub denials: Vec<Statement>,
    /// What stays forbidden of it, by pattern.
    pub exceptions: Vec<Statement>,
}
