//! The Learning service.

mod learned;

use std::borrow::Cow;
use std::sync::Arc;

use courses::{Solution, Verdict};
use futures_util::{StreamExt as _, stream};
use http::Extensions;
use tonic::{Request, Response};

use super::convert::{count, size, time};
use super::{page_size, waited};
use ::access::{Access, Action, Caller};
use ::learning::{Learner, Learning, Reset, Review, Reviewer, Submit};
use admission::Peer;
use contract::handlers::{self, Answer, Messages, View};
use contract::{status, v1};
use model::{Failure, Principal};

// Defaults of what an answer holds.
/// Submissions that wait for a reviewer.
const DEFAULT_SUBMISSIONS: usize = 20;
/// Activities of a learner, with its progress.
const DEFAULT_ACTIVITIES: usize = 20;
/// Progress of the learner, with a path of a list.
const PROGRESS: bool = true;
/// Its exercises, with a path.
const EXERCISES: bool = true;
/// Case by case, with what came of a solution.
const FEEDBACK: bool = true;

/// The Learning service over the domain.
#[derive(Debug, Clone)]
pub struct LearningService {
    learning: Learning,
    /// The caller that a view is of; before that, the server's own process.
    caller: Arc<Caller>,
}

impl LearningService {
    /// Creates the service of learning.
    #[must_use]
    pub fn new(learning: Learning) -> Self {
        Self {
            learning,
            caller: Access::local().caller,
        }
    }

    /// Returns the domain once its paths are read.
    async fn learning(&self) -> &Learning {
        // Parsing them blocks for about a tenth of a second, too long for a worker of the runtime.
        self.learning.ready().await;
        &self.learning
    }

    /// Returns the learner that a request writes for: the caller itself, or one of its own, so
    /// that no caller reaches the progress of another by guessing a name. The user of the server's
    /// machine may name all.
    fn own_learner(&self, name: &str) -> Result<Learner, Failure> {
        let principal = &self.caller.principal;
        let learner = if *principal == Principal::local() {
            Learner::new(name)
        } else {
            Learner::of(principal.namespace().as_deref(), name)
        };
        learner.map_err(Failure::from)
    }

    /// The same, or that of another caller where the action allows this one to name it.
    fn any_learner(&self, name: &str, action: Action) -> Result<Learner, Failure> {
        if Principal::is_name(name) && self.caller.rights.allow(action) {
            return Learner::new(name).map_err(Failure::from);
        }
        self.own_learner(name)
    }

    /// Returns the learner that a request reads; who grades solutions may read all progress.
    fn learner_to_read(&self, name: &str) -> Result<Learner, Failure> {
        self.any_learner(name, Action::Grade)
    }

    /// Returns the learner that a request resets; an operator may do that to all.
    fn learner_to_reset(&self, name: &str) -> Result<Learner, Failure> {
        self.any_learner(name, Action::Operate)
    }
}

impl View for LearningService {
    async fn view<'a>(&'a self, call: &Extensions) -> Cow<'a, Self> {
        // Learning paths are public; progress is that of the caller's own learners.
        Cow::Owned(Self {
            learning: self.learning.clone(),
            caller: contract::access_of(call).caller,
        })
    }
}

impl handlers::Learning for LearningService {
    async fn get_paths(
        &self,
        request: Request<v1::GetPathsRequest>,
    ) -> Answer<v1::GetPathsResponse> {
        let learner = self.learner_to_read(&request.get_ref().learner)?;
        let v1::GetPathsRequest {
            category,
            difficulty,
            include_progress,
            learner: _,
        } = request.into_inner();
        let difficulty = learned::difficulty_of(difficulty);
        let found = self.learning().await.paths(&learner, &category, difficulty);
        let (state, paths) = found?;
        let include_progress = include_progress.unwrap_or(PROGRESS);
        Ok(Response::new(v1::GetPathsResponse {
            paths: paths
                .iter()
                .map(|path| learned::summary(&state, path, include_progress))
                .collect(),
            categories: super::composed::texts(state.catalog().categories().into_iter()),
        }))
    }

    async fn get_path(&self, request: Request<v1::GetPathRequest>) -> Answer<v1::GetPathResponse> {
        let learner = self.learner_to_read(&request.get_ref().learner)?;
        let v1::GetPathRequest {
            path_id,
            include_exercises,
            learner: _,
        } = request.into_inner();
        let (state, path) = self.learning().await.path(&learner, &path_id)?;
        let include_exercises = include_exercises.unwrap_or(EXERCISES);
        Ok(Response::new(v1::GetPathResponse {
            path: Some(learned::detail(&state, &path, include_exercises)),
        }))
    }

