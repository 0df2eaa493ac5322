//! The certificate that a client has shown, and how long it holds.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::sync::watch;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

use crate::loaded::{not_after, parsed};
use crate::server::Inner;
use access::CertificateNames;
use model::{Clock as _, SystemClock};

/// A certificate that was verified when its connection began.
pub struct ClientCertificate {
    /// What it calls its owner.
    pub names: CertificateNames,
    /// When it ends.
    pub not_after: Timestamp,
    chain: Vec<CertificateDer<'static>>,
    tls: Arc<Inner>,
    /// Told when the authorities change.
    authorities: watch::Receiver<u64>,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCertificate")
            .field("names", &self.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

impl ClientCertificate {
    /// What a client has shown. `authorities` is from before its handshake, so that no change
    /// is missed. None: it cannot be read, or has ended.
    pub(crate) fn new(
        chain: &[CertificateDer<'static>],
        tls: Arc<Inner>,
        authorities: watch::Receiver<u64>,
    ) -> Option<Self> {
        let first = parsed(chain.first()?)?;
        let not_after = not_after(&first)?;
        // One that was verified some time ago, where its session is resumed.
        if not_after <= SystemClock.now() {
            return None;
        }
        Some(Self {
            names: names(&first)?,
            not_after,
            chain: chain.to_vec(),
            tls,
            authorities,
        })
    }

    /// Returns when the certificate has ended, or when no authority that is trusted now has
    /// signed it.
    pub async fn lapsed(mut self) {
        loop {
            let left = self.not_after.duration_since(SystemClock.now());
            let Ok(left) = Duration::try_from(left) else {
                return;
            };
            tokio::select! {
                // Looked at again then: a clock may have been set.
                () = tokio::time::sleep(left.min(MAX_RELOAD_DELAY).max(MIN_RELOAD_DELAY)) => {}
                changed = self.authorities.changed() => {
                    if changed.is_err() || !self.is_trusted() {
                        return;
                    }
                }
            }
        }
    }

    fn is_trusted(&self) -> bool {
        let loaded = self.tls.loaded();
        let (Some(verifier), Some((first, rest))) = (&loaded.verifier, self.chain.split_first())
        else {
            return false;
        };
        let now = UnixTime::now();
        verifier.verify_client_cert(first, rest, now).is_ok()
    }
}

const MAX_RELOAD_DELAY: Duration = Duration::from_secs(3600);
const MIN_RELOAD_DELAY: Duration = Duration::from_millis(1);

/// What a certificate calls its owner. None: its names cannot be read.
pub(crate) fn names(certificate: &X509Certificate<'_>) -> Option<CertificateNames> {
    let mut names = CertificateNames::default();
    if let Some(alternative) = certificate.subject_alternative_name().ok()? {
        for name in &alternative.value.general_names {
            match name {
                GeneralName::URI(uri) => names.uris.push((*uri).to_owned()),
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                GeneralName::RFC822Name(name) => names.emails.push((*name).to_owned()),
                _ => {}
            }
        }
    }
    // Where there are several, nobody says which of them is meant.
    let mut common = certificate.subject().iter_common_name();
    if let (Some(name), None) = (common.next(), common.next()) {
        names.common_name = name.as_str().ok().map(str::to_owned);
    }
    Some(names)
}
