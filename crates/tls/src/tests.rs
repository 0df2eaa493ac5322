//! TLS with real sockets, certificates and clients.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType, date_time_ymd,
};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, SupportedProtocolVersion,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::loaded::parsed;
use crate::{ClientCertificates, HandshakeError, Look, Report, Secured, Tls, TlsConfig};
use access::CertificateNames;
use model::{Clock as _, SystemClock};

const LIMIT: Duration = Duration::from_secs(30);

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

fn uris(secured: &Secured) -> Option<Vec<String>> {
    let client = secured.client.as_ref();
    client.map(|client| client.names.uris.clone())
}

/// The same twice, so that it is taken.
fn look(tls: &Tls) -> (Look, Look) {
    (tls.look(), tls.look())
}

#[tokio::test]
async fn a_client_gets_the_protocol_that_it_speaks() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    for (offered, chosen) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let (server, client) = handshake(&tls, &files.client(None, offered)).await;
        let client = client.expect("connected");
        let protocol = client.get_ref().1.alpn_protocol();
        assert_eq!(protocol, chosen.map(str::as_bytes));
        assert_eq!(uris(&server.expect("accepted")), None);
    }
    let (server, client) = handshake(&tls, &files.client(None, &["smtp"])).await;
    assert!(server.is_err() && client.is_err());
    assert_eq!(tls.failed_handshakes(), 1);
}

#[tokio::test]
async fn a_client_signs_in_by_an_authority_of_the_operator_alone() {
    let (files, authority) = (Files::new(), Authority::new("clients"));
    let known = client_of(&authority, "spiffe://acme/ci");
    let unknown = client_of(&Authority::new("others"), "spiffe://acme/ci");
    // Signed by the right authority, for another use.
    let server_only = authority.sign(|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    for (asked, without) in [
        (ClientCertificates::Optional, true),
        (ClientCertificates::Required, false),
    ] {
        let tls = Tls::load(&files.with_clients(&authority, asked)).expect("loaded");
        let (server, client) = handshake(&tls, &files.client(Some(&known), &[])).await;
        assert!(client.is_ok());
        assert_eq!(
            uris(&server.expect("accepted")),
            Some(vec!["spiffe://acme/ci".to_owned()])
        );
        for refused in [&unknown, &server_only] {
            let (server, client) = handshake(&tls, &files.client(Some(refused), &[])).await;
            assert!(server.is_err() && client.is_err());
        }
        let (server, client) = handshake(&tls, &files.client(None, &[])).await;
        assert_eq!((server.is_ok(), client.is_ok()), (without, without));
    }
}

#[test]
fn a_certificate_says_its_names_each_in_its_place() {
    let (certificate, _) = Authority::new("clients").sign(|params| {
        params.distinguished_name = common_name("Ada");
        params.subject_alt_names = vec![
            SanType::DnsName("web.acme.example".try_into().expect("a name")),
            SanType::URI("spiffe://acme/ci".try_into().expect("a URI")),
            SanType::Rfc822Name("ada@acme.example".try_into().expect("an address")),
            SanType::IpAddress([127, 0, 0, 1].into()),
        ];
    });
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
    let names = CertificateNames {
        uris: vec!["spiffe://acme/ci".into()],
        dns: vec!["web.acme.example".into()],
        emails: vec!["ada@acme.example".into()],
        common_name: Some("Ada".into()),
    };
    let whole = parsed(&certificate).expect("a certificate");
    assert_eq!(crate::client::names(&whole), Some(names));
    assert!(parsed(&certificate[..40]).is_none());
}

/// What became of a session that a client has, and may resume: how the next handshake went,
/// and whom the server takes it for.
async fn resumed(tls: &Tls, client: &TlsConnector) -> Option<(HandshakeKind, Vec<String>)> {
    let (server, client) = handshake(tls, client).await;
    let (server, _) = (server.ok()?, client.ok()?);
    let kind = server.stream.get_ref().1.handshake_kind()?;
    Some((kind, uris(&server)?))
}

#[tokio::test]
async fn a_session_is_resumed_until_any_file_changes_and_never_by_an_authority_that_is_gone() {
    for version in [&TLS12, &TLS13] {
        let (files, authority) = (Files::new(), Authority::new("clients"));
        let config = files.with_clients(&authority, ClientCertificates::Optional);
        let tls = Tls::load(&config).expect("loaded");
        let ci = client_of(&authority, "spiffe://acme/ci");
        let client = files.client_of(&[version], Some(&ci), &[]);
        let is_ci = |kind| Some((kind, vec!["spiffe://acme/ci".to_owned()]));
        assert_eq!(resumed(&tls, &client).await, is_ci(HandshakeKind::Full));
        assert_eq!(resumed(&tls, &client).await, is_ci(HandshakeKind::Resumed));
        files.renew();
        assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
        assert_eq!(resumed(&tls, &client).await, is_ci(HandshakeKind::Full));
        assert_eq!(resumed(&tls, &client).await, is_ci(HandshakeKind::Resumed));
        files.write("clients.pem", &Authority::new("others").pem());
        assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
        assert_eq!(resumed(&tls, &client).await, None);
    }
}

#[tokio::test]
async fn a_connection_is_told_when_its_certificate_is_trusted_no_more() {
    let (files, old, new) = (Files::new(), Authority::new("old"), Authority::new("new"));
    let config = files.with_clients(&old, ClientCertificates::Required);
    let tls = Tls::load(&config).expect("loaded");
    let ci = client_of(&old, "spiffe://acme/ci");
    let (server, _client) = handshake(&tls, &files.client(Some(&ci), &[])).await;
    let certificate = server.expect("accepted").client.expect("a certificate");
    let mut lapsed = tokio::spawn(certificate.lapsed());
    // The server's own certificate and one authority more end nothing.
    files.renew();
    assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
    files.write("clients.pem", &format!("{}{}", old.pem(), new.pem()));
    assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!lapsed.is_finished());
    files.write("clients.pem", &new.pem());
    assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
    let told = tokio::time::timeout(LIMIT, &mut lapsed).await;
    told.expect("in time").expect("told");
}

