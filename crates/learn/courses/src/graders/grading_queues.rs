//! The queues of solutions that wait to be graded.
//!
//! A solution may take seconds. So one of each learner is graded at a time; and as a caller names
//! as many learners as it likes, a caller never has all processors while there are several, and
//! waits after solutions that do not end. Its learners have its turns in the order in which they
//! came, and so have callers the processors. The queues are bounded, and a solution that waits
//! for long is refused with a time to try again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Solutions of a learner that are graded or wait.
const MAX_SOLUTIONS_PER_LEARNER: usize = 32;
/// Solutions of a caller, whatever learners it names, that are graded or wait.
const MAX_SOLUTIONS_PER_CALLER: usize = 128;
/// Solutions of all learners that are graded or wait.
const MAX_SOLUTIONS: usize = 512;
/// How long a solution waits at most: the rest of a call's time is for grading it.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// When a queue may be shorter.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// How long a caller waits after the first solution that does not end, the second, and so on. The
/// first is free: a learner's mistake is no attack.
const STRIKE_DELAY: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];
/// When such solutions are forgotten.
const STRIKE_TIMEOUT: Duration = Duration::from_secs(600);

/// Too many solutions are to be graded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// The learner handed in much at once.
    #[error("The solutions that you handed in before are still being graded")]
    Learner,
    /// The caller did, for its learners together.
    #[error(
        "The solutions of all your learners are still being graded, or some before did not end"
    )]
    Caller,
    /// All callers together did.
    #[error("The server is at its limit of solutions to grade")]
    Server,
}

impl Busy {
    /// When to try again.
    #[must_use]
    pub fn retry_after(self) -> Duration {
        RETRY_DELAY
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct GradingQueues {
    processors: Arc<Semaphore>,
    /// The processors that one caller may have at once.
    processors_per_caller: usize,
    queues: Arc<Mutex<Queues>>,
}

impl fmt::Debug for GradingQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GradingQueues").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Queues {
    of_callers: HashMap<String, CallerQueue>,
    all: usize,
}

/// The solutions of a caller.
struct CallerQueue {
    /// A permit for each processor that the caller may have.
    turn: Arc<Semaphore>,
    of_learners: HashMap<String, LearnerQueue>,
    slots: usize,
    /// Its solutions that did not end, and when it has its next turn.
    strikes: usize,
    free_at: Instant,
}

struct LearnerQueue {
    /// One permit, which goes to the next in the order in which they came.
    turn: Arc<Semaphore>,
    slots: usize,
}

impl CallerQueue {
    fn new(processors: usize) -> Self {
        Self {
            turn: Arc::new(Semaphore::new(processors)),
            of_learners: HashMap::new(),
            slots: 0,
            strikes: 0,
            free_at: Instant::now(),
        }
    }

    fn is_struck(&self) -> bool {
        self.strikes > 0 && self.free_at.elapsed() < STRIKE_TIMEOUT
    }

    fn strike(&mut self) {
        let before = if self.is_struck() { self.strikes } else { 0 };
        let [.., longest] = STRIKE_DELAY;
        self.strikes = before + 1;
        self.free_at = Instant::now() + *STRIKE_DELAY.get(before).unwrap_or(&longest);
    }
}

/// The right to have one solution graded, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    // Dropped in this order. The slot goes last: as long as the turn is taken the queue is in the
    // map, so that a new call waits in it, and does not start with a queue of its own.
    _processor: Option<[OwnedSemaphorePermit; 2]>,
    _own: OwnedSemaphorePermit,
    slot: QueueSlot,
}

impl Turn {
    /// Records that the solution did not come to an end: its caller waits longer for its next.
    pub(super) fn strike(&self) {
        let mut queues = self.slot.queues.lock();
        if let Some(queue) = queues.of_callers.get_mut(&self.slot.caller) {
            queue.strike();
        }
        // Here, where a caller has paid seconds for its entry, the map is kept short.
        let is_needed = |queue: &CallerQueue| queue.slots > 0 || queue.is_struck();
        queues.of_callers.retain(|_, queue| is_needed(queue));
    }
}

/// A slot in a learner's queue.
#[derive(Debug)]
struct QueueSlot {
    queues: GradingQueues,
    caller: String,
    learner: String,
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        queues.all -= 1;
        let Some(of_caller) = queues.of_callers.get_mut(&self.caller) else {
            return;
        };
        of_caller.slots -= 1;
        if let Some(queue) = of_caller.of_learners.get_mut(&self.learner) {
            queue.slots -= 1;
            // Learners come and go, so a queue that nobody waits in is forgotten.
            if queue.slots == 0 {
                of_caller.of_learners.remove(&self.learner);
            }
        }
        if of_caller.slots == 0 && !of_caller.is_struck() {
            queues.of_callers.remove(&self.caller);
        }
    }
}

