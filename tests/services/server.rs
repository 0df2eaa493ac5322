//! The server under callers that are many, late, or hostile.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use contract::v1;
use contract::v1::lookup_client::LookupClient;
use tempfile::TempDir;
use tonic::{Code, Request};
use tonic_types::StatusExt as _;

use crate::support::{self, Server, file, reason, skill};

fn get(id: &str) -> v1::GetSkillRequest {
    v1::GetSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_stream_without_a_permit_is_refused_at_once_and_told_when_to_come_back() {
    let server = Server::with(&[], "limits:\n  streams: 1\n");
    let mut registry = server.registry().await;
    let mut first = registry
        .watch(v1::WatchRequest::default())
        .await
        .expect("a permit")
        .into_inner();
    first
        .message()
        .await
        .expect("a stream")
        .expect("a first answer");
    let refused = registry
        .watch(v1::WatchRequest::default())
        .await
        .expect_err("no permit");
    assert_eq!(
        (refused.code(), reason(&refused).as_str()),
        (Code::ResourceExhausted, "OVERLOADED")
    );
    assert!(refused.get_error_details().retry_info().is_some());
    server
        .lookup()
        .await
        .get_skill(get("write_sql"))
        .await
        .expect("calls have permits of their own");
    drop(first);
    // The permit is free once the server has seen that the caller is gone.
    let mut free = false;
    for _ in 0..1000 {
        free = registry.watch(v1::WatchRequest::default()).await.is_ok();
        if free {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(free, "the permit of an ended stream was not given back");
}

#[tokio::test]
async fn a_stream_ends_when_the_caller_said_it_should() {
    let server = Server::start();
    let mut registry = server.registry().await;
    let mut request = Request::new(v1::WatchRequest::default());
    request
        .metadata_mut()
        .insert("grpc-timeout", "200m".parse().expect("a header"));
    let mut events = registry
        .watch(request)
        .await
        .expect("a stream")
        .into_inner();
    events
        .message()
        .await
        .expect("a stream")
        .expect("a first answer");
    let ended = events.message().await.expect_err("an end");
    assert_eq!(
        (ended.code(), reason(&ended).as_str()),
        (Code::DeadlineExceeded, "TIMEOUT")
    );
}

#[tokio::test]
async fn a_timeout_that_is_none_is_refused() {
    let server = Server::start();
    let mut lookup = server.lookup().await;
    for wrong in ["soon", "-1S", "123456789m"] {
        let mut request = Request::new(get("write_sql"));
        request
            .metadata_mut()
            .insert("grpc-timeout", wrong.parse().expect("a header"));
        let refused = lookup.get_skill(request).await.expect_err("a refusal");
        assert_eq!(
            reason(&refused),
            "INVALID_PARAMETER",
            "{wrong}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn numbers_out_of_range_are_refused_with_the_field() {
    let server = Server::start();
    let mut lookup = server.lookup().await;
    for size in [-1, i32::MIN, 1001, i32::MAX] {
        let request = v1::ListSkillsRequest {
            page_size: size,
            ..Default::default()
        };
        let refused = lookup.list_skills(request).await.expect_err("a refusal");
        let details = refused.get_error_details();
        let field = &details.bad_request().expect("fields").field_violations[0].field;
        assert_eq!(
            (reason(&refused).as_str(), field.as_str()),
            ("INVALID_PARAMETER", "page_size")
        );
    }
    let unknown = v1::ListSkillsRequest {
        location: 99,
        ..Default::default()
    };
    let refused = lookup.list_skills(unknown).await.expect_err("a refusal");
    assert_eq!(
        refused.message(),
        "location: must be a value that the enum names"
    );
    let both = v1::GetSkillRequest {
        version_number: 1,
        semantic_version: "2.0.0".to_owned(),
        ..get("write_sql")
    };
    assert_eq!(
        reason(&lookup.get_skill(both).await.expect_err("a refusal")),
        "INVALID_PARAMETER"
    );
}

#[tokio::test]
async fn every_length_has_a_limit_and_the_limit_itself_is_allowed() {
    let server = Server::start();
    let mut registry = server.registry().await;
    let long = |chars: usize| v1::PublishSkillRequest {
        change_summary: "é".repeat(chars),
        ..skill("a/b/c", "", "x")
    };
    registry.publish_skill(long(4096)).await.expect("the limit");
    let refused = registry
        .publish_skill(long(4097))
        .await
        .expect_err("a refusal");
    assert_eq!(
        refused.message(),
        "change_summary: must have at most 4096 characters, has 4097"
    );

    let small = |n: usize| file(&format!("f{n}.md"), b"x".to_vec());
    let mut full = skill("a/b/full", "", "x");
    full.files.extend((0..2047).map(small));
    registry
        .publish_skill(full.clone())
        .await
        .expect("2,048 files");
    full.files.push(small(2047));
    let refused = registry.publish_skill(full).await.expect_err("a refusal");
    assert_eq!(
        refused.message(),
        "files: must have at most 2048 items, has 2049"
    );

    let mut heavy = skill("a/b/heavy", "", "x");
    let text = heavy.files[0].content.len();
    heavy.files.push(file("a.bin", vec![7; (16 << 20) - text]));
    registry.publish_skill(heavy.clone()).await.expect("16 MiB");
    heavy.files.push(file("b.bin", vec![7]));
    let refused = registry.publish_skill(heavy).await.expect_err("a refusal");
    assert_eq!(reason(&refused), "SKILL_INVALID");
    assert!(
        refused
            .get_error_details()
            .bad_request()
            .expect("problems")
            .field_violations[0]
            .description
            .starts_with("skill-too-large")
    );
}

#[tokio::test]
async fn paths_that_leave_the_skill_are_refused_before_anything_is_stored() {
    let server = Server::start();
    let mut registry = server.registry().await;
    for path in [
        "../x",
        "/etc/passwd",
        "a/../../b",
        "C:\\x",
        ".git/config",
        "a\u{0}b",
        "SKILL.md",
    ] {
        let mut request = skill("a/b/c", "", "x");
        request.files.push(file(path, b"x".to_vec()));
        let refused = registry
            .publish_skill(request)
            .await
            .expect_err("a refusal");
        let details = refused.get_error_details();
        assert_eq!(
            details.bad_request().expect("fields").field_violations[0].field,
            "files[1].path",
            "{path:?}"
        );
    }
    let gone = server
        .lookup()
        .await
        .get_skill(get("a/b/c"))
        .await
        .expect_err("nothing");
    assert_eq!(reason(&gone), "SKILL_NOT_FOUND");
}

#[tokio::test]
async fn what_is_no_rpc_is_told_so_in_the_callers_language() {
    let server = Server::start();
    let path = http::uri::PathAndQuery::from_static("/repertoire.v1.Lookup/GetSkills");
    let mut client = tonic::client::Grpc::new(server.channel().await);
    client.ready().await.expect("a connection");
    let codec = tonic_prost::ProstCodec::<v1::GetSkillRequest, v1::GetSkillResponse>::default();
    let refused = client
        .unary(Request::new(get("x")), path, codec)
        .await
        .expect_err("no such rpc");
    assert_eq!(refused.code(), Code::Unimplemented);
}

#[tokio::test]
async fn headers_beyond_their_bound_are_refused_and_the_server_lives() {
    let server = Server::start();
    let mut lookup = server.lookup().await;
    let mut request = Request::new(get("write_sql"));
    for n in 0..40 {
        let key: tonic::metadata::MetadataKey<_> = format!("x-flood-{n}").parse().expect("a key");
        request
            .metadata_mut()
            .insert(key, "x".repeat(1000).parse().expect("a value"));
    }
    lookup
        .get_skill(request)
        .await
        .expect_err("too many headers");
    LookupClient::new(server.channel().await)
        .get_skill(get("write_sql"))
        .await
        .expect("an answer");
}

#[tokio::test]
async fn a_caller_that_leaves_at_any_moment_leaves_a_whole_version_or_none() {
    let server = Server::start();
    let channel = server.channel().await;
    for n in 0..60_u64 {
        let mut registry = v1::registry_client::RegistryClient::new(channel.clone());
        let publish =
            registry.publish_skill(skill(&format!("a/b/s{n}"), "", &"body ".repeat(2000)));
        let _left = tokio::time::timeout(Duration::from_micros(n * 60), publish).await;
    }
    let (mut lookup, mut registry) = (server.lookup().await, server.registry().await);
    for n in 0..60 {
        let id = format!("a/b/s{n}");
        if let Err(status) = lookup.get_skill(get(&id)).await {
            assert_eq!(reason(&status), "SKILL_NOT_FOUND");
        } else {
            let read = v1::ReadFileRequest {
                skill_id: id.clone(),
                path: "SKILL.md".to_owned(),
                ..Default::default()
            };
            lookup.read_file(read).await.expect("its file");
            let versions = v1::ListVersionsRequest {
                skill_id: id,
                ..Default::default()
            };
            assert_eq!(
                registry
                    .list_versions(versions)
                    .await
                    .expect("its versions")
                    .into_inner()
                    .versions
                    .len(),
                1
            );
        }
    }
}

#[test]
fn a_wrong_config_file_stops_the_start_with_its_line() {
    let directory = tempfile::TempDir::new().expect("a folder");
    let config = directory.path().join("r.yaml");
    std::fs::write(&config, "limits:\n  cals: 3\n").expect("a file");
    let config = config.display().to_string();
    let output = support::command(&["serve", "--config", &config]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(&format!("{config}:2:")) && text.contains("cals"),
        "{text}"
    );
}

/// All that a server logs, which is asked to stop at the line with these words.
fn logged(args: &[&str], stop_at: &str) -> Vec<String> {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data").display().to_string();
    let mut server = std::process::Command::new(support::BINARY)
        .args(["serve", "--listen", "127.0.0.1:0", "--data", &data])
        .args(args)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary");
    let log = BufReader::new(server.stderr.take().expect("stderr")).lines();
    let mut lines = Vec::new();
    for line in log.map_while(Result::ok) {
        if line.contains(stop_at) {
            let pid = server.id().to_string();
            let asked = std::process::Command::new("kill")
                .args(["-TERM", &pid])
                .status();
            assert!(asked.expect("kill").success());
        }
        lines.push(line);
    }
    assert_eq!(server.wait().expect("an end").code(), Some(0));
    lines
}

#[test]
fn a_log_of_everything_leaves_out_what_the_engine_says_when_its_threads_end() {
    let lines = logged(&["--log", "trace"], "serving data=");
    let is_engine = |line: &&String| line.contains(" sled::") || line.contains(" crossbeam_");
    let engine: Vec<_> = lines.iter().filter(is_engine).collect();
    assert_eq!(engine, Vec::<&String>::new());
    let all = |line: &String| line.contains("TRACE") || line.contains("DEBUG");
    assert!(lines.iter().any(all), "the log was not of everything");
}

#[test]
fn a_log_in_json_is_json_from_its_first_line() {
    let lines = logged(&["--log-format", "json"], "listening on");
    let messages: Vec<String> = lines
        .iter()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).expect(line);
            let message = record["fields"]["message"].as_str();
            message.expect("a message").to_owned()
        })
        .collect();
    let first = messages.first().expect("a line");
    assert!(
        first.starts_with("listening on http://127.0.0.1:"),
        "{messages:?}"
    );
    assert_eq!(messages.last().map(String::as_str), Some("stopped"));
}
