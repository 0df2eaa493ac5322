//! The executor: what is begun, what is refused, and that permits come back.

mod begun;

use std::sync::{Condvar, Mutex};

use proptest::prelude::*;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance};

use super::*;

const PERMITS: usize = 2;
const QUEUE: usize = 4;

/// Turns of `until`: some seconds of a processor, which threads have beside it.
const MAX_TURNS: u32 = 4_000_000;

/// Keeps work running until it is opened.
#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().expect("a lock") = true;
        self.changed.notify_all();
    }

    /// Work that obeys its stop signal.
    fn pass(&self, stop: &Stop) -> Result<(), Error> {
        let mut is_open = self.is_open.lock().expect("a lock");
        while !*is_open {
            stop.check()?;
            let look_again = Duration::from_millis(1);
            is_open = self
                .changed
                .wait_timeout(is_open, look_again)
                .expect("a lock")
                .0;
        }
        Ok(())
    }
}

/// Opens its gate when a test ends, however it ends: a runtime waits for its threads.
#[derive(Debug, Default)]
struct Gatekeeper(Arc<Gate>);

impl std::ops::Deref for Gatekeeper {
    type Target = Arc<Gate>;

    fn deref(&self) -> &Arc<Gate> {
        &self.0
    }
}

impl Drop for Gatekeeper {
    fn drop(&mut self) {
        self.0.open();
    }
}

fn small() -> Executor {
    Executor::with_pools(|kind| Pool::new(PERMITS, kind.queue().map(|_| QUEUE)))
}

fn stats(executor: &Executor, kind: Kind) -> Stats {
    let mut all = executor.stats();
    all.find(|(known, _)| *known == kind).expect("the kind").1
}

/// A task that runs work behind a gate, with a deadline.
fn behind(
    executor: &Executor,
    kind: Kind,
    gate: &Arc<Gate>,
    deadline: Duration,
) -> JoinHandle<Result<(), Error>> {
    let (executor, gate) = (executor.clone(), Arc::clone(gate));
    let deadline = Instant::now() + deadline;
    tokio::spawn(with_deadline(deadline, async move {
        executor
            .run_fallible(kind, move |stop| gate.pass(stop))
            .await
    }))
}

/// A task that stops an executor, and says how much still runs then.
fn stop(executor: &Executor, patience: Duration) -> JoinHandle<usize> {
    let executor = executor.clone();
    tokio::spawn(async move { executor.stop(patience).await })
}

/// Lets all tasks run until each of them waits for something.
async fn settle() {
    for _ in 0..8 {
        yield_now().await;
    }
}

/// Waits for what threads do.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let asked_by = std::panic::Location::caller();
    async move {
        for _ in 0..MAX_TURNS {
            if is_so() {
                return;
            }
            yield_now().await;
        }
        panic!("what {asked_by} waits for did not happen");
    }
}