impl GradingQueues {
    pub(super) fn new(processors: usize) -> Self {
        Self {
            processors: Arc::new(Semaphore::new(processors)),
            // One is left for the others, where there is another.
            processors_per_caller: processors.saturating_sub(1).max(1),
            queues: Arc::default(),
        }
    }

    /// A processor for a solution that is no learner's. None: the semaphore is closed.
    pub(super) async fn any(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.processors).acquire_owned().await.ok()
    }

    /// The turn of a caller's learner, with a processor where one is needed.
    pub(super) async fn of(
        &self,
        caller: &str,
        learner: &str,
        is_computed: bool,
    ) -> Result<Turn, Busy> {
        // The slot is taken before the waits: if the call is canceled in one of them, its drop
        // gives the slot back.
        let (slot, of_caller, turn) = self.slot(caller, learner)?;
        // One deadline for all waits.
        let until = Instant::now() + QUEUE_TIMEOUT;
        // The learner's own turn first, then the caller's, then a processor: who waits for
        // themselves holds nothing that others could use.
        let own = timeout_at(until, turn.acquire_owned()).await;
        let own = own.ok().and_then(Result::ok).ok_or(Busy::Learner)?;
        let processor = if is_computed {
            Some(self.processor(caller, of_caller, until).await?)
        } else {
            None
        };
        Ok(Turn {
            _processor: processor,
            _own: own,
            slot,
        })
    }

    /// A processor, and the caller's share of all.
    async fn processor(
        &self,
        caller: &str,
        of_caller: Arc<Semaphore>,
        until: Instant,
    ) -> Result<[OwnedSemaphorePermit; 2], Busy> {
        let of_caller = timeout_at(until, of_caller.acquire_owned()).await;
        let of_caller = of_caller.ok().and_then(Result::ok).ok_or(Busy::Caller)?;
        let free_at = self.lock().of_callers.get(caller).map(|it| it.free_at);
        if let Some(free_at) = free_at.filter(|at| *at > Instant::now()) {
            let wait = timeout_at(until, sleep_until(free_at)).await;
            wait.map_err(|_| Busy::Caller)?;
        }
        let processor = timeout_at(until, self.any()).await;
        Ok([processor.ok().flatten().ok_or(Busy::Server)?, of_caller])
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot in a learner's queue, with the turns of its caller and its own.
    fn slot(
        &self,
        caller: &str,
        learner: &str,
    ) -> Result<(QueueSlot, Arc<Semaphore>, Arc<Semaphore>), Busy> {
        let mut queues = self.lock();
        let queues = &mut *queues;
        // Before the entries are made: who is refused must leave no empty queue in the maps.
        if queues.all >= MAX_SOLUTIONS {
            return Err(Busy::Server);
        }
        let of_caller = queues.of_callers.entry(caller.to_owned());
        let of_caller = of_caller.or_insert_with(|| CallerQueue::new(self.processors_per_caller));
        let taken = of_caller.of_learners.get(learner).map_or(0, |it| it.slots);
        if taken >= MAX_SOLUTIONS_PER_LEARNER {
            return Err(Busy::Learner);
        }
        if of_caller.slots >= MAX_SOLUTIONS_PER_CALLER {
            return Err(Busy::Caller);
        }
        let queue = of_caller.of_learners.entry(learner.to_owned());
        let queue = queue.or_insert_with(|| LearnerQueue {
            turn: Arc::new(Semaphore::new(1)),
            slots: 0,
        });
        queue.slots += 1;
        of_caller.slots += 1;
        queues.all += 1;
        let slot = QueueSlot {
            queues: self.clone(),
            caller: caller.to_owned(),
            learner: learner.to_owned(),
        };
        Ok((slot, Arc::clone(&of_caller.turn), Arc::clone(&queue.turn)))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_learner_with_much_to_grade_waits_for_themselves_and_no_one_else_does() {
        let turns = GradingQueues::new(2);
        let first = turns.of("ann", "ann", true).await.expect("a turn");
        let mut second = pin!(turns.of("ann", "ann", true));
        assert!(poll!(&mut second).is_pending(), "one at a time");
        let other = turns
            .of("bob", "bob", true)
            .await
            .expect("a processor is free");
        drop(first);
        let second = second.await.expect("a turn");
        drop((second, other));
        assert!(turns.queues.lock().expect("queues").of_callers.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn learners_have_processors_in_the_order_in_which_they_came() {
        let turns = GradingQueues::new(1);
        let first = turns.of("ann", "ann", true).await.expect("a turn");
        let mut again = pin!(turns.of("ann", "ann", true));
        assert!(poll!(&mut again).is_pending());
        let mut bob = pin!(turns.of("bob", "bob", true));
        assert!(poll!(&mut bob).is_pending());
        drop(first);
        assert!(poll!(&mut again).is_pending(), "bob came before");
        let bob = bob.await.expect("a turn");
        drop(bob);
        drop(again.await.expect("a turn"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_the_bound_is_refused_at_once() {
        let turns = GradingQueues::new(1);
        let running = turns.of("ann", "ann", true).await.expect("a turn");
        let mut waiting: Vec<_> = (1..MAX_SOLUTIONS_PER_LEARNER)
            .map(|_| Box::pin(turns.of("ann", "ann", true)))
            .collect();
        for one in &mut waiting {
            assert!(poll!(one).is_pending());
        }
        let before = Instant::now();
        assert_eq!(
            turns.of("ann", "ann", true).await.err(),
            Some(Busy::Learner)
        );
        assert_eq!(before.elapsed(), Duration::ZERO);
        // Whoever leaves makes place.
        waiting.pop();
        let mut next = pin!(turns.of("ann", "ann", true));
        assert!(poll!(&mut next).is_pending());
        let names: Vec<_> = (0..=MAX_SOLUTIONS)
            .map(|number| format!("learner {number}"))
            .collect();
        let mut others = Vec::new();
        for name in &names {
            let mut one = Box::pin(turns.of(name, name, true));
            match poll!(&mut one) {
                std::task::Poll::Pending => others.push(one),
                std::task::Poll::Ready(turn) => assert_eq!(turn.err(), Some(Busy::Server)),
            }
        }
        assert_eq!(others.len(), MAX_SOLUTIONS - MAX_SOLUTIONS_PER_LEARNER);
        drop(running);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_longer_than_a_call_has_time() {
        let turns = GradingQueues::new(1);
        let _running = turns.of("ann", "ann", true).await.expect("a turn");
        let before = Instant::now();
        assert_eq!(turns.of("bob", "bob", true).await.err(), Some(Busy::Server));
        assert_eq!(
            turns.of("ann", "ann", true).await.err(),
            Some(Busy::Learner)
        );
        assert_eq!(before.elapsed(), 2 * QUEUE_TIMEOUT);
        // What a person or a worker grades needs no processor.
        turns.of("bob", "bob", false).await.expect("a turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_many_learners_leaves_a_processor_to_others() {
        let turns = GradingQueues::new(2);
        let names: Vec<_> = (0..24).map(|number| format!("learner {number}")).collect();
        let mut turns_of_ann: Vec<_> = names
            .iter()
            .map(|name| Box::pin(turns.of("ann", name, true)))
            .collect();
        let mut running = Vec::new();
        for turn in &mut turns_of_ann {
            if let std::task::Poll::Ready(turn) = poll!(turn) {
                running.push(turn.expect("a turn"));
            }
        }
        assert_eq!(running.len(), 1);
        let mut bob = pin!(turns.of("bob", "bob", true));
        assert!(poll!(&mut bob).is_ready(), "at once");
    }

    #[tokio::test(start_paused = true)]
    async fn who_handed_in_two_loops_waits_longer_each_time_whatever_learners_it_names() {
        let turns = GradingQueues::new(2);
        let mut waited = Vec::new();
        for number in 0..6 {
            let before = Instant::now();
            let learner = format!("learner {number}");
            let turn = turns.of("ann", &learner, true).await.expect("a turn");
            waited.push(before.elapsed().as_millis());
            turn.strike();
        }
        assert_eq!(waited, [0, 0, 2_500, 5_000, 10_000, 10_000]);
        let before = Instant::now();
        let bob = turns.of("bob", "bob", true).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
        drop(bob.expect("a turn"));
        // They are forgotten.
        tokio::time::advance(2 * STRIKE_TIMEOUT).await;
        let before = Instant::now();
        drop(turns.of("ann", "ann", true).await.expect("a turn"));
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert!(turns.lock().of_callers.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_does_not_fill_the_queue_with_learners_that_it_makes_up() {
        let turns = GradingQueues::new(1);
        let running = turns.of("ann", "ann", true).await.expect("a turn");
        let names: Vec<_> = (0..MAX_SOLUTIONS)
            .map(|number| number.to_string())
            .collect();
        let mut waiting = Vec::new();
        for name in &names {
            let mut one = Box::pin(turns.of("ann", name, true));
            match poll!(&mut one) {
                std::task::Poll::Pending => waiting.push(one),
                std::task::Poll::Ready(turn) => assert_eq!(turn.err(), Some(Busy::Caller)),
            }
        }
        assert_eq!(waiting.len(), MAX_SOLUTIONS_PER_CALLER - 1);
        drop(running);
        turns.of("bob", "bob", false).await.expect("a turn");
    }
}
