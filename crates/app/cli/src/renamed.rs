//! Former names of commands: they still work, and no help shows them.

use clap::error::ErrorKind;
use clap::{Args, Subcommand};

use super::args::Command;
use super::block::{self, Block};
use super::command_line::wrong;
use super::review::{self, Review};
use super::skill_args::OfId;

#[derive(Debug, Subcommand)]
pub(super) enum Renamed {
    /// `review list`, and with a skill `review show`.
    #[command(hide = true)]
    Held(Held),
    /// `review approve`.
    #[command(hide = true)]
    Approve(review::Decision),
    /// `review reject`.
    #[command(hide = true)]
    Reject(review::Decision),
    /// `block remove`.
    #[command(hide = true)]
    Unblock(OfId),
    /// `block list`.
    #[command(hide = true)]
    Blocklist(block::ListBlocked),
}

#[derive(Debug, Args)]
pub(super) struct Held {
    /// The skill: its id or its short name.
    skill: Option<String>,
    /// Its number, or its semantic version. [default: the active version, else the highest]
    #[arg(requires = "skill")]
    version: Option<String>,
    #[command(flatten)]
    reading: review::Reading,
}

/// Returns the command by its current name, and that name where it was called by a former one.
pub(super) fn now(command: Command) -> (Command, Option<&'static str>) {
    let (command, name) = match command {
        Command::Renamed(Renamed::Held(Held {
            skill,
            version,
            reading,
        })) => match skill {
            None => (reviewed(review::Action::List), "review list"),
            Some(skill) => {
                let held = review::Held {
                    skill,
                    version,
                    reading,
                };
                (reviewed(review::Action::Show(held)), "review show")
            }
        },
        Command::Renamed(Renamed::Approve(it)) => {
            (reviewed(review::Action::Approve(it)), "review approve")
        }
        Command::Renamed(Renamed::Reject(it)) => {
            (reviewed(review::Action::Reject(it)), "review reject")
        }
        Command::Renamed(Renamed::Unblock(it)) => {
            (blocked(block::Action::Remove(it)), "block remove")
        }
        Command::Renamed(Renamed::Blocklist(it)) => {
            (blocked(block::Action::List(it)), "block list")
        }
        Command::Block(Block {
            action,
            skill: Some(skill),
            reason,
        }) => {
            if action.is_some() {
                let error = "`block SKILL` and a command of `block` do not go together";
                wrong(ErrorKind::ArgumentConflict, error);
            }
            let reason = reason.unwrap_or_default();
            let add = block::Add { skill, reason };
            (blocked(block::Action::Add(add)), "block add")
        }
        command => return (command, None),
    };
    (command, Some(name))
}

fn reviewed(action: review::Action) -> Command {
    Command::Review(Review {
        action: Some(action),
    })
}

fn blocked(action: block::Action) -> Command {
    Command::Block(Block {
        action: Some(action),
        skill: None,
        reason: None,
    })
}