/// Sends what a client has to send.
async fn send(client: &mut ClientConnection, stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).expect("a vector takes all");
    }
    stream.write_all(&bytes).await.expect("sent");
}

/// Reads a part of what its server has sent.
async fn receive(client: &mut ClientConnection, stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    let count = stream.read(&mut bytes).await.expect("received");
    assert_ne!(count, 0, "the server has gone");
    let mut rest = &bytes[..count];
    while !rest.is_empty() {
        client.read_tls(&mut rest).expect("a slice gives all");
        client.process_new_packets().expect("TLS");
    }
}

#[tokio::test]
async fn a_certificate_whose_authority_goes_while_its_handshake_runs_is_looked_at_again() {
    let (files, old) = (Files::new(), Authority::new("old"));
    let config = files.with_clients(&old, ClientCertificates::Optional);
    let tls = Tls::load(&config).expect("loaded");
    let (mut ours, theirs) = sockets().await;
    let accepting = tokio::spawn({
        let tls = tls.clone();
        async move { tls.accept(theirs, LIMIT).await }
    });
    let ci = client_of(&old, "spiffe://acme/ci");
    let client = files.client(Some(&ci), &[]);
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(Arc::clone(client.config()), name).expect("a client");
    send(&mut client, &mut ours).await;
    // The server has chosen its configuration once it answers.
    ours.readable().await.expect("an answer");
    files.write("clients.pem", &Authority::new("new").pem());
    assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
    // Only now the client shows its certificate.
    while client.is_handshaking() {
        receive(&mut client, &mut ours).await;
        send(&mut client, &mut ours).await;
    }
    let accepted = accepting.await.expect("a task").expect("accepted");
    let lapsed = accepted.client.expect("a certificate").lapsed();
    tokio::time::timeout(LIMIT, lapsed).await.expect("told");
}

