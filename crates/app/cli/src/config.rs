//! `repertoire config`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Args, Subcommand};
use serde_json::json;

use super::args::Global;
use super::command_line::as_read;
use super::connect::settings;
use super::output::{Exit, Failed, GOOD, List, Output, WARN, counted};
use super::serve::Serve;
use config_file::{Mistake, Setting, without_user};
use model::Code;
use server::{Config, ConfigError, check_settings};

#[derive(Debug, Args)]
pub(super) struct ConfigCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say every mistake in a config file, and what of it a start could not use: secrets,
    /// folders, addresses. Starts nothing; exits with 1 where something is wrong.
    Check(Check),
}

#[derive(Debug, Args)]
struct Check {
    /// The config file; without it that of `--config` or `REPERTOIRE_CONFIG`.
    file: Option<PathBuf>,
    #[command(flatten)]
    serve: Serve,
}

/// A flag of `serve`: the setting that it goes before, and its value.
type Flag = (&'static str, Option<String>);

/// A setting, its value, and its origin.
const SETTINGS: List<[String; 3]> = List::wrapped(&[
    ("setting", |[key, ..]| key.clone()),
    ("value", |[_, value, _]| value.clone()),
    ("from", |[.., origin]| origin.clone()),
]);

pub(super) fn config(global: &Global, command: ConfigCommand, output: &Output) -> Exit {
    let Action::Check(Check { file, serve }) = command.action;
    let file = file.or_else(|| global.config.clone());
    let read = file
        .as_deref()
        .map_or_else(|| Ok((Config::default(), Vec::new())), Config::read_listed);
    let (mut config, mut listed) = match read {
        Ok(read) => read,
        Err(ConfigError::Wrong { path, mistakes }) => {
            return report(output, Some(&path.display().to_string()), &mistakes);
        }
        Err(error) => return Err(Failed::new(Code::ConfigInvalid, error.to_string())),
    };
    let flags = flags(global, &serve);
    for (key, _) in flags.iter().filter(|(_, value)| value.is_some()) {
        listed.retain(|it| it.key != *key || *key == HOSTS);
        if *key != HOSTS {
            config.places.forget(key);
        }
    }
    let mut settings = settings(global, &config);
    let (filter, _, otlp) = serve.apply(&mut settings, &config);
    let mistakes = check_settings(&settings, &filter, otlp.as_ref());
    let path = file.map(|file| file.display().to_string());
    if !mistakes.is_empty() {
        let place = |(key, message): (String, String)| Mistake {
            line: config.places.line(&key).unwrap_or_default(),
            key,
            message,
        };
        let mistakes: Vec<_> = mistakes.into_iter().map(place).collect();
        return report(output, path.as_deref(), &mistakes);
    }
    let of_file = listed.into_iter().map(|Setting { key, value, line }| {
        let path = path.as_deref().unwrap_or_default();
        [key, value, format!("{path}:{line}")]
    });
    let of_flags = flags
        .into_iter()
        .filter_map(|(key, value)| Some([key.to_owned(), value?, origin(key)]));
    let all: Vec<_> = of_file.chain(of_flags).collect();
    let settings = all
        .iter()
        .map(|[key, value, origin]| json!({"key": key, "value": value, "from": origin}));
    let settings: Vec<_> = settings.collect();
    let warnings: Vec<_> = config.places.exposed_secrets().into_iter().collect();
    output.value(&json!({"ok": true, "file": path, "settings": settings, "mistakes": [], "warnings": warnings}))?;
    output.line(&format!("{GOOD}ok{GOOD:#}"))?;
    for warning in &warnings {
        output.note(&format!("{WARN}warning:{WARN:#} {warning}"));
    }
    if !all.is_empty() {
        output.list(&SETTINGS, &all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The setting that flags add to, instead of replacing it.
const HOSTS: &str = "web.allowed_hosts";

fn flags(global: &Global, serve: &Serve) -> Vec<Flag> {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let mut hosts = serve.allowed_hosts.iter().map(ToString::to_string);
    let hosts = hosts
        .next()
        .map(|first| hosts.fold(first, |all, host| format!("{all}, {host}")));
    vec![
        ("listen", serve.listen.map(|it| it.to_string())),
        ("data", path(&global.data)),
        ("log", serve.log.clone()),
        (
            "log_format",
            serve.log_format.map(|it| it.name().to_owned()),
        ),
        ("access_log", serve.access_log.clone()),
        (
            "access_log_sample",
            serve.access_log_sample.map(|it| it.to_string()),
        ),
        (
            "otlp_endpoint",
            serve.otlp_endpoint.as_deref().map(without_user),
        ),
        ("search.embedder", path(&serve.embedder)),
        (HOSTS, hosts),
    ]
}

/// Returns the flag or the variable of the environment that a setting is from.
fn origin(key: &str) -> String {
    // clap's id of a flag is the last part of its key.
    let id = key.rsplit('.').next().unwrap_or(key);
    // Parsed once more: `Cli` has only values, and clap knows which are from the environment.
    let command = as_read();
    let matches = command.clone().get_matches();
    let inner = matches
        .subcommand_matches("config")
        .and_then(|matches| matches.subcommand_matches("check"));
    let source = inner.and_then(|matches| matches.value_source(id));
    let check = command
        .find_subcommand("config")
        .and_then(|command| command.find_subcommand("check"));
    let mut args = check.into_iter().flat_map(clap::Command::get_arguments);
    let arg = args.find(|arg| arg.get_id() == id);
    let arg = arg.or_else(|| command.get_arguments().find(|arg| arg.get_id() == id));
    let variable = arg
        .and_then(clap::Arg::get_env)
        .map(|name| name.display().to_string());
    let flag = arg
        .and_then(clap::Arg::get_long)
        .map(|name| format!("--{name}"));
    let named = match source {
        Some(ValueSource::EnvVariable) => variable,
        _ => flag,
    };
    named.unwrap_or_default()
}

/// Reports the mistakes of a config file.
fn report(output: &Output, file: Option<&str>, mistakes: &[Mistake]) -> Exit {
    let listed = mistakes.iter().map(|it| {
        let line = (it.line > 0).then_some(it.line);
        json!({"line": line, "key": it.key, "message": it.message})
    });
    let listed: Vec<_> = listed.collect();
    output.value(&json!({"ok": false, "file": file, "settings": [], "mistakes": listed}))?;
    for it in mistakes {
        let place = match (file, it.line) {
            (Some(file), 1..) => format!("{file}:{}: ", it.line),
            _ => String::new(),
        };
        let key = if it.key.is_empty() {
            String::new()
        } else {
            format!("{}: ", it.key)
        };
        output.line(&format!("{place}{key}{}", it.message))?;
    }
    output.note(&counted(mistakes.len(), "mistake"));
    Ok(ExitCode::FAILURE)
}
