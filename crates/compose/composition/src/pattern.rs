//! Tool patterns as skills write them: `Read`, `*`, `mcp__server`,
//! `mcp__server__*`, `Bash(git:*)`, `WebFetch(domain:example.com)`,
//! `Read(/tmp/**)`.
//!
//! A pattern is the name of a tool, in which `*` stands for any text, and
//! perhaps a rule on its arguments in parentheses. Nothing is guessed: what
//! cannot be decided of two patterns is [`Answer::Undecided`], and of a call it is
//! an [`Uncertainty`], which says why.

use std::borrow::Cow;
use std::sync::Arc;

use super::call::Call;
use super::command_line::Command;
use super::command_rule::CommandRule;
use super::uncertainty::{Uncertainty, shown};
use super::{glob, host, path};

/// What two patterns say of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// It cannot be decided.
    Undecided,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A tool, or some of its calls, or several tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolPattern {
    /// As it is written.
    text: Arc<str>,
    /// Bytes of the text that are the name.
    name: usize,
    /// The name in the form in which spellings are compared.
    folded: Box<str>,
    form: PatternForm,
    rule: Rule,
}

/// The form of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternForm {
    /// One tool.
    Plain,
    /// It has a `*`.
    Glob,
    /// `mcp__server`: all tools of a server.
    Server,
}

/// The rule in parentheses.
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

