//! What may be wrong with a skill: files → findings, a verdict, powers; and how good it is.
//!
//! [`Scanner::scan`] reads every file of a skill as somebody would who means to be deceived
//! by none of them: it undoes encodings and disguises, tells what is shown from what is to
//! be done, and looks for what leads from a source to a sink.
//!
//! Rules:
//!
//! * A function of bytes: it reads nothing, asks nobody, knows no clock and never panics.
//!   Its time grows as its input does. The same files come to the same report.
//! * Two axes. The *verdict* says what to do. *Capabilities* say what powers a skill has,
//!   and never raise an alarm by themselves: an alarm that most good skills raise is
//!   switched off within a week.
//! * What cannot be read is held, never passed over: a binary, an archive, a file over the
//!   size cap, work that ran out.
//! * A quoted attack is no attack: where words around it warn of it, it counts less. Nothing
//!   counts less because of what a skill says of itself alone.
//! * No list of good authors, skills or files. Hosts and packages are listed, since many
//!   name them.
//! * The rules are data: `rules.toml` says what is reported and when, `signals.txt` what to
//!   look for, `hosts.txt` and `packages.txt` which names are known. [`RULES_VERSION`] numbers them;
//!   a report of older rules is to be made anew.
//!
//! | file | what it says |
//! |---|---|
//! | `report`, `changes`, `report_text`, `sarif` | what a scan came to, what an update brings, the same in words and for other programs |
//! | `scan` | the scan of a skill, file by file |
//! | `files` | what kind of file it is; what nobody can read |
//! | `text`, `lines` | bytes → plain text → lines, each with what it stands in: prose, fence, script, comment |
//! | `decode` | what is encoded in a text, decoded; scanned again, to a depth |
//! | `signals` | where signals stand: needles first, then expressions in bounded windows |
//! | `rules`, `judge` | the rules, read; signals that stand together → findings |
//! | `hosts` | the hosts of a text, and what is known of them |
//! | `names` | names that pretend to be others: of skills, and of packages |
//! | `hidden`, `manifest` | characters that nobody sees; what packages run when they are installed |
//! | `quality`, `trifecta` | how good a skill is; what a set of skills can do together |
//!
//! Not here: who is told, held or refused, what is kept (`registry`); problems of form, and
//! permissions that are a shell (`skill_md`); which tier a skill has, which is policy.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod changes;
mod decode;
mod files;
mod hidden;
mod hosts;
mod judge;
mod lines;
mod manifest;
mod names;
pub mod quality;
mod report;
mod report_text;
mod rules;
mod sarif;
mod scan;
mod signals;
#[cfg(test)]
mod tests;
mod text;
mod trifecta;

use std::sync::LazyLock;

pub use changes::{Change, changes};
pub use names::KnownNames;
pub use report::{
    Capabilities, Capability, Category, Confidence, Finding, Report, Severity, Verdict,
};
pub use rules::{Rule, rules};
pub use sarif::sarif;
pub use trifecta::{Trifecta, trifecta};

/// The number of the rules. Raised with every change of what they come to.
pub const RULES_VERSION: u32 = 1;

/// Findings that a report lists; it counts the others.
pub const MAX_FINDINGS: usize = 64;
/// Hosts that a report lists.
pub const MAX_HOSTS: usize = 256;

/// What is scanned.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Every file: path inside the skill, and content.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Its name: what an author is taken at who imitates another's.
    pub name: &'a str,
    /// The tools that it permits itself; empty where it says nothing.
    pub allowed_tools: &'a [String],
    /// Names of others' skills that somebody might imitate.
    pub known_names: &'a dyn KnownNames,
}

/// The rules, ready to be used.
#[derive(Debug)]
pub struct Scanner {
    rules: &'static rules::Rules,
}

static RULES_READ: LazyLock<rules::Rules> = LazyLock::new(rules::Rules::bundled);
static BUNDLED: LazyLock<Scanner> = LazyLock::new(|| Scanner { rules: &RULES_READ });

impl Scanner {
    /// The scanner of the rules that are compiled in.
    #[must_use]
    pub fn bundled() -> &'static Self {
        &BUNDLED
    }

    /// Scans a skill.
    #[must_use]
    pub fn scan(&self, input: &Input<'_>) -> Report {
        scan::scan(self.rules, input, &|| false)
    }

    /// The same, until nobody waits for it any more, which it asks every few milliseconds:
    /// none then. What is stopped stays so.
    #[must_use]
    pub fn scan_until(&self, input: &Input<'_>, is_stopped: &dyn Fn() -> bool) -> Option<Report> {
        let report = scan::scan(self.rules, input, is_stopped);
        (!is_stopped()).then_some(report)
    }
}