    async fn next_exercise(
        &self,
        request: Request<v1::NextExerciseRequest>,
    ) -> Answer<v1::NextExerciseResponse> {
        let learner = self.own_learner(&request.get_ref().learner)?;
        let v1::NextExerciseRequest {
            path_id,
            learner: _,
        } = request.into_inner();
        let next = self.learning().await.next(&path_id, &learner).await;
        let next = next?;
        let of = next.completion;
        Ok(Response::new(v1::NextExerciseResponse {
            exercise: Some(learned::exercise(&next.opened)),
            path_progress: Some(v1::PathRemaining {
                completed: count(of.completed),
                remaining: count(of.remaining()),
                percent_complete: count(of.percent()),
            }),
            reason: learned::reason(next.reason).into(),
            why: next.why,
        }))
    }

    async fn get_exercise(
        &self,
        request: Request<v1::GetExerciseRequest>,
    ) -> Answer<v1::GetExerciseResponse> {
        let learner = self.own_learner(&request.get_ref().learner)?;
        let v1::GetExerciseRequest {
            exercise_id,
            learner: _,
            practice,
        } = request.into_inner();
        let opened = self
            .learning()
            .await
            .open(&exercise_id, &learner, practice)
            .await;
        let opened = opened?;
        Ok(Response::new(v1::GetExerciseResponse {
            exercise: Some(learned::exercise(&opened)),
        }))
    }

    async fn reveal_hint(
        &self,
        request: Request<v1::RevealHintRequest>,
    ) -> Answer<v1::RevealHintResponse> {
        let learner = self.own_learner(&request.get_ref().learner)?;
        let v1::RevealHintRequest {
            exercise_id,
            learner: _,
            number,
            practice,
        } = request.into_inner();
        // 0 is the next hint that was not shown yet.
        let number = page_size(number, 0);
        let hint = self
            .learning()
            .await
            .reveal_hint(&exercise_id, number, &learner, practice);
        let hint = hint.await?;
        Ok(Response::new(v1::RevealHintResponse {
            hint: hint.text,
            number: count(hint.number),
            hints_remaining: count(hint.remaining),
            max_score: hint.max_score,
        }))
    }

    async fn submit_solution(
        &self,
        request: Request<v1::SubmitSolutionRequest>,
    ) -> Answer<v1::SubmitSolutionResponse> {
        let learner = self.own_learner(&request.get_ref().learner)?;
        let caller = Peer::of(request.extensions()).name().unwrap_or_default();
        let v1::SubmitSolutionRequest {
            exercise_id,
            solution,
            request_feedback,
            files,
            learner: _,
            time_zone,
            practice,
        } = request.into_inner();
        let files = files.into_iter();
        let files = files.map(|v1::SolutionFile { path, text }| (path, text));
        let submit = Submit {
            caller,
            exercise_id: exercise_id.clone(),
            text: solution,
            files: files.collect(),
            time_zone,
            practice,
        };
        let submitted = self.learning().await.submit(submit, &learner).await;
        let submitted = submitted?;
        let details = request_feedback.unwrap_or(FEEDBACK);
        let next = submitted.next.as_ref();
        Ok(Response::new(v1::SubmitSolutionResponse {
            exercise_id,
            passed: submitted.verdict == Verdict::Pass,
            score: submitted.score,
            error: learned::error(submitted.verdict, &submitted.feedback),
            feedback: Some(learned::feedback(submitted.feedback, details)),
            next_exercise: next.map(|(next, status)| learned::in_list(next, *status)),
            achievements_earned: submitted.earned.iter().map(learned::achievement).collect(),
            verdict: learned::verdict(submitted.verdict).into(),
            submission_id: submitted.id.map(|id| id.to_string()).unwrap_or_default(),
        }))
    }

    async fn get_progress(
        &self,
        request: Request<v1::GetProgressRequest>,
    ) -> Answer<v1::GetProgressResponse> {
        let learner = self.learner_to_read(&request.get_ref().learner)?;
        let v1::GetProgressRequest {
            path_id,
            include_history,
            learner: _,
            history_size,
            time_zone,
        } = request.into_inner();
        let history = include_history.then(|| page_size(history_size, DEFAULT_ACTIVITIES));
        let progress = self
            .learning()
            .await
            .progress(&learner, &path_id, history, &time_zone);
        let progress = progress?;
        let overall = &progress.overall;
        Ok(Response::new(v1::GetProgressResponse {
            overall: Some(v1::OverallProgress {
                total_exercises: count(overall.total),
                completed_exercises: count(overall.completed),
                percent_complete: count(overall.percent()),
                total_hours_spent: overall.hours(),
                skills_mastered: overall.skills_mastered.clone(),
                reviews_due: count(overall.reviews_due),
            }),
            paths: progress
                .paths
                .into_iter()
                .map(|path| v1::PathProgress {
                    status: learned::path_status(path.status()).into(),
                    path_id: path.id,
                    path_name: path.name,
                    started_at: path.started.map(time),
                    last_activity: path.completion.last_activity.map(time),
                    completed_exercises: count(path.completion.completed),
                    total_exercises: count(path.completion.total),
                    percent_complete: count(path.completion.percent()),
                })
                .collect(),
            recent_activity: progress
                .activities
                .into_iter()
                .map(learned::activity)
                .collect(),
            achievements: progress
                .achievements
                .iter()
                .map(learned::achievement)
                .collect(),
            streak: Some(v1::StreakInfo {
                current_streak: progress.current_streak,
                longest_streak: progress.longest_streak,
                last_activity_date: progress
                    .last_day
                    .map(|day| day.to_string())
                    .unwrap_or_default(),
            }),
        }))
    }

