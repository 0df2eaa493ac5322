//! What two skills are at odds about.

use proptest::prelude::*;

use super::*;

/// Kinds and severities of what two skills are at odds about, whichever comes first.
fn told(one: &Subject, other: &Subject) -> Vec<(ConflictKind, ConflictSeverity)> {
    let of = |conflicts: Vec<Conflict>| -> Vec<_> {
        conflicts
            .iter()
            .map(|conflict| (conflict.kind, conflict.severity))
            .collect()
    };
    let found = of(between(one, other));
    assert_eq!(found, of(between(other, one)));
    found
}

#[test]
fn the_example_of_the_specification_is_answered_as_it_is_there() {
    let jest = subject("github/testing/jest-skill", "triggers: [test, jest]");
    let vitest = subject(
        "github/testing/vitest-skill",
        "triggers: [test, write test, unit test, vitest]",
    );
    let found = between(&jest, &vitest);
    let overlap = Overlap {
        shared: vec![
            "unit test".to_owned(),
            "write test".to_owned(),
            "test".to_owned(),
        ],
        percent: 75,
        whole: false,
        count: 3,
    };
    let expected = Conflict {
        kind: ConflictKind::TriggerOverlap,
        severity: ConflictSeverity::Warning,
        description: "Both skills respond to 'unit test' triggers".to_owned(),
        resolutions: vec![
            "Uninstall one skill",
            "Set priority order",
            "Use specific trigger phrases",
        ],
        overlap: Some(overlap),
    };
    assert_eq!(found, [expected]);
    let report = compare(jest, vec![vitest], &Stop::never()).expect("compared");
    assert_eq!(
        (report.compared, report.recommendations),
        (
            1,
            vec![
                "Consider setting priority: jest-skill > vitest-skill, which 1 other phrase calls \
                 up"
                .to_owned(),
                "Use 'jest test' and 'vitest test' for explicit skill targeting".to_owned(),
            ]
        )
    );
}

#[test]
fn how_much_is_shared_decides_how_bad_it_is() {
    use ConflictSeverity::{Blocking, Info, Warning};
    for (one, other, severity, percent) in [
        ("[memory, recall]", "[recall, memory]", Some(Blocking), 100),
        (
            "[memory]",
            "[remember, memory, notes, recall]",
            Some(Warning),
            100,
        ),
        ("[memory, recall]", "[memory, notes]", Some(Warning), 50),
        ("[memory, a b, c d]", "[memory, e f, g h]", Some(Info), 33),
        ("[memory]", "[recall]", None, 0),
        ("[Write Tests]", "[writing a test]", Some(Blocking), 100),
    ] {
        let one = subject("github/a/one", &format!("triggers: {one}"));
        let other = subject("github/a/other", &format!("triggers: {other}"));
        let expected: Vec<_> = severity
            .map(|severity| (ConflictKind::TriggerOverlap, severity))
            .into_iter()
            .collect();
        assert_eq!(told(&one, &other), expected);
        let shared = overlap(&one.triggers, &other.triggers);
        assert_eq!(shared.map_or(0, |overlap| overlap.percent), percent);
    }
}

#[test]
fn descriptions_say_when_skills_are_called_up_where_no_triggers_do() {
    let review = "Reviews. Use when reviewing pull requests, examining code changes, or giving \
                  feedback on code.";
    let one = described("github/a/one", review, "");
    assert_eq!(
        one.triggers.texts().collect::<Vec<_>>(),
        [
            "reviewing pull requests",
            "examining code changes",
            "giving feedback on code"
        ]
    );
    let copy = described("github/a/other", review, "");
    assert_eq!(
        told(&one, &copy),
        [(ConflictKind::TriggerOverlap, ConflictSeverity::Warning)]
    );
    let near = described(
        "github/a/near",
        "Merges. Use when reviewing a pull request, merging branches, or cutting releases.",
        "",
    );
    assert_eq!(
        told(&one, &near),
        [(ConflictKind::TriggerOverlap, ConflictSeverity::Info)]
    );
    let far = described(
        "github/a/far",
        "Cooks. Use when cooking a meal for many guests.",
        "",
    );
    assert_eq!(told(&one, &far), []);
}

#[test]
fn one_folder_is_no_place_for_two_skills() {
    let one = subject("github/a/pdf", "");
    let other = subject("github/b/PDF", "");
    let found = between(&one, &other);
    assert_eq!(
        found
            .iter()
            .map(|conflict| conflict.description.as_str())
            .collect::<Vec<_>>(),
        ["Both skills are installed as the folder 'pdf'"]
    );
    assert_eq!(
        told(&one, &other),
        [(ConflictKind::FileCollision, ConflictSeverity::Blocking)]
    );
    assert_eq!(told(&one, &one.clone()), []);
    let mut named = subject("github/b/other", "");
    let mut version = (*named.member.version).clone();
    version.skill.name = "PDF".to_owned();
    named.member.version = Arc::new(version);
    assert_eq!(
        told(&one, &named),
        [(ConflictKind::FileCollision, ConflictSeverity::Warning)]
    );
}

