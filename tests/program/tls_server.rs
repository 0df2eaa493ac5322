//! The server's own TLS, with the real binary: every face over it, client certificates as a
//! way to sign in, and files that change while it serves.

mod renewal;
mod settings;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;

use bytes::Bytes;
use contract::v1;
use contract::v1::access_client::AccessClient;
use contract::v1::registry_client::RegistryClient;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

use crate::support::{self, Server};

struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
struct Pair(String, String);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).expect("names");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let made = params.signed_by(&key, &self.0).expect("a certificate");
        Pair(made.pem(), key.serialize_pem())
    }

    /// Of a client that is called by a URI.
    fn client(&self, uri: &str) -> Pair {
        self.sign(|params| {
            params.subject_alt_names = vec![SanType::URI(uri.try_into().expect("a URI"))];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })
    }
}

/// The files of a server, and the authorities that signed them.
struct Files {
    folder: TempDir,
    authority: Authority,
    clients: Authority,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            folder: TempDir::new().expect("a folder"),
            authority: Authority::new(),
            clients: Authority::new(),
        };
        files.renew();
        files.write("ca.pem", &files.authority.0.pem());
        files.write("clients.pem", &files.clients.0.pem());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
        path.display().to_string()
    }

    fn renew(&self) -> Pair {
        let pair = self.authority.sign(|_| {});
        self.write("cert.pem", &pair.0);
        self.write("key.pem", &pair.1);
        pair
    }

    /// The settings of TLS, where clients are asked for certificates or not.
    fn tls(&self, clients: Option<&str>) -> String {
        let at = |name: &str| self.path(name).display().to_string();
        let (certificate, key, ca) = (at("cert.pem"), at("key.pem"), at("clients.pem"));
        let clients = clients.map_or_else(String::new, |asked| {
            format!("  client_ca: {ca}\n  client_certificates: {asked}\n")
        });
        format!("tls:\n  certificate: {certificate}\n  key: {key}\n{clients}")
    }

    async fn channel(&self, server: &Server, shown: Option<&Pair>) -> Channel {
        let ca = Certificate::from_pem(self.authority.0.pem());
        let mut tls = ClientTlsConfig::new().ca_certificate(ca);
        if let Some(Pair(certificate, key)) = shown {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        let endpoint = Channel::from_shared(server.url.clone()).expect("an address");
        let endpoint = endpoint.tls_config(tls).expect("TLS");
        endpoint.connect().await.expect("a connection")
    }

    fn connector(&self, shown: Option<&Pair>) -> TlsConnector {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        let mut roots = RootCertStore::empty();
        roots.add(der(&self.authority.0.pem())).expect("added");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(Pair(certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                let made = builder.with_client_auth_cert(vec![der(certificate)], key);
                made.expect("a pair")
            }
        };
        TlsConnector::from(Arc::new(config))
    }

    /// Asks over HTTP/1.1: status and body.
    async fn ask(
        &self,
        server: &Server,
        shown: Option<&Pair>,
        request: http::request::Builder,
        body: String,
    ) -> (u16, String) {
        let stream = TcpStream::connect(address(server))
            .await
            .expect("connected");
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let stream = self.connector(shown).connect(name, stream).await;
        let stream = TokioIo::new(stream.expect("TLS"));
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake::<_, Full<Bytes>>(stream)
                .await
                .expect("HTTP");
        tokio::spawn(connection);
        let request = request.header("host", address(server));
        let request = request.body(Full::new(body.into())).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        (
            head.status.as_u16(),
            String::from_utf8_lossy(&body).into_owned(),
        )
    }

    /// Runs a command against the server, with a certificate or without.
    async fn command(&self, server: &Server, shown: Option<&Pair>, args: &[&str]) -> Output {
        let ca = self.path("ca.pem").display().to_string();
        let mut all: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        all.extend(["--server", &server.url, "--ca", &ca].map(str::to_owned));
        if let Some(Pair(certificate, key)) = shown {
            let certificate = self.write("shown.pem", certificate);
            let key = self.write("shown.key", key);
            all.extend(["--cert".to_owned(), certificate, "--key".to_owned(), key]);
        }
        let run = tokio::task::spawn_blocking(move || {
            let words: Vec<&str> = all.iter().map(String::as_str).collect();
            support::command(&words)
        });
        run.await.expect("a command")
    }
}

