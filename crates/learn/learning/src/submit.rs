//! Handing in a solution.

use std::collections::BTreeMap;
use std::sync::Arc;

use courses::{Exercise, Feedback, Graded, Solution, ValidationKind, Verdict};
use jiff::Timestamp;
use model::{Digest, FilePath};

use crate::change::{Change, Work};
use crate::learner_state::zone;
use crate::record::{
    ActivityKind, Attempted, Earned, SUBMISSIONS, Submission, WAITING, queue_time,
    submission as name,
};
use crate::schedule::{Recall, practised};
use crate::{Error, Learner, LearnerState, Learning, Status, achievements};

/// Bytes of a solution, all files together.
const MAX_BYTES: usize = 64 * 1024;

/// A solution to hand in.
#[derive(Debug, Clone, Default)]
pub struct Submit {
    /// The caller, for its turns: its principal, or the address of one that did not sign in. Empty:
    /// a caller on this machine.
    pub caller: String,
    /// The exercise.
    pub exercise_id: String,
    /// The solution, where it is one text.
    pub text: String,
    /// The solution, where it is files: path and text.
    pub files: Vec<(String, String)>,
    /// IANA name of the zone in which the learner's days begin. Empty: as last time.
    pub time_zone: String,
    /// Accept it even if what it builds on was not learned.
    pub practice: bool,
}

/// The result of handing in a solution.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The submission. None: nothing was recorded.
    pub id: Option<Digest>,
    /// The verdict.
    pub verdict: Verdict,
    /// How much of it is right, 0 to 1, less what hints cost.
    pub score: f64,
    /// The feedback.
    pub feedback: Feedback,
    /// Achievements that it earned.
    pub earned: Vec<Earned>,
    /// The next exercise, where it passed and there is one.
    pub next: Option<(Arc<Exercise>, Status)>,
}

impl Learning {
    /// Grades a solution and records the result. The same again returns the first answer.
    ///
    /// # Errors
    /// There is no such exercise, it is locked, the solution is not one, or there is more
    /// to grade than is taken.
    pub async fn submit(&self, submit: Submit, learner: &Learner) -> Result<Submitted, Error> {
        let files = by_path(submit.files)?;
        let state = self.state(learner)?;
        let exercise = state.exercise(&submit.exercise_id)?;
        if !submit.time_zone.is_empty() {
            zone(&submit.time_zone)?;
        }
        if !submit.practice {
            state.open(&exercise)?;
        }
        let solution = solution(&exercise, submit.text, files)?;
        let id = name(
            learner.as_str(),
            &exercise,
            state.round(&exercise.id),
            &solution,
        );
        if let Some(stored) = self.store().get(&SUBMISSIONS, &id)? {
            return Ok(answer(&state, &exercise, id, stored.value));
        }
        let graders = &self.0.graders;
        // Only now: what is answered from the record needs no turn.
        let turn = graders
            .turn(&submit.caller, learner.as_str(), &exercise)
            .await?;
        // The same may have been graded while this waited.
        if let Some(stored) = self.store().get(&SUBMISSIONS, &id)? {
            return Ok(answer(&state, &exercise, id, stored.value));
        }
        // With nothing locked and nothing written: it may take seconds, and what came between is
        // checked below. A call that is canceled here leaves no trace.
        let graded = graders.grade_in(&turn, &exercise, &solution).await;
        drop(turn);
        // It could not be graded, which is not the learner's fault: nothing is recorded, and the
        // same may be handed in again.
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
            let state = self.state(learner)?;
            let round = state.round(&exercise.id);
            let id = name(learner.as_str(), &exercise, round, &solution);
            if let Some(stored) = self.store().get(&SUBMISSIONS, &id)? {
                return Ok(answer(&state, &exercise, id, stored.value));
            }
            let mut change = Change::of(&state);
            if !submit.time_zone.is_empty() {
                change.profile.time_zone.clone_from(&submit.time_zone);
            }
            let record = add_graded(&mut change, &state, &exercise, &graded, &solution)?;
            change
                .batch
                .expect(&SUBMISSIONS, &id, store::Expect::Absent);
            change.batch.put(&SUBMISSIONS, &id, &record);
            if record.verdict == Verdict::Pending {
                // In the same batch as the submission: there is no moment, and no crash, after which
                // one waits that no reviewer sees.
                let key = (queue_time(record.time), id);
                change.batch.put(&WAITING, &key, &record.path);
            }
            if change.commit(self).await? {
                let after = self.state(learner)?;
                return Ok(answer(&after, &exercise, id, record));
            }
        }
        Err(Error::Contention)
    }
}

