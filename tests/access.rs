//! Who may do what, with the real server: every call of the contract, over gRPC, REST and
//! MCP, with each kind of token and with none.

#[path = "access/owned.rs"]
mod owned;
#[path = "access/reloaded.rs"]
mod reloaded;
#[path = "access/seen.rs"]
mod seen;
mod support;
#[path = "access/workers.rs"]
mod workers;

use std::process::Output;

use futures_util::StreamExt as _;
use gateway::{Context, Gateway, Method, RouteBody, Transport};
use http::Request;
use repertoire::contract::v1;
use repertoire::contract::v1::access_client::AccessClient;
use repertoire::contract::v1::admin_client::AdminClient;
use repertoire::contract::v1::lookup_client::LookupClient;
use repertoire::contract::v1::registry_client::RegistryClient;
use serde_json::{Map, Value, json};
use support::Server;
use support::issuer::{Issuer, now};
use support::web::{Answer, ask};
use tonic::Streaming;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use access::{Action, Role};

const CONFIG: &str = "access:\n  sign_in: tokens\n  anonymous: [reader]\n";

/// A call over the network that shows a token, or none.
async fn transport(server: &Server, token: &str) -> Transport {
    let token = (!token.is_empty()).then(|| format!("Bearer {token}"));
    let channel = server.channel().await;
    let transport = channel
        .map_request(move |mut request: Request<tonic::body::Body>| {
            if let Some(token) = &token {
                let value = token.parse().expect("a value");
                request.headers_mut().insert("authorization", value);
            }
            request
        })
        .map_err(|error| gateway::TransportError::from(tower::BoxError::from(error)));
    BoxCloneSyncService::new(transport)
}

/// A command on the server's machine, through the socket in the data directory.
fn local(server: &Server, args: &[&str]) -> Output {
    let data = server.data.display().to_string();
    support::command(&[args, &["--data", &data]].concat())
}

/// Makes a token on the server's machine.
fn token(server: &Server, args: &[&str]) -> String {
    let made = local(
        server,
        &[&["token", "create"], args, &["--format", "plain"]].concat(),
    );
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).expect("text");
    text.trim().to_owned()
}

fn role_token(server: &Server, role: Role) -> String {
    token(server, &[role.name(), "--role", role.name()])
}

const REFUSED: [&str; 4] = [
    "SIGN_IN_REQUIRED",
    "TOKEN_REFUSED",
    "PERMISSION_DENIED",
    "OPERATOR_ONLY",
];

/// The code of a refusal that says who may not; anything else is past the door.
fn at_the_door(code: &str) -> Option<&'static str> {
    REFUSED.into_iter().find(|refused| *refused == code)
}

/// Who calls, and what each action comes to.
struct Who {
    name: &'static str,
    token: String,
    outcome: fn(Option<Action>) -> Option<&'static str>,
}

fn by(role: Role) -> fn(Option<Action>) -> Option<&'static str> {
    fn outcome(role: Role, action: Option<Action>) -> Option<&'static str> {
        let allowed = action.is_none_or(|action| role.actions().has(action));
        (!allowed).then_some("PERMISSION_DENIED")
    }
    match role {
        Role::Reader => |action| outcome(Role::Reader, action),
        Role::Agent => |action| outcome(Role::Agent, action),
        Role::Publisher => |action| outcome(Role::Publisher, action),
        Role::Reviewer => |action| outcome(Role::Reviewer, action),
        Role::Operator => |action| outcome(Role::Operator, action),
        Role::Administrator => |action| outcome(Role::Administrator, action),
    }
}

/// What the tokens of an issuer are worth in these tests.
const RULES: &str =
    "{claims: {role: reader}, role: reader}, {claims: {role: publisher}, role: publisher}";

fn with_issuer(issuer: &Issuer) -> String {
    let config = issuer.config("", RULES);
    format!("access:\n  anonymous: [reader]\n{config}")
}

