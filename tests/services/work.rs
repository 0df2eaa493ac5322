//! Work that takes long, beside callers who do not wait for it.

use std::time::Duration;

use contract::v1;
use contract::v1::attach_request::Message as Says;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Request, Status};

use crate::support::web::get;
use crate::support::{Server, file, reason, skill};

fn within<T>(timeout: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let timeout = timeout.parse().expect("a header");
    request.metadata_mut().insert("grpc-timeout", timeout);
    request
}

fn search() -> v1::SearchRequest {
    v1::SearchRequest {
        query: "spreadsheet with charts".to_owned(),
        ..Default::default()
    }
}

fn skill_md() -> v1::ReadFileRequest {
    v1::ReadFileRequest {
        skill_id: "xlsx".to_owned(),
        path: "SKILL.md".to_owned(),
        ..Default::default()
    }
}

/// A figure of a kind of work.
async fn figure(server: &Server, name: &str, kind: &str) -> u64 {
    let page = get(&server.url, "/metrics").await.text();
    let begin = format!("repertoire_work_{name}{{kind=\"{kind}\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&begin));
    let line = line.unwrap_or_else(|| panic!("no {begin} in\n{page}"));
    line.parse().expect("a number")
}

/// Waits until nothing of a kind runs or waits. A test that never ends has found something.
async fn idle(server: &Server, kind: &str) {
    while figure(server, "running", kind).await + figure(server, "waiting", kind).await > 0 {
        tokio::task::yield_now().await;
    }
}

/// Calls of the flood: more where the environment says so.
fn calls() -> usize {
    let asked = std::env::var("REPERTOIRE_TEST_CALLS").ok();
    asked.map_or(1_000, |calls| calls.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_flood_of_calls_that_nobody_waits_for_the_next_is_served() {
    let server = Server::start();
    let lookup = server.lookup().await;
    lookup.clone().search(search()).await.expect("an index");
    let answers: Vec<_> = stream::iter(0..calls())
        .map(|_| {
            let mut lookup = lookup.clone();
            async move { lookup.search(within("10m", search())).await }
        })
        .buffer_unordered(200)
        .collect()
        .await;
    for answer in &answers {
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        // Cancelled: the client did not wait for the server to say so. A connection that
        // leaves too many calls is ended (rapid reset), and those on it with it.
        let expected = [
            Code::Ok,
            Code::DeadlineExceeded,
            Code::ResourceExhausted,
            Code::Cancelled,
            Code::Unavailable,
        ];
        let cut = matches!(answer, Err(status) if status.message() == "transport error");
        assert!(cut || expected.contains(&code), "{answer:?}");
    }
    let mut lookup = server.lookup().await;
    lookup.search(search()).await.expect("an answer");
    lookup.read_file(skill_md()).await.expect("a file");
    idle(&server, "search").await;
    // The first search and the last are of nobody who left.
    let answered = 2 + answers.iter().filter(|answer| answer.is_ok()).count() as u64;
    let accounted = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let begun = figure(&server, "begun_total", "search").await;
            let finished = figure(&server, "finished_total", "search").await;
            let abandoned = figure(&server, "abandoned_total", "search").await;
            // Who left is counted when its task is dropped, which may come after its work.
            if finished >= answered && begun <= finished + abandoned {
                break;
            }
            println!(
                "{begun} begun, {finished} finished, {abandoned} abandoned, {answered} answered"
            );
        }
    });
    accounted
        .await
        .expect("what is begun has a caller that waits or left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_calls_waits_for_permits_and_is_answered() {
    let server = Server::with(&[], "limits:\n  calls: 2\n  wait_seconds: 60\n");
    let lookup = server.lookup().await;
    let answers = stream::iter(0..100)
        .map(|_| {
            let mut lookup = lookup.clone();
            async move { lookup.search(search()).await }
        })
        .buffer_unordered(100);
    let refused: Vec<Status> = answers
        .filter_map(|answer| async { answer.err() })
        .collect()
        .await;
    assert!(refused.is_empty(), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_cannot_wait_longer_than_the_operator_lets_it() {
    let server = Server::with(&[], "limits:\n  deadline_seconds: 1\n");
    let path = http::uri::PathAndQuery::from_static("/repertoire.v1.Lookup/GetSkill");
    let mut client = tonic::client::Grpc::new(server.channel().await);
    client.ready().await.expect("a connection");
    let codec = tonic_prost::ProstCodec::<v1::GetSkillRequest, v1::GetSkillResponse>::default();
    // Its message never comes.
    let silence = within("99999999H", stream::pending());
    let late = client.client_streaming(silence, path, codec).await;
    let late = late.expect_err("an end");
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
}

/// The status of a call by plain HTTP/2: other clients end a call without time themselves.
async fn status_of(server: &Server, timeout: &str) -> String {
    let address = server.url.trim_start_matches("http://");
    let socket = tokio::net::TcpStream::connect(address)
        .await
        .expect("a socket");
    let (mut client, connection) = h2::client::handshake(socket).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let request = http::Request::post(format!("{}/repertoire.v1.Lookup/ReadFile", server.url))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", timeout)
        .body(())
        .expect("a request");
    let (answer, mut body) = client.send_request(request, false).expect("a stream");
    // The message has five bytes before it, and is empty. A call without time may be
    // answered before it is sent, and then the stream takes nothing more.
    let _answered = body.send_data(bytes::Bytes::from_static(&[0; 5]), true);
    let answer = answer.await.expect("an answer");
    let status = answer
        .headers()
        .get("grpc-status")
        .expect("a status at once");
    let status = status.to_str().expect("a number").to_owned();
    connection.abort();
    status
}

#[tokio::test]
async fn a_caller_without_any_time_is_told_so() {
    let server = Server::start();
    for timeout in ["0n", "0S", "00000000H"] {
        let late = (Code::DeadlineExceeded as i32).to_string();
        assert_eq!(status_of(&server, timeout).await, late, "{timeout}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn diffs_that_take_longest_hold_up_nobody_and_no_stop() {
    let server = Server::start();
    let mut registry = server.registry().await;
    // Nothing takes a comparison longer than lines of few kinds in no order.
    let mut state = 7_u32;
    let mut noise = |files: usize| {
        let mut lines = || {
            let line = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 31 == 0 { "0\n" } else { "1\n" }
            };
            (0..10_000).map(line).collect::<String>()
        };
        let files = (0..files).map(|at| file(&format!("{at}.txt"), lines()));
        files.collect::<Vec<_>>()
    };
    for _ in 0..2 {
        let mut bomb = skill("a/b/bomb", "", "Do it.");
        bomb.files.extend(noise(4));
        registry.publish_skill(bomb).await.expect("a version");
    }
    let diff = || v1::DiffVersionsRequest {
        skill_id: "a/b/bomb".to_owned(),
        from_version: 1,
        to_version: 2,
        ..Default::default()
    };
    let bombs: Vec<_> = (0..8)
        .map(|_| {
            let mut registry = registry.clone();
            tokio::spawn(async move { registry.diff_versions(within("1S", diff())).await })
        })
        .collect();
    let mut lookup = server.lookup().await;
    lookup.read_file(skill_md()).await.expect("a file");
    lookup.search(search()).await.expect("an answer");
    let other = skill("a/b/other", "", "Do it.");
    registry.publish_skill(other).await.expect("a version");
    for bomb in bombs {
        if let Err(late) = bomb.await.expect("a task") {
            // The client keeps its own time as well, and calls that cancelled.
            let expected = [
                Code::Cancelled,
                Code::DeadlineExceeded,
                Code::ResourceExhausted,
            ];
            assert!(expected.contains(&late.code()), "{late:?}");
        }
    }
    let last = tokio::spawn(async move { registry.diff_versions(diff()).await });
    while figure(&server, "running", "diff").await == 0 && !last.is_finished() {
        tokio::task::yield_now().await;
    }
    let (code, _) = server.terminate();
    assert_eq!(code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_call_of_a_tool_has_the_operators_time() {
    let token = "0123456789abcdef0123456789abcdef";
    let server = Server::with(
        &[],
        &format!(
            "limits:\n  deadline_seconds: 1\ntools:\n  workers:\n    - {{name: w, token: {token}, skills: ['a/*']}}\n"
        ),
    );
    let tool = "tool_configs:\n  - name: sleep\n    description: Sleeps.\n    method: sleep\n";
    let mut registry = server.registry().await;
    let sleeper = skill("a/b/sleeper", tool, "Do it.");
    registry.publish_skill(sleeper).await.expect("a version");

    // A worker that takes calls and answers none.
    let (says, messages) = mpsc::unbounded_channel();
    let hello = Says::Hello(v1::Hello {
        name: "w".to_owned(),
        skills: vec![v1::ServedSkill {
            skill_id: "a/b/sleeper".to_owned(),
            methods: vec!["sleep".to_owned()],
        }],
        concurrency: 1,
    });
    says.send(v1::AttachRequest {
        message: Some(hello),
    })
    .expect("an open stream");
    let mut attach = Request::new(UnboundedReceiverStream::new(messages));
    let bearer = format!("Bearer {token}").parse().expect("a header");
    attach.metadata_mut().insert("authorization", bearer);
    let mut host = v1::tool_host_client::ToolHostClient::new(server.channel().await);
    let attached = host.attach(attach).await.expect("to be let in");
    let mut told = attached.into_inner();
    told.message().await.expect("a stream").expect("a welcome");

    let mut lookup = server.lookup().await;
    let load = v1::LoadSkillRequest {
        skill_id: "a/b/sleeper".to_owned(),
        ..Default::default()
    };
    let loaded = lookup
        .load_skill(load)
        .await
        .expect("a session")
        .into_inner();
    let call = v1::StreamToolCallRequest {
        session_id: loaded.session_id,
        name: "sleep".to_owned(),
        ..Default::default()
    };
    let ended = tokio::time::timeout(Duration::from_secs(25), async {
        let mut updates = lookup.stream_tool_call(call).await?.into_inner();
        while updates.message().await?.is_some() {}
        Ok::<_, Status>(())
    });
    let late = ended
        .await
        .expect("not the default of 30 seconds")
        .expect_err("an end");
    assert_eq!(reason(&late), "TIMEOUT", "{late:?}");
}