#[test]
fn what_one_forbids_and_the_other_needs_is_told() {
    use ConflictKind::{Behavioral, FileCollision};
    use ConflictSeverity::{Blocking, Info, Warning};
    let other = "github/a/other";
    for (one, two, expected) in [
        (
            "compatibility_rules: [{type: incompatible, skill: other, reason: Both edit}]",
            "",
            vec![(Behavioral, Blocking)],
        ),
        (
            "composability_rules: [{type: forbids, skill: github/a/other}]",
            "",
            vec![(Behavioral, Blocking)],
        ),
        (
            "compatibility_rules: [{type: requires, skill: other@^2}]",
            "version: 1.0.0",
            vec![(Behavioral, Blocking)],
        ),
        (
            "compatibility_rules: [{type: requires, skill: other}]",
            "",
            vec![],
        ),
        (
            "compatibility_rules: [{type: requires, skill: absent}]",
            "",
            vec![],
        ),
        (
            "allowed-tools: Read Bash(git:*)",
            "forbidden-tools: Bash",
            vec![(Behavioral, Warning)],
        ),
        ("allowed-tools: Read", "forbidden-tools: Bash", vec![]),
        (
            "output_contract: {type: report}",
            "output_contract: {type: patch}",
            vec![(Behavioral, Warning)],
        ),
        (
            "output_contract: {type: report}",
            "output_contract: {type: report}",
            vec![],
        ),
        (
            "tool_configs: [{name: query, method: q}]",
            "tool_configs: [{name: Query, method: q}]",
            vec![(Behavioral, Info)],
        ),
        (
            "allowed-tools: [\"Write(/tmp/x/**)\", Read]",
            "allowed-tools: [\"Write(/tmp/x/**)\"]",
            vec![(FileCollision, Info)],
        ),
        (
            "allowed-tools: [\"Write(**)\"]",
            "allowed-tools: [\"Write(**)\"]",
            vec![],
        ),
    ] {
        let (one, two) = (subject("github/a/one", one), subject(other, two));
        assert_eq!(told(&one, &two), expected, "{:?}", one.member.version.skill);
    }
}

#[test]
fn a_sentence_stays_on_its_line_whatever_an_author_writes() {
    let one = subject("github/a/one", "triggers: [\"a\\nb\", \"c\"]");
    let found = between(
        &one,
        &subject("github/a/other", "triggers: [\"a\\tb\", \"c\"]"),
    );
    for conflict in found {
        assert!(
            !conflict.description.contains(char::is_control),
            "{conflict:?}"
        );
    }
}

#[test]
fn of_endless_triggers_the_first_are_compared() {
    let many: Vec<String> = (0..5_000).map(|at| format!("phrase{at}")).collect();
    let one = subject("github/a/one", &format!("triggers: [{}]", many.join(", ")));
    assert_eq!(one.triggers.phrases.len(), MAX_TRIGGERS);
    let shared = overlap(&one.triggers, &one.triggers).expect("an overlap");
    assert_eq!(
        (shared.count, shared.percent, shared.shared.len()),
        (200, 100, 20)
    );
}

#[test]
fn the_worst_comes_first_and_a_skill_is_not_compared_with_itself() {
    let subject_of = |id: &str, triggers: &str| subject(id, &format!("triggers: {triggers}"));
    let one = subject_of("github/a/one", "[memory, recall, notes]");
    let others = vec![
        subject_of("github/a/little", "[memory, b c, d e, f g]"),
        subject_of("github/a/much", "[memory, recall]"),
        subject_of("github/a/one", "[memory]"),
        subject_of("github/b/one", "[cooking]"),
    ];
    let report = compare(one, others, &Stop::never()).expect("compared");
    let order: Vec<_> = report
        .conflicts
        .iter()
        .map(|opposed| {
            (
                opposed.with.member.id.to_string(),
                opposed.conflict.severity,
            )
        })
        .collect();
    assert_eq!(
        order,
        [
            ("github/b/one".to_owned(), ConflictSeverity::Blocking),
            ("github/a/much".to_owned(), ConflictSeverity::Warning),
            ("github/a/little".to_owned(), ConflictSeverity::Info),
        ]
    );
    assert_eq!(report.compared, 3);
    assert_eq!(
        report.recommendations.first().map(String::as_str),
        Some("Use either one or one, not both")
    );
}

fn triggers() -> impl Strategy<Value = Vec<String>> {
    let word = prop::sample::select(vec![
        "test", "write", "unit", "jest", "memory", "notes", "日本",
    ]);
    let phrase = prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    prop::collection::vec(phrase, 0..6)
}

proptest! {
    #[test]
    fn an_overlap_is_the_same_from_both_sides_and_a_share(one in triggers(), other in triggers()) {
        let with = |triggers: &[String]| subject("github/a/x", &format!("triggers: {triggers:?}"));
        let (one, other) = (with(&one).triggers, with(&other).triggers);
        let found = overlap(&one, &other);
        prop_assert_eq!(&found, &overlap(&other, &one));
        if let Some(found) = found {
            prop_assert!((1..=100).contains(&found.percent));
            prop_assert!(found.shared.len() <= found.count);
            prop_assert!(!found.whole || found.percent == 100);
        }
        let own = overlap(&one, &one);
        prop_assert_eq!(own.map(|own| (own.percent, own.whole)), (!one.is_empty()).then_some((100, true)));
    }

    #[test]
    fn a_share_is_whole_for_all_only(some in 0_usize..300, all in 1_usize..300) {
        let percent = share(some, all);
        prop_assert_eq!(percent == 100, some >= all);
        prop_assert_eq!(percent == 0, some == 0);
    }
}