/// Files by their paths, each of which is valid and there once.
fn by_path(files: Vec<(String, String)>) -> Result<BTreeMap<String, String>, Error> {
    let mut by_path = BTreeMap::new();
    for (at, (path, text)) in files.into_iter().enumerate() {
        let wrong = |message: String| Error::parameter(format!("files[{at}].path"), message);
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

/// The solution in the form that the exercise wants.
fn solution(
    exercise: &Exercise,
    text: String,
    mut files: BTreeMap<String, String>,
) -> Result<Solution, Error> {
    if !text.is_empty() && !files.is_empty() {
        let message = "a solution is one text or files, not both";
        return Err(Error::parameter("files", message));
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
            let message = format!("this exercise wants several files: {}", names.join(", "));
            return Err(Error::parameter("files", message));
        }
        files = exercise.one_text(text).files;
    }
    let bytes: usize = files
        .iter()
        .map(|(path, text)| path.len() + text.len())
        .sum();
    if bytes > MAX_BYTES {
        let message = format!("the solution has {bytes} bytes; {MAX_BYTES} are the most");
        return Err(Error::parameter("solution", message));
    }
    Ok(Solution { files })
}

/// Adds to a change what a graded solution means for its learner.
fn add_graded(
    change: &mut Change<'_>,
    state: &LearnerState,
    exercise: &Exercise,
    graded: &Graded,
    solution: &Solution,
) -> Result<Submission, Error> {
    let now = state.now;
    let path = state.path(&exercise.path_id)?;
    change.step(path, Work::On(exercise.estimated_minutes));
    let zone = zone(&change.profile.time_zone).unwrap_or(jiff::tz::TimeZone::UTC);
    change.profile.streak.add(state.today(&zone));
    let score = (graded.score * state.max_score(exercise)).clamp(0.0, 1.0);
    let mut attempted = state.attempt(&exercise.id);
    attempted.round = state.round(&exercise.id);
    // Remembered, so that further solutions of this review stay in its round.
    attempted.raised = state.due(&attempted).or(attempted.raised);
    attempted.started = attempted.started.or(Some(now));
    attempted.last = Some(now);
    if attempted.completed.is_none() {
        attempted.attempts = attempted.attempts.saturating_add(1);
    }
    let earned = match graded.verdict {
        Verdict::Pass => complete(change, state, exercise, &mut attempted, score)?,
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
        learner: state.learner.to_string(),
        exercise: exercise.id.clone(),
        path: exercise.path_id.clone(),
        time: now,
        verdict: graded.verdict,
        score,
        feedback: graded.feedback.clone(),
        earned,
        // What a machine has graded is not stored: nobody reads it again, and it may be large.
        files: if waits {
            solution.files.clone()
        } else {
            BTreeMap::new()
        },
        reviewer: None,
        comment: String::new(),
    })
}

/// Counts an exercise that is due and failed as forgotten.
pub(crate) fn lapse(attempted: &mut Attempted, now: Timestamp) {
    let due = attempted.memory.filter(|memory| memory.is_due(now));
    if let Some(memory) = due {
        attempted.memory = Some(practised(Some(&memory), Recall::Failed, now));
    }
}

/// Adds to a change that a solution passed, and returns what is earned by it.
pub(crate) fn complete(
    change: &mut Change<'_>,
    state: &LearnerState,
    exercise: &Exercise,
    attempted: &mut Attempted,
    score: f64,
) -> Result<Vec<Earned>, Error> {
    let now = state.now;
    let recall = match (attempted.completed, attempted.hints, attempted.attempts) {
        (None, 0, ..=1) => Recall::Easy,
        (None, 0, ..=3) | (Some(_), ..) => Recall::Good,
        (None, ..) => Recall::Hard,
    };
    attempted.best = attempted.best.max(score);
    let is_new = attempted.completed.is_none();
    // Practice ahead of time does not count: it would push the next review away, though nothing
    // had to be recalled.
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
    let after = state.with(&exercise.id, attempted.clone());
    let path = after.path(&exercise.path_id)?;
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
    state: &LearnerState,
    exercise: &Exercise,
    id: Digest,
    submission: Submission,
) -> Submitted {
    let path = state.path(&exercise.path_id).ok();
    let next = path
        .filter(|_| submission.verdict == Verdict::Pass)
        .and_then(|path| state.next(path).ok())
        .map(|(next, ..)| {
            let status = state.status(&next);
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
