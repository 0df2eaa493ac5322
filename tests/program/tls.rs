//! The product's own clients and a server behind TLS: a proxy that ends TLS in front of the
//! real server, and one that says what it was sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::support::{BINARY, Server};

/// A certificate for `localhost`, in a file for those who trust it.
struct Authority {
    folder: TempDir,
    acceptor: TlsAcceptor,
}

impl Authority {
    fn new() -> Self {
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), made.cert.pem()).expect("a file");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a pair");
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self {
            folder,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Ends TLS, and hands what is in it to a server. The address of it.
    async fn in_front_of(&self, server: &Server) -> String {
        let to = server.url.strip_prefix("http://").expect("an address");
        let to = to.to_owned();
        let (listener, url) = listen().await;
        let acceptor = self.acceptor.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (acceptor, to) = (acceptor.clone(), to.clone());
                tokio::spawn(async move {
                    let mut client = acceptor.accept(client).await.ok()?;
                    let mut server = TcpStream::connect(to).await.ok()?;
                    let copied = tokio::io::copy_bidirectional(&mut client, &mut server);
                    copied.await.ok()
                });
            }
        });
        url
    }

    /// Answers the first call with a refusal. The address, and the headers of the call.
    async fn listening(&self) -> (String, tokio::task::JoinHandle<http::HeaderMap>) {
        let (listener, url) = listen().await;
        let acceptor = self.acceptor.clone();
        let heard = tokio::spawn(async move {
            let (client, _) = listener.accept().await.expect("a connection");
            let client = acceptor.accept(client).await.expect("TLS");
            let mut calls = h2::server::handshake(client).await.expect("HTTP/2");
            let (request, mut respond) = calls.accept().await.expect("a call").expect("whole");
            let refusal = http::Response::builder()
                .header("content-type", "application/grpc")
                .header("grpc-status", "7")
                .body(())
                .expect("a response");
            respond.send_response(refusal, true).expect("sent");
            tokio::spawn(async move { while let Some(Ok(_)) = calls.accept().await {} });
            request.headers().clone()
        });
        (url, heard)
    }
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, format!("https://localhost:{port}"))
}

async fn run(command: &mut Command) -> Output {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary");
    let waited = tokio::task::spawn_blocking(|| child.wait_with_output());
    waited.await.expect("waited").expect("an end")
}

fn repertoire(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(args)
        .env("REPERTOIRE_FORMAT", "json")
        .env_remove("REPERTOIRE_TOKEN")
        .env_remove("REPERTOIRE_CA")
        .env_remove("REPERTOIRE_SERVER");
    command
}

/// The code and the message that a command ends with.
fn refused(output: &Output) -> (String, String) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let error: Value = serde_json::from_str(stderr.lines().last().expect("a line"))
        .unwrap_or_else(|_| panic!("{stderr}"));
    let text = |name: &str| error["error"][name].as_str().expect("text").to_owned();
    (text("code"), text("message"))
}

