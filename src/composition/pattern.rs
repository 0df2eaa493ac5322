//! Tool patterns as skills write them: `Read`, `*`, `mcp__server`,
//! `mcp__server__*`, `Bash(git:*)`, `WebFetch(domain:example.com)`,
//! `Read(/tmp/**)`.
//!
//! A pattern is the name of a tool, in which `*` stands for any text, and
//! perhaps a rule on its arguments in parentheses. What cannot be decided is
//! [`Answer::Undecided`]; nothing is guessed.

use std::borrow::Cow;

use super::call::{Call, Commands, hides, without_path};
use super::{ToolText, glob};

/// What a pattern says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// It cannot be told.
    Undecided,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A tool, or some of its calls, or several tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    text: ToolText,
    /// Bytes of the text that are the name.
    name: usize,
    /// The name has no letter to be put in lower case.
    is_lower: bool,
    form: Form,
    rule: Rule,
}

/// What the name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One tool.
    Plain,
    /// It has a `*`.
    Glob,
    /// `mcp__server`: all tools of a server.
    Server,
}

/// What stands in parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    /// Nothing, or `*`: any call.
    Any,
    /// A command that one of these globs matches.
    Command(Vec<String>),
    /// A host that this glob matches.
    Domain(String),
    /// A path.
    Path(String),
    /// Something that only the host of the tool understands.
    Own,
    /// The text cannot be read.
    Unreadable,
}

/// Tools whose rules are about a command line.
const SHELLS: &[&str] = &["bash", "shell"];
/// Tools whose rules are about a path.
const FILES: &[&str] = &["edit", "multiedit", "notebookedit", "read", "write"];

