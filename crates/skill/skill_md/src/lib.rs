//! Text ⇄ skill: reads the files of a skill, and reports problems with them.
//!
//! [`read`] turns the files of an agent skill, a folder with a `SKILL.md`, into
//! a [`Skill`] and a list of [`Problem`]s. Real skills break the standard often,
//! so it is lenient: it refuses what cannot be understood or could do harm, and
//! reports the rest. With [`ReadOptions::strict`] whatever is reported as a warning
//! refuses too. [`render()`] writes a `SKILL.md`, [`revise()`] changes one.
//!
//! Rules:
//!
//! * Only this crate knows YAML.
//! * Each problem has a stable rule, and the line in the author's file.
//! * Nothing an author writes makes it panic, or cost much more than its size:
//!   sizes are checked first, then front matter is walked by a guard, and only
//!   then read.
//! * Nothing an author wrote is lost: [`Skill::front_matter`] has every key that can be
//!   read, and each one that cannot is reported.
//!
//! [`fix()`] corrects what can be corrected without asking the author: its result is read
//! as the same skill.
//!
//! # Problems
//!
//! | rule | severity | about |
//! |---|---|---|
//! | `too-many-files`, `skill-too-large` | error | the folder |
//! | `path-collision`, `path-inside-file` | error | two paths that cannot both be written |
//! | `skill-md-missing`, `skill-md-too-large` | error | |
//! | `skill-md-case` | warning | `skill.md`, `Skill.md` … |
//! | `not-utf8`, `nul-character` | error | |
//! | `byte-order-mark` | warning | |
//! | `line-endings` | info | CR LF |
//! | `front-matter-missing`, `-too-large` | error | the fences |
//! | `front-matter-not-first` | warning | it is below a comment, blank lines, the fence of a code block |
//! | `front-matter-unclosed` | warning, or error | it ends where prose begins; error where no description is above that |
//! | `front-matter-alias`, `-tag`, `-documents`, `-duplicate-key`, `-too-deep`, `-too-many-nodes`, `-not-a-map` | error | YAML that is not taken |
//! | `front-matter-unreadable` | error | no YAML, and not to be repaired |
//! | `front-matter-repaired` | warning | prose without quotes, surrogates of JSON, lines that should be indented |
//! | `front-matter-dropped` | warning | what is no YAML, where the rest is |
//! | `name-unusable`, `name-hidden-characters` | error | |
//! | `name-refused` | error | by the registry alone, when a skill is checked: see `registry::names` |
//! | `name-missing`, `name-not-text`, `name-nonstandard`, `name-too-long`, `name-folder-mismatch` | warning | |
//! | `description-missing`, `description-invalid` | error | |
//! | `description-too-long` | warning, or error | above 1,024, or 8,192 characters |
//! | `description-not-text`, `compatibility-too-long` | warning | |
//! | `metadata-invalid`, `metadata-reserved` | warning | |
//! | `<key>-invalid` | warning; info in `metadata` | a value of the wrong shape |
//! | `<key>-element` | info | an element of a list that is not text |
//! | `version-too-large` | error | a number above 2^53 - 1, or more than 256 characters |
//! | `version-not-semver`, `unknown-key`, `key-spelling` | info | |
//! | `key-ambiguous`, `key-not-text`, `number-not-exact` | warning | |
//! | `allowed-tools-shell` | warning | `Bash(git:*)` and the like allow any command |
//! | `tool-method-missing`, `tool-name-duplicate`, `tool-name-nonstandard` | warning | |
//! | `resource-source-missing`, `resource-file-missing`, `resource-name-duplicate` | warning | |
//! | `body-empty` | warning | |
//! | `body-long` | info | more than 500 lines |
//! | `link-dead` | warning | a link or an image in a file of Markdown, to no file of the skill |
//! | `hidden-character` | error | Tags, overrides and controls in front matter |
//! | `zero-width-character` | warning | others that are not seen, in front matter |
//! | `hidden-character-in-text`, `zero-width-character-in-text` | warning | the same in instructions and files |
//! | `secret-file`, `secret-in-text` | warning | what looks like a secret |
//! | `more-problems` | info | how many of the mildest were left out |
//!
//! Not here: whether the text of a skill is harmful (`trust`), ids, versions and
//! storage (`registry`), the paths of files ([`FilePath`] checks itself).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod body;
mod bundle;
mod configs;
mod document;
mod fence;
mod findings;
mod fix;
mod front_matter;
mod hidden;
mod keys;
mod layout;
mod links;
mod name;
mod outline;
mod quote;
mod render;
mod repair;
mod revise;
mod rubbish;
mod salvage;
mod secrets;
mod shells;
mod text;
mod tree;
mod values;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;

pub use document::{Document, document};
use findings::Findings;
pub use fix::{Fixed, fix, is_fixable};
pub use links::{Link, inside, links};
use model::{FilePath, Problem, Severity, Skill};
pub use render::{Draft, render};
pub use revise::revise;
pub use rubbish::{is_repository, is_rubbish};
pub use secrets::is_secret_name;

