//! The HTTP face of a running server: REST, events, downloads, and who may ask.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use repertoire::contract::v1;
use serde_json::{Value, json};
use support::Server;
use support::web::{Answer, ask, get};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const BASE64: base64::engine::GeneralPurpose = base64::engine::general_purpose::STANDARD;

async fn post(server: &Server, path: &str, body: Value) -> Answer {
    ask(&server.url, "POST", path).json(&body).send().await
}

fn skill_md(name: &str, version: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\nversion: {version}\n---\n{body}\n")
}

/// Publishes a skill with a guide beside its SKILL.md.
async fn publish(server: &Server, id: &str, version: &str) -> Value {
    let name = id.rsplit('/').next().expect("a slug");
    let file = |path: &str, text: &str| json!({"path": path, "content": BASE64.encode(text)});
    let files = [
        file("SKILL.md", &skill_md(name, version, "Body.")),
        file("references/a b.md", &format!("Guide of {version}.\n")),
    ];
    let body = json!({"skill_id": id, "files": files});
    let answer = post(server, "/api/v1/skills", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn the_routes_of_the_specification_answer() {
    let server = Server::start();
    let url = &server.url;
    let body = json!({
        "name": "refund-desk", "description": "Pays back.", "category": "custom",
        "core_content": "Ask for the receipt.",
        "tool_configs": [{"name": "pay", "description": "Pays.", "method": "pay"}],
    });
    let created = post(&server, "/api/v1/skills", body.clone()).await.json();
    assert_eq!(
        (&created["skill_id"], &created["outcome"]),
        (&json!("local/global/refund-desk"), &json!("created"))
    );

    let listed = get(url, "/api/v1/skills?source=local").await.json();
    assert_eq!(listed["skills"][0]["name"], "refund-desk");
    let skill = get(url, "/api/v1/skills/refund-desk").await.json();
    assert_eq!(skill["skill"]["tool_configs"][0]["name"], "pay");
    assert_eq!(skill["skill"]["readme_excerpt"], "Ask for the receipt.");

    let mut changed = body;
    changed["core_content"] = json!("Ask for nothing.");
    let put = ask(url, "PUT", "/api/v1/skills/local/global/refund-desk");
    let updated = put.json(&changed).send().await.json();
    assert_eq!(updated["version"]["version_number"], 2, "{updated}");

    let versions = get(url, "/api/v1/skills/refund-desk/versions").await.json();
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2));
    let first = get(url, "/api/v1/skills/refund-desk/versions/1")
        .await
        .json();
    assert_eq!(first["version"]["core_content"], "Ask for the receipt.\n");
    let back = "/api/v1/skills/refund-desk/versions/1/activate";
    let back = post(&server, back, json!({})).await.json();
    assert_eq!(back["previous_version"], 2);
    let metrics = get(url, "/api/v1/skills/refund-desk/metrics").await.json();
    assert_eq!(metrics["skill_id"], "local/global/refund-desk");
    let diff = get(
        url,
        "/api/v1/skills/refund-desk/diff?from_version=1&to_version=2",
    );
    let diff = diff.await.json();
    assert_eq!(diff["files"][0]["path"], "SKILL.md");

    let gone = ask(url, "DELETE", "/api/v1/skills/refund-desk")
        .send()
        .await;
    assert_eq!(gone.json()["versions_deleted"], 2);
    let gone = get(url, "/api/v1/skills/refund-desk").await;
    assert_eq!(gone.refusal(), (404, "SKILL_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn a_part_of_a_skill_changes_that_part_on_every_face() {
    let server = Server::start();
    let id = "github/acme/refunds";
    publish(&server, id, "1.0.0").await;
    let text = skill_md("refunds", "\"1.0.2\"", "Body.");
    let text = text.replace("Does refunds.", "\"Pays.\"");
    let expected = text.replace("---\nBody.\n", "---\n\nAsk.\n");
    let path = "/api/v1/skills/github/acme/refunds";
    let put = ask(&server.url, "PUT", path).json(&json!({"description": "Pays."}));
    let put = put.send().await.json();
    assert_eq!(put["version"]["semantic_version"], "1.0.1", "{put}");
    let changed = json!({"skill_id": "refunds", "core_content": "Ask.\n"});
    let told = call_tool(&server, "publish_skill", changed.clone()).await;
    let version = &told["result"]["structuredContent"]["version"];
    assert_eq!(version["semantic_version"], "1.0.2", "{told}");
    let request = v1::PublishSkillRequest {
        skill_id: "refunds".to_owned(),
        core_content: "Ask.".to_owned(),
        ..Default::default()
    };
    let mut registry = server.registry().await;
    let same = registry.publish_skill(request).await.expect("published");
    assert_eq!(same.into_inner().outcome(), v1::PublishOutcome::Unchanged);
    let stored = get(&server.url, "/.well-known/agent-skills/refunds/SKILL.md");
    assert_eq!(stored.await.text(), expected);
    let files = get(&server.url, "/api/v1/skills/refunds/files")
        .await
        .json();
    let files = files["files"].as_array().map(Vec::len);
    assert_eq!(files, Some(2));
    let nothing = ask(&server.url, "PUT", path).json(&json!({})).send().await;
    assert_eq!(nothing.refusal(), (400, "MISSING_PARAMETER".to_owned()));
}

#[tokio::test]
async fn an_id_is_three_segments_or_one_with_encoded_slashes_or_a_short_name() {
    let server = Server::start();
    for id in ["github/acme/refunds", "a/versions/3"] {
        publish(&server, id, "1.0.0").await;
    }
    for end in [
        "",
        "/versions",
        "/versions/1",
        "/files",
        "/files/SKILL.md",
        "/metrics",
    ] {
        let mut answers = Vec::new();
        for form in ["github/acme/refunds", "github%2Facme%2Frefunds", "refunds"] {
            let path = format!("/api/v1/skills/{form}{end}");
            let answer = get(&server.url, &path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            answers.push(answer.json());
        }
        // Counts of use go up from one read to the next.
        if end != "/metrics" {
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{end}");
        }
    }
    // A skill whose id reads like a path is reached with encoded slashes.
    let of_a = get(&server.url, "/api/v1/skills/a/versions/3").await;
    assert_eq!(of_a.json()["details"]["skill_id"], "a");
    let whole = get(&server.url, "/api/v1/skills/a%2Fversions%2F3").await;
    assert_eq!(whole.json()["skill"]["id"], "a/versions/3");
    let kept = ask(&server.url, "DELETE", "/api/v1/skills/a/versions/3");
    let kept = kept.send().await;
    assert_eq!(kept.refusal(), (405, "METHOD_NOT_ALLOWED".to_owned()));
    assert_eq!(kept.header("allow"), "GET, HEAD, OPTIONS");
}

/// The JSON of the gateway for what gRPC answers.
fn as_json(name: &str, message: &impl prost::Message) -> Value {
    let contract = repertoire::contract::load().expect("a contract");
    contract.json(name, message).expect("JSON")
}

#[tokio::test]
async fn rest_and_grpc_give_the_same_answers_and_refusals() {
    let server = Server::start();
    publish(&server, "github/acme/refunds", "1.0.0").await;
    publish(&server, "github/acme/refunds", "1.1.0").await;
    let (mut lookup, mut registry) = (server.lookup().await, server.registry().await);
    let id = "github/acme/refunds".to_owned();

    let request = v1::ListSkillsRequest {
        page_size: 3,
        tags: vec!["a".to_owned(), "b c".to_owned()],
        ..Default::default()
    };
    let grpc = lookup.list_skills(request).await.expect("a list");
    let rest = get(&server.url, "/api/v1/skills?page_size=3&tags=a&tags=b%20c").await;
    assert_eq!(rest.json(), as_json("ListSkillsResponse", grpc.get_ref()));

    let request = v1::GetSkillRequest {
        skill_id: id.clone(),
        include_readme: Some(false),
        include_versions: true,
        semantic_version: "1.0.0".to_owned(),
        ..Default::default()
    };
    let grpc = lookup.get_skill(request).await.expect("a skill");
    let path = "/api/v1/skills/github/acme/refunds?include_readme=false&include_versions=true&semantic_version=1.0.0";
    let rest = get(&server.url, path).await;
    assert_eq!(rest.json(), as_json("GetSkillResponse", grpc.get_ref()));

    let request = v1::ReadFileRequest {
        skill_id: id.clone(),
        path: "references/a b.md".to_owned(),
        offset_bytes: 2,
        limit_bytes: 5,
        ..Default::default()
    };
    let grpc = lookup.read_file(request).await.expect("a file");
    let path = "/api/v1/skills/refunds/files/references/a%20b.md?offset_bytes=2&limit_bytes=5";
    let rest = get(&server.url, path).await;
    assert_eq!(rest.json(), as_json("ReadFileResponse", grpc.get_ref()));
    let content = rest.json()["content"]
        .as_str()
        .map(|text| BASE64.decode(text));
    assert_eq!(content, Some(Ok(b"ide o".to_vec())));

    let request = v1::GetVersionRequest {
        skill_id: id.clone(),
        version_number: 1,
        ..Default::default()
    };
    let grpc = registry.get_version(request).await.expect("a version");
    let rest = get(&server.url, "/api/v1/skills/refunds/versions/1").await;
    assert_eq!(rest.json(), as_json("GetVersionResponse", grpc.get_ref()));

    for (path, version, reason) in [
        ("/api/v1/skills/refunds/versions/9", 9, "VERSION_NOT_FOUND"),
        (
            "/api/v1/skills/refunds/versions/4294967295",
            u32::MAX,
            "VERSION_NOT_FOUND",
        ),
    ] {
        let request = v1::GetVersionRequest {
            skill_id: id.clone(),
            version_number: version,
            ..Default::default()
        };
        let grpc = registry.get_version(request).await.expect_err("a refusal");
        let rest = get(&server.url, path).await;
        assert_eq!(rest.refusal(), (404, reason.to_owned()));
        assert_eq!(rest.json()["detail"], grpc.message());
    }
}

#[tokio::test]
async fn every_kind_of_refusal_has_its_status_and_its_code() {
    let server = Server::with(&[], "limits:\n  streams: 1\n");
    let url = &server.url;
    publish(&server, "a/b/c", "1.0.0").await;
    let yank = post(&server, "/api/v1/skills/c/versions/1/yank", json!({})).await;
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
async fn a_call_keeps_the_name_that_its_caller_gave_it() {
    let server = Server::start();
    let named = ask(&server.url, "GET", "/api/v1/skills/x").header("x-request-id", "mine-7");
    assert_eq!(named.send().await.header("x-request-id"), "mine-7");
    let (one, two) = (
        get(&server.url, "/api/v1/skills").await,
        get(&server.url, "/x").await,
    );
    assert_eq!(one.header("x-request-id").len(), 36);
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
    let long = ask(&server.url, "GET", "/x").header("x-request-id", &"x".repeat(257));
    assert_eq!(long.send().await.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn events_stream_and_go_on_where_a_client_lost_them() {
    let server = Server::start();
    let mut watching = ask(&server.url, "GET", "/api/v1/events").start().await;
    assert_eq!(watching.headers["content-type"], "text/event-stream");
    let start = watching.event().await.expect("a first answer");
    assert_eq!(start.data["resume_token"], start.id);
    publish(&server, "a/b/one", "1.0.0").await;
    let one = watching.event().await.expect("an event");
    assert_eq!(one.data["event"]["skill_id"], "a/b/one");
    assert_eq!(
        (one.name.as_str(), &one.data["event"]["type"]),
        ("", &json!("published"))
    );
    drop(watching);

    publish(&server, "a/b/two", "1.0.0").await;
    publish(&server, "a/b/three", "1.0.0").await;
    let again = ask(&server.url, "GET", "/api/v1/events?max_events=2");
    let mut again = again.header("last-event-id", &one.id).start().await;
    let mut seen = Vec::new();
    while let Some(event) = again.event().await {
        seen.extend(event.data["event"]["skill_id"].as_str().map(str::to_owned));
    }
    assert_eq!(seen, ["a/b/two", "a/b/three"]);

    // What the URL says goes before what a reconnecting client remembers.
    let path = format!("/api/v1/events?max_events=1&resume_token={}", start.id);
    let mut first = ask(&server.url, "GET", &path);
    first = first.header("last-event-id", &one.id);
    let mut first = first.start().await;
    let mut seen = Vec::new();
    while let Some(event) = first.event().await {
        seen.extend(event.data["event"]["skill_id"].as_str().map(str::to_owned));
    }
    assert_eq!(seen, ["a/b/one"]);
}

#[tokio::test]
async fn a_stream_that_is_refused_on_its_way_ends_with_an_event_that_says_so() {
    let server = Server::start();
    let watching = ask(&server.url, "GET", "/api/v1/events").header("grpc-timeout", "200m");
    let mut watching = watching.start().await;
    assert_eq!(watching.status, 200);
    watching.event().await.expect("a first answer");
    let last = watching.event().await.expect("an end");
    assert_eq!(
        (last.name.as_str(), &last.data["code"]),
        ("error", &json!("TIMEOUT"))
    );
    assert_eq!(last.data["status"], 504);
    assert_eq!(watching.event().await, None);
}

#[tokio::test]
async fn a_download_is_what_grpc_exports_byte_for_byte() {
    let server = Server::start();
    publish(&server, "github/acme/refunds", "1.2.0").await;
    for (format, number, media, name) in [
        (
            "tar_gz",
            v1::ArchiveFormat::TarGz,
            "application/gzip",
            "refunds-1.2.0.tar.gz",
        ),
        (
            "zip",
            v1::ArchiveFormat::Zip,
            "application/zip",
            "refunds-1.2.0.zip",
        ),
    ] {
        let request = v1::ExportSkillRequest {
            skill_id: "refunds".to_owned(),
            format: number.into(),
            ..Default::default()
        };
        let mut pieces = server
            .registry()
            .await
            .export_skill(request)
            .await
            .expect("an export")
            .into_inner();
        let mut exported = Vec::new();
        while let Some(piece) = pieces.message().await.expect("a piece") {
            exported.extend_from_slice(&piece.chunk);
        }
        let path = format!("/api/v1/skills/refunds/export?format={format}&info_only=true");
        let told = get(&server.url, &path).await;
        let digest = format!("\"{}\"", model::Digest::of(&exported));
        assert_eq!((told.status.as_u16(), told.body.len()), (200, 0));
        assert_eq!(told.header("etag"), digest);
        let path = format!("/api/v1/skills/refunds/export?format={format}");
        let answer = get(&server.url, &path).await;
        assert_eq!(answer.body, Bytes::from(exported));
        assert_eq!(answer.header("content-type"), media);
        assert_eq!(
            answer.header("content-disposition"),
            format!("attachment; filename=\"{name}\"")
        );
        assert_eq!(
            answer.header("content-length"),
            answer.body.len().to_string()
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(
            answer
                .header("content-security-policy")
                .starts_with("sandbox")
        );

        let tag = answer.header("etag").to_owned();
        let again = ask(&server.url, "GET", &path).header("if-none-match", &tag);
        let again = again.send().await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));

        let events = ask(&server.url, "GET", &path).header("accept", "text/event-stream");
        let mut events = events.start().await;
        let first = events.event().await.expect("a message");
        assert_eq!(first.data["info"]["file_name"], name);
    }
    let refused = get(&server.url, "/api/v1/skills/nope/export").await;
    assert_eq!(refused.refusal(), (404, "SKILL_NOT_FOUND".to_owned()));
    let refused = get(&server.url, "/api/v1/skills/refunds/export?format=rar").await;
    assert_eq!(refused.refusal(), (400, "INVALID_PARAMETER".to_owned()));
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_place_back() {
    let server = Server::with(&[], "limits:\n  streams: 1\n");
    let mut first = ask(&server.url, "GET", "/api/v1/events").start().await;
    first.event().await.expect("a place");
    drop(first);
    let mut status = 0;
    for _ in 0..1000 {
        let again = ask(&server.url, "GET", "/api/v1/events?max_wait_seconds=1");
        status = again.start().await.status.as_u16();
        if status == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(
        status, 200,
        "the place of a client that left was not given back"
    );
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
    let contract = repertoire::contract::load().expect("a contract");
    assert_eq!(document.json(), contract.openapi());
    let tag = document.header("etag").to_owned();
    let again = ask(&server.url, "GET", "/openapi.json").header("if-none-match", &tag);
    let again = again.send().await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
}

/// A tool called over MCP, in the era without sessions.
async fn call_tool(server: &Server, name: &str, arguments: Value) -> Value {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": name, "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let request = ask(&server.url, "POST", "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name)
        .json(&body);
    let answer = request.send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn what_is_found_in_the_index_says_in_which_state_of_it_on_every_face() {
    let server = Server::start();
    let search = "/api/v1/search?query=database";
    let rest = async || {
        let answer = get(&server.url, search).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.header("index-version").to_owned()
    };
    let mcp = async |name: &str, arguments: Value| {
        let mut answer = call_tool(&server, name, arguments).await;
        let mut metadata = answer["result"]["structuredContent"]["metadata"].take();
        assert!(metadata["execution_time_ms"].take().is_number(), "{answer}");
        assert!(metadata["request_id"].take().is_string(), "{answer}");
        metadata
    };
    let grpc = async || {
        let request = v1::SearchRequest {
            query: "database".to_owned(),
            ..Default::default()
        };
        let hits = server.lookup().await.search(request).await.expect("hits");
        let version = hits.metadata().get("index-version").expect("a version");
        version.to_str().expect("text").to_owned()
    };
    // The index takes in one event after the other: what is last is found when all is.
    publish(&server, "github/acme/last-of-all", "1.0.0").await;
    let last = "/api/v1/search?query=last-of-all";
    while get(&server.url, last).await.json()["total"] == 0 {}
    let before = rest().await;
    assert!(!before.is_empty());
    assert_eq!(grpc().await, before);
    let told = |cached: bool, version: Option<&str>| {
        let mut all = json!({"execution_time_ms": null, "cached": cached, "request_id": null});
        if let Some(version) = version {
            all["index_version"] = version.into();
        }
        all
    };
    let found = mcp("search", json!({"query": "database"})).await;
    assert_eq!(found, told(false, Some(&before)));
    // What was not found in the index says nothing of it.
    let shown = mcp("get_skill", json!({"skill_id": "xlsx"})).await;
    assert_eq!(shown, told(false, None));
    publish(&server, "github/acme/refunds", "1.0.0").await;
    let mut after = rest().await;
    while after == before {
        after = rest().await;
    }
    let found = mcp("search", json!({"query": "database"})).await;
    assert_eq!(found, told(false, Some(&after)));
}

#[tokio::test]
async fn an_answer_of_mcp_is_the_same_by_whichever_way_it_was_written() {
    let server = Server::start();
    for (name, arguments, fails) in [
        ("get_skill", json!({"skill_id": "xlsx"}), false),
        ("get_skill", json!({"skill_id": "nope"}), true),
        ("get_skill", json!({"uri": "skill://xlsx"}), false),
        ("list_skills", json!({"page_size": 3}), false),
        ("list_skills", json!({"page_size": "three"}), true),
        ("skill", json!({"command": "xlsx"}), false),
        (
            "read_file",
            json!({"skill_id": "xlsx", "path": "SKILL.md"}),
            false,
        ),
    ] {
        let body = |meta: Value| {
            let mut all = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            all.as_object_mut()
                .expect("an object")
                .extend(meta.as_object().cloned().expect("one"));
            json!({
                "jsonrpc": "2.0", "id": "\"structuredContent\":", "method": "tools/call",
                "params": {"name": name, "arguments": arguments, "_meta": all},
            })
        };
        let send = async |meta: Value, headers: &[(&str, &str)]| {
            let mut request = ask(&server.url, "POST", "/mcp")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", name)
                .header("x-request-id", "same");
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let answer = request.json(&body(meta)).send().await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.header("content-type"), "application/json");
            let mut result = answer.json()["result"].take();
            assert_eq!(answer.json()["id"], "\"structuredContent\":");
            // The text of an envelope is the envelope; how long it took is not the same.
            let structured = &mut result["structuredContent"];
            if structured.get("metadata").is_some() {
                let text = structured.to_string();
                structured["metadata"]["execution_time_ms"].take();
                assert_eq!(result["content"][0]["text"], text);
                result["content"][0]["text"].take();
            }
            result
        };
        // Written as a text, through the layers of browsers, and as a tree.
        let text = send(json!({}), &[]).await;
        assert_eq!(text["isError"], fails, "{text}");
        assert_eq!(text["resultType"], "complete");
        let page = send(json!({}), &[("origin", "http://localhost:1")]).await;
        let tree = send(json!({"progressToken": 1}), &[]).await;
        assert_eq!((&text, &text), (&page, &tree));
    }
}

#[tokio::test]
async fn calls_are_counted_alike_whatever_face_they_came_through() {
    let server = Server::with(&[], "limits:\n  streams: 1\n");
    let id = |id: &str| v1::GetSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    };
    let mut lookup = server.lookup().await;
    lookup.get_skill(id("xlsx")).await.expect("a skill");
    lookup.get_skill(id("nope")).await.expect_err("a refusal");
    get(&server.url, "/api/v1/skills/xlsx").await;
    get(&server.url, "/api/v1/skills/nope").await;
    // Refused before it is a call.
    get(&server.url, "/api/v1/skills/xlsx?x=1").await;
    let told = call_tool(&server, "get_skill", json!({"skill_id": "xlsx"})).await;
    assert_eq!(
        told["result"]["structuredContent"]["success"], true,
        "{told}"
    );
    let mut watching = ask(&server.url, "GET", "/api/v1/events").start().await;
    watching.event().await.expect("a first answer");
    let busy = get(&server.url, "/api/v1/events").await;
    assert_eq!(busy.refusal().1, "OVERLOADED");

    let page = get(&server.url, "/metrics").await;
    assert!(
        page.header("content-type")
            .starts_with("application/openmetrics-text")
    );
    let text = page.text();
    let lookup =
        "grpc_service=\"repertoire.v1.Lookup\",grpc_method=\"GetSkill\",grpc_type=\"unary\"";
    let watch =
        "grpc_service=\"repertoire.v1.Registry\",grpc_method=\"Watch\",grpc_type=\"stream\"";
    for line in [
        format!("grpc_server_handled_total{{{lookup},grpc_code=\"OK\"}} 3"),
        format!("grpc_server_handled_total{{{lookup},grpc_code=\"NotFound\"}} 2"),
        format!("grpc_server_handling_seconds_count{{{lookup}}} 5"),
        format!("grpc_server_handled_total{{{watch},grpc_code=\"ResourceExhausted\"}} 1"),
        format!("repertoire_refused_total{{{watch}}} 1"),
        "repertoire_streams_in_work 1".to_owned(),
        "repertoire_calls_in_work 0".to_owned(),
        "repertoire_skills 6".to_owned(),
        "repertoire_workers 0".to_owned(),
        "repertoire_worker_calls_waiting 0".to_owned(),
        "repertoire_worker_calls_in_work 0".to_owned(),
        "repertoire_worker_calls_abandoned 0".to_owned(),
        "repertoire_worker_messages_dropped_total 0".to_owned(),
        format!(
            "repertoire_build_info{{version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        ),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    let posted = ask(&server.url, "POST", "/metrics").send().await;
    assert_eq!(posted.refusal(), (405, "METHOD_NOT_ALLOWED".to_owned()));
}

#[tokio::test]
async fn the_process_its_disk_and_the_answers_are_measured() {
    let server = Server::start();
    assert_eq!(get(&server.url, "/api/v1/nowhere").await.status, 404);
    let text = get(&server.url, "/metrics").await.text();
    let value = |name: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = value.unwrap_or_else(|| panic!("{name}\n{text}"));
        value.parse::<f64>().expect("a number")
    };
    assert!((value("repertoire_http_responses_total{class=\"4xx\"}") - 1.0).abs() < 0.1);
    assert!(value("repertoire_tool_sessions") < 0.1);
    for name in [
        "repertoire_store_bytes",
        "repertoire_disk_free_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_threads",
        "process_open_fds",
        "process_max_fds",
    ] {
        assert!(value(name) > 0.0, "{name}");
    }
    // And those of calls, of sources and of TLS, of which there was none.
    let families = 3
        + 4
        + 3
        + text
            .lines()
            .filter(|line| line.starts_with("# TYPE "))
            .count();
    let page = include_str!("../docs/operations.md");
    let said = format!("The {families} families");
    assert!(page.contains(&said), "the page does not say: {said}");
}

#[tokio::test]
async fn the_access_log_has_routes_and_codes_and_nothing_that_a_caller_sent() {
    let all = [
        "--log",
        "warn,repertoire::access=info",
        "--access-log",
        "all",
    ];
    let server = Server::with(&all, "");
    let url = &server.url;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked = ask(
        url,
        "GET",
        "/api/v1/skills/xlsx?include_security=true&x=s3cret",
    );
    asked.header("traceparent", trace).send().await;
    get(url, "/api/v1/skills/xlsx").await;
    get(url, "/s3cret/s3cret").await;
    get(url, "/.well-known/s3cret").await;
    let told = call_tool(&server, "get_skill", json!({"skill_id": "s3cret"})).await;
    assert!(told["result"].is_object(), "{told}");
    let mut lookup = server.lookup().await;
    let skill = |id: &str| v1::GetSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    };
    lookup.get_skill(skill("xlsx")).await.expect("a skill");
    lookup.get_skill(skill("s3cret")).await.expect_err("none");
    let mut watching = ask(url, "GET", "/api/v1/events").start().await;
    watching.event().await.expect("a first answer");
    drop(watching);

    let expected = [
        "face=http method=GET route=/api/v1/skills/{skill_id} status=400 ",
        "face=http method=GET route=/api/v1/skills/{skill_id} status=200 ",
        "face=http method=GET route=- status=404 ",
        "face=http method=GET route=- status=404 ",
        "face=mcp method=POST route=/mcp status=200 ",
        "face=grpc method=POST route=/repertoire.v1.Lookup/GetSkill status=200 code=OK ",
        "face=grpc method=POST route=/repertoire.v1.Lookup/GetSkill status=200 code=NotFound ",
        "face=http method=GET route=/api/v1/events status=200 ",
    ];
    let lines = || {
        let log = server.log();
        let calls = log.lines().filter_map(|line| line.split_once("call "));
        calls.map(|(_, call)| call.to_owned()).collect::<Vec<_>>()
    };
    while lines().len() < expected.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let lines = lines();
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
        assert!(
            line.contains(" peer=127.0.0.1") && line.contains(" ms="),
            "{line}"
        );
    }
    assert!(
        lines[0].contains("trace=0af7651916cd43dd8448eb211c80319c"),
        "{lines:?}"
    );
    assert!(lines[7].ends_with(" left=true"), "{lines:?}");
    assert!(!server.log().contains("s3cret"), "{lines:?}");
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
