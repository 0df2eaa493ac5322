//! 50,000 skills of real size through the public API, and what they cost at rest.
//!
//! Bars: the import, the server's memory at its peak, the start with all of them
//! stored, memory at rest, also after minutes of churn, and the data directory.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contract::v1;
use contract::v1::publish_skills_response::Result as Item;
use futures_util::StreamExt as _;
use support::corpus::Corpus;
use support::process::{Server, allocated};
use support::{Bar, against, figure, mib};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

/// Items on their way to the server.
const AHEAD: usize = 64;
/// How long the server is left alone before its memory at rest is read.
const IDLE: Duration = Duration::from_secs(6);

async fn connect(server: &Server) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{}", server.address)).expect("an address");
    endpoint.connect().await.expect("a connection")
}

/// Publishes all skills over one stream; the bytes of their files.
async fn import(server: &Server, corpus: Corpus, skills: usize) -> u64 {
    let mut client = v1::registry_client::RegistryClient::new(connect(server).await);
    let bytes = Arc::new(AtomicU64::new(0));
    let (items, stream) = tokio::sync::mpsc::channel(AHEAD);
    let counted = Arc::clone(&bytes);
    let maker = tokio::spawn(async move {
        for at in 0..skills {
            let skill = corpus.request(at);
            counted.fetch_add(
                skill
                    .files
                    .iter()
                    .map(|file| file.content.len() as u64)
                    .sum(),
                Ordering::Relaxed,
            );
            items
                .send(v1::PublishSkillsRequest { skill: Some(skill) })
                .await
                .expect("the stream goes on");
        }
    });
    let mut answers = client
        .publish_skills(ReceiverStream::new(stream))
        .await
        .expect("a stream")
        .into_inner();
    let mut created = 0;
    while let Some(answer) = answers.message().await.expect("an answer") {
        match answer.result.expect("a result") {
            Item::Published(published) => {
                assert_eq!(published.outcome(), v1::PublishOutcome::Created);
                created += 1;
            }
            Item::Refused(refusal) => {
                panic!("item {} was refused: {}", answer.index, refusal.message)
            }
        }
    }
    maker.await.expect("the maker");
    assert_eq!(created, skills);
    bytes.load(Ordering::Relaxed)
}

/// Starts the server on what is stored; the time until it listens, and until it
/// says that it serves.
async fn start(data: &std::path::Path) -> (Server, f64, f64) {
    let start = Instant::now();
    let server = Server::repertoire(data);
    let channel = connect(&server).await;
    let service = "repertoire.v1.Lookup".to_owned();
    let answer = HealthClient::new(channel)
        .check(HealthCheckRequest { service })
        .await
        .expect("an answer");
    assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
    let serving = start.elapsed();
    let listening = server.started;
    (server, listening.as_secs_f64(), serving.as_secs_f64())
}

/// Gets every skill and reads its SKILL.md; the seconds it took.
async fn read_all(server: &Server, skills: usize) -> f64 {
    let client = v1::lookup_client::LookupClient::new(connect(server).await);
    let begin = Instant::now();
    futures_util::stream::iter(0..skills)
        .for_each_concurrent(AHEAD, |at| {
            let mut client = client.clone();
            async move {
                let skill_id = format!("bench-{at:06}");
                let uri = format!("skill://{skill_id}");
                let request = v1::GetSkillRequest {
                    skill_id,
                    ..Default::default()
                };
                client.get_skill(request).await.expect("a skill");
                let request = v1::ReadSkillRequest {
                    uri,
                    ..Default::default()
                };
                client.read_skill(request).await.expect("a file");
            }
        })
        .await;
    begin.elapsed().as_secs_f64()
}

/// Publishes, reads, finds and deletes for so long; the calls that it made.
async fn churn(server: &Server, corpus: &Corpus, skills: usize, time: Duration) -> usize {
    let channel = connect(server).await;
    let end = Instant::now() + time;
    let calls = futures_util::stream::iter(0..)
        .take_while(|_| std::future::ready(Instant::now() < end))
        .map(|at: usize| {
            let mut registry = v1::registry_client::RegistryClient::new(channel.clone());
            let mut lookup = v1::lookup_client::LookupClient::new(channel.clone());
            let number = at * 7919 % skills;
            let mut skill = corpus.request(number);
            async move {
                let skill_id = skill.skill_id.clone();
                for file in &mut skill.files {
                    file.content = [&file.content[..], format!("{at}\n").as_bytes()]
                        .concat()
                        .into();
                }
                let archive = v1::ExportSkillRequest {
                    skill_id: skill_id.clone(),
                    ..Default::default()
                };
                let search = v1::SearchRequest {
                    query: format!("copy with the number {at}"),
                    ..Default::default()
                };
                // Another caller may have deleted it a moment before.
                let _published = registry.publish_skill(skill).await;
                if let Ok(pieces) = registry.export_skill(archive).await {
                    pieces.into_inner().for_each(|_| async {}).await;
                }
                lookup.search(search).await.expect("an answer");
                // None of those that are looked for later.
                if number % 4 == 2 {
                    let request = v1::DeleteSkillRequest {
                        skill_id,
                        ..Default::default()
                    };
                    let _deleted = registry.delete_skill(request).await;
                }
            }
        });
    calls.buffer_unordered(AHEAD).count().await
}

