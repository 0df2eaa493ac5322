//! Pages of the server itself, and which browsers may call it.

use serde_json::json;

use crate::support::Server;
use crate::support::web::{Answer, ask, get};

#[tokio::test]
async fn head_is_get_without_a_body() {
    let server = Server::start();
    for path in [
        "/api/v1/skills/write_sql",
        "/api/v1/skills/nope",
        "/healthz",
        "/nothing",
    ] {
        let head = ask(&server.url, "HEAD", path).send().await;
        let got = get(&server.url, path).await;
        assert_eq!(head.status, got.status, "{path}");
        assert_eq!(
            head.header("content-type"),
            got.header("content-type"),
            "{path}"
        );
        assert_eq!(
            head.header("content-length"),
            got.body.len().to_string(),
            "{path}"
        );
        assert!(head.body.is_empty());
    }
}

#[tokio::test]
async fn a_page_of_another_origin_is_let_in_only_when_it_is_listed() {
    let config = "web:\n  allowed_hosts: [skills.example.com]\n  allowed_origins: [https://app.example.com]\n";
    let server = Server::with(&[], config);
    let from = async |verb: &str, path: &str, headers: &[(&str, &str)]| {
        let mut request = ask(&server.url, verb, path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.send().await
    };
    for path in [
        "/api/v1/skills",
        "/healthz",
        "/mcp",
        "/",
        "/repertoire.v1.Lookup/GetSkill",
    ] {
        for verb in ["GET", "POST", "OPTIONS"] {
            let refused = from(verb, path, &[("origin", "https://evil.example")]).await;
            assert_eq!(
                refused.refusal(),
                (403, "ORIGIN_REFUSED".to_owned()),
                "{verb} {path}"
            );
            assert!(!refused.headers.contains_key("access-control-allow-origin"));
            let refused = from(verb, path, &[("host", "rebound.example")]).await;
            assert_eq!(
                refused.refusal(),
                (403, "HOST_REFUSED".to_owned()),
                "{verb} {path}"
            );
            assert!(
                refused.text().contains("web.allowed_hosts"),
                "{}",
                refused.text()
            );
        }
    }
    for headers in [
        &[("origin", "https://app.example.com")][..],
        &[("origin", "http://localhost:3000")],
        &[
            ("host", "skills.example.com"),
            ("origin", "https://skills.example.com"),
        ],
    ] {
        let answer = from("GET", "/api/v1/skills", headers).await;
        assert_eq!(answer.status, 200, "{headers:?}");
        let origin = headers.last().expect("an origin").1;
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert!(
            answer.header("vary").contains("origin"),
            "{:?}",
            answer.headers
        );
    }
    let preflight = [
        ("origin", "https://app.example.com"),
        ("access-control-request-method", "PUT"),
        (
            "access-control-request-headers",
            "content-type,x-request-id",
        ),
    ];
    let answer = from("OPTIONS", "/api/v1/skills/a/b/c", &preflight).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-methods"), "PUT");
    assert_eq!(
        answer.header("access-control-allow-headers"),
        "content-type,x-request-id"
    );
}

#[tokio::test]
async fn the_way_in_names_what_there_is() {
    let server = Server::start();
    let welcome = get(&server.url, "/").await.json();
    for link in ["rest", "health", "errors"] {
        let path = welcome["links"][link].as_str().expect("a path");
        assert_eq!(get(&server.url, path).await.status, 200, "{path}");
    }
    let health = get(&server.url, "/healthz").await;
    assert_eq!(health.json(), json!({"status": "serving"}));
}

#[tokio::test]
async fn the_openapi_document_is_served_and_need_not_be_sent_twice() {
    let server = Server::start();
    let document = get(&server.url, "/openapi.json").await;
    assert_eq!(document.json()["openapi"], "3.1.0");
    let contract = contract::load().expect("a contract");
    assert_eq!(document.json(), contract.openapi());
    let tag = document.header("etag").to_owned();
    let again = ask(&server.url, "GET", "/openapi.json").header("if-none-match", &tag);
    let again = again.send().await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
}

#[tokio::test]
async fn a_browser_is_shown_what_this_is_and_what_to_paste() {
    let server = Server::start();
    let from = |path: &str, accept: &str| ask(&server.url, "GET", path).header("accept", accept);
    let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    let page = from("/", browser).send().await;
    let header = |name: &str| page.headers[name].to_str().expect("text").to_owned();
    assert_eq!(
        [
            header("content-type"),
            header("content-security-policy"),
            header("vary")
        ],
        [
            "text/html; charset=utf-8",
            "default-src 'none'; style-src 'unsafe-inline'",
            "accept"
        ]
    );
    let text = page.text();
    for line in [
        format!(
            "claude mcp add --transport http repertoire {}/mcp/agent",
            server.url
        ),
        format!("npx skills add {} --skill NAME", server.url),
        format!("Version {}", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(text.contains(&line), "{line}: {text}");
    }
    // Every link is there.
    for link in text.split("href=\"").skip(1) {
        let path = link.split('"').next().expect("an end");
        assert_eq!(get(&server.url, path).await.status, 200, "{path}");
    }
    // Behind a proxy with TLS it says so.
    let secure = from("/", browser).header("x-forwarded-proto", "https");
    let text = secure.send().await.text();
    assert!(
        text.contains(&server.url.replace("http:", "https:")),
        "{text}"
    );
    // Nothing of a request is markup; without a name there is a place for one.
    let odd = from("/", browser).header("host", "[::1]:\"<b>");
    assert_ne!(odd.send().await.status, 200);
    // What a browser would store in a file, it shows.
    let kind = |answer: &Answer| {
        answer.headers["content-type"]
            .to_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(
        kind(&from("/errors", browser).send().await),
        "text/plain; charset=utf-8"
    );
    assert_eq!(
        kind(&get(&server.url, "/errors").await),
        "text/markdown; charset=utf-8"
    );
}

#[tokio::test]
async fn a_name_of_the_server_may_be_a_flag() {
    let server = Server::with(&["--allowed-host", "skills.example.com,other.example"], "");
    let status = async |host: &str| {
        let ask = ask(&server.url, "GET", "/healthz").header("host", host);
        ask.send().await.status.as_u16()
    };
    assert_eq!(status("skills.example.com").await, 200);
    assert_eq!(status("other.example").await, 200);
    assert_eq!(status("third.example").await, 403);
}
