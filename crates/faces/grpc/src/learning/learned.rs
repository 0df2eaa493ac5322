//! Paths, exercises and progress, in the words of the contract.

use courses::{
    Difficulty, Exercise, ExerciseDifficulty, ExerciseKind, Feedback, LearningPath, Solution,
    ValidationKind, Verdict,
};
use model::Code;

use super::super::convert::{count, time};
use ::learning::{
    Activity, ActivityKind, Completion, Earned, LastReview, LearnerState, Opened, PathStatus,
    Reason, Status,
};
use contract::v1;

pub(super) fn difficulty_of(difficulty: i32) -> Option<Difficulty> {
    match v1::PathDifficulty::try_from(difficulty).unwrap_or_default() {
        v1::PathDifficulty::Unspecified => None,
        v1::PathDifficulty::Beginner => Some(Difficulty::Beginner),
        v1::PathDifficulty::Intermediate => Some(Difficulty::Intermediate),
        v1::PathDifficulty::Advanced => Some(Difficulty::Advanced),
    }
}

fn difficulty(difficulty: Difficulty) -> v1::PathDifficulty {
    match difficulty {
        Difficulty::Beginner => v1::PathDifficulty::Beginner,
        Difficulty::Intermediate => v1::PathDifficulty::Intermediate,
        Difficulty::Advanced => v1::PathDifficulty::Advanced,
    }
}

fn exercise_type(kind: ExerciseKind) -> v1::ExerciseType {
    match kind {
        ExerciseKind::Tutorial => v1::ExerciseType::Tutorial,
        ExerciseKind::Practice => v1::ExerciseType::Practice,
        ExerciseKind::Challenge => v1::ExerciseType::Challenge,
        ExerciseKind::Project => v1::ExerciseType::Project,
    }
}

fn exercise_status(status: Status) -> v1::ExerciseStatus {
    match status {
        Status::Locked => v1::ExerciseStatus::Locked,
        Status::Available => v1::ExerciseStatus::Available,
        Status::InProgress => v1::ExerciseStatus::InProgress,
        Status::Completed => v1::ExerciseStatus::Completed,
    }
}

pub(super) fn path_status(status: PathStatus) -> v1::PathStatus {
    match status {
        PathStatus::NotStarted => v1::PathStatus::NotStarted,
        PathStatus::InProgress => v1::PathStatus::InProgress,
        PathStatus::Completed => v1::PathStatus::Completed,
    }
}

pub(super) fn verdict(verdict: Verdict) -> v1::Verdict {
    match verdict {
        Verdict::Pass => v1::Verdict::Pass,
        Verdict::Fail => v1::Verdict::Fail,
        Verdict::Error => v1::Verdict::Error,
        Verdict::Pending => v1::Verdict::Pending,
    }
}

fn completion(of: Completion) -> v1::PathCompletion {
    v1::PathCompletion {
        completed_exercises: count(of.completed),
        percent_complete: count(of.percent()),
        last_activity: of.last_activity.map(time),
    }
}

pub(super) fn summary(
    standing: &LearnerState,
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
        progress: progress.then(|| completion(standing.completion(path))),
    }
}

pub(super) fn detail(
    standing: &LearnerState,
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
        progress: Some(completion(standing.completion(path))),
        prerequisites: path.prerequisites.clone(),
        learning_objectives: path.objectives.clone(),
        exercises: listed.map(|it| in_list(it, standing.status(it))).collect(),
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

/// An exercise as its learner sees it: of what grades it only what is shown.
pub(super) fn exercise(opened: &Opened) -> v1::ExerciseDetail {
    let Opened {
        exercise,
        hints,
        status,
        review,
    } = opened;
    let file_name = exercise.file_name.clone().unwrap_or_default();
    let (starter_code, starter_files) = match exercise.starter_text() {
        Some(text) => (text, Vec::new()),
        None => (String::new(), files(&exercise.starter)),
    };
    v1::ExerciseDetail {
        id: exercise.id.clone(),
        path_id: exercise.path_id.clone(),
        title: exercise.title.clone(),
        r#type: exercise_type(exercise.kind).into(),
        difficulty: match exercise.difficulty {
            ExerciseDifficulty::Easy => v1::ExerciseDifficulty::Easy,
            ExerciseDifficulty::Medium => v1::ExerciseDifficulty::Medium,
            ExerciseDifficulty::Hard => v1::ExerciseDifficulty::Hard,
        }
        .into(),
        estimated_minutes: exercise.estimated_minutes,
        instructions: exercise.instructions.clone(),
        starter_code,
        hints_remaining: count(opened.hints_left()),
        hints: hints.clone(),
        validation_type: match exercise.validation {
            ValidationKind::Output => v1::ValidationType::Output,
            ValidationKind::Pattern => v1::ValidationType::Pattern,
            ValidationKind::Manual => v1::ValidationType::Manual,
            ValidationKind::Test => v1::ValidationType::Test,
        }
        .into(),
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

/// Why a solution does not pass, where it is known that it does not.
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
    let Feedback {
        summary,
        results,
        suggestions,
        exemplary_aspects,
        improvement_areas,
    } = feedback;
    if !details {
        return v1::SolutionFeedback {
            summary,
            ..Default::default()
        };
    }
    let test_results = v1::TestResults {
        passed,
        failed,
        details: results
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
        summary,
        test_results: Some(test_results).filter(|it| !it.details.is_empty()),
        suggestions,
        exemplary_aspects,
        improvement_areas,
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
        r#type: match activity.kind {
            ActivityKind::ExerciseCompleted => v1::ActivityType::ExerciseCompleted,
            ActivityKind::PathStarted => v1::ActivityType::PathStarted,
            ActivityKind::AchievementEarned => v1::ActivityType::AchievementEarned,
            ActivityKind::PathCompleted => v1::ActivityType::PathCompleted,
            ActivityKind::ProgressReset => v1::ActivityType::ProgressReset,
            ActivityKind::SubmissionReviewed => v1::ActivityType::SubmissionReviewed,
        }
        .into(),
        details: activity.details,
        score: activity.score,
    }
}

pub(super) fn reason(reason: Reason) -> v1::NextReason {
    match reason {
        Reason::Continue => v1::NextReason::Continue,
        Reason::New => v1::NextReason::New,
        Reason::Review => v1::NextReason::Review,
        Reason::Weak => v1::NextReason::Weak,
    }
}
