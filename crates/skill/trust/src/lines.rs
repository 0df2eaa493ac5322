//! Splits a text into lines, each with its scope.
//!
//! The meaning of a line depends on that: a command in a fence is to be run, the same in a
//! table of attacks is not; a comment in HTML is invisible on the page.

use std::borrow::Cow;

/// The most characters of a logical line: longer ones are not joined.
const MAX_JOINED_CHARS: usize = 2 * 1024;

/// A set of scopes: of a line, or of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineScope(u16);

impl LineScope {
    /// Front matter of Markdown.
    pub(crate) const FRONT: Self = Self(1);
    /// Prose of Markdown, or of a text.
    pub(crate) const PROSE: Self = Self(2);
    /// Code in Markdown.
    pub(crate) const FENCE: Self = Self(4);
    /// A file of code.
    pub(crate) const SCRIPT: Self = Self(8);
    /// A comment in code.
    pub(crate) const COMMENT: Self = Self(16);
    /// A file of data, or such a fence.
    pub(crate) const DATA: Self = Self(32);
    /// Text that is invisible on the page.
    pub(crate) const HIDDEN: Self = Self(64);
    /// Decoded text.
    pub(crate) const DECODED: Self = Self(128);
    /// A command that a package manager runs when it installs.
    pub(crate) const INSTALL: Self = Self(Self::SCRIPT.0 | 256);
    /// A command that an agent's host starts by itself: a hook, or a server of tools.
    pub(crate) const UNASKED: Self = Self(Self::SCRIPT.0 | 512);
    /// Text that an agent or a program acts on.
    pub(crate) const CODE: Self = Self(4 | 8 | 32 | 64 | 128);
    /// Text that is read, and not run.
    pub(crate) const SAID: Self = Self(1 | 2 | 16);
    pub(crate) const ANY: Self = Self(255);

    /// Reads a set of names between blanks; none where one of them is unknown.
    pub(crate) fn read(names: &str) -> Option<Self> {
        let mut set = 0;
        for name in names.split_whitespace() {
            set |= match name {
                "front" => Self::FRONT,
                "prose" => Self::PROSE,
                "fence" => Self::FENCE,
                "script" => Self::SCRIPT,
                "comment" => Self::COMMENT,
                "data" => Self::DATA,
                "hidden" => Self::HIDDEN,
                "decoded" => Self::DECODED,
                "code" => Self::CODE,
                "said" => Self::SAID,
                _ => return None,
            }
            .0;
        }
        Some(if set == 0 { Self::ANY } else { Self(set) })
    }

    pub(crate) fn has(self, scope: Self) -> bool {
        self.0 & scope.0 != 0
    }

    /// Tells whether it is one of `scope`, in all respects.
    pub(crate) fn is(self, scope: Self) -> bool {
        self.0 & scope.0 == scope.0
    }
}

/// The kind of text in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Markdown,
    Code,
    Data,
}

/// A line, or some that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Number of its first line in the file, from 1.
    pub(crate) number: u32,
    /// Numbers of further lines, each with the byte that it begins at.
    pub(crate) more: Vec<(usize, u32)>,
    pub(crate) scope: LineScope,
    /// The scope in which a decoded text was encoded; else the same as `scope`.
    pub(crate) origin: LineScope,
    /// The block it is in.
    pub(crate) block: u32,
    /// The heading above it, as an index of `notes`; 0: none.
    pub(crate) heading: usize,
    /// The note that introduces it: prose above a fence, the line above a list.
    pub(crate) lead: usize,
}

/// The lines of a text, and the notes above them.
#[derive(Debug, Default)]
pub(crate) struct Lines<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    /// Headings and introductions. The first is empty.
    pub(crate) notes: Vec<Cow<'a, str>>,
}

impl Line<'_> {
    /// The number of the line of the file that a byte is in.
    pub(crate) fn number_at(&self, at: usize) -> u32 {
        let behind = self.more.iter().rev().find(|(start, _)| *start <= at);
        behind.map_or(self.number, |(_, number)| *number)
    }
}

/// Splits a text.
pub(crate) fn lines(text: &str, kind: Kind) -> Lines<'_> {
    let mut reader = Reader {
        out: Lines {
            lines: Vec::new(),
            notes: vec![Cow::Borrowed("")],
        },
        block: 0,
        heading: 0,
        lead: 0,
    };
    let numbered = text.split('\n').zip(1_u32..);
    match kind {
        Kind::Markdown => reader.markdown(numbered),
        Kind::Code => reader.code(numbered),
        Kind::Data => {
            for (line, number) in numbered.filter(|(line, _)| !line.trim().is_empty()) {
                reader.push(line, number, LineScope::DATA);
            }
        }
    }
    reader.out
}

