//! A record of every call, whatever protocol it came through.

use std::collections::{BTreeMap, BTreeSet};

use contract::json::to_struct;
use contract::v1;
use contract::v1::lookup_client::LookupClient;
use contract::v1::registry_client::RegistryClient;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tonic::Request;

use super::{events, local, skill};
use crate::support::Server;
use crate::support::web::{Ask, ask};

const CONFIG: &str = "access:\n  sign_in: tokens\n  anonymous: [reader]\n";
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
/// What a caller passes to a tool, and no record may have.
const ARGUMENT: &str = "argument-that-is-nobodys-business";

fn token(server: &Server, args: &[&str]) -> String {
    let args = [&["token", "create"], args, &["--format", "plain"]].concat();
    let made = local(&server.data, &args);
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).expect("text");
    text.trim().to_owned()
}

/// The same without what differs from run to run, which is looked at.
fn known(events: Vec<Value>) -> Vec<Value> {
    let mut digests = BTreeSet::new();
    let mut number = None;
    let known = events.into_iter().map(|mut event| {
        let event_fields = event.as_object_mut().expect("an object");
        let mut take = |name: &str| {
            let value = event_fields
                .remove(name)
                .unwrap_or_else(|| panic!("{name}"));
            value.as_str().map_or(value.to_string(), str::to_owned)
        };
        take("at").parse::<jiff::Timestamp>().expect("a time");
        assert!(digests.insert(take("digest")), "a digest is there twice");
        let this: u64 = take("number").parse().expect("a number");
        assert_eq!(number.map_or(this, |before: u64| before + 1), this);
        number = Some(this);
        let empty = [json!(""), json!([]), json!(0), json!("unspecified")];
        event_fields.retain(|_, value| !empty.contains(value));
        event
    });
    known.collect()
}

/// A call as its record has it.
fn call(rpc: &str, action: &str, names: &[&str], outcome: &str, by: Value) -> Value {
    let mut record = json!({
        "kind": "call",
        "rpc": rpc,
        "action": action,
        "outcome": outcome,
    });
    let fields = record.as_object_mut().expect("an object");
    if !names.is_empty() {
        fields.insert("names".to_owned(), json!(names));
    }
    if let Value::Object(by) = by {
        fields.extend(by);
    }
    record
}

fn by_socket() -> Value {
    json!({"principal": "local", "face": "socket"})
}

fn by(token: &str, face: &str) -> Value {
    json!({"principal": format!("token:{token}"), "face": face, "address": "127.0.0.1"})
}

fn signed<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    let value = format!("Bearer {token}").parse().expect("a value");
    metadata.insert("authorization", value);
    metadata.insert("traceparent", TRACE.parse().expect("a value"));
    request
}

fn web<'a>(server: &'a Server, token: &str, verb: &str, path: &str) -> Ask<'a> {
    ask(&server.url, verb, path).header("authorization", &format!("Bearer {token}"))
}

async fn mcp(server: &Server, token: &str, name: &str, arguments: Value) -> String {
    let request = web(server, token, "POST", "/mcp");
    let call = json!({"name": name, "arguments": arguments});
    request.mcp("tools/call", call).send().await.text()
}

