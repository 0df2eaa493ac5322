//! The command line as clap reads it: its commands in groups, and empty variables of the
//! environment as if they were not there.

use std::ffi::OsStr;

use clap::builder::{Resettable, StyledStr};
use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _, FromArgMatches as _};

use super::args::Cli;

/// The groups of the help, each with its first command. The others follow in their order.
/// clap has groups of options only.
const GROUPS: &[(&str, &str)] = &[
    ("Find and read skills", "list"),
    ("Publish skills", "new"),
    ("Review skills", "review"),
    ("Install skills on this machine", "install"),
    ("Compose skills", "compose"),
    ("Load skills and call their tools", "load"),
    ("Learn", "learn"),
    ("Serve", "serve"),
    ("Say who may do what", "token"),
    ("Look after the data directory", "verify"),
    ("Set up this program", "completions"),
];

impl Cli {
    /// Reads the arguments and the environment of this process, which ends where they are
    /// wrong, or where help is asked for.
    #[must_use]
    pub fn read() -> Self {
        let matches = as_read().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The command line as it is parsed.
pub(super) fn as_read() -> Command {
    without_empty_variables(command_line())
}

/// The command line, with its commands in groups.
pub(super) fn command_line() -> Command {
    let command = Cli::command();
    let groups = groups(&command);
    let style = *command.get_styles().get_header();
    command.help_template(StyledStr::from(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n\n{style}Options:{style:#}\n{{options}}{{after-help}}"
    )))
}

/// Ends this process: its command line is wrong.
pub(super) fn wrong(kind: ErrorKind, message: &str) -> ! {
    as_read().error(kind, message).exit()
}

/// The heading above a command.
pub(super) fn heading(name: &str) -> Option<&'static str> {
    let group = GROUPS.iter().find(|(_, first)| *first == name);
    group.map(|(heading, _)| *heading)
}

/// The list of commands as clap writes it, with a heading before each group.
fn groups(command: &Command) -> String {
    // clap groups options only. It writes the list in the order of the table, and a heading
    // goes before the first of each group.
    let list = command.clone().help_template("{subcommands}").render_help();
    let style = command.get_styles().get_header();
    let mut lines = Vec::new();
    for (line, styled) in list
        .to_string()
        .lines()
        .zip(list.ansi().to_string().lines())
    {
        // A command is indented by two; a line that continues the one above, by more.
        let named = line
            .strip_prefix("  ")
            .and_then(|rest| rest.split(' ').next());
        if let Some(heading) = named.and_then(heading) {
            lines.push(format!("\n{style}{heading}:{style:#}"));
        }
        lines.push(styled.to_owned());
    }
    lines.join("\n")
}

/// The command without the variables that are empty: compose files and units set what
/// they leave out to nothing.
fn without_empty_variables(command: Command) -> Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| {
            if arg.get_env().is_some_and(is_empty) {
                arg.env(Resettable::Reset)
            } else {
                arg
            }
        })
        .mut_subcommands(without_empty_variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_begins_with_a_command_and_in_their_order() {
        let mut command = Cli::command();
        command.build();
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
        let headings: Vec<&str> = shown.filter_map(|c| heading(c.get_name())).collect();
        assert_eq!(
            headings,
            GROUPS
                .iter()
                .map(|(heading, _)| *heading)
                .collect::<Vec<_>>()
        );
        let first = command.get_subcommands().next().map(Command::get_name);
        assert_eq!(first, GROUPS.first().map(|(_, first)| *first));
    }
}
