//! Reads the achievements of a path.

use super::check_id;
use super::keys::Keys;
use crate::{Achievement, Condition, limits};

pub(super) fn read(path: &Keys<'_>) -> Vec<Achievement> {
    let mut achievements: Vec<Achievement> = Vec::new();
    for keys in path.list("achievements", "achievement", limits::MAX_LIST_ITEMS) {
        let achievement = Achievement {
            id: keys.required_text("id", super::MAX_ID_CHARS),
            name: keys.required_text("name", limits::MAX_NAME_CHARS),
            description: keys.required_text("description", limits::MAX_SENTENCE_CHARS),
            icon: keys.required_text("icon", super::MAX_ID_CHARS),
            when: condition(&keys),
        };
        // That it is empty was reported by its key.
        if let Err(reason) = check_id(&achievement.id)
            && !achievement.id.is_empty()
        {
            keys.wrong("id", "invalid", format!("The id cannot be one: {reason}"));
        }
        if achievements.iter().any(|other| other.id == achievement.id) {
            let message = format!("There are two achievements `{}`", achievement.id);
            keys.wrong("id", "duplicate", message);
        }
        keys.end();
        achievements.push(achievement);
    }
    achievements
}

fn condition(achievement: &Keys<'_>) -> Condition {
    let Some(keys) = achievement.keys("when", "achievement-when") else {
        if !achievement.has("when") {
            achievement.wrong(
                "when",
                "missing",
                "There is no `when`: it could not be earned",
            );
        }
        return Condition::default();
    };
    let count = |key| {
        let number = keys.whole(key, 1, 100_000)?;
        u32::try_from(number).ok()
    };
    let when = Condition {
        exercise_completed: keys.text("exercise_completed", super::MAX_ID_CHARS),
        path_completed: keys.text("path_completed", super::MAX_ID_CHARS),
        concept_learned: keys.text("concept_learned", super::MAX_ID_CHARS),
        exercises_completed: count("exercises_completed"),
        first_tries: count("first_tries"),
        without_hints: count("without_hints"),
        streak_days: count("streak_days"),
    };
    keys.end();
    if when == Condition::default() {
        achievement.wrong(
            "when",
            "missing",
            "`when` says nothing: it would be earned at once",
        );
    }
    when
}
