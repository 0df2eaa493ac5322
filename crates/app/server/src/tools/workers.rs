//! Settings of workers that may dial in.

use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::{SettingError, ToolsConfig};
use model::PatternError;
use secret::SecretRef;
use tools::host::{self, Admitted};

/// The shortest token of a worker: fewer characters can be guessed.
const MIN_TOKEN_CHARS: usize = 16;
/// How often workers and the server exchange heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// A worker, or several of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// Its name in the log.
    pub name: String,
    /// The token that it sends when it dials in.
    pub token: SecretRef,
    /// Skills that it may serve: ids, or `source/author/*`, or `source/*`.
    pub skills: Vec<String>,
}

impl ToolsConfig {
    /// Returns the settings of the host of workers, with their tokens.
    ///
    /// # Errors
    /// A token cannot be had, is short, or is another worker's too; or a pattern of
    /// skills is none.
    pub(crate) fn host(&self) -> Result<host::Config, SettingError> {
        let mut workers: Vec<Admitted> = Vec::new();
        for (at, worker) in self.workers.iter().enumerate() {
            let wrong = |key: &str, message: String| {
                SettingError::new(format!("tools.workers[{at}].{key}"), message)
            };
            let WorkerConfig {
                name,
                token,
                skills,
            } = worker;
            if name.trim().is_empty() {
                return Err(wrong("name", "it is empty".to_owned()));
            }
            let token = token
                .resolve()
                .map_err(|error| wrong("token", error.to_string()))?;
            if token.expose_secret().chars().count() < MIN_TOKEN_CHARS {
                let why = format!(
                    "a token has at least {MIN_TOKEN_CHARS} characters, such as `openssl rand -hex 32` makes"
                );
                return Err(wrong("token", why));
            }
            if !token
                .expose_secret()
                .bytes()
                .all(|byte| byte.is_ascii_graphic())
            {
                return Err(wrong(
                    "token",
                    "a token is ASCII without white space, since it goes in a header".to_owned(),
                ));
            }
            // A token is all that tells workers apart: of two with the same one, the second
            // could never be met.
            let same = |other: &Admitted| other.token.expose_secret() == token.expose_secret();
            if let Some(other) = workers.iter().position(same) {
                let why =
                    format!("it is that of tools.workers[{other}]; each needs one of its own");
                return Err(wrong("token", why));
            }
            if skills.is_empty() {
                return Err(wrong("skills", "name at least one".to_owned()));
            }
            let pattern = |(n, text): (usize, &String)| {
                text.parse().map_err(|error: PatternError| {
                    wrong(&format!("skills[{n}]"), error.to_string())
                })
            };
            workers.push(Admitted {
                name: name.clone(),
                skills: skills
                    .iter()
                    .enumerate()
                    .map(pattern)
                    .collect::<Result<_, _>>()?,
                token,
            });
        }
        Ok(host::Config {
            workers,
            heartbeat: HEARTBEAT_INTERVAL,
            max_result_bytes: self.result_kib.saturating_mul(1024),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(workers: &str) -> Result<host::Config, String> {
        let config: ToolsConfig =
            serde_yaml::from_str(&format!("result_kib: 2\nworkers: {workers}")).expect("settings");
        config.host().map_err(|error| error.to_string())
    }

    #[test]
    fn workers_of_the_config_file_are_those_that_may_dial_in() {
        let host =
            read("[{name: reports, token: 0123456789abcdef, skills: [acme/ops/report, acme/*]}]")
                .expect("settings");
        let [worker] = host.workers.as_slice() else {
            panic!("one worker")
        };
        assert_eq!(
            (
                worker.name.as_str(),
                worker.skills.len(),
                host.max_result_bytes
            ),
            ("reports", 2, 2048)
        );
        assert!(!format!("{worker:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn a_setting_of_workers_that_is_wrong_is_named() {
        let token = "token: 0123456789abcdef";
        for (workers, error) in [
            (
                format!("[{{name: ' ', {token}, skills: [a/*]}}]"),
                "tools.workers[0].name: it is empty",
            ),
            (
                "[{name: a, token: 0123456789abcde, skills: [a/*]}]".to_owned(),
                "tools.workers[0].token: a token has at least 16 characters, such as `openssl rand -hex 32` makes",
            ),
            (
                "[{name: a, token: 0123456789 abcdef, skills: [a/*]}]".to_owned(),
                "tools.workers[0].token: a token is ASCII without white space, since it goes in a header",
            ),
            (
                "[{name: a, token: {env: NO_SUCH_VARIABLE_HERE}, skills: [a/*]}]".to_owned(),
                "tools.workers[0].token: the variable NO_SUCH_VARIABLE_HERE of the environment is not set",
            ),
            (
                format!("[{{name: a, {token}, skills: []}}]"),
                "tools.workers[0].skills: name at least one",
            ),
            (
                format!("[{{name: a, {token}, skills: [a/*, b]}}]"),
                "tools.workers[0].skills[1]: `b` is not `source/author/slug`, `source/author/*` or `source/*`",
            ),
            (
                format!(
                    "[{{name: a, {token}, skills: [a/*]}}, {{name: b, {token}, skills: [b/*]}}]"
                ),
                "tools.workers[1].token: it is that of tools.workers[0]; each needs one of its own",
            ),
        ] {
            assert_eq!(read(&workers).expect_err("a refusal"), error);
        }
    }
}
