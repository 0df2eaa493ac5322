//! Files of certificates and keys, in PEM.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{CERTIFICATE, CLIENT_CA, KEY, Mistake, TlsFiles};
use model::Digest;

/// The most bytes of a file.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// The most certificates from a server's to its authority's.
pub(crate) const MAX_CHAIN: usize = 16;

/// The contents of the files, read together.
pub(crate) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
    /// The digest of all of them.
    pub(crate) digest: Digest,
    /// The digest of the authorities of clients.
    pub(crate) client_ca_digest: Option<Digest>,
}

impl Contents {
    /// Reads the files. Blocks.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, Mistake> {
        let certificate = read(CERTIFICATE, &files.certificate)?;
        let key = read(KEY, &files.key)?;
        let client_ca = files.client_ca.as_deref();
        let client_ca = client_ca.map(|path| read(CLIENT_CA, path)).transpose()?;
        let client_ca_digest = client_ca.as_deref().map(Digest::of);
        let mut digests = Vec::new();
        for part in [Some(&certificate), Some(&key), client_ca.as_ref()] {
            // A digest of digests: with the bytes one behind the other, a line that moves from one
            // file to the next would go unnoticed.
            let digest = Digest::of(part.map(Vec::as_slice).unwrap_or_default());
            digests.extend_from_slice(digest.as_bytes());
        }
        Ok(Self {
            digest: Digest::of(&digests),
            certificate,
            key,
            client_ca,
            client_ca_digest,
        })
    }

    /// The server's certificate, and those up to its authority.
    pub(crate) fn chain(&self, files: &TlsFiles) -> Result<Vec<CertificateDer<'static>>, Mistake> {
        let chain = certificates(CERTIFICATE, &files.certificate, &self.certificate)?;
        if chain.len() > MAX_CHAIN {
            let (shown, found) = (files.certificate.display(), chain.len());
            let message = format!(
                "`{shown}` has {found} certificates, more than the {MAX_CHAIN} that may stand between a server and its authority"
            );
            return Err(Mistake::new(CERTIFICATE, message));
        }
        Ok(chain)
    }

    /// The authorities of clients.
    pub(crate) fn authorities(
        &self,
        files: &TlsFiles,
    ) -> Result<Option<Vec<CertificateDer<'static>>>, Mistake> {
        let (Some(path), Some(bytes)) = (&files.client_ca, &self.client_ca) else {
            return Ok(None);
        };
        certificates(CLIENT_CA, path, bytes).map(Some)
    }

    /// The key of the certificate.
    pub(crate) fn key(&self, files: &TlsFiles) -> Result<PrivateKeyDer<'static>, Mistake> {
        PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| {
            let path = files.key.display();
            let is_encrypted = String::from_utf8_lossy(&self.key).contains("ENCRYPTED");
            let message = match error {
                pem::Error::NoItemsFound if is_encrypted => format!(
                    "the key in `{path}` is encrypted: decrypt it, for instance with `openssl pkey -in FILE -out FILE`"
                ),
                pem::Error::NoItemsFound => format!("`{path}` has no private key in PEM"),
                // Without the error: it may quote a line of the key.
                _ => format!("`{path}` is damaged PEM"),
            };
            Mistake::new(KEY, message)
        })
    }
}

fn certificates(
    setting: &'static str,
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, Mistake> {
    let path = path.display();
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match found {
        Ok(found) if found.is_empty() => Err(Mistake::new(
            setting,
            format!("`{path}` has no certificate in PEM"),
        )),
        Ok(found) => Ok(found),
        Err(_) => Err(Mistake::new(setting, format!("`{path}` is damaged PEM"))),
    }
}

/// Reads a file, up to a limit. Messages name a relative path as an absolute one.
fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, Mistake> {
    let shown = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = shown.display();
    let mistake = |error: io::Error| {
        let message = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no file `{shown}`"),
            _ => format!("cannot read `{shown}`: {error}"),
        };
        Mistake::new(setting, message)
    };
    // Before it is opened: opening a pipe waits for a writer.
    if !std::fs::metadata(path).map_err(mistake)?.is_file() {
        return Err(Mistake::new(setting, format!("`{shown}` is no file")));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(mistake)?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(mistake)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("`{shown}` has more than {} MiB", MAX_BYTES >> 20);
        return Err(Mistake::new(setting, message));
    }
    Ok(bytes)
}
