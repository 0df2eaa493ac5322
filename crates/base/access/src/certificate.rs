//! What a client's certificate calls its owner.

/// The names in a certificate that an authority of the operator has signed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateNames {
    /// Its URIs (of the subject's alternative names), such as `spiffe://acme/ci`.
    pub uris: Vec<String>,
    /// Its names of machines.
    pub dns: Vec<String>,
    /// Its addresses of mail.
    pub emails: Vec<String>,
    /// The common name of its subject, where it has one alone.
    pub common_name: Option<String>,
}