async fn memory_after_churn(server: &Server, skills: usize) {
    let rest = || async {
        tokio::time::sleep(IDLE).await;
        server.memory("VmRSS")
    };
    let corpus = Corpus::load();
    let (warm, time) = if support::quick() { (1, 5) } else { (60, 300) };
    let cold = rest().await;
    churn(server, &corpus, skills, Duration::from_secs(warm)).await;
    let before = rest().await;
    figure("memory at rest, caches warm", mib(before), "MiB");
    let rounds = churn(server, &corpus, skills, Duration::from_secs(time)).await;
    let after = rest().await;
    figure("rounds of churn", rounds as f64, "");
    figure("memory at rest after churn", mib(after), "MiB");
    figure(
        "  of that before caches were warm",
        after as f64 / cold as f64,
        "x",
    );
    against(
        "memory at rest after churn / before",
        after as f64 / before as f64,
        "x",
        Bar::AtMost(1.3),
    );
}

async fn still_there(server: &Server, skills: usize) {
    let mut client = v1::lookup_client::LookupClient::new(connect(server).await);
    for at in [0, skills / 2, skills - 1] {
        let skill_id = format!("bench-{at:06}");
        let request = v1::GetSkillRequest {
            skill_id,
            ..Default::default()
        };
        client
            .get_skill(request)
            .await
            .expect("a skill that was acknowledged");
    }
}

#[tokio::main]
async fn main() {
    let skills = if support::quick() { 2_000 } else { 50_000 };
    let corpus = Corpus::load();
    let origin = if corpus.real {
        "real skills"
    } else {
        "made-up texts"
    };
    println!(
        "import of {skills} skills, made from {} {origin}",
        corpus.len()
    );

    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let data = folder.path().join("data");
    let server = Server::repertoire(&data);
    figure(
        "start on an empty directory",
        server.started.as_secs_f64(),
        "s",
    );
    figure("  memory", mib(server.memory("VmRSS")), "MiB");
    let begin = Instant::now();
    let bytes = import(&server, corpus, skills).await;
    let took = begin.elapsed().as_secs_f64();
    against("import", took, "s", Bar::AtMost(60.0));
    figure("  skills a second", skills as f64 / took, "/s");
    figure(
        "  content a skill",
        bytes as f64 / skills as f64 / 1e3,
        "kB",
    );
    figure("  server on a processor", server.cpu().as_secs_f64(), "s");
    against(
        "memory at the peak of the import",
        mib(server.memory("VmHWM")),
        "MiB",
        Bar::AtMost(500.0),
    );
    tokio::time::sleep(IDLE).await;
    against(
        "memory at rest after the import",
        mib(server.memory("VmRSS")),
        "MiB",
        Bar::AtMost(300.0),
    );
    figure("stop", server.terminate().as_secs_f64(), "s");
    let disk = allocated(&data);
    figure("data directory", mib(disk), "MiB");
    against(
        "data directory / content",
        disk as f64 / bytes as f64,
        "x",
        Bar::AtMost(2.0),
    );

    let (server, listening, serving) = start(&data).await;
    figure("start after SIGTERM: listening", listening, "s");
    against(
        "start after SIGTERM: SERVING",
        serving,
        "s",
        Bar::AtMost(2.0),
    );
    figure("  memory just after", mib(server.memory("VmRSS")), "MiB");
    tokio::time::sleep(IDLE).await;
    against(
        "memory at rest after a start",
        mib(server.memory("VmRSS")),
        "MiB",
        Bar::AtMost(300.0),
    );
    figure(
        "getting and reading every skill",
        read_all(&server, skills).await,
        "s",
    );
    tokio::time::sleep(IDLE).await;
    against(
        "memory at rest after reading all",
        mib(server.memory("VmRSS")),
        "MiB",
        Bar::AtMost(300.0),
    );
    still_there(&server, skills).await;

    memory_after_churn(&server, skills).await;

    server.kill();
    let (server, _, serving) = start(&data).await;
    figure("start after SIGKILL, idle before: SERVING", serving, "s");
    still_there(&server, skills).await;
    // Writes that are still in sled's buffers make the next start slower.
    let more = Corpus::load();
    let mut client = v1::registry_client::RegistryClient::new(connect(&server).await);
    for at in skills..skills + skills / 50 {
        client
            .publish_skill(more.request(at))
            .await
            .expect("a published skill");
    }
    server.kill();
    let (server, _, serving) = start(&data).await;
    figure("start after SIGKILL, writing before: SERVING", serving, "s");
    still_there(&server, skills + skills / 50).await;
    server.terminate();
}
