//! Peers that stall, at every stage of every rpc and route: others go on, and what the
//! peers held comes back when the limits have passed.
//!
//! `REPERTOIRE_STALLED_PEERS=2000 cargo test --release --test services stalls -- --nocapture` is
//! the whole of it, with the rate and the times of the others.

mod messages;
#[path = "../support/stalled.rs"]
mod stalled;

use std::time::{Duration, Instant};

use contract::v1;
use contract::v1::lookup_client::LookupClient;
use stalled::{Stage, Stalled, Target, gauge, memory_kib, stall, targets};
use tonic::transport::Channel;

use crate::support::Server;
use crate::support::web::{ask, get};

/// Short times, so that a test sees them pass.
const CONFIG: &str = "limits:
  header_seconds: 1
  body_seconds: 1
  read_seconds: 1
  idle_seconds: 1
  deadline_seconds: 10
";
/// In which everything that stalled peers hold must have come back; much more than the
/// times above, for machines that are busy.
const RELEASE: Duration = Duration::from_secs(60);

fn peers() -> Option<usize> {
    let peers = std::env::var("REPERTOIRE_STALLED_PEERS").ok()?;
    Some(peers.parse().expect("a number of peers"))
}

/// A call of each face, by somebody who does not stall.
async fn calls(lookup: &mut LookupClient<Channel>, url: &str) {
    let request = v1::GetSkillRequest {
        skill_id: "write_sql".to_owned(),
        ..Default::default()
    };
    lookup.get_skill(request).await.expect("a call by gRPC");
    let rest = get(url, "/api/v1/skills/write_sql").await;
    assert_eq!(rest.status, 200, "{}", rest.text());
    let mcp = ask(url, "POST", "/mcp/agent").mcp("tools/list", serde_json::json!({}));
    let mcp = mcp.send().await;
    assert_eq!(mcp.status, 200, "{}", mcp.text());
}

/// The rate of calls in a second, and the time in which 99 of 100 were answered.
async fn pace(lookup: &mut LookupClient<Channel>, url: &str) -> (f64, Duration) {
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < Duration::from_secs(5) {
        let call = Instant::now();
        calls(lookup, url).await;
        times.push(call.elapsed());
    }
    times.sort();
    let p99 = times[times.len() * 99 / 100];
    #[expect(clippy::cast_precision_loss, reason = "a rate to be read")]
    let rate = times.len() as f64 / started.elapsed().as_secs_f64();
    (rate, p99)
}

