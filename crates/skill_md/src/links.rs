//! Links and images of Markdown that lead to no file of the skill.
//!
//! Only what is sure is told: a relative target that names a file by its ending, or a folder.
//! What stands in code or in a comment, leaves the skill, or has a placeholder in it is
//! somebody else's. A target counts from the file that it stands in, and is found from the
//! skill's folder as well, where many authors count from.
//!
//! The cost is linear in the text. Names are compared for the links that are told alone.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use strsim::normalized_damerau_levenshtein;

use super::fence::Fenced;
use super::findings::{Findings, shown};
use super::hidden::text;
use model::{FilePath, Problem};

/// Links of one skill that are told.
const TOLD: usize = 20;
/// Endings of Markdown.
const ENDINGS: [&str; 3] = ["md", "markdown", "mdx"];
/// How alike two names are at least, from 0 to 1, their endings aside.
const ALIKE: f64 = 0.7;
/// Names that folders of any sort have: no file is meant because it has one, too.
const COMMON: [&str; 3] = ["skill.md", "readme.md", "index.md"];
/// Names of this many bytes at most are compared.
const MAX_NAME: usize = 64;
/// What stands for a name in templates, and is none.
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
    let mut known = Known::new(files);
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
}

/// The files of a skill, and what was told of them.
struct Known<'a> {
    files: &'a BTreeMap<FilePath, Bytes>,
    /// Its files and folders.
    paths: HashSet<&'a str>,
    told: usize,
}

impl<'a> Known<'a> {
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
            told: 0,
        }
    }

    fn check(&mut self, file: &FilePath, text: &str, lines_above: usize, findings: &mut Findings) {
        let file = file.as_str();
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut seen = HashSet::new();
        for (line, target) in targets(text) {
            let Some(path) = path(target) else { continue };
            // None: it leads out of the skill.
            let Some(from_file) = inside(folder, &path) else {
                continue;
            };
            let from_root = inside("", &path);
            let is_there = |path: &str| self.paths.contains(path);
            if is_there(&from_file) || from_root.is_some_and(|path| is_there(&path)) {
                continue;
            }
            if self.told == TOLD || !seen.insert(from_file.clone()) {
                continue;
            }
            self.told += 1;
            let mut message = format!("`{}` is not in the skill", shown(target));
            if let Some(near) = self.nearest(&from_file, folder) {
                message = format!("{message}; did you mean `{}`?", shown(&near));
            }
            let problem = Problem::warning("link-dead", file, lines_above + line, message);
            findings.push(problem);
        }
    }

    /// The file that is named most alike, as a link from this folder names it.
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
        // Of those that are as much alike the first.
        let best = scored.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        (best.0 >= ALIKE).then(|| relative(best.1, folder))
    }
}

/// The name of a file, as far as it is compared.
fn name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    model::beginning(name, MAX_NAME).to_lowercase()
}

/// A path of the skill as a link from one of its folders names it.
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

/// Targets of links and images, each with its line.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut prose = Prose::default();
    text.lines().enumerate().flat_map(move |(at, line)| {
        let parts = prose.of(line);
        let inline = parts.clone().into_iter().flat_map(inline);
        let definition = parts
            .first()
            .copied()
            .filter(|part| part.len() == line.len());
        let definition = definition.and_then(definition_target);
        inline
            .chain(definition)
            .map(move |target| (at + 1, target))
            .collect::<Vec<_>>()
    })
}

/// What of a text is neither code nor a comment.
#[derive(Default)]
struct Prose {
    /// Mark and length of the fence that is open.
    fence: Option<(char, usize)>,
    is_comment: bool,
    /// Below an item of a list lines are further in, and no code.
    is_list: bool,
    /// The line before is empty, or code.
    is_apart: bool,
}

