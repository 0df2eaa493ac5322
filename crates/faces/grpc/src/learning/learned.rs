//! Paths, exercises and progress as messages of the contract.

use courses::{
    Difficulty, Exercise, ExerciseDifficulty, ExerciseKind, Feedback, LearningPath, Solution,
    ValidationKind, Verdict,
};
use model::Code;

use super::super::convert::{count, time};
use super::super::enums::same_variants;
use ::learning::{
    Activity, ActivityKind, Completion, Earned, LastReview, LearnerState, Opened, PathStatus,
    Reason, Status,
};
use contract::v1;

same_variants!(fn difficulty / known_difficulty(Difficulty) -> PathDifficulty {
    Beginner, Intermediate, Advanced
});

same_variants!(fn exercise_type(ExerciseKind) -> ExerciseType {
    Tutorial, Practice, Challenge, Project
});

same_variants!(fn exercise_difficulty(ExerciseDifficulty) -> ExerciseDifficulty {
    Easy, Medium, Hard
});

same_variants!(fn exercise_status(Status) -> ExerciseStatus {
    Locked, Available, InProgress, Completed
});

same_variants!(fn validation_type(ValidationKind) -> ValidationType {
    Output, Pattern, Manual, Test
});

same_variants!(pub(super) fn path_status(PathStatus) -> PathStatus {
    NotStarted, InProgress, Completed
});

same_variants!(pub(super) fn verdict(Verdict) -> Verdict { Pass, Fail, Error, Pending });

same_variants!(fn activity_type(ActivityKind) -> ActivityType {
    ExerciseCompleted, PathStarted, AchievementEarned, PathCompleted, ProgressReset,
    SubmissionReviewed
});

same_variants!(pub(super) fn reason(Reason) -> NextReason { Continue, New, Review, Weak });

pub(super) fn difficulty_of(difficulty: i32) -> Option<Difficulty> {
    known_difficulty(v1::PathDifficulty::try_from(difficulty).unwrap_or_default())
}

fn completion(of: Completion) -> v1::PathCompletion {
    v1::PathCompletion {
        completed_exercises: count(of.completed),
        percent_complete: count(of.percent()),
        last_activity: of.last_activity.map(time),
    }
}

pub(super) fn summary(
    state: &LearnerState,
    path: &LearningPath,
    progress: bool,
) -> v1::LearningPathSummary {
    v1::LearningPathSummary {
        id: path.id.clone(),
        name: path.name.clone(),
        description: path.description.clone(),
        category: path.category.clone(),
        difficulty: difficulty(path.difficulty).into(),
        estimated_hours: path.estimated_hours,
        exercise_count: count(path.exercises.len()),
        skills_covered: path.skills_covered.clone(),
        progress: progress.then(|| completion(state.completion(path))),
    }
}

pub(super) fn detail(
    state: &LearnerState,
    path: &LearningPath,
    exercises: bool,
) -> v1::LearningPathDetail {
    let listed = path.exercises.iter().filter(|_| exercises);
    v1::LearningPathDetail {
        id: path.id.clone(),
        name: path.name.clone(),
        description: path.description.clone(),
        category: path.category.clone(),
        difficulty: difficulty(path.difficulty).into(),
        estimated_hours: path.estimated_hours,
        exercise_count: count(path.exercises.len()),
        skills_covered: path.skills_covered.clone(),
        progress: Some(completion(state.completion(path))),
        prerequisites: path.prerequisites.clone(),
        learning_objectives: path.objectives.clone(),
        exercises: listed.map(|it| in_list(it, state.status(it))).collect(),
        related_paths: path.related_paths.clone(),
        introduction: path.introduction.clone(),
    }
}

pub(super) fn in_list(exercise: &Exercise, status: Status) -> v1::ExerciseSummary {
    v1::ExerciseSummary {
        id: exercise.id.clone(),
        title: exercise.title.clone(),
        r#type: exercise_type(exercise.kind).into(),
        estimated_minutes: exercise.estimated_minutes,
        status: exercise_status(status).into(),
        skills_practiced: exercise.skills_practiced.clone(),
    }
}