fn everybody(server: &Server, issuer: &Issuer) -> Vec<Who> {
    let mut all: Vec<_> = Role::ALL
        .iter()
        .map(|role| Who {
            name: role.name(),
            token: role_token(server, *role),
            outcome: by(*role),
        })
        .collect();
    all.push(Who {
        name: "nobody in particular",
        token: String::new(),
        outcome: |action| {
            let allowed = action.is_none_or(|action| Role::Reader.actions().has(action));
            (!allowed).then_some("SIGN_IN_REQUIRED")
        },
    });
    for role in [Role::Reader, Role::Publisher] {
        all.push(Who {
            name: "somebody of an issuer",
            token: issuer.token(&json!({"role": role.name()})),
            outcome: by(role),
        });
    }
    let reader = json!({"role": "reader"});
    let changed = |change: Value| {
        let mut claims = reader.clone();
        let more = change.as_object().expect("claims").clone();
        claims.as_object_mut().expect("claims").extend(more);
        issuer.token(&claims)
    };
    let by_header = |header: Value| issuer.signed(&header, &reader);
    let revoked = token(server, &["gone", "--role", "administrator"]);
    assert!(local(server, &["token", "revoke", "gone"]).status.success());
    for (name, token) in [
        ("a revoked token", revoked),
        ("a forged token", format!("rpt_{}", "A".repeat(43))),
        ("a password", "hunter2".to_owned()),
        (
            "an expired token of an issuer",
            changed(json!({"exp": now() - 100})),
        ),
        (
            "a token for somebody else",
            changed(json!({"aud": "https://other.example.com"})),
        ),
        (
            "a token of another issuer",
            changed(json!({"iss": "https://other.example.com"})),
        ),
        (
            "a token that nobody signed",
            by_header(json!({"alg": "none", "kid": "k"})),
        ),
        (
            "a token signed by the public key",
            by_header(json!({"alg": "HS256", "kid": "k"})),
        ),
    ] {
        all.push(Who {
            name,
            token,
            outcome: |_| Some("TOKEN_REFUSED"),
        });
    }
    all
}

