//! Achievements: rules that are data, checked after each completed exercise.

use courses::{Achievement, Condition};

use crate::LearnerState;
use crate::record::{Attempted, Earned, Profile};

/// The achievements that are earned now and were not before.
pub(crate) fn earned(after: &LearnerState, profile: &Profile) -> Vec<Earned> {
    let all = after.catalog.paths().iter();
    let all = all.flat_map(|path| &path.achievements);
    // By id: one whose rule was changed later is not earned a second time.
    let new = all.filter(|it| !profile.achievements.iter().any(|had| had.id == it.id));
    new.filter(|it| holds(&it.when, after, profile))
        .map(|it: &Achievement| Earned::of(it, after.now))
        .collect()
}

/// A condition holds in all its parts.
fn holds(condition: &Condition, after: &LearnerState, profile: &Profile) -> bool {
    let Condition {
        exercise_completed,
        path_completed,
        concept_learned,
        exercises_completed,
        first_tries,
        without_hints,
        streak_days,
    } = condition;
    let is_completed = |id: &String| after.attempt(id).completed.is_some();
    // Of the exercises that there are: one that left the catalog no longer counts.
    let reaches = |min: &u32, wanted: &dyn Fn(&Attempted) -> bool| {
        let attempts = after.catalog.exercises().map(|it| after.attempt(&it.id));
        let count = attempts.filter(|attempted| wanted(attempted)).count();
        usize::try_from(*min).is_ok_and(|min| count >= min)
    };
    exercise_completed.as_ref().is_none_or(is_completed)
        && path_completed.as_ref().is_none_or(|id| {
            let path = after.catalog.path(id);
            path.is_some_and(|path| path.exercises.iter().all(|it| is_completed(&it.id)))
        })
        && concept_learned
            .as_ref()
            .is_none_or(|concept| after.has_learned(concept))
        && exercises_completed
            .as_ref()
            .is_none_or(|min| reaches(min, &|it| it.completed.is_some()))
        && first_tries
            .as_ref()
            .is_none_or(|min| reaches(min, &|it| it.completed.is_some() && it.attempts == 1))
        && without_hints
            .as_ref()
            .is_none_or(|min| reaches(min, &|it| it.unaided))
        && streak_days
            .as_ref()
            .is_none_or(|min| profile.streak.longest() >= *min)
}
