//! Programs whose command line cannot name another program to run.
//!
//! A list of programs that run others could never be complete, so this is a list of
//! those that do not. What files and settings make them run does not count here: it
//! is about what a command line can ask for.

use std::sync::LazyLock;

use model::listed;
use rustc_hash::FxHashSet;

use super::command_line::Command;
use super::uncertainty::{Uncertainty, shown};

/// Programs that run no others, whatever their arguments are.
// The price is that `make` is undecided with a forbidden `Bash(rm:*)`: a makefile may well
// run `rm`.
static PLAIN: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| listed(include_str!("programs/plain.txt")).collect());

/// Programs that run no others unless an argument begins with one of these.
const BUT_FOR: &[(&str, &[&str])] = &[
    // Some systems have `ugrep` by these names, which takes any beginning of an option.
    ("egrep", GREP),
    ("fgrep", GREP),
    ("find", &["-exec", "-ok"]),
    ("grep", GREP),
    // `-v` takes the name of a variable, and an index in it is evaluated.
    ("printf", &["-v"]),
    ("rg", &["--hostname-bin", "--pre"]),
    // GNU takes any beginning of a long option for it: `--compress-program`.
    ("sort", &["--co"]),
];

/// Options by which `ugrep` runs programs.
const GREP: &[&str] = &["--filter", "--pager", "--view"];

/// Commands of Git to which no other program can be named.
static GIT: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| listed(include_str!("programs/git.txt")).collect());

/// Folders in which a program is the one that is known by its name.
// Elsewhere, `./git` say, it may be anything: an agent can write that file itself.
const FOLDERS: &[&str] = &[
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/opt/homebrew/bin/",
];

/// A program whose first argument is a command of its own.
pub(super) fn has_commands(program: &str) -> bool {
    program == "git"
}

/// The command runs its program and nothing else.
pub(super) fn runs_alone(command: &Command) -> Result<(), Uncertainty> {
    let written = command.program();
    let name = FOLDERS
        .iter()
        .find_map(|folder| written.strip_prefix(folder))
        .unwrap_or(written);
    if PLAIN.contains(name) {
        return Ok(());
    }
    let arguments = command.arguments();
    let is_plain = if has_commands(name) {
        arguments
            .first()
            .is_some_and(|first| !first.has_glob && GIT.contains(first.text.as_str()))
    } else {
        let but_for = BUT_FOR.iter().find(|(program, _)| *program == name);
        but_for.is_some_and(|(_, options)| {
            // The shell may replace a wildcard by the name of a file, and a file may be called
            // `--pre=sh`.
            let may_be = |text: &str, has_glob: bool| {
                let fixed = text.split(['*', '?', '[']).next().unwrap_or_default();
                let begins = |option: &&str| {
                    text.starts_with(option) || (has_glob && option.starts_with(fixed))
                };
                options.iter().any(begins)
            };
            !arguments
                .iter()
                .any(|word| may_be(&word.text, word.has_glob))
        })
    };
    if is_plain {
        Ok(())
    } else if is_assignment(written) {
        Err(Uncertainty::Assignment(shown(written)))
    } else {
        Err(Uncertainty::Launcher(shown(command.loose_text())))
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::super::command_line::commands;
    use super::*;

    #[test]
    fn only_what_is_known_to_run_alone_does() {
        let alone = |line: &str| {
            let commands = commands(line).expect("plain");
            commands.iter().all(|command| runs_alone(command).is_ok())
        };
        for line in [
            "ls -la /tmp",
            "/bin/cat x",
            "cat x | sort -u | uniq -c",
            "grep -rn 'a b' .",
            "egrep -n 'a|b' x",
            "/usr/bin/fgrep a x",
            "find . -name '*.rs' -type f",
            "find . -name x.*",
            "rg foo",
            "printf '%s' x",
            "git status",
            "git log --oneline -3",
            "/usr/bin/git diff HEAD",
        ] {
            assert!(alone(line), "{line}");
        }
        for line in [
            "",
            "''",
            "./ls",
            "/tmp/bin/ls",
            "~/bin/ls",
            "LS",
            "ls.exe",
            "X=1 ls",
            "PATH+=:. ls",
            "env ls",
            "find . -exec rm x",
            "find . -okdir rm x",
            "find . *",
            "find . -e*",
            "sort --compress-program=sh x",
            "sort --comp sh x",
            "rg --pre sh x",
            "grep --filter='*:sh' a x",
            "egrep --filter='*:sh' a x",
            "fgrep --pager=sh a x",
            "/usr/bin/egrep --view=sh a x",
            "egrep a *",
            "printf -v 'a[0]' x",
            "git -c alias.x=y x",
            "git --exec-path=. status",
            "git x",
            "git clone ext::sh",
            "git sta*",
            "git",
            "test -v 'a[0]'",
            "[ -v 'a[0]' ]",
            "! ls",
            "time ls",
            "if ls",
            "sed p x",
            "awk 1 x",
            "xargs ls",
            "tar xf x",
            "l\u{131}s",
        ] {
            assert!(line.is_empty() || !alone(line), "{line}");
        }
    }
}
