//! What a start would look at, looked at without starting: secrets, folders, addresses. All
//! that is wrong is told, not only the first.

use std::path::Path;

use super::remote_sources::Places;
use super::sources::{self, SourceConfig};
use super::{EmbedderError, Otlp, Settings, features, learning};

/// Something that is wrong with a setting: its key, and what.
type SettingProblem = (String, String);

/// Everything of these settings that a start would refuse, or would go on without. Opens no
/// data directory and no address, and calls nobody. Blocks.
#[must_use]
pub fn check_settings(
    settings: &Settings,
    filter: &str,
    otlp: Option<&Otlp>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut tell = |key: String, message: String| found.push((key, message));
    for (key, message) in features::refused(settings, otlp) {
        tell(key, message);
    }
    if let Err(message) = settings.sign_in.check() {
        tell("access.issuers".to_owned(), message);
    }
    if let Some(message) = not_a_data_directory(&settings.data) {
        tell("data".to_owned(), message);
    }
    if let Err(error) = telemetry::filter(filter) {
        tell("log".to_owned(), error);
    }
    if let Some(Err(error)) = otlp.map(|it| telemetry::endpoint(&it.endpoint)) {
        tell("otlp_endpoint".to_owned(), error);
    }
    if let Some(error) = settings.tls.mistake() {
        tell(error.key().to_owned(), error.message().to_owned());
    }
    if let Some((key, why)) = settings.sign_in.mistake(settings.tls.asks_clients()) {
        tell(key.to_owned(), why.to_owned());
    }
    for error in settings.tools.mistakes() {
        tell(error.key().to_owned(), error.message().to_owned());
    }
    for (id, source) in &settings.sources {
        for (key, message) in source.mistakes(id) {
            tell(key, message);
        }
    }
    if let Err(message) = Places::new(&settings.sync.allow_networks) {
        tell(sources::NETWORKS.to_owned(), message);
    }
    if let Err(error) = settings.search.open() {
        tell(EmbedderError::KEY.to_owned(), error.cause());
    }
    for (at, root) in settings.analysis.roots.iter().enumerate() {
        if let Some(message) = not_a_folder(root) {
            tell(format!("analysis.roots[{at}]"), message);
        }
    }
    let person = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
    let installs = settings.install.policy(&settings.data, person);
    for (at, root) in installs.roots.iter().enumerate() {
        if let Some(message) = not_a_folder(root) {
            tell(format!("install.roots[{at}]"), message);
        }
    }
    for (key, message) in learning::mistakes(&settings.learning) {
        tell(key, message);
    }
    if let Some(feed) = &settings.trust.blocklist_feed
        && let Err(error) = std::fs::read(feed)
    {
        let message = format!("cannot read `{}`: {error}", feed.display());
        tell("trust.blocklist_feed".to_owned(), message);
    }
    found
}

/// Why a path is no folder.
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

/// Why a path cannot become a data directory: it, or what it would be in, is no folder.
fn not_a_data_directory(path: &Path) -> Option<String> {
    let there = path.ancestors().find(|path| path.exists())?;
    not_a_folder(there)
}

impl SourceConfig {
    /// What is wrong with a source, with its folder, and with its secrets.
    fn mistakes(&self, id: &str) -> Vec<SettingProblem> {
        let one = [(id.to_owned(), self.clone())].into();
        let source = match sources::configured(&one) {
            Err(error) => return vec![(error.key().to_owned(), error.message().to_owned())],
            Ok(mut sources) => sources.remove(0),
        };
        let mut found = Vec::new();
        if source.kind == ::sync::SourceKind::Directory
            && let Some(message) = not_a_folder(Path::new(&source.location))
        {
            found.push((format!("sources.{id}.location"), message));
        }
        for (key, place) in [
            ("credential", &source.credential),
            ("webhook_secret", &source.webhook_secret),
        ] {
            if let Some(Err(message)) = place.as_ref().map(secret::CredentialRef::resolve) {
                found.push((format!("sources.{id}.{key}"), message));
            }
        }
        found
    }
}
