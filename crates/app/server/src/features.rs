//! What a build may leave out: the features of the package, and the settings that ask for one.
//!
//! A build has the same contract, settings and commands whatever it leaves out, and opens the
//! same data directories. What needs a feature that is not there says so: a setting at the
//! start, a call when it is made. `without` has what stands in its place.

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

    /// Its name, as cargo takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Databases => "databases",
            Self::Jira => "jira",
            Self::Transformer => "transformer",
            Self::Oidc => "oidc",
            Self::Otlp => "otlp",
            Self::RemoteSources => "remote-sources",
            Self::Learning => "learning",
            Self::Jemalloc => "jemalloc",
        }
    }

    /// This program has it.
    #[must_use]
    pub const fn is_built(self) -> bool {
        match self {
            Self::Databases => cfg!(feature = "databases"),
            Self::Jira => cfg!(feature = "jira"),
            Self::Transformer => cfg!(feature = "transformer"),
            Self::Oidc => cfg!(feature = "oidc"),
            Self::Otlp => cfg!(feature = "otlp"),
            Self::RemoteSources => cfg!(feature = "remote-sources"),
            Self::Learning => cfg!(feature = "learning"),
            Self::Jemalloc => cfg!(feature = "jemalloc"),
        }
    }

    /// What a call is told that needs it where this program does not have it.
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

/// The settings that ask for what this program leaves out: the key of each, and why it cannot
/// be had.
pub(super) fn refused(settings: &Settings, otlp: Option<&Otlp>) -> Vec<(String, String)> {
    let own = [
        (
            "tools.sql",
            Feature::Databases,
            settings.tools.sql != SqlConfig::default(),
        ),
        (
            "tools.jira",
            Feature::Jira,
            settings.tools.jira != JiraConfig::default(),
        ),
        (
            "search.embedder",
            Feature::Transformer,
            settings.search.embedder.is_some(),
        ),
        (
            "access.issuers",
            Feature::Oidc,
            !settings.sign_in.issuers.is_empty(),
        ),
        ("otlp_endpoint", Feature::Otlp, otlp.is_some()),
        (
            "learning",
            Feature::Learning,
            settings.learning != LearningConfig::default(),
        ),
        (
            NETWORKS,
            Feature::RemoteSources,
            !settings.sync.allow_networks.is_empty(),
        ),
    ];
    let asked = own.into_iter().filter(|(.., is_asked)| *is_asked);
    let asked = asked.map(|(key, feature, _)| (key.to_owned(), feature));
    let sources = settings.sources.iter();
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

/// Refuses settings that ask for what this program leaves out, before anything is opened.
///
/// # Errors
/// The first of them, with its place in the config file.
pub fn require(settings: &Settings, otlp: Option<&Otlp>) -> Result<(), StartError> {
    match refused(settings, otlp).into_iter().next() {
        None => Ok(()),
        Some((key, message)) => Err(StartError::NotBuilt(format!(
            "{}{key} {message}",
            settings.places.at(&key)
        ))),
    }
}