#[tokio::test(start_paused = true)]
async fn of_ten_thousand_calls_that_cannot_wait_none_is_begun_and_the_next_is_served_at_once() {
    let executor = Executor::new(2);
    let (gate, held) = (Gatekeeper::default(), Duration::from_secs(3600));
    let long: Vec<_> = (0..2)
        .map(|_| behind(&executor, Kind::Search, &gate, held))
        .collect();
    until(|| stats(&executor, Kind::Search).begun == 2).await;

    let short: Vec<_> = (0..10_000)
        .map(|_| behind(&executor, Kind::Search, &gate, Duration::from_millis(10)))
        .collect();
    until(|| stats(&executor, Kind::Search).refused == 9_488).await;
    let full = stats(&executor, Kind::Search);
    assert_eq!((full.begun, full.waiting), (2, 512));
    advance(Duration::from_millis(5)).await;
    until(|| short.iter().all(JoinHandle::is_finished)).await;
    let mut answers = Vec::new();
    for call in short {
        answers.push(call.await.expect("an answer").expect_err("a refusal"));
    }
    assert_eq!(
        answers
            .iter()
            .filter(|a| **a == Error::Full(Kind::Search))
            .count(),
        9_488
    );
    assert_eq!(
        answers
            .iter()
            .filter(|a| **a == Error::Late(Kind::Search))
            .count(),
        512
    );

    gate.open();
    for call in long {
        assert_eq!(call.await.expect("an answer"), Ok(()));
    }
    let next = behind(&executor, Kind::Search, &gate, held);
    assert_eq!(next.await.expect("an answer"), Ok(()));
    let after = Stats {
        permits: 2,
        begun: 3,
        finished: 3,
        refused: 10_000,
        ..Stats::default()
    };
    assert_eq!(stats(&executor, Kind::Search), after);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_full_does_not_hold_up_another() {
    let executor = small();
    let (gate, held) = (Gatekeeper::default(), Duration::from_secs(3600));
    let diffs: Vec<_> = (0..PERMITS + QUEUE)
        .map(|_| behind(&executor, Kind::Diff, &gate, held))
        .collect();
    until(|| stats(&executor, Kind::Diff).begun == PERMITS as u64).await;
    let refused = behind(&executor, Kind::Diff, &gate, held);
    until(|| refused.is_finished()).await;
    let refused = refused.await.expect("an answer");
    assert_eq!(refused, Err(Error::Full(Kind::Diff)));
    assert_eq!(executor.run(Kind::Read, |_| 7).await, Ok(7));
    gate.open();
    for diff in diffs {
        assert_eq!(diff.await.expect("an answer"), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_held_until_the_work_ends_and_not_until_its_caller_leaves() {
    let executor = small();
    let gate = Gatekeeper::default();
    // This work does not look at its signal.
    let deaf = {
        let (executor, gate) = (executor.clone(), Arc::clone(&gate));
        tokio::spawn(async move {
            executor
                .run(Kind::Diff, move |_| gate.pass(&Stop::never()))
                .await
        })
    };
    until(|| stats(&executor, Kind::Diff).begun == 1).await;
    deaf.abort();
    assert!(deaf.await.expect_err("it left").is_cancelled());
    let seen = stats(&executor, Kind::Diff);
    assert_eq!((seen.in_use, seen.abandoned), (1, 1));
    gate.open();
    until(|| stats(&executor, Kind::Diff).in_use == 0).await;
}

#[tokio::test(start_paused = true)]
async fn work_stops_when_its_caller_leaves_and_when_its_deadline_passes() {
    let executor = small();
    let gate = Gatekeeper::default();
    let left = behind(&executor, Kind::Diff, &gate, Duration::from_secs(3600));
    until(|| stats(&executor, Kind::Diff).begun == 1).await;
    let late = behind(&executor, Kind::Diff, &gate, Duration::from_secs(1));
    until(|| stats(&executor, Kind::Diff).begun == 2).await;
    left.abort();
    until(|| stats(&executor, Kind::Diff).in_use == 1).await;
    advance(Duration::from_secs(1)).await;
    until(|| late.is_finished()).await;
    assert_eq!(late.await.expect("an answer"), Err(Error::Deadline));
    assert_eq!(stats(&executor, Kind::Diff).in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_runs_stops_and_what_waits_is_told() {
    let executor = small();
    let (gate, held) = (Gatekeeper::default(), Duration::from_secs(3600));
    let calls: Vec<_> = (0..PERMITS + QUEUE)
        .map(|_| behind(&executor, Kind::Compose, &gate, held))
        .collect();
    until(|| stats(&executor, Kind::Compose).begun == PERMITS as u64).await;
    let told = Instant::now();
    let stopped = stop(&executor, held);
    until(|| stopped.is_finished()).await;
    assert_eq!(stopped.await.expect("an answer"), 0);
    assert_eq!(told.elapsed(), Duration::ZERO, "it ends with the last work");
    for call in calls {
        assert_eq!(call.await.expect("an answer"), Err(Error::Stopping));
    }
    assert_eq!(executor.run(Kind::Read, |_| ()).await, Err(Error::Stopping));
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_waits_is_told_at_once_though_what_runs_is_deaf() {
    let executor = small();
    let gate = Gatekeeper::default();
    for _ in 0..PERMITS {
        let (executor, gate) = (executor.clone(), Arc::clone(&gate));
        let deaf = move |_: &Stop| gate.pass(&Stop::never());
        tokio::spawn(async move { executor.run(Kind::Compose, deaf).await });
    }
    until(|| stats(&executor, Kind::Compose).begun == PERMITS as u64).await;
    let waits = behind(&executor, Kind::Compose, &gate, Duration::from_secs(3600));
    until(|| stats(&executor, Kind::Compose).waiting == 1).await;
    let stopped = stop(&executor, Duration::ZERO);
    settle().await;
    assert!(stopped.is_finished(), "the server waits for what is deaf");
    assert_eq!(stopped.await.expect("an answer"), PERMITS);
    assert!(waits.is_finished(), "it waits for what is deaf");
    assert_eq!(waits.await.expect("an answer"), Err(Error::Stopping));
    gate.open();
}

#[tokio::test(start_paused = true)]
async fn what_waits_with_its_stream_has_its_time_from_when_it_is_begun() {
    let executor = small();
    let (gate, held) = (Gatekeeper::default(), Duration::from_secs(3600));
    for _ in 0..PERMITS {
        behind(&executor, Kind::Import, &gate, held);
    }
    until(|| stats(&executor, Kind::Import).begun == PERMITS as u64).await;
    let waits = behind(&executor, Kind::Import, &gate, Duration::from_secs(1));
    until(|| stats(&executor, Kind::Import).waiting == 1).await;
    advance(Duration::from_secs(2)).await;
    settle().await;
    assert!(
        !waits.is_finished(),
        "it waits for as long as its stream does"
    );
    gate.open();
    assert_eq!(waits.await.expect("an answer"), Ok(()));
}

#[test]
fn each_kind_has_its_name_its_permits_and_its_queue() {
    let kinds = Kind::ALL.map(|kind| {
        let permits = [1, 8].map(|processors| kind.permits(processors));
        (kind.name(), permits, kind.queue())
    });
    assert_eq!(
        kinds,
        [
            ("read", [2, 8], Some(512)),
            ("search", [2, 8], Some(512)),
            ("compose", [2, 8], Some(128)),
            ("publish", [2, 8], Some(512)),
            ("import", [2, 8], None),
            ("diff", [1, 4], Some(32)),
            ("export", [1, 4], Some(32)),
            ("analyze", [1, 4], Some(32)),
            ("grade", [1, 4], Some(128)),
            ("maintain", [1, 1], Some(0)),
        ]
    );
    // Of the permits of all kinds, and 72 for what is not run here.
    assert_eq!([1, 8].map(threads), [15 + 72, 57 + 72]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_begins_nothing() {
    let executor = small();
    let work = executor.run(Kind::Read, |_| ());
    assert_eq!(
        with_deadline(Instant::now(), work).await,
        Err(Error::Deadline)
    );
    assert_eq!(stats(&executor, Kind::Read).begun, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_set_when_its_time_has_come_and_one_without_a_time_never() {
    let (never, deadline) = (Stop::never(), Instant::now() + Duration::from_secs(1));
    let stop = Stop::at(deadline);
    assert_eq!((stop.deadline(), never.deadline()), (Some(deadline), None));
    assert!(!stop.is_set() && !never.is_set());
    advance(Duration::from_secs(1)).await;
    assert!(stop.is_set() && !never.is_set());
    assert_eq!(stop.check(), Err(Error::Deadline));
}

#[test]
fn there_is_a_thread_for_every_permit() {
    for processors in [1, 2, 8, 64] {
        let executor = Executor::new(processors);
        let permits: usize = executor.stats().map(|(_, stats)| stats.permits).sum();
        assert!(threads(processors) > permits);
        assert!(executor.stats().all(|(_, stats)| stats.permits > 0));
    }
}

/// What a caller does.
#[derive(Debug, Clone, Copy)]
enum CallerKind {
    Stays,
    Leaves,
    HasLittleTime,
    Panics,
}

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Comes(CallerKind),
    /// The first caller that was to leave does, wherever it is by then.
    Leaves,
    TimePasses,
    WorkEnds,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        4 => Just(CallerKind::Stays),
        4 => Just(CallerKind::Leaves),
        2 => Just(CallerKind::HasLittleTime),
        1 => Just(CallerKind::Panics),
    ];
    prop_oneof![
        6 => kind.prop_map(Step::Comes),
        3 => Just(Step::Leaves),
        1 => Just(Step::TimePasses),
        2 => Just(Step::WorkEnds),
    ]
}

async fn permits_come_back(steps: Vec<Step>) {
    let (executor, kind) = (small(), Kind::Compose);
    let mut gate = Arc::new(Gate::default());
    let mut gates = vec![Gatekeeper(Arc::clone(&gate))];
    let (mut callers, mut leaving) = (Vec::new(), std::collections::VecDeque::new());
    for step in steps {
        match step {
            Step::Comes(CallerKind::Stays) => {
                callers.push(behind(&executor, kind, &gate, Duration::from_secs(3600)));
            }
            Step::Comes(CallerKind::Leaves) => {
                leaving.push_back(behind(&executor, kind, &gate, Duration::from_secs(3600)));
            }
            Step::Comes(CallerKind::HasLittleTime) => {
                callers.push(behind(&executor, kind, &gate, Duration::from_millis(10)));
            }
            Step::Comes(CallerKind::Panics) => {
                let executor = executor.clone();
                callers.push(tokio::spawn(async move {
                    executor
                        .run(kind, |_| std::panic::resume_unwind(Box::new("on purpose")))
                        .await
                }));
            }
            Step::Leaves => {
                if let Some(caller) = leaving.pop_front() {
                    caller.abort();
                    callers.push(caller);
                }
            }
            Step::TimePasses => advance(Duration::from_millis(6)).await,
            Step::WorkEnds => {
                gate.open();
                gate = Arc::default();
                gates.push(Gatekeeper(Arc::clone(&gate)));
            }
        }
        // Some steps meet callers that were not polled yet, others those that wait.
        if !matches!(step, Step::Comes(CallerKind::Leaves)) {
            settle().await;
        }
        let now = stats(&executor, kind);
        assert!(now.in_use <= PERMITS && now.waiting <= QUEUE, "{now:?}");
    }
    for gate in &gates {
        gate.open();
    }
    for caller in callers.into_iter().chain(leaving) {
        let _answered_or_left = caller.await;
    }
    until(|| stats(&executor, kind).in_use == 0).await;
    assert_eq!(stats(&executor, kind).waiting, 0);
    // The next ones are served as if nothing had been.
    for _ in 0..PERMITS {
        assert_eq!(executor.run(kind, |_| 7).await, Ok(7));
    }
    assert_eq!(executor.stop(Duration::from_secs(1)).await, 0);
}

proptest! {
    // A case that fails may be one that waits for long, so few shorter ones are looked for.
    #![proptest_config(ProptestConfig { max_shrink_iters: 8, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn permits_come_back_whenever_callers_leave(steps in prop::collection::vec(step(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(permits_come_back(steps));
    }
}

#[test]
fn all_kinds_are_listed_in_their_order_by_which_their_pools_are_found() {
    let listed = Kind::ALL.map(|kind| kind as usize);
    assert_eq!(listed, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}
