//! Conflicts between skills, what skills cost the context of an agent, and whether they can be
//! used and are.
//!
//! Rules:
//!
//! * Conflicts, budgets and audits are functions of versions and of facts that are handed in:
//!   no registry is asked and no clock. [`Checks`] gathers what they are asked about.
//! * A conflict is between two skills, and is the same whichever of them comes first.
//! * A skill is compared with those that are asked for or installed, never with all there are.
//! * Whether skills can be composed is what `composition` says, nothing else.
//! * A word of an author is data: no command and no setting is made of it.
//!
//! | file | what it says |
//! |---|---|
//! | `overlap` | what two skills share of what calls them up |
//! | `conflict`, `advice` | what keeps two skills from being used side by side, and what to do |
//! | `budget` | what skills cost, and whether there is room for them |
//! | `audit`, `links` | what is wrong with a skill, and what is worth a look |
//! | `hooks` | what a host runs so that its agent thinks of its skills |
//! | `checks`, `activation`, `installed` | the same about the skills of a registry |
//!
//! Not here: installing (`install`), what a skill may do harm with (`trust`), the repair of a
//! SKILL.md (`skill_md`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod activation;
mod advice;
mod audit;
mod budget;
mod checks;
mod conflict;
mod error;
mod hooks;
mod installed;
mod links;
mod overlap;
#[cfg(test)]
mod tests;

pub use activation::{Activation, AuditedSkill};
pub use audit::{
    Facts, Health, Issue, IssueKind, IssueSeverity, Presence, Warning, WarningKind, audit, health,
    of_problem,
};
pub use budget::{BudgetReport, Cost, Estimate, Item, estimate, percent, report};
pub use checks::{Checks, against_installed};
pub use conflict::{
    Conflict, ConflictKind, ConflictReport, ConflictSeverity, Opposed, Subject, compare, conflicts,
};
pub use error::Error;
pub use facets::{MAX_TRIGGERS, Triggers};
pub use hooks::{COMMAND, FileTrigger, Hooks, called_by, hooks};
pub use installed::{Installed, InstalledSkill};
pub use links::{Dead, dead};
pub use overlap::{Overlap, overlap};

/// A share in percent: 100 only for all, 0 only for nothing.
fn share(some: usize, all: usize) -> u32 {
    match some {
        0 => 0,
        some if some >= all => 100,
        some => {
            let nearest = (some * 200 + all) / (2 * all);
            u32::try_from(nearest.clamp(1, 99)).unwrap_or(99)
        }
    }
}
