//! Sign-in by the tokens of an issuer of OpenID Connect, and MCP authorization, with the real
//! server. Every call with such tokens is in `access`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contract::v1;
use contract::v1::registry_client::RegistryClient;
use serde_json::{Value, json};
use tonic::Request;

use crate::support::issuer::{AUDIENCE, Issuer, now};
use crate::support::web::{Answer, ask, get};
use crate::support::{self, Server};

const RULES: &str = "{claims: {groups: admins}, role: administrator}, \
    {claims: {repository_owner: acme, ref: refs/heads/main}, role: publisher, skills: [github/acme/*]}, \
    {claims: {groups: agents}, role: agent}";

fn server(issuer: &Issuer, more: &str) -> Server {
    Server::with(&[], &format!("access:\n{}", issuer.config(more, RULES)))
}

async fn rest(server: &Server, token: &str, path: &str) -> Answer {
    let signed = format!("Bearer {token}");
    let ask = ask(&server.url, "GET", path).header("authorization", &signed);
    ask.send().await
}

/// A message to `/mcp` from who shows a token, or none.
async fn mcp(server: &Server, token: &str, method: &str, params: Value) -> Answer {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let signed = format!("Bearer {token}");
    let ask = ask(&server.url, "POST", "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    let ask = match params["name"].as_str() {
        Some(name) => ask.header("mcp-name", name),
        None => ask,
    };
    let ask = match token {
        "" => ask,
        _ => ask.header("authorization", &signed),
    };
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    ask.json(&message).send().await
}

fn publish(id: &str) -> Value {
    let content = STANDARD.encode("---\nname: hello\ndescription: Says hello.\n---\nHello.\n");
    let file = json!({"path": "SKILL.md", "content": content});
    json!({"name": "publish_skill", "arguments": {"skill_id": id, "files": [file]}})
}