#[tokio::test]
async fn a_link_that_is_put_in_place_of_another_one_is_a_change() {
    let files = Files::new();
    // As Kubernetes mounts a secret: cert.pem -> ..data/cert.pem, ..data -> ..1.
    let mounted = |name: &str| {
        let folder = files.path(name);
        std::fs::create_dir(&folder).expect("a folder");
        let (certificate, key) = files.authority.sign(|_| {});
        std::fs::write(folder.join("cert.pem"), certificate).expect("a file");
        std::fs::write(folder.join("key.pem"), key).expect("a file");
    };
    mounted("..1");
    symlink("..1", files.path("..data")).expect("a link");
    for name in ["cert.pem", "key.pem"] {
        std::fs::remove_file(files.path(name)).expect("removed");
        symlink(Path::new("..data").join(name), files.path(name)).expect("a link");
    }
    let tls = Tls::load(&files.config()).expect("loaded");
    assert_eq!(look(&tls), (Look::Same, Look::Same));
    mounted("..2");
    symlink("..2", files.path("..data_tmp")).expect("a link");
    std::fs::rename(files.path("..data_tmp"), files.path("..data")).expect("swapped");
    assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
    assert_eq!(tls.look(), Look::Same);
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing_and_are_told() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let failing = || tls.gauges().map(|(_, _, value)| value)[1];
    let kept = |look: (Look, Look)| match look {
        (Look::Unsettled, Look::Kept(mistake)) => mistake.to_string(),
        look => panic!("{look:?}"),
    };
    let whole = std::fs::read_to_string(files.path("cert.pem")).expect("a file");
    let (other, _) = files.authority.sign(|_| {});
    files.write("cert.pem", &other);
    let (key, certificate) = (files.path("key.pem"), files.path("cert.pem"));
    let pair = format!(
        "tls.key: the key in `{}` is not that of the certificate in `{}`",
        key.display(),
        certificate.display()
    );
    assert_eq!(failing(), 0);
    assert_eq!(kept(look(&tls)), pair);
    assert_eq!(failing(), 1);
    assert!(matches!(tls.look(), Look::Kept(_)));
    std::fs::remove_file(&certificate).expect("removed");
    let gone = format!(
        "tls.certificate: there is no file `{}`",
        certificate.display()
    );
    assert_eq!(kept(look(&tls)), gone);
    let (ended, ended_key) = files.authority.sign(|params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    files.write("cert.pem", &ended);
    let old_key = std::fs::read_to_string(&key).expect("a file");
    files.write("key.pem", &ended_key);
    let ended = format!(
        "tls.certificate: the certificate in `{}` ended at 2021-01-01T00:00:00Z",
        certificate.display()
    );
    assert_eq!(kept(look(&tls)), ended);
    let (server, client) = handshake(&tls, &files.client(None, &[])).await;
    assert!(
        server.is_ok() && client.is_ok(),
        "what was loaded serves on"
    );
    // Back to what is loaded, or on to something that works.
    files.write("cert.pem", &whole);
    files.write("key.pem", &old_key);
    assert_eq!((tls.look(), failing()), (Look::Same, 0));
    files.renew();
    assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
}

#[test]
fn a_file_that_is_half_written_is_not_taken() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let (certificate, key) = files.authority.sign(|_| {});
    files.write("cert.pem", &certificate);
    assert_eq!(tls.look(), Look::Unsettled);
    files.write("key.pem", &key);
    assert_eq!(look(&tls), (Look::Unsettled, Look::Replaced));
}

