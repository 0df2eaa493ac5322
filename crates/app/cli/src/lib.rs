//! The command line.
//!
//! Rules:
//!
//! * A command speaks the contract, to a running server or, in process, to the
//!   services over a data directory: the same calls, the same refusals. What stays
//!   (`mcp`, `watch`, `dev --publish`) starts a server instead, in the background.
//! * The result of a command goes to stdout, in the format that was asked for: by default as a
//!   table to a terminal and as plain text into a pipe. Everything else goes to stderr.
//! * A command gives its result as JSON, as a list and in sentences, and `Output` writes the
//!   one that the format asks for.
//! * Exit codes: 0 all is well, 1 something was refused or failed, 2 the command
//!   line is wrong.
//!
//! Not here: what the calls do.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod args;
mod audit;
mod author;
mod background;
mod block;
mod checks;
mod command_line;
mod compose;
mod config;
mod connect;
mod data;
mod doctor;
mod exercise;
mod export;
mod failed;
#[cfg(feature = "learning")]
mod grading;
#[cfg(not(feature = "learning"))]
#[path = "without_grading.rs"]
mod grading;
mod import;
mod install;
mod learn;
mod manual;
mod mcp;
mod mirror;
mod namespace;
mod outcome;
mod output;
mod remote;
mod renamed;
mod review;
mod scan;
mod search;
mod serve;
mod served;
mod similar;
mod skill_args;
mod skills;
mod sources;
mod status;
mod sync;
mod teach;
mod token;
mod tools;
mod versions;

use std::process::ExitCode;

use ::folders as folder;
pub use args::Cli;
use args::{Command, Global};
use clap::error::ErrorKind;
use output::{Done, Exit, Failed, Output};

use model::Code;
use server::{Config, ConfigError, LogFormat, Telemetry};

/// Threads for work that blocks: as many as the executor has permits. With fewer, work that has a
/// permit would wait for a thread, where the executor neither sees nor ends it.
fn blocking_threads() -> usize {
    let processors = std::thread::available_parallelism();
    executor::threads(processors.map_or(1, std::num::NonZero::get))
}

/// Runs a command line.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let Cli { global, command } = cli;
    if matches!(command, Command::Background) {
        // It has no stderr: the log is all that is left of a panic.
        std::panic::set_hook(Box::new(|info| {
            tracing::error!("a thread panicked: {info}");
        }));
    }
    model::quiet_panics();
    let (command, name) = renamed::now(command);
    let output = Output::new(global.format());
    if let Some(name) = name {
        // Not with JSON: stderr has a failure as JSON then, and nothing else.
        output.hint(&format!("this command is called `repertoire {name}` now"));
    }
    if output.is_rows() && !command.prints_rows() {
        let error = "this command prints no rows: the formats `tsv` and `ids` are not for it";
        command_line::wrong(ErrorKind::InvalidValue, error);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(blocking_threads())
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return output.failed(&Failed::fault(error)),
    };
    let is_check = matches!(command, Command::Check(_));
    let result = runtime.block_on(execute(global, command, &output));
    // Bounded, since a thread may still wait for a disk, or for a line from a terminal.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result.unwrap_or_else(|failed| {
        let code = output.failed(&failed);
        if is_check {
            compose::unanswered(&failed)
        } else {
            code
        }
    })
}

/// A command without exit codes of its own.
fn code(done: Done) -> Exit {
    done.map(|()| ExitCode::SUCCESS)
}