fn markdown(name: &str) -> Value {
    json!({"name": name, "description": "Says hello.", "core_content": "Hello."})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_face_leaves_a_whole_record_of_what_was_done_and_refused() {
    let folder = TempDir::new().expect("a folder");
    let database = folder.path().join("shop.db");
    let shop = rusqlite::Connection::open(&database).expect("a database");
    shop.execute("CREATE TABLE goods (name TEXT)", [])
        .expect("a table");
    let config = format!(
        "{CONFIG}tools:\n  sql:\n    url: sqlite:{}\n",
        database.display()
    );
    let server = Server::over(folder.path(), &[], &config);
    let ci = token(
        &server,
        &["ci", "--role", "publisher", "--skills", "github/acme/*"],
    );

    let mut registry = RegistryClient::new(server.channel().await);
    let published = registry.publish_skill(signed(skill("github/acme/one"), &ci));
    published.await.expect("published");
    let refused = registry.publish_skill(signed(skill("github/other/one"), &ci));
    refused.await.expect_err("another namespace");
    // A read leaves nothing, unless it is refused to somebody who is known.
    let list = signed(v1::ListTokensRequest::default(), &ci);
    let mut access = contract::v1::access_client::AccessClient::new(server.channel().await);
    access.list_tokens(list).await.expect_err("not for it");
    access
        .get_caller(signed(v1::GetCallerRequest {}, &ci))
        .await
        .expect("everybody may");

    let mut lookup = LookupClient::new(server.channel().await);
    let load = v1::LoadSkillRequest {
        skill_id: "write_sql".to_owned(),
        ..Default::default()
    };
    let loaded = lookup.load_skill(signed(load, &ci)).await.expect("loaded");
    let session_id = loaded.into_inner().session_id;
    let query = json!({"query": format!("SELECT '{ARGUMENT}' AS said")});
    let arguments: &Map<_, _> = query.as_object().expect("an object");
    let tool = v1::CallToolRequest {
        session_id: session_id.clone(),
        // As a model may spell it; the trail names the tool as it is declared.
        name: "SQL-Query".to_owned(),
        arguments: Some(to_struct(arguments.clone())),
        ..Default::default()
    };
    let called = lookup.call_tool(signed(tool, &ci)).await.expect("called");
    assert!(format!("{called:?}").contains(ARGUMENT));

    let mut body = markdown("two");
    let rest = web(&server, &ci, "PUT", "/api/v1/skills/github/acme/two")
        .header("traceparent", TRACE)
        .json(&body)
        .send()
        .await;
    assert_eq!(rest.status, 200, "{}", rest.text());
    let rest = web(&server, &ci, "DELETE", "/api/v1/skills/github/other/x");
    assert_eq!(rest.send().await.status, 403);

    body["skill_id"] = json!("github/acme/three");
    body["name"] = json!("three");
    let answer = mcp(&server, &ci, "publish_skill", body).await;
    assert!(answer.contains("github/acme/three"), "{answer}");
    let called = json!({"name": "sql_query", "session_id": "none", "arguments": query});
    let answer = mcp(&server, &ci, "call_tool", called).await;
    assert!(answer.contains("SESSION"), "{answer}");

    let revoked = local(&server.data, &["token", "revoke", "ci"]);
    assert!(revoked.status.success(), "{revoked:?}");
    let refused = registry.publish_skill(signed(skill("github/acme/one"), &ci));
    refused.await.expect_err("it was revoked");
    let data = server.data.clone();
    assert_eq!(server.terminate().0, Some(0));

    let mut expected = vec![
        json!({"kind": "start"}),
        call(
            "Access.CreateToken",
            "administer",
            &["ci"],
            "OK",
            by_socket(),
        ),
        call(
            "Registry.PublishSkill",
            "publish",
            &["github/acme/one"],
            "OK",
            by("ci", "grpc"),
        ),
        call(
            "Registry.PublishSkill",
            "publish",
            &["github/other/one"],
            "PERMISSION_DENIED",
            by("ci", "grpc"),
        ),
        call(
            "Access.ListTokens",
            "administer",
            &[],
            "PERMISSION_DENIED",
            by("ci", "grpc"),
        ),
        call(
            "Lookup.CallTool",
            "call",
            &["sql_query"],
            "OK",
            by("ci", "grpc"),
        ),
        call(
            "Registry.PublishSkill",
            "publish",
            &["github/acme/two"],
            "OK",
            by("ci", "http"),
        ),
        call(
            "Registry.DeleteSkill",
            "delete",
            &["github/other/x"],
            "PERMISSION_DENIED",
            by("ci", "http"),
        ),
        call(
            "Registry.PublishSkill",
            "publish",
            &["github/acme/three"],
            "OK",
            by("ci", "mcp"),
        ),
        call(
            "Lookup.CallTool",
            "call",
            &["sql_query"],
            "SESSION_NOT_FOUND",
            by("ci", "mcp"),
        ),
        call(
            "Access.RevokeToken",
            "administer",
            &["ci"],
            "OK",
            by_socket(),
        ),
        json!({
            "kind": "refusals", "count": 1, "principal": "anonymous",
            "face": "grpc", "address": "127.0.0.1", "outcome": "TOKEN_REFUSED",
        }),
        json!({"kind": "stop"}),
    ];
    for traced in [2, 3, 4, 5, 6] {
        expected[traced]["trace_id"] = json!(TRACE_ID);
    }
    let mut found = known(events(&data, &[]));
    let details = found[0]["details"].take();
    found[0]
        .as_object_mut()
        .expect("an object")
        .remove("details");
    assert_eq!(details["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        details["config"]
            .as_str()
            .expect("a digest")
            .starts_with("sha256:")
    );
    // What is written with its call is before what waits a moment: as by when it happened.
    let order = |event: &Value| {
        let fields = event.as_object().expect("an object").iter();
        let fields = fields.map(|(name, value)| (name.clone(), value.to_string()));
        let fields: BTreeMap<_, _> = fields.collect();
        format!("{fields:?}")
    };
    found.sort_by_key(order);
    expected.sort_by_key(order);
    assert_eq!(found, expected);

    // Neither in the records nor in the files under them.
    let whole = local(&data, &["verify", "--format", "json"]);
    let verified: Value = serde_json::from_slice(&whole.stdout).expect("JSON");
    assert_eq!(
        (verified["whole"].clone(), verified["audit_events"].clone()),
        (json!(true), json!(13))
    );
    let secret = ci.strip_prefix("rpt_").expect("a token");
    for entry in walkdir::WalkDir::new(&data) {
        let path = entry.expect("an entry").into_path();
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        for needle in [secret, ARGUMENT, &session_id] {
            let is_in = bytes
                .windows(needle.len())
                .any(|at| at == needle.as_bytes());
            assert!(!is_in, "{needle} is in {}", path.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_refusals_leaves_some_counts_and_pushes_out_nothing() {
    let folder = TempDir::new().expect("a folder");
    let config = format!("{CONFIG}audit:\n  max_records: 20\n");
    let server = Server::over(folder.path(), &[], &config);
    let ci = token(&server, &["ci", "--role", "publisher"]);
    let mut registry = RegistryClient::new(server.channel().await);
    // Who is known keeps its name, also where it is no call of the contract.
    let figures = web(&server, &ci, "GET", "/metrics").send().await;
    assert_eq!(figures.status, 403);
    for _ in 0..1_000 {
        let refused = registry.publish_skill(skill("github/acme/one")).await;
        refused.expect_err("not without a token");
        let forged = signed(skill("github/acme/one"), &format!("rpt_{}", "A".repeat(43)));
        registry
            .publish_skill(forged)
            .await
            .expect_err("not with this one");
    }
    let data = server.data.clone();
    server.terminate();
    let found = known(events(&data, &[]));
    let refusals = |outcome: &str| {
        json!({
            "kind": "refusals", "count": 1000, "principal": "anonymous",
            "face": "grpc", "address": "127.0.0.1", "outcome": outcome,
        })
    };
    let made = call(
        "Access.CreateToken",
        "administer",
        &["ci"],
        "OK",
        by_socket(),
    );
    let mut figures = json!({"kind": "call", "outcome": "PERMISSION_DENIED"});
    let fields = figures.as_object_mut().expect("an object");
    fields.extend(by("ci", "http").as_object().expect("an object").clone());
    let expected = [
        made,
        figures,
        refusals("SIGN_IN_REQUIRED"),
        refusals("TOKEN_REFUSED"),
        json!({"kind": "stop"}),
    ];
    assert_eq!(found[1..], expected);
}
