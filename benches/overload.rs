//! Ten times as many callers as the server takes on.
//!
//! The server is a child process on processor 0, the callers are on processor 1. Each
//! calls again as soon as it is answered or refused, which is the worst that callers do.
//! Rounds of few callers, where the server is busy and refuses nobody, and rounds of many
//! take turns; what counts is the middle of the ratios of calls that were answered in time.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use contract::v1;
use futures_util::{StreamExt as _, stream};
use h2::client::SendRequest;
use prost::Message;
use support::corpus::Corpus;
use support::load::connect;
use support::process::{Server, pin};
use support::{Bar, against, figure, median, mib, quick, sample};

/// Callers in a round of few.
const FEW: usize = 64;
/// Callers of one connection.
const PER_CONNECTION: usize = 128;

/// A call and the time that its callers wait for it.
struct Call {
    name: &'static str,
    path: &'static str,
    messages: Vec<Bytes>,
    timeout: Option<&'static str>,
}

fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).expect("a small request"));
    message.encode(&mut bytes).expect("room");
    bytes.freeze()
}

impl Call {
    /// Calls once; the status.
    async fn send(&self, at: usize, authority: &str, connection: &SendRequest<Bytes>) -> u32 {
        let mut request = http::Request::post(format!("http://{authority}{}", self.path))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(timeout) = self.timeout {
            request = request.header("grpc-timeout", timeout);
        }
        let request = request.body(()).expect("a request");
        let mut ready = connection.clone().ready().await.expect("a connection");
        let (answer, mut sending) = ready.send_request(request, false).expect("a stream");
        let message = self.messages[at % self.messages.len()].clone();
        // A server that refuses at once may not read it.
        let _unread = sending.send_data(message, true);
        let answer = answer.await.expect("an answer");
        let code = |headers: &http::HeaderMap| {
            let code = headers.get("grpc-status")?.to_str().ok()?;
            code.parse().ok()
        };
        if let Some(code) = code(answer.headers()) {
            return code;
        }
        let mut body = answer.into_body();
        while let Some(data) = body.data().await {
            let size = data.expect("bytes").len();
            body.flow_control().release_capacity(size).expect("room");
        }
        let trailers = body.trailers().await.expect("trailers").expect("trailers");
        code(&trailers).expect("a status")
    }
}

/// Calls a second by their end: answered, refused, late.
struct Round {
    answered: f64,
    refused: f64,
    late: f64,
}

async fn round(server: &Server, call: &Arc<Call>, callers: usize, time: Duration) -> Round {
    let authority: Arc<str> = server.address.to_string().into();
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for first in (0..callers).step_by(PER_CONNECTION) {
        let connection = connect(server.address).await;
        for at in first..callers.min(first + PER_CONNECTION) {
            let (call, connection) = (Arc::clone(call), connection.clone());
            let (authority, over) = (Arc::clone(&authority), Arc::clone(&over));
            tasks.push(tokio::spawn(async move {
                let mut counts = [0_u64; 3];
                let mut at = at;
                while !over.load(Ordering::Relaxed) {
                    let which = match call.send(at, &authority, &connection).await {
                        0 => 0,
                        8 => 1,
                        4 => 2,
                        other => panic!("status {other}"),
                    };
                    counts[which] += 1;
                    at += 7;
                }
                counts
            }));
        }
    }
    let begin = Instant::now();
    tokio::time::sleep(time).await;
    over.store(true, Ordering::Relaxed);
    let mut sums = [0_u64; 3];
    for task in tasks {
        let counts = task.await.expect("a caller");
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    #[expect(
        clippy::cast_precision_loss,
        reason = "a round has far fewer than 2^52 calls"
    )]
    let [answered, refused, late] = sums.map(|sum| sum as f64 / seconds);
    Round {
        answered,
        refused,
        late,
    }
}

async fn compare(server: &Server, call: Call, callers: usize) {
    let (rounds, time) = if quick() {
        (1, Duration::from_secs(2))
    } else {
        (5, Duration::from_secs(5))
    };
    let call = Arc::new(call);
    let (mut ratios, mut last) = (Vec::new(), None);
    for _ in 0..rounds {
        let few = round(server, &call, FEW, time).await;
        let many = round(server, &call, callers, time).await;
        ratios.push(many.answered / few.answered);
        last = Some((few, many));
    }
    let (few, many) = last.expect("a round");
    let name = call.name;
    figure(&format!("{name}, {FEW} callers"), few.answered, "/s");
    figure(&format!("{name}, {callers} callers"), many.answered, "/s");
    figure("  refused beside them", many.refused, "/s");
    figure("  late beside them", many.late, "/s");
    against(
        "  of the goodput of few",
        median(&ratios),
        "x",
        Bar::AtLeast(0.8),
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // Children keep the processor of the thread that starts them.
    pin(0);
    let server = Server::repertoire(&directory.path().join("data"));
    pin(1);
    let channel = sample::channel(server.address).await;
    sample::publish(channel.clone()).await;
    let registry = v1::registry_client::RegistryClient::new(channel.clone());
    let (corpus, skills) = (Corpus::load(), if quick() { 300 } else { 5_000 });
    stream::iter(0..skills)
        .for_each_concurrent(32, |at| {
            let (mut registry, request) = (registry.clone(), corpus.request(at));
            async move {
                registry.publish_skill(request).await.expect("a version");
            }
        })
        .await;
    let mut lookup = v1::lookup_client::LookupClient::new(channel);
    let query = |text: &str| v1::SearchRequest {
        query: text.to_owned(),
        ..Default::default()
    };
    while lookup
        .search(query(&format!("bench-{:06}", skills - 1)))
        .await
        .expect("an answer")
        .into_inner()
        .total
        == 0
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut queries: Vec<&str> = include_str!("../tests/relevance/queries.tsv")
        .lines()
        .filter_map(|line| line.split('\t').nth(2))
        .collect();
    queries.dedup();
    let searches = || queries.iter().map(|text| framed(&query(text))).collect();
    let get = v1::GetSkillRequest {
        skill_id: sample::ID.to_owned(),
        ..Default::default()
    };
    let before = server.memory("VmRSS");
    for (name, path, messages, timeout) in [
        (
            "GetSkill",
            "/repertoire.v1.Lookup/GetSkill",
            vec![framed(&get)],
            None,
        ),
        ("Search", "/repertoire.v1.Lookup/Search", searches(), None),
        (
            "Search in 500 ms",
            "/repertoire.v1.Lookup/Search",
            searches(),
            Some("500m"),
        ),
    ] {
        let call = Call {
            name,
            path,
            messages,
            timeout,
        };
        // The server takes on 512 calls at once.
        compare(&server, call, 5_120).await;
    }
    figure("memory before", mib(before), "MiB");
    figure("memory after", mib(server.memory("VmRSS")), "MiB");
}
