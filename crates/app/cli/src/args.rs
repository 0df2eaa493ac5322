//! What the command line understands. The comments are its help.

use std::net::SocketAddr;
use std::path::PathBuf;

use access_log::AccessMode;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use http::{HeaderName, HeaderValue};

use super::compose::{Check, Compose, Lock};
use super::output::Format;
use super::skill_args::{
    Diff, Import, List, OfNamed, OfSkill, OfVersion, Publish, Read, Validate, Watch,
};
use super::versions;
use super::{
    audit, author, blocklist, checks, data, export, install, learn, manual, namespace, review,
    scan, search, similar, sources, sync, token, tools,
};
use origins::AllowedHost;
use server::{self, LogFormat, listen_address};

const EXAMPLES: &str = "\
Examples:
  repertoire serve                              start a server on 127.0.0.1:50051
  repertoire new refund-desk                    begin a skill
  repertoire import ./skills                    publish every skill below a folder
  repertoire search review a pull request       what helps with a task
  repertoire list --category database           what is there
  repertoire show write_sql                     one skill, in full
  repertoire activate my-skill 3                roll back to version 3

Commands that read or write skills talk to the server that --server names, else to
the one that has the data directory open, else open the data directory themselves;
`mcp` and `watch` start a server for it instead, which leaves when nobody uses it.
Those on the data directory itself (status, verify, backup, restore, salvage, compact,
reindex) are for this machine's, and refuse --server.";

const MCP_EXAMPLES: &str = "\
Examples:
  claude mcp add repertoire -- repertoire mcp
  repertoire mcp --toolset all                             every tool there is
  repertoire mcp --server http://skills.internal:50051     the bridge to a running server

Without --server all windows on a data directory share one server, which the first one
starts, and each sees the skills around it: those of its folder and of the home. A running server also speaks MCP over HTTP, at /mcp and /mcp/TOOLSET.";

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
pub(super) struct Global {
    /// Server to talk to, such as `http://127.0.0.1:50051` or `https://skills.example.com`.
    #[arg(long, global = true, env = "REPERTOIRE_SERVER", value_name = "URL")]
    pub(super) server: Option<String>,
    /// A header of every call to that server, such as `X-Team: shops`. A token goes into
    /// `REPERTOIRE_TOKEN`.
    #[arg(long = "header", global = true, value_name = "NAME: VALUE", value_parser = super::remote::header)]
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// Certificates (PEM) of authorities to trust beside the system's, for `https://`.
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
    /// Form of what is printed: `table` for a terminal, `plain` text that is not cut, `tsv`
    /// and `ids` for scripts, a line a row, `json`. [default: table, into a pipe plain]
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
    /// The form that is asked for.
    pub(super) fn format(&self) -> Option<Format> {
        if self.json {
            Some(Format::Json)
        } else {
            self.format
        }
    }
}

