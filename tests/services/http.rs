//! The HTTP face of a running server: REST, events, downloads, and who may ask.

mod measured;
mod pages;
mod refusals;
mod streams;

use base64::Engine as _;
use contract::v1;
use serde_json::{Value, json};

use crate::support::Server;
use crate::support::web::{Answer, ask, get};

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
    let back = "/api/v1/skills/local/global/refund-desk/versions/1/activate";
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

    let gone = ask(url, "DELETE", "/api/v1/skills/local/global/refund-desk")
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
    let contract = contract::load().expect("a contract");
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

/// A tool called over MCP, in the era without sessions.
async fn call_tool(server: &Server, name: &str, arguments: Value) -> Value {
    let request = ask(&server.url, "POST", "/mcp");
    let call = json!({"name": name, "arguments": arguments});
    let answer = request.mcp("tools/call", call).send().await;
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
    let told = |cached: bool, version: Option<&str>| {
        let mut all = json!({"execution_time_ms": null, "cached": cached, "request_id": null});
        if let Some(version) = version {
            all["index_version"] = version.into();
        }
        all
    };
    // The index follows a start and each write a little later. Where it is the same before and
    // after, it was the same between.
    let on_every_face = async || loop {
        let version = rest().await;
        let found = (
            grpc().await,
            mcp("search", json!({"query": "database"})).await,
        );
        if rest().await == version {
            assert_eq!(found, (version.clone(), told(false, Some(&version))));
            break version;
        }
    };
    let before = on_every_face().await;
    assert!(!before.is_empty());
    // What was not found in the index says nothing of it.
    let shown = mcp("get_skill", json!({"skill_id": "xlsx"})).await;
    assert_eq!(shown, told(false, None));
    publish(&server, "github/acme/refunds", "1.0.0").await;
    while on_every_face().await == before {}
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
