//! Reports links and images of Markdown that lead to no file of the skill.
//!
//! Only certain cases are reported: a relative target that names a file by its ending, or a folder.
//! A target in code or in a comment, outside the skill, or with a placeholder in it is
//! ignored. A target is relative to its file, and is searched from the
//! skill's folder as well, since many authors mean that.
//!
//! Names are compared only for links that are reported.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};
use strsim::normalized_damerau_levenshtein;

use super::fence::Fenced;
use super::findings::{Findings, shown};
use super::hidden::text;
use model::{FilePath, Problem};

/// The most links of one skill that are reported.
const MAX_REPORTED_LINKS: usize = 20;
/// Endings of Markdown.
const ENDINGS: [&str; 3] = ["md", "markdown", "mdx"];
/// The least similarity of two names, from 0 to 1, without their endings.
const MIN_SIMILARITY: f64 = 0.7;
/// Names that many folders have: such a name does not make a file the likely target.
const COMMON: [&str; 3] = ["skill.md", "readme.md", "index.md"];
/// The most characters of a name that are compared: the comparison takes their square.
const MAX_NAME: usize = 64;
/// Placeholders for names in templates.
const PLACEHOLDERS: [&str; 12] = [
    "path/to",
    "path-to",
    "your-",
    "my-file",
    "example.",
    "filename",
    "file.md",
    "file-name",
    "placeholder",
    "yyyy",
    "xxx",
    "foo",
];

/// Reports them in the instructions and in all other files of Markdown.
pub(super) fn check(
    files: &BTreeMap<FilePath, Bytes>,
    entry: &FilePath,
    fenced: &Fenced<'_>,
    findings: &mut Findings,
) {
    let mut known = SkillFiles::new(files);
    known.check(entry, fenced.body, fenced.close_line, findings);
    for (path, content) in files.iter().filter(|(path, _)| *path != entry) {
        let ending = path.file_name().rsplit_once('.').map(|(_, ending)| ending);
        let is_markdown = |ending: &str| ENDINGS.iter().any(|e| ending.eq_ignore_ascii_case(e));
        if ending.is_some_and(is_markdown)
            && let Some(text) = text(content)
        {
            known.check(path, text, 0, findings);
        }
    }
    if let more @ 1.. = known.dead.saturating_sub(MAX_REPORTED_LINKS) {
        let links = if more == 1 {
            "link leads"
        } else {
            "links lead"
        };
        let message = format!("{more} more {links} to no file of the skill");
        findings.push(Problem::warning("link-dead", entry.as_str(), 0, message));
    }
}

/// The files of a skill, and the number of dead links.
struct SkillFiles<'a> {
    files: &'a BTreeMap<FilePath, Bytes>,
    /// Its files and folders.
    paths: HashSet<&'a str>,
    /// Links that lead to no file.
    dead: usize,
}

impl<'a> SkillFiles<'a> {
    fn new(files: &'a BTreeMap<FilePath, Bytes>) -> Self {
        let mut paths = HashSet::from([""]);
        for path in files.keys().map(FilePath::as_str) {
            let folders = path.match_indices('/');
            paths.extend(folders.filter_map(|(at, _)| path.get(..at)));
            paths.insert(path);
        }
        Self {
            files,
            paths,
            dead: 0,
        }
    }

    fn check(&mut self, file: &FilePath, text: &str, lines_above: usize, findings: &mut Findings) {
        let file = file.as_str();
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut seen = HashSet::new();
        for Link { line, target, path } in links(text) {
            // `None`: it leads out of the skill.
            let Some(from_file) = inside(folder, &path) else {
                continue;
            };
            let from_root = inside("", &path);
            let is_there = |path: &str| self.paths.contains(path);
            if !is_sure(&path)
                || is_there(&from_file)
                || from_root.is_some_and(|path| is_there(&path))
                || !seen.insert(from_file.clone())
            {
                continue;
            }
            self.dead += 1;
            if self.dead > MAX_REPORTED_LINKS {
                continue;
            }
            let mut message = format!("`{}` is not in the skill", shown(&target));
            if let Some(near) = self.nearest(&from_file, folder) {
                message = format!("{message}; did you mean `{}`?", shown(&near));
            }
            let problem = Problem::warning("link-dead", file, lines_above + line, message);
            findings.push(problem);
        }
    }

