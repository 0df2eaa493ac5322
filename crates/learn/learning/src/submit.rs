//! Handing in a solution.

use std::collections::BTreeMap;
use std::sync::Arc;

use courses::{Exercise, Feedback, Graded, Solution, ValidationKind, Verdict};
use jiff::Timestamp;
use model::{Digest, FilePath};

use crate::change::{Change, Work};
use crate::learner_state::zone;
use crate::record::{
    ActivityKind, Attempted, Earned, SUBMISSIONS, Submission, WAITING, submission as name,
};
use crate::schedule::{Recall, practised};
use crate::{Error, Learner, LearnerState, Learning, Status, achievements};

/// Bytes of a solution, all files together.
const MAX_BYTES: usize = 64 * 1024;

/// A solution to hand in.
#[derive(Debug, Clone, Default)]
pub struct Submit {
    /// The exercise.
    pub exercise_id: String,
    /// The solution, where it is one text.
    pub text: String,
    /// The solution, where it is files: path and text.
    pub files: Vec<(String, String)>,
    /// IANA name of the zone in which the learner's days begin. Empty: as last time.
    pub time_zone: String,
    /// Whether or not what it builds on was learned.
    pub practice: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The submission. None: nothing was recorded.
    pub id: Option<Digest>,
    /// What came of grading.
    pub verdict: Verdict,
    /// How much of it is right, 0 to 1, less what hints cost.
    pub score: f64,
    /// What to say of it.
    pub feedback: Feedback,
    /// What was earned by it.
    pub earned: Vec<Earned>,
    /// What to do next, where it passed and there is something.
    pub next: Option<(Arc<Exercise>, Status)>,
}

impl Learning {
    /// Grades a solution and records what came of it. The same again gives the first answer.
    ///
    /// # Errors
    /// There is no such exercise, it is locked, the solution is not one, or there is more
    /// to grade than is taken.
    pub async fn submit(&self, submit: Submit, learner: &Learner) -> Result<Submitted, Error> {
        let files = by_path(submit.files)?;
        let standing = self.standing(learner)?;
        let exercise = Self::exercise(&standing, &submit.exercise_id)?;
        if !submit.time_zone.is_empty() {
            zone(&submit.time_zone)?;
        }
        if !submit.practice {
            standing.open(&exercise)?;
        }
        let solution = solution(&exercise, submit.text, files)?;
        let id = name(
            learner.as_str(),
            &exercise,
            standing.round(&exercise.id),
            &solution,
        );
        if let Some(stored) = self.store().get(&SUBMISSIONS, &id)? {
            return Ok(answer(&standing, &exercise, id, stored.value));
        }
        let graders = &self.0.graders;
        let turn = graders.turn(learner.as_str(), &exercise).await?;
        // The same may have been graded while this waited.
        if let Some(stored) = self.store().get(&SUBMISSIONS, &id)? {
            return Ok(answer(&standing, &exercise, id, stored.value));
        }
        // With nothing locked and nothing written: it may take seconds, and what came between
        // is looked at below.
        let graded = graders.grade_in(&turn, &exercise, &solution).await;
        drop(turn);
        // It could not be graded, which is no fault of the learner: nothing is recorded, and
        // the same may be handed in again.
        if graded.verdict == Verdict::Error {
            return Ok(Submitted {
                id: None,
                verdict: Verdict::Error,
                score: 0.0,
                feedback: graded.feedback,
                earned: Vec::new(),
                next: None,
            });
        }
        for _ in 0..crate::MAX_CONFLICTS {
            // What came between counts: a reset, or the same solution from elsewhere.
            let standing = self.standing(learner)?;
            let round = standing.round(&exercise.id);
            let id = name(learner.as_str(), &exercise, round, &solution);
            if let Some(stored) = self.store().get(&SUBMISSIONS, &id)? {
                return Ok(answer(&standing, &exercise, id, stored.value));
            }
            let mut change = Change::of(&standing);
            if !submit.time_zone.is_empty() {
                change.profile.time_zone.clone_from(&submit.time_zone);
            }
            let record = take(&mut change, &standing, &exercise, &graded, &solution)?;
            change
                .batch
                .expect(&SUBMISSIONS, &id, store::Expect::Absent);
            change.batch.put(&SUBMISSIONS, &id, &record);
            if record.verdict == Verdict::Pending {
                let since = u64::try_from(standing.now.as_microsecond()).unwrap_or(0);
                change.batch.put(&WAITING, &(since, id), &record.path);
            }
            if change.commit(self).await? {
                let after = self.standing(learner)?;
                return Ok(answer(&after, &exercise, id, record));
            }
        }
        Err(Error::Contention)
    }
}

/// Files by their paths, each of which is one and stands there once.
fn by_path(files: Vec<(String, String)>) -> Result<BTreeMap<String, String>, Error> {
    let mut by_path = BTreeMap::new();
    for (at, (path, text)) in files.into_iter().enumerate() {
        let wrong = |message: String| Error::Parameter {
            field: format!("files[{at}].path").into(),
            message,
        };
        if by_path.contains_key(&path) {
            return Err(wrong(format!("'{path}' is there twice")));
        }
        if let Err(error) = path.parse::<FilePath>() {
            return Err(wrong(error.to_string()));
        }
        by_path.insert(path, text);
    }
    Ok(by_path)
}