struct Reader<'a> {
    out: Lines<'a>,
    block: u32,
    heading: usize,
    lead: usize,
}

/// The scope of a fence, by its language.
fn fence_place(info: &str) -> LineScope {
    let language = info
        .trim_start_matches(['`', '~'])
        .split(|c: char| c.is_whitespace() || matches!(c, '{' | ',' | ':'))
        .find(|word| !word.is_empty())
        .unwrap_or_default()
        .to_ascii_lowercase();
    match language.as_str() {
        // Texts to read. A fence without a language counts as code: that is the safe side.
        "md" | "markdown" | "mdx" | "diff" | "patch" | "log" | "mermaid" | "prompt" => {
            LineScope::PROSE
        }
        "json" | "jsonc" | "json5" | "yaml" | "yml" | "toml" | "xml" | "html" | "css" | "csv"
        | "ini" | "sql" | "graphql" | "proto" => LineScope::DATA,
        _ => LineScope::FENCE,
    }
}

/// Tells whether a line begins a block of its own, which no paragraph continues into.
fn begins(line: &str) -> bool {
    let start = line.trim_start();
    let digits = start.trim_start_matches(|c: char| c.is_ascii_digit());
    start.starts_with(['#', '|', '>', '<', '!'])
        || start.starts_with("- ")
        || start.starts_with("* ")
        || start.starts_with("+ ")
        || start.starts_with("**")
        || (digits.len() < start.len() && digits.starts_with(['.', ')']))
}

fn is_item(line: &str) -> bool {
    let start = line.trim_start();
    let digits = start.trim_start_matches(|c: char| c.is_ascii_digit());
    start.starts_with(['-', '*', '+', '|', '>'])
        || (digits.len() < start.len() && digits.starts_with(['.', ')']))
}

impl<'a> Reader<'a> {
    fn push(&mut self, text: &'a str, number: u32, scope: LineScope) {
        self.out.lines.push(Line {
            text: Cow::Borrowed(text),
            number,
            more: Vec::new(),
            scope,
            origin: scope,
            block: self.block,
            heading: self.heading,
            lead: self.lead,
        });
    }

    fn note(&mut self, text: impl Into<Cow<'a, str>>) -> usize {
        self.out.notes.push(text.into());
        self.out.notes.len() - 1
    }

    /// Appends a line to the one before, which continues in it.
    fn join(&mut self, text: &str, number: u32, separator: &str) -> bool {
        let Some(last) = self.out.lines.last_mut() else {
            return false;
        };
        if last.text.len() + text.len() > MAX_JOINED_CHARS {
            return false;
        }
        let joined = last.text.to_mut();
        joined.push_str(separator);
        last.more.push((joined.len(), number));
        joined.push_str(text);
        true
    }

    /// Adds a line of a command. Commands continue over lines that end in `\` or an operator, or
    /// begin with a pipe.
    fn command(&mut self, line: &'a str, number: u32, scope: LineScope) {
        let last = self.out.lines.last();
        // A rule for one line must see `curl … \` and `| sh` together.
        let goes_on = last.is_some_and(|last| {
            let end = last.text.trim_end();
            let begins = line.trim_start();
            last.block == self.block
                && last.scope == scope
                && (end.ends_with(['\\', '|', '`'])
                    || end.ends_with("&&")
                    || begins.starts_with("| ")
                    || begins.starts_with("&& "))
                && last.more.last().map_or(last.number, |more| more.1) + 1 == number
        });
        if goes_on {
            if let Some(last) = self.out.lines.last_mut() {
                let end = last.text.trim_end().trim_end_matches('\\').len();
                if end < last.text.len() {
                    last.text.to_mut().truncate(end);
                }
            }
            if self.join(line.trim_start(), number, " ") {
                return;
            }
        }
        self.push(line, number, scope);
    }