impl ToolPattern {
    /// The pattern of a text. Any text is one; what cannot be read matches no
    /// call for sure.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::of(text.trim().into())
    }

    pub(super) fn of(text: ToolText) -> Self {
        // By bytes: most texts are shorter than what a search has to set up.
        let (mut name, mut has_star, mut has_end) = (text.len(), false, false);
        let mut is_lower = true;
        for (at, letter) in text.bytes().enumerate() {
            match letter {
                b'(' => {
                    name = at;
                    break;
                }
                b'*' => has_star = true,
                b')' => has_end = true,
                b'A'..=b'Z' => is_lower = false,
                _ => {}
            }
        }
        let (name, inside) = text.split_at_checked(name).unwrap_or((&text, ""));
        let inside = inside.strip_prefix('(').map(|rest| rest.strip_suffix(')'));
        let form = if has_star {
            Form::Glob
        } else if name
            .strip_prefix("mcp__")
            .is_some_and(|server| !server.contains("__"))
        {
            Form::Server
        } else {
            Form::Plain
        };
        let rule = match inside {
            None if name.is_empty() || has_end => Rule::Unreadable,
            None | Some(Some("*")) => Rule::Any,
            Some(Some(inside)) if !name.is_empty() => rule(name, inside.trim()),
            Some(_) => Rule::Unreadable,
        };
        let name = name.len();
        Self {
            text,
            name,
            is_lower,
            form,
            rule,
        }
    }

    /// The pattern as it is written.
    #[must_use]
    pub fn text(&self) -> &ToolText {
        &self.text
    }

    /// The name of the tool, or its glob.
    pub(super) fn name(&self) -> &str {
        self.text.get(..self.name).unwrap_or(&self.text)
    }

    /// The name in lower case.
    pub(super) fn lower_name(&self) -> Cow<'_, str> {
        if self.is_lower {
            self.name().into()
        } else {
            self.name().to_ascii_lowercase().into()
        }
    }

    /// A plain name in lower case and nothing else: whoever looks for the tool
    /// has its text.
    pub(super) fn is_found_by_text(&self) -> bool {
        self.is_lower
            && self.name == self.text.len()
            && self.form == Form::Plain
            && self.rule == Rule::Any
    }

    /// What every name that it matches begins with, in lower case.
    pub(super) fn head(&self) -> Box<str> {
        let head = self.name().split('*').next().unwrap_or_default();
        head.to_ascii_lowercase().into()
    }

    /// A name that it matches may begin with this text, in lower case, but for
    /// its case.
    pub(super) fn may_begin_with(&self, head: &str) -> bool {
        let mut mine = self.name().bytes().zip(head.bytes());
        let both = |(mine, theirs): (u8, u8)| mine == b'*' || mine.to_ascii_lowercase() == theirs;
        let is_same = mine
            .by_ref()
            .take_while(|(mine, _)| *mine != b'*')
            .all(both);
        // A name that ends before the text does cannot begin with it.
        is_same && (self.form != Form::Plain || self.name().len() >= head.len())
    }

    /// Their rules begin with different words, so no call is of both. This is
    /// asked of many pairs, and tells most of them apart.
    pub(super) fn is_apart(&self, other: &Self) -> bool {
        match (&self.rule, &other.rule) {
            (Rule::Command(a), Rule::Command(b)) => match (a.first(), b.first()) {
                // The others begin with the first one.
                (Some(a), Some(b)) => glob::begin_apart(a, b),
                _ => false,
            },
            _ => false,
        }
    }

    /// It names one tool, whatever it says of its arguments.
    pub(super) fn is_one_tool(&self) -> bool {
        self.form == Form::Plain
    }

    /// It makes no sense to us.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.rule == Rule::Unreadable
    }

    /// Globs that together are the name.
    fn globs(&self) -> Vec<Cow<'_, str>> {
        let name = Cow::Borrowed(self.name());
        if self.form == Form::Server {
            let tools = format!("{name}__*").into();
            vec![name, tools]
        } else {
            vec![name]
        }
    }

    fn named(&self, tool: &str) -> Answer {
        let is = |name: &str, tool: &str| match self.form {
            Form::Plain => name == tool,
            Form::Glob => glob::matches(name, tool),
            Form::Server => tool
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__")),
        };
        if is(self.name(), tool) {
            return Answer::Yes;
        }
        // `write` and `Write` are the same tool on some hosts.
        let is_like = match self.form {
            Form::Plain => self.name().eq_ignore_ascii_case(tool),
            _ => is(
                &self.name().to_ascii_lowercase(),
                &tool.to_ascii_lowercase(),
            ),
        };
        if is_like {
            Answer::Undecided
        } else {
            Answer::No
        }
    }

    /// Every call that the other one matches, this one matches too. Where that
    /// cannot be told it is `false`.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        if self.rule == Rule::Unreadable || other.rule == Rule::Unreadable {
            return self.text == other.text;
        }
        let named = if self.form == Form::Plain && other.form == Form::Plain {
            self.name() == other.name()
        } else {
            let mine = self.globs();
            let covered =
                |narrow: &Cow<'_, str>| mine.iter().any(|wide| glob::covers(wide, narrow));
            other.globs().iter().all(covered)
        };
        named
            && match (&self.rule, &other.rule) {
                (Rule::Any, _) => true,
                (Rule::Command(wide), Rule::Command(narrow)) => narrow
                    .iter()
                    .all(|narrow| wide.iter().any(|wide| glob::covers(wide, narrow))),
                (Rule::Domain(wide), Rule::Domain(narrow)) => glob::covers(wide, narrow),
                (Rule::Path(wide), Rule::Path(narrow)) => {
                    wide == narrow || path_covers(wide, narrow)
                }
                (Rule::Own, Rule::Own) => self.text == other.text,
                _ => false,
            }
    }

    /// There is a call that both match.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> Answer {
        let shared = |a: &[Cow<'_, str>], b: &[Cow<'_, str>]| {
            a.iter().any(|a| b.iter().any(|b| glob::overlaps(a, b)))
        };
        let plain = self.form == Form::Plain && other.form == Form::Plain;
        let named = if plain && self.name() == other.name() {
            Answer::Yes
        } else if plain && !self.name().eq_ignore_ascii_case(other.name()) {
            Answer::No
        } else if !plain && shared(&self.globs(), &other.globs()) {
            Answer::Yes
        } else {
            let lower = |pattern: &Self| -> Vec<Cow<'static, str>> {
                let globs = pattern.globs();
                globs
                    .iter()
                    .map(|glob| glob.to_ascii_lowercase().into())
                    .collect()
            };
            if shared(&lower(self), &lower(other)) {
                Answer::Undecided
            } else {
                Answer::No
            }
        };
        let ruled = || match (&self.rule, &other.rule) {
            (Rule::Unreadable, _) | (_, Rule::Unreadable) => Answer::Undecided,
            (Rule::Any, _) | (_, Rule::Any) => Answer::Yes,
            (Rule::Command(a), Rule::Command(b)) => a
                .iter()
                .any(|a| b.iter().any(|b| glob::overlaps(a, b)))
                .into(),
            (Rule::Domain(a), Rule::Domain(b)) => glob::overlaps(a, b).into(),
            (Rule::Path(a), Rule::Path(b)) => paths_overlap(a, b),
            (Rule::Own, Rule::Own) if self.text == other.text => Answer::Yes,
            _ => Answer::Undecided,
        };
        both(named, ruled)
    }

    /// It matches the call, or a part of it: as a forbidding pattern reads.
    #[must_use]
    pub fn touches(&self, call: &Call<'_>) -> Answer {
        both(self.named(call.tool), || match &self.rule {
            Rule::Command(globs) => match call.commands() {
                Commands::Unclear => Answer::Undecided,
                Commands::Plain(commands) => {
                    let hit =
                        |command: &String| any(globs, command) || any(globs, without_path(command));
                    if commands.iter().any(hit) {
                        Answer::Yes
                    } else if commands.iter().any(|command| hides(command)) {
                        Answer::Undecided
                    } else {
                        Answer::No
                    }
                }
            },
            _ => self.ruled(call),
        })
    }

    /// It matches the whole call: as an allowing pattern reads.
    #[must_use]
    pub fn permits(&self, call: &Call<'_>) -> Answer {
        both(self.named(call.tool), || match &self.rule {
            Rule::Command(globs) => match call.commands() {
                Commands::Unclear => Answer::Undecided,
                Commands::Plain(commands) => {
                    let all = commands.iter().all(|command| any(globs, command));
                    (all && !commands.is_empty()).into()
                }
            },
            _ => self.ruled(call),
        })
    }

    /// It matches this one of the commands of a call.
    pub(super) fn permits_command(&self, call: &Call<'_>, command: &str) -> bool {
        self.named(call.tool) == Answer::Yes
            && matches!(&self.rule, Rule::Command(globs) if any(globs, command))
    }

    fn ruled(&self, call: &Call<'_>) -> Answer {
        match &self.rule {
            Rule::Any => Answer::Yes,
            Rule::Domain(glob) => call
                .host()
                .map_or(Answer::Undecided, |host| glob::matches(glob, &host).into()),
            Rule::Path(glob) => call
                .path()
                .map_or(Answer::Undecided, |path| path_matches(glob, path)),
            Rule::Command(_) | Rule::Own | Rule::Unreadable => Answer::Undecided,
        }
    }
}

