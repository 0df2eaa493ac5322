//! Solutions in JavaScript, and what is told of their mistakes.

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use repertoire_courses::{Busy, Graders, Verdict};
use sandbox::Sandbox;

use super::{SKILL, SOLUTION, add, config, exercise, grade, graders, output, worker};

#[tokio::test]
async fn javascript_is_graded_by_values_and_errors() {
    let exercise = add();
    let graded = grade(&exercise, &format!("{SOLUTION}// no GOOD word\nlet GOOD;")).await;
    assert_eq!(
        (graded.verdict, graded.score),
        (Verdict::Pass, 1.0),
        "{graded:?}"
    );
    assert_eq!(
        graded.feedback.summary,
        "All 4 tests pass, the hidden one too."
    );
    assert_eq!(graded.feedback.exemplary_aspects, ["Good word"]);
    // The word in the comment alone is none.
    let graded = grade(&exercise, &format!("{SOLUTION}// GOOD")).await;
    assert_eq!(graded.feedback.exemplary_aspects, Vec::<String>::new());

    let graded = grade(&exercise, &SOLUTION.replace("a + b", "a - b")).await;
    assert_eq!(graded.verdict, Verdict::Fail);
    assert!((graded.score - 0.6).abs() < 1e-9, "{}", graded.score);
    let feedback = &graded.feedback;
    assert_eq!(
        feedback.summary,
        "2 of 4 tests pass. Look first at \"adds\": it gave -1, and 3 was expected."
    );
    let first = &feedback.results[0];
    assert_eq!(
        (first.expected.as_deref(), first.actual.as_deref()),
        (Some("3"), Some("-1"))
    );
    assert_eq!(feedback.suggestions, ["The sign", "Larger ones"]);
    let hidden = &feedback.results[3];
    assert!(!hidden.passed);
    assert_eq!((&hidden.expected, &hidden.actual), (&None, &None));

    let graded = grade(&exercise, "function add( {").await;
    assert_eq!((graded.verdict, graded.score), (Verdict::Fail, 0.0));
    let summary = &graded.feedback.summary;
    assert!(
        summary.contains("All end with the same error: SyntaxError"),
        "{summary}"
    );
    for other in [
        "throw new RangeError('numbers')",
        "throw new TypeError('no')",
        "return 1",
    ] {
        let solution = SOLUTION.replace("throw new TypeError('numbers only')", other);
        let graded = grade(&exercise, &solution).await;
        assert_eq!(graded.verdict, Verdict::Fail, "{other}");
        assert!(!graded.feedback.results[2].passed, "{other}");
    }
    // What is not settled, too deep or too much is no error of the sandbox.
    for loops in [
        "const add = () => new Promise(() => {}); const pair = add;",
        "const add = (a) => add(a); const pair = add;",
    ] {
        assert_eq!(
            grade(&exercise, loops).await.verdict,
            Verdict::Fail,
            "{loops}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_found_out_is_an_error_and_says_what_to_look_for() {
    let exercise = add();
    let graded = grade(&exercise, "for (;;) {}").await;
    assert_eq!((graded.verdict, graded.score), (Verdict::Error, 0.0));
    let words = format!("{:?}", graded.feedback);
    assert!(words.contains("loop that never ends"), "{words}");
    assert!(
        graded.feedback.summary.contains("costs you nothing"),
        "{words}"
    );
    // A loop in one case is a failure of that case.
    let graded = grade(
        &exercise,
        &SOLUTION.replace("({ b: [undefined], a })", "{ for (;;) {} }"),
    )
    .await;
    assert_eq!(graded.verdict, Verdict::Fail, "{graded:?}");
    assert!(graded.feedback.results[0].passed);
    assert!(!graded.feedback.results[1].passed);
    // No sandbox, no worker, nobody who reads configs.
    let gone = Graders::new(Sandbox::new("/nowhere/at/all".into(), Vec::new()));
    let graded = gone.grade(&exercise, &exercise.one_text(SOLUTION)).await;
    assert_eq!(graded.verdict, Verdict::Error);
    assert!(!format!("{graded:?}").contains("nowhere"), "{graded:?}");
    for exercise in [worker(), config()] {
        let graded = graders()
            .grade(&exercise, &exercise.one_text("right: 1"))
            .await;
        assert_eq!(graded.verdict, Verdict::Error, "{graded:?}");
    }
}

#[tokio::test]
async fn who_writes_modules_is_told_that_none_are_needed() {
    let gives = "the tests see what you wrote all the same";
    let takes = "what the exercise gives you is there already";
    for (line, word, instead) in [
        ("export const x = 1;", "export", gives),
        ("export default add;", "export", gives),
        ("export { add };", "export", gives),
        ("module.exports = { add };", "module.exports", gives),
        ("exports.add = add;", "exports", gives),
        ("import { test } from 'vitest';", "import", takes),
        ("import * as fs from 'fs';", "import", takes),
        ("import 'jest';", "import", takes),
        ("const fs = require('fs');", "require", takes),
    ] {
        let graded = grade(&add(), &format!("{SOLUTION}{line}\n")).await;
        let said = format!("No modules are needed here: leave out `{word}`, {instead}");
        assert_eq!(
            graded.feedback.summary,
            format!("None of 4 tests passes yet. All end with the same error: {said}."),
            "{line}"
        );
    }
    // Another mistake is told as what it is.
    let graded = grade(&add(), "const a = ; // export it\n").await;
    assert!(
        graded.feedback.summary.contains("SyntaxError"),
        "{graded:?}"
    );
}

#[tokio::test]
async fn an_error_that_all_cases_share_is_said_once_and_nothing_else_is() {
    let graded = grade(&add(), "function add( {").await;
    let told = graded.feedback.results.iter().map(|result| {
        let says_why = result
            .error
            .as_deref()
            .map(|error| error.contains("SyntaxError"));
        (result.passed, says_why, result.look_at.clone())
    });
    let told: Vec<_> = told.collect();
    let rest = (false, None, None);
    assert_eq!(
        told,
        [(false, Some(true), None), rest.clone(), rest.clone(), rest]
    );
    assert_eq!(graded.feedback.suggestions, Vec::<String>::new());
    // What is not found of one pattern says nothing of the next.
    let two = exercise(
        "validation:\n  type: pattern\n  cases:\n    \
         - { must_match: one, description: a, look_at: The first }\n    \
         - { must_match: two, description: b, look_at: The second }\n",
        &[("starter.txt", "x"), ("solution.txt", "one two")],
    );
    let graded = grade(&two, "nothing").await;
    assert_eq!(graded.feedback.suggestions, ["The first", "The second"]);
    assert_eq!(
        graded.feedback.summary,
        "None of 2 tests passes yet. Look first at \"a\": It is not there."
    );
}

#[tokio::test]
async fn lines_may_end_as_on_another_system() {
    let cases = [
        (add(), SOLUTION.to_owned()),
        (super::skill(), SKILL.to_owned()),
        (output("exact"), "a\nb\n".to_owned()),
    ];
    for (exercise, solution) in cases {
        let one = grade(&exercise, &solution).await;
        let other = grade(&exercise, &solution.replace('\n', "\r\n")).await;
        assert_eq!(one, other);
    }
    let lines = exercise(
        "validation:\n  type: pattern\n  cases:\n    - { must_match: '(?m)^## Steps\\n\\n1. ', description: a }\n",
        &[("starter.md", "x"), ("solution.md", "## Steps\n\n1. go\n")],
    );
    let graded = grade(&lines, "## Steps\r\n\r\n1. go\r\n").await;
    assert_eq!(graded.verdict, Verdict::Pass, "{graded:?}");
}

#[tokio::test]
async fn a_learner_who_hands_in_endless_loops_holds_up_nobody_else() {
    let exercise = &add();
    let graders = &graders();
    let grade = |learner: &'static str, text: String| async move {
        let turn = graders.turn(learner, learner, exercise).await?;
        Ok::<_, Busy>(
            graders
                .grade_in(&turn, exercise, &exercise.one_text(text))
                .await,
        )
    };
    let loops = |n: usize| grade("ann", format!("for (;;) {{}} // {n}"));
    let (mut loops, bob) = (
        (0..40).map(loops).collect::<FuturesUnordered<_>>(),
        grade("bob", SOLUTION.to_owned()),
    );
    // What is too much of one learner is refused before anything is graded.
    for _ in 0..8 {
        let refused = loops.next().await.expect("an answer");
        assert_eq!(refused, Err(Busy::Learner));
    }
    let bob = match select(std::pin::pin!(bob), loops.collect::<Vec<_>>()).await {
        Either::Left((bob, _)) => bob.expect("graded"),
        Either::Right((graded, _)) => panic!("ann's came first: {graded:?}"),
    };
    assert_eq!(bob.verdict, Verdict::Pass, "{bob:?}");
}
