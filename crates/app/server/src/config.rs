//! Settings: a YAML file, under the environment, under the flags.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::LogFormat;
use super::learning_config::LearningConfig;
use super::limits::Limits;
use super::search::{AnalysisConfig, SearchConfig};
use super::sources::{SourceConfig, SyncConfig};
use super::tools::ToolsConfig;
use super::trust::TrustConfig;
use access_log::{AccessConfig, AccessMode};
use audit::AuditConfig;
use config_file::{Document, Mistake, Read, Setting, SettingLocations, report};
use model::Digest;
use namespaces::NamespacesConfig;
use origins::WebConfig;
use preflight::InstallConfig;
use telemetry::{Otlp, Signal};
use tls::TlsConfig;
use tokens::SignInConfig;

/// The default log filter.
pub const LOG: &str = "info";

/// The settings of a config file. Every key may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address to listen on, such as `127.0.0.1:50051`; port 0 is a free one.
    #[serde(deserialize_with = "listen")]
    pub listen: Option<SocketAddr>,
    /// The data directory.
    pub data: Option<PathBuf>,
    /// The log filter, such as `info` or `repertoire=debug`.
    pub log: Option<String>,
    /// Form of the log.
    pub log_format: Option<LogFormat>,
    /// OTLP endpoint of a collector, such as `http://localhost:4317`.
    pub otlp_endpoint: Option<String>,
    /// The signals that go there.
    pub otlp_signals: Option<Vec<Signal>>,
    /// How often metrics do.
    pub otlp_interval_seconds: Option<u64>,
    /// Which calls have a line in the access log.
    pub access_log: AccessMode,
    /// Of how many of those that went well one has.
    pub access_log_sample: Option<u64>,
    /// TLS of the port.
    pub tls: TlsConfig,
    /// Who may do what.
    pub access: SignInConfig,
    /// Who owns new namespaces, and who sees the skills in them.
    pub namespaces: NamespacesConfig,
    /// How long the audit trail is kept.
    pub audit: AuditConfig,
    /// Bounds of the server.
    pub limits: Limits,
    /// Bounds of the store.
    pub store: StoreConfig,
    /// The rules for browsers.
    pub web: WebConfig,
    /// The tools that skills unlock.
    pub tools: ToolsConfig,
    /// How skills are searched.
    pub search: SearchConfig,
    /// Which codebases may be read.
    pub analysis: AnalysisConfig,
    /// How people learn.
    pub learning: LearningConfig,
    /// Trust tiers, holds and the blocklist.
    pub trust: TrustConfig,
    /// Which skills are installed on this machine, and where.
    pub install: InstallConfig,
    /// The sources of skills, by id.
    pub sources: BTreeMap<String, SourceConfig>,
    /// How these are synced.
    pub sync: SyncConfig,
    /// Where each of these is in the file.
    #[serde(skip)]
    pub places: SettingLocations,
    /// The digest of the file.
    #[serde(skip)]
    pub digest: Option<Digest>,
}

/// Bounds of the store.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// MiB of pages cached in memory.
    pub cache_mib: u64,
    /// Events that the log keeps: changes of skills, and nothing else.
    pub keep_events: u64,
    /// MiB of disk that stay free: writes are refused below.
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
    /// Some of it is wrong.
    #[error("{}", report(path, mistakes))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All that is wrong, by line.
        mistakes: Vec<Mistake>,
    },
}

/// An address to listen on: a number and a port, or this machine and a port. Other names
/// could mean several addresses, or another one tomorrow.
///
/// # Errors
/// It is none.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    match (host, port.parse::<u16>()) {
        ("localhost", Ok(port)) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        (_, port) => text.parse().map_err(|_| {
            let port = port.unwrap_or(Settings::LISTEN.port());
            format!("`{text}` is no address to listen on; write an IP address and a port, such as 127.0.0.1:{port} for this machine alone, or 0.0.0.0:{port} for every network")
        }),
    }
}

fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let address = text.as_deref().map(listen_address).transpose();
    address.map_err(serde::de::Error::custom)
}

/// The range of a whole number: no more than anybody means, so that no sum or time made of it
/// overflows.
fn bounds(key: &str) -> RangeInclusive<u64> {
    const MAX: u64 = 1_000_000_000;
    match key {
        "limits.share_percent" => 1..=100,
        "limits.wait_seconds" | "limits.linger_seconds" => 0..=MAX,
        // A pruned trail still has its last record, and one about the pruning.
        "audit.max_records" => 2..=MAX,
        "access_log_sample"
        | "otlp_interval_seconds"
        | "audit.keep_days"
        | "store.keep_events"
        | "tools.session_hours"
        | "tools.sessions"
        | "tools.calls_per_session"
        | "tools.result_kib"
        | "tools.keep_calls"
        | "sync.max_mib"
        | "sync.max_skills"
        | "sync.max_seconds" => 1..=MAX,
        key => u64::from(key.starts_with("limits."))..=MAX,
    }
}

