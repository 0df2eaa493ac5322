//! What is said fits the verdict, and keeps what is hidden.

use proptest::prelude::*;

use super::*;
use crate::reading::tests::exercise;

const CANARY: &str = "CANARY";

fn told() -> impl Strategy<Value = WrongCase> {
    let text = || prop_oneof![Just(None), Just(Some(CANARY.to_owned()))];
    (text(), text(), text(), text()).prop_map(|(expected, actual, error, clause)| WrongCase {
        expected,
        actual,
        error,
        plain: Some("Plain words"),
        clause,
        is_of_case: false,
    })
}

fn found() -> impl Strategy<Value = CaseOutcome> {
    prop_oneof![
        3 => Just(CaseOutcome::Right),
        3 => told().prop_map(CaseOutcome::Wrong),
        1 => prop_oneof![Just(Halt::Time), Just(Halt::Memory), Just(Halt::Forbidden)]
            .prop_map(CaseOutcome::Stopped),
    ]
}

fn case(hidden: bool, weight: f64) -> CaseInfo {
    CaseInfo {
        description: format!("weighs {weight}"),
        hidden,
        weight,
        look_at: hidden.then(|| "Look".to_owned()),
        input: Some(CANARY.to_owned()),
        expected: Some(CANARY.to_owned()),
        line: 1,
    }
}

proptest! {
    #[test]
    fn verdict_and_score_agree_and_what_is_hidden_stays_so(
        drawn in prop::collection::vec((any::<bool>(), 1..5_u32, found()), 1..8),
        all_hidden in any::<bool>(),
    ) {
        let cases: Vec<CaseInfo> = drawn.iter()
            .map(|(hidden, weight, _)| case(*hidden || all_hidden, f64::from(*weight)))
            .collect();
        let found: Vec<CaseOutcome> = drawn.into_iter().map(|(_, _, found)| found).collect();
        let exercise = exercise("");
        let graded = of(
            &exercise,
            &exercise.one_text("x"),
            &Vec::from_iter(&cases),
            &found,
        );
        let right = found.iter().filter(|found| **found == CaseOutcome::Right).count();
        prop_assert_eq!(graded.verdict == Verdict::Pass, right == found.len());
        prop_assert!((0.0..=1.0).contains(&graded.score));
        prop_assert_eq!(graded.verdict == Verdict::Pass, (graded.score - 1.0).abs() < 1e-9);
        let is_wrong = found.iter().any(|found| matches!(found, CaseOutcome::Wrong(_)));
        let is_forbidden = found.contains(&CaseOutcome::Stopped(Halt::Forbidden));
        if graded.verdict == Verdict::Error {
            prop_assert!(is_forbidden || (right == 0 && !is_wrong));
        }
        prop_assert_eq!(graded.feedback.results.len(), found.len());
        let passed = graded.feedback.results.iter().filter(|result| result.passed).count();
        prop_assert_eq!(passed, right);
        prop_assert!(!graded.feedback.summary.is_empty());
        let may_be_seen = cases.iter().zip(&found)
            .any(|(case, found)| !case.hidden && matches!(found, CaseOutcome::Wrong(_)));
        if !may_be_seen {
            prop_assert!(!format!("{:?}", graded.feedback).contains(CANARY), "{:?}", graded);
        }
        for (result, case) in graded.feedback.results.iter().zip(&cases) {
            let words = format!("{result:?}");
            prop_assert!(!case.hidden || !words.contains(CANARY), "{}", words);
        }
    }
}

#[test]
fn advice_is_given_where_it_fits() {
    let advice = "advice:\n  \
        - { when: present, pattern: let, kind: exemplary, text: has let }\n  \
        - { when: absent, pattern: let, kind: improvement, text: no let }\n  \
        - { when: present, pattern: let, kind: suggestion, on: pass, text: let in what passes }\n  \
        - { when: present, pattern: let, kind: suggestion, on: fail, text: let in what fails }\n";
    let exercise = exercise(advice);
    let said = |text: &str, verdict| {
        let feedback = advised(&exercise, &exercise.one_text(text), verdict);
        let all = [
            feedback.exemplary_aspects,
            feedback.improvement_areas,
            feedback.suggestions,
        ];
        all.concat()
    };
    assert_eq!(
        said("let a", Verdict::Pass),
        ["has let", "let in what passes"]
    );
    assert_eq!(
        said("let a", Verdict::Fail),
        ["has let", "let in what fails"]
    );
    assert_eq!(said("let a", Verdict::Error), ["has let"]);
    assert_eq!(said("// let a", Verdict::Pass), ["no let"]);
}

#[test]
fn too_many_suggestions_are_none() {
    let exercise = exercise("");
    let cases: Vec<CaseInfo> = (0..20).map(|at| case(true, f64::from(at) + 1.0)).collect();
    let mut cases = cases;
    for (at, case) in cases.iter_mut().enumerate() {
        case.look_at = Some(format!("Look at {}", at / 2));
    }
    let found = vec![CaseOutcome::Wrong(WrongCase::default()); 20];
    let graded = of(
        &exercise,
        &exercise.one_text("x"),
        &Vec::from_iter(&cases),
        &found,
    );
    let wanted = [
        "Look at 0",
        "Look at 1",
        "Look at 2",
        "Look at 3",
        "Look at 4",
    ];
    assert_eq!(graded.feedback.suggestions, wanted);
    assert_eq!(
        graded.feedback.summary,
        "None of 20 tests passes yet. That is not it yet."
    );
}
