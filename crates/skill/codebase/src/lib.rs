//! The analysis of a codebase: which technologies it is made of, what kind of
//! project it is, what it has and what it lacks.
//!
//! First an [`Inventory`] is made: paths, and the contents of manifests, from a
//! folder ([`walk()`], which blocks) or from a caller that sends them
//! ([`Inventory::inline`]). Then [`analyze`] evaluates it; it is a function of the
//! inventory and the options, reads nothing and knows no clock. Whether a folder
//! may be analyzed at all is checked before ([`below()`]).
//!
//! How certain a technology is:
//!
//! | confidence | what speaks for it |
//! |---|---|
//! | 1.0 | a direct dependency, or the manifest of the language; a language's package in any list |
//! | 0.9 | a dependency for developing or an optional one; a package that is made for it (a driver, a plugin); a file that only it reads; a file that pins its version |
//! | 0.8 | the image of a container; a language of at least half of the files |
//! | 0.6 | a language of at least a tenth of the files; JavaScript where there is a `package.json` and no TypeScript; the most that folders beside the project say (tests, examples, docs) |
//! | 0.5 | a technology that another one is not used without; a lockfile whose manifest was not read |
//! | 0.4 | a language of fewer files, but of one in a hundred |
//!
//! Rules:
//!
//! * Nothing is executed, fetched, expanded or followed.
//! * A problem with a file is a note; the rest is analyzed.
//! * The same files give the same answer, whatever order they come in.
//! * Texts of a manifest are shown on one line and cut, and addresses never: these
//!   may hold secrets.
//!
//! Not here: what a codebase needs, and which skills fit (`recommend`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod allowed_root;
mod error;
mod inventory;
mod lock;
mod manifest;
mod options;
mod project;
mod report;
mod signals;
mod stack;
#[cfg(test)]
mod tests;
mod text;
mod version;
mod walk;

pub use allowed_root::below;
pub use error::Error;
pub use inventory::{InlineFile, Inventory};
pub use options::{Limits, ScanOptions};
pub use report::{
    Analysis, ConfidenceLevel, Note, PackageManager, Project, ProjectKind, Signal, Source, Stats,
    TechStackItem,
};
pub use technologies::{Fact, TechnologyKind};
pub use walk::walk;

use inventory::Notes;
use lock::Lock;
use manifest::{ManifestFacts, ManifestFormat};
use stack::Stack;

/// From here on an item says that its technology is in use, not that it may be.
const CERTAIN_CONFIDENCE: f64 = 0.9;
/// Below, an item is a guess.
const PROBABLE_CONFIDENCE: f64 = 0.6;

/// The most dependencies of all manifests together, and names of all lockfiles together.
const MAX_DEPENDENCIES: usize = 50_000;
const MAX_LOCKED: usize = 200_000;

/// The files of an inventory, read.
struct ReadFile {
    manifests: Vec<ManifestFacts>,
    locks: Vec<Lock>,
    /// No file of the project itself was broken or left out.
    whole: bool,
}

/// Reads contents, the nearest to the root first. In memory they take several
/// times their size, so there are limits besides those on bytes.
fn read(inventory: &Inventory, notes: &mut Notes) -> ReadFile {
    let mut all = ReadFile {
        manifests: Vec::new(),
        locks: Vec::new(),
        whole: true,
    };
    let (mut dependencies, mut locked) = (MAX_DEPENDENCIES, MAX_LOCKED);
    for (path, form, text) in inventory.contents() {
        let mut refused = None;
        match form {
            ManifestFormat::Manifest => match manifest::read(path, text) {
                Some(Ok(mut found)) => {
                    for remark in &found.manifest.remarks {
                        notes.add(path, None, remark);
                    }
                    let manifest = &mut found.manifest;
                    let count = manifest.dependencies.len().max(manifest.offers.len());
                    if count > dependencies {
                        notes.add(
                            path,
                            None,
                            "not all is read: there are too many dependencies",
                        );
                        all.whole = false;
                        manifest.dependencies.truncate(dependencies);
                        // Part of a list of versions would give some dependencies a version and
                        // others none.
                        manifest.offers.clear();
                    }
                    dependencies -= count.min(dependencies);
                    all.manifests.push(found);
                }
                Some(Err(reason)) => refused = Some(reason),
                None => {}
            },
            ManifestFormat::Lockfile => match lock::read(path, text) {
                // As a whole: which names of half a lockfile are missing would be chance.
                Some(Ok(lock)) if lock.len() > locked => {
                    notes.add(path, None, "not used: there are too many packages");
                    all.whole = false;
                }
                Some(Ok(lock)) => {
                    locked -= lock.len();
                    all.locks.push(lock);
                }
                Some(Err(reason)) => refused = Some(reason),
                None => {}
            },
        }
        if let Some(reason) = refused {
            // A broken manifest among fixtures is often meant to be broken.
            all.whole &= stack::aside(path);
            notes.add(path, reason.line, reason.reason);
        }
    }
    all
}

/// Analyzes an inventory.
#[must_use]
pub fn analyze(inventory: &Inventory, options: &ScanOptions) -> Analysis {
    let mut notes = inventory.notes.clone();
    let ReadFile {
        manifests,
        locks,
        whole,
    } = read(inventory, &mut notes);
    let mut stack = Stack::default();
    if options.include_dependencies {
        stack.manifests(&manifests, &locks);
        stack.locks(&manifests, &locks);
    }
    let (analyzed_files, languages) = stack.files(inventory);
    // After all evidence: what was found directly needs no inference.
    stack.infer();
    let signals = signals::signals(&stack.evidence, inventory);
    let (texts, documents) = signals::documents(inventory);
    let stack = stack.finish();
    let whole = !inventory.cut && whole && options.include_dependencies && !options.quick_mode;
    let at_least = |confidence: f64| stack.iter().any(|item| item.confidence >= confidence);
    Analysis {
        confidence_level: if whole && !manifests.is_empty() && at_least(CERTAIN_CONFIDENCE) {
            ConfidenceLevel::High
        } else if at_least(PROBABLE_CONFIDENCE) {
            ConfidenceLevel::Medium
        } else {
            ConfidenceLevel::Low
        },
        project: project::project(&manifests, inventory, &languages),
        stats: Stats {
            total_files: inventory.files.len(),
            analyzed_files,
            directories_scanned: inventory.directories,
            texts,
            documents,
            languages_detected: languages
                .iter()
                .map(|(found, _)| found.id.to_owned())
                .collect(),
        },
        stack,
        notes: notes.finish(),
        signals,
    }
}
