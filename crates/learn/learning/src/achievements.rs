//! What is earned: rules that are data, looked at after each completed exercise.

use courses::{Achievement, Condition};

use crate::LearnerState;
use crate::record::{Earned, Profile};

/// What is earned now and was not before.
pub(crate) fn earned(after: &LearnerState, profile: &Profile) -> Vec<Earned> {
    let all = after.catalog.paths().iter();
    let all = all.flat_map(|path| &path.achievements);
    let new = all.filter(|it| !profile.achievements.iter().any(|had| had.id == it.id));
    new.filter(|it| holds(&it.when, after, profile))
        .map(|it: &Achievement| Earned::of(it, after.now))
        .collect()
}

/// All that a condition asks for is so.
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
    let count = |wanted: &dyn Fn(&str) -> bool| {
        let paths = after.catalog.paths().iter();
        let exercises = paths.flat_map(|path| &path.exercises);
        exercises.filter(|exercise| wanted(&exercise.id)).count()
    };
    let reaches = |min: &u32, wanted: &dyn Fn(&str) -> bool| {
        usize::try_from(*min).is_ok_and(|min| count(wanted) >= min)
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
            .is_none_or(|min| reaches(min, &|id| after.attempt(id).completed.is_some()))
        && first_tries.as_ref().is_none_or(|min| {
            reaches(min, &|id| {
                let attempted = after.attempt(id);
                attempted.completed.is_some() && attempted.attempts == 1
            })
        })
        && without_hints
            .as_ref()
            .is_none_or(|min| reaches(min, &|id| after.attempt(id).unaided))
        && streak_days
            .as_ref()
            .is_none_or(|min| profile.streak.longest() >= *min)
}
