//! The names in a client's certificate.

/// The names in a certificate that an authority of the operator has signed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateNames {
    /// Its URIs (of the subject's alternative names), such as `spiffe://acme/ci`.
    pub uris: Vec<String>,
    /// Its host names.
    pub dns: Vec<String>,
    /// Its mail addresses.
    pub emails: Vec<String>,
    /// The common name of its subject, where it has one alone.
    pub common_name: Option<String>,
}
