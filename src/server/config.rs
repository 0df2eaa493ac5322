//! Settings: a YAML file, under the environment, under the flags.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::LogFormat;
use super::guard::WebConfig;
use super::learning::LearningConfig;
use super::limits::Limits;
use super::search::{AnalysisConfig, SearchConfig};
use super::sources::{SourceConfig, SyncConfig};
use super::tools::ToolsConfig;
use super::trust::TrustConfig;
use preflight::InstallConfig;

/// What a config file may say. Every key may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address to listen on, such as `127.0.0.1:50051`; port 0 is a free one.
    pub listen: Option<SocketAddr>,
    /// The data directory.
    pub data: Option<PathBuf>,
    /// What is logged, such as `info` or `repertoire=debug`.
    pub log: Option<String>,
    /// Form of the log.
    pub log_format: Option<LogFormat>,
    /// OTLP endpoint that takes spans, such as `http://localhost:4317`.
    pub otlp_endpoint: Option<String>,
    /// Bounds of the server.
    pub limits: Limits,
    /// Bounds of the store.
    pub store: StoreConfig,
    /// What browsers may do.
    pub web: WebConfig,
    /// The tools that skills unlock.
    pub tools: ToolsConfig,
    /// How skills are searched.
    pub search: SearchConfig,
    /// Which codebases may be read.
    pub analysis: AnalysisConfig,
    /// How people learn.
    pub learning: LearningConfig,
    /// What is trusted.
    pub trust: TrustConfig,
    /// What is installed on this machine, and where.
    pub install: InstallConfig,
    /// Where skills come from that are kept in step, by id.
    pub sources: BTreeMap<String, SourceConfig>,
    /// How these are synced.
    pub sync: SyncConfig,
}

/// Bounds of the store.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// MiB of pages kept in memory.
    pub cache_mib: u64,
    /// Events that the log keeps: changes of skills, and nothing else.
    pub keep_events: u64,
    /// MiB of disk that are kept free: writes are refused below.
    pub reserve_mib: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let options = store::Options::default();
        Self {
            cache_mib: options.cache_bytes >> 20,
            keep_events: options.keep_events,
            reserve_mib: options.reserve_bytes >> 20,
        }
    }
}

/// A config file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read the config file `{}`: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// It is wrong at a line.
    #[error("{}{}: {message}", path.display(), at_line(*line))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
}

/// A message about a value of another type than it should have, without the value:
/// it may be a secret that stands in the wrong place, or that reads as a number.
fn without_value(message: &str) -> String {
    let parts = ["invalid type: ", "invalid value: "]
        .into_iter()
        .find_map(|what| {
            let (before, rest) = message.split_once(what)?;
            let (value, expected) = rest.rsplit_once(", expected ")?;
            let kind = value.split(['`', '"']).next().unwrap_or_default().trim();
            Some(format!("{before}{what}{kind}, expected {expected}"))
        });
    parts.unwrap_or_else(|| message.to_owned())
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

impl Config {
    /// Reads a config file.
    ///
    /// # Errors
    /// It cannot be read, or a line of it is wrong.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|cause| ConfigError::Read {
            path: path.to_owned(),
            cause,
        })?;
        Self::parse(&text, path)
    }

    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        {
            return Ok(Self::default());
        }
        let config: Self = serde_yaml::from_str(text).map_err(|error| ConfigError::Wrong {
            path: path.to_owned(),
            line: error.location().map(|at| at.line()),
            message: without_value(&error.to_string()),
        })?;
        let zero = [
            ("store.keep_events", config.store.keep_events == 0),
            ("tools.session_hours", config.tools.session_hours == 0),
            ("tools.sessions", config.tools.sessions == 0),
            (
                "tools.calls_per_session",
                config.tools.calls_per_session == 0,
            ),
            ("tools.result_kib", config.tools.result_kib == 0),
            ("tools.keep_calls", config.tools.keep_calls == 0),
            ("sync.max_mib", config.sync.max_mib == 0),
            ("sync.max_skills", config.sync.max_skills == 0),
            ("sync.max_seconds", config.sync.max_seconds == 0),
        ];
        let zero = zero
            .into_iter()
            .filter_map(|(key, zero)| zero.then_some(key));
        let zero = config.limits.zeros().chain(zero).next();
        match zero {
            None => Ok(config),
            Some(key) => {
                let last = key.rsplit('.').next().unwrap_or(key);
                let line = text
                    .lines()
                    .position(|line| line.trim_start().starts_with(&format!("{last}:")));
                let line = line.map(|line| line + 1);
                let message = format!("{key} must be at least 1");
                Err(ConfigError::Wrong {
                    path: path.to_owned(),
                    line,
                    message,
                })
            }
        }
    }
}

/// The platform's directory for data, such as `~/.local/share/repertoire`.
#[must_use]
pub fn default_data_directory() -> PathBuf {
    directories::ProjectDirs::from("", "", "repertoire").map_or_else(
        || PathBuf::from("repertoire-data"),
        |dirs| dirs.data_dir().to_owned(),
    )
}

