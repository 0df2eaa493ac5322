//! Messages that do not come, or that nobody reads.

use std::time::{Duration, Instant};

use contract::v1;

use super::stalled::{Stage, Target, gauge, stall};
use super::{RELEASE, calls, released, stalled};
use crate::support::web::get;
use crate::support::{Server, file, skill};

/// Waits until something is so.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < RELEASE, "{what} never was");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn large(id: &str, mib: usize) -> v1::PublishSkillRequest {
    let bytes = (0..mib << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]);
    with_file(id, bytes.collect())
}

/// The same of noise, which an archive makes no smaller.
fn noisy(id: &str, mib: usize) -> v1::PublishSkillRequest {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = (0..mib << 17).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    with_file(id, words.collect())
}

fn with_file(id: &str, bytes: Vec<u8>) -> v1::PublishSkillRequest {
    let mut request = skill(id, "", "Large.");
    request.files.push(file("noise.bin", bytes));
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_whose_message_does_not_come_take_no_permit() {
    let server = Server::with(&[], "limits:\n  calls: 2\n");
    let target = Target::Rpc {
        path: "/repertoire.v1.Lookup/GetSkill".to_owned(),
        message: Default::default(),
    };
    let mut stalled = Vec::new();
    for stage in [Stage::Headers, Stage::HalfBody] {
        for _ in 0..10 {
            stalled.push(stall(&server.url, &target, stage).await);
        }
    }
    let mut lookup = server.lookup().await;
    for _ in 0..10 {
        calls(&mut lookup, &server.url).await;
    }
    assert_eq!(gauge(&server.url, "repertoire_calls_in_work").await, 0);
    // What is there of them is booked: 10 of which nothing is, 10 of 20,000 bytes.
    assert_eq!(
        gauge(&server.url, "repertoire_request_kib").await,
        10 + 10 * 20
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_wait_for_their_permits_and_never_have_more() {
    let server = Server::with(&[], "limits:\n  request_mib: 48\n  deadline_seconds: 120\n");
    let registry = server.registry().await;
    let publishes: Vec<_> = (0..8)
        .map(|at| {
            let mut registry = registry.clone();
            tokio::spawn(async move {
                registry
                    .publish_skill(large(&format!("a/b/x{at}"), 9))
                    .await
            })
        })
        .collect();
    let mut most = 0;
    while !publishes.iter().all(tokio::task::JoinHandle::is_finished) {
        most = most.max(gauge(&server.url, "repertoire_request_kib").await);
    }
    for publish in publishes {
        publish.await.expect("a task").expect("a version");
    }
    assert!(most > 0 && most <= 24 << 10, "{most} KiB of 24 MiB");
    released(&server.url, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn downloads_that_nobody_reads_stop_no_other_and_are_let_go() {
    let server = Server::with(&[], "limits:\n  read_seconds: 2\n");
    server
        .registry()
        .await
        .publish_skill(large("a/b/large", 2))
        .await
        .expect("a version");
    let request = v1::ExportSkillRequest {
        skill_id: "a/b/large".to_owned(),
        ..Default::default()
    };
    let target = Target::Rpc {
        path: "/repertoire.v1.Registry/ExportSkill".to_owned(),
        message: stalled::framed(&prost::Message::encode_to_vec(&request)),
    };
    let mut unread = Vec::new();
    for _ in 0..16 {
        unread.push(stall(&server.url, &target, Stage::Unread).await);
    }
    let export = get(&server.url, "/api/v1/skills/write_sql/export").await;
    assert_eq!(export.status, 200);
    let index = get(&server.url, "/.well-known/agent-skills/index.json").await;
    assert!(index.json()["skills"].is_array());
    released(&server.url, 0).await;
    drop(unread);
}

/// An rpc with its message.
fn rpc(path: &str, message: &impl prost::Message) -> Target {
    Target::Rpc {
        path: path.to_owned(),
        message: stalled::framed(&message.encode_to_vec()),
    }
}

/// A file by gRPC, gRPC-Web, REST and MCP, and an archive with it; with the kind of work
/// that reads it.
fn large_answers(id: &str) -> [(&'static str, Target); 5] {
    let file = v1::ReadFileRequest {
        skill_id: id.to_owned(),
        path: "noise.bin".to_owned(),
        ..Default::default()
    };
    let archive = v1::ExportSkillRequest {
        skill_id: id.to_owned(),
        ..Default::default()
    };
    let route = |verb: &str, path: &str, body: String| Target::Route {
        verb: verb.to_owned(),
        path: path.to_owned(),
        body,
        streams: false,
    };
    let read_file = "/repertoire.v1.Lookup/ReadFile";
    let web = stalled::framed(&prost::Message::encode_to_vec(&file)).to_vec();
    let web = String::from_utf8(web).expect("lengths below 128");
    let rest = format!("/api/v1/skills/{}/files/noise.bin", id.replace('/', "%2F"));
    let resource = serde_json::json!({"uri": format!("skill://{id}/noise.bin"), "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let resource = stalled::mcp("resources/read", &resource).to_string();
    [
        ("read", rpc(read_file, &file)),
        (
            "export",
            rpc("/repertoire.v1.Registry/ExportSkill", &archive),
        ),
        ("read", route("POST", read_file, web)),
        ("read", route("GET", &rest, String::new())),
        ("read", route("POST", "/mcp", resource)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_not_made_before_it_has_a_permit() {
    const MIB: usize = 4;
    const CALLS: u64 = 40;
    // What nobody can read is a warning, and served here.
    let config = "limits:\n  answer_mib: 32\n  deadline_seconds: 120\n  read_seconds: 120\n\
                  trust:\n  hold: failed\n";
    let id = "a/b/large";
    for (kind, target) in large_answers(id) {
        let server = Server::with(&[], config);
        let url = &server.url;
        let mut registry = server.registry().await;
        let published = registry.publish_skill(noisy(id, MIB)).await;
        published.expect("a version");
        let begun = format!("repertoire_work_begun_total{{kind=\"{kind}\"}}");
        let before = gauge(url, &begun).await;
        let busy = || async {
            gauge(url, "repertoire_calls_in_work").await
                + gauge(url, "repertoire_streams_in_work").await
        };
        let first = stall(url, &target, Stage::Unread).await;
        let streams = u64::from(kind == "export");
        let made = async || gauge(url, &begun).await > before && busy().await == streams;
        until(&format!("the first of {target:?}"), made).await;
        let held = gauge(url, "repertoire_answer_kib").await;
        // In base64 it is a third longer.
        assert!(
            (4 << 10..6 << 10).contains(&held),
            "{target:?} holds {held} KiB"
        );
        let mut unread = vec![first];
        for _ in 1..CALLS {
            unread.push(stall(url, &target, Stage::Unread).await);
        }
        let arrived = async || busy().await + gauge(url, &begun).await - before >= CALLS;
        until(&format!("the last of {target:?}"), arrived).await;
        // What waited for its turn before these has had it when they are answered.
        calls(&mut server.lookup().await, url).await;
        for path in ["files/SKILL.md", "export"] {
            let other = get(url, &format!("/api/v1/skills/write_sql/{path}")).await;
            assert_eq!(other.status, 200);
        }
        let made = gauge(url, &begun).await - before - 1;
        // MCP reads a file twice where it is no text.
        assert!(made <= 8, "{made} of {target:?} were made");
        let held = gauge(url, "repertoire_answer_kib").await;
        assert!(held <= 16 << 10, "{target:?} holds {held} KiB of 16 MiB");
        drop(unread);
        released(url, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_client_that_reads_no_answer_holds_no_skill() {
    let server = Server::start();
    let mut sender = stalled::connect_h2(&server.url, 0).await;
    let call = stalled::grpc("/repertoire.v1.Registry/PublishSkills");
    let (_answer, mut body) = sender.send_request(call, false).expect("a call");
    for at in 0..1000 {
        let item = v1::PublishSkillsRequest {
            skill: Some(skill(
                &format!("a/b/s{}", at % 10),
                "",
                &format!("Version {at}."),
            )),
        };
        let item = prost::Message::encode_to_vec(&item);
        body.send_data(stalled::framed(&item), false)
            .expect("an item");
    }
    let mut registry = server.registry().await;
    for at in 0..10 {
        let mut request = tonic::Request::new(skill(&format!("a/b/s{at}"), "", "By another."));
        request.set_timeout(Duration::from_secs(20));
        registry.publish_skill(request).await.expect("a version");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_stream_of_small_skills_is_not_taken_for_a_flood() {
    const ITEMS: usize = 12_000;
    const READ: usize = 600;
    let server = Server::start();
    let mut sender = stalled::connect_h2(&server.url, 1 << 20).await;
    let call = stalled::grpc("/repertoire.v1.Registry/PublishSkills");
    let (answer, mut body) = sender.send_request(call, false).expect("a call");
    // All of them are versions of one skill, so they are published one by one.
    for at in 0..ITEMS {
        let item = v1::PublishSkillsRequest {
            skill: Some(skill("a/b/c", "", &format!("{at}"))),
        };
        // In two frames, as some clients send it.
        let mut item = stalled::framed(&prost::Message::encode_to_vec(&item));
        let prefix = item.split_to(5);
        for frame in [prefix, item] {
            body.send_data(frame, false).expect("an item");
        }
    }
    let mut answers = answer.await.expect("an answer").into_body();
    let (mut bytes, mut read) = (bytes::BytesMut::new(), 0);
    while read < READ {
        let data = answers.data().await.expect("more answers");
        let data = data.expect("the connection is kept");
        answers
            .flow_control()
            .release_capacity(data.len())
            .expect("a window");
        bytes.extend_from_slice(&data);
        while let Some(length) = bytes.get(1..5) {
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if bytes.len() < length + 5 {
                break;
            }
            let message = bytes.split_to(length + 5);
            let message = <v1::PublishSkillsResponse as prost::Message>::decode(&message[5..])
                .expect("an answer");
            assert_eq!(message.index, read as u64);
            read += 1;
        }
    }
}
