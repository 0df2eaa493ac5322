//! Workers that die, lie, are late and are many. Time is paused: no test waits.

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
use model::{Code, Digest, Failure, Principal, VersionNumber};
use testing::Hands;

const TOKEN: &str = "0123456789abcdef";
const SKILL: &str = "acme/ops/report";

pub(super) fn invocation(id: &str, method: &str) -> Invocation {
    Invocation {
        id: id.to_owned(),
        skill: SKILL.parse().expect("an id"),
        version: VersionNumber::FIRST,
        digest: Digest::of(b"x"),
        tool: "report".to_owned(),
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
    let error = ToolError::new(ToolErrorKind::Denied, "not you");
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
async fn who_may_not_is_refused_before_anything_else() {
    let host = host();
    let refusal = async |token: Option<&str>, first: Option<FromWorker>| {
        let (_says, messages) = writer(first);
        match host.attach(token, messages).await {
            Ok(_) => "let in".to_owned(),
            Err(failure) => {
                let fields = failure.fields.iter().map(|field| field.field.as_str());
                format!("{failure} {:?}", fields.collect::<Vec<_>>())
            }
        }
    };
    let said = |skill: &str| {
        let mut hello = hello(1);
        hello.skills.push(Served {
            skill: skill.parse().expect("an id"),
            methods: vec!["make".to_owned()],
        });
        Some(FromWorker::Hello(hello))
    };
    let not_let_in = "WORKER_REFUSED: The worker is not let in []";
    for token in [None, Some(""), Some("0123456789abcdeg")] {
        assert_eq!(refusal(token, said(SKILL)).await, not_let_in);
    }
    for (first, refused) in [
        (
            said("acme/dev/x"),
            "WORKER_REFUSED: The worker may not serve acme/dev/x [\"hello.skills[1].skill_id\"]",
        ),
        (
            said("builtin/repertoire/WRITE_SQL"),
            "WORKER_REFUSED: The worker may not serve builtin/repertoire/WRITE_SQL [\"hello.skills[1].skill_id\"]",
        ),
        (said("builtin/repertoire/xlsx"), "let in"),
        (
            Some(FromWorker::Heartbeat),
            "INVALID_PARAMETER: The first message must be `hello` []",
        ),
        // Time passes by itself where nothing else is left to do.
        (None, "TIMEOUT: No `hello` came within 10 seconds []"),
    ] {
        assert_eq!(refusal(Some(TOKEN), first).await, refused);
    }
    let jira = refusal(Some(TOKEN), said("builtin/repertoire/jira")).await;
    assert!(
        jira.contains("may not serve builtin/repertoire/jira"),
        "{jira}"
    );
    assert_eq!(host.stats(), Stats::default());
}

#[tokio::test(start_paused = true)]
async fn no_more_workers_are_attached_than_may_be() {
    let host = host();
    let mut workers = Vec::new();
    for _ in 0..256 {
        workers.push(Worker::attach(&host, 1).await);
    }
    let (_says, messages) = writer([FromWorker::Hello(hello(1))]);
    let refused = host
        .attach(Some(TOKEN), messages)
        .await
        .err()
        .expect("a refusal");
    assert_eq!(refused.code, Code::Overloaded);
    workers.pop();
    Worker::attach(&host, 1).await;
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_worker_that_dies_fail_at_once() {
    for way in ["stream", "half", "silence", "garbage", "hello"] {
        let host = host();
        let mut worker = Worker::attach(&host, 1).await;
        let (running, waiting) = (start(&host, "a").await, start(&host, "b").await);
        assert_eq!(worker.next().await, "a");
        let begin = Instant::now();
        let worker = match way {
            "stream" => {
                drop(worker);
                None
            }
            "half" => {
                let (elsewhere, _) = writer([]);
                worker.says = elsewhere;
                Some((worker, "end"))
            }
            "silence" => Some((
                worker,
                "end: TIMEOUT: Nothing was heard of the worker for 30 s",
            )),
            "garbage" => {
                let garbage = Failure::new(Code::InvalidParameter, "unreadable");
                worker.says.send(Err(garbage)).expect("a listener");
                Some((worker, "end: INVALID_PARAMETER: unreadable"))
            }
            _ => {
                worker.say(FromWorker::Hello(hello(1)));
                Some((worker, "end: INVALID_PARAMETER: A second `hello` came"))
            }
        };
        if way == "silence" {
            // It takes longer than these callers wait.
            assert!(
                end(running)
                    .await
                    .starts_with("Timeout: The worker did not answer")
            );
            assert!(
                end(waiting)
                    .await
                    .starts_with("Timeout: No worker had room")
            );
        } else {
            assert_eq!(
                (end(running).await.as_str(), end(waiting).await.as_str()),
                (GONE, NOBODY),
                "{way}"
            );
            assert_eq!(begin.elapsed(), Duration::ZERO, "{way}");
        }
        if let Some((mut worker, last)) = worker {
            let mut told = worker.next().await;
            while told.starts_with("cancel") {
                told = worker.next().await;
            }
            assert_eq!(told, last, "{way}");
            assert_eq!(worker.next().now_or_never(), Some("end".to_owned()));
        }
        assert_eq!(host.stats(), Stats::default(), "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_reads_nothing_is_let_go_though_it_speaks() {
    let host = host();
    let mut worker = Worker::attach(&host, 1).await;
    for _ in 0..4 {
        tokio::time::advance(Duration::from_secs(9)).await;
        worker.say(FromWorker::Heartbeat);
        settle().await;
    }
    assert_eq!(host.stats(), Stats::default());
    assert_eq!(
        worker.next().await,
        "end: TIMEOUT: The worker has read nothing for 30 s"
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeats_go_both_ways_and_keep_a_worker() {
    let host = host();
    let mut worker = Worker::attach(&host, 1).await;
    for _ in 0..10 {
        assert_eq!(line(worker.told.next().await), "heartbeat");
        worker.say(FromWorker::Heartbeat);
    }
    let call = start(&host, "a").await;
    assert_eq!(worker.next().await, "a");
    worker.answer("a", "late but alive");
    assert_eq!(end(call).await, "late but alive");
}

#[tokio::test(start_paused = true)]
async fn only_the_worker_that_has_a_call_can_answer_it_and_once() {
    let host = host();
    let (mut one, mut other) = (
        Worker::attach(&host, 1).await,
        Worker::attach(&host, 1).await,
    );
    let (a, b) = (start(&host, "a").await, start(&host, "b").await);
    assert_eq!(
        (one.next().await, other.next().await),
        ("a".to_owned(), "b".to_owned())
    );
    let dropped = "the outcome was dropped: this worker has no such invocation, or has answered it";
    for foreign in ["b", "c", ""] {
        one.answer(foreign, "stolen");
        assert_eq!(one.next().await, format!("notice {foreign}: {dropped}"));
    }
    one.say(FromWorker::Progress {
        id: "b".to_owned(),
        progress: Progress {
            done: 1.0,
            total: None,
            message: String::new(),
        },
    });
    assert!(
        one.next()
            .await
            .starts_with("notice b: the progress was dropped")
    );
    one.say(FromWorker::Unknown);
    assert_eq!(
        one.next().await,
        "notice : a message without content, or of a later contract, was dropped"
    );
    one.answer("a", "right");
    one.answer("a", "again");
    other.answer("b", "right too");
    assert_eq!(
        (end(a).await.as_str(), end(b).await.as_str()),
        ("right", "right too")
    );
    assert_eq!(one.next().await, format!("notice a: {dropped}"));
    assert_eq!(
        host.stats(),
        Stats {
            workers: 2,
            dropped: 6,
            ..Stats::default()
        }
    );
    // A flood of them costs the worker its notices, and nobody else anything.
    for _ in 0..1000 {
        one.answer("a", "again");
    }
    settle().await;
    assert_eq!(host.stats().dropped, 1006);
    let mut notices = 0;
    while one.now().await.starts_with("notice") {
        notices += 1;
    }
    assert_eq!(notices, 16);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_or_breaks_the_rules_fails_its_call_alone() {
    let host = host();
    let mut worker = Worker::attach(&host, 3).await;
    let (a, b, c) = (
        start(&host, "a").await,
        start(&host, "b").await,
        start(&host, "c").await,
    );
    for id in ["a", "b", "c"] {
        assert_eq!(worker.next().await, id);
    }
    // 90 of text, and `{"key":"..."}` of 13.
    let structured = [("key".to_owned(), "...".into())].into_iter().collect();
    let output = Output {
        text: "x".repeat(90),
        structured: Some(structured),
    };
    worker.say(FromWorker::Outcome {
        id: "a".to_owned(),
        result: Ok(output),
    });
    worker.say(FromWorker::Malformed {
        id: "b".to_owned(),
        why: "error.message: too long".to_owned(),
    });
    worker.answer("c", &"x".repeat(100));
    assert_eq!(
        end(a).await,
        "Failed: The result has 103 bytes; 100 are allowed"
    );
    assert!(
        end(b)
            .await
            .starts_with("Failed: The worker's answer breaks the rules")
    );
    assert_eq!(end(c).await.len(), 100);
    assert_eq!(
        worker.next().await,
        "notice a: The result has 103 bytes; 100 are allowed"
    );
    assert_eq!(worker.next().await, "notice b: error.message: too long");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_cancelled_at_every_stage() {
    let host = host();
    let mut worker = Worker::attach(&host, 1).await;
    // Handed over, given but not yet handed over, waiting.
    let running = start(&host, "running").await;
    assert_eq!(worker.next().await, "running");
    let waiting = start(&host, "waiting").await;
    waiting.abort();
    settle().await;
    assert_eq!(host.stats().waiting, 0);
    running.abort();
    settle().await;
    assert_eq!(worker.now().await, "cancel running: the caller gave up");
    // The slot is held until the worker answers.
    let next = start(&host, "next").await;
    assert_eq!(
        (worker.now().await.as_str(), host.stats().abandoned),
        ("", 1)
    );
    worker.answer("running", "for nobody");
    settle().await;
    assert_eq!(host.stats().held, 1);
    next.abort();
    settle().await;
    // It was never told of this one, so it need not be told to cancel it.
    assert_eq!((worker.now().await.as_str(), host.stats().held), ("", 0));
    let last = start(&host, "last").await;
    assert_eq!(worker.next().await, "last");
    worker.answer("last", "done");
    assert_eq!(end(last).await, "done");
    assert_eq!(
        host.stats(),
        Stats {
            workers: 1,
            ..Stats::default()
        }
    );
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_comes_too_late_is_dropped_and_frees_the_slot() {
    let host = host();
    let mut worker = Worker::attach(&host, 1).await;
    let call = start(&host, "a").await;
    assert_eq!(worker.next().await, "a");
    let waiting = start(&host, "b").await;
    let lively = worker.says.clone();
    let lives = tokio::spawn(async move {
        while lively.send(Ok(FromWorker::Heartbeat)).is_ok() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    });
    assert_eq!(
        end(call).await,
        "Timeout: The worker did not answer the call of `make` of acme/ops/report within 20 s"
    );
    assert_eq!(
        end(waiting).await,
        "Timeout: No worker had room for the call of `make` of acme/ops/report within 20 s"
    );
    assert_eq!(worker.next().await, "cancel a: the deadline passed");
    worker.answer("a", "late");
    settle().await;
    assert_eq!(
        host.stats(),
        Stats {
            workers: 1,
            ..Stats::default()
        }
    );
    lives.abort();
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_are_served_in_their_order_and_not_beyond_a_bound() {
    let host = host();
    let mut worker = Worker::attach(&host, 1).await;
    let mut calls = BTreeMap::new();
    for at in 0..=1024 {
        let method = if at % 2 == 0 { "make" } else { "check" };
        let id = format!("{at:04}");
        let call = start_as(&host, invocation(&id, method)).await;
        calls.insert(id, call);
    }
    for (id, call) in calls {
        assert_eq!(worker.next().await, id);
        worker.answer(&id, &id);
        assert_eq!(end(call).await, id);
    }
    let mut calls = vec![];
    for at in 0..=1024 {
        calls.push(start(&host, &format!("again {at}")).await);
    }
    let refused = host
        .call(invocation("one too many", "make"))
        .await
        .expect_err("a refusal");
    assert_eq!(
        (refused.message.as_str(), refused.retry_after),
        (
            "As many calls wait for `make` of acme/ops/report as may",
            Some(Duration::from_secs(1))
        )
    );
    // Another method has a queue of its own.
    let check = start_as(&host, invocation("check", "check")).await;
    assert!(!check.is_finished());
    let twice = outcome(host.call(invocation("again 7", "make")).await);
    assert_eq!(twice, "Failed: A call `again 7` is in work already");
}

#[tokio::test(start_paused = true)]
async fn several_workers_share_the_load_and_lose_none_of_a_thousand() {
    let host = host();
    let mut workers = Vec::new();
    for _ in 0..4 {
        let mut worker = Worker::attach(&host, 8).await;
        workers.push(tokio::spawn(async move {
            let mut done = BTreeSet::new();
            loop {
                let id = worker.next().await;
                if id == "drain" {
                    return done;
                }
                worker.answer(&id, &format!("{id} is done"));
                assert!(done.insert(id), "a call came twice");
            }
        }));
    }
    let calls: Vec<_> = (0..1000)
        .map(|at| {
            let host = host.clone();
            tokio::spawn(async move { host.call(invocation(&format!("call {at}"), "make")).await })
        })
        .collect();
    for (at, call) in calls.into_iter().enumerate() {
        assert_eq!(end(call).await, format!("call {at} is done"));
    }
    host.stop(Duration::from_secs(1));
    let mut all = BTreeSet::new();
    for worker in workers {
        let done = worker.await.expect("a worker");
        assert!(
            (200..300).contains(&done.len()),
            "one worker had {}",
            done.len()
        );
        all.extend(done);
    }
    assert_eq!(all.len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_was_not_sent_goes_to_another_when_it_leaves() {
    let host = host();
    let mut first = Worker::attach(&host, 2).await;
    let (sent, unsent) = (start(&host, "sent").await, start(&host, "unsent").await);
    assert_eq!(first.next().await, "sent");
    let mut second = Worker::attach(&host, 1).await;
    drop(first);
    assert_eq!(end(sent).await, GONE);
    assert_eq!(second.next().await, "unsent");
    second.answer("unsent", "done");
    assert_eq!(end(unsent).await, "done");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_drains_finishes_and_is_given_nothing_more() {
    let host = host();
    let mut worker = Worker::attach(&host, 1).await;
    let (running, waiting) = (start(&host, "a").await, start(&host, "b").await);
    assert_eq!(worker.next().await, "a");
    worker.say(FromWorker::Drain);
    assert_eq!(end(waiting).await, NOBODY);
    assert_eq!(outcome(host.call(invocation("c", "make")).await), NOBODY);
    assert_eq!(worker.now().await, "");
    worker.answer("a", "the last");
    assert_eq!(end(running).await, "the last");
    assert_eq!(worker.next().await, "end");
    drop(worker);
    assert_eq!(host.stats(), Stats::default());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_lets_workers_finish_for_a_while() {
    let host = host();
    let mut quick = Worker::attach(&host, 1).await;
    let mut slow = Worker::attach(&host, 1).await;
    let calls = [
        start(&host, "a").await,
        start(&host, "b").await,
        start(&host, "c").await,
    ];
    assert_eq!(
        (quick.next().await, slow.next().await),
        ("a".to_owned(), "b".to_owned())
    );
    host.stop(Duration::from_secs(3));
    let stopping = "Unavailable: The server is about to stop";
    assert_eq!(outcome(host.call(invocation("d", "make")).await), stopping);
    assert_eq!(
        (quick.next().await.as_str(), slow.next().await.as_str()),
        ("drain", "drain")
    );
    quick.answer("a", "in time");
    let begin = Instant::now();
    let last = "end: SHUTTING_DOWN: The server is about to stop";
    assert_eq!(
        (quick.next().await.as_str(), slow.next().await.as_str()),
        (last, last)
    );
    assert_eq!(begin.elapsed(), Duration::from_secs(3));
    drop((quick, slow));
    let mut ends = Vec::new();
    for call in calls {
        ends.push(end(call).await);
    }
    assert_eq!(ends, ["in time", GONE, stopping]);
    let (_says, messages) = writer([FromWorker::Hello(hello(1))]);
    let refused = host
        .attach(Some(TOKEN), messages)
        .await
        .err()
        .expect("a refusal");
    assert_eq!(refused.code, Code::ShuttingDown);
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
