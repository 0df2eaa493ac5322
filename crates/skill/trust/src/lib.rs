//! Scans skills: findings, a verdict and capabilities from files; and scores their quality.
//!
//! [`Scanner::scan`] reads every file of a skill as an attentive reviewer
//! would: it undoes encodings and disguises, distinguishes what is shown from what is to
//! be done, and searches for paths from a source to a sink.
//!
//! Rules:
//!
//! * A function of bytes: it reads no files, makes no calls, knows no clock and never panics.
//!   Its time grows as its input does. The same files come to the same report.
//! * Two axes. The *verdict* says what to do. *Capabilities* say what a skill is able to do,
//!   and never raise an alarm by themselves: an alarm that most good skills raise is
//!   switched off within a week.
//! * What cannot be read is held, never ignored: a binary, an archive, a file over the
//!   size cap, work that ran out.
//! * A quoted attack is no attack: where words around it warn of it, it counts less. Nothing
//!   counts less only because of a skill's own description.
//! * No list of good authors, skills or files. Hosts and packages are listed, since many
//!   name them.
//! * The rules are data: `rules.toml` says what is reported and when, `signals.txt` what to
//!   search, `hosts.txt` and `packages.txt` which names are known. [`RULES_VERSION`] numbers them;
//!   a report by older rules has to be made again.
//!
//! | file | holds |
//! |---|---|
//! | `report`, `changes`, `report_text`, `sarif` | what a scan came to, what an update brings, the same in words and for other programs |
//! | `scan` | the scan of a skill, file by file |
//! | `files` | the kinds of files; files that nobody can read |
//! | `text`, `lines` | bytes → plain text → lines, each with its scope: prose, fence, script, comment |
//! | `decode` | what is encoded in a text, decoded; scanned again, to a depth |
//! | `signals` | the search for signals: needles first, then expressions in bounded windows |
//! | `rules`, `judge` | the rules, read; signals that occur together → findings |
//! | `hosts` | the hosts of a text, classified |
//! | `names` | names that pretend to be others: of skills, and of packages |
//! | `hidden`, `manifest` | invisible characters; commands that an installation, or an agent's host, runs unasked |
//! | `flow` | what is read from a store of secrets, followed by its names to where it is sent |
//! | `quality`, `trifecta` | how good a skill is; what a set of skills can do together |
//!
//! Not here: holds, refusals and stored reports (`registry`); problems of form, and
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
mod flow;
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

/// The version of the rules. Raised with every change of their results.
pub const RULES_VERSION: u32 = 2;

/// The most findings that a report lists; it counts the others.
pub const MAX_FINDINGS: usize = 64;
/// The most hosts that a report lists.
pub const MAX_HOSTS: usize = 256;

/// The input of a scan.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Every file: path inside the skill, and content.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Its name, which may imitate another's.
    pub name: &'a str,
    /// The tools that it permits itself; empty where it names none.
    pub allowed_tools: &'a [String],
    /// Names of other authors' skills that somebody might imitate.
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

    /// The same until `is_stopped` returns true, which it calls every few milliseconds:
    /// none then. Once it has returned true it has to stay so.
    #[must_use]
    pub fn scan_until(&self, input: &Input<'_>, is_stopped: &dyn Fn() -> bool) -> Option<Report> {
        let report = scan::scan(self.rules, input, is_stopped);
        (!is_stopped()).then_some(report)
    }
}
