//! Workers that die, lie, are late and are many. Time is paused: no test waits.

mod attaching;
mod outcomes;
mod queues;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caller_tokens::CallerTokens;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::*;
use crate::Progress;
use model::{Code, Digest, Failure, Principal, ToolConfig, ToolName, VersionNumber, find_tool};
use testing::Hands;

const TOKEN: &str = "0123456789abcdef";
const SKILL: &str = "acme/ops/report";

fn tool(name: &str) -> ToolName {
    let config = ToolConfig {
        name: name.to_owned(),
        description: String::new(),
        method: String::new(),
        args: Vec::new(),
    };
    let (name, _) = find_tool(&[config], name).expect("a tool");
    name
}

pub(super) fn invocation(id: &str, method: &str) -> Invocation {
    Invocation {
        id: id.to_owned(),
        skill: SKILL.parse().expect("an id"),
        version: VersionNumber::FIRST,
        digest: Digest::of(b"x"),
        tool: Some(tool("report")),
        method: method.to_owned(),
        arguments: Map::new(),
        context: Map::new(),
        timeout: Duration::from_secs(20),
        idempotency_key: format!("key of {id}"),
        caller: Principal::anonymous(),
        progress: None,
    }
}

fn host() -> Host {
    let config = Config {
        workers: vec![Admitted {
            name: "reports".to_owned(),
            token: TOKEN.to_owned().into(),
            skills: vec![
                "acme/ops/*".parse().expect("a pattern"),
                "builtin/*".parse().expect("a pattern"),
            ],
        }],
        max_result_bytes: 100,
        ..Config::default()
    };
    let tokens = CallerTokens::new("https://skills.example.com".to_owned(), Hands::new());
    Host::new(config, tokens.expect("a key"))
}

fn hello(concurrency: u32) -> Hello {
    Hello {
        name: "test".to_owned(),
        skills: vec![Served {
            skill: SKILL.parse().expect("an id"),
            methods: vec!["make".to_owned(), "check".to_owned()],
        }],
        concurrency,
    }
}

type Says = mpsc::UnboundedSender<Result<FromWorker, Failure>>;

fn writer(
    first: impl IntoIterator<Item = FromWorker>,
) -> (Says, UnboundedReceiverStream<Result<FromWorker, Failure>>) {
    let (says, hears) = mpsc::unbounded_channel();
    for message in first {
        says.send(Ok(message)).expect("a listener");
    }
    (says, UnboundedReceiverStream::new(hears))
}

/// A worker that a test plays.
struct Worker {
    says: Says,
    told: Outgoing,
}

impl Worker {
    async fn attach(host: &Host, concurrency: u32) -> Self {
        let (says, messages) = writer([FromWorker::Hello(hello(concurrency))]);
        let told = host
            .attach(Some(TOKEN), messages)
            .await
            .expect("to be let in");
        let mut worker = Self { says, told };
        let welcome = worker.next().await;
        assert!(welcome.starts_with("welcome"), "{welcome}");
        worker
    }

    fn say(&self, message: FromWorker) {
        // A worker that was let go talks to nobody.
        let _let_go = self.says.send(Ok(message));
    }

    fn answer(&self, id: &str, text: &str) {
        let (id, result) = (id.to_owned(), Ok(Output::text(text)));
        self.say(FromWorker::Outcome { id, result });
    }

    /// What it is told next, as a line; heartbeats aside.
    async fn next(&mut self) -> String {
        loop {
            let told = self.told.next().await;
            if !matches!(told, Some(Ok(ToWorker::Heartbeat))) {
                return line(told);
            }
        }
    }

    /// What it is told without any time passing; empty: nothing.
    async fn now(&mut self) -> String {
        settle().await;
        self.told
            .next()
            .now_or_never()
            .map(line)
            .unwrap_or_default()
    }
}

fn line(told: Option<Result<ToWorker, Failure>>) -> String {
    match told {
        None => "end".to_owned(),
        Some(Err(failure)) => format!("end: {failure}"),
        Some(Ok(ToWorker::Welcome(welcome))) => {
            format!("welcome of {} at once", welcome.concurrency)
        }
        Some(Ok(ToWorker::Invocation { invocation, .. })) => invocation.id,
        Some(Ok(ToWorker::Cancel { id, reason })) => format!("cancel {id}: {reason}"),
        Some(Ok(ToWorker::Notice { id, message })) => format!("notice {id}: {message}"),
        Some(Ok(ToWorker::Heartbeat)) => "heartbeat".to_owned(),
        Some(Ok(ToWorker::Drain)) => "drain".to_owned(),
    }
}

