//! What is refused over HTTP, and what the refusal says.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{post, publish};
use crate::support::Server;
use crate::support::web::{Answer, ask, get};

#[tokio::test]
async fn every_kind_of_refusal_has_its_status_and_its_code() {
    let server = Server::with(&[], "limits:\n  streams: 1\n");
    let url = &server.url;
    publish(&server, "a/b/c", "1.0.0").await;
    let yank = post(&server, "/api/v1/skills/a/b/c/versions/1/yank", json!({})).await;
    assert_eq!(yank.status, 200);
    let refusal = async |verb: &str, path: &str, body: Option<Value>| {
        let request = ask(url, verb, path);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        request.send().await.refusal()
    };
    let activate = "/api/v1/skills/a/b/c/versions/1/activate";
    let publish =
        json!({"skill_id": "builtin/x/y", "name": "y", "description": "y", "core_content": "y"});
    for (verb, path, body, status, code) in [
        ("GET", "/api/v1/skills/nope", None, 404, "SKILL_NOT_FOUND"),
        ("GET", "/api/v1/skills/c", None, 404, "SKILL_YANKED"),
        ("GET", "/api/v1/nothing", None, 404, "ROUTE_NOT_FOUND"),
        ("GET", "/.well-known/nothing", None, 404, "ROUTE_NOT_FOUND"),
        ("PATCH", "/api/v1/skills", None, 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/healthz", None, 405, "METHOD_NOT_ALLOWED"),
        ("POST", activate, Some(json!({})), 409, "VERSION_YANKED"),
        (
            "POST",
            "/api/v1/skills",
            Some(publish),
            409,
            "SKILL_READ_ONLY",
        ),
        (
            "POST",
            "/api/v1/skills:activate",
            None,
            400,
            "MISSING_PARAMETER",
        ),
        (
            "POST",
            "/api/v1/skills",
            Some(json!([])),
            400,
            "INVALID_PARAMETER",
        ),
        (
            "GET",
            "/api/v1/skills?page_token=x",
            None,
            400,
            "PAGE_TOKEN_INVALID",
        ),
        (
            "GET",
            "/api/v1/events?resume_token=x",
            None,
            400,
            "RESUME_TOKEN_INVALID",
        ),
    ] {
        let expected = (status, code.to_owned());
        assert_eq!(refusal(verb, path, body).await, expected, "{verb} {path}");
    }

    let _watching = ask(url, "GET", "/api/v1/events").start().await;
    let busy = get(url, "/api/v1/events").await;
    assert_eq!(busy.refusal(), (429, "OVERLOADED".to_owned()));
    assert_eq!(busy.header("retry-after"), "1");
    let late = json!({"name": "late", "description": "late", "core_content": "late"});
    let late = ask(url, "POST", "/api/v1/skills").json(&late);
    let late = late.header("grpc-timeout", "0n").send().await;
    assert_eq!(late.refusal(), (504, "TIMEOUT".to_owned()));
    let odd = ask(url, "GET", "/api/v1/skills").header("grpc-timeout", "soon");
    assert_eq!(
        odd.send().await.refusal(),
        (400, "INVALID_PARAMETER".to_owned())
    );
}

#[tokio::test]
async fn a_refusal_names_every_field_and_what_is_wrong_with_it() {
    let server = Server::start();
    let url = &server.url;
    let errors = |answer: &Answer| {
        let problem = answer.json();
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        let text = |error: &Value, key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let pairs = errors
            .iter()
            .map(|e| (text(e, "field"), text(e, "message")));
        pairs.collect::<BTreeMap<_, _>>()
    };
    for (path, field, message) in [
        (
            "?limit=1",
            "limit",
            "Unrecognized key(s) in object: 'limit'",
        ),
        ("?page_size=-1", "page_size", "must be at least 0, is -1"),
        (
            "?page_size=1001",
            "page_size",
            "must be at most 1000, is 1001",
        ),
        (
            "?page_size=2147483648",
            "page_size",
            "Number must be less than or equal to 2147483647",
        ),
        (
            "?page_size=1.5",
            "page_size",
            "Expected integer, received float",
        ),
        (
            "?page_size=NaN",
            "page_size",
            "Expected number, received string",
        ),
        ("?page_size=1&page_size=2", "page_size", "Given twice"),
        (
            "?page_size=",
            "page_size",
            "Expected number, received string",
        ),
        (
            "/x?include_readme=1",
            "include_readme",
            "Expected boolean, received string",
        ),
        ("/x?skill_id=y", "skill_id", "Given twice"),
        (
            "/x/versions/many",
            "version_number",
            "Expected number, received string",
        ),
        (
            "/x/versions/-1",
            "version_number",
            "Number must be greater than or equal to 0",
        ),
    ] {
        let answer = get(url, &format!("/api/v1/skills{path}")).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        let expected = BTreeMap::from([(field.to_owned(), message.to_owned())]);
        assert_eq!(errors(&answer), expected, "{path}");
    }
    let body = json!({"name": 3, "strict": "yes", "extra": 1, "files": [{"content": "?"}]});
    let answer = post(&server, "/api/v1/skills", body).await;
    let fields: Vec<_> = errors(&answer).into_keys().collect();
    assert_eq!(
        fields,
        [
            "extra",
            "files[0].content",
            "files[0].path",
            "name",
            "strict"
        ]
    );
    let body = json!({"skill_id": "a/b/c", "name": "x"});
    let put = ask(url, "PUT", "/api/v1/skills/a/b/d")
        .json(&body)
        .send()
        .await;
    assert_eq!(
        errors(&put)["skill_id"],
        "The body says \"a/b/c\", the path \"a/b/d\""
    );
    let query = ask(url, "POST", "/api/v1/skills?strict=true").json(&json!({}));
    assert_eq!(
        errors(&query.send().await)["strict"],
        "Unrecognized key(s) in object: 'strict'"
    );
    let body = ask(url, "GET", "/api/v1/skills")
        .json(&json!({}))
        .send()
        .await;
    assert_eq!(body.json()["detail"], "Expected no body");
}

#[tokio::test]
async fn a_body_that_is_not_plain_json_is_refused_and_the_server_lives() {
    let server = Server::start();
    let send = async |content_type: &str, body: Vec<u8>| {
        let request = ask(&server.url, "POST", "/api/v1/skills:activate");
        let request = request.header("content-type", content_type).body(body);
        request.send().await.refusal()
    };
    let json = "application/json";
    let nested = |depth: usize| {
        [
            b"{\"command\":".to_vec(),
            vec![b'['; depth],
            vec![b']'; depth],
            b"}".to_vec(),
        ]
        .concat()
    };
    for (content_type, body, status, code) in [
        (
            json,
            b"{\"command\":\"a\",\"command\":\"b\"}".to_vec(),
            400,
            "INVALID_PARAMETER",
        ),
        (
            json,
            b"{\"command\":NaN}".to_vec(),
            400,
            "INVALID_PARAMETER",
        ),
        (
            json,
            b"{\"command\":\"\xff\"}".to_vec(),
            400,
            "INVALID_PARAMETER",
        ),
        (
            json,
            b"{\"command\":\"a\"".to_vec(),
            400,
            "INVALID_PARAMETER",
        ),
        (json, b"null".to_vec(), 400, "INVALID_PARAMETER"),
        (json, nested(10_000), 400, "INVALID_PARAMETER"),
        (json, nested(99), 400, "INVALID_PARAMETER"),
        (
            "text/plain",
            b"{\"command\":\"write_sql\"}".to_vec(),
            415,
            "MEDIA_TYPE_REFUSED",
        ),
        (
            "application/xml",
            b"<a/>".to_vec(),
            415,
            "MEDIA_TYPE_REFUSED",
        ),
    ] {
        let expected = (status, code.to_owned());
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        assert_eq!(
            send(content_type, body).await,
            expected,
            "{content_type} {shown}"
        );
    }
    let packed = ask(&server.url, "POST", "/api/v1/skills:activate")
        .header("content-type", json)
        .header("content-encoding", "gzip")
        .body("{}");
    assert_eq!(packed.send().await.refusal().0, 415);
    let command = json!({"command": "write_sql"});
    let fine = post(&server, "/api/v1/skills:activate", command).await;
    assert_eq!(fine.json()["name"], "write_sql");
}

#[tokio::test]
async fn a_value_nested_deeper_than_a_message_may_be_is_refused() {
    let server = Server::start();
    let depth = 90;
    let value = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let text = format!(
        r#"{{"name":"deep","description":"d","core_content":"x","tool_configs":[{{"name":"t","args":[{{"name":"a","default":{value}}}]}}]}}"#
    );
    let request = ask(&server.url, "POST", "/api/v1/skills");
    let answer = request
        .header("content-type", "application/json")
        .body(text);
    let answer = answer.send().await;
    // Protobuf has a limit of its own.
    assert_eq!(answer.refusal(), (400, "INVALID_PARAMETER".to_owned()));
    assert_eq!(get(&server.url, "/healthz").await.status, 200);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_sent() {
    let server = Server::start();
    let address = server.url.strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "POST /api/v1/skills HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        25 << 20
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("BODY_TOO_LARGE"), "{answer}");
    assert_eq!(get(&server.url, "/healthz").await.status, 200);
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused() {
    let server = Server::start();
    for path in [
        "/api/v1/skills/%ff",
        "/api/v1/skills/%zz",
        "/api/v1/skills?source=%ff",
    ] {
        let answer = get(&server.url, path).await;
        assert_eq!(
            answer.refusal(),
            (400, "INVALID_PARAMETER".to_owned()),
            "{path}"
        );
    }
    let answer = get(&server.url, "/api/v1/skills/%00%1b%5b31m").await;
    assert_eq!(answer.refusal().0, 404);
    let answer = get(&server.url, &format!("/api/v1/skills/{}", "x".repeat(401))).await;
    assert_eq!(answer.refusal(), (400, "INVALID_PARAMETER".to_owned()));
}
