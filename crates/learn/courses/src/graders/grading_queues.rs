//! The queues of solutions that wait to be graded.
//!
//! A solution may take seconds. So one of each learner is graded at a time, and processors
//! go to learners in the order in which they came: a learner who hands in many waits for
//! themselves. The queues are bounded, and a solution that waits for long is refused with a
//! time to try again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Solutions of a learner that are graded or wait.
const MAX_SOLUTIONS_PER_LEARNER: usize = 32;
/// Solutions of all learners that are graded or wait.
const MAX_SOLUTIONS: usize = 512;
/// How long a solution waits at most: the rest of a call's time is for grading it.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// When a queue may be shorter.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Too many solutions are to be graded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// The learner handed in much at once.
    #[error("The solutions that you handed in before are still being graded")]
    Learner,
    /// All learners together did.
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
    queues: Arc<Mutex<Queues>>,
}

impl fmt::Debug for GradingQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GradingQueues").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Queues {
    of_learners: HashMap<String, Queue>,
    all: usize,
}

struct Queue {
    /// One permit, which goes to the next in the order in which they came.
    turn: Arc<Semaphore>,
    slots: usize,
}

/// The right to have one solution graded, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    // Dropped in this order. The slot goes last: as long as the turn is taken the queue is in the
    // map, so that a new call waits in it, and does not start with a queue of its own.
    _processor: Option<OwnedSemaphorePermit>,
    _own: OwnedSemaphorePermit,
    _slot: QueueSlot,
}

/// A slot in a learner's queue.
#[derive(Debug)]
struct QueueSlot {
    queues: GradingQueues,
    learner: String,
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        queues.all -= 1;
        if let Some(queue) = queues.of_learners.get_mut(&self.learner) {
            queue.slots -= 1;
            // Learners come and go, so a queue that nobody waits in is forgotten.
            if queue.slots == 0 {
                queues.of_learners.remove(&self.learner);
            }
        }
    }
}

impl GradingQueues {
    pub(super) fn new(processors: usize) -> Self {
        Self {
            processors: Arc::new(Semaphore::new(processors)),
            queues: Arc::default(),
        }
    }

    /// A processor for a solution that is no learner's. None: the semaphore is closed.
    pub(super) async fn any(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.processors).acquire_owned().await.ok()
    }

    /// A learner's turn, with a processor where one is needed.
    pub(super) async fn of(&self, learner: &str, is_computed: bool) -> Result<Turn, Busy> {
        // The slot is taken before the waits: if the call is canceled in one of them, its drop
        // gives the slot back.
        let (slot, turn) = self.slot(learner)?;
        // One deadline for both waits.
        let until = Instant::now() + QUEUE_TIMEOUT;
        // The learner's own turn first, then a processor: a learner who waits for themselves holds
        // none that others could use.
        let own = timeout_at(until, turn.acquire_owned()).await;
        let own = own.ok().and_then(Result::ok).ok_or(Busy::Learner)?;
        let processor = if is_computed {
            let processor = timeout_at(until, self.any()).await;
            Some(processor.ok().flatten().ok_or(Busy::Server)?)
        } else {
            None
        };
        Ok(Turn {
            _processor: processor,
            _own: own,
            _slot: slot,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, learner: &str) -> Result<(QueueSlot, Arc<Semaphore>), Busy> {
        let mut queues = self.lock();
        let queues = &mut *queues;
        // Before the entry is made: a refused learner must not leave an empty queue in the map.
        if queues.all >= MAX_SOLUTIONS {
            return Err(Busy::Server);
        }
        let fresh = || Queue {
            turn: Arc::new(Semaphore::new(1)),
            slots: 0,
        };
        let queue = queues.of_learners.entry(learner.to_owned());
        let queue = queue.or_insert_with(fresh);
        if queue.slots >= MAX_SOLUTIONS_PER_LEARNER {
            return Err(Busy::Learner);
        }
        queue.slots += 1;
        queues.all += 1;
        let slot = QueueSlot {
            queues: self.clone(),
            learner: learner.to_owned(),
        };
        Ok((slot, Arc::clone(&queue.turn)))
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
        let first = turns.of("ann", true).await.expect("a turn");
        let mut second = pin!(turns.of("ann", true));
        assert!(poll!(&mut second).is_pending(), "one at a time");
        let other = turns.of("bob", true).await.expect("a processor is free");
        drop(first);
        let second = second.await.expect("a turn");
        drop((second, other));
        assert!(turns.queues.lock().expect("queues").of_learners.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn learners_have_processors_in_the_order_in_which_they_came() {
        let turns = GradingQueues::new(1);
        let first = turns.of("ann", true).await.expect("a turn");
        let mut again = pin!(turns.of("ann", true));
        assert!(poll!(&mut again).is_pending());
        let mut bob = pin!(turns.of("bob", true));
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
        let running = turns.of("ann", true).await.expect("a turn");
        let mut waiting: Vec<_> = (1..MAX_SOLUTIONS_PER_LEARNER)
            .map(|_| Box::pin(turns.of("ann", true)))
            .collect();
        for one in &mut waiting {
            assert!(poll!(one).is_pending());
        }
        let before = Instant::now();
        assert_eq!(turns.of("ann", true).await.err(), Some(Busy::Learner));
        assert_eq!(before.elapsed(), Duration::ZERO);
        // Whoever leaves makes place.
        waiting.pop();
        let mut next = pin!(turns.of("ann", true));
        assert!(poll!(&mut next).is_pending());
        let names: Vec<_> = (0..=MAX_SOLUTIONS)
            .map(|number| format!("learner {number}"))
            .collect();
        let mut others = Vec::new();
        for name in &names {
            let mut one = Box::pin(turns.of(name, true));
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
        let _running = turns.of("ann", true).await.expect("a turn");
        let before = Instant::now();
        assert_eq!(turns.of("bob", true).await.err(), Some(Busy::Server));
        assert_eq!(turns.of("ann", true).await.err(), Some(Busy::Learner));
        assert_eq!(before.elapsed(), 2 * QUEUE_TIMEOUT);
        // What a person or a worker grades needs no processor.
        turns.of("bob", false).await.expect("a turn");
    }
}