/// The most lines of a body before its author is advised that parts of it could be
/// resources.
const LONG_BODY_LINES: usize = 500;

/// The most problems that are listed.
const MAX_PROBLEMS: usize = 200;

/// The result of reading a skill's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The skill; there unless a problem is an error.
    pub skill: Option<Skill>,
    /// Last part of the skill's id: from its name, else from its folder's. May
    /// be there although the skill is refused.
    pub slug: Option<String>,
    /// The problems: errors first, then by file, line and rule.
    pub problems: Vec<Problem>,
}

/// Options of reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Warnings refuse a skill as errors do.
    pub strict: bool,
    /// Name of the folder that the files are in, where there is one.
    pub folder: Option<&'a str>,
    /// Last part of the id that it gets, where that is known: it takes precedence over the folder
    /// where the name gives none.
    pub slug: Option<&'a str>,
}

/// Reads the files of a skill. All problems are reported, as far as the
/// files can be understood at all.
#[must_use]
pub fn read(files: &BTreeMap<FilePath, Bytes>, options: &ReadOptions<'_>) -> Reading {
    let mut findings = Findings::default();
    let read = read_skill_md(files, options, &mut findings);
    let mut problems = findings.into_problems();
    if options.strict {
        for problem in problems
            .iter_mut()
            .filter(|p| p.severity == Severity::Warning)
        {
            problem.severity = Severity::Error;
        }
    }
    problems.sort_by(|a, b| {
        (a.severity, &a.file, a.line, &a.rule, &a.message)
            .cmp(&(b.severity, &b.file, b.line, &b.rule, &b.message))
    });
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        // The mildest are at the end, so no error is cut off.
        problems.truncate(MAX_PROBLEMS);
        let message = format!("{more} more problems are not listed");
        problems.push(Problem::info("more-problems", "", 0, message));
    }
    let is_refused = problems.iter().any(|p| p.severity == Severity::Error);
    let (skill, slug) = match read {
        Some(fields) => (Some(fields.skill), fields.slug),
        None => (None, options.folder.and_then(model::slugify)),
    };
    Reading {
        skill: skill.filter(|_| !is_refused),
        slug,
        problems,
    }
}

/// Checks a name for a new skill, as [`read`] would check it
/// in a file.
#[must_use]
pub fn check_name(name: &str) -> Vec<Problem> {
    name::problems(name)
}

/// The body of a `SKILL.md`: the text after the line that closes the front
/// matter, byte for byte. A text without front matter is all body.
#[must_use]
pub fn body(text: &str) -> &str {
    let body = fence::find(text).map_or(text, |fenced| fenced.body);
    // The blank line between the fence and the body belongs to neither.
    let set_off = body
        .strip_prefix("\r\n")
        .or_else(|| body.strip_prefix('\n'));
    set_off.unwrap_or(body)
}

fn read_skill_md(
    files: &BTreeMap<FilePath, Bytes>,
    options: &ReadOptions<'_>,
    findings: &mut Findings,
) -> Option<front_matter::Fields> {
    secrets::check(files, findings);
    let (entry, content) = bundle::check(files, findings)?;
    hidden::check_files(files, entry, findings);
    let text = text::decode(content, findings)?;
    let fenced = match fence::find(text) {
        Ok(fenced) => fenced,
        Err(fault) => {
            findings.fault(fault);
            return None;
        }
    };
    for oddity in &fenced.oddities {
        findings.warning(oddity.rule, oddity.line, oddity.message.clone());
    }
    check_body(&fenced, findings);
    hidden::check_body(&fenced, findings);
    links::check(files, entry, &fenced, findings);
    let tree = repair::read(fenced.front, fenced.first_line, findings)?;
    let folder = options.folder.filter(|folder| !folder.is_empty());
    // Recursive, over a tree that the guard has limited to 32 levels.
    hidden::check_fields(&tree.entries, findings);
    let mut fields = front_matter::read(&tree, entry, folder, options.slug, findings);
    let skill = &mut fields.skill;
    configs::read(&keys::Keys::new(&tree.entries), skill, files, findings);
    if skill.long_description.is_empty() {
        skill.long_description = body::first_paragraph(fenced.body);
    }
    skill.excerpt = body::excerpt(fenced.body);
    skill.chars = text.chars().count() as u64;
    Some(fields)
}

fn check_body(fenced: &fence::Fenced<'_>, findings: &mut Findings) {
    let lines = fenced.body.lines().count();
    if fenced.body.trim().is_empty() {
        let message = "There are no instructions below the front matter";
        findings.warning("body-empty", fenced.close_line, message);
    } else if lines > LONG_BODY_LINES {
        let message = format!(
            "The instructions have {lines} lines; move what is not always needed into files of their own"
        );
        findings.info("body-long", fenced.close_line + 1, message);
    }
}