impl ToolPattern {
    /// Reads a pattern. Any text is one; what cannot be read matches no call for
    /// sure.
    pub(super) fn parse(text: Arc<str>) -> Self {
        // A pattern is globs, nothing more. So whether one covers or overlaps another is
        // decided exactly, where a regular expression would be guessed at.
        let (name, inside) = match text.split_once('(') {
            None => (&*text, None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')'))),
        };
        let folded = model::fold_tool(name);
        let is_server = |name: &str| {
            let server = name.strip_prefix(SERVER);
            server.is_some_and(|server| !server.contains("__"))
        };
        let form = if name.contains('*') {
            PatternForm::Glob
        } else if is_server(name) || is_server(&folded) {
            PatternForm::Server
        } else {
            PatternForm::Plain
        };
        let rule = match inside {
            None if name.is_empty() || name.contains(')') => Rule::Unreadable,
            None | Some(Some("*")) => Rule::Any,
            Some(Some(inside)) if !name.is_empty() => rule(&folded, inside.trim()),
            Some(_) => Rule::Unreadable,
        };
        Self {
            name: name.len(),
            folded: folded.into(),
            form,
            rule,
            text,
        }
    }

    /// It names one tool, whatever it says of its arguments.
    pub(super) fn is_one_tool(&self) -> bool {
        self.form == PatternForm::Plain
    }

    /// The pattern as it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The pattern as it is written, shared.
    pub(super) fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The name of the tool, or its glob.
    pub(super) fn name(&self) -> &str {
        self.text.get(..self.name).unwrap_or(&self.text)
    }

    /// Their commands begin with different words, so that no call is of both.
    pub(super) fn is_disjoint(&self, other: &Self) -> bool {
        // A set compares each pattern with each. Most pairs are commands that differ in their
        // first letters, which this finds out without the walks of `covers` and `overlaps`.
        match (&self.rule, &other.rule) {
            (Rule::Command(a), Rule::Command(b)) => glob::begin_apart(a.first(), b.first()),
            _ => false,
        }
    }

    /// It cannot be read as a pattern.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self.rule, Rule::Unreadable)
    }

    /// The name, or its glob, in the form in which spellings are compared.
    pub(super) fn folded(&self) -> &str {
        &self.folded
    }

    /// Globs that together are a spelling of the name.
    fn globs<'a>(&self, name: &'a str) -> Vec<Cow<'a, str>> {
        let name = Cow::Borrowed(name);
        if self.form == PatternForm::Server {
            let tools = format!("{name}__*").into();
            vec![name, tools]
        } else {
            vec![name]
        }
    }

    fn named(&self, call: &Call<'_>) -> Result<bool, Uncertainty> {
        let is = |name: &str, tool: &str| match self.form {
            PatternForm::Plain => name == tool,
            PatternForm::Glob => glob::matches(name, tool),
            PatternForm::Server => tool
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("__")),
        };
        if is(self.name(), call.tool) {
            return Ok(true);
        }
        // `write` and `Write` are the same tool on some hosts, and two on others: neither permits
        // the other, and neither gets past a rule that forbids the other.
        if is(&self.folded, &call.folded) {
            Err(Uncertainty::ToolSpelling {
                pattern: shown(self.name()),
                tool: shown(call.tool),
            })
        } else {
            Ok(false)
        }
    }

    /// Every call that the other one matches, this one matches too. Where that
    /// cannot be decided it is `false`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        // What is forbidden in unreadable words is still forbidden in the same words.
        if self.rule == Rule::Unreadable || other.rule == Rule::Unreadable {
            return self.text == other.text;
        }
        let named = if self.form == PatternForm::Plain && other.form == PatternForm::Plain {
            self.name() == other.name()
        } else {
            let mine = self.globs(self.name());
            let covered =
                |narrow: &Cow<'_, str>| mine.iter().any(|wide| glob::covers(wide, narrow));
            other.globs(other.name()).iter().all(covered)
        };
        named
            && match (&self.rule, &other.rule) {
                (Rule::Any, _) => true,
                (Rule::Command(wide), Rule::Command(narrow)) => narrow
                    .globs()
                    .all(|narrow| wide.globs().any(|wide| glob::covers(wide, narrow))),
                (Rule::Domain(wide), Rule::Domain(narrow)) => glob::covers(wide, narrow),
                (Rule::Path(wide), Rule::Path(narrow)) => {
                    wide == narrow || path::covers(wide, narrow)
                }
                // Only the host knows what such a rule means; of the same text it means the
                // same.
                (Rule::Own, Rule::Own) => self.text == other.text,
                _ => false,
            }
    }

    /// There is a call that both match.
    pub(super) fn overlaps(&self, other: &Self) -> Answer {
        let shared = |a: &[Cow<'_, str>], b: &[Cow<'_, str>]| {
            a.iter().any(|a| b.iter().any(|b| glob::overlaps(a, b)))
        };
        let plain = self.form == PatternForm::Plain && other.form == PatternForm::Plain;
        let named = if plain && self.name() == other.name() {
            Answer::Yes
        } else if plain && self.folded != other.folded {
            Answer::No
        } else if !plain && shared(&self.globs(self.name()), &other.globs(other.name())) {
            Answer::Yes
        } else if shared(&self.globs(&self.folded), &other.globs(&other.folded)) {
            Answer::Undecided
        } else {
            Answer::No
        };
        let ruled = || match (&self.rule, &other.rule) {
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
    pub(super) fn touches(&self, call: &Call<'_>) -> Result<bool, Uncertainty> {
        both(self.named(call), || match &self.rule {
            Rule::Command(rule) => rule.touches(call.commands()?),
            _ => self.ruled(call),
        })
    }

    /// It matches the whole call: as an allowing pattern reads.
    pub(super) fn permits(&self, call: &Call<'_>) -> Result<bool, Uncertainty> {
        both(self.named(call), || match &self.rule {
            Rule::Command(rule) => {
                let commands = call.commands()?;
                let all = commands.iter().all(|command| rule.permits(command));
                // Of no command all are permitted. A line like `;` is nothing to allow.
                Ok(all && !commands.is_empty())
            }
            _ => self.ruled(call),
        })
    }

    /// It matches this one of the commands of a call.
    pub(super) fn permits_command(&self, call: &Call<'_>, command: &Command) -> bool {
        self.named(call) == Ok(true)
            && matches!(&self.rule, Rule::Command(rule) if rule.permits(command))
    }

    fn ruled(&self, call: &Call<'_>) -> Result<bool, Uncertainty> {
        match &self.rule {
            Rule::Any => Ok(true),
            Rule::Domain(glob) => host::matches(glob, call.address()?),
            Rule::Path(glob) => path::matches(glob, call.path()?),
            Rule::Unreadable => Err(Uncertainty::Unreadable(shown(&self.text))),
            Rule::Command(_) | Rule::Own => {
                let rule = self.text.get(self.name().len()..).unwrap_or_default();
                Err(Uncertainty::OwnRule(shown(rule)))
            }
        }
    }
}

/// The name and the rule both match; the rule is asked for only where the name may match.
fn both(
    named: Result<bool, Uncertainty>,
    ruled: impl FnOnce() -> Result<bool, Uncertainty>,
) -> Result<bool, Uncertainty> {
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

fn rule(folded: &str, inside: &str) -> Rule {
    let is = |tools: &[&str]| tools.contains(&folded);
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
