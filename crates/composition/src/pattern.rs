//! Tool patterns as skills write them: `Read`, `*`, `mcp__server`,
//! `mcp__server__*`, `Bash(git:*)`, `WebFetch(domain:example.com)`,
//! `Read(/tmp/**)`.
//!
//! A pattern is the name of a tool, in which `*` stands for any text, and
//! perhaps a rule on its arguments in parentheses. Nothing is guessed: what
//! cannot be decided of two patterns is [`Answer::Undecided`], and of a call it is
//! a [`Doubt`], which says why.

use std::borrow::Cow;

use super::call::Call;
use super::command_line::Command;
use super::command_rule::CommandRule;
use super::doubt::{Doubt, shown};
use super::{glob, host, path};

/// What two patterns say of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
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

/// A tool, or some of its calls, or several tools: a text, and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToolPattern<'a> {
    text: &'a str,
    shape: &'a Shape,
}

/// What the text of a pattern says. Hundreds of texts lie in one buffer, so each
/// is kept apart from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes of the text that are the name.
    name: u32,
    is_bare: bool,
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
    /// A command that a glob matches.
    Command(CommandRule),
    /// A host that this glob matches.
    Domain(Box<str>),
    /// A path.
    Path(Box<str>),
    /// Something that only the host of the tool understands.
    Own,
    /// The text cannot be read.
    Unreadable,
}

/// What names of servers begin with.
const SERVER: &str = "mcp__";
/// Tools whose rules are about a command line.
const SHELLS: &[&str] = &["bash", "shell"];
/// Tools whose rules are about a path.
const FILES: &[&str] = &["edit", "multiedit", "notebookedit", "read", "write"];

impl Shape {
    /// What a text says. Any text is a pattern; what cannot be read matches no call
    /// for sure.
    pub(super) fn of(text: &str) -> Self {
        // Most texts are plain names, which is told without a branch for each byte.
        let is_odd = |odd, letter| odd | matches!(letter, b'('..=b'*' | b'A'..=b'Z');
        if !text.bytes().fold(text.is_empty(), is_odd) && !text.starts_with(SERVER) {
            return Self {
                name: u32::try_from(text.len()).unwrap_or(u32::MAX),
                is_bare: true,
                form: Form::Plain,
                rule: Rule::Any,
            };
        }
        let (mut end, mut has_star, mut has_end) = (text.len(), false, false);
        let mut is_lower = true;
        for (at, letter) in text.bytes().enumerate() {
            match letter {
                b'(' => {
                    end = at;
                    break;
                }
                b'*' => has_star = true,
                b')' => has_end = true,
                b'A'..=b'Z' => is_lower = false,
                _ => {}
            }
        }
        let (name, inside) = text.split_at_checked(end).unwrap_or((text, ""));
        let inside = inside.strip_prefix('(').map(|rest| rest.strip_suffix(')'));
        let form = if has_star {
            Form::Glob
        } else if name
            .strip_prefix(SERVER)
            .is_some_and(|server| !server.contains("__"))
        {
            Form::Server
        } else {
            Form::Plain
        };
        let is_whole = inside.is_none();
        let rule = match inside {
            None if name.is_empty() || has_end => Rule::Unreadable,
            None | Some(Some("*")) => Rule::Any,
            Some(Some(inside)) if !name.is_empty() => rule(name, inside.trim()),
            Some(_) => Rule::Unreadable,
        };
        Self {
            name: u32::try_from(end).unwrap_or(u32::MAX),
            is_bare: is_whole && is_lower && form == Form::Plain && rule == Rule::Any,
            form,
            rule,
        }
    }

    /// A plain name in lower case and nothing else: whoever looks for the tool
    /// has its text.
    #[inline]
    pub(super) fn is_bare(&self) -> bool {
        self.is_bare
    }

    /// It names one tool, whatever it says of its arguments.
    #[inline]
    pub(super) fn is_one_tool(&self) -> bool {
        self.form == Form::Plain
    }
}

impl<'a> ToolPattern<'a> {
    /// The pattern of a text and what that says.
    #[inline]
    pub(super) fn new(text: &'a str, shape: &'a Shape) -> Self {
        Self { text, shape }
    }