/// What a command says to do next.
fn hints(output: &Output) -> Vec<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let error: Value = serde_json::from_str(stderr.lines().last().expect("a line")).expect("JSON");
    let hints = error["error"]["recovery_suggestions"].as_array();
    let hints = hints.unwrap_or_else(|| panic!("{error}")).iter();
    hints
        .map(|hint| hint.as_str().expect("text").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_the_bridge_reach_a_server_behind_tls() {
    let (server, authority) = (Server::start(), Authority::new());
    let url = authority.in_front_of(&server).await;
    let ca = authority.file().display().to_string();
    let listed = run(&mut repertoire(&["list", "--server", &url, "--ca", &ca])).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let ids = |listed: &Value| {
        let skills = listed["skills"].as_array().expect("a list").iter();
        skills.map(|skill| skill["id"].clone()).collect::<Vec<_>>()
    };
    let clear: Value = serde_json::from_slice(&server.command(&["list"]).stdout).expect("JSON");
    assert_eq!(ids(&listed), ids(&clear));
    assert!(!ids(&listed).is_empty());

    let mut bridge = repertoire(&["mcp", "--server", &url]);
    let bridge = bridge
        .env("REPERTOIRE_CA", &ca)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut bridge = bridge.spawn().expect("the binary");
    let ask = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                   "clientInfo": {"name": "test", "version": "1"}},
    });
    let name = tokio::task::spawn_blocking(move || {
        let mut input = bridge.stdin.take().expect("its input");
        writeln!(input, "{ask}").expect("written");
        let mut line = String::new();
        let mut output = BufReader::new(bridge.stdout.take().expect("its output"));
        output.read_line(&mut line).expect("a line");
        drop(input);
        bridge.wait().expect("an end");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        answer["result"]["serverInfo"]["name"].clone()
    });
    assert_eq!(name.await.expect("an answer"), "repertoire");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_trusts_is_refused_with_what_to_do() {
    let (server, authority) = (Server::start(), Authority::new());
    let url = authority.in_front_of(&server).await;
    let output = run(&mut repertoire(&["list", "--server", &url])).await;
    let (code, message) = refused(&output);
    assert_eq!(code, "SERVER_UNREACHABLE");
    assert!(
        message.contains(&url) && message.contains("certificate"),
        "{message}"
    );
    assert_eq!(
        hints(&output),
        ["name the authority that signed its certificate: --ca FILE, in PEM"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_out_in_clear_where_the_address_says_https() {
    let listener = StdListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let first = tokio::task::spawn_blocking(move || {
        let (mut client, _) = listener.accept().expect("a connection");
        let mut first = [0; 1];
        client.read_exact(&mut first).expect("a byte");
        first[0]
    });
    let url = format!("https://127.0.0.1:{port}");
    let mut command = repertoire(&["list", "--server", &url]);
    let output = run(command.env("REPERTOIRE_TOKEN", "s3cret")).await;
    assert_eq!(refused(&output).0, "SERVER_UNREACHABLE");
    // Of a handshake (RFC 8446, 5.1).
    assert_eq!(first.await.expect("waited"), 0x16);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_with_the_wrong_scheme_is_told_the_right_one() {
    let (server, authority) = (Server::start(), Authority::new());
    let url = server.url.replace("http:", "https:");
    let output = run(&mut repertoire(&["list", "--server", &url])).await;
    assert_eq!(refused(&output).0, "SERVER_UNREACHABLE");
    assert_eq!(
        hints(&output),
        ["the server has no TLS there: write http:// in its address"]
    );

    let url = authority.in_front_of(&server).await;
    let url = url.replace("https:", "http:");
    let output = run(&mut repertoire(&["list", "--server", &url])).await;
    assert_eq!(refused(&output).0, "SERVER_UNREACHABLE");
    assert_eq!(
        hints(&output).last().map(String::as_str),
        Some("Where the server has TLS, write https:// in its address")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_the_token_and_the_headers_of_its_caller() {
    let authority = Authority::new();
    let (url, heard) = authority.listening().await;
    let ca = authority.file().display().to_string();
    let args = [
        "list",
        "--server",
        &url,
        "--ca",
        &ca,
        "--header",
        "X-Team: shops",
    ];
    let output = run(repertoire(&args).env("REPERTOIRE_TOKEN", "s3cret")).await;
    assert!(!output.status.success());
    let heard = heard.await.expect("headers");
    let header = |name: &str| heard.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(
        [header("authorization"), header("x-team")],
        [Some("Bearer s3cret"), Some("shops")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_go_to_a_collector_behind_tls() {
    let authority = Authority::new();
    let (url, heard) = authority.listening().await;
    let data = TempDir::new().expect("a folder");
    let data = data.path().display().to_string();
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "warn",
        "--data",
        &data,
    ];
    let mut server = repertoire(&args);
    let server = server
        .args(["--otlp-endpoint", &url])
        .env("SSL_CERT_FILE", authority.file())
        .stderr(Stdio::piped());
    let mut server = server.spawn().expect("the binary");
    let mut log = BufReader::new(server.stderr.take().expect("its log")).lines();
    let line = log.next().expect("a line").expect("text");
    let at = line.strip_prefix("listening on ").expect("an address");
    assert!(
        run(&mut repertoire(&["list", "--server", at]))
            .await
            .status
            .success()
    );
    let stopped = Command::new("kill").arg(server.id().to_string()).status();
    assert!(stopped.expect("kill").success());
    let heard = heard.await.expect("headers");
    server.wait().expect("an end");
    assert_eq!(heard["content-type"], "application/grpc");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_no_other_machine_in_clear() {
    let ask = |url: &'static str| async move {
        let mut command = repertoire(&["list", "--server", url]);
        refused(&run(command.env("REPERTOIRE_TOKEN", "s3cret")).await)
    };
    let invalid = |message: &str| ("INVALID_PARAMETER".to_owned(), message.to_owned());
    let expected = "refusing to send a token over plain HTTP to http://192.0.2.1:50051";
    assert_eq!(ask("http://192.0.2.1:50051").await, invalid(expected));
    let expected = "'localhost:50051' is not the address of a server: it begins with neither http:// nor https://";
    assert_eq!(ask("localhost:50051").await, invalid(expected));
    let expected = "the address of the server has a user or a password";
    assert_eq!(
        ask("https://me:s3cret@example.com").await,
        invalid(expected)
    );
    // Nothing else may be given for a server that nobody named.
    let output = run(&mut repertoire(&["list", "--header", "X-Team: shops"])).await;
    let expected = "--header is for a server that --server names";
    assert_eq!(refused(&output), invalid(expected));
}