fn both(named: Answer, ruled: impl FnOnce() -> Answer) -> Answer {
    match named {
        Answer::No => Answer::No,
        Answer::Yes => ruled(),
        Answer::Undecided => match ruled() {
            Answer::No => Answer::No,
            _ => Answer::Undecided,
        },
    }
}

fn any(globs: &[String], command: &str) -> bool {
    globs.iter().any(|glob| glob::matches(glob, command))
}

fn rule(name: &str, inside: &str) -> Rule {
    let is = |tools: &[&str]| tools.iter().any(|tool| tool.eq_ignore_ascii_case(name));
    if inside.is_empty() {
        Rule::Unreadable
    } else if let Some(host) = inside.strip_prefix("domain:") {
        Rule::Domain(host.trim().trim_end_matches('.').to_lowercase())
    } else if is(SHELLS) {
        // `git:*` is `git` and all that begins with it as a word.
        Rule::Command(match inside.strip_suffix(":*") {
            Some(begin) => vec![begin.to_owned(), format!("{begin} *")],
            None => vec![inside.to_owned()],
        })
    } else if is(FILES) {
        let path = inside.strip_prefix("./").unwrap_or(inside);
        // Two slashes are how some hosts write an absolute path.
        let path = path
            .strip_prefix('/')
            .filter(|rest| rest.starts_with('/'))
            .unwrap_or(path);
        let below = if path.ends_with('/') { "**" } else { "" };
        Rule::Path(format!("{path}{below}"))
    } else {
        Rule::Own
    }
}

/// Where a path begins: what begins elsewhere cannot be compared.
fn anchor(path: &str) -> Option<char> {
    path.chars()
        .next()
        .filter(|first| matches!(first, '/' | '~'))
}

/// `**` crosses slashes, `*` does not; here both become a `*` that does.
fn widened(path: &str) -> String {
    let mut wide = path.to_owned();
    while wide.contains("**") {
        wide = wide.replace("**", "*");
    }
    wide
}

/// A `*` that stops at slashes.
fn is_narrow(path: &str) -> bool {
    path.replace("**", "").contains('*')
}

fn path_covers(wide: &str, narrow: &str) -> bool {
    anchor(wide) == anchor(narrow)
        && !is_narrow(wide)
        && glob::covers(&widened(wide), &widened(narrow))
}

fn paths_overlap(a: &str, b: &str) -> Answer {
    if a == b || path_covers(a, b) || path_covers(b, a) {
        Answer::Yes
    } else if anchor(a) != anchor(b) {
        Answer::Undecided
    } else if !glob::overlaps(&widened(a), &widened(b)) {
        Answer::No
    } else if is_narrow(a) || is_narrow(b) {
        Answer::Undecided
    } else {
        Answer::Yes
    }
}

/// The path matches the pattern. Where one is absolute and the other is not, it
/// still does not where even the end of the path does not fit.
fn path_matches(pattern: &str, path: &str) -> Answer {
    let wide = widened(pattern);
    if anchor(pattern) == anchor(path) {
        let (outer, narrow) = (glob::matches(&wide, path), is_narrow(pattern));
        return match (outer, narrow) {
            (false, _) => Answer::No,
            (true, false) => Answer::Yes,
            // Slashes decide; segment by segment is as far as `**` allows.
            (true, true) => segments(pattern, path),
        };
    }
    let end = wide.strip_prefix("~/").unwrap_or(&wide);
    if anchor(path) == Some('/') && anchor(pattern) != Some('/') {
        if glob::matches(&format!("*/{end}"), path) {
            return Answer::Undecided;
        }
        return Answer::No;
    }
    Answer::Undecided
}

fn segments(pattern: &str, path: &str) -> Answer {
    if pattern.contains("**") {
        return Answer::Undecided;
    }
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    let fits = pattern.len() == path.len()
        && pattern
            .iter()
            .zip(&path)
            .all(|(glob, part)| glob::matches(glob, part));
    fits.into()
}
