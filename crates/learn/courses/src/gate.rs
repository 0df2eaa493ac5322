//! The gate that a path must pass before anybody sees it: its starters fail, its solutions
//! pass.

use std::sync::Arc;

use model::Problem;

use crate::grading::CaseInfo;
use crate::{Exercise, Graded, Graders, LearningPath, ValidationKind, Verdict};

impl Graders {
    /// Grades the starters and the reference solutions of a path. Problems show nothing that is
    /// hidden, since they may end in a log.
    pub async fn check(&self, path: &LearningPath) -> Vec<Problem> {
        let mut problems = Vec::new();
        for exercise in &path.exercises {
            self.check_exercise(exercise, &mut problems).await;
        }
        problems
    }

    async fn check_exercise(&self, exercise: &Arc<Exercise>, problems: &mut Vec<Problem>) {
        // Nobody is there to grade it.
        if exercise.validation == ValidationKind::Manual {
            return;
        }
        let file = exercise.grading.file();
        let cases = exercise.grading.validation.cases();
        let mut error = |rule: &str, line: usize, message: String| {
            problems.push(Problem::error(rule, &file, line, message));
        };
        let graded = self.grade(exercise, &exercise.grading.reference).await;
        let rule = match graded.verdict {
            Verdict::Pass => None,
            Verdict::Fail | Verdict::Pending => Some("solution-fails"),
            Verdict::Error => Some("solution-not-graded"),
        };
        if let Some(rule) = rule {
            error(rule, line(&cases, &graded), failures("solution", &graded));
        }
        // A starter that passes would give its points for nothing.
        let graded = self.grade(exercise, &exercise.starter).await;
        match graded.verdict {
            Verdict::Fail => {}
            Verdict::Pass | Verdict::Pending => {
                let message = "The starter passes: there is nothing left to do";
                let line = exercise.grading.lines.validation;
                error("starter-passes", line, message.to_owned());
            }
            Verdict::Error => {
                let line = line(&cases, &graded);
                error("starter-not-graded", line, failures("starter", &graded));
            }
        }
        let is_seen = cases.iter().all(|case| !case.hidden);
        if exercise.validation == ValidationKind::Test && is_seen {
            let message = "No case is hidden: a solution that copies the shown results passes";
            let line = exercise.grading.lines.validation;
            problems.push(Problem::warning("cases-not-hidden", &file, line, message));
        }
    }
}

fn failures(what: &str, graded: &Graded) -> String {
    let failed = graded
        .feedback
        .results
        .iter()
        .filter(|result| !result.passed);
    let failed: Vec<String> = failed
        .map(|result| {
            let parts = [
                ("expected ", &result.expected),
                ("was ", &result.actual),
                ("", &result.error),
            ];
            let parts = parts.iter().filter_map(|(word, text)| {
                let text = text.as_ref()?;
                Some(format!("{word}{}", model::shown(text, 200)))
            });
            let parts: Vec<String> = parts.collect();
            format!("\"{}\" ({})", result.name, parts.join(", "))
        })
        .collect();
    let summary = &graded.feedback.summary;
    format!(
        "The {what} does not do what it should. {summary} {}",
        failed.join("; ")
    )
}

/// The line of the first case that is not passed.
fn line(cases: &[&CaseInfo], graded: &Graded) -> usize {
    let mut cases = cases.iter().zip(&graded.feedback.results);
    let failed = cases.find(|(_, result)| !result.passed);
    failed.map_or(0, |(case, _)| case.line)
}
