//! Sets of skills: what they permit together, whether they go together, and
//! which ones a task needs.
//!
//! Rules:
//!
//! * A tool is permitted where the policy grants it and nothing forbids it. What
//!   cannot be decided is reported, and not permitted.
//! * Nothing depends on the order of the skills but the order of lists, which
//!   is that of first appearance.
//! * Everything that is wrong is reported, with the shortest way that explains it.
//! * Composing, checking and solving see definitions only; what they are of is
//!   loaded before. So they are functions, and a composition of the same versions
//!   is the same for ever, which is why it may be remembered.
//! * It reads permissions. It is no sandbox: what runs tools asks `CheckTool`.
//!
//! Not here: running tools, sessions (`tools`), what is installed (`install`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod attributed;
mod call;
mod check;
mod command_line;
mod command_rule;
mod compose;
mod error;
mod explain;
mod finding;
mod glob;
mod graph;
mod host;
mod load;
mod lock;
mod member;
mod missing;
mod path;
mod pattern;
mod pattern_index;
mod programs;
mod proof;
mod reason_words;
mod resolve;
mod rules;
mod scorer;
mod select;
mod set;
mod subagent;
#[cfg(test)]
mod tests;
mod trifecta;
mod uncertainty;

pub use attributed::Attributed;
pub use call::Call;
pub use check::Decision;
pub use compose::{Composed, Promised, compose_until};
pub use error::Error;
pub use finding::{Finding, FindingCode};
pub use lock::{Lock, LockEntry};
pub use member::Member;
pub use proof::{Statement, ToolProof, ToolRule};
pub use resolve::{Library, RequestedSkill, Resolution, resolve};
pub use select::{Selected, Selection, TaskQuery};
pub use set::{SetQuery, SkillSet, alone};
pub use subagent::{Spawn, Subagent};
pub use uncertainty::Uncertainty;

use std::sync::Arc;

use executor::Executor;
use registry::Registry;
use search::SearchIndex;

/// Questions about sets of skills. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Composition {
    registry: Registry,
    judged: Arc<set::Cache>,
    index: SearchIndex,
}

impl Composition {
    /// Questions about the skills of a registry; the index finds those that fit a task.
    #[must_use]
    pub fn new(registry: Registry, index: SearchIndex) -> Self {
        Self {
            registry,
            judged: Arc::new(set::cache()),
            index,
        }
    }

    /// Questions about the skills of another registry and index: those of a caller who has some
    /// of their own in front.
    #[must_use]
    pub fn with_skills(&self, registry: Registry, index: SearchIndex) -> Self {
        Self {
            registry,
            // Shared by all callers: the key names each version by its digest where a number may
            // mean other bytes, and nobody gets at a set without its members.
            judged: Arc::clone(&self.judged),
            index,
        }
    }

    fn executor(&self) -> &Executor {
        self.registry.executor()
    }
}

/// How the tools of several skills are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ToolPolicy {
    /// Granted where at least one skill allows it.
    #[default]
    Union,
    /// Granted where every skill allows it.
    Intersection,
}

impl ToolPolicy {
    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Union => "union",
            Self::Intersection => "intersection",
        }
    }
}
