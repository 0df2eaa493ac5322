//! The checks of a start, made without starting: secrets, folders, addresses. All errors are
//! reported, not only the first.

use std::path::Path;

use super::remote_sources::Places;
use super::sources::{self, SourceConfig};
use super::{Otlp, SettingError, Settings, features, learning};
use secret::SecretRef;

/// Everything of these settings that a start would refuse, or would go on without. Opens no
/// data directory and no address, and calls nobody. Blocks.
#[must_use]
pub fn check_settings(
    settings: &Settings,
    filter: &str,
    otlp: Option<&Otlp>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    found.extend(features::refused(settings, otlp));
    let mut report = |key: &str, message: String| found.push((key.to_owned(), message));
    if let Err(message) = settings.config.access.check() {
        report("access.issuers", message);
    }
    if let Some(message) = not_a_data_directory(&settings.data) {
        report("data", message);
    }
    if let Err(error) = telemetry::filter(filter) {
        report("log", error);
    }
    if let Some(Err(error)) = otlp.map(|it| telemetry::endpoint(&it.endpoint)) {
        report("otlp_endpoint", error);
    }
    if let Some(error) = settings.config.tls.mistake() {
        report(error.key(), error.message().to_owned());
    }
    if let Some((key, why)) = settings
        .config
        .access
        .mistake(settings.config.tls.asks_clients())
    {
        report(key, why.to_owned());
    }
    for SettingError { key, message } in settings.config.tools.mistakes() {
        report(&key, message);
    }
    for (id, source) in &settings.config.sources {
        for (key, message) in source.mistakes(id) {
            report(&key, message);
        }
    }
    if let Err(message) = Places::new(&settings.config.sync.allow_networks) {
        report(sources::NETWORKS, message);
    }
    if let Err(SettingError { key, message }) = settings.config.search.open() {
        report(&key, message);
    }
    for (at, root) in settings.config.analysis.roots.iter().enumerate() {
        if let Some(message) = not_a_folder(root) {
            report(&format!("analysis.roots[{at}]"), message);
        }
    }
    let person = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
    let installs = settings.config.install.policy(&settings.data, person);
    for (at, root) in installs.roots.iter().enumerate() {
        if let Some(message) = not_a_folder(root) {
            report(&format!("install.roots[{at}]"), message);
        }
    }
    for (key, message) in learning::mistakes(&settings.config.learning) {
        report(&key, message);
    }
    if let Some(feed) = &settings.config.trust.blocklist_feed
        && let Err(error) = std::fs::read(feed)
    {
        let message = format!("cannot read `{}`: {error}", feed.display());
        report("trust.blocklist_feed", message);
    }
    found
}

/// Returns why a path is no folder.
pub(super) fn not_a_folder(path: &Path) -> Option<String> {
    let shown = path.display();
    match std::fs::read_dir(path) {
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some(format!("there is no folder `{shown}`"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Some(format!("`{shown}` is no folder"))
        }
        Err(error) => Some(format!("cannot read the folder `{shown}`: {error}")),
    }
}

/// Returns why a path cannot become a data directory: it, or its nearest ancestor that exists,
/// is no folder.
fn not_a_data_directory(path: &Path) -> Option<String> {
    // A start makes the directory and what it is in: nothing is made here.
    let there = path.ancestors().find(|path| path.exists())?;
    not_a_folder(there)
}

impl SourceConfig {
    /// Returns what is wrong with a source, its folder and its secrets.
    fn mistakes(&self, id: &str) -> Vec<(String, String)> {
        let one = [(id.to_owned(), self.clone())].into();
        let source = match sources::configured(&one) {
            Err(SettingError { key, message }) => return vec![(key, message)],
            Ok(mut sources) => sources.remove(0),
        };
        let mut found = Vec::new();
        if source.kind == ::sync::SourceKind::Directory
            && let Some(message) = not_a_folder(Path::new(&source.location))
        {
            found.push((format!("sources.{id}.location"), message));
        }
        for (key, secret) in self.secrets() {
            if let Some(Err(error)) = secret.map(SecretRef::resolve) {
                found.push((format!("sources.{id}.{key}"), error.to_string()));
            }
        }
        found
    }
}
