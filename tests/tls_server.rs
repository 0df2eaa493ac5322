//! The server's own TLS, with the real binary: every face over it, client certificates as a
//! way to sign in, and files that change while it serves.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};
use repertoire::contract::v1;
use repertoire::contract::v1::access_client::AccessClient;
use repertoire::contract::v1::registry_client::RegistryClient;
use serde_json::{Value, json};
use support::Server;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

/// How long something may take that will happen.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Looks until something is so.
async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
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
async fn files_change_while_streams_run_and_only_what_is_trusted_no_more_ends() {
    let files = Files::new();
    let server = Server::with(&[], &format!("{}{RULES}", files.tls(Some("optional"))));
    let ci = files.clients.client("spiffe://acme/ci");
    let watch = async |shown| {
        let mut registry = RegistryClient::new(files.channel(&server, shown).await);
        let watched = registry.watch(v1::WatchRequest::default()).await;
        (registry, watched.expect("a stream").into_inner())
    };
    let (mut publisher, mut signed_in) = watch(Some(&ci)).await;
    let (_registry, mut anonymous) = watch(None).await;
    let before = shown_by(&files, &server, None).await.expect("shown");
    let renewed = files.renew();
    let renewed = CertificateDer::from_pem_slice(renewed.0.as_bytes()).expect("PEM");
    assert_ne!(before, renewed.to_vec());
    until("the new certificate is shown", async || {
        shown_by(&files, &server, None).await.as_deref() == Some(renewed.as_ref())
    })
    .await;
    // Who was there stays, also whoever signed in.
    let skill = support::skill("github/acme/refunds", "", "# Steps\n");
    publisher
        .publish_skill(skill.clone())
        .await
        .expect("published");
    for stream in [&mut signed_in, &mut anonymous] {
        loop {
            let next = stream.message().await.expect("an event").expect("one more");
            if format!("{next:?}").contains("github/acme/refunds") {
                break;
            }
        }
    }
    files.write("clients.pem", &Authority::new().0.pem());
    let ended = loop {
        match signed_in.message().await {
            Ok(Some(_)) => {}
            ended => break ended,
        }
    };
    let ended = ended.expect_err("the stream ends with its certificate");
    assert_eq!(ended.code(), tonic::Code::Unauthenticated);
    assert!(
        ended.message().contains("its authority is trusted no more"),
        "{ended}"
    );
    // Nor does anything else of it hold, over the same connection or a new one.
    let again = publisher.publish_skill(skill).await;
    assert!(again.is_err(), "{again:?}");
    assert_eq!(shown_by(&files, &server, Some(&ci)).await, None);
    // Others are not disturbed.
    let data = server.data.display().to_string();
    let deleted = ["delete", "github/acme/refunds", "--yes", "--data", &data];
    assert!(support::command(&deleted).status.success());
    anonymous
        .message()
        .await
        .expect("an event")
        .expect("one more");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_used_are_told_and_the_server_goes_on() {
    let files = Files::new();
    let server = Server::with(&[], &files.tls(None));
    let metrics = async || {
        let asked = files.ask(&server, None, Request::get("/metrics"), String::new());
        asked.await.1
    };
    let page = metrics().await;
    let value = |name: &str, page: &str| {
        let mut lines = page.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(|rest| rest.trim().to_owned())
    };
    let expiry = value(
        "repertoire_tls_certificate_expiry_timestamp_seconds ",
        &page,
    );
    // As rcgen has it: in the year 4096.
    assert_eq!(expiry.as_deref(), Some("67090118400"), "{page}");
    assert_eq!(
        value("repertoire_tls_reload_failing ", &page).as_deref(),
        Some("0")
    );
    assert_eq!(
        value("repertoire_tls_handshakes_failed_total ", &page).as_deref(),
        Some("0")
    );
    files.write("key.pem", "nothing");
    until("it shows", async || {
        value("repertoire_tls_reload_failing ", &metrics().await).as_deref() == Some("1")
    })
    .await;
    let log = server.log();
    let told = format!(
        "tls.key: `{}` has no private key in PEM; TLS goes on with what was loaded before",
        files.path("key.pem").display()
    );
    assert_eq!(log.matches(&told).count(), 1, "{log}");
    files.renew();
    until("it is well again", async || {
        value("repertoire_tls_reload_failing ", &metrics().await).as_deref() == Some("0")
    })
    .await;
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

/// What the program says of a config file that it does not start with.
fn config_refused(folder: &Path, config: &str, args: &[&str]) -> (String, String) {
    let file = folder.join("config.yaml");
    std::fs::write(&file, config).expect("a file");
    let (file, data) = (
        file.display().to_string(),
        folder.join("data").display().to_string(),
    );
    let given = ["--config", &file, "--data", &data, "--json"];
    let output = support::command(&[args, &given].concat());
    let (code, message, _) = refused(&output);
    (code, message)
}

#[test]
fn files_and_settings_that_cannot_be_used_are_told_by_their_line() {
    let files = Files::new();
    let folder = files.folder.path();
    let at = folder.join("config.yaml").display().to_string();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let good = files.tls(None);
    for (config, expected) in [
        (
            good.replace("cert.pem", "none.pem"),
            format!(
                "{at}:2: tls.certificate: there is no file `{}`",
                files.path("none.pem").display()
            ),
        ),
        (
            good.replace("key.pem", "ca.pem"),
            format!(
                "{at}:3: tls.key: `{}` has no private key in PEM",
                files.path("ca.pem").display()
            ),
        ),
        (
            format!("{good}  client_certificates: required\n"),
            format!(
                "{at}:1: tls.client_ca: clients' certificates need the authorities that sign them: name their file, in PEM"
            ),
        ),
        (
            format!("{good}{RULES}"),
            format!(
                "{at}:8: access.certificates: the server asks for no certificates: set `tls.client_certificates` to optional or required, and `tls.client_ca`"
            ),
        ),
    ] {
        let (code, message) = config_refused(folder, &config, &serve);
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("CONFIG_INVALID", expected.as_str())
        );
        let file = at.clone();
        let checked = support::command(&["config", "check", &file, "--json"]);
        let mistakes = &json_of(&checked)["mistakes"];
        let told = format!(
            "{at}:{}: {}: {}",
            mistakes[0]["line"],
            mistakes[0]["key"].as_str().unwrap_or_default(),
            mistakes[0]["message"].as_str().unwrap_or_default()
        );
        assert_eq!(
            (told, mistakes.as_array().map(Vec::len)),
            (expected, Some(1))
        );
    }
    let (code, message) = config_refused(
        folder,
        &format!("{good}access: {{certificates: [{{name: a, allow: [read]}}]}}\n"),
        &serve,
    );
    assert_eq!(code, "CONFIG_INVALID");
    assert!(
        message.contains("a rule names the certificate by one of uri, dns, email, common_name"),
        "{message}"
    );
}

#[test]
fn other_machines_are_served_with_tls_and_sign_in_alone() {
    let files = Files::new();
    let beyond = ["serve", "--listen", "0.0.0.0:0"];
    let (code, message) = config_refused(files.folder.path(), &files.tls(None), &beyond);
    assert_eq!(code, "CONFIG_INVALID");
    assert!(
        message.contains("Set `access.sign_in: tokens`"),
        "{message}"
    );
    let signed = "listen: 0.0.0.0:0\naccess: {sign_in: tokens}\n";
    let (_, message) = config_refused(files.folder.path(), signed, &["serve"]);
    assert!(
        message.contains("Set `tls.certificate` and `tls.key`"),
        "{message}"
    );
    let server = Server::listening(&format!("{signed}{}", files.tls(None)));
    assert!(server.url.starts_with("https://0.0.0.0:"), "{}", server.url);
}

#[test]
fn the_doctor_says_when_the_certificate_ends() {
    let files = Files::new();
    let ended = files.authority.sign(|params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    let finding = || {
        let config = files.write("config.yaml", &files.tls(None));
        let data = files.path("data").display().to_string();
        let output = support::command(&["doctor", "--config", &config, "--data", &data, "--json"]);
        let checks = json_of(&output)["checks"]
            .as_array()
            .expect("checks")
            .clone();
        let found = checks
            .into_iter()
            .find(|it| it["check"] == "tls.certificate");
        let found = found.expect("of TLS");
        let text = |name: &str| found[name].as_str().expect("text").to_owned();
        (text("state"), text("found"))
    };
    let (state, found) = finding();
    assert_eq!(state, "ok");
    assert!(
        found.starts_with("the certificate ends at 4096-01-01T00:00:00Z, in "),
        "{found}"
    );
    files.write("cert.pem", &ended.0);
    files.write("key.pem", &ended.1);
    let shown = files.path("cert.pem").display().to_string();
    let expected =
        format!("tls.certificate: the certificate in `{shown}` ended at 2021-01-01T00:00:00Z");
    assert_eq!(finding(), ("warning".to_owned(), expected));
    std::fs::remove_file(files.path("key.pem")).expect("removed");
    let gone = files.path("key.pem").display().to_string();
    assert_eq!(
        finding(),
        (
            "failed".to_owned(),
            format!("tls.key: there is no file `{gone}`")
        )
    );
}
