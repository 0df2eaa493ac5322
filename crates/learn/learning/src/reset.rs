//! Setting a path back.

use crate::change::Change;
use crate::record::{ActivityKind, Attempted};
use crate::{Error, Learner, Learning};

/// What was reset, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// Exercises that are as new, or would be.
    pub exercises: usize,
    /// The share that was completed before, 0 to 100, rounded.
    pub previous_percent: usize,
}

impl Reset {
    /// What was earned stays: a reset takes nothing away but progress.
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
            let standing = self.standing(learner)?;
            let path = standing.catalog.path(path_id);
            let path = path.ok_or_else(|| Error::no_path(&standing.catalog, path_id))?;
            let begun: Vec<_> = path
                .exercises
                .iter()
                .map(|exercise| (&exercise.id, standing.attempt(&exercise.id)))
                .filter(|(_, attempted)| attempted.started.is_some())
                .collect();
            let reset = Reset {
                exercises: begun.len(),
                previous_percent: standing.completion(path).percent(),
            };
            if !confirm || begun.is_empty() {
                return Ok(reset);
            }
            let mut change = Change::of(&standing);
            for (exercise, attempted) in begun {
                let fresh = Attempted {
                    round: standing.round(exercise).max(attempted.round) + 1,
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