impl Prose {
    /// The parts of the next line.
    fn of<'a>(&mut self, line: &'a str) -> Vec<&'a str> {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        let indent = if line.starts_with('\t') { 4 } else { indent };
        if !self.is_comment && self.is_fence(bare) {
            return Vec::new();
        }
        if bare.is_empty() {
            self.is_apart = true;
            return Vec::new();
        }
        let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
        let marks = ["- ", "* ", "+ "];
        let is_item = marks.iter().any(|mark| bare.starts_with(mark))
            || number.len() < bare.len() && (number.starts_with(". ") || number.starts_with(") "));
        if is_item {
            self.is_list = true;
        } else if indent == 0 && self.is_apart {
            self.is_list = false;
        }
        if indent >= 4 && self.is_apart && !self.is_list && !self.is_comment {
            return Vec::new();
        }
        self.is_apart = false;
        let mut parts = Vec::new();
        for part in self.uncommented(line) {
            parts.extend(without_code(part));
        }
        parts
    }

    /// The line begins or ends a block of code, or is in one.
    fn is_fence(&mut self, bare: &str) -> bool {
        // A block of a quotation or of an item.
        let bare = bare.trim_start_matches(['>', ' ', '-', '*', '+']);
        let mark = bare.chars().next().filter(|mark| ['`', '~'].contains(mark));
        let length = mark.map_or(0, |mark| bare.chars().take_while(|c| *c == mark).count());
        let rest = bare.get(length..).unwrap_or_default();
        if let Some((open, opened)) = self.fence {
            if mark == Some(open) && length >= opened && rest.trim().is_empty() {
                self.fence = None;
                self.is_apart = true;
            }
            return true;
        }
        let opens = length >= 3 && !(mark == Some('`') && rest.contains('`'));
        if let Some(mark) = mark.filter(|_| opens) {
            self.fence = Some((mark, length));
        }
        opens
    }

    /// The parts of a line that are in no comment of HTML.
    fn uncommented<'a>(&mut self, mut line: &'a str) -> Vec<&'a str> {
        let mut parts = Vec::new();
        loop {
            if self.is_comment {
                let Some((_, rest)) = line.split_once("-->") else {
                    return parts;
                };
                (self.is_comment, line) = (false, rest);
            }
            let Some((part, rest)) = line.split_once("<!--") else {
                parts.push(line);
                return parts;
            };
            parts.push(part);
            (self.is_comment, line) = (true, rest);
        }
    }
}

/// The parts of a line that stand between no backticks. Behind some that are not closed
/// nothing is sure.
fn without_code(line: &str) -> Vec<&str> {
    let (mut parts, mut open, mut from) = (Vec::new(), None, 0);
    let mut at = 0;
    while let Some(found) = line.get(at..).and_then(|rest| rest.find('`')) {
        let begin = at + found;
        let run = line.get(begin..).unwrap_or_default();
        let length = run.len() - run.trim_start_matches('`').len();
        at = begin + length;
        match open {
            None => {
                parts.extend(line.get(from..begin));
                open = Some(length);
            }
            Some(opened) if opened == length => (open, from) = (None, at),
            Some(_) => {}
        }
    }
    if open.is_none() {
        parts.extend(line.get(from..));
    }
    parts
}

/// Targets of the links within a line.
fn inline(part: &str) -> impl Iterator<Item = &str> {
    part.split("](").skip(1).filter_map(|rest| {
        let rest = rest.trim_start();
        if let Some(rest) = rest.strip_prefix('<') {
            return Some(rest.split_once('>')?.0);
        }
        let mut depth = 0_usize;
        for (at, c) in rest.char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth == 0 => return rest.get(..at),
                ')' => depth -= 1,
                // What comes is a title, which ends with the link.
                c if c.is_whitespace() => {
                    let title = rest.get(at..)?.trim_start();
                    let is_title = title.starts_with(['"', '\'', '(']) && title.contains(')');
                    return rest.get(..at).filter(|_| is_title);
                }
                _ => {}
            }
        }
        None
    })
}

/// The target of a line such as `[name]: target "title"`.
fn definition_target(line: &str) -> Option<&str> {
    let (name, rest) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let mut words = rest.split_whitespace();
    let target = words.next()?;
    let is_alone = words
        .next()
        .is_none_or(|title| title.starts_with(['"', '\'', '(']));
    // A footnote is no link, nor is what is no link at all.
    let is_definition = is_alone && !name.starts_with('^') && !name.contains([']', '[']);
    let target = target.strip_prefix('<').unwrap_or(target);
    is_definition.then(|| target.strip_suffix('>').unwrap_or(target))
}

/// A target as a path; none: it is no file of the skill for sure.
fn path(target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default().trim();
    let target = decoded(target)?;
    let is_elsewhere = target.starts_with(['/', '~', '\\', '@', '.'])
        && !target.starts_with("./")
        && !target.starts_with("../")
        || target.contains([
            ':', '{', '}', '<', '>', '*', '$', '|', '"', '\'', '`', '[', ']', '%', '\\', ',', '=',
        ])
        || target.contains("...")
        || target.contains('…');
    let lower = target.to_lowercase();
    let is_placeholder = PLACEHOLDERS.iter().any(|word| lower.contains(word));
    let name = target.rsplit('/').next().unwrap_or_default();
    let is_file = name.rsplit_once('.').is_some_and(|(before, ending)| {
        !before.is_empty()
            && (1..=8).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let is_folder = name.is_empty() && target.len() > 1;
    (!is_elsewhere && !is_placeholder && (is_file || is_folder)).then_some(target)
}

/// `%20` and its like as what they stand for; none: that is no text.
fn decoded(target: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(target.len());
    let mut rest = target.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = (first == b'%').then(|| after.get(..2)).flatten();
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = byte.and_then(|_| after.get(2..)).unwrap_or(after);
    }
    String::from_utf8(bytes).ok()
}

/// A relative path from a folder of the skill; none: it leads out of the skill.
fn inside(folder: &str, path: &str) -> Option<String> {
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
