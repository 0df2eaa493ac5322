//! A loaded configuration, with all that belongs to it alone.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::config::{CERTIFICATE, CLIENT_CA, KEY, Mistake, TlsFiles};
use crate::files::Contents;
use model::Digest;

/// The most sessions that clients may resume.
const SESSION_CACHE_CAPACITY: usize = 1024;
/// The protocols of ALPN, in the server's order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A configuration.
pub(crate) struct Loaded {
    pub(crate) config: Arc<ServerConfig>,
    /// Verifies client certificates; none: clients are not asked.
    pub(crate) verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// When the server's certificate ends.
    pub(crate) not_after: Timestamp,
    pub(crate) digest: Digest,
    pub(crate) client_ca_digest: Option<Digest>,
}

impl Loaded {
    /// Makes a configuration of the contents of the files.
    pub(crate) fn new(contents: &Contents, files: &TlsFiles) -> Result<Self, Mistake> {
        let provider = Arc::new(ring::default_provider());
        let (chain, key) = (contents.chain(files)?, contents.key(files)?);
        let first = chain.first().map(AsRef::as_ref).unwrap_or_default();
        let shown = files.certificate.display();
        let not_after = parsed(first).as_ref().and_then(not_after);
        let not_after = not_after.ok_or_else(|| {
            let message = format!("`{shown}` has no certificate that can be read");
            Mistake::new(CERTIFICATE, message)
        })?;
        let verifier = match contents.authorities(files)? {
            None => None,
            Some(authorities) => Some(verifier(authorities, files, &provider)?),
        };
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| Mistake::new(CERTIFICATE, error.to_string()))?;
        let builder = match &verifier {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| unusable(&error, files))?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        // In memory and per configuration, without tickets that hold the session: with a new
        // configuration nobody resumes a session of the old one.
        config.session_storage = ServerSessionMemoryCache::new(SESSION_CACHE_CAPACITY);
        // Each takes a slot of the cache, and rustls sends two.
        config.send_tls13_tickets = 1;
        Ok(Self {
            config: Arc::new(config),
            verifier,
            not_after,
            digest: contents.digest,
            client_ca_digest: contents.client_ca_digest,
        })
    }
}

fn verifier(
    authorities: Vec<CertificateDer<'static>>,
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Mistake> {
    let mistake = |error: &dyn std::fmt::Display| {
        let path = files.client_ca.as_deref().unwrap_or("".as_ref());
        let message = format!("`{}` has no authority: {error}", path.display());
        Mistake::new(CLIENT_CA, message)
    };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| mistake(&error))?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = if files.is_required {
        builder
    } else {
        builder.allow_unauthenticated()
    };
    builder.build().map_err(|error| mistake(&error))
}

/// Says why a certificate and a key make no pair.
fn unusable(error: &Error, files: &TlsFiles) -> Mistake {
    let (certificate, key) = (files.certificate.display(), files.key.display());
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => Mistake::new(
            KEY,
            format!("the key in `{key}` is not that of the certificate in `{certificate}`"),
        ),
        Error::InvalidCertificate(
            why @ (CertificateError::BadEncoding | CertificateError::Other(_)),
        ) => Mistake::new(CERTIFICATE, format!("`{certificate}`: {why}")),
        Error::General(why) => Mistake::new(KEY, format!("`{key}`: {why}")),
        error => Mistake::new(CERTIFICATE, format!("`{certificate}`: {error}")),
    }
}

/// Parses a certificate; none: it cannot be read.
pub(crate) fn parsed(certificate: &[u8]) -> Option<X509Certificate<'_>> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate)
}

/// Returns when a certificate ends.
pub(crate) fn not_after(certificate: &X509Certificate<'_>) -> Option<Timestamp> {
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}
