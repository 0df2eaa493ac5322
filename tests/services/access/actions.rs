//! Every call wants its action from every kind of caller.

use gateway::{Context, Gateway, Method, RouteBody};
use serde_json::{Map, Value, json};

use super::{code, local, role_token, token, transport};
use crate::support::Server;
use crate::support::issuer::{Issuer, now};
use crate::support::web::ask;
use access::{Action, Role};

const REFUSED: [&str; 4] = [
    "SIGN_IN_REQUIRED",
    "TOKEN_REFUSED",
    "PERMISSION_DENIED",
    "OPERATOR_ONLY",
];

/// The code of a refusal that says who may not; none for any other.
fn access_refusal(code: &str) -> Option<&'static str> {
    REFUSED.into_iter().find(|refused| *refused == code)
}

/// Who calls, and what each action comes to.
pub(super) struct Who {
    pub(super) name: &'static str,
    pub(super) token: String,
    pub(super) outcome: fn(Option<Action>) -> Option<&'static str>,
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

pub(super) fn with_issuer(issuer: &Issuer) -> String {
    let config = issuer.config("", RULES);
    format!("access:\n  anonymous: [reader]\n{config}")
}

pub(super) fn everybody(server: &Server, issuer: &Issuer) -> Vec<Who> {
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
pub(super) fn arguments(gateway: &Gateway, method: &Method) -> Map<String, Value> {
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
        let contract = contract::load().expect("the contract");
        let gateway = Gateway::new(contract, transport(&server, &who.token).await);
        for method in gateway.contract().methods().to_vec() {
            // What looks after a server is on its socket alone; a caller's stream is below.
            if method.service == "Admin" || method.client_streaming {
                continue;
            }
            let ask = gateway.read(&method, arguments(&gateway, &method));
            let ask = ask.expect("a whole request");
            let came = if method.server_streaming {
                // One that begins was let in.
                let begun = gateway.stream(&method, ask, Context::default()).await;
                begun.err().map_or(String::new(), |refusal| refusal.code)
            } else {
                let called = gateway.call(&method, ask, Context::default()).await;
                called.err().map_or(String::new(), |refusal| refusal.code)
            };
            let action = method.action.parse().ok();
            let name = format!("{}.{} as {}", method.service, method.name, who.name);
            assert_eq!(
                access_refusal(&came),
                (who.outcome)(action),
                "{name}: {came}"
            );
        }
    }
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
    let contract = contract::load().expect("the contract");
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
                    access_refusal(&came),
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
            let call = json!({"name": tool.name, "arguments": arguments});
            let answer = signed("POST", "/mcp").mcp("tools/call", call).send().await;
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
