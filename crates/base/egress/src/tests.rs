//! Addresses that are not called, and what is sent to those that are.

mod redirects;
mod timeouts;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use url::Url;

use super::*;

fn what(egress: &Egress, address: &str) -> Option<String> {
    let address: IpAddr = address.parse().expect("an address");
    egress.permits(address).err().map(|refused| refused.what)
}

#[test]
fn every_sort_of_address_that_is_not_public_is_refused_and_named() {
    let egress = Egress::public();
    for (address, sort) in [
        ("0.0.0.0", "the unspecified address"),
        ("0.1.2.3", "an address of this network"),
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("10.0.0.1", "a private address"),
        ("172.16.0.1", "a private address"),
        ("172.31.255.255", "a private address"),
        ("192.168.1.1", "a private address"),
        ("169.254.169.254", "the address of a cloud's metadata"),
        ("169.254.1.1", "a link-local address"),
        ("100.64.0.1", "a shared address of providers (RFC 6598)"),
        (
            "100.127.255.255",
            "a shared address of providers (RFC 6598)",
        ),
        ("192.0.0.8", "an address of protocols (RFC 6890)"),
        ("192.0.2.1", "an address for documentation"),
        ("198.51.100.1", "an address for documentation"),
        ("203.0.113.9", "an address for documentation"),
        ("192.88.99.1", "an address of relays (RFC 7526)"),
        ("198.18.0.1", "an address for benchmarks (RFC 2544)"),
        ("198.19.255.255", "an address for benchmarks (RFC 2544)"),
        ("224.0.0.1", "a multicast address"),
        ("239.255.255.255", "a multicast address"),
        ("255.255.255.255", "the broadcast address"),
        ("240.0.0.1", "a reserved address"),
        ("::", "the unspecified address"),
        ("::1", "a loopback address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        (
            "::ffff:169.254.169.254",
            "the address of a cloud's metadata",
        ),
        (
            "::ffff:8.8.8.8",
            "an address of version 4 in one of version 6",
        ),
        ("::10.0.0.1", "a private address"),
        ("::ffff:0:10.0.0.1", "a private address"),
        ("64:ff9b::10.0.0.1", "a private address"),
        ("64:ff9b:1::1", "a local address of NAT64 (RFC 8215)"),
        ("2002:7f00:1::", "a loopback address"),
        ("2002:a9fe:a9fe::1", "the address of a cloud's metadata"),
        ("2001:0:4136:e378::", "an address of protocols (RFC 2928)"),
        ("2001:1ff:ffff::1", "an address of protocols (RFC 2928)"),
        ("2001:db8::1", "an address for documentation"),
        ("3fff::1", "an address for documentation"),
        ("3fff:fff:ffff::1", "an address for documentation"),
        ("100::1", "an address that discards (RFC 6666)"),
        ("5f00::1", "an address of segment routing (RFC 9602)"),
        ("fc00::1", "a private address"),
        ("fd12:3456::1", "a private address"),
        ("fe80::1", "a link-local address"),
        ("febf:ffff::1", "a link-local address"),
        ("fec0::1", "a site-local address"),
        ("feff:ffff::1", "a site-local address"),
        ("ff02::1", "a multicast address"),
        ("1fff:ffff::1", "a reserved address"),
        ("4000::1", "a reserved address"),
    ] {
        assert_eq!(what(&egress, address).as_deref(), Some(sort), "{address}");
    }
    for public in [
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.1.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "2000::1",
        "2001:200::1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "3fff:1000::1",
    ] {
        assert_eq!(what(&egress, public), None, "{public}");
    }
}

#[test]
fn an_operator_permits_networks_and_nothing_beside_them() {
    let egress = Egress::permitting(&["10.1.0.0/16", "127.0.0.1", "fd00::/8"]).expect("networks");
    for permitted in ["10.1.2.3", "127.0.0.1", "fd00::7", "1.1.1.1"] {
        assert_eq!(what(&egress, permitted), None, "{permitted}");
    }
    for refused in ["10.2.0.1", "127.0.0.2", "::ffff:127.0.0.1", "fc00::1"] {
        assert!(what(&egress, refused).is_some(), "{refused}");
    }
    for wrong in ["10.0.0.0/33", "localhost", "", "10.0.0"] {
        let error = Egress::permitting(&[wrong]).expect_err(wrong);
        assert!(error.to_string().contains("is not a network"), "{error}");
    }
}

#[test]
fn an_address_is_refused_however_it_is_written() {
    let egress = Egress::public();
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
    ] {
        let url = Url::parse(url).expect("an address");
        assert!(egress.permits_url(&url).is_err(), "{url}");
    }
    let public = Url::parse("https://example.com/").expect("an address");
    assert_eq!(egress.permits_url(&public), Ok(()));
}