/// Waits until the server holds no more than so many streams, and nothing else.
async fn released(url: &str, streams: u64) {
    let started = Instant::now();
    loop {
        let mut held = Vec::new();
        for (name, most) in [
            ("repertoire_calls_in_work", 0),
            ("repertoire_streams_in_work", streams),
            ("repertoire_request_kib", 0),
            ("repertoire_answer_kib", 0),
        ] {
            let value = gauge(url, name).await;
            if value > most {
                held.push(format!("{name} {value}"));
            }
        }
        if held.is_empty() {
            return;
        }
        assert!(started.elapsed() < RELEASE, "still held: {held:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn stall_all(url: &str, targets: &[Target], stage: Stage, peers: usize) -> Vec<Stalled> {
    let mut stalled = Vec::new();
    for target in targets.iter().cycle().take(peers.max(targets.len())) {
        stalled.push(stall(url, target, stage).await);
    }
    stalled
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_that_stall_take_nothing_from_others_and_give_back_what_they_held() {
    let server = Server::with(&[], CONFIG);
    let url = &server.url;
    let mut lookup = server.lookup().await;
    let targets = targets(url).await;
    calls(&mut lookup, url).await;
    let peers = peers();
    let usual = match peers {
        Some(_) => Some(pace(&mut lookup, url).await),
        None => None,
    };
    let before = memory_kib(server.pid());
    for stage in Stage::ALL {
        let stalled = stall_all(url, &targets, stage, peers.unwrap_or(100)).await;
        match usual {
            None => {
                for _ in 0..10 {
                    calls(&mut lookup, url).await;
                }
            }
            Some((rate, p99)) => {
                let (now, slowest) = pace(&mut lookup, url).await;
                println!(
                    "{stage:?} × {}: {now:.0}/s ({:.0} %), p99 {slowest:?} ({:.1} ×), {} MiB",
                    stalled.len(),
                    now / rate * 100.0,
                    slowest.as_secs_f64() / p99.as_secs_f64(),
                    memory_kib(server.pid()) >> 10
                );
            }
        }
        // Events go to whoever is connected: that they are not read shows when there
        // are so many that a socket holds no more.
        let watched = |target: &&Target| matches!(target, Target::Route { streams: true, .. });
        let watching = targets.iter().cycle().take(stalled.len()).filter(watched);
        let watching = match stage {
            Stage::Unread => watching.count() as u64,
            _ => 0,
        };
        released(url, watching).await;
        drop(stalled);
        released(url, 0).await;
    }
    let after = memory_kib(server.pid());
    println!("memory: {} MiB, then {} MiB", before >> 10, after >> 10);
    assert!(
        after <= before * 6 / 5 + (48 << 10),
        "memory: {before} KiB, then {after} KiB"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stops_in_time_whoever_stalls() {
    let server = Server::start();
    let url = server.url.clone();
    let targets = targets(&url).await;
    let mut stalled = Vec::new();
    for stage in Stage::ALL {
        stalled.extend(stall_all(&url, &targets, stage, peers().unwrap_or(1) / 6).await);
    }
    let (code, time) = tokio::task::spawn_blocking(|| server.terminate())
        .await
        .expect("an end");
    println!("{} peers stalled: stopped in {time:?}", stalled.len());
    assert_eq!(code, Some(0));
    assert!(time < Duration::from_secs(5), "it took {time:?}");
}

#[tokio::test]
async fn a_silent_connection_is_closed_and_so_is_one_that_never_ends_its_preface() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = Server::with(&[], CONFIG);
    for said in ["", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nho"] {
        let address = server.url.trim_start_matches("http://");
        let mut silent = tokio::net::TcpStream::connect(address)
            .await
            .expect("a connection");
        silent.write_all(said.as_bytes()).await.expect("bytes");
        let mut said_to_it = Vec::new();
        let closed = silent.read_to_end(&mut said_to_it);
        let closed = tokio::time::timeout(RELEASE, closed).await;
        assert!(closed.is_ok(), "{said:?} keeps a connection for ever");
    }
}

#[tokio::test]
async fn an_address_has_its_share_of_streams_and_workers_have_a_reserve() {
    use contract::v1::tool_host_client::ToolHostClient;
    let config = "limits:\n  streams: 4\ntools:\n  workers:\n  \
        - {name: w, token: a-token-of-a-worker-that-is-long-enough, skills: [a/*]}\n";
    let server = Server::with(&[], config);
    let mut watching = Vec::new();
    let mut registry = server.registry().await;
    for _ in 0..2 {
        let watch = registry.watch(v1::WatchRequest::default()).await;
        watching.push(watch.expect("its share").into_inner());
    }
    let refused = registry
        .watch(v1::WatchRequest::default())
        .await
        .expect_err("more than its share");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    assert!(refused.message().contains("This caller"), "{refused:?}");

    // Another address takes what is left; a worker still attaches.
    let mut sender = stalled::connect_h2(&server.url, 65_535).await;
    let mut others = Vec::new();
    for _ in 0..2 {
        let call = stalled::grpc("/repertoire.v1.Registry/Watch");
        let (answer, mut body) = sender.send_request(call, false).expect("a call");
        body.send_data(stalled::framed(&[]), true)
            .expect("a message");
        let mut answer = answer.await.expect("an answer").into_body();
        answer.data().await.expect("a first answer").expect("data");
        others.push(answer);
    }
    assert_eq!(gauge(&server.url, "repertoire_streams_in_work").await, 4);
    let hello = v1::AttachRequest {
        message: Some(v1::attach_request::Message::Hello(v1::Hello {
            name: "w".to_owned(),
            concurrency: 1,
            skills: vec![v1::ServedSkill {
                skill_id: "a/b/c".to_owned(),
                methods: vec!["m".to_owned()],
            }],
        })),
    };
    let mut request = tonic::Request::new(tokio_stream::StreamExt::chain(
        tokio_stream::once(hello),
        tokio_stream::pending(),
    ));
    request.metadata_mut().insert(
        "authorization",
        "Bearer a-token-of-a-worker-that-is-long-enough"
            .parse()
            .expect("a header"),
    );
    let mut host = ToolHostClient::new(server.channel().await);
    let told = host
        .attach(request)
        .await
        .expect("a worker")
        .into_inner()
        .message()
        .await;
    assert!(told.expect("a stream").is_some(), "it is welcome");
    drop((watching, others));
}

async fn initialize(url: &str) -> (u16, String) {
    let params = serde_json::json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    });
    let answer = ask(url, "POST", "/mcp")
        .header("accept", "application/json, text/event-stream")
        .json(&stalled::mcp("initialize", &params))
        .send()
        .await;
    (
        answer.status.as_u16(),
        answer.header("mcp-session-id").to_owned(),
    )
}

async fn ping(url: &str, session: &str) -> u16 {
    let request = ask(url, "POST", "/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", session)
        .json(&stalled::mcp("ping", &serde_json::json!({})));
    request.send().await.status.as_u16()
}

#[tokio::test]
async fn a_new_mcp_session_takes_the_place_of_the_one_idle_for_longest() {
    let server = Server::with(&[], "limits:\n  sessions: 4\n");
    let url = &server.url;
    let (_, first) = initialize(url).await;
    let (_, second) = initialize(url).await;
    assert_eq!(ping(url, &first).await, 200);
    let (status, third) = initialize(url).await;
    assert_eq!(status, 200);
    let known = [
        ping(url, &first).await,
        ping(url, &second).await,
        ping(url, &third).await,
    ];
    assert_eq!(known, [200, 404, 200]);
    assert_eq!(gauge(url, "repertoire_mcp_sessions").await, 2);
}

#[tokio::test]
async fn a_subscription_keeps_little_and_is_one_of_the_streams() {
    let server = Server::with(&[], "limits:\n  streams: 2\n");
    let listen = |uris: Vec<String>| {
        let params = serde_json::json!({"notifications": {"resourceSubscriptions": uris}});
        ask(&server.url, "POST", "/mcp").mcp("subscriptions/listen", params)
    };
    let refused = listen(vec!["skill://x".repeat(1_000_000)]).send().await;
    assert_eq!(refused.refusal(), (413, "BODY_TOO_LARGE".to_owned()));
    let long = format!("skill://{}", "x".repeat(1100));
    let short = "skill://write_sql".to_owned();
    let mut listening = listen(vec![long, short.clone()]).start().await;
    assert_eq!(listening.status, 200);
    let told = listening.event().await.expect("an acknowledgement");
    let accepted = told.data["params"]["notifications"]["resourceSubscriptions"].clone();
    assert_eq!(accepted, serde_json::json!([short]), "{}", told.data);
    assert_eq!(gauge(&server.url, "repertoire_streams_in_work").await, 1);
    let full = listen(vec![short]).send().await;
    assert_eq!(full.refusal(), (429, "OVERLOADED".to_owned()));
}