/// What is handed in, as the exercise wants it.
fn solution(
    exercise: &Exercise,
    text: String,
    mut files: BTreeMap<String, String>,
) -> Result<Solution, Error> {
    let wrong = |field: &'static str, message: String| Error::Parameter {
        field: field.into(),
        message,
    };
    if !text.is_empty() && !files.is_empty() {
        let message = "a solution is one text or files, not both".to_owned();
        return Err(wrong("files", message));
    }
    if files.is_empty() {
        if text.trim().is_empty() {
            return Err(Error::Missing {
                field: "solution",
                message: "Solution cannot be empty".to_owned(),
            });
        }
        if exercise.file_name.is_none() {
            let names: Vec<_> = exercise.starter.files.keys().cloned().collect();
            return Err(wrong(
                "files",
                format!("this exercise wants several files: {}", names.join(", ")),
            ));
        }
        files = exercise.one_text(text).files;
    }
    let bytes: usize = files
        .iter()
        .map(|(path, text)| path.len() + text.len())
        .sum();
    if bytes > MAX_BYTES {
        return Err(wrong(
            "solution",
            format!("the solution has {bytes} bytes; {MAX_BYTES} are the most"),
        ));
    }
    Ok(Solution { files })
}

/// Puts into a change what a graded solution means for its learner.
fn take(
    change: &mut Change<'_>,
    standing: &LearnerState,
    exercise: &Exercise,
    graded: &Graded,
    solution: &Solution,
) -> Result<Submission, Error> {
    let now = standing.now;
    let path = Learning::path_of(standing, exercise)?;
    change.step(path, Work::On(exercise.estimated_minutes));
    let zone = zone(&change.profile.time_zone).unwrap_or(jiff::tz::TimeZone::UTC);
    change.profile.streak.add(standing.today(&zone));
    let score = (graded.score * standing.max_score(exercise)).clamp(0.0, 1.0);
    let mut attempted = standing.attempt(&exercise.id);
    attempted.round = standing.round(&exercise.id);
    attempted.raised = standing.due(&attempted).or(attempted.raised);
    attempted.started = attempted.started.or(Some(now));
    attempted.last = Some(now);
    if attempted.completed.is_none() {
        attempted.attempts = attempted.attempts.saturating_add(1);
    }
    let earned = match graded.verdict {
        Verdict::Pass => complete(change, standing, exercise, &mut attempted, score)?,
        Verdict::Fail => {
            attempted.best = attempted.best.max(score);
            lapse(&mut attempted, now);
            Vec::new()
        }
        Verdict::Pending => {
            attempted.waiting = attempted.waiting.saturating_add(1);
            Vec::new()
        }
        Verdict::Error => Vec::new(),
    };
    change.attempted(&exercise.id, &attempted);
    let waits = graded.verdict == Verdict::Pending;
    debug_assert!(!waits || exercise.validation == ValidationKind::Manual);
    Ok(Submission {
        learner: standing.learner.to_string(),
        exercise: exercise.id.clone(),
        path: exercise.path_id.clone(),
        time: now,
        verdict: graded.verdict,
        score,
        feedback: graded.feedback.clone(),
        earned,
        files: if waits {
            solution.files.clone()
        } else {
            BTreeMap::new()
        },
        reviewer: None,
        comment: String::new(),
    })
}

/// What is due and fails, was forgotten.
pub(crate) fn lapse(attempted: &mut Attempted, now: Timestamp) {
    let due = attempted.memory.filter(|memory| memory.is_due(now));
    if let Some(memory) = due {
        attempted.memory = Some(practised(Some(&memory), Recall::Failed, now));
    }
}

/// Puts into a change that a solution passed; what is earned by it.
pub(crate) fn complete(
    change: &mut Change<'_>,
    standing: &LearnerState,
    exercise: &Exercise,
    attempted: &mut Attempted,
    score: f64,
) -> Result<Vec<Earned>, Error> {
    let now = standing.now;
    let recall = match (attempted.completed, attempted.hints, attempted.attempts) {
        (None, 0, ..=1) => Recall::Easy,
        (None, 0, ..=3) | (Some(_), ..) => Recall::Good,
        (None, ..) => Recall::Hard,
    };
    attempted.best = attempted.best.max(score);
    let is_new = attempted.completed.is_none();
    if attempted.memory.is_none_or(|memory| memory.is_due(now)) {
        attempted.memory = Some(practised(attempted.memory.as_ref(), recall, now));
    }
    if !is_new {
        return Ok(Vec::new());
    }
    attempted.completed = Some(now);
    attempted.unaided = attempted.hints == 0;
    let details = format!("Completed '{}'", exercise.title);
    change.activity(ActivityKind::ExerciseCompleted, details, Some(score));
    let after = standing.with(&exercise.id, attempted.clone());
    let path = Learning::path_of(&after, exercise)?;
    let completion = after.completion(path);
    if completion.completed == completion.total {
        let details = format!("Completed the path '{}'", path.name);
        change.activity(ActivityKind::PathCompleted, details, None);
    }
    let earned = achievements::earned(&after, &change.profile);
    for it in &earned {
        let details = format!("Earned '{}'", it.name);
        change.activity(ActivityKind::AchievementEarned, details, None);
    }
    change.profile.achievements.extend(earned.iter().cloned());
    Ok(earned)
}

fn answer(
    standing: &LearnerState,
    exercise: &Exercise,
    id: Digest,
    submission: Submission,
) -> Submitted {
    let path = Learning::path_of(standing, exercise).ok();
    let next = path
        .filter(|_| submission.verdict == Verdict::Pass)
        .and_then(|path| standing.next(path).ok())
        .map(|(next, ..)| {
            let status = standing.status(&next);
            (next, status)
        });
    let mut feedback = submission.feedback;
    if let Some(reviewer) = &submission.reviewer {
        feedback.summary = format!("{reviewer} reviewed it: {}", submission.comment);
    }
    Submitted {
        id: Some(id),
        verdict: submission.verdict,
        score: submission.score,
        feedback,
        earned: submission.earned,
        next,
    }
}
