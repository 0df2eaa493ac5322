//! Features: the parts that a build may leave out, and the settings that need one.
//!
//! A build has the same contract, settings and commands whatever it leaves out, and opens the
//! same data directories. What needs a missing feature reports it: a setting at the start, a
//! call when it is made. `without` has the stand-ins.

use std::sync::LazyLock;

use super::sources::NETWORKS;
use super::{JiraConfig, LearningConfig, Otlp, Settings, SqlConfig, StartError};
use model::Failure;

/// A part of the program that a build may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Databases behind the tools of `write_sql`.
    Databases,
    /// Jira behind the tools of `jira`.
    Jira,
    /// Sentence transformers for the search.
    Transformer,
    /// Tokens of OpenID Connect issuers.
    Oidc,
    /// Spans, metrics and logs to a collector.
    Otlp,
    /// Sources that are not folders of this machine.
    RemoteSources,
    /// Learning paths, and the sandbox that grades solutions.
    Learning,
    /// The allocator that gives memory back.
    Jemalloc,
}

impl Feature {
    /// Every feature, by name.
    pub const ALL: [Self; 8] = [
        Self::Databases,
        Self::Jemalloc,
        Self::Jira,
        Self::Learning,
        Self::Oidc,
        Self::Otlp,
        Self::RemoteSources,
        Self::Transformer,
    ];

    /// Its name, as cargo takes it, and whether this program has it.
    const fn described(self) -> (&'static str, bool) {
        match self {
            Self::Databases => ("databases", cfg!(feature = "databases")),
            Self::Jira => ("jira", cfg!(feature = "jira")),
            Self::Transformer => ("transformer", cfg!(feature = "transformer")),
            Self::Oidc => ("oidc", cfg!(feature = "oidc")),
            Self::Otlp => ("otlp", cfg!(feature = "otlp")),
            Self::RemoteSources => ("remote-sources", cfg!(feature = "remote-sources")),
            Self::Learning => ("learning", cfg!(feature = "learning")),
            Self::Jemalloc => ("jemalloc", cfg!(feature = "jemalloc")),
        }
    }

    /// Its name, as cargo takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.described().0
    }

    /// This program has it.
    #[must_use]
    pub const fn is_built(self) -> bool {
        self.described().1
    }

    /// Returns the failure of a call that needs it, in a program without it.
    #[must_use]
    pub fn missing(self) -> Failure {
        Failure::not_built(self.name())
    }
}

/// The features of this program, or those that it leaves out, by name; `none` where there are
/// none.
#[must_use]
pub fn listed(is_built: bool) -> String {
    let features = Feature::ALL.into_iter();
    let features = features.filter(|feature| feature.is_built() == is_built);
    let names: Vec<&str> = features.map(Feature::name).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// The version, and the features of this program.
#[must_use]
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let (version, built, left_out) = (env!("CARGO_PKG_VERSION"), listed(true), listed(false));
        format!("{version}\nfeatures: {built}\nleft out: {left_out}")
    });
    &VERSION
}

/// Returns the settings that need a feature which this program leaves out: the key of each,
/// and the error.
pub(super) fn refused(settings: &Settings, otlp: Option<&Otlp>) -> Vec<(String, String)> {
    let config = &settings.config;
    // A setting with its default asks for nothing, so files of a full build work without it.
    let sql = config.tools.sql != SqlConfig::default();
    let jira = config.tools.jira != JiraConfig::default();
    let learning = config.learning != LearningConfig::default();
    let embedder = config.search.embedder.is_some();
    let issuers = !config.access.issuers.is_empty();
    let networks = !config.sync.allow_networks.is_empty();
    let own = [
        ("tools.sql", Feature::Databases, sql),
        ("tools.jira", Feature::Jira, jira),
        ("search.embedder", Feature::Transformer, embedder),
        ("access.issuers", Feature::Oidc, issuers),
        ("otlp_endpoint", Feature::Otlp, otlp.is_some()),
        ("learning", Feature::Learning, learning),
        (NETWORKS, Feature::RemoteSources, networks),
    ];
    let asked = own.into_iter().filter(|(.., is_asked)| *is_asked);
    let asked = asked.map(|(key, feature, _)| (key.to_owned(), feature));
    let sources = config.sources.iter();
    let sources = sources.filter(|(_, source)| source.is_remote());
    let sources = sources.map(|(id, _)| (format!("sources.{id}.kind"), Feature::RemoteSources));
    let missing = asked
        .chain(sources)
        .filter(|(_, feature)| !feature.is_built());
    missing
        .map(|(key, feature)| {
            let name = feature.name();
            let message = format!(
                "needs the feature `{name}`, which this build leaves out; remove the setting, or use a program that was built with `--features {name}`"
            );
            (key, message)
        })
        .collect()
}

/// Refuses settings that need a missing feature, before anything is opened.
///
/// # Errors
/// The first of them, with its place in the config file.
pub fn require(settings: &Settings, otlp: Option<&Otlp>) -> Result<(), StartError> {
    match refused(settings, otlp).into_iter().next() {
        None => Ok(()),
        Some((key, message)) => Err(StartError::NotBuilt(format!(
            "{}{key} {message}",
            settings.config.places.at(&key)
        ))),
    }
}