impl Command {
    /// What it prints are rows: it can print them alone.
    pub(super) fn prints_rows(&self) -> bool {
        match self {
            Self::List(_)
            | Self::Search(_)
            | Self::Similar(_)
            | Self::Recommend(_)
            | Self::Analyze(_)
            | Self::Versions(_)
            | Self::Metrics(_)
            | Self::Blocklist(_)
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
            Self::Held(held) => held.skill.is_none(),
            Self::Source(source) => source.prints_rows(),
            Self::Sync(sync) => sync.prints_rows(),
            Self::Token(token) => token.prints_rows(),
            Self::Namespace(namespace) => namespace.prints_rows(),
            Self::Learn(learn) => {
                matches!(
                    learn.action,
                    learn::Action::List { .. } | learn::Action::Show { .. }
                )
            }
            _ => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start a server.
    Serve(Serve),
    /// The server that a window starts for its data directory.
    #[command(hide = true)]
    Background,
    /// Say which server has the data directory open. Exits with 1 without one.
    Status,
    /// Begin a skill: make its folder, with files that say what goes where.
    New(author::New),
    /// Look at the skills of a folder whenever one is saved, and say what is wrong.
    #[command(after_help = author::DEV_HELP)]
    Dev(author::Dev),
    /// Publish every skill below some folders.
    Import(Import),
    /// Publish one skill.
    Publish(Publish),
    /// Say what may be wrong with the skills of a folder: what harms whoever uses them.
    #[command(after_help = scan::SCAN_HELP)]
    Scan(scan::Scan),
    /// Say all that is wrong with skills, and store nothing. Needs no server.
    Validate(Validate),
    /// List skills.
    List(List),
    /// Find skills by words or by a task, and say why.
    Search(search::Search),
    /// List skills with nearly the same text as one: copies, and what became of them.
    Similar(similar::Similar),
    /// Say what a codebase is made of.
    Analyze(search::Analyze),
    /// Recommend skills for a codebase.
    Recommend(search::Recommend),
    /// Show all that is known of a skill.
    Show(OfVersion),
    /// Print a file of a skill, by default its SKILL.md.
    Read(Read),
    /// List the versions of a skill, newest first.
    Versions(OfSkill),
    /// Compare two versions of a skill.
    Diff(Diff),
    /// Make a version the active one: an older one is the rollback.
    Activate(OfNamed),
    /// Withdraw a version: it answers only when it is asked for exactly.
    Yank(versions::Yank),
    /// Put a withdrawn version back.
    Unyank(OfNamed),
    /// Delete a skill with all its versions.
    Delete(versions::Delete),
    /// Block a skill: nobody finds it, loads it or calls its tools any more.
    Block(blocklist::Block),
    /// Take a skill off the blocklist.
    Unblock(OfSkill),
    /// List the skills that are blocked, and why.
    Blocklist(blocklist::Blocklist),
    /// List the versions that are held for review, or show what was found in one.
    Held(review::Held),
    /// Hand out a version that is held.
    Approve(review::Review),
    /// Keep a version held, and tell its publisher why.
    Reject(review::Review),
    #[command(flatten)]
    Installs(install::Command),
    /// List, add and remove the sources that skills are kept in step with.
    Source(sources::Source),
    /// Sync sources now, or say how syncs went.
    Sync(sync::Sync),
    /// Make, list and revoke tokens: who may do what on a server that wants sign-in.
    Token(token::Token),
    /// Say whose namespaces are, and who sees the skills in them.
    Namespace(namespace::Namespace),
    /// Say who the server takes you for, and what you may do.
    Whoami,
    /// Say who did what: the audit trail, newest first, or as it grows.
    AuditTrail(audit::Audit),
    /// Say how often a skill is read and loaded.
    Metrics(OfSkill),
    /// Write a version as an archive, or all skills as a tree of files.
    Export(export::Export),
    /// Follow what happens to skills, a line an event.
    Watch(Watch),
    /// Compose skills into one set of permissions, and say why.
    Compose(Compose),
    /// Say whether skills permit a call of a tool. Exits with 3 where they do not.
    Check(Check),
    /// Pin skills, and all that they require, in a lock file.
    Lock(Lock),
    /// Say what keeps a skill from being used beside others. Exits with 3 where one does.
    Conflicts(checks::Conflicts),
    /// Say whether there is room for skills in a context. Exits with 3 where there is none.
    Budget(checks::Budget),
    /// Say whether agents can use skills as they are, and do. Exits with 3 where they cannot.
    Activation(checks::Activation),
    /// Load a skill into a session: print its instructions and unlock its tools.
    Load(tools::Load),
    /// Print a resource of a loaded skill.
    Detail(tools::Detail),
    /// List the skills of a session.
    Session(tools::Session),
    /// Take a skill out of a session.
    Unload(tools::Unload),
    /// List the tools that skills unlock.
    Tools(tools::ListTools),
    /// Call a tool of a loaded skill.
    Call(tools::CallTool),
    /// List calls of tools that were made, newest first.
    Calls(tools::Calls),
    /// Learn to use skills and to write them: paths of exercises that are graded.
    Learn(learn::Learn),
    /// Speak MCP on stdin and stdout, for agents that start their servers themselves.
    Mcp(Mcp),
    /// Read the whole data directory and say what is damaged. The server must be stopped.
    Verify,
    /// Write the data directory to one file, also while a server runs.
    Backup(data::Backup),
    /// Make a data directory from a backup.
    Restore(data::Restore),
    /// Save what is whole of a damaged data directory in a new one, and say what is lost.
    Salvage(data::Salvage),
    /// Rewrite the data directory without what is unused, also while a server runs.
    Compact,
    /// Make the search index anew. The server must be stopped.
    Reindex,
    /// Say what of this machine the server can rely on, and who has the data open.
    Doctor,
    /// Look after the config file.
    Config(super::config::ConfigCommand),
    /// Print the script that completes commands in a shell.
    Completions(manual::Completions),
    /// Print the manual page, or write a page for each command to a folder.
    Man(manual::Manual),
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address to listen on; port 0 takes a free one. [default: 127.0.0.1:50051]
    #[arg(long, env = "REPERTOIRE_LISTEN", value_name = "ADDR", value_parser = listen_address)]
    pub(super) listen: Option<SocketAddr>,
    /// What to log, such as `info`, `warn` or `repertoire=debug`. [default: info]
    #[arg(long, env = "REPERTOIRE_LOG", value_name = "FILTER")]
    pub(super) log: Option<String>,
    /// Form of the log.
    #[arg(long, env = "REPERTOIRE_LOG_FORMAT", value_name = "FORMAT", value_parser = log_format())]
    pub(super) log_format: Option<LogFormat>,
    /// Which calls have a line in the access log. [default: errors]
    #[arg(long, env = "REPERTOIRE_ACCESS_LOG", value_name = "WHICH", value_parser = AccessMode::ALL.map(|(name, _)| name))]
    pub(super) access_log: Option<String>,
    /// One of so many calls that went well has a line, with `--access-log all`. [default: 1]
    #[arg(long, env = "REPERTOIRE_ACCESS_LOG_SAMPLE", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(super) access_log_sample: Option<u64>,
    /// Folder of a sentence transformer that searches ask beside the built-in table.
    #[arg(long, env = "REPERTOIRE_EMBEDDER", value_name = "DIR")]
    pub(super) embedder: Option<PathBuf>,
    /// OTLP endpoint (gRPC) of a collector, such as `http://localhost:4317`.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(super) otlp_endpoint: Option<String>,
    /// Name of this server, such as `skills.example.com`, beside those of the config file. In
    /// the environment: with commas between them.
    #[arg(long = "allowed-host", env = "REPERTOIRE_ALLOWED_HOSTS", value_name = "NAME", value_delimiter = ',', value_parser = allowed_host)]
    pub(super) allowed_hosts: Vec<AllowedHost>,
}

fn allowed_host(text: &str) -> Result<AllowedHost, String> {
    text.to_owned().try_into()
}

#[derive(Debug, Args)]
#[command(after_help = MCP_EXAMPLES)]
pub(super) struct Mcp {
    /// The tools of this set, such as `skills` or `discovery-core`; `all` are all there are.
    #[arg(
        long,
        env = "REPERTOIRE_TOOLSET",
        value_name = "NAME",
        default_value = "agent"
    )]
    pub(super) toolset: String,
    /// Leave out the skills of the folders around the agent: `.claude/skills`, `.agents/skills`
    /// and their like, of the current folder and of the home.
    #[arg(long, env = "REPERTOIRE_NO_LOCAL")]
    pub(super) no_local: bool,
}

/// The forms of a log by their names.
fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    let text = PossibleValue::new(LogFormat::Text.name()).help("A line for a person");
    let json = PossibleValue::new(LogFormat::Json.name()).help("A JSON object a line");
    PossibleValuesParser::new([text, json]).map(|name| {
        if name == LogFormat::Json.name() {
            LogFormat::Json
        } else {
            LogFormat::Text
        }
    })
}
