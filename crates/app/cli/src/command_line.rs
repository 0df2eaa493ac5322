//! The command line as clap reads it: its commands in groups, and empty variables of the
//! environment as if they were not there.

use std::ffi::OsStr;

use clap::builder::{Resettable, StyledStr};
use clap::{Command, CommandFactory as _, FromArgMatches as _};

use super::args::Cli;

/// The groups of the help, each with its commands, in the order in which it shows them.
/// clap has groups of options only.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Find and read skills",
        &[
            "list",
            "search",
            "similar",
            "show",
            "read",
            "versions",
            "diff",
            "analyze",
            "recommend",
            "metrics",
            "watch",
            "export",
        ],
    ),
    (
        "Publish skills",
        &[
            "new", "dev", "import", "publish", "validate", "scan", "activate", "yank", "unyank",
            "delete", "source", "sync",
        ],
    ),
    (
        "Review skills",
        &["held", "approve", "reject", "block", "unblock", "blocklist"],
    ),
    (
        "Install skills on this machine",
        &[
            "install",
            "uninstall",
            "installed",
            "update",
            "outdated",
            "audit",
        ],
    ),
    (
        "Compose skills",
        &[
            "compose",
            "check",
            "lock",
            "conflicts",
            "budget",
            "activation",
        ],
    ),
    (
        "Load skills and call their tools",
        &[
            "load", "detail", "session", "unload", "tools", "call", "calls",
        ],
    ),
    ("Learn", &["learn"]),
    ("Serve", &["serve", "mcp", "status", "doctor", "config"]),
    (
        "Say who may do what",
        &["token", "namespace", "whoami", "audit-trail"],
    ),
    (
        "Look after the data directory",
        &[
            "verify", "backup", "restore", "salvage", "compact", "reindex",
        ],
    ),
    ("Set up this program", &["completions", "man", "help"]),
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

/// The command line as it is read.
pub(super) fn as_read() -> Command {
    without_empty_variables(command_line())
}

/// The command line, with its commands in groups.
pub(super) fn command_line() -> Command {
    let mut command = Cli::command();
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    // clap makes `help` itself, and shows it last.
    for (order, name) in names.filter(|name| **name != "help").enumerate() {
        command = command.mut_subcommand(name, |command| command.display_order(order));
    }
    let groups = groups(&command);
    let style = *command.get_styles().get_header();
    command.help_template(StyledStr::from(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n\n{style}Options:{style:#}\n{{options}}{{after-help}}"
    )))
}

/// The list of commands as clap writes it, with a heading before each group.
fn groups(command: &Command) -> String {
    // clap groups options only. It writes the list in the order of the table, and a heading
    // goes before the first of each group.
    let list = command.clone().help_template("{subcommands}").render_help();
    let style = command.get_styles().get_header();
    let mut headings = Vec::new();
    for (heading, names) in GROUPS {
        headings.push(Some(heading));
        headings.extend(names.iter().skip(1).map(|_| None));
    }
    let mut headings = headings.into_iter();
    let mut lines = Vec::new();
    for line in list.ansi().to_string().lines() {
        // What goes on with the line above is further in.
        let begins = line.starts_with("  ") && !line.starts_with("   ");
        if begins && let Some(Some(heading)) = headings.next() {
            lines.push(format!("\n{style}{heading}:{style:#}"));
        }
        lines.push(line.to_owned());
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
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        let mut command = Cli::command();
        command.build();
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        shown.sort_unstable();
        assert_eq!(
            grouped, shown,
            "GROUPS has each command that is not hidden once"
        );
    }
}
