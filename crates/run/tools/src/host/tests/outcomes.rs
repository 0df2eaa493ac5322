//! What a worker answers, and who takes it.

use super::*;

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
