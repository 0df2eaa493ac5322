//! Progress of learners: what comes next, streaks, achievements, reviews.
//!
//! Rules:
//!
//! * **One submission is one record**, named by the learner, the exercise and the solution:
//!   the same again finds the first. A retry after a lost answer changes nothing.
//! * All that a submission changes is one batch: the submission, the exercise, the learner,
//!   the activities. Each states what it read, so that two at once are ordered.
//! * Solutions are graded before anything is written, and without a lock.
//! * A grading that failed is not recorded: it costs nothing.
//! * The clock may jump: no record orders by time, and a day that is counted stays.
//! * What is hidden in an exercise is not in any record.
//! * Who learns, reviews and waits for a turn is the caller, never what its request says:
//!   [`Learner::of`], [`Reviewer`], [`Submit::caller`].
//!
//! Not here: what an exercise is and how it is graded (`courses`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod achievements;
mod change;
mod error;
mod learner;
mod learner_state;
mod next;
mod open;
mod progress;
mod record;
mod reset;
mod review;
mod schedule;
mod streak;
mod submit;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwapOption;
use courses::{Catalog, Graders};
use jiff::Timestamp;
use model::Clock;
use store::Store;

pub use error::Error;
pub use learner::Learner;
pub use learner_state::{Completion, LearnerState, Status};
pub use next::{Next, Reason};
pub use open::{Hint, Opened};
pub use progress::{Overall, PathProgress, PathStatus, Progress};
pub use record::{Activity, ActivityKind, Earned, LastReview};
pub use reset::Reset;
pub use review::{Review, Reviewed, Reviewer, Waiting};
pub use streak::Streak;
pub use submit::{Submit, Submitted};
pub use watch::Watch;

/// The share of a score that a revealed hint costs.
pub const SCORE_PER_HINT: f64 = 0.05;

/// Attempts to write before a call gives up, as other writes of the learner come between.
// Each of them means that another write of the learner succeeded, so no two can block each other.
const MAX_CONFLICTS: usize = 64;

/// Learning over a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Learning(Arc<Inner>);

/// Reads the paths that come with the server.
type ReadCatalog = Box<dyn FnOnce() -> Arc<Catalog> + Send>;

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    /// The paths at first, which are read at the first call that needs them.
    first: LazyLock<Arc<Catalog>, ReadCatalog>,
    /// The paths that replaced them.
    replaced: ArcSwapOption<Catalog>,
    graders: Graders,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learning").finish_non_exhaustive()
    }
}

impl Learning {
    /// Learning with the paths that `read` returns, which may be replaced later. It is called
    /// once, when the paths are needed: a process without learners never reads them.
    #[must_use]
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        read: impl FnOnce() -> Catalog + Send + 'static,
        graders: Graders,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            first: LazyLock::new(Box::new(|| Arc::new(read()))),
            replaced: ArcSwapOption::empty(),
            graders,
        }))
    }

    /// The paths that there are now.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        let replaced = self.0.replaced.load_full();
        replaced.unwrap_or_else(|| Arc::clone(&self.0.first))
    }

    /// Reads the paths on a thread that may block: they are a tenth of a second of work. Code on
    /// a runtime awaits this before it asks for anything.
    pub async fn ready(&self) {
        if LazyLock::get(&self.0.first).is_none() {
            let this = self.clone();
            let reading = tokio::task::spawn_blocking(move || this.catalog());
            // If it panicked, the next access to the paths panics the same way, where the caller
            // is answered.
            drop(reading.await);
        }
    }

    /// Replaces the paths.
    pub fn replace_catalog(&self, catalog: Catalog) {
        self.0.replaced.store(Some(Arc::new(catalog)));
    }

    /// What grades solutions.
    #[must_use]
    pub fn graders(&self) -> &Graders {
        &self.0.graders
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    fn store(&self) -> &Store {
        &self.0.store
    }
}
