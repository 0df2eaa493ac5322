//! Who is let in, and stays.

use super::*;

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
    let not_let_in = "WORKER_REFUSED: The worker is not admitted []";
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