    fn code(&mut self, lines: impl Iterator<Item = (&'a str, u32)>) {
        for (line, number) in lines {
            let start = line.trim_start();
            if start.is_empty() {
                continue;
            }
            let is_comment = (start.starts_with('#') && !start.starts_with("#!"))
                || start.starts_with("//")
                || start.starts_with("* ")
                || start.starts_with("/*")
                || start.starts_with("-- ")
                || start.starts_with("REM ");
            if is_comment {
                self.push(line, number, LineScope::COMMENT);
            } else {
                self.command(line, number, LineScope::SCRIPT);
            }
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one state machine, read from top to bottom"
    )]
    fn markdown(&mut self, lines: impl Iterator<Item = (&'a str, u32)>) {
        let mut fence: Option<(&'a str, LineScope)> = None;
        let mut is_front = false;
        let mut is_hook = false;
        let mut is_comment = false;
        let mut goes_on = false;
        let mut parents: [&'a str; 7] = [""; 7];
        let mut last_prose: &'a str = "";
        let mut has_begun = false;
        for (line, number) in lines {
            let start = line.trim();
            if let Some((mark, scope)) = fence {
                if start.starts_with(mark) && start.trim_start_matches(['`', '~']).is_empty() {
                    fence = None;
                    self.block += 1;
                    self.lead = 0;
                } else if !start.is_empty() {
                    let is_note = start.starts_with(['#', '/', '<']) && scope == LineScope::FENCE;
                    if is_note && !start.starts_with("#!") {
                        // A comment introduces the lines below it.
                        let above = self.out.notes.get(self.lead).cloned().unwrap_or_default();
                        self.lead = if above.len() < 300 {
                            self.note(format!("{above} {start}"))
                        } else {
                            self.note(start)
                        };
                        self.push(line, number, LineScope::COMMENT);
                    } else {
                        self.command(line, number, scope);
                    }
                }
                continue;
            }
            // Only at the top: further down `---` is a rule.
            if is_front || (!has_begun && start == "---") {
                let is_fence = start == "---";
                if is_front && is_fence {
                    is_front = false;
                    self.block += 1;
                } else if is_fence {
                    is_front = true;
                } else if !start.is_empty() {
                    let is_key =
                        line.starts_with(|c: char| c.is_alphabetic() || c == '"' || c == '\'');
                    if is_key {
                        is_hook = line.trim_start_matches(['"', '\'']).starts_with("hooks");
                    }
                    if is_hook {
                        self.command(line, number, LineScope::UNASKED);
                    } else {
                        self.push(line, number, LineScope::FRONT);
                    }
                }
                has_begun = true;
                continue;
            }
            if start.is_empty() {
                goes_on = false;
                continue;
            }
            has_begun = true;
            if is_comment {
                // Comments in HTML: the rendered page hides them, an agent reads them.
                self.push(line, number, LineScope::HIDDEN);
                is_comment = !line.contains("-->");
                continue;
            }
            if let Some((mark, info)) = opening(start) {
                fence = Some((mark, fence_place(info)));
                self.block += 1;
                self.lead = self.note(last_prose);
                goes_on = false;
                continue;
            }
            if let Some((level, title)) = heading(start) {
                for slot in parents.iter_mut().skip(level) {
                    *slot = "";
                }
                if let Some(slot) = parents.get_mut(level) {
                    *slot = title;
                }
                // The title of the document is about all of it, so it says nothing about
                // a part.
                let above = parents.get(2..level).unwrap_or_default().join(" / ");
                let title = if level == 1 { "" } else { title };
                self.heading = self.note(format!("{above} / {title}"));
                self.block += 1;
                self.lead = 0;
                self.push(line, number, LineScope::PROSE);
                last_prose = line;
                goes_on = false;
                continue;
            }
            if let Some(at) = line.find("<!--") {
                let (shown, hidden) = line.split_at(at);
                if !shown.trim().is_empty() {
                    self.push(shown, number, LineScope::PROSE);
                }
                self.push(hidden, number, LineScope::HIDDEN);
                is_comment = !hidden.contains("-->");
                goes_on = false;
                continue;
            }
            if is_item(line) {
                // The line above a list introduces all of its items.
                if !is_item(last_prose) {
                    self.lead = self.note(last_prose);
                }
            } else if !goes_on {
                self.lead = 0;
            }
            let joined = goes_on && !begins(line) && self.join(line.trim_start(), number, " ");
            if !joined {
                self.push(line, number, LineScope::PROSE);
            }
            last_prose = line;
            goes_on = true;
        }
    }
}

/// Returns the mark that opens a fence, and the text behind it.
fn opening(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(['-', '>', ' ']);
    ["`", "~"].iter().find_map(|mark| {
        let rest = line.trim_start_matches(mark);
        let (mark, rest) = line.split_at(line.len() - rest.len());
        (mark.len() >= 3 && !rest.contains('`')).then_some((mark, rest))
    })
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then_some((level, title.trim()))
}
