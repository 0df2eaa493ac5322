//! The commands, in the order in which the help shows them, and the options of all. The
//! comments are the help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use http::{HeaderName, HeaderValue};

use super::output::Format;
use super::renamed::Renamed;
use super::skill_args::{OfNamed, OfSkill, OfVersion};
use super::{
    audit, author, block, checks, compose, config, data, export, import, install, learn, manual,
    mcp, namespace, review, scan, search, serve, similar, skills, sources, sync, token, tools,
    versions,
};

const EXAMPLES: &str = "\
Examples:
  repertoire serve                              start a server on 127.0.0.1:50051
  repertoire new refund-desk                    begin a skill
  repertoire import ./skills                    publish every skill below a folder
  repertoire search review a pull request       what helps with a task
  repertoire list --category database           what is there
  repertoire show write_sql                     one skill, in full
  repertoire activate github/acme/refunds 3     roll back to version 3

Commands that read or write skills talk to the server that --server names, else to
the one that has the data directory open, else open the data directory themselves;
`mcp` and `watch` start a server for it instead, which stops when no window is connected.
Those on the data directory itself (status, verify, backup, restore, salvage, compact,
reindex) are for this machine's, and refuse --server.";

/// Keeps an organisation's agent skills and serves them to any agent.
#[derive(Debug, Parser)]
#[command(name = "repertoire", version, long_version = server::version(), about, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
// Else the help of a command has its own options somewhere among these.
#[command(next_help_heading = "Options of every command")]
pub(super) struct Global {
    /// Server to talk to, such as `http://127.0.0.1:50051` or `https://skills.example.com`.
    #[arg(long, global = true, env = "REPERTOIRE_SERVER", value_name = "URL")]
    pub(super) server: Option<String>,
    /// A header of every call to that server, such as `X-Team: shops`. A token goes into
    /// `REPERTOIRE_TOKEN`.
    #[arg(long = "header", global = true, value_name = "NAME: VALUE", value_parser = super::remote::header)]
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// Certificates (PEM) of authorities to trust in addition to the system's, for `https://`.
    #[arg(long, global = true, env = "REPERTOIRE_CA", value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    /// The certificate (PEM) that this caller shows, where the server asks for one.
    #[arg(long, global = true, env = "REPERTOIRE_CERT", value_name = "FILE")]
    pub(super) cert: Option<PathBuf>,
    /// The key (PEM) of that certificate.
    #[arg(long, global = true, env = "REPERTOIRE_KEY", value_name = "FILE")]
    pub(super) key: Option<PathBuf>,
    /// The data directory. [default: the platform's, such as ~/.local/share/repertoire]
    #[arg(long, global = true, env = "REPERTOIRE_DATA", value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// A config file (YAML). Environment and flags go before it.
    #[arg(long, global = true, env = "REPERTOIRE_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Output format: `table` for a terminal, `plain` text that is not cut, `tsv` and `ids`
    /// for scripts (a line per row), `json`. [default: table, into a pipe plain]
    #[arg(
        long,
        global = true,
        env = "REPERTOIRE_FORMAT",
        value_name = "FORMAT",
        hide_possible_values = true
    )]
    format: Option<Format>,
    /// The same as `--format json`.
    #[arg(long, global = true)]
    json: bool,
}