/// What a server runs with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// Bounds of the server.
    pub limits: Limits,
    /// How to open the store.
    pub store: store::Options,
    /// What browsers may do.
    pub web: WebConfig,
    /// The tools that skills unlock.
    pub tools: ToolsConfig,
    /// How skills are searched.
    pub search: SearchConfig,
    /// Which codebases may be read.
    pub analysis: AnalysisConfig,
    /// How people learn.
    pub learning: LearningConfig,
    /// What is trusted.
    pub trust: TrustConfig,
    /// What is installed on this machine, and where.
    pub install: InstallConfig,
    /// Where skills come from that are kept in step, by id.
    pub sources: BTreeMap<String, SourceConfig>,
    /// How these are synced.
    pub sync: SyncConfig,
}

impl Settings {
    /// Address that is listened on where none is named.
    pub const LISTEN: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 50051);

    /// The server has callers on other machines: it listens beyond this one, or has
    /// a name there.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !self.listen.ip().is_loopback() || !self.web.allowed_hosts.is_empty()
    }

    /// The settings of a config file, with defaults for what it leaves out.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let StoreConfig {
            cache_mib,
            keep_events,
            reserve_mib,
        } = config.store;
        Self {
            listen: config.listen.unwrap_or(Self::LISTEN),
            data: config.data.clone().unwrap_or_else(default_data_directory),
            limits: config.limits.clone(),
            web: config.web.clone(),
            tools: config.tools.clone(),
            search: config.search.clone(),
            analysis: config.analysis.clone(),
            learning: config.learning.clone(),
            trust: config.trust.clone(),
            install: config.install.clone(),
            sources: config.sources.clone(),
            sync: config.sync.clone(),
            store: store::Options {
                cache_bytes: cache_mib.max(1) << 20,
                keep_events,
                reserve_bytes: reserve_mib << 20,
                ..store::Options::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("r.yaml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_config_file_sets_what_it_names_and_leaves_the_rest() {
        let config = parse("listen: 0.0.0.0:1\nlimits:\n  calls: 7\n").expect("a config");
        assert_eq!(config.listen, Some(([0, 0, 0, 0], 1).into()));
        assert_eq!(
            config.limits,
            Limits {
                calls: 7,
                ..Limits::default()
            }
        );
        assert_eq!(parse("# nothing\n"), Ok(Config::default()));
    }

    #[test]
    fn the_config_file_of_the_operators_page_holds_the_defaults() {
        let page = include_str!("../../docs/operations.md");
        let block = page
            .split("```yaml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let config = parse(block.expect("a block of YAML")).expect("a config");
        assert_eq!(config.limits, Limits::default());
        assert_eq!(config.store, StoreConfig::default());
        assert_eq!(config.web, WebConfig::default());
        assert_eq!(config.tools, ToolsConfig::default());
        assert_eq!(config.search, SearchConfig::default());
        assert_eq!(config.analysis, AnalysisConfig::default());
        assert_eq!(config.learning, LearningConfig::default());
        assert_eq!(config.install, InstallConfig::default());
        assert_eq!(config.sync, SyncConfig::default());
        assert_eq!(config.listen, Some(Settings::LISTEN));
    }

    #[test]
    fn a_wrong_config_file_is_refused_with_its_line() {
        for (text, line, word) in [
            ("listen: here\n", ":1", "listen"),
            ("data: /x\nlimits:\n  cals: 7\n", ":3", "cals"),
            ("log_format: xml\n", ":1", "xml"),
            ("limits:\n  calls: many\n", ":2", "calls"),
            ("limits:\n  streams: 1\n  calls: 0\n", ":3", "at least 1"),
            (
                "web:\n  allowed_hosts:\n    - https://a.example\n",
                ":3",
                "no host",
            ),
            ("web:\n  allowed_origins: [a.example]\n", ":2", "no origin"),
            ("a: [\n", "", "r.yaml"),
        ] {
            let error = parse(text).expect_err("a refusal");
            assert!(error.starts_with(&format!("r.yaml{line}")), "{error}");
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_not_repeated() {
        for text in [
            "tools:\n  jira: s3cret\n",
            "tools:\n  workers: [s3cret]\n",
            "tools:\n  sql: {max_rows: 's3cret, expected \"x'}\n",
            "tools:\n  workers: [{name: w, token: 7351049618273645, skills: [a/*]}]\n",
            "tools:\n  jira: {token: 7351049618.273645}\n",
        ] {
            let error = parse(text).expect_err("a refusal");
            assert!(error.starts_with("r.yaml:2: tools."), "{error}");
            assert!(error.contains(", expected "), "{error}");
            for secret in ["s3cret", "7351"] {
                assert!(!error.contains(secret), "{error}");
            }
        }
    }
}