/// The fewest arguments with which a request is one.
fn arguments(gateway: &Gateway, method: &Method) -> Map<String, Value> {
    let mut arguments = Map::new();
    for value in [json!("x"), json!(1), json!({}), json!([])] {
        if let Err(refusal) = gateway.read(method, arguments.clone()) {
            let wrong = refusal.fields.into_iter();
            arguments.extend(wrong.map(|(field, _)| (field, value.clone())));
        }
    }
    arguments
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_over_grpc_wants_its_action_from_every_kind_of_caller() {
    let issuer = Issuer::start().await;
    let server = Server::with(&[], &with_issuer(&issuer));
    for who in everybody(&server, &issuer) {
        let contract = repertoire::contract::load().expect("the contract");
        let gateway = Gateway::new(contract, transport(&server, &who.token).await);
        for method in gateway.contract().methods().to_vec() {
            // What looks after a server is on its socket alone; a caller's stream is below.
            if method.service == "Admin" || method.client_streaming {
                continue;
            }
            let ask = gateway.read(&method, arguments(&gateway, &method));
            let ask = ask.expect("a whole request");
            let came = if method.server_streaming {
                // One that begins is past the door.
                let begun = gateway.stream(&method, ask, Context::default()).await;
                begun.err().map_or(String::new(), |refusal| refusal.code)
            } else {
                let called = gateway.call(&method, ask, Context::default()).await;
                called.err().map_or(String::new(), |refusal| refusal.code)
            };
            let action = method.action.parse().ok();
            let name = format!("{}.{} as {}", method.service, method.name, who.name);
            assert_eq!(at_the_door(&came), (who.outcome)(action), "{name}: {came}");
        }
    }
}

/// The code of an answer of REST.
fn code(answer: &Answer) -> String {
    let is_problem = answer.header("content-type") == "application/problem+json";
    if !is_problem {
        return String::new();
    }
    let text = answer.json()["code"].as_str().map(str::to_owned);
    text.expect("a code")
}

/// The path of a route, with what its variables name taken out of the body.
fn path(template: &str, body: &mut Map<String, Value>) -> String {
    let (mut path, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        let (variable, after) = after.split_once('}').expect("its end");
        let (name, segments) = variable.split_once('=').unwrap_or((variable, "*"));
        path.push_str(before);
        path.push_str(match segments {
            "*/*/*" => "a/b/c",
            "*/*" => "a/b",
            _ => "1",
        });
        body.remove(name);
        rest = after;
    }
    path.push_str(rest);
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_and_every_tool_wants_the_action_of_its_call() {
    let issuer = Issuer::start().await;
    let server = Server::with(&[], &with_issuer(&issuer));
    let contract = repertoire::contract::load().expect("the contract");
    let gateway = Gateway::new(contract.clone(), transport(&server, "").await);
    for who in everybody(&server, &issuer) {
        let signed = |verb: &str, path: &str| {
            let ask = ask(&server.url, verb, path);
            match who.token.as_str() {
                "" => ask,
                token => ask.header("authorization", &format!("Bearer {token}")),
            }
        };
        for method in contract.methods() {
            let outcome = (who.outcome)(method.action.parse().ok());
            let name = format!("{}.{} as {}", method.service, method.name, who.name);
            for route in method.routes.iter().filter(|_| !method.server_streaming) {
                let mut body = arguments(&gateway, method);
                let path = path(&route.template, &mut body);
                let ask = if route.body == RouteBody::None {
                    let query = body.iter().map(|(name, value)| match value {
                        Value::String(text) => format!("{name}={text}"),
                        other => format!("{name}={other}"),
                    });
                    let query: Vec<_> = query.collect();
                    signed(&route.verb, &format!("{path}?{}", query.join("&")))
                } else {
                    signed(&route.verb, &path).json(&json!(body))
                };
                let answer = ask.send().await;
                let came = code(&answer);
                assert_eq!(
                    at_the_door(&came),
                    outcome,
                    "{name}, {} {path}: {came}",
                    route.verb
                );
                if answer.status == 401 {
                    let challenge = answer.header("www-authenticate");
                    assert!(
                        challenge.starts_with("Bearer realm=\"repertoire\""),
                        "{challenge}"
                    );
                }
            }
        }
        for tool in contract.tools(None) {
            let required = tool.input.get("required").and_then(Value::as_array);
            let required = required.into_iter().flatten();
            let arguments: Map<_, _> = required
                .map(|name| {
                    let name = name.as_str().expect("a name");
                    let value = match tool.input["properties"][name]["type"].as_str() {
                        Some("array") => json!([]),
                        Some("object") => json!({}),
                        Some("integer" | "number") => json!(1),
                        _ => json!("x"),
                    };
                    (name.to_owned(), value)
                })
                .collect();
            let methods = contract.methods().iter();
            let methods =
                methods.filter(|method| method.tool_names().any(|name| name == tool.name));
            let methods: Vec<_> = methods.collect();
            // One that watches answers when something happens.
            if methods.iter().any(|method| method.server_streaming) {
                continue;
            }
            let actions = methods.iter().map(|method| method.action.parse().ok());
            let call = json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {
                    "name": tool.name, "arguments": arguments,
                    "_meta": {
                        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                        "io.modelcontextprotocol/clientCapabilities": {},
                        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                    },
                },
            });
            let answer = signed("POST", "/mcp")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", &tool.name)
                .json(&call)
                .send()
                .await;
            let text = answer.text();
            let came = REFUSED.into_iter().find(|refused| text.contains(refused));
            let outcomes: Vec<_> = actions.map(who.outcome).collect();
            assert!(
                outcomes.contains(&came),
                "{} as {}: {text}",
                tool.name,
                who.name
            );
        }
    }
}

fn skill(id: &str) -> v1::PublishSkillRequest {
    let name = id.rsplit('/').next().expect("a name");
    v1::PublishSkillRequest {
        skill_id: id.to_owned(),
        files: vec![v1::File {
            path: "SKILL.md".to_owned(),
            content: format!("---\nname: {name}\ndescription: Says hello.\n---\nHello.\n").into(),
        }],
        ..Default::default()
    }
}