fn address(server: &Server) -> &str {
    server.url.strip_prefix("https://").expect("TLS")
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Code and message of a command that failed, and the last of what to do.
fn refused(output: &Output) -> (String, String, String) {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let error: Value = serde_json::from_str(stderr.lines().last().unwrap_or_default())
        .unwrap_or_else(|_| panic!("{output:?}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let error = &error["error"];
    let hints = error["recovery_suggestions"].as_array();
    let hint = hints.and_then(|hints| hints.last()).map(text);
    (
        text(&error["code"]),
        text(&error["message"]),
        hint.unwrap_or_default(),
    )
}

async fn caller(channel: Channel) -> String {
    let mut access = AccessClient::new(channel);
    let asked = access.get_caller(v1::GetCallerRequest {});
    asked.await.expect("a caller").into_inner().caller
}

const RULES: &str = "
access:
  sign_in: tokens
  anonymous: [read]
  certificates:
    - {name: ci, uri: spiffe://acme/ci, allow: [publisher], skills: [github/acme/*]}
";

fn initialize() -> String {
    let ask = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                   "clientInfo": {"name": "test", "version": "1"}},
    });
    ask.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_face_is_served_over_tls_and_the_socket_without() {
    let files = Files::new();
    let server = Server::with(&[], &files.tls(None));
    assert!(
        server.url.starts_with("https://127.0.0.1:"),
        "{}",
        server.url
    );
    assert_eq!(
        caller(files.channel(&server, None).await).await,
        "anonymous"
    );
    let rest = files.ask(&server, None, Request::get("/api/v1/caller"), String::new());
    let (status, body) = rest.await;
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &body["caller"]), (200, &json!("anonymous")));
    let mcp = Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let (status, body) = files.ask(&server, None, mcp, initialize()).await;
    assert!(status == 200 && body.contains("\"repertoire\""), "{body}");
    let listed = files.command(&server, None, &["list", "--json"]).await;
    let data = server.data.display().to_string();
    let local = support::command(&["list", "--json", "--data", &data]);
    assert!(
        !json_of(&listed)["skills"]
            .as_array()
            .expect("a list")
            .is_empty()
    );
    assert_eq!(json_of(&listed), json_of(&local));
    let status = support::command(&["status", "--data", &data, "--json"]);
    assert_eq!(json_of(&status)["url"], server.url);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_signs_its_caller_in_by_the_rule_for_it() {
    let files = Files::new();
    let server = Server::with(&[], &format!("{}{RULES}", files.tls(Some("optional"))));
    let ci = files.clients.client("spiffe://acme/ci");
    let other = files.clients.client("spiffe://acme/other");
    for (shown, expected) in [
        (Some(&ci), "certificate:ci"),
        (Some(&other), "anonymous"),
        (None, "anonymous"),
    ] {
        let channel = files.channel(&server, shown).await;
        assert_eq!(caller(channel).await, expected);
        let rest = Request::get("/api/v1/caller")
            // Whoever a header names: nobody asks it.
            .header("x-forwarded-client-cert", "URI=spiffe://acme/ci");
        let (_, body) = files.ask(&server, shown, rest, String::new()).await;
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["caller"], expected);
    }
    let channel = files.channel(&server, Some(&ci)).await;
    let mut registry = RegistryClient::new(channel);
    let skill = |id| support::skill(id, "", "# Steps\n");
    let published = registry.publish_skill(skill("github/acme/refunds")).await;
    published.expect("published");
    let version = registry.get_version(v1::GetVersionRequest {
        skill_id: "github/acme/refunds".to_owned(),
        ..Default::default()
    });
    let version = version.await.expect("a version").into_inner();
    assert!(
        format!("{version:?}").contains("certificate:ci"),
        "{version:?}"
    );
    let elsewhere = registry.publish_skill(skill("github/other/refunds")).await;
    let message = elsewhere.expect_err("refused").message().to_owned();
    let expected =
        "certificate:ci may publish skills for github/acme/* alone, not for github/other/refunds";
    assert!(message.contains(expected), "{message}");

    // A token that is shown as well says who calls, also where it is wrong.
    let data = server.data.display().to_string();
    let made = [
        "token", "create", "ada", "--role", "reader", "--format", "plain", "--data", &data,
    ];
    let token = String::from_utf8(support::command(&made).stdout).expect("text");
    let with = |token: &str| {
        Request::get("/api/v1/caller").header("authorization", format!("Bearer {}", token.trim()))
    };
    let (_, body) = files
        .ask(&server, Some(&ci), with(&token), String::new())
        .await;
    assert!(body.contains("\"token:ada\""), "{body}");
    let (status, body) = files
        .ask(&server, Some(&ci), with("rpt_no"), String::new())
        .await;
    assert!(status == 401 && body.contains("TOKEN_REFUSED"), "{body}");

    let whoami = files
        .command(&server, Some(&ci), &["whoami", "--json"])
        .await;
    assert_eq!(json_of(&whoami)["caller"], "certificate:ci");
    let half = files.path("shown.pem").display().to_string();
    let half = files
        .command(&server, None, &["list", "--json", "--cert", &half])
        .await;
    assert_eq!(
        refused(&half),
        (
            "INVALID_PARAMETER".into(),
            "a certificate is shown with its key".into(),
            "name both: --cert FILE --key FILE".into()
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shows_no_certificate_gets_no_connection_where_one_is_required() {
    let files = Files::new();
    let server = Server::with(&[], &format!("{}{RULES}", files.tls(Some("required"))));
    let ci = files.clients.client("spiffe://acme/ci");
    let listed = files
        .command(&server, Some(&ci), &["whoami", "--json"])
        .await;
    assert_eq!(json_of(&listed)["caller"], "certificate:ci");
    let stranger = Authority::new().client("spiffe://acme/ci");
    for shown in [None, Some(&stranger)] {
        let output = files.command(&server, shown, &["list", "--json"]).await;
        let (code, message, hint) = refused(&output);
        assert_eq!(code, "SERVER_UNREACHABLE", "{message}");
        let expected =
            "Where the server asks for certificates, show one: --cert FILE --key FILE, in PEM";
        assert_eq!(hint, expected, "{message}");
    }
}

/// The certificate that the server shows.
async fn shown_by(files: &Files, server: &Server, shown: Option<&Pair>) -> Option<Vec<u8>> {
    let stream = TcpStream::connect(address(server))
        .await
        .expect("connected");
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let mut stream = files.connector(shown).connect(name, stream).await.ok()?;
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .ok()?;
    stream.read_exact(&mut [0; 8]).await.ok()?;
    let (_, session) = stream.get_ref();
    session.peer_certificates()?.first().map(|it| it.to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stalls_in_a_handshake_keeps_nobody_else_out() {
    let files = Files::new();
    let limits = "limits: {handshakes: 2, header_seconds: 2}\n";
    let server = Server::with(&[], &format!("{}{limits}", files.tls(None)));
    // One address has half of them: this one waits until the first is let go.
    let mut stalled = TcpStream::connect(address(&server))
        .await
        .expect("connected");
    stalled.write_all(&[0x16, 3, 1]).await.expect("sent");
    assert!(shown_by(&files, &server, None).await.is_some());
    let mut rest = Vec::new();
    // With an alert or without: it ends.
    let _ended = stalled.read_to_end(&mut rest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_writes_http_is_told_to_write_https() {
    let files = Files::new();
    let server = Server::with(&[], &files.tls(None));
    let mut client = TcpStream::connect(address(&server))
        .await
        .expect("connected");
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("write https:// in the address"),
        "{answer}"
    );
    let url = server.url.replace("https:", "http:");
    let output = support::command(&["list", "--json", "--server", &url]);
    let (code, message, hint) = refused(&output);
    assert_eq!(code, "SERVER_UNREACHABLE", "{message}");
    assert_eq!(
        hint,
        "Where the server has TLS, write https:// in its address"
    );
}