#[test]
fn an_address_of_version_6_is_itself_with_brackets_and_without() {
    let egress = Egress::permitting(&["::1", "127.0.0.1"]).expect("networks");
    for (host, expected) in [
        ("[::1]", "[::1]:80"),
        ("::1", "[::1]:80"),
        ("127.0.0.1", "127.0.0.1:80"),
    ] {
        let found = egress.resolve(host, 80).expect("an address");
        assert_eq!(found, [expected.parse().expect("an address")], "{host}");
    }
    for (host, what) in [
        ("[fd00::1]", "a private address"),
        ("10.0.0.1", "a private address"),
    ] {
        let refused = egress.resolve(host, 80).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            format!("`{host}` is {what}, which this server may not call")
        );
    }
}

/// Names for tests.
#[derive(Debug)]
struct Names(Vec<(&'static str, Vec<&'static str>)>);

impl Lookup for Names {
    fn lookup(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        let found = found.map(|(_, found)| {
            let found = found.iter();
            found
                .map(|text| text.parse().expect("an address"))
                .collect()
        });
        Box::pin(async move { found.ok_or_else(|| std::io::ErrorKind::NotFound.into()) })
    }
}

/// A server that answers each connection with the next text, and tells what it was asked.
async fn server(answers: Vec<String>) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut buffer = vec![0; 8192];
            let read = stream.read(&mut buffer).await.expect("a request");
            let asked = String::from_utf8_lossy(&buffer[..read]).into_owned();
            tell.send(asked).ok();
            stream.write_all(answer.as_bytes()).await.expect("written");
        }
    });
    (port, told)
}

fn redirect(status: u16, to: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
}

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

fn client(permitted: &[&str], names: Names) -> Client {
    let timeouts = Timeouts {
        connect: Duration::from_secs(5),
        silence: Duration::from_secs(5),
        total: Duration::from_secs(10),
    };
    let egress = Egress::permitting(permitted).expect("networks");
    Client::with_lookup(egress, timeouts, 3, Arc::new(names)).expect("a client")
}

async fn get(client: &Client, url: &str) -> Result<Answer, Error> {
    let url = Url::parse(url).expect("an address");
    let secret = HeaderValue::from_static("Bearer secret");
    client.get(&url, &HeaderMap::new(), Some(&secret)).await
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused_by_its_name() {
    let names = Names(vec![("inside.example", vec!["10.0.0.1", "::1"])]);
    let error = get(&client(&[], names), "http://inside.example/").await;
    let error = error.expect_err("refused");
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert!(
        error.to_string().starts_with("`inside.example` is a"),
        "{error}"
    );
}

#[tokio::test]
async fn of_the_addresses_of_a_name_only_permitted_ones_are_called() {
    let (port, _) = server(vec![FINE.to_owned()]).await;
    let names = Names(vec![("both.example", vec!["10.0.0.1", "127.0.0.1"])]);
    let url = format!("http://both.example:{port}/");
    let answer = get(&client(&["127.0.0.1"], names), &url).await;
    assert_eq!(answer.expect("an answer").response.status(), 200);
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    for to in [
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "//127.0.0.2/",
        "file:///etc/passwd",
    ] {
        let (port, _) = server(vec![redirect(302, to)]).await;
        let client = client(&["127.0.0.1"], Names(Vec::new()));
        let error = get(&client, &format!("http://127.0.0.1:{port}/")).await;
        assert!(matches!(error, Err(Error::Refused(_))), "{to}");
    }
}

#[tokio::test]
async fn redirects_are_followed_so_far_and_a_credential_stays_at_home() {
    let (other, mut at_other) = server(vec![FINE.to_owned()]).await;
    let to = format!("http://user:password@127.0.0.1:{other}/there");
    let (home, mut at_home) = server(vec![redirect(301, "/again"), redirect(302, &to)]).await;
    let client = client(&["127.0.0.1"], Names(Vec::new()));
    let answer = get(&client, &format!("http://127.0.0.1:{home}/")).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.url.path(), "/there");
    for _ in 0..2 {
        let asked = at_home.recv().await.expect("a request");
        assert!(asked.contains("authorization: Bearer secret"), "{asked}");
    }
    let asked = at_other.recv().await.expect("a request");
    assert!(!asked.contains("authorization"), "{asked}");

    let (home, _) = server(vec![redirect(302, "/"); 4]).await;
    let error = get(&client, &format!("http://127.0.0.1:{home}/")).await;
    assert!(matches!(error, Err(Error::Redirects(3))));
}