/// Lets every task do what it can do now.
async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

type Running = JoinHandle<Result<Output, ToolError>>;

/// A call in a task of its own, which has begun.
async fn start(host: &Host, id: &str) -> Running {
    start_as(host, invocation(id, "make")).await
}

async fn start_as(host: &Host, invocation: Invocation) -> Running {
    let host = host.clone();
    let running = tokio::spawn(async move { host.call(invocation).await });
    settle().await;
    running
}

fn outcome(result: Result<Output, ToolError>) -> String {
    match result {
        Ok(output) => output.text,
        Err(error) => format!("{:?}: {error}", error.kind),
    }
}

async fn end(running: Running) -> String {
    outcome(running.await.expect("no panic"))
}

const GONE: &str =
    "Unavailable: The worker that ran `make` of acme/ops/report is gone, and did not answer";
const NOBODY: &str = "Unavailable: No worker serves `make` of acme/ops/report at present";

#[tokio::test(start_paused = true)]
async fn a_worker_is_given_what_it_serves_and_its_answer_is_the_callers() {
    let host = host();
    let skill: SkillId = SKILL.parse().expect("an id");
    assert_eq!(
        (host.serves(&skill, "make"), host.skills()),
        (false, vec![])
    );
    assert_eq!(
        outcome(host.call(invocation("early", "make")).await),
        NOBODY
    );

    let mut worker = Worker::attach(&host, 2).await;
    assert_eq!(
        (host.serves(&skill, "make"), host.skills()),
        (true, vec![skill.clone()])
    );
    assert!(!host.serves(&skill, "other"));
    let (listener, mut heard) = mpsc::channel(1);
    let asked = Invocation {
        progress: Some(listener),
        ..invocation("a", "make")
    };
    let call = start_as(&host, asked).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    let Some(Ok(ToWorker::Invocation {
        invocation: given, ..
    })) = worker.told.next().await
    else {
        panic!("no call")
    };
    assert_eq!(
        (
            given.id.as_str(),
            given.method.as_str(),
            given.idempotency_key.as_str(),
            given.timeout
        ),
        ("a", "make", "key of a", Duration::from_secs(15))
    );
    let progress = |done| Progress {
        done,
        total: None,
        message: "half".to_owned(),
    };
    for done in [1.0, 2.0] {
        worker.say(FromWorker::Progress {
            id: "a".to_owned(),
            progress: progress(done),
        });
    }
    settle().await;
    worker.answer("a", "made");
    assert_eq!(end(call).await, "made");
    // The listener had room for one; the other is passed over.
    assert_eq!(
        (heard.recv().await, heard.recv().await),
        (Some(progress(1.0)), None)
    );
    let error = ToolError::denied("not you");
    let call = start(&host, "b").await;
    assert_eq!(worker.next().await, "b");
    worker.say(FromWorker::Outcome {
        id: "b".to_owned(),
        result: Err(error),
    });
    assert_eq!(end(call).await, "Denied: not you");
    assert_eq!(
        host.stats(),
        Stats {
            workers: 1,
            ..Stats::default()
        }
    );
}

#[tokio::test(start_paused = true)]
async fn who_signed_in_is_signed_for_the_worker_and_the_call_and_nobody_else_is() {
    let host = host();
    let mut worker = Worker::attach(&host, 2).await;
    let asked = |id: &str, caller| Invocation {
        caller,
        ..invocation(id, "make")
    };
    let mut tokens = Vec::new();
    for (id, caller) in [
        ("a", Principal::token("ada")),
        ("b", Principal::anonymous()),
    ] {
        let _running = start_as(&host, asked(id, caller)).await;
        let Some(Ok(ToWorker::Invocation { caller_token, .. })) = worker.told.next().await else {
            panic!("no call")
        };
        tokens.push(caller_token);
    }
    let [Some(of_ada), None] = &tokens[..] else {
        panic!("{tokens:?}")
    };
    let claims = of_ada.split('.').nth(1).expect("claims");
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64url");
    let claims: Value = serde_json::from_slice(&claims).expect("JSON");
    assert_eq!(
        [&claims["sub"], &claims["aud"], &claims["jti"]],
        ["token:ada", "reports", "a"]
    );
}
