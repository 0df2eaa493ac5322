//! The settings, and mistakes in them.

use std::path::PathBuf;

use serde::Deserialize;

/// TLS of the port. Without any setting the port speaks none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// The server's certificate, and those between it and its authority, in PEM.
    pub certificate: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    pub key: Option<PathBuf>,
    /// The authorities of clients' certificates, in PEM.
    pub client_ca: Option<PathBuf>,
    /// The policy for client certificates.
    pub client_certificates: ClientCertificates,
}

/// The policy for client certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificates {
    /// They are not asked for one.
    #[default]
    None,
    /// They may: a client without one is anonymous.
    Optional,
    /// They have to: a client without one gets no connection.
    Required,
}

/// A mistake in a setting, or in the file that it names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Mistake {
    key: &'static str,
    message: String,
}

impl Mistake {
    pub(crate) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
        }
    }

    /// The key of the setting.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        self.key
    }

    /// The message, without the key.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

pub(crate) const CERTIFICATE: &str = "tls.certificate";
pub(crate) const KEY: &str = "tls.key";
pub(crate) const CLIENT_CA: &str = "tls.client_ca";
const CLIENT_CERTIFICATES: &str = "tls.client_certificates";

/// The paths of the files.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) client_ca: Option<PathBuf>,
    pub(crate) is_required: bool,
}

impl TlsConfig {
    /// Tells whether the port speaks TLS.
    #[must_use]
    pub fn is_on(&self) -> bool {
        // Any setting turns it on: half a configuration is then a mistake, and never a port that
        // silently speaks no TLS.
        *self != Self::default()
    }

    /// Tells whether clients are asked for certificates.
    #[must_use]
    pub fn asks_clients(&self) -> bool {
        self.client_certificates != ClientCertificates::None
    }

    /// The paths of the files.
    ///
    /// # Errors
    /// A setting is missing that another one needs.
    pub(crate) fn files(&self) -> Result<TlsFiles, Mistake> {
        let certificate = self.certificate.clone().ok_or_else(|| {
            let needs = "TLS needs the server's certificate: name its file, in PEM";
            Mistake::new(CERTIFICATE, needs)
        })?;
        let key = self.key.clone().ok_or_else(|| {
            Mistake::new(
                KEY,
                "TLS needs the key of the certificate: name its file, in PEM",
            )
        })?;
        match (self.client_certificates, &self.client_ca) {
            (ClientCertificates::None, Some(_)) => Err(Mistake::new(
                CLIENT_CERTIFICATES,
                "`tls.client_ca` is for clients' certificates: write optional or required here, or leave it out",
            )),
            (ClientCertificates::Optional | ClientCertificates::Required, None) => {
                Err(Mistake::new(
                    CLIENT_CA,
                    "clients' certificates need the authorities that sign them: name their file, in PEM",
                ))
            }
            (asked, client_ca) => Ok(TlsFiles {
                certificate,
                key,
                client_ca: client_ca.clone(),
                is_required: asked == ClientCertificates::Required,
            }),
        }
    }

    /// Checks the settings and the files that they name. Blocks.
    #[must_use]
    pub fn mistake(&self) -> Option<Mistake> {
        if !self.is_on() {
            return None;
        }
        crate::server::Tls::load(self).err()
    }
}
