//! Settings of the sources that skills are synced from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::remote_sources::Places;
use super::{SettingError, TrustConfig};
use ::sync::{Engine, Options, Source, SourceKind};
use registry::{Registry, Tiers};
use secret::{CredentialRef, ListedSecret, NamedBy, SecretRef, Secrets};
use sources::Limits;
use store::Store;

/// The setting with the networks that sources may be in.
pub(super) const NETWORKS: &str = "sync.allow_networks";

/// A source, by its id.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The kind of source.
    kind: SourceKind,
    /// Its name for people.
    #[serde(default)]
    name: String,
    /// Its address, or the path of its folder.
    #[serde(default)]
    location: String,
    /// Branch, tag or other ref of a repository.
    #[serde(default, rename = "ref")]
    reference: String,
    /// Only what is below this path of it.
    #[serde(default)]
    path: String,
    /// Which parts of it.
    #[serde(default)]
    select: Vec<String>,
    /// How the ids of its skills begin.
    #[serde(default)]
    namespace: Option<String>,
    /// How far they are trusted; needs a namespace of its own.
    #[serde(default)]
    trust: SourceTrust,
    /// Seconds between two syncs.
    #[serde(default)]
    interval_seconds: Option<u32>,
    /// Where the secret is that it wants of callers.
    #[serde(default)]
    credential: Option<SecretRef>,
    /// Where the secret is by which its webhooks are signed.
    #[serde(default)]
    webhook_secret: Option<SecretRef>,
}

impl SourceConfig {
    /// Its secrets, by key.
    pub(super) fn secrets(&self) -> [(&'static str, Option<&SecretRef>); 2] {
        [
            ("credential", self.credential.as_ref()),
            ("webhook_secret", self.webhook_secret.as_ref()),
        ]
    }

    /// It is no folder of this machine.
    pub(super) fn is_remote(&self) -> bool {
        self.kind != SourceKind::Directory
    }
}

/// How far the skills of a source are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceTrust {
    /// Verified by the operator.
    Verified,
    /// A known community source.
    Community,
    /// As in `trust` of the settings, else not.
    #[default]
    Unverified,
}

/// How sources are synced.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SyncConfig {
    /// Networks inside the company that sources may be in, such as `10.0.0.0/8`; else
    /// sources are public.
    pub allow_networks: Vec<String>,
    /// Secrets that sources added over the network may use, each for one origin.
    pub secrets: Vec<ListedSecret>,
    /// MiB that one scan of a source may fetch.
    pub max_mib: u64,
    /// Skills that one source may have.
    pub max_skills: usize,
    /// Seconds that one scan of a source may take.
    pub max_seconds: u64,
}

impl Default for SyncConfig {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            allow_networks: Vec::new(),
            secrets: Vec::new(),
            max_mib: limits.bytes >> 20,
            max_skills: limits.skills,
            max_seconds: limits.time.as_secs(),
        }
    }
}

fn credential_of(
    id: &str,
    key: &str,
    secret: Option<&SecretRef>,
) -> Result<Option<CredentialRef>, SettingError> {
    match secret {
        None => Ok(None),
        Some(SecretRef::Named(reference)) => Ok(Some(reference.clone())),
        // A source holds a reference alone, as those that callers add are stored and listed.
        Some(SecretRef::Given(_)) => Err(SettingError::new(
            format!("sources.{id}.{key}"),
            "name where the secret is: `{env: NAME}` or `{file: PATH}`",
        )),
    }
}

/// The sources of a config file.
pub(super) fn configured(
    sources: &BTreeMap<String, SourceConfig>,
) -> Result<Vec<Source>, SettingError> {
    let source = |(id, config): (&String, &SourceConfig)| {
        let wrong = |key: &str, message| SettingError::new(format!("sources.{id}{key}"), message);
        let namespace = config.namespace.as_deref().map(str::parse).transpose();
        let source = Source {
            id: id.clone(),
            name: config.name.clone(),
            kind: config.kind,
            location: config.location.clone(),
            reference: config.reference.clone(),
            path: config.path.clone(),
            select: config.select.clone(),
            namespace: namespace.map_err(|error| wrong(".namespace", error))?,
            interval_seconds: config.interval_seconds,
            credential: credential_of(id, "credential", config.credential.as_ref())?,
            webhook_secret: credential_of(id, "webhook_secret", config.webhook_secret.as_ref())?,
            named_by: NamedBy::Operator,
        };
        if config.trust != SourceTrust::Unverified && source.namespace.is_none() {
            let message =
                "whose skills are trusted needs a `namespace`: others could publish next to it";
            return Err(wrong(".trust", message.to_owned()));
        }
        source.check().map_err(|error| match &error {
            ::sync::Error::Parameter { field, .. } if *field != "source_id" => {
                wrong(&format!(".{field}"), error.to_string())
            }
            _ => wrong("", error.to_string()),
        })?;
        Ok(source)
    };
    sources.iter().map(source).collect()
}

/// Returns the trust tiers by namespace: those of the settings, and those of sources.
pub(super) fn tiers(trust: &TrustConfig, sources: &BTreeMap<String, SourceConfig>) -> Tiers {
    let mut tiers = Tiers {
        verified: trust.verified.clone(),
        community: trust.community.clone(),
    };
    for config in sources.values() {
        let Some(namespace) = &config.namespace else {
            continue;
        };
        match config.trust {
            SourceTrust::Verified => tiers.verified.push(namespace.clone()),
            SourceTrust::Community => tiers.community.push(namespace.clone()),
            SourceTrust::Unverified => {}
        }
    }
    tiers
}

/// Sources and syncs over an open data directory.
pub(super) fn open(
    (store, registry): (Store, Registry),
    data: &Path,
    config: &SyncConfig,
    sources: Vec<Source>,
) -> Result<Engine, super::StartError> {
    let places = Places::new(&config.allow_networks);
    let places = places.map_err(|message| SettingError::new(NETWORKS, message))?;
    let options = Options {
        limits: Limits {
            bytes: config.max_mib << 20,
            skills: config.max_skills,
            time: Duration::from_secs(config.max_seconds),
            ..Limits::default()
        },
        // Sources with the same interval would otherwise all be scanned at the same moment.
        jitter: Arc::new(random),
        secrets: Secrets::listing(&config.secrets),
        ..Options::default()
    };
    let folder = data.join("sources");
    let engine = Engine::open(store, registry, places, folder, sources, options);
    Ok(engine?)
}

/// A random number from 0 to 1.
fn random() -> f64 {
    let (bits, _) = uuid::Uuid::new_v4().as_u64_pair();
    let bits = u32::try_from(bits >> 32).unwrap_or(0);
    f64::from(bits) / f64::from(u32::MAX)
}
