//! Agents and pages whose token is missing or refused.

use serde_json::json;

use super::{code, role_token, token};
use crate::support::Server;
use crate::support::web::ask;
use access::Role;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_do_nothing_is_asked_for_a_token_by_http() {
    let server = Server::with(&[], "access: {sign_in: tokens}\n");
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                   "clientInfo": {"name": "test", "version": "1"}},
    });
    let begin = |signed: Option<String>| {
        let ask = ask(&server.url, "POST", "/mcp")
            .header("accept", "application/json, text/event-stream");
        let ask = match &signed {
            None => ask,
            Some(signed) => ask.header("authorization", signed),
        };
        let ask = ask.json(&initialize);
        async move { ask.send().await }
    };
    let refused = begin(None).await;
    assert_eq!(
        (
            refused.status.as_u16(),
            refused.header("www-authenticate"),
            code(&refused)
        ),
        (
            401,
            "Bearer realm=\"repertoire\"",
            "SIGN_IN_REQUIRED".to_owned()
        )
    );
    let text = role_token(&server, Role::Agent);
    assert_eq!(begin(Some(format!("Bearer {text}"))).await.status, 200);
    // A page asks first whether it may show one.
    let first = ask(&server.url, "OPTIONS", "/mcp")
        .header("origin", "http://localhost:3000")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization");
    let first = first.send().await;
    assert_eq!(
        (
            first.status.as_u16(),
            first.header("access-control-allow-headers")
        ),
        (200, "authorization")
    );
    // Figures of the server are for those who look after it; whether it is well, for all.
    let metrics = async |signed: &str| {
        let ask = ask(&server.url, "GET", "/metrics").header("authorization", signed);
        ask.send().await.status.as_u16()
    };
    assert_eq!(metrics(&format!("Bearer {text}")).await, 403);
    let operator = role_token(&server, Role::Operator);
    assert_eq!(metrics(&format!("Bearer {operator}")).await, 200);
    assert_eq!(ask(&server.url, "GET", "/healthz").send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_an_allowed_origin_reads_why_its_token_was_refused_and_no_other_page_does() {
    let config =
        "access: {sign_in: tokens}\nweb: {allowed_origins: [\"https://app.example.com\"]}\n";
    let server = Server::with(&[], config);
    let fetch = async |method: &str, path: &str, origin: &str, signed: &str| {
        let ask = ask(&server.url, method, path)
            .header("origin", origin)
            .header("authorization", signed);
        ask.send().await
    };
    let (wrong, allowed) = ("Bearer rpt_wrong", "https://app.example.com");
    for (method, path) in [("POST", "/mcp"), ("GET", "/v1/skills"), ("GET", "/metrics")] {
        let refused = fetch(method, path, allowed, wrong).await;
        assert_eq!(
            (
                refused.status.as_u16(),
                refused.header("access-control-allow-origin"),
                code(&refused)
            ),
            (401, allowed, "TOKEN_REFUSED".to_owned()),
            "{path}"
        );
        assert_ne!(refused.header("www-authenticate"), "", "{path}");
        let exposed = refused.header("access-control-expose-headers");
        assert!(exposed.contains("www-authenticate"), "{path}: {exposed}");
        let other = fetch(method, path, "https://evil.example", wrong).await;
        assert_eq!(
            (
                other.status.as_u16(),
                other.header("access-control-allow-origin"),
                code(&other)
            ),
            (403, "", "ORIGIN_REFUSED".to_owned()),
            "{path}"
        );
    }
    // One that is known, and may not: refused as early.
    let agent = format!("Bearer {}", role_token(&server, Role::Agent));
    let refused = fetch("GET", "/metrics", allowed, &agent).await;
    assert_eq!(
        (
            refused.status.as_u16(),
            refused.header("access-control-allow-origin")
        ),
        (403, allowed)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_for_whoever_has_a_token_with_the_skills_of_who_may_see_them() {
    let server = Server::with(&[], "access: {sign_in: tokens}\n");
    let list = async |text: &str| {
        let answer = ask(&server.url, "POST", "/mcp")
            .header("authorization", &format!("Bearer {text}"))
            .mcp("tools/list", json!({}))
            .send()
            .await;
        let text = answer.text();
        assert_eq!(answer.status, 200, "{text}");
        assert!(text.contains("\"get_skill\""), "{text}");
        // The list that a description ends with.
        text.contains("write_sql")
    };
    let publisher = token(&server, &["ci", "--action", "publish"]);
    assert!(!list(&publisher).await);
    let agent = role_token(&server, Role::Agent);
    assert!(list(&agent).await);
}
