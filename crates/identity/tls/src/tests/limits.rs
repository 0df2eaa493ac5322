//! What ends in its time, and what there is no more of than there may be.

use rcgen::date_time_ymd;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::ClientCertificate;
use model::{Clock as _, SystemClock};

#[tokio::test(start_paused = true)]
async fn a_handshake_has_its_time_and_no_more() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let (mut client, server) = sockets().await;
    client.write_all(&[0x16, 3, 1]).await.expect("sent");
    let mut accepting = Box::pin(tls.accept(server, LIMIT));
    let early = timeout(29 * SECOND, &mut accepting).await;
    assert!(early.is_err(), "{early:?}");
    let accepted = timeout(2 * SECOND, accepting).await;
    let accepted = accepted.expect("at its limit");
    assert!(
        matches!(accepted, Err(HandshakeError::Slow)),
        "{accepted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_told_and_stays_is_let_go_after_a_second() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let (mut client, server) = sockets().await;
    client.write_all(b"GET / HTTP/1.1\r\n").await.expect("sent");
    let accepted = timeout(2 * SECOND, tls.accept(server, LIMIT)).await;
    let accepted = accepted.expect("in its time");
    assert!(
        matches!(accepted, Err(HandshakeError::Cleartext)),
        "{accepted:?}"
    );
}

#[tokio::test]
async fn a_client_that_was_told_and_goes_on_is_read_to_a_limit() {
    const ENOUGH: usize = 64 << 20;
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let (mut client, server) = sockets().await;
    let sending = async {
        let (part, mut sent) = (vec![b'G'; 16 * 1024], 0);
        while sent < ENOUGH && client.write_all(&part).await.is_ok() {
            sent += part.len();
        }
        sent
    };
    let both = async { tokio::join!(tls.accept(server, LIMIT), sending) };
    let (accepted, sent) = timeout(LIMIT, both).await.expect("an end");
    assert!(
        matches!(accepted, Err(HandshakeError::Cleartext)),
        "{accepted:?}"
    );
    assert!(sent < ENOUGH, "all of it was read");
}

#[tokio::test]
async fn a_client_hears_why_its_handshake_failed_although_it_has_sent_more() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let (mut client, server) = sockets().await;
    // A message of a handshake that there is none of, and what goes with it.
    let mut sent = vec![0x16, 3, 1, 0, 4, 99, 0, 0, 0];
    sent.resize(32 * 1024, 0);
    client.write_all(&sent).await.expect("sent");
    let mut heard = Vec::new();
    let hearing = async {
        client.shutdown().await?;
        client.read_to_end(&mut heard).await
    };
    let both = async { tokio::join!(tls.accept(server, LIMIT), hearing) };
    let (accepted, read) = timeout(LIMIT, both).await.expect("an end");
    assert!(
        matches!(accepted, Err(HandshakeError::Failed(_))),
        "{accepted:?}"
    );
    read.expect("the connection was not broken off");
    // The record of an alert, which is fatal.
    assert_eq!((heard.len(), heard[0], heard[5]), (7, 21, 2), "{heard:?}");
}

#[test]
fn so_many_sessions_may_be_resumed_and_no_more() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let loaded = tls.0.loaded();
    let sessions = &loaded.config.session_storage;
    let key = |at: usize| at.to_be_bytes().to_vec();
    for at in 0..2_000 {
        assert!(sessions.put(key(at), b"x".to_vec()));
    }
    let kept: Vec<_> = (0..2_000)
        .filter(|at| sessions.get(&key(*at)).is_some())
        .collect();
    let expected: Vec<_> = (2_000 - 1_024..2_000).collect();
    assert_eq!(kept, expected);
}

/// What a client has shown whose certificate ends in a year.
fn shown(tls: &Tls, authority: &Authority, year: i32) -> Option<ClientCertificate> {
    let (certificate, _) = authority.sign(|params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
    });
    let chain = [CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
    ClientCertificate::new(&chain, Arc::clone(&tls.0), tls.0.authorities())
}

#[tokio::test(start_paused = true)]
async fn a_certificate_lapses_when_it_has_ended() {
    let (files, authority) = (Files::new(), Authority::new("clients"));
    let config = files.with_clients(&authority, ClientCertificates::Required);
    let tls = Tls::load(&config).expect("loaded");
    assert!(shown(&tls, &authority, 2021).is_none());
    let lasting = shown(&tls, &authority, 4000).expect("a certificate");
    timeout(100 * LIMIT, lasting.lapsed())
        .await
        .expect_err("it holds");
    let mut ended = shown(&tls, &authority, 4000).expect("a certificate");
    ended.not_after = SystemClock.now() - jiff::SignedDuration::from_secs(1);
    timeout(SECOND, ended.lapsed()).await.expect("at once");
}

#[test]
fn a_certificate_with_several_common_names_has_none() {
    let (certificate, _) = Authority::new("clients").sign(|params| {
        params.distinguished_name = common_name("Ada");
        let again = DnType::CustomDnType(vec![2, 5, 4, 3]);
        params.distinguished_name.push(again, "Eve");
        params.subject_alt_names = Vec::new();
    });
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
    let whole = crate::loaded::parsed(&certificate).expect("a certificate");
    assert_eq!(whole.subject().iter_common_name().count(), 2);
    assert_eq!(crate::client::names(&whole), Some(Default::default()));
}

#[tokio::test(start_paused = true)]
async fn new_files_are_loaded_within_seconds_until_the_server_stops() {
    let files = Files::new();
    let tls = Tls::load(&files.config()).expect("loaded");
    let stop = CancellationToken::new();
    let following = tokio::spawn(tls.clone().follow(stop.clone()));
    let before = tls.0.loaded().digest;
    files.renew();
    let loaded = async {
        while tls.0.loaded().digest == before {
            tokio::time::sleep(SECOND / 4).await;
        }
    };
    timeout(10 * SECOND, loaded).await.expect("loaded");
    stop.cancel();
    let stopped = timeout(SECOND, following).await;
    stopped.expect("at once").expect("stopped");
}