impl Global {
    /// The format that was asked for.
    pub(super) fn format(&self) -> Option<Format> {
        if self.json {
            Some(Format::Json)
        } else {
            self.format
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List skills.
    List(skills::ListSkills),
    /// Find skills by words or by a task, with reasons.
    Search(search::Search),
    /// List near-duplicates of a skill.
    Similar(similar::Similar),
    /// Show the details of a skill.
    Show(OfVersion),
    /// Print a file of a skill, by default its SKILL.md.
    Read(skills::Read),
    /// List the versions of a skill, newest first.
    Versions(OfSkill),
    /// Compare two versions of a skill.
    Diff(versions::Diff),
    /// Detect the technologies of a codebase.
    Analyze(search::Analyze),
    /// Recommend skills for a codebase.
    Recommend(search::Recommend),
    /// Show how often a skill is read and loaded.
    Metrics(OfSkill),
    /// Follow changes of skills, a line per event.
    Watch(skills::Watch),
    /// Write a version as an archive, or all skills as a tree of files.
    Export(export::Export),
    /// Create a new skill from a template.
    New(author::New),
    /// Watch a folder and check its skills on save.
    Dev(author::Dev),
    /// Publish every skill below some folders.
    Import(import::Import),
    /// Publish one skill.
    Publish(import::Publish),
    /// Check skills and report every problem, without publishing. Needs no server.
    Validate(import::Validate),
    /// Scan the skills of a folder for security problems.
    Scan(scan::Scan),
    /// Make a version the active one; an older one to roll back.
    Activate(OfNamed),
    /// Withdraw a version: it answers only when it is asked for exactly.
    Yank(versions::Yank),
    /// Put a withdrawn version back.
    Unyank(OfNamed),
    /// Delete a skill with all its versions.
    Delete(versions::Delete),
    /// List, add and remove the sources that skills are synced from.
    Source(sources::Source),
    /// Sync sources now, or show the results of syncs.
    Sync(sync::Sync),
    /// List, show, approve and reject the versions that are held for review.
    Review(review::Review),
    /// Block skills, and list those that are blocked.
    Block(block::Block),
    #[command(flatten)]
    Installs(install::Command),
    /// Compose skills into one set of permissions, with reasons.
    Compose(compose::Compose),
    /// Check whether skills permit a call of a tool. Exits with 3 where they do not.
    Check(compose::Check),
    /// Pin skills, and all that they require, in a lock file.
    Lock(compose::Lock),
    /// Report conflicts of a skill with others. Exits with 3 where there is one.
    Conflicts(checks::Conflicts),
    /// Check whether skills fit into a context. Exits with 3 where they do not.
    Budget(checks::Budget),
    /// Check whether agents can and do use skills. Exits with 3 where they cannot.
    Activation(checks::Activation),
    /// Load a skill into a session: print its instructions and unlock its tools.
    Load(tools::Load),
    /// Print a resource of a loaded skill.
    Detail(tools::Detail),
    /// List the skills of a session.
    Session(tools::Session),
    /// Unload a skill from a session.
    Unload(tools::Unload),
    /// List the tools that skills unlock.
    Tools(tools::ListTools),
    /// Call a tool of a loaded skill.
    Call(tools::CallTool),
    /// List past calls of tools, newest first.
    Calls(tools::Calls),
    /// Learn to use skills and to write them: paths of exercises that are graded.
    Learn(learn::Learn),
    /// Start a server.
    Serve(serve::Serve),
    /// Serve MCP on stdin and stdout, for agents that start their own servers.
    Mcp(mcp::Mcp),
    /// Show the running server. Exits with 1 without one.
    Status,
    /// Check this machine and the data directory.
    Doctor,
    /// Show and check the config file.
    Config(config::ConfigCommand),
    /// Create, list and revoke tokens, for a server that requires authentication.
    Token(token::Token),
    /// Manage namespaces: owners and visibility.
    Namespace(namespace::Namespace),
    /// Show your caller name and what you may do.
    Whoami,
    /// List the audit trail, newest first, or follow it.
    AuditTrail(audit::Audit),
    /// Check the whole data directory for damage. The server must be stopped.
    Verify,
    /// Write the data directory to one file, also while a server runs.
    Backup(data::Backup),
    /// Create a data directory from a backup.
    Restore(data::Restore),
    /// Recover a damaged data directory into a new one, and report what is lost.
    Salvage(data::Salvage),
    /// Free the unused space of the data directory, also while a server runs.
    Compact,
    /// Rebuild the search index. The server must be stopped.
    Reindex,
    /// Print the script that completes commands in a shell.
    Completions(manual::Completions),
    /// Print the manual page, or write a page for each command to a folder.
    Man(manual::Manual),
    /// The server that a window starts for its data directory.
    #[command(hide = true)]
    Background,
    #[command(flatten)]
    Renamed(Renamed),
}

impl Command {
    /// It prints rows, so it can print them alone.
    pub(super) fn prints_rows(&self) -> bool {
        match self {
            Self::List(_)
            | Self::Search(_)
            | Self::Similar(_)
            | Self::Recommend(_)
            | Self::Analyze(_)
            | Self::Versions(_)
            | Self::Metrics(_)
            | Self::Import(_)
            | Self::Publish(_)
            | Self::Validate(_)
            | Self::Lock(_)
            | Self::Budget(_)
            | Self::Session(_)
            | Self::Tools(_)
            | Self::Calls(_)
            | Self::AuditTrail(_)
            | Self::Doctor
            | Self::Config(_) => true,
            // Without an action these list.
            Self::Review(it) => it.prints_rows(),
            Self::Block(it) => matches!(it.action, None | Some(block::Action::List(_))),
            Self::Source(it) => matches!(it.action, None | Some(sources::Action::List)),
            Self::Token(it) => matches!(it.action, None | Some(token::Action::List)),
            Self::Namespace(it) => matches!(it.action, None | Some(namespace::Action::List)),
            Self::Sync(sync) => sync.prints_rows(),
            Self::Learn(learn) => learn.prints_rows(),
            _ => false,
        }
    }
}
