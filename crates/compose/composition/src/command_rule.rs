//! Rules on commands: `git:*`, `npm run test`, `eas *`.

use super::command_line::{Command, ShellWord, base_name};
use super::uncertainty::{Uncertainty, shown};
use super::{glob, programs};

/// Globs of a command: of `git:*` these are `git` and `git *`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandRule {
    /// The last of them. The other one is what it begins with, so that there is
    /// one text for both.
    widest: Box<str>,
    has_two: bool,
}

/// More words of a command.
const WORDS: &str = " *";

impl CommandRule {
    /// The rule in parentheses; none where no command could be written like that.
    pub(super) fn of(inside: &str) -> Option<Self> {
        let (begin, has_two) = match inside.strip_suffix(":*") {
            Some(begin) => (begin, true),
            None => (inside, false),
        };
        let words: Vec<&str> = begin.split_whitespace().collect();
        // Commands are compared one by one and without quotes, so a rule with these
        // would be about no command at all.
        let unusual =
            |c: char| matches!(c, ';' | '&' | '|' | '<' | '>' | '$' | '`') || c.is_control();
        let quotes = |c: char| matches!(c, '\'' | '"' | '\\' | '{' | '(');
        if begin.contains(unusual) || words.first()?.contains(quotes) {
            return None;
        }
        let end = if has_two { WORDS } else { "" };
        Some(Self {
            widest: [&words.join(" "), end].concat().into(),
            has_two,
        })
    }

    /// What all of them begin with.
    pub(super) fn first(&self) -> &str {
        let short = self.widest.strip_suffix(WORDS).filter(|_| self.has_two);
        short.unwrap_or(&self.widest)
    }

    pub(super) fn globs(&self) -> impl Iterator<Item = &str> {
        let widest = self.has_two.then_some(&*self.widest);
        std::iter::once(self.first()).chain(widest)
    }

    fn matches(&self, command: &str) -> bool {
        self.globs().any(|glob| glob::matches(glob, command))
    }

    /// It is about exactly this command: as an allowing rule reads.
    pub(super) fn permits(&self, command: &Command) -> bool {
        // The strict text: `git log` must not permit a program whose name is `git log`.
        self.matches(command.text())
    }

    /// It is about one of these commands, or about what one of them may run: as a
    /// forbidding rule reads.
    pub(super) fn touches(&self, commands: &[Command]) -> Result<bool, Uncertainty> {
        let mut doubt = None;
        for command in commands {
            match self.touches_one(command) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(found) => doubt = doubt.or(Some(found)),
            }
        }
        doubt.map_or(Ok(false), Err)
    }

    fn touches_one(&self, command: &Command) -> Result<bool, Uncertainty> {
        // The loose text: quotes must not get a command past a rule that forbids it.
        let text = command.loose_text();
        let folder = command.program().len() - base_name(command.program()).len();
        let without_folder = text.get(folder..).unwrap_or_default();
        if self.matches(text) || self.matches(without_folder) {
            return Ok(true);
        }
        // Only now: a sure match says more than the doubt that `sudo` or `make` leaves.
        programs::runs_alone(command)?;
        let name = base_name(command.program());
        let mut wanted = self.first().split(' ');
        let program = wanted.next().unwrap_or_default();
        if !glob::matches(base_name(program), name) {
            return Ok(false);
        }
        // `/opt/bin/git push` is forbidden, and the call says `git push`: which `git` that is
        // depends on the machine.
        let folder = program.len() - base_name(program).len();
        let is_the_same = |glob: &str| {
            let glob = glob.get(folder..).unwrap_or_default();
            folder > 0 && glob::matches(glob, without_folder)
        };
        if self.globs().any(is_the_same) {
            return Err(Uncertainty::SameProgram(
                shown(command.program()),
                shown(program),
            ));
        }
        if may_mean(wanted, name, command) {
            return Err(Uncertainty::OtherArguments(shown(name)));
        }
        Ok(false)
    }
}

/// The arguments of a command may do what others do: options in another order, a
/// file by another path.
fn may_mean<'a>(wanted: impl Iterator<Item = &'a str>, program: &str, command: &Command) -> bool {
    let is_name = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !text.starts_with('-') && text.chars().all(plain)
    };
    let mut given = command.arguments();
    for wanted in wanted {
        let Some((first, rest)) = given.split_first() else {
            return false;
        };
        // Of `git` the first argument is the command, and a rule on another one is about something
        // else.
        if programs::has_commands(program) && is_name(wanted) && is_name(&first.text) {
            if wanted != first.text {
                return false;
            }
            given = rest;
            continue;
        }
        let may_be_option = |word: &ShellWord| {
            word.text.starts_with('-') || (word.has_glob && word.text.starts_with(['*', '?', '[']))
        };
        return !wanted.starts_with('-') || given.iter().any(may_be_option);
    }
    false
}
