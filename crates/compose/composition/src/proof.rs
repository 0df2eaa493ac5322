//! The proof of a composition: whether each tool is allowed, and which skills decided it.

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
    /// Whether a pattern covers it cannot be decided.
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

/// Whether a tool is allowed, and which skills decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProof {
    /// The tool, as it is written.
    pub tool: Arc<str>,
    /// Whether it is allowed, and why.
    pub rule: ToolRule,
    /// The members that allow it: each once, in the order of their ids.
    pub grants: Vec<Statement>,
    /// The members that forbid it: each once, in the order of their ids.
    pub denials: Vec<Statement>,
    /// What stays forbidden of it, by pattern.
    pub exceptions: Vec<Statement>,
}