    /// Returns the file with the most similar name, as a link from this folder names it.
    fn nearest(&self, path: &str, folder: &str) -> Option<String> {
        let wanted = name(path);
        let (stem, ending) = wanted.rsplit_once('.')?;
        if COMMON.contains(&wanted.as_str()) {
            return None;
        }
        let paths = self.files.keys().map(FilePath::as_str);
        let scored = paths.filter_map(|other| {
            let found = name(other);
            let (other_stem, other_ending) = found.rsplit_once('.')?;
            let alike = normalized_damerau_levenshtein(stem, other_stem);
            (ending == other_ending).then_some((alike, other))
        });
        // Of equally similar names the first.
        let best = scored.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        (best.0 >= MIN_SIMILARITY).then(|| relative(best.1, folder))
    }
}

/// Returns the name of a file, as far as it is compared.
fn name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    model::beginning(name, MAX_NAME).to_lowercase()
}

/// Returns a path of the skill as a link from one of its folders names it.
fn relative(path: &str, folder: &str) -> String {
    let mut above = folder;
    let mut ups = 0;
    loop {
        let rest = if above.is_empty() {
            Some(path)
        } else {
            path.strip_prefix(above)
                .and_then(|rest| rest.strip_prefix('/'))
        };
        if let Some(rest) = rest {
            return format!("{}{rest}", "../".repeat(ups));
        }
        above = above.rsplit_once('/').map_or("", |(above, _)| above);
        ups += 1;
    }
}

/// A link or an image of a Markdown text, or the definition of one, that may lead to a file
/// of the skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its line, from 1.
    pub line: usize,
    /// Where it leads, as it is written.
    pub target: String,
    /// The same as a path: without query and fragment, and with what `%20` stands for.
    pub path: String,
}

/// The links of a Markdown text (`CommonMark`, with footnotes and tables) that are neither URLs
/// nor absolute, and have no placeholder in braces, in the order of the text.
#[must_use]
pub fn links(text: &str) -> Vec<Link> {
    let options = Options::ENABLE_FOOTNOTES | Options::ENABLE_TABLES;
    let parser = Parser::new_ext(text, options);
    let definitions = parser.reference_definitions().iter();
    let mut targets: Vec<(usize, String)> = definitions
        .map(|(_, definition)| (definition.span.start, definition.dest.to_string()))
        .collect();
    for (event, range) in parser.into_offset_iter() {
        if let Event::Start(
            Tag::Link {
                link_type,
                dest_url,
                ..
            }
            | Tag::Image {
                link_type,
                dest_url,
                ..
            },
        ) = event
            // Links by reference are counted once, at their definition.
            && link_type == LinkType::Inline
        {
            targets.push((range.start, dest_url.into_string()));
        }
    }
    // Definitions come from a map, so without an order.
    targets.sort();
    let line_ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let links = targets.into_iter().filter_map(|(at, target)| {
        Some(Link {
            line: line_ends.partition_point(|end| *end < at) + 1,
            path: path(&target)?,
            target,
        })
    });
    links.collect()
}

/// Returns a target as a path; none: it leads elsewhere, or is a placeholder.
fn path(target: &str) -> Option<String> {
    let path = target.split(['#', '?']).next().unwrap_or_default().trim();
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let is_elsewhere = path.is_empty()
        || path.starts_with(['/', '~', '\\', '@'])
        || path.contains([':', '{', '}', '<', '>', '*', '$', '|', '"', '\''])
        || path.contains("...")
        || path.contains('…');
    (!is_elsewhere).then(|| path.into_owned())
}

/// Tells whether a path names a file by its ending, or a folder, and is no placeholder.
fn is_sure(path: &str) -> bool {
    // Characters of code rather than of names of files.
    let is_odd = path.contains(['`', '[', ']', '%', '\\', ',', '='])
        || path.starts_with('.') && !path.starts_with("./") && !path.starts_with("../");
    let lower = path.to_lowercase();
    let is_placeholder = PLACEHOLDERS.iter().any(|word| lower.contains(word));
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_file = name.rsplit_once('.').is_some_and(|(before, ending)| {
        !before.is_empty()
            && (1..=8).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let is_folder = name.is_empty() && path.len() > 1;
    !is_odd && !is_placeholder && (is_file || is_folder)
}

/// Resolves a relative path from a folder of the skill; none: it leads out
/// of the skill.
#[must_use]
pub fn inside(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
