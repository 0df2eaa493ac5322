//! Calling a tool through a worker, and loading a skill.
//!
//! The server is a child process on processor 0; callers and workers are on
//! processor 1. What a call costs is its time less the time that the worker had it.
//! `LoadSkill` is called beside a tonic server that returns a constant of the same
//! size: they take turns, and what counts is the middle of the ratios.

#![expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with three digits"
)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use contract::v1;
use contract::v1::attach_request::Message as Says;
use contract::v1::attach_response::Message as Told;
use futures_util::future::join_all;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use support::load::{self, Call, constant};
use support::process::{Server, pin};
use support::{Bar, against, figure, median, micros, quantile, sample};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;

const SKILL: &str = "bench/load/echo";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const WORKERS: usize = 4;
/// Calls of a worker at once.
const SLOTS: u32 = 16;
const PARALLEL: usize = 1_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let constant_at = arguments
        .iter()
        .position(|argument| argument == "--constant");
    match constant_at {
        Some(at) => constant::<v1::LoadSkillRequest>(arguments[at + 1].parse().expect("a size")),
        None => measure(),
    }
}

/// The release binary with room for all calls at once, and the workers let in.
fn server(folder: &Path) -> Server {
    let config = folder.join("repertoire.yaml");
    let text = format!(
        "limits:\n  calls: 2048\ntools:\n  calls_per_session: 2048\n  workers:\n    \
         - {{name: echo, token: {TOKEN}, skills: ['bench/*']}}\n"
    );
    std::fs::write(&config, text).expect("a config file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_repertoire"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--config"])
        .arg(&config)
        .arg("--data")
        .arg(folder.join("data"));
    for name in [
        "REPERTOIRE_CONFIG",
        "REPERTOIRE_LOG",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ] {
        command.env_remove(name);
    }
    Server::spawn(command)
}

/// Answers calls with their text, and tells how long it had each.
async fn worker(channel: Channel, had: mpsc::UnboundedSender<Duration>) {
    let (says, messages) = mpsc::unbounded_channel();
    let say = |message| {
        let message = Some(message);
        says.send(v1::AttachRequest { message })
            .expect("an open stream");
    };
    say(Says::Hello(v1::Hello {
        name: "bench".to_owned(),
        skills: vec![v1::ServedSkill {
            skill_id: SKILL.to_owned(),
            methods: vec!["echo".to_owned()],
        }],
        concurrency: SLOTS,
    }));
    let mut request = tonic::Request::new(UnboundedReceiverStream::new(messages));
    let token = format!("Bearer {TOKEN}").parse().expect("a header");
    request.metadata_mut().insert("authorization", token);
    let mut client = v1::tool_host_client::ToolHostClient::new(channel);
    let mut told = client
        .attach(request)
        .await
        .expect("to be let in")
        .into_inner();
    while let Ok(Some(answer)) = told.message().await {
        match answer.message {
            Some(Told::Invocation(call)) => {
                let begin = Instant::now();
                let text = call.arguments.unwrap_or_default().fields.remove("text");
                let content = match text.and_then(|value| value.kind) {
                    Some(Kind::StringValue(text)) => text,
                    other => panic!("not a text: {other:?}"),
                };
                let result = v1::ToolResult {
                    content,
                    structured: None,
                };
                say(Says::Outcome(v1::Outcome {
                    invocation_id: call.invocation_id,
                    outcome: Some(v1::outcome::Outcome::Result(result)),
                }));
                // The main task counts them until it has enough.
                let _enough = had.send(begin.elapsed());
            }
            Some(Told::Heartbeat(beat)) => say(Says::Heartbeat(beat)),
            _ => {}
        }
    }
}

fn call(session: &str, text: String) -> v1::CallToolRequest {
    let text = Value {
        kind: Some(Kind::StringValue(text)),
    };
    v1::CallToolRequest {
        session_id: session.to_owned(),
        name: "echo".to_owned(),
        arguments: Some(Struct {
            fields: [("text".to_owned(), text)].into(),
        }),
        ..Default::default()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn measure() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // Children keep the processor of the thread that starts them.
    pin(0);
    let ours = server(folder.path());
    let channel = sample::channel(ours.address).await;
    let skill = "---\nname: echo\ndescription: Says what it is told.\ntool_configs:\n  - name: echo\n    \
                 description: Says it.\n    method: echo\n    args:\n      - {name: text, type: string, \
                 required: true}\n---\nSay it.\n";
    let request = v1::PublishSkillRequest {
        skill_id: SKILL.to_owned(),
        files: vec![v1::File {
            path: "SKILL.md".to_owned(),
            content: skill.into(),
        }],
        ..Default::default()
    };
    let mut registry = v1::registry_client::RegistryClient::new(channel.clone());
    registry
        .publish_skill(request)
        .await
        .expect("a published skill");
    sample::publish(channel.clone()).await;
    let request = v1::LoadSkillRequest {
        skill_id: sample::ID.to_owned(),
        ..Default::default()
    };
    let load = Call::new("/repertoire.v1.Lookup/LoadSkill", &request);
    let size = load
        .send(
            &ours.address.to_string(),
            &load::connect(ours.address).await,
        )
        .await;
    let mut floor = Command::new(std::env::current_exe().expect("this program"));
    floor.args(["--constant", &size.to_string()]);
    let floor = Server::spawn(floor);
    let constant = Call::new(load::CONSTANT, &request);
    pin(1);

    calling(&ours, channel).await;
    loading(&ours, &load, &floor, &constant, size).await;
}

async fn calling(ours: &Server, channel: Channel) {
    let (had, mut worked) = mpsc::unbounded_channel();
    for _ in 0..WORKERS {
        tokio::spawn(worker(sample::channel(ours.address).await, had.clone()));
    }
    let mut lookup = v1::lookup_client::LookupClient::new(channel);
    let request = v1::LoadSkillRequest {
        skill_id: SKILL.to_owned(),
        ..Default::default()
    };
    let session = lookup
        .load_skill(request)
        .await
        .expect("a session")
        .into_inner()
        .session_id;
    // A worker that is not attached yet is waited for.
    while let Err(status) = lookup.call_tool(call(&session, "first".to_owned())).await {
        assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
        tokio::task::yield_now().await;
    }
    worked.recv().await;

    let count = if support::quick() { 200 } else { 10_000 };
    println!("CallTool through a worker, {count} calls one after the other");
    let (mut whole, mut added) = (Vec::new(), Vec::new());
    for at in 0..count {
        let text = format!("call {at}");
        let begin = Instant::now();
        let answer = lookup
            .call_tool(call(&session, text.clone()))
            .await
            .expect("an answer");
        let time = begin.elapsed();
        assert_eq!(answer.into_inner().content, text);
        let own = worked.recv().await.expect("a worker");
        whole.push(micros(time) / 1e3);
        added.push(micros(time.saturating_sub(own)) / 1e3);
    }
    figure("the whole call, p50", median(&whole), "ms");
    figure("added, p99", quantile(&added, 0.99), "ms");
    against(
        "added to the worker's own time, p50",
        median(&added),
        "ms",
        Bar::AtMost(1.0),
    );

    // A connection takes 256 calls at once.
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(v1::lookup_client::LookupClient::new(
            sample::channel(ours.address).await,
        ));
    }
    let begin = Instant::now();
    let calls = (0..PARALLEL).map(|at| {
        let mut lookup = clients[at % clients.len()].clone();
        let session = &session;
        async move {
            lookup
                .call_tool(call(session, format!("parallel {at}")))
                .await
        }
    });
    let answers = join_all(calls).await;
    let time = begin.elapsed();
    let mut own = BTreeSet::new();
    for (at, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(answer) if answer.get_ref().content == format!("parallel {at}") => {
                own.insert(at);
            }
            Ok(answer) => println!("call {at} got {:?}", answer.get_ref().content),
            Err(status) => println!("call {at}: {status}"),
        }
    }
    figure(
        "1,000 calls at once over 4 workers",
        micros(time) / 1e3,
        "ms",
    );
    let lost = (PARALLEL - own.len()) as f64;
    against("calls of them that were lost", lost, "", Bar::AtMost(0.0));
}

async fn loading(ours: &Server, load: &Call, floor: &Server, constant: &Call, size: usize) {
    println!(
        "LoadSkill into a new session, {size} bytes, {} calls at once over {} connections",
        load::CALLS,
        load::CONNECTIONS
    );
    let (rounds, time) = if support::quick() {
        (3, 0.5)
    } else {
        (31, 0.7)
    };
    let time = Duration::from_secs_f64(time);
    load::round(ours, load, time / 2).await;
    load::round(floor, constant, time / 2).await;
    let (mut ratios, mut rates, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let a = load::round(ours, load, time).await;
        let b = load::round(floor, constant, time).await;
        ratios.push(a.calls / b.calls);
        rates.push(a.calls);
        floors.push(b.calls);
    }
    figure("LoadSkill, median", median(&rates), "/s");
    figure("constant, median", median(&floors), "/s");
    against(
        "LoadSkill / constant, median of the rounds",
        median(&ratios),
        "x",
        Bar::AtLeast(0.7),
    );
}
