//! Redirects, and what is sent after them.

use super::*;

/// Headers of a request: those, and no others.
fn headers(named: &[(&'static str, &'static str)]) -> HeaderMap {
    let named = named.iter();
    named
        .map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

#[tokio::test]
async fn every_redirect_that_names_an_address_is_followed_and_no_other_answer() {
    let client = client(&["127.0.0.1"], Names(Vec::new()));
    for (status, follows) in [
        (300, false),
        (301, true),
        (302, true),
        (303, true),
        (304, false),
        (305, false),
        (307, true),
        (308, true),
    ] {
        let (port, _) = server(vec![redirect(status, "/there"), FINE.to_owned()]).await;
        let answer = get(&client, &format!("http://127.0.0.1:{port}/")).await;
        let answer = answer.expect("an answer");
        let expected = if follows {
            (200, "/there")
        } else {
            (status, "/")
        };
        let status = answer.response.status().as_u16();
        assert_eq!((status, answer.url.path()), expected);
    }
}

#[tokio::test]
async fn exactly_as_many_redirects_are_followed_as_may_be() {
    let client = client(&["127.0.0.1"], Names(Vec::new()));
    let mut answers: Vec<_> = ["/1", "/2", "/3"].map(|to| redirect(302, to)).into();
    answers.push(FINE.to_owned());
    let (port, _) = server(answers.clone()).await;
    let answer = get(&client, &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(answer.expect("an answer").url.path(), "/3");

    let (port, _) = server(answers).await;
    let error = get(&client.following(2), &format!("http://127.0.0.1:{port}/")).await;
    assert!(matches!(error, Err(Error::Redirects(2))), "{error:?}");
}

#[tokio::test]
async fn no_header_that_may_hold_a_secret_leaves_home() {
    let client = client(&["127.0.0.1"], Names(Vec::new()));
    let (other, mut at_other) = server(vec![FINE.to_owned()]).await;
    let to = format!("http://127.0.0.1:{other}/there");
    let (home, mut at_home) = server(vec![redirect(302, &to)]).await;
    let sent = headers(&[
        ("authorization", "Basic secret"),
        ("cookie", "session=secret"),
        ("proxy-authorization", "Basic secret"),
        ("accept", "text/plain"),
    ]);
    let url = Url::parse(&format!("http://127.0.0.1:{home}/")).expect("an address");
    client.get(&url, &sent, None).await.expect("an answer");
    let named = |asked: &str| {
        let lines = asked.lines().skip(1);
        let mut names: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, _)| name.to_owned())
            .collect();
        names.sort();
        names
    };
    let at_home = at_home.recv().await.expect("a request");
    let at_other = at_other.recv().await.expect("a request");
    let secret = ["authorization", "cookie", "proxy-authorization"];
    let (kept, dropped): (Vec<_>, Vec<_>) = named(&at_home)
        .into_iter()
        .partition(|name| !secret.contains(&name.as_str()));
    assert_eq!(dropped, secret);
    assert!(kept.contains(&"accept".to_owned()), "{kept:?}");
    assert_eq!(named(&at_other), kept);
}

#[tokio::test]
async fn a_password_in_an_address_is_not_sent() {
    let client = client(&["127.0.0.1"], Names(Vec::new()));
    let (port, mut told) = server(vec![FINE.to_owned()]).await;
    let url = format!("http://user:password@127.0.0.1:{port}/");
    let url = Url::parse(&url).expect("an address");
    let answer = client.get(&url, &HeaderMap::new(), None).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.url.as_str(), format!("http://127.0.0.1:{port}/"));
    let asked = told.recv().await.expect("a request");
    assert!(!asked.contains("authorization"), "{asked}");
}

#[tokio::test]
async fn a_failed_request_names_no_address_as_its_query_may_be_secret() {
    let client = client(&["127.0.0.1"], Names(Vec::new()));
    let (port, _) = server(vec![String::new()]).await;
    let error = get(&client, &format!("http://127.0.0.1:{port}/?token=secret")).await;
    let error = error.expect_err("no answer");
    assert!(matches!(error, Error::Request(_)), "{error:?}");
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!shown.contains("127.0.0.1"), "{shown}");
    }
}
