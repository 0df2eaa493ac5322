//! Calls that wait, and workers that leave.

use super::*;

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