    async fn reset_progress(
        &self,
        request: Request<v1::ResetProgressRequest>,
    ) -> Answer<v1::ResetProgressResponse> {
        let learner = self.learner_to_reset(&request.get_ref().learner)?;
        let v1::ResetProgressRequest {
            path_id,
            confirm,
            learner: _,
        } = request.into_inner();
        let reset = self
            .learning()
            .await
            .reset(&path_id, &learner, confirm)
            .await;
        let reset = reset?;
        Ok(Response::new(v1::ResetProgressResponse {
            path_id,
            exercises_reset: count(reset.exercises),
            achievements_retained: Reset::RETAINS_ACHIEVEMENTS,
            previous_completion: count(reset.previous_percent),
            confirmed: confirm,
        }))
    }

    async fn list_submissions(
        &self,
        request: Request<v1::ListSubmissionsRequest>,
    ) -> Answer<v1::ListSubmissionsResponse> {
        let v1::ListSubmissionsRequest {
            path_id,
            page_size: size,
            page_token,
        } = request.into_inner();
        let size = page_size(size, DEFAULT_SUBMISSIONS);
        let page = self.learning().await.waiting(&path_id, size, &page_token);
        let (waiting, next) = page?;
        Ok(Response::new(v1::ListSubmissionsResponse {
            submissions: waiting
                .into_iter()
                .map(|it| v1::Submission {
                    id: it.id.to_string(),
                    learner: it.learner,
                    exercise_id: it.exercise,
                    path_id: it.path,
                    create_time: Some(time(it.time)),
                    files: learned::files(&Solution { files: it.files }),
                    checklist: it.checklist,
                })
                .collect(),
            next_page_token: next.unwrap_or_default(),
        }))
    }

    async fn review_submission(
        &self,
        request: Request<v1::ReviewSubmissionRequest>,
    ) -> Answer<v1::ReviewSubmissionResponse> {
        let v1::ReviewSubmissionRequest {
            submission_id,
            reviewer,
            passed,
            comment,
            score,
        } = request.into_inner();
        let review = Review {
            submission_id,
            reviewer: Reviewer::of(&self.caller.principal, &reviewer)?,
            passed,
            score,
            comment,
        };
        let reviewed = self.learning().await.review(&review).await?;
        Ok(Response::new(v1::ReviewSubmissionResponse {
            submission_id: reviewed.id.to_string(),
            verdict: learned::verdict(reviewed.verdict).into(),
            score: reviewed.score,
            achievements_earned: reviewed.earned.iter().map(learned::achievement).collect(),
        }))
    }

    async fn watch_progress(
        &self,
        request: Request<v1::WatchProgressRequest>,
    ) -> Answer<Messages<v1::WatchProgressResponse>> {
        let learner = self.learner_to_read(&request.get_ref().learner)?;
        let v1::WatchProgressRequest {
            learner: _,
            after_sequence,
            from_now,
            max_events,
            max_wait_seconds,
        } = request.into_inner();
        // Without a number the watch begins at the end of the log.
        let after = (!from_now).then_some(after_sequence.unsigned_abs());
        let watch = self.learning().await.watch(&learner, after);
        let watch = watch?;
        let activities = stream::unfold(Some(watch), |watch| async move {
            let mut watch = watch?;
            Some(match watch.next().await {
                Ok(it) => (Ok(it), Some(watch)),
                Err(error) => (Err(status(error)), None),
            })
        });
        let answers = activities.map(|it| {
            it.map(|it| v1::WatchProgressResponse {
                sequence: size(it.number),
                activity: Some(learned::activity(it)),
            })
        });
        let answers = answers
            .take(page_size(max_events, usize::MAX))
            .take_until(waited(max_wait_seconds));
        Ok(Response::new(Box::pin(answers)))
    }
}