    /// The pattern as it is written.
    #[inline]
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The name of the tool, or its glob.
    #[inline]
    pub(super) fn name(&self) -> &'a str {
        let name = self.text.get(..self.shape.name as usize);
        name.unwrap_or(self.text)
    }

    /// What every name that it matches begins with.
    pub(super) fn head(&self) -> &'a str {
        self.name().split('*').next().unwrap_or_default()
    }

    /// A name that it matches may begin with this text, but for its case.
    pub(super) fn may_begin_with(&self, head: &str) -> bool {
        let mut mine = self.name().bytes().zip(head.bytes());
        let both = |(mine, theirs): (u8, u8)| mine == b'*' || mine.eq_ignore_ascii_case(&theirs);
        let is_same = mine
            .by_ref()
            .take_while(|(mine, _)| *mine != b'*')
            .all(both);
        // A name that ends before the text does cannot begin with it.
        is_same && (self.shape.form != Form::Plain || self.name().len() >= head.len())
    }

    /// What its commands begin with, where that is what its rule is about.
    pub(super) fn command(&self) -> Option<&'a str> {
        match &self.shape.rule {
            Rule::Command(command) => command.first().split('*').next(),
            _ => None,
        }
    }

    /// Their rules begin with different words, so no call is of both. This is
    /// asked of many pairs, and tells most of them apart.
    #[inline]
    pub(super) fn is_apart(&self, other: &Self) -> bool {
        match (&self.shape.rule, &other.shape.rule) {
            (Rule::Command(a), Rule::Command(b)) => glob::begin_apart(a.first(), b.first()),
            _ => false,
        }
    }

    /// It makes no sense to us.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self.shape.rule, Rule::Unreadable)
    }

    /// Globs that together are the name.
    fn globs(&self) -> Vec<Cow<'a, str>> {
        let name = Cow::Borrowed(self.name());
        if self.shape.form == Form::Server {
            let tools = format!("{name}__*").into();
            vec![name, tools]
        } else {
            vec![name]
        }
    }

    fn named(&self, tool: &str) -> Result<bool, Doubt> {
        let is = |name: &str, tool: &str| match self.shape.form {
            Form::Plain => name == tool,
            Form::Glob => glob::matches(name, tool),
            Form::Server => tool
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__")),
        };
        if is(self.name(), tool) {
            return Ok(true);
        }
        // `write` and `Write` are the same tool on some hosts.
        let is_like = match self.shape.form {
            Form::Plain => self.name().eq_ignore_ascii_case(tool),
            _ => is(
                &self.name().to_ascii_lowercase(),
                &tool.to_ascii_lowercase(),
            ),
        };
        if is_like {
            Err(Doubt::ToolCase {
                pattern: shown(self.name()),
                tool: shown(tool),
            })
        } else {
            Ok(false)
        }
    }

    /// Every call that the other one matches, this one matches too. Where that
    /// cannot be told it is `false`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        if self.shape.rule == Rule::Unreadable || other.shape.rule == Rule::Unreadable {
            return self.text == other.text;
        }
        let named = if self.shape.form == Form::Plain && other.shape.form == Form::Plain {
            self.name() == other.name()
        } else {
            let mine = self.globs();
            let covered =
                |narrow: &Cow<'_, str>| mine.iter().any(|wide| glob::covers(wide, narrow));
            other.globs().iter().all(covered)
        };
        named
            && match (&self.shape.rule, &other.shape.rule) {
                (Rule::Any, _) => true,
                (Rule::Command(wide), Rule::Command(narrow)) => narrow
                    .globs()
                    .all(|narrow| wide.globs().any(|wide| glob::covers(wide, narrow))),
                (Rule::Domain(wide), Rule::Domain(narrow)) => glob::covers(wide, narrow),
                (Rule::Path(wide), Rule::Path(narrow)) => {
                    wide == narrow || path::covers(wide, narrow)
                }
                (Rule::Own, Rule::Own) => self.text == other.text,
                _ => false,
            }
    }

    /// There is a call that both match.
    pub(super) fn overlaps(&self, other: &Self) -> Answer {
        let shared = |a: &[Cow<'_, str>], b: &[Cow<'_, str>]| {
            a.iter().any(|a| b.iter().any(|b| glob::overlaps(a, b)))
        };
        let plain = self.shape.form == Form::Plain && other.shape.form == Form::Plain;
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
        let ruled = || match (&self.shape.rule, &other.shape.rule) {
            (Rule::Unreadable, _) | (_, Rule::Unreadable) => Answer::Undecided,
            (Rule::Any, _) | (_, Rule::Any) => Answer::Yes,
            (Rule::Command(a), Rule::Command(b)) => a
                .globs()
                .any(|a| b.globs().any(|b| glob::overlaps(a, b)))
                .into(),
            (Rule::Domain(a), Rule::Domain(b)) => glob::overlaps(a, b).into(),
            (Rule::Path(a), Rule::Path(b)) => path::overlap(a, b),
            (Rule::Own, Rule::Own) if self.text == other.text => Answer::Yes,
            _ => Answer::Undecided,
        };
        match named {
            Answer::No => Answer::No,
            Answer::Yes => ruled(),
            Answer::Undecided if ruled() == Answer::No => Answer::No,
            Answer::Undecided => Answer::Undecided,
        }
    }

    /// It matches the call, or a part of it: as a forbidding pattern reads.
    pub(super) fn touches(&self, call: &Call<'_>) -> Result<bool, Doubt> {
        both(self.named(call.tool), || match &self.shape.rule {
            Rule::Command(rule) => rule.touches(call.commands()?),
            _ => self.ruled(call),
        })
    }

    /// It matches the whole call: as an allowing pattern reads.
    pub(super) fn permits(&self, call: &Call<'_>) -> Result<bool, Doubt> {
        both(self.named(call.tool), || match &self.shape.rule {
            Rule::Command(rule) => {
                let commands = call.commands()?;
                let all = commands.iter().all(|command| rule.permits(command));
                Ok(all && !commands.is_empty())
            }
            _ => self.ruled(call),
        })
    }

    /// It matches this one of the commands of a call.
    pub(super) fn permits_command(&self, call: &Call<'_>, command: &Command) -> bool {
        self.named(call.tool) == Ok(true)
            && matches!(&self.shape.rule, Rule::Command(rule) if rule.permits(command))
    }

    fn ruled(&self, call: &Call<'_>) -> Result<bool, Doubt> {
        match &self.shape.rule {
            Rule::Any => Ok(true),
            Rule::Domain(glob) => host::matches(glob, call.address()?),
            Rule::Path(glob) => path::matches(glob, call.path()?),
            Rule::Unreadable => Err(Doubt::Unreadable(shown(self.text))),
            Rule::Command(_) | Rule::Own => {
                let rule = self.text.get(self.name().len()..).unwrap_or_default();
                Err(Doubt::OwnRule(shown(rule)))
            }
        }
    }
}

fn both(
    named: Result<bool, Doubt>,
    ruled: impl FnOnce() -> Result<bool, Doubt>,
) -> Result<bool, Doubt> {
    match named {
        Ok(false) => Ok(false),
        Ok(true) => ruled(),
        Err(doubt) => match ruled() {
            Ok(false) => Ok(false),
            Ok(true) => Err(doubt),
            Err(other) => Err(other),
        },
    }
}

fn rule(name: &str, inside: &str) -> Rule {
    let is = |tools: &[&str]| tools.iter().any(|tool| tool.eq_ignore_ascii_case(name));
    if inside.is_empty() {
        Rule::Unreadable
    } else if let Some(written) = inside.strip_prefix("domain:") {
        host::pattern(written).map_or(Rule::Unreadable, Rule::Domain)
    } else if is(SHELLS) {
        CommandRule::of(inside).map_or(Rule::Unreadable, Rule::Command)
    } else if is(FILES) {
        path::pattern(inside).map_or(Rule::Unreadable, Rule::Path)
    } else {
        Rule::Own
    }
}
