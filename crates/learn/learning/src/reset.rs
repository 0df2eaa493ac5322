//! Setting a path back.

use crate::change::Change;
use crate::record::{ActivityKind, Attempted};
use crate::{Error, Learner, Learning};

/// The extent of a reset, done or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// Exercises that are as new, or would be.
    pub exercises: usize,
    /// The share that was completed before, 0 to 100, rounded.
    pub previous_percent: usize,
}

impl Reset {
    /// A reset takes nothing away but progress.
    pub const RETAINS_ACHIEVEMENTS: bool = true;
}

impl Learning {
    /// Sets the progress of a learner in a path back to its beginning, where it is
    /// confirmed. Achievements and what was done stay.
    ///
    /// # Errors
    /// There is no such path.
    pub async fn reset(
        &self,
        path_id: &str,
        learner: &Learner,
        confirm: bool,
    ) -> Result<Reset, Error> {
        for _ in 0..crate::MAX_CONFLICTS {
            let state = self.state(learner)?;
            let path = state.path(path_id)?;
            let begun: Vec<_> = path
                .exercises
                .iter()
                .map(|exercise| (&exercise.id, state.attempt(&exercise.id)))
                .filter(|(_, attempted)| attempted.started.is_some())
                .collect();
            let reset = Reset {
                exercises: begun.len(),
                previous_percent: state.completion(path).percent(),
            };
            if !confirm || begun.is_empty() {
                return Ok(reset);
            }
            let mut change = Change::of(&state);
            for (exercise, attempted) in begun {
                // The records stay, for the round: without it an old solution, handed in again,
                // would be found as graded and change nothing.
                let fresh = Attempted {
                    round: state.round(exercise).max(attempted.round) + 1,
                    ..Attempted::default()
                };
                change.attempted(exercise, &fresh);
            }
            change.profile.paths.remove(path_id);
            let details = format!("Reset '{}'", path.name);
            change.activity(ActivityKind::ProgressReset, details, None);
            if change.commit(self).await? {
                return Ok(reset);
            }
        }
        Err(Error::Contention)
    }
}
