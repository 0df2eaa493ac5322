//! Words that a reader searches for: a constant ends in what it is.

use std::path::Path;

use crate::workspace::{files, packages};

/// What the name of a number or a time says of it: a bound, a unit, or a kind.
const KINDS: &[&str] = &[
    "ATTEMPTS",
    "BACKOFF",
    "BITS",
    "BYTE",
    "BYTES",
    "CAPACITY",
    "CHARS",
    "CODE",
    "CONCURRENCY",
    "CONFIDENCE",
    "COUNT",
    "DAYS",
    "DEADLINE",
    "DEFAULT",
    "DELAY",
    "DEPTH",
    "EXPONENT",
    "FACTOR",
    "FORMAT",
    "HOURS",
    "ID",
    "INTERVAL",
    "KIB",
    "LENGTH",
    "LEVEL",
    "LIFETIME",
    "LIMIT",
    "LINES",
    "MARGIN",
    "MASK",
    "MAX",
    "MILLIS",
    "MIN",
    "MINUTES",
    "OFFSET",
    "PER",
    "PERCENT",
    "PROBABILITY",
    "RATE",
    "RATIO",
    "RETRIES",
    "SCORE",
    "SECOND",
    "SECONDS",
    "SEED",
    "SHARE",
    "SIZE",
    "STATE",
    "TAG",
    "THRESHOLD",
    "TIMEOUT",
    "TTL",
    "VERSION",
    "WEIGHT",
    "WIDTH",
];

const TYPES: &[&str] = &[
    "Duration", "f32", "f64", "i32", "i64", "u16", "u32", "u64", "u8", "usize",
];

/// The name of the constant that a line defines, where it is a number or a time.
fn constant(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("const ")?;
    let before = before.trim();
    let (name, rest) = rest.split_once(": ")?;
    let (kind, _) = rest.split_once(' ')?;
    let is_one = (before.is_empty() || before.starts_with("pub")) && TYPES.contains(&kind);
    is_one.then_some(name)
}

#[test]
fn a_constant_ends_in_what_it_is() {
    let mut found = Vec::new();
    for package in packages().values() {
        for (path, text) in files(package) {
            let names = text.lines().filter_map(constant);
            let nameless = names.filter(|name| !name.split('_').any(|word| KINDS.contains(&word)));
            found.extend(nameless.map(|name| format!("{}: {name}", path.display())));
        }
    }
    assert!(
        found.is_empty(),
        "these constants have no unit, bound or kind in their names; a constant is `MAX_…`, \
         `…_TIMEOUT`, `…_INTERVAL`, `…_BYTES`:\n{}",
        found.join("\n")
    );
}

/// Words that this project once used in senses of its own, and what readers search for.
const REPLACED: &[(&str, &str)] = &[
    ("anew", "again, or a verb with re-"),
    ("became of", "outcome, status"),
    ("beside", "next to, with, in addition to"),
    ("kept in step", "synced"),
    ("mend", "fix, correct, repair"),
    ("mended", "fixed, corrected, repaired"),
    ("mends", "fixes, corrects, repairs"),
    ("so many", "a number, as many as"),
    ("told", "notified, sent, shown"),
    ("whoever", "the caller, every caller that"),
];
/// Pages about the code and its history, and a report of measurements.
const FOR_DEVELOPERS: &[&str] = &["decisions.md", "mutants.md", "performance.md"];

/// Whether a text has a word or phrase, in any case.
fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|it| it.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|it| it.chars().next());
        !is_part(before) && !is_part(after)
    })
}

/// The lines that people and models read: the contract, help, pages, errors and suggestions.
fn lines_for_readers() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("SECURITY.md")];
    for folder in ["proto/repertoire/v1", "tests/golden/help", "docs"] {
        let entries = root.join(folder).read_dir().expect("a folder");
        pages.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    pages.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        path.is_file() && !name.is_some_and(|name| FOR_DEVELOPERS.contains(&name))
    });
    let mut lines = Vec::new();
    let mut add = |path: &Path, text: &str, is_read: fn(&str) -> bool| {
        let numbered = text.lines().enumerate().filter(|(_, line)| is_read(line));
        lines.extend(numbered.map(|(at, line)| {
            let place = format!("{}:{}", path.display(), at + 1);
            (place, line.to_owned())
        }));
    };
    for path in pages {
        // Pictures among the pages are no text.
        if let Ok(text) = std::fs::read_to_string(&path) {
            add(&path, &text, |_| true);
        }
    }
    for package in packages().values() {
        for (path, text) in files(package) {
            add(&path, &text, |line| {
                line.contains("#[error(") || line.contains(".suggest(")
            });
        }
    }
    lines
}

#[test]
fn texts_for_readers_use_the_words_that_they_search_for() {
    let mut found = Vec::new();
    for (place, line) in lines_for_readers() {
        for (word, instead) in REPLACED {
            if has_word(&line, word) {
                found.push(format!("{place}: {word}: {instead}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