pub(super) fn files(solution: &Solution) -> Vec<v1::SolutionFile> {
    let files = solution.files.iter();
    files
        .map(|(path, text)| v1::SolutionFile {
            path: path.clone(),
            text: text.clone(),
        })
        .collect()
}

/// Converts an exercise as its learner sees it: without hidden cases and the solution.
pub(super) fn exercise(opened: &Opened) -> v1::ExerciseDetail {
    let Opened {
        exercise,
        hints,
        status,
        review,
    } = opened;
    let file_name = exercise.file_name.clone().unwrap_or_default();
    // A solution that is one text begins from one text; one of several files from files.
    let (starter_code, starter_files) = match exercise.starter_text() {
        Some(text) => (text, Vec::new()),
        None => (String::new(), files(&exercise.starter)),
    };
    v1::ExerciseDetail {
        id: exercise.id.clone(),
        path_id: exercise.path_id.clone(),
        title: exercise.title.clone(),
        r#type: exercise_type(exercise.kind).into(),
        difficulty: exercise_difficulty(exercise.difficulty).into(),
        estimated_minutes: exercise.estimated_minutes,
        instructions: exercise.instructions.clone(),
        starter_code,
        hints_remaining: count(opened.hints_left()),
        hints: hints.clone(),
        validation_type: validation_type(exercise.validation).into(),
        expected_output: exercise.expected_output.clone().unwrap_or_default(),
        test_cases: exercise
            .shown_cases
            .iter()
            .map(|case| v1::TestCase {
                input: case.input.clone(),
                expected: case.expected.clone(),
                description: case.description.clone(),
            })
            .collect(),
        skills_practiced: exercise.skills_practiced.clone(),
        related_docs: exercise.related_docs.clone(),
        starter_files,
        language: exercise.language.clone(),
        file_name,
        status: exercise_status(*status).into(),
        checklist: exercise.checklist.clone(),
        last_review: review.as_ref().map(last_review),
    }
}

fn last_review(review: &LastReview) -> v1::LastReview {
    v1::LastReview {
        reviewer: review.reviewer.clone(),
        passed: review.passed,
        comment: review.comment.clone(),
        create_time: Some(time(review.time)),
    }
}

/// Returns why a solution does not pass; none where it does, or where a review is pending.
pub(super) fn error(verdict: Verdict, feedback: &Feedback) -> Option<v1::SolutionError> {
    let code = match verdict {
        Verdict::Pass | Verdict::Pending => return None,
        Verdict::Fail => Code::SolutionInvalid,
        Verdict::Error => Code::GradingFailed,
    };
    Some(v1::SolutionError {
        code: code.name().to_owned(),
        message: feedback.summary.clone(),
        recovery_suggestions: feedback.suggestions.clone(),
    })
}

pub(super) fn feedback(feedback: Feedback, details: bool) -> v1::SolutionFeedback {
    let (passed, failed) = (count(feedback.passed()), count(feedback.failed()));
    if !details {
        return v1::SolutionFeedback {
            summary: feedback.summary,
            ..Default::default()
        };
    }
    let test_results = v1::TestResults {
        passed,
        failed,
        details: feedback
            .results
            .into_iter()
            .map(|result| v1::TestResult {
                test_name: result.name,
                passed: result.passed,
                expected: result.expected,
                actual: result.actual,
                error: result.error,
                look_at: result.look_at,
            })
            .collect(),
    };
    v1::SolutionFeedback {
        summary: feedback.summary,
        // Work that a person reviews has no cases, and 0 of 0 passed would read like a result.
        test_results: Some(test_results).filter(|it| !it.details.is_empty()),
        suggestions: feedback.suggestions,
        exemplary_aspects: feedback.exemplary_aspects,
        improvement_areas: feedback.improvement_areas,
    }
}

pub(super) fn achievement(earned: &Earned) -> v1::Achievement {
    v1::Achievement {
        id: earned.id.clone(),
        name: earned.name.clone(),
        description: earned.description.clone(),
        icon: earned.icon.clone(),
    }
}

pub(super) fn activity(activity: Activity) -> v1::ActivityEntry {
    v1::ActivityEntry {
        timestamp: Some(time(activity.time)),
        r#type: activity_type(activity.kind).into(),
        details: activity.details,
        score: activity.score,
    }
}
