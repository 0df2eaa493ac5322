//! Solutions that a person grades.

use std::borrow::Cow;

use courses::Verdict;
use jiff::Timestamp;
use model::{Digest, Principal};
use store::Expect;

use crate::change::Change;
use crate::record::{
    ActivityKind, Earned, LastReview, SUBMISSIONS, Submission, WAITING, queue_time,
};
use crate::submit::{complete, lapse};
use crate::{Error, Learner, Learning};

/// A solution that waits for a reviewer.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The submission.
    pub id: Digest,
    /// The learner that handed it in.
    pub learner: String,
    /// The exercise.
    pub exercise: String,
    /// The path that the exercise is in.
    pub path: String,
    /// When it was handed in.
    pub time: Timestamp,
    /// The solution.
    pub files: std::collections::BTreeMap<String, String>,
    /// Points to check.
    pub checklist: Vec<String>,
}

/// The reviewer of a solution: a caller that signed in is its principal, whatever its request
/// says.
#[derive(Debug, Clone)]
pub struct Reviewer {
    name: String,
    /// What names of the caller's own learners begin with.
    namespace: Option<String>,
}

impl Reviewer {
    /// The reviewer that a caller is; one that did not sign in by the name that it states.
    ///
    /// # Errors
    /// It states the name of a caller that signed in.
    pub fn of(caller: &Principal, stated: &str) -> Result<Self, Error> {
        let namespace = caller.namespace().map(Cow::into_owned);
        let name = if namespace.is_some() || stated.is_empty() {
            caller.as_str()
        } else if Principal::is_name(stated) {
            let message = "this is the name of a caller that signs in; state another name";
            return Err(Error::parameter("reviewer", message));
        } else {
            stated
        };
        Ok(Self {
            name: name.to_owned(),
            namespace,
        })
    }

    /// The learner is the reviewer, or one of theirs.
    fn is(&self, learner: &str) -> bool {
        let own = self.namespace.as_deref().unwrap_or(&self.name);
        let rest = learner.strip_prefix(own);
        rest.is_some_and(|rest| {
            rest.is_empty() || self.namespace.is_some() && rest.starts_with('/')
        })
    }
}

/// A review to record.
#[derive(Debug, Clone)]
pub struct Review {
    /// The submission.
    pub submission_id: String,
    /// The reviewer.
    pub reviewer: Reviewer,
    /// Whether it does what was asked.
    pub passed: bool,
    /// How much of it is right, 0 to 1. None: all, or nothing.
    pub score: Option<f64>,
    /// A comment for the learner.
    pub comment: String,
}

/// The result of a review.
#[derive(Debug, Clone)]
pub struct Reviewed {
    /// The submission.
    pub id: Digest,
    /// The recorded verdict.
    pub verdict: Verdict,
    /// The learner's score.
    pub score: f64,
    /// Achievements that it earned.
    pub earned: Vec<Earned>,
}

impl Learning {
    /// Submissions that wait, the oldest first: a page of `size`, and the token of the next page.
    ///
    /// # Errors
    /// The token is none of ours, the path is none, or the store cannot be read.
    pub fn waiting(
        &self,
        path_id: &str,
        size: usize,
        token: &str,
    ) -> Result<(Vec<Waiting>, Option<String>), Error> {
        let catalog = self.catalog();
        if !path_id.is_empty() && catalog.path(path_id).is_none() {
            return Err(Error::no_path(&catalog, path_id));
        }
        let after = match token {
            "" => None,
            token => Some(token.parse::<Digest>().map_err(|_| Error::PageToken)?),
        };
        // The token is the last submission of the page before. Its record stays when it was
        // reviewed meanwhile, so the next page still finds where to go on.
        let after = match after {
            None => None,
            Some(id) => {
                let stored = self.store().get(&SUBMISSIONS, &id)?;
                let stored = stored.ok_or(Error::PageToken)?;
                Some((queue_time(stored.value.time), id))
            }
        };
        let mut found = Vec::new();
        // The queue is as long as reviewers are slow, and is read up to the page.
        for record in self.store().scan(&WAITING, &[]) {
            let (key, path) = record?;
            let Some((time, id)) = parts(&key) else {
                continue;
            };
            let is_asked_for = path_id.is_empty() || path.value == path_id;
            if !is_asked_for || after.is_some_and(|after| (time, id) <= after) {
                continue;
            }
            if found.len() == size {
                let last = found.last().map(|it: &Waiting| it.id.to_string());
                return Ok((found, last));
            }
            let Some(stored) = self.store().get(&SUBMISSIONS, &id)? else {
                continue;
            };
            let submission = stored.value;
            let exercise = catalog.exercise(&submission.exercise);
            found.push(Waiting {
                id,
                checklist: exercise.map_or_else(Vec::new, |it| it.checklist.clone()),
                learner: submission.learner,
                exercise: submission.exercise,
                path: submission.path,
                time: submission.time,
                files: submission.files,
            });
        }
        Ok((found, None))
    }

