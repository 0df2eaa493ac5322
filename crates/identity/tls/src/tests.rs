//! TLS with real sockets, certificates and clients.

mod files;
mod handshakes;
mod limits;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{ClientCertificates, HandshakeError, ReloadOutcome, Secured, Tls, TlsConfig};

const LIMIT: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// An authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = common_name(name);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate and its key, in PEM.
    fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let made = params.signed_by(&key, &self.0).expect("a certificate");
        (made.pem(), key.serialize_pem())
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Of a client that is called by a URI.
fn client_of(authority: &Authority, uri: &str) -> (String, String) {
    authority.sign(|params| {
        params.subject_alt_names = vec![SanType::URI(uri.try_into().expect("a URI"))];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    })
}

/// A folder with the files of a server.
struct Files {
    folder: TempDir,
    authority: Authority,
}

impl Files {
    fn new() -> Self {
        let (folder, authority) = (TempDir::new().expect("a folder"), Authority::new("server"));
        let files = Self { folder, authority };
        files.renew();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).expect("set");
    }

    /// Another certificate of the server.
    fn renew(&self) {
        let (certificate, key) = self.authority.sign(|_| {});
        self.write("cert.pem", &certificate);
        self.write("key.pem", &key);
    }

    fn config(&self) -> TlsConfig {
        TlsConfig {
            certificate: Some(self.path("cert.pem")),
            key: Some(self.path("key.pem")),
            ..TlsConfig::default()
        }
    }

    fn with_clients(&self, authority: &Authority, asked: ClientCertificates) -> TlsConfig {
        self.write("clients.pem", &authority.pem());
        TlsConfig {
            client_ca: Some(self.path("clients.pem")),
            client_certificates: asked,
            ..self.config()
        }
    }

    /// A client that trusts the server's authority, and shows a certificate or none.
    fn client(&self, shown: Option<&(String, String)>, protocols: &[&str]) -> TlsConnector {
        self.client_of(&[&TLS12, &TLS13], shown, protocols)
    }

    /// The same with these versions alone.
    fn client_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        shown: Option<&(String, String)>,
        protocols: &[&str],
    ) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority.pem().as_bytes());
        roots.add(authority.expect("PEM")).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain =
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(8);
        TlsConnector::from(Arc::new(config))
    }
}

/// Two ends of a connection.
async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.expect("connected"), server.expect("accepted").0)
}

/// A handshake, and a byte from the server, so that the client knows what became of it.
async fn handshake(
    tls: &Tls,
    client: &TlsConnector,
) -> (
    Result<Secured, HandshakeError>,
    std::io::Result<TlsStream<TcpStream>>,
) {
    let (ours, theirs) = sockets().await;
    let server = async {
        let mut secured = tls.accept(theirs, LIMIT).await?;
        secured.stream.write_all(b"x").await?;
        secured.stream.flush().await?;
        Ok(secured)
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let client = async {
        let mut stream = client.connect(name, ours).await?;
        stream.read_exact(&mut [0]).await?;
        Ok(stream)
    };
    tokio::join!(server, client)
}

/// The same twice, so that it is taken.
fn look(tls: &Tls) -> (ReloadOutcome, ReloadOutcome) {
    (tls.reload(), tls.reload())
}