fn reason(status: &tonic::Status) -> String {
    use tonic_types::StatusExt as _;
    let info = status.get_details_error_info();
    info.map_or_else(|| format!("{status:?}"), |info| info.reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_some_skills_writes_to_no_others() {
    let server = Server::with(&[], CONFIG);
    let text = token(
        &server,
        &["ci", "--role", "publisher", "--skills", "github/acme/*"],
    );
    let mut registry = RegistryClient::new(transport(&server, &text).await);
    let published = registry.publish_skill(skill("github/acme/hello")).await;
    let published = published.expect("published").into_inner();
    let version = published.version.expect("a version");
    assert_eq!(version.created_by, "token:ci");
    for other in ["github/other/hello", "hello", "", "local/global/hello"] {
        let refused = registry
            .publish_skill(skill(other))
            .await
            .expect_err("refused");
        assert_eq!(reason(&refused), "PERMISSION_DENIED", "{other}");
    }
    // Over a stream each by itself, and nothing of it ends the others.
    let items = ["github/other/a", "github/acme/b", "c"].map(|id| v1::PublishSkillsRequest {
        skill: Some(skill(id)),
    });
    let answers = registry.publish_skills(tokio_stream::iter(items)).await;
    let answers: Streaming<v1::PublishSkillsResponse> = answers.expect("a stream").into_inner();
    let outcomes: Vec<_> = answers
        .map(
            |answer| match answer.expect("an answer").result.expect("a result") {
                v1::publish_skills_response::Result::Published(published) => published.skill_id,
                v1::publish_skills_response::Result::Refused(refusal) => refusal.code,
            },
        )
        .collect()
        .await;
    assert_eq!(
        outcomes,
        ["PERMISSION_DENIED", "github/acme/b", "PERMISSION_DENIED"]
    );
    let delete = |id: &str| v1::DeleteSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    };
    // `hello` leads to the very skill, and may lead elsewhere in a moment.
    for other in ["hello", "builtin/repertoire/jira"] {
        let refused = registry
            .delete_skill(delete(other))
            .await
            .expect_err("refused");
        assert_eq!(reason(&refused), "PERMISSION_DENIED", "{other}");
    }
    registry
        .delete_skill(delete("GitHub/Acme/hello"))
        .await
        .expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_block_a_skill_may_not_take_it_off_the_list() {
    let server = Server::with(&[], CONFIG);
    let text = token(&server, &["watchdog", "--action", "block"]);
    let mut registry = RegistryClient::new(transport(&server, &text).await);
    let update = |action: v1::BlocklistAction| v1::UpdateBlocklistRequest {
        action: action.into(),
        skill_id: "write_sql".to_owned(),
        reason: "It leaks.".to_owned(),
        ..Default::default()
    };
    let refused = registry
        .update_blocklist(update(v1::BlocklistAction::Remove))
        .await;
    assert_eq!(reason(&refused.expect_err("refused")), "PERMISSION_DENIED");
    let reviewer = role_token(&server, Role::Reviewer);
    let mut reviewer = RegistryClient::new(transport(&server, &reviewer).await);
    let not_blocked = reviewer
        .update_blocklist(update(v1::BlocklistAction::Remove))
        .await;
    assert_eq!(
        reason(&not_blocked.expect_err("refused")),
        "SKILL_NOT_BLOCKED"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_ends_its_streams() {
    let server = Server::with(&[], CONFIG);
    let text = role_token(&server, Role::Reader);
    let mut registry = RegistryClient::new(transport(&server, &text).await);
    let watch = registry.watch(v1::WatchRequest::default()).await;
    let mut watch = watch.expect("a watch").into_inner();
    let mut events = ask(&server.url, "GET", "/api/v1/events")
        .header("authorization", &format!("Bearer {text}"))
        .header("accept", "text/event-stream")
        .start()
        .await;
    assert_eq!(events.status, 200);
    assert!(
        local(&server, &["token", "revoke", "reader"])
            .status
            .success()
    );
    let ended = loop {
        match watch.next().await {
            Some(Ok(_)) => {}
            other => break other,
        }
    };
    let ended = ended.expect("an end that says why").expect_err("a refusal");
    assert_eq!(ended.code(), tonic::Code::Unauthenticated);
    assert_eq!(ended.message(), "The token was revoked");
    while events.event().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_outlives_the_server_and_says_who_one_is() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let server = Server::over(folder.path(), &[], CONFIG);
    let text = token(
        &server,
        &[
            "ada",
            "--role",
            "agent",
            "--skills",
            "local/*",
            "--expires",
            "7",
        ],
    );
    // No file of the data directory has it.
    let (text_alone, mut read) = (text.trim_start_matches("rpt_").to_owned(), 0);
    server.terminate();
    for entry in walkdir::WalkDir::new(folder.path()) {
        let entry = entry.expect("an entry");
        if entry.file_type().is_file() {
            let bytes = std::fs::read(entry.path()).expect("a file");
            read += bytes.len();
            let holds = bytes
                .windows(text_alone.len())
                .any(|at| at == text_alone.as_bytes());
            assert!(!holds, "{}", entry.path().display());
        }
    }
    assert!(read > 0);
    let server = Server::over(folder.path(), &[], CONFIG);
    let whoami = |text: &str| {
        let answer = ask(&server.url, "GET", "/api/v1/caller");
        let signed = format!("Bearer {text}");
        async move { answer.header("authorization", &signed).send().await }
    };
    let said = whoami(&text).await.json();
    assert_eq!(
        json!([said["caller"], said["actions"], said["skills"]]),
        json!(["token:ada", ["read", "load", "call", "learn"], ["local/*"]])
    );
    let mut access = AccessClient::new(transport(&server, &text).await);
    let refused = access.list_tokens(v1::ListTokensRequest {}).await;
    assert_eq!(reason(&refused.expect_err("refused")), "PERMISSION_DENIED");
    let listed: Value =
        serde_json::from_slice(&local(&server, &["token", "--json"]).stdout).expect("JSON");
    let listed = &listed["tokens"][0];
    assert_eq!(listed["name"], "ada");
    assert_eq!(listed["created_by"], "local");
    assert!(listed["last_used_at"].is_string(), "{listed}");
    assert!(!listed.to_string().contains(&text_alone));
}

#[test]
fn a_server_for_other_machines_does_not_start_without_sign_in_and_tls() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let refused = |config: &str| {
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config).expect("a file");
        let (file, data) = (file.display().to_string(), folder.path().join("data"));
        let data = data.display().to_string();
        let args = [
            "serve",
            "--listen",
            "0.0.0.0:0",
            "--config",
            &file,
            "--data",
            &data,
            "--json",
        ];
        let output = support::command(&args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let error: Value =
            serde_json::from_str(stderr.lines().last().expect("a line")).expect("JSON");
        let text = |name: &str| error["error"][name].as_str().expect("text").to_owned();
        (text("code"), text("message"))
    };
    let (code, message) = refused("");
    assert_eq!(code, "CONFIG_INVALID");
    assert!(
        message.contains("Set `access.sign_in: tokens`"),
        "{message}"
    );
    let (code, message) = refused("access: {sign_in: tokens}\n");
    assert_eq!(code, "CONFIG_INVALID");
    assert!(message.contains("`access.behind_proxy: true`"), "{message}");
}

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
        let list = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/list",
            "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            }},
        });
        let answer = ask(&server.url, "POST", "/mcp")
            .header("authorization", &format!("Bearer {text}"))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list")
            .json(&list)
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

#[tokio::test(flavor = "multi_thread")]
async fn the_network_offers_the_service_of_the_machine_to_nobody() {
    let server = Server::with(&[], CONFIG);
    let text = role_token(&server, Role::Administrator);
    let mut admin = AdminClient::new(transport(&server, &text).await);
    let refused = admin.get_status(v1::GetStatusRequest {}).await;
    let code = refused.expect_err("a refusal").code();
    assert_eq!(code, tonic::Code::Unimplemented);
}