    /// Records a review, once.
    ///
    /// # Errors
    /// There is no such submission, it was reviewed with another verdict, or the reviewer
    /// is the learner.
    pub async fn review(&self, review: &Review) -> Result<Reviewed, Error> {
        let unknown = || Error::SubmissionNotFound {
            id: review.submission_id.clone(),
        };
        let id: Digest = review.submission_id.parse().map_err(|_| unknown())?;
        let verdict = if review.passed {
            Verdict::Pass
        } else {
            Verdict::Fail
        };
        for _ in 0..crate::MAX_CONFLICTS {
            let stored = self.store().get(&SUBMISSIONS, &id)?.ok_or_else(unknown)?;
            let mut submission = stored.value;
            match &submission.reviewer {
                // Graded by the server: nobody can review it. The same answer as for an id that does
                // not exist.
                None if submission.verdict != Verdict::Pending => return Err(unknown()),
                None => {}
                Some(_) if submission.verdict == verdict => return Ok(reviewed(id, submission)),
                Some(reviewer) => {
                    return Err(Error::Reviewed {
                        id: review.submission_id.clone(),
                        reviewer: reviewer.clone(),
                    });
                }
            }
            let reviewer = &review.reviewer.name;
            if review.reviewer.is(&submission.learner) {
                let message = "nobody may review their own solution";
                return Err(Error::parameter("reviewer", message));
            }
            let learner = Learner::new(&submission.learner)?;
            let state = self.state(&learner)?;
            let mut change = Change::of(&state);
            submission.reviewer = Some(reviewer.clone());
            submission.comment.clone_from(&review.comment);
            submission.verdict = verdict;
            let score = review
                .score
                .unwrap_or(if review.passed { 1.0 } else { 0.0 });
            submission.score = score;
            // An exercise that left the catalog, or was reset since, is reviewed all the same: the
            // submission must leave the queue. It changes nothing else.
            if let Some(exercise) = state.catalog.exercise(&submission.exercise).cloned() {
                let mut attempted = state.attempt(&exercise.id);
                submission.score = (score * state.max_score(&exercise)).clamp(0.0, 1.0);
                let last = LastReview {
                    reviewer: reviewer.clone(),
                    passed: review.passed,
                    comment: review.comment.clone(),
                    time: change.now(),
                };
                change.activity(
                    ActivityKind::SubmissionReviewed,
                    sentence(&last, &exercise.title),
                    Some(submission.score),
                );
                let is_current = attempted.started.is_some_and(|at| at <= submission.time);
                if is_current {
                    attempted.waiting = attempted.waiting.saturating_sub(1);
                    attempted.review = Some(last);
                    if review.passed {
                        submission.earned = complete(
                            &mut change,
                            &state,
                            &exercise,
                            &mut attempted,
                            submission.score,
                        )?;
                    } else {
                        attempted.best = attempted.best.max(submission.score);
                        lapse(&mut attempted, change.now());
                    }
                    change.attempted(&exercise.id, &attempted);
                }
            }
            let batch = &mut change.batch;
            batch.expect(&SUBMISSIONS, &id, Expect::Revision(stored.revision));
            batch.put(&SUBMISSIONS, &id, &submission);
            batch.delete(&WAITING, &(queue_time(submission.time), id));
            if change.commit(self).await? {
                return Ok(reviewed(id, submission));
            }
        }
        Err(Error::Contention)
    }
}

/// A review as a sentence.
fn sentence(review: &LastReview, title: &str) -> String {
    let LastReview {
        reviewer, comment, ..
    } = review;
    let verdict = if review.passed {
        "passes"
    } else {
        "does not pass yet"
    };
    let comment = match comment.trim() {
        "" => String::new(),
        comment => format!(": {comment}"),
    };
    format!("{reviewer} reviewed '{title}', which {verdict}{comment}")
}

fn reviewed(id: Digest, submission: Submission) -> Reviewed {
    Reviewed {
        id,
        verdict: submission.verdict,
        score: submission.score,
        earned: submission.earned,
    }
}

/// The time and the submission of a key of the queue.
fn parts(key: &[u8]) -> Option<(u64, Digest)> {
    let (time, id) = key.split_first_chunk::<8>()?;
    Some((
        u64::from_be_bytes(*time),
        Digest::from(<[u8; 32]>::try_from(id).ok()?),
    ))
}
