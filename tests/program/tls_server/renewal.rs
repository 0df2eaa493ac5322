//! Files of certificates that change while the server runs.

use std::time::{Duration, Instant};

use contract::v1;
use contract::v1::registry_client::RegistryClient;
use http::Request;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::{Authority, Files, RULES, shown_by};
use crate::support::{self, Server};

/// How long something may take that will happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks until something is so.
async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
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
    let told = format!(
        "tls.key: `{}` has no private key in PEM; TLS continues with the files loaded before",
        files.path("key.pem").display()
    );
    // What the server writes is read beside the test, and may come after its metrics.
    until("it is told", async || server.log().contains(&told)).await;
    files.renew();
    until("it is well again", async || {
        value("repertoire_tls_reload_failing ", &metrics().await).as_deref() == Some("0")
    })
    .await;
    let log = server.log();
    assert_eq!(log.matches(&told).count(), 1, "{log}");
}
