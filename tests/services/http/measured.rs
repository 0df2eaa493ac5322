//! What is counted, measured and logged of calls, whatever protocol they came through.

use std::time::Duration;

use contract::v1;
use serde_json::json;

use super::call_tool;
use crate::support::Server;
use crate::support::web::{ask, get};

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
    let page = include_str!("../../../docs/operations.md");
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