#[test]
fn what_cannot_be_loaded_is_told_by_its_setting() {
    let files = Files::new();
    let path = |name: &str| Some(files.path(name));
    let told = |change: &dyn Fn(&mut TlsConfig)| {
        let mut config = files.config();
        change(&mut config);
        config.mistake().expect("a mistake").to_string()
    };
    let at = |name: &str| files.path(name).display().to_string();
    let (certificate, key) = (at("cert.pem"), at("key.pem"));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    files.write("encrypted.pem", encrypted);
    files.write("damaged.pem", "-----BEGIN CERTIFICATE-----\nAAAA");
    files.write(
        "no.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let one = std::fs::read_to_string(files.path("cert.pem")).expect("a file");
    files.write("long.pem", &one.repeat(17));
    files.write("large.pem", &" ".repeat((1 << 20) + 1));
    std::fs::create_dir(files.path("folder")).expect("a folder");
    for (message, expected) in [
        (
            told(&|it| it.certificate = None),
            "tls.certificate: TLS needs the server's certificate: name its file, in PEM".to_owned(),
        ),
        (
            told(&|it| it.key = None),
            "tls.key: TLS needs the key of the certificate: name its file, in PEM".to_owned(),
        ),
        (
            told(&|it| it.certificate = path("none.pem")),
            format!("tls.certificate: there is no file `{}`", at("none.pem")),
        ),
        (
            told(&|it| it.certificate = path("folder")),
            format!("tls.certificate: `{}` is no file", at("folder")),
        ),
        (
            told(&|it| it.certificate = path("large.pem")),
            format!("tls.certificate: `{}` has more than 1 MiB", at("large.pem")),
        ),
        (
            told(&|it| it.certificate = path("key.pem")),
            format!("tls.certificate: `{key}` has no certificate in PEM"),
        ),
        (
            told(&|it| it.certificate = path("damaged.pem")),
            format!("tls.certificate: `{}` is damaged PEM", at("damaged.pem")),
        ),
        (
            told(&|it| it.certificate = path("no.pem")),
            format!("tls.certificate: `{}` has no certificate that can be read", at("no.pem")),
        ),
        (
            told(&|it| it.certificate = path("long.pem")),
            format!(
                "tls.certificate: `{}` has 17 certificates, more than the 16 that may stand between a server and its authority",
                at("long.pem")
            ),
        ),
        (
            told(&|it| it.key = path("cert.pem")),
            format!("tls.key: `{certificate}` has no private key in PEM"),
        ),
        (
            told(&|it| it.key = path("encrypted.pem")),
            format!(
                "tls.key: the key in `{}` is encrypted: decrypt it, for instance with `openssl pkey -in FILE -out FILE`",
                at("encrypted.pem")
            ),
        ),
        (
            told(&|it| it.client_ca = path("cert.pem")),
            "tls.client_certificates: `tls.client_ca` is for clients' certificates: write optional or required here, or leave it out".to_owned(),
        ),
        (
            told(&|it| it.client_certificates = ClientCertificates::Required),
            "tls.client_ca: clients' certificates need the authorities that sign them: name their file, in PEM".to_owned(),
        ),
    ] {
        assert_eq!(message, expected);
    }
    let relative = TlsConfig {
        certificate: Some("none/cert.pem".into()),
        ..files.config()
    };
    let absolute = std::path::absolute("none/cert.pem").expect("a path");
    assert_eq!(
        relative.mistake().expect("a mistake").message(),
        format!("there is no file `{}`", absolute.display())
    );
    assert_eq!(files.config().mistake(), None);
    assert_eq!(TlsConfig::default().mistake(), None);
}

#[test]
fn settings_are_read_as_they_are_documented() {
    let config: TlsConfig = serde_yaml::from_str(
        "{certificate: a.pem, key: b.pem, client_ca: c.pem, client_certificates: required}",
    )
    .expect("settings");
    assert_eq!(
        config,
        TlsConfig {
            certificate: Some("a.pem".into()),
            key: Some("b.pem".into()),
            client_ca: Some("c.pem".into()),
            client_certificates: ClientCertificates::Required,
        }
    );
    assert!(config.is_on() && !TlsConfig::default().is_on());
}

#[test]
fn an_operator_is_told_of_an_end_that_is_near_and_of_a_key_that_others_may_read() {
    let files = Files::new();
    let (certificate, key) = files.authority.sign(|params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 31);
    });
    files.write("cert.pem", &certificate);
    files.write("key.pem", &key);
    let report = |at: &str| {
        let at: Timestamp = at.parse().expect("a time");
        files.config().report(at).expect("files").expect("TLS")
    };
    let of = |found: &str, is_urgent| Report {
        found: found.to_owned(),
        is_urgent,
    };
    let end = "the certificate ends at 2030-01-31T00:00:00Z";
    assert_eq!(
        report("2030-01-10T00:00:00Z"),
        of(&format!("{end}, in 21 days"), false)
    );
    assert_eq!(
        report("2030-01-10T00:00:01Z"),
        of(&format!("{end}, in 20 days"), true)
    );
    let shown = files.path("cert.pem").display().to_string();
    let ended =
        format!("tls.certificate: the certificate in `{shown}` ended at 2030-01-31T00:00:00Z");
    assert_eq!(report("2030-01-31T00:00:00Z"), of(&ended, true));
    std::fs::set_permissions(files.path("key.pem"), PermissionsExt::from_mode(0o644)).expect("set");
    let key = files.path("key.pem").display().to_string();
    let open = format!(
        "{end}, in 395 days; tls.key: everybody on this machine may read or write `{key}`; `chmod 0640` or stricter keeps the key"
    );
    assert_eq!(report("2029-01-01T00:00:00Z"), of(&open, true));
    assert_eq!(TlsConfig::default().report(SystemClock.now()), Ok(None));
}

#[tokio::test]
async fn a_client_that_speaks_no_tls_is_told_in_its_own_protocol() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let sentence = "This port speaks TLS: write https:// in the address of the server.";
    let mut goaway = vec![0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 74, 7, 0, 0, 0, 0, 0];
    goaway.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xc]);
    goaway.extend_from_slice(sentence.as_bytes());
    let http1 = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 67\r\n\r\n{sentence}\n"
    );
    for (sent, expected) in [
        (
            "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
            http1.as_bytes(),
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &goaway),
        ("\0\0", b""),
        ("", b""),
    ] {
        let (mut client, server) = sockets().await;
        client.write_all(sent.as_bytes()).await.expect("sent");
        client.shutdown().await.expect("shut down");
        let mut answer = Vec::new();
        let (accepted, read) =
            tokio::join!(tls.accept(server, LIMIT), client.read_to_end(&mut answer));
        read.expect("an answer");
        assert_eq!(answer, expected, "{sent:?}");
        let is_empty = sent.is_empty();
        assert!(
            matches!(accepted, Err(HandshakeError::Cleartext)) != is_empty,
            "{sent:?}: {accepted:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_in_its_handshake_is_let_go() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    // Nothing; a part of a record; a part of HTTP.
    for sent in [&b""[..], &[0x16, 3, 1, 0, 200, 1], b"GET"] {
        let (mut client, server) = sockets().await;
        client.write_all(sent).await.expect("sent");
        let accepted = tls.accept(server, LIMIT).await;
        let is_answered = sent == b"GET";
        assert!(
            matches!(accepted, Err(HandshakeError::Slow)) != is_answered,
            "{sent:?}: {accepted:?}"
        );
    }
    assert_eq!(tls.failed_handshakes(), 3);
}