async fn execute(global: Global, command: Command, output: &Output) -> Exit {
    // These need no config file, which could be wrong.
    let command = match command {
        Command::Completions(options) => return code(manual::completions(&options, output)),
        Command::Man(options) => return code(manual::man(&options, output)),
        // It reads the config file itself, and reports all of its mistakes.
        Command::Config(options) => {
            return tokio::task::block_in_place(|| config::config(&global, options, output));
        }
        command => command,
    };
    let config = match &global.config {
        Some(path) => Config::read(path)
            .map_err(|error: ConfigError| Failed::new(Code::ConfigInvalid, error.to_string()))?,
        None => Config::default(),
    };
    if !matches!(command, Command::Serve(_) | Command::Background) {
        // For faults of services in process. `serve` and `background` set up logs of their own.
        Telemetry::start("error", LogFormat::Text, None).map_err(Failed::fault)?;
    }
    let local = || connect::local_settings(&global, &config);
    match command {
        Command::Serve(options) => code(serve::serve(&global, options, config).await),
        Command::Background => background::background(&global, config).await,
        Command::Status => status::status(local()?, output).await,
        Command::Scan(options) => scan::scan(&options, output),
        Command::Validate(options) => import::validate(&options, output),
        Command::New(options) => code(author::new(&options, output)),
        Command::Dev(options) if !options.publish => code(author::dev(None, options, output).await),
        Command::Verify => data::verify(local()?, output).await,
        Command::Backup(options) => code(data::backup(local()?, options, output).await),
        Command::Restore(options) => code(data::restore(local()?, options, output).await),
        Command::Salvage(options) => code(data::salvage(local()?, options, output).await),
        Command::Compact => code(data::compact(local()?, output).await),
        Command::Reindex => code(data::reindex(local()?, output).await),
        Command::Doctor => doctor::doctor(&global, &config, output).await,
        Command::Installs(install::Command::Uninstall(it)) => install::uninstall(it, output),
        Command::Installs(install::Command::Installed(it)) => install::installed(it, output),
        Command::Learn(learn::Learn {
            action: learn::Action::Check { folders },
            ..
        }) => grading::check(&folders, &config, output).await,
        command => {
            let client = match command {
                Command::Mcp(ref options) => {
                    connect::connect_window(&global, &config, !options.no_local).await?
                }
                Command::Watch(_) | Command::Dev(_) => {
                    connect::connect_window(&global, &config, false).await?
                }
                _ => connect::connect(&global, &config).await?,
            };
            // Boxed: one future for all commands is as large as the largest of them.
            let result = Box::pin(with_client(&client, command, output)).await;
            client.close().await;
            result
        }
    }
}

async fn with_client(client: &connect::Client, command: Command, output: &Output) -> Exit {
    let done = match command {
        Command::Import(options) => return import::import(client, options, output).await,
        Command::Publish(options) => return import::publish(client, options, output).await,
        Command::Sync(options) => return sync::sync(client, options, output).await,
        Command::Installs(command) => return install::served(client, command, output).await,
        Command::Check(options) => return compose::check(client, options, output).await,
        Command::Conflicts(options) => return checks::conflicts(client, options, output).await,
        Command::Budget(options) => return checks::budget(client, options, output).await,
        Command::Activation(options) => return checks::activation(client, options, output).await,
        Command::Learn(options) => return learn::learn(client, options, output).await,
        Command::Dev(options) => author::dev(Some(client), options, output).await,
        Command::List(options) => skills::list(client, options, output).await,
        Command::Search(options) => search::search(client, options, output).await,
        Command::Similar(options) => similar::similar(client, options, output).await,
        Command::Analyze(options) => search::analyze(client, options, output).await,
        Command::Recommend(options) => search::recommend(client, options, output).await,
        Command::Show(options) => skills::show(client, options, output).await,
        Command::Read(options) => skills::read(client, options, output).await,
        Command::Versions(options) => versions::versions(client, options, output).await,
        Command::Diff(options) => versions::diff(client, options, output).await,
        Command::Activate(options) => versions::activate(client, options, output).await,
        Command::Yank(options) => versions::yank(client, options, output).await,
        Command::Unyank(options) => versions::unyank(client, options, output).await,
        Command::Delete(options) => versions::delete(client, options, output).await,
        Command::Source(options) => sources::source(client, options, output).await,
        Command::Token(options) => token::token(client, options, output).await,
        Command::Namespace(options) => namespace::namespace(client, options, output).await,
        Command::AuditTrail(options) => audit::audit(client, options, output).await,
        Command::Whoami => token::whoami(client, output).await,
        Command::Review(options) => review::review(client, options, output).await,
        Command::Block(options) => block::block(client, options, output).await,
        Command::Metrics(options) => versions::metrics(client, options, output).await,
        Command::Export(options) => export::export(client, options, output).await,
        Command::Mcp(options) => mcp::mcp(client, &options).await,
        Command::Watch(options) => skills::watch(client, options, output).await,
        Command::Compose(options) => compose::compose(client, options, output).await,
        Command::Lock(options) => compose::lock(client, options, output).await,
        Command::Load(options) => tools::load(client, options, output).await,
        Command::Detail(options) => tools::detail(client, options, output).await,
        Command::Session(options) => tools::session(client, options, output).await,
        Command::Unload(options) => tools::unload(client, options, output).await,
        Command::Tools(options) => tools::tools(client, options, output).await,
        Command::Call(options) => tools::call(client, options, output).await,
        Command::Calls(options) => tools::calls(client, options, output).await,
        Command::Serve(_)
        | Command::Background
        | Command::Status
        | Command::Scan(_)
        | Command::Validate(_)
        | Command::New(_)
        | Command::Verify
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Salvage(_)
        | Command::Compact
        | Command::Reindex
        | Command::Doctor
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Renamed(_) => Err(Failed::fault("this command needs no server")),
    };
    code(done)
}
