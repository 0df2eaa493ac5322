//! Configs of the server: their values, and the problems that the server finds in them.

use model::Severity;

use super::question::{broken, judge};
use super::{Documents, text};
use crate::Solution;
use crate::feedback::{CaseOutcome, Stuck, WrongCase};
use crate::grading::{Ask, Case, Question};

pub(super) fn grade(
    documents: Option<&dyn Documents>,
    cases: &[Case<Question>],
    solution: &Solution,
) -> Result<Vec<CaseOutcome>, Stuck> {
    let missing = || Stuck("Nothing here reads configs".to_owned());
    let documents = documents.ok_or_else(missing)?;
    let text = text(solution);
    if let Err(problem) = guarded(&text) {
        let wrong = WrongCase::error(problem, "It is no YAML that the server takes");
        return Ok(vec![CaseOutcome::Wrong(wrong); cases.len()]);
    }
    let (value, problems) = documents.read(&text);
    let found = cases.iter().map(|case| match &case.check.ask {
        Ask::Problems(min) => judge(&case.check, &Some(broken(&problems, *min))),
        Ask::Pointer(pointer) => judge(&case.check, &value.pointer(pointer).cloned()),
        // The reader of exercises lets nothing else through.
        _ => judge(&case.check, &None),
    });
    Ok(found.collect())
}

/// Refuses a text that the reader of configs must not get.
fn guarded(text: &str) -> Result<(), String> {
    // That reader trusts the author of its config, who is the operator. A learner could send a
    // bomb of aliases, so the text passes the guard for skills first, as if it were front matter.
    let fenced = format!("---\n{}\n---\n", text.trim_end());
    let (document, problems) = skill_md::document(fenced.as_bytes(), "");
    let mut errors = problems.iter().filter(|p| p.severity == Severity::Error);
    if let Some(problem) = errors.next() {
        // Its lines begin after the fence.
        let line = problem.line.saturating_sub(1).max(1);
        let message = problem.message.replace("The front matter", "The text");
        return Err(format!("{message} (line {line})"));
    }
    // The guard saw the text before the first fence alone, and the reader gets all of it.
    match document {
        Some(document) if document.body.is_empty() => Ok(()),
        _ => Err("it must be one document of YAML, without a line `---`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_sees_all_of_a_config() {
        for text in ["", "# nothing\n", "a: 1", "a: [1, {b: 'x'}]\n\n"] {
            assert_eq!(guarded(text), Ok(()), "{text}");
        }
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\n";
        for (text, why) in [
            (bomb, "(line 1)"),
            (&format!("a: 1\n---\n{bomb}"), "one document"),
            (&format!("a: 1\n--- \n{bomb}"), "one document"),
            (&format!("a: 1\n...\n{bomb}"), ""),
            ("a: b: c", "(line 1)"),
            ("a: 1\na: 2", "(line 2)"),
            ("- a", ""),
            (&"[".repeat(100), ""),
        ] {
            let refused = guarded(text).expect_err(text);
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
