//! What is begun and what is not, and what a caller is told of that.

use std::sync::atomic::AtomicBool;

use model::{Code, Failure};

use super::*;

/// Begins work while every thread of the runtime is taken, lets something happen to its
/// caller, and then frees the thread. Says what the caller was answered, and whether the
/// work was begun.
fn behind_a_taken_thread(
    happens: impl AsyncFnOnce(&JoinHandle<Result<(), Error>>),
) -> (Option<Result<(), Error>>, bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (executor, gate) = (small(), Gatekeeper::default());
        let thread = Arc::clone(&gate);
        let taken = tokio::task::spawn_blocking(move || thread.pass(&Stop::never()));
        let is_begun = Arc::new(AtomicBool::new(false));
        let call = {
            let (executor, is_begun) = (executor.clone(), Arc::clone(&is_begun));
            let deadline = Instant::now() + Duration::from_secs(1);
            tokio::spawn(with_deadline(deadline, async move {
                let work = move |_: &Stop| is_begun.store(true, Ordering::Relaxed);
                executor.run(Kind::Read, work).await
            }))
        };
        until(|| stats(&executor, Kind::Read).in_use == 1).await;
        happens(&call).await;
        gate.open();
        taken.await.expect("a thread").expect("it was let pass");
        let answer = call.await.ok();
        until(|| stats(&executor, Kind::Read).in_use == 0).await;
        let counted = stats(&executor, Kind::Read);
        let is_begun = is_begun.load(Ordering::Relaxed);
        // What was not begun did not end, either.
        let expected = u64::from(is_begun);
        assert_eq!((counted.begun, counted.finished), (expected, expected));
        (answer, is_begun)
    })
}

#[test]
fn what_nobody_waits_for_any_more_is_not_begun_once_there_is_a_thread() {
    let nothing = behind_a_taken_thread(async |_| ());
    assert_eq!(nothing, (Some(Ok(())), true));
    let late = behind_a_taken_thread(async |_| advance(Duration::from_secs(1)).await);
    assert_eq!(late, (Some(Err(Error::Deadline)), false));
    let left = behind_a_taken_thread(async |call| {
        call.abort();
        settle().await;
    });
    assert_eq!(left, (None, false));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_is_no_reason_to_say_that_there_is_too_much_to_do() {
    let executor = small();
    let (gate, held) = (Gatekeeper::default(), Duration::from_secs(3600));
    for _ in 0..PERMITS {
        behind(&executor, Kind::Diff, &gate, held);
    }
    until(|| stats(&executor, Kind::Diff).begun == PERMITS as u64).await;
    let passed = behind(&executor, Kind::Diff, &gate, Duration::ZERO);
    until(|| passed.is_finished()).await;
    assert_eq!(passed.await.expect("an answer"), Err(Error::Deadline));
    assert_eq!(stats(&executor, Kind::Diff).refused, 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_a_deadline_has_half_a_minute() {
    let deadline = small().run(Kind::Read, Stop::deadline).await;
    let expected = Instant::now() + Duration::from_secs(30);
    assert_eq!(deadline, Ok(Some(expected)));
}

#[tokio::test(start_paused = true)]
async fn at_the_end_a_kind_without_a_queue_is_not_full_but_stopping() {
    let executor = Executor::new(1);
    assert_eq!(executor.stop(Duration::ZERO).await, 0);
    let refused = executor.run(Kind::Maintain, |_| ()).await;
    assert_eq!(refused, Err(Error::Stopping));
    assert_eq!(stats(&executor, Kind::Maintain).refused, 0);
}

#[test]
fn a_caller_is_told_whether_to_come_again() {
    let codes = [
        Error::Full(Kind::Diff),
        Error::Late(Kind::Diff),
        Error::Deadline,
        Error::Left,
        Error::Stopping,
        Error::Failed("it panicked".to_owned()),
    ]
    .map(|error| Failure::from(error).code);
    assert_eq!(
        codes,
        [
            Code::Overloaded,
            Code::Overloaded,
            Code::Timeout,
            Code::Timeout,
            Code::ShuttingDown,
            Code::InternalError,
        ]
    );
}