fn signed<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().expect("a value");
    request.metadata_mut().insert("authorization", value);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_an_issuer_says_who_calls_and_what_it_may_do() {
    let issuer = Issuer::start().await;
    let server = server(&issuer, "");
    let ci = issuer.token(&json!({
        "sub": "repo:acme/skills:ref:refs/heads/main", "repository_owner": "acme", "ref": "refs/heads/main",
    }));
    let said = rest(&server, &ci, "/api/v1/caller").await.json();
    assert_eq!(
        json!([said["caller"], said["actions"], said["skills"]]),
        json!([
            "oidc:corp/repo:acme/skills:ref:refs/heads/main",
            [
                "read", "load", "call", "learn", "publish", "activate", "delete"
            ],
            ["github/acme/*"],
        ])
    );
    assert!(said["expires_at"].is_string(), "{said}");
    let mut registry = server.registry().await;
    let skill = |id: &str| v1::PublishSkillRequest {
        skill_id: id.to_owned(),
        files: vec![v1::File {
            path: "SKILL.md".to_owned(),
            content: "---\nname: hello\ndescription: Says hello.\n---\nHello.\n".into(),
        }],
        ..Default::default()
    };
    let published = registry
        .publish_skill(signed(skill("github/acme/hello"), &ci))
        .await;
    let version = published
        .expect("published")
        .into_inner()
        .version
        .expect("a version");
    assert_eq!(
        version.created_by,
        "oidc:corp/repo:acme/skills:ref:refs/heads/main"
    );
    let refused = registry
        .publish_skill(signed(skill("github/other/hello"), &ci))
        .await;
    let message = refused.expect_err("refused").message().to_owned();
    assert_eq!(
        message,
        "oidc:corp/repo:acme/skills:ref:refs/heads/main may publish skills for github/acme/* alone, not for github/other/hello"
    );
    let listed = mcp(&server, &ci, "tools/list", json!({})).await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    // Whom no rule matches is known, and may do nothing.
    let nobody = issuer.token(&json!({"ref": "refs/heads/other", "repository_owner": "acme"}));
    let (status, code) = rest(&server, &nobody, "/api/v1/skills").await.refusal();
    assert_eq!((status, code.as_str()), (403, "PERMISSION_DENIED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_told_why_over_every_face() {
    let issuer = Issuer::start().await;
    let (server, other) = (server(&issuer, ""), Issuer::start().await);
    let expired = now() - 120;
    let cases = [
        (
            issuer.token(&json!({"exp": expired})),
            "The token expired at ",
        ),
        (
            issuer.token(&json!({"nbf": now() + 600})),
            "The token is not valid before ",
        ),
        (
            issuer.token(&json!({"aud": "https://other.example.com"})),
            "The token is for another audience (`aud`)",
        ),
        (
            other.token(&json!({})),
            "The token is from an issuer that this server does not accept tokens of",
        ),
        (
            other.token(&json!({"iss": issuer.url})),
            "The signature of the token is wrong",
        ),
        (
            issuer.signed(&json!({"alg": "none", "kid": "k"}), &json!({})),
            "What the call shows is no JWT that can be read",
        ),
        (
            issuer.signed(&json!({"alg": "HS256", "kid": "k"}), &json!({})),
            "What the call shows is no JWT that can be read",
        ),
        (
            issuer.signed(&json!({"alg": "EdDSA", "kid": "made-up"}), &json!({})),
            "The token names a key that its issuer does not have",
        ),
        (
            issuer.token(&json!({"pad": "x".repeat(9_300)})),
            "The token has more than 12288 characters",
        ),
    ];
    let mut registry = RegistryClient::new(server.channel().await);
    for (token, reason) in cases {
        let answer = rest(&server, &token, "/api/v1/skills").await;
        let problem = answer.json();
        assert_eq!(answer.status, 401, "{problem}");
        assert_eq!(problem["code"], "TOKEN_REFUSED");
        let detail = problem["detail"].as_str().expect("a sentence").to_owned();
        assert!(detail.starts_with(reason), "{detail}");
        assert_eq!(
            answer.header("www-authenticate"),
            format!(
                "Bearer realm=\"repertoire\", error=\"invalid_token\", \
                resource_metadata=\"{AUDIENCE}/.well-known/oauth-protected-resource\""
            )
        );
        let refused = registry
            .list_sources(signed(v1::ListSourcesRequest::default(), &token))
            .await;
        assert_eq!(refused.expect_err("refused").message(), detail);
        let answer = mcp(&server, &token, "tools/list", json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["detail"].clone()),
            (401, json!(detail))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_token_that_opened_them_expires() {
    let issuer = Issuer::start().await;
    let server = server(&issuer, "");
    // Clocks may be a minute apart, so this one is good for some seconds more.
    let token = issuer.token(&json!({"groups": ["agents"], "exp": now() - 50}));
    let mut registry = server.registry().await;
    let watch = registry
        .watch(signed(v1::WatchRequest::default(), &token))
        .await;
    let mut watch = watch.expect("a watch").into_inner();
    let signed = format!("Bearer {token}");
    let mut events = ask(&server.url, "GET", "/api/v1/events")
        .header("authorization", &signed)
        .header("accept", "text/event-stream")
        .start()
        .await;
    assert_eq!(events.status, 200);
    let ended = loop {
        if let Err(status) = watch.message().await {
            break status;
        }
    };
    assert_eq!(ended.message(), "The token has expired");
    while events.event().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_wants_more_than_the_token_has_scopes_for_asks_for_old_and_new() {
    let issuer = Issuer::start().await;
    let server = server(&issuer, "scopes: require");
    let challenge = |scope: &str, path: &str| {
        format!(
            "Bearer realm=\"repertoire\", error=\"insufficient_scope\", scope=\"{scope}\", \
            resource_metadata=\"{AUDIENCE}/.well-known/oauth-protected-resource{path}\""
        )
    };
    // Nobody is asked to sign in, for what reading needs.
    let asked = mcp(&server, "", "tools/list", json!({})).await;
    assert_eq!(
        (asked.status.as_u16(), asked.header("www-authenticate")),
        (
            401,
            format!("Bearer realm=\"repertoire\", \
                resource_metadata=\"{AUDIENCE}/.well-known/oauth-protected-resource/mcp\", scope=\"read load\"").as_str()
        )
    );
    let admin = |scope: &str| issuer.token(&json!({"groups": ["admins"], "scope": scope}));
    let reader = admin("openid read load");
    let listed = mcp(&server, &reader, "tools/list", json!({})).await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    let refused = mcp(&server, &reader, "tools/call", publish("github/acme/hello")).await;
    assert_eq!(
        (refused.status.as_u16(), refused.header("www-authenticate")),
        (403, challenge("read load publish", "/mcp").as_str())
    );
    assert_eq!(
        refused.json()["detail"],
        "oidc:corp/ada may publish skills, but its token has no scope `publish`"
    );
    let called = mcp(
        &server,
        &admin("read load publish"),
        "tools/call",
        publish("github/acme/hello"),
    )
    .await;
    assert_eq!(called.status, 200, "{}", called.text());
    assert_eq!(
        called.json()["result"]["isError"],
        json!(false),
        "{}",
        called.text()
    );
    // The same over REST.
    let refused = rest(&server, &reader, "/api/v1/tokens").await;
    assert_eq!(
        (refused.status.as_u16(), refused.header("www-authenticate")),
        (403, challenge("read load administer", "").as_str())
    );
    // Without any scope the session is not begun; and what its rule does not allow, no scope
    // brings: the model is told.
    let none = mcp(&server, &admin("openid"), "tools/list", json!({})).await;
    assert_eq!(
        (none.status.as_u16(), none.header("www-authenticate")),
        (403, challenge("read", "/mcp").as_str())
    );
    let agent = issuer.token(&json!({"groups": ["agents"], "scope": "agent administrator"}));
    let denied = mcp(&server, &agent, "tools/call", publish("github/acme/hello")).await;
    assert_eq!(denied.status, 200, "{}", denied.text());
    let text = denied.text();
    assert!(
        text.contains("oidc:corp/ada may not publish skills"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_calls_a_tool_without_signing_in_is_asked_to_where_a_sign_in_may_help() {
    let issuer = Issuer::start().await;
    let config = issuer.config("", RULES);
    let server = Server::with(&[], &format!("access:\n  anonymous: [reader]\n{config}"));
    let listed = mcp(&server, "", "tools/list", json!({})).await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    let asked = mcp(&server, "", "tools/call", publish("github/acme/hello")).await;
    let (status, code) = asked.refusal();
    assert_eq!((status, code.as_str()), (401, "SIGN_IN_REQUIRED"));
    // Where there are tokens alone, no client would find out what to do, and a model can read.
    let with_tokens = Server::with(&[], "access: {sign_in: tokens, anonymous: [reader]}\n");
    let told = mcp(&with_tokens, "", "tools/call", publish("github/acme/hello")).await;
    assert_eq!(told.status, 200, "{}", told.text());
    assert!(told.text().contains("SIGN_IN_REQUIRED"), "{}", told.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_find_the_issuer_or_what_to_send_where_oauth_says_they_look() {
    let issuer = Issuer::start().await;
    let with_issuer = server(&issuer, "");
    let path = "/.well-known/oauth-protected-resource/mcp";
    let found = ask(&with_issuer.url, "GET", path).header("origin", "http://localhost:6274");
    let found = found.send().await;
    assert_eq!(
        (
            found.header("content-type"),
            found.header("access-control-allow-origin"),
            found.json()
        ),
        (
            "application/json",
            "http://localhost:6274",
            json!({
                "resource": format!("{AUDIENCE}/mcp"),
                "resource_name": "Repertoire",
                "authorization_servers": [issuer.url],
                "bearer_methods_supported": ["header"],
            })
        )
    );
    let with_tokens = Server::with(&[], "access: {sign_in: tokens}\n");
    for path in [
        path,
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration/mcp",
        "/register",
    ] {
        let answer = get(&with_tokens.url, path).await;
        assert_eq!(answer.refusal(), (404, "ROUTE_NOT_FOUND".to_owned()));
        assert_eq!(
            answer.json()["recovery_suggestions"][0],
            "This server takes tokens: send `authorization: Bearer TOKEN` with each call"
        );
    }
}

#[test]
fn issuers_that_make_no_sense_are_refused_at_the_start() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let refused = |config: &str| {
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).expect("a file");
        let file = file.display().to_string();
        let output = support::command(&["config", "check", &file]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let data = folder.path().join("data").display().to_string();
        let started = support::command(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--config",
            &file,
            "--data",
            &data,
        ]);
        assert_eq!(started.status.code(), Some(1), "{started:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&started.stderr))
    };
    let issuer = "{issuer: https://login.example.com, name: corp, rules: [{claims: {sub: ada}, role: reader}]}";
    for (config, expected) in [
        (
            format!("access:\n  sign_in: tokens\n  issuers: [{issuer}]\n"),
            "the issuer `corp` has no `audiences`: write for whom its tokens are, or set `access.public_url`",
        ),
        (
            format!("access:\n  issuers: [{issuer}]\n"),
            "there are issuers, but no caller has to sign in: set `access.sign_in: tokens`",
        ),
        (
            "access:\n  sign_in: tokens\n  public_url: skills.example.com\n".to_owned(),
            "`skills.example.com` is no address of this server; write scheme and host as clients do, such as https://skills.example.com",
        ),
    ] {
        let (checked, started) = refused(&config);
        assert!(checked.contains(expected), "{checked}");
        assert!(started.contains(expected), "{started}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_tool_that_wants_more_scopes_is_in_the_audit_trail_like_any_refusal() {
    let issuer = Issuer::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = format!("access:\n{}", issuer.config("scopes: require", RULES));
    let server = Server::over(directory.path(), &[], &config);
    let reader = issuer.token(&json!({"groups": ["admins"], "scope": "read load"}));
    let refused = mcp(&server, &reader, "tools/call", publish("github/acme/hello")).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let data = server.data.clone();
    server.terminate();
    let data = data.display().to_string();
    let listed = [
        "audit-trail",
        "--principal",
        "oidc:corp/ada",
        "--format",
        "json",
        "--data",
        &data,
    ];
    let listed = support::command(&listed);
    assert!(listed.status.success(), "{listed:?}");
    let text = String::from_utf8(listed.stdout).expect("text");
    let events = text.lines().map(|line| {
        let event: Value = line.parse().expect("JSON");
        json!([event["kind"], event["face"], event["outcome"]])
    });
    assert_eq!(
        events.collect::<Vec<_>>(),
        [json!(["call", "mcp", "PERMISSION_DENIED"])]
    );
}
