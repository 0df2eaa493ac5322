//! Completions for shells and manual pages, made from the command line itself.

use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;

use super::command_line::{command_line, heading};
use super::output::{Done, GOOD, Output, counted};

const COMPLETIONS_HELP: &str = "\
Examples:
  repertoire completions bash > ~/.local/share/bash-completion/completions/repertoire
  repertoire completions zsh > ~/.zfunc/_repertoire            with ~/.zfunc in fpath
  repertoire completions fish > ~/.config/fish/completions/repertoire.fish";

const MAN_HELP: &str = "\
Examples:
  repertoire man | man -l -                         read it now
  repertoire man ~/.local/share/man/man1            then `man repertoire-list`";

const REFERENCE: &str = "\
# The command line

Every command, as `repertoire COMMAND --help` shows it; the program writes this page itself. An option goes before its variable of the environment,
which goes before the [config file](operations.md#settings).

On a terminal a command prints tables: each row is a line that fits, and what is first in it is never cut. Into a pipe goes the same text without
colour, with nothing cut. Scripts ask for less or for more: `--format ids` prints what is first in each row, `--format tsv` rows with tabs and no
header, `--json` all that the server answered. Exit codes: 0 all is well, 1 something was refused or failed, 2 the command line is wrong; a command
that has more says so.

```sh
repertoire list --category devops --format ids
repertoire search 'deploy to kubernetes' --format tsv | cut -f 1,3
```

## Options of every command
";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = MAN_HELP)]
pub(super) struct Manual {
    /// Folder to write a page for each command to. [default: print the page of `repertoire`]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print docs/cli.md.
    #[arg(long, hide = true)]
    markdown: bool,
}

/// The command line without hidden commands.
fn shown() -> Command {
    let all = command_line().disable_help_subcommand(true);
    Command::new("repertoire")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .about(Resettable::from(all.get_about().cloned()))
        .after_help(Resettable::from(all.get_after_help().cloned()))
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|c| !c.is_hide_set()).cloned())
}

pub(super) fn completions(options: &Completions, output: &Output) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut shown(), "repertoire", &mut script);
    output.file(&script, true)
}

pub(super) fn man(options: &Manual, output: &Output) -> Done {
    if options.markdown {
        return output.file(reference().as_bytes(), true);
    }
    let mut command = shown();
    command.build();
    let Some(folder) = &options.folder else {
        return output.file(&page(&command)?.1, true);
    };
    std::fs::create_dir_all(folder)?;
    let mut pages = Vec::new();
    write_pages(&command, folder, &mut pages)?;
    output.value(&json!({"directory": folder, "pages": pages}))?;
    let pages = counted(pages.len(), "manual page");
    output.line(&format!("{GOOD}{pages} in {}{GOOD:#}", folder.display()))
}

/// docs/cli.md: the help of every command, in its groups. The common options come first, and
/// once.
fn reference() -> String {
    // Else the page would have values from the environment of the machine that renders it.
    let mut command = shown().mut_args(|arg| arg.hide_env_values(true));
    command.build();
    let common = command
        .clone()
        .help_template("{options}")
        .render_help()
        .to_string();
    let common = common.trim_end();
    let mut page = vec![format!("{REFERENCE}\n```text\n{common}\n```\n")];
    for command in command.get_subcommands() {
        if let Some(heading) = heading(command.get_name()) {
            page.push(format!("\n## {heading}\n"));
        }
        describe(command, &mut page);
    }
    page.concat()
}

/// A command's section, then those of its commands.
fn describe(command: &Command, page: &mut Vec<String>) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_about().cloned().unwrap_or_default();
    let hidden = |arg: Arg| {
        let hide = arg.is_hide_set() || arg.is_global_set() || arg.get_id() == "help";
        arg.hide(hide).hide_env_values(true)
    };
    let mut own = command
        .clone()
        .mut_args(hidden)
        .help_template("{usage}\n\n{all-args}{after-help}");
    let help = own.render_help().to_string();
    let help = help.trim_end();
    page.push(format!(
        "\n### {name}\n\n{about}.\n\n```text\n{help}\n```\n"
    ));
    for command in command.get_subcommands() {
        describe(command, page);
    }
}

/// Writes the page of a command, then those of its commands.
fn write_pages(command: &Command, folder: &Path, pages: &mut Vec<String>) -> Done {
    let (name, text) = page(command)?;
    std::fs::write(folder.join(&name), text)?;
    pages.push(name);
    for command in command.get_subcommands() {
        write_pages(command, folder, pages)?;
    }
    Ok(())
}

/// The name of a command's page and its text, in which examples keep their lines.
fn page(command: &Command) -> std::io::Result<(String, Vec<u8>)> {
    // clap_mangen would join the lines of the examples: they are added below as they are.
    let page = Man::new(command.clone().after_help(Resettable::Reset));
    let mut text = Vec::new();
    page.render(&mut text)?;
    if let Some(help) = command.get_after_help() {
        let mut notes = Roff::new();
        notes.control("SH", ["NOTES"]).control("nf", []);
        for line in help.to_string().lines() {
            notes.text([roman(line)]);
        }
        notes.control("fi", []);
        notes.to_writer(&mut text)?;
    }
    Ok((page.get_filename(), text))
}
