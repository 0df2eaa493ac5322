//! Handshakes with all sorts of clients, and what their certificates say.

use rustls::{ClientConnection, HandshakeKind};

use super::*;
use crate::loaded::parsed;
use access::CertificateNames;

fn uris(secured: &Secured) -> Option<Vec<String>> {
    let client = secured.client.as_ref();
    client.map(|client| client.names.uris.clone())
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
        assert_eq!(
            look(&tls),
            (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
        );
        assert_eq!(resumed(&tls, &client).await, is_ci(HandshakeKind::Full));
        assert_eq!(resumed(&tls, &client).await, is_ci(HandshakeKind::Resumed));
        files.write("clients.pem", &Authority::new("others").pem());
        assert_eq!(
            look(&tls),
            (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
        );
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
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
    files.write("clients.pem", &format!("{}{}", old.pem(), new.pem()));
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!lapsed.is_finished());
    files.write("clients.pem", &new.pem());
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
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
    assert_eq!(
        look(&tls),
        (ReloadOutcome::Unsettled, ReloadOutcome::Replaced)
    );
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
        let accepted = tokio::time::timeout(LIMIT + SECOND, tls.accept(server, LIMIT)).await;
        let accepted = accepted.expect("at its limit");
        let is_answered = sent == b"GET";
        assert!(
            matches!(accepted, Err(HandshakeError::Slow)) != is_answered,
            "{sent:?}: {accepted:?}"
        );
    }
    assert_eq!(tls.failed_handshakes(), 3);
}
