//! The certificate that a client has presented, and how long it is valid.

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
    /// The names of its owner.
    pub names: CertificateNames,
    /// When it ends.
    pub not_after: Timestamp,
    chain: Vec<CertificateDer<'static>>,
    tls: Arc<Inner>,
    /// Changes when the authorities change.
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
    /// Reads the chain that a client has presented. `authorities` is from before its handshake, so
    /// that no change is missed. `None`: it cannot be read, or has ended.
    pub(crate) fn new(
        chain: &[CertificateDer<'static>],
        tls: Arc<Inner>,
        authorities: watch::Receiver<u64>,
    ) -> Option<Self> {
        let first = parsed(chain.first()?)?;
        let not_after = not_after(&first)?;
        // A resumed session brings the certificate of its first handshake without verifying it
        // again.
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

    /// Returns when the certificate has ended, or when no currently trusted authority has
    /// signed it.
    pub async fn lapsed(mut self) {
        loop {
            let left = self.not_after.duration_since(SystemClock.now());
            let Ok(left) = Duration::try_from(left) else {
                return;
            };
            tokio::select! {
                // In steps, since `sleep` does not follow a clock that is set. At least a
                // millisecond: a rest below that would spin.
                () = tokio::time::sleep(left.min(MAX_CHECK_DELAY).max(MIN_CHECK_DELAY)) => {}
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
        // The whole chain, as in a handshake: the client may depend on an intermediate certificate
        // of its own.
        let now = UnixTime::now();
        verifier.verify_client_cert(first, rest, now).is_ok()
    }
}

const MAX_CHECK_DELAY: Duration = Duration::from_secs(3600);
const MIN_CHECK_DELAY: Duration = Duration::from_millis(1);

/// Reads the names of a certificate's owner. `None`: they cannot be read.
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
    // With several common names a rule could match one that the authority did not check.
    let mut common = certificate.subject().iter_common_name();
    if let (Some(name), None) = (common.next(), common.next()) {
        names.common_name = name.as_str().ok().map(str::to_owned);
    }
    Some(names)
}