impl Config {
    /// Reads a config file.
    ///
    /// # Errors
    /// It cannot be read, or something in it is wrong.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Ok(Self::parse(&text(path)?, path)?.1.value)
    }

    /// Reads a config file, with the settings in it that differ from the defaults.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read_listed(path: &Path) -> Result<(Self, Vec<Setting>), ConfigError> {
        let (document, read) = Self::parse(&text(path)?, path)?;
        let mut settings = document.settings(&read);
        let config = read.value.effective();
        // A key that spells out its default is no setting: the file is read once more without
        // the key, and the key is listed where that gives another config.
        settings.retain(|it| {
            let without = document.read_without::<Self>(&it.key, bounds);
            let without = without.map(|mut without| {
                // Both differ for every key, as the text does.
                without.places.clone_from(&config.places);
                without.digest = config.digest;
                without.effective()
            });
            without.as_ref() != Some(&config)
        });
        Ok((config, settings))
    }

    pub(super) fn parse(text: &str, path: &Path) -> Result<(Document, Read<Self>), ConfigError> {
        let wrong = |mistakes| ConfigError::Wrong {
            path: path.to_owned(),
            mistakes,
        };
        let document = Document::parse(text).map_err(|mistake| wrong(vec![mistake]))?;
        let mut read = document.read::<Self>(bounds).map_err(wrong)?;
        read.value.places = SettingLocations::new(path, &document, &read);
        read.value.digest = Some(Digest::of(text.as_bytes()));
        Ok((document, read))
    }

    /// Where telemetry goes. An endpoint of the flags or the environment goes before.
    #[must_use]
    pub fn otlp(&self, endpoint: Option<String>) -> Option<Otlp> {
        let interval = self.otlp_interval_seconds;
        Some(Otlp {
            endpoint: endpoint.or_else(|| self.otlp_endpoint.clone())?,
            signals: self.otlp_signals.clone().unwrap_or(Otlp::SIGNALS.to_vec()),
            interval: interval.map_or(Otlp::INTERVAL, Duration::from_secs),
        })
    }

    /// The same with the defaults filled in, so that two configs compare by their effect.
    fn effective(mut self) -> Self {
        self.listen.get_or_insert(Settings::LISTEN);
        self.data.get_or_insert_with(default_data_directory);
        self.log.get_or_insert_with(|| LOG.to_owned());
        self.log_format.get_or_insert_default();
        self.access_log_sample.get_or_insert(1);
        self.otlp_signals.get_or_insert(Otlp::SIGNALS.to_vec());
        let interval = Otlp::INTERVAL.as_secs();
        self.otlp_interval_seconds.get_or_insert(interval);
        self
    }
}

fn text(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|cause| ConfigError::Read {
        path: path.to_owned(),
        cause,
    })
}

/// The platform's directory for data, such as `~/.local/share/repertoire`.
#[must_use]
pub fn default_data_directory() -> PathBuf {
    directories::ProjectDirs::from("", "", "repertoire").map_or_else(
        || PathBuf::from("repertoire-data"),
        |dirs| dirs.data_dir().to_owned(),
    )
}

/// The settings that a server runs with: a config file under the environment and the flags.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// Which calls have a line in the access log.
    pub access_log: AccessConfig,
    /// How to open the store.
    pub store: store::Options,
    /// All other settings, as in the config file. The fields above go before those in it, as the
    /// environment and the flags do.
    pub config: Config,
}

impl Settings {
    /// Address that is listened on where none is named.
    pub const LISTEN: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 50051);

    /// The server has callers on other machines: it listens beyond this one, or has
    /// a name there.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        // A proxy reaches a loopback address too: what gives that away is the name by which
        // callers know the server.
        !self.listen.ip().is_loopback() || !self.config.web.allowed_hosts.is_empty()
    }

    /// The settings of a config file, with defaults for what it leaves out.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            listen: config.listen.unwrap_or(Self::LISTEN),
            data: config.data.clone().unwrap_or_else(default_data_directory),
            access_log: AccessConfig {
                log: config.access_log,
                sample: config.access_log_sample.unwrap_or(1),
            },
            store: store::Options {
                // sled panics with a cache of less than 256 bytes.
                cache_bytes: config.store.cache_mib.max(1) << 20,
                keep_events: config.store.keep_events,
                reserve_bytes: config.store.reserve_mib << 20,
                ..store::Options::default()
            },
            config: config.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("r.yaml"))
            .map(|(_, read)| read.value)
            .map_err(|error| error.to_string())
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
        let nothing = parse("# nothing\n").expect("a config");
        assert_eq!((nothing.listen, nothing.limits), (None, Limits::default()));
    }

    #[test]
    fn the_config_file_of_the_operators_page_holds_the_defaults() {
        let page = include_str!("../../../../docs/operations.md");
        let block = page
            .split("```yaml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next());
        let config = parse(block.expect("a block of YAML")).expect("a config");
        assert_eq!(config.limits, Limits::default());
        assert_eq!(config.tls, TlsConfig::default());
        assert_eq!(config.store, StoreConfig::default());
        assert_eq!(config.web, WebConfig::default());
        assert_eq!(config.tools, ToolsConfig::default());
        assert_eq!(config.search, SearchConfig::default());
        assert_eq!(config.analysis, AnalysisConfig::default());
        assert_eq!(config.learning, LearningConfig::default());
        assert_eq!(config.install, InstallConfig::default());
        assert_eq!(config.sync, SyncConfig::default());
        assert_eq!(Settings::new(&config).access_log, AccessConfig::default());
        let otlp = config.otlp(None).expect("an endpoint");
        assert_eq!(
            (otlp.signals.as_slice(), otlp.interval),
            (Otlp::SIGNALS.as_slice(), Otlp::INTERVAL)
        );
        assert!(config.otlp_signals.is_some() && config.otlp_interval_seconds.is_some());
        assert_eq!(config.listen, Some(Settings::LISTEN));
    }
}
